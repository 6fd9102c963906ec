// Waiting jobs by what would let them go: as the API names it.

import type { Hold, Job } from "../api/types";
import { events } from "./fires";

export interface Held {
  id: string;
  kind: Hold["kind"];
  title: string;
  /** The limit that holds them, as the address of Limits takes it. */
  limit?: string;
  jobs: Job[];
}

const ORDER: Hold["kind"][] = [
  "limit",
  "approval",
  "data",
  "upstream",
  "probe",
  "window",
  "clock",
  "pause",
  "grant",
  "condition",
];

/** Kinds of which all jobs are one group; those of others are grouped by what holds them. */
export const ONE_GROUP: Partial<Record<Hold["kind"], string>> = {
  approval: "approval",
  data: "data and events",
  clock: "a clock",
  pause: "a paused schedule",
  condition: "another condition",
};

/** What holds a job: its kind, and words that are the same for jobs that one thing holds. The first of several counts. */
export function holderOf(job: Job): Omit<Held, "jobs"> {
  const hold = job.waits_for[0];
  if (!hold) return { id: "condition", kind: "condition", title: "another condition" };
  if (hold.kind === "limit") return { id: hold.name, kind: "limit", title: hold.of, limit: hold.name };
  const one = ONE_GROUP[hold.kind];
  return one
    ? { id: hold.kind, kind: hold.kind, title: one }
    : { id: `${hold.kind}:${hold.of}`, kind: hold.kind, title: hold.of };
}

/** Whether a job waits for something of this kind, perhaps among others. */
export const waitsFor = (job: Job, kind: string): boolean => job.waits_for.some((hold) => hold.kind === kind);

/** The groups in their order, those with more jobs first; the jobs of a group as they stand in its queue, or by age. */
export function byHolder(jobs: readonly Job[]): Held[] {
  const groups = new Map<string, Held>();
  for (const job of jobs) {
    const holder = holderOf(job);
    const group = groups.get(holder.id) ?? { ...holder, jobs: [] };
    group.jobs.push(job);
    groups.set(holder.id, group);
  }
  for (const group of groups.values()) group.jobs.sort(inOrder);
  return [...groups.values()].sort(
    (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || events(b.jobs) - events(a.jobs),
  );
}

/** The same by schedule or by state. */
export function byWord(jobs: readonly Job[], word: (job: Job) => string): Held[] {
  const groups = new Map<string, Held>();
  for (const job of jobs) {
    const title = word(job);
    const group = groups.get(title) ?? { id: title, kind: "condition", title, jobs: [] };
    group.jobs.push(job);
    groups.set(title, group);
  }
  return [...groups.values()].sort((a, b) => events(b.jobs) - events(a.jobs) || a.title.localeCompare(b.title));
}

// Instants of the API compare as texts; a comparison by language takes ten times as long.
function inOrder(a: Job, b: Job): number {
  const places = (a.queue?.position ?? 1e9) - (b.queue?.position ?? 1e9);
  return places || (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0);
}

/** What a limit has in use: `2 of 4 slots in use`; nothing for a limit of starts, which holds nothing. */
export function useInWords(limit: { in_use: number | null; maximum: number | null; unit: string }): string {
  if (limit.in_use === null) return "";
  const most = limit.maximum === null ? "" : ` of ${limit.maximum}`;
  return `${limit.in_use}${most} ${limit.unit} in use`;
}
