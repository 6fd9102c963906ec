// Short names for parts of the generated types.

import type { Answers, Run, WhyJob } from "./types";

export type { EndedWork, Job } from "./types";
export type WhyJobOfToday = WhyJob;
export type RunStateName = Run["state"];
export type JobStateName = WhyJob["state"];
export type Page<Path extends keyof Answers> = Answers[Path];
