// The routes that only the console uses. Once the OpenAPI document describes them, `types.ts` has them, too.

import type { EndedWork, Job, JobStateName, RunStateName, WhyJobOfToday } from "./names";
import type { PartOfTrigger, StateOfConstraint, WhyRun, WhySchedule } from "./types";

export interface About {
  api: string;
  namespace: string | null;
  stage: string | null;
  account: string | null;
  region: string | null;
  version: string;
  read_only: boolean;
}

export interface ScheduleRow {
  name: string;
  app: string;
  state: string;
  enabled: boolean;
  pause_reason: string | null;
  triggered_by: string;
  workflow: string;
  tags: Record<string, string>;
  version: number;
  priority: number | null;
  skips: string[];
  dag: string | null;
}

export interface LastRun {
  run_id: string;
  attempt: number;
  state: string;
  at: string;
}

export interface Glance {
  schedule: string;
  state: string;
  why: string;
  next_fire: string | null;
  waiting: number;
  at_least: boolean;
  last: LastRun[];
}

export interface WaitingGroup {
  kind: string;
  name: string;
  of: string;
  why: string;
  count: number;
  oldest: string;
  changes_at: string | null;
  jobs: Job[];
}

export interface LiveRun {
  run_id: string;
  attempt: number;
  schedule: string;
  workflow: string;
  state: RunStateName;
  claimed_at: string;
  started_at: string | null;
  end_by: string | null;
}

export interface Now {
  at: string;
  at_least: boolean;
  waiting: { count: number; groups: WaitingGroup[] };
  approvals: { count: number; jobs: Job[] };
  running: { count: number; at_least: boolean; runs: LiveRun[] };
  overdue: {
    count: number;
    at_least: boolean;
    items: { id: string; kind: string; schedule: string; why: string; by: string }[];
  };
  paused: {
    count: number;
    at_least: boolean;
    schedules: { schedule: string; state: string; since: string | null; reason: string | null; by: string | null }[];
  };
}

export interface Fire {
  schedule: string;
  nominal_at: string;
  due_at: string;
  skipped: boolean;
  state: string;
}

export interface Ref {
  text: string;
  kind: string;
  name: string;
}

export type TreeNode = PartOfTrigger;

export type ConstraintInUse = StateOfConstraint;

export interface LimitInUse {
  name: string;
  text: string;
  used: number | null;
  max: number | null;
  held_by: string[] | null;
  waiting: number;
  waits_here: boolean;
}

export type WhyJob = WhyJobOfToday;

export type Why = WhySchedule;

export interface Timeline {
  from: string;
  to: string;
  names: string[];
  workflows: string[];
  states: string[];
  row: number[];
  at: number[];
  waited: number[];
  took: (number | null)[];
  state: number[];
  ids?: string[];
  at_least: boolean;
  complete_from: string;
}

export interface GraphNode {
  id: string;
  kind: string;
  name: string;
  depth: number | null;
  state: string | null;
  dag: string | null;
}

export interface Graph {
  around: string | null;
  nodes: GraphNode[];
  edges: { from: string; to: string; kind: string; text: string }[];
  at_least: boolean;
}

export interface LineageNode {
  id: string;
  kind: string;
  schedule: string | null;
  workflow: string | null;
  state: string | null;
  reason: string;
  at: string | null;
  ended_at: string | null;
  depth: number;
}

export interface Lineage {
  run_id: string;
  nodes: LineageNode[];
  edges: { from: string; to: string; text: string }[];
  at_least: boolean;
}

export interface Days {
  schedule: string;
  zone: string;
  from: string;
  to: string;
  days: { day: string; counts: Record<string, number> }[];
  at_least: boolean;
  complete_from: string;
}

export interface LimitRow {
  name: string;
  kind: string;
  of: string;
  in_use: number | null;
  maximum: number | null;
  unit: string;
  waiting: number;
  next_at: string | null;
  holders: { run_id: string; attempt: number; schedule: string; state: string; since: string }[] | null;
  waiters: { position: number; job_id: string; schedule: string; attempt: number | null }[] | null;
  at_least: boolean;
}

export interface PartitionDetail {
  dataset: string;
  values: string[];
  partition: Record<string, string>;
  ready_at: string | null;
  path: string;
  waiting: { job_id: string; schedule: string; state: JobStateName; reason: string }[];
  runs: { run_id: string; schedule: string; state: string; reason: string; at: string; ended_at: string | null }[];
  ended: EndedWork[];
  schedules: string[];
  at_least: boolean;
}

export interface Bulk {
  changed: string[];
  unchanged: string[];
  failed: { name: string; error: { code: string; message: string; hint: string | null } }[];
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface WhoAmI {
  arn: string;
  account: string | null;
  region: string | null;
  stage: string | null;
  version: string;
}

/** Operation -> its answer. */
export interface NewAnswers {
  "GET /v1/whoami": WhoAmI;
  "GET /v1/namespaces/{ns}/schedules": Page<ScheduleRow>;
  "POST /v1/namespaces/{ns}/glance": { items: Glance[]; gone: string[] };
  "GET /v1/namespaces/{ns}/now": Now;
  "GET /v1/namespaces/{ns}/fires": { from: string; to: string; at_least: boolean; items: Fire[] };
  "GET /v1/namespaces/{ns}/limits": Page<LimitRow>;
  "GET /v1/namespaces/{ns}/timeline": Timeline;
  "GET /v1/namespaces/{ns}/graph": Graph;
  "GET /v1/runs/{run_id}/lineage": Lineage;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/days": Days;
  "GET /v1/namespaces/{ns}/apps/{app}/schedules/{name}/why": Why;
  "GET /v1/jobs/{job_id}/why": WhyJob;
  "GET /v1/runs/{run_id}/why": WhyRun & { refs?: Ref[] };
  "GET /v1/namespaces/{ns}/datasets/{name}/partition": PartitionDetail;
  "POST /v1/namespaces/{ns}/apps/{app}/bulk": Bulk;
}
