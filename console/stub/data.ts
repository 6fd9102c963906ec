// Generated data for the size tests: 10,000 schedules, 100,000 runs and 5,000 waiting jobs, always the same.

import type { Stop } from "../src/api/types.ts";

export const NS = "demo";
export const SCHEDULES = Number(process.env.STUB_SCHEDULES ?? 10_000);
export const RUNS = Number(process.env.STUB_RUNS ?? 100_000);
export const JOBS = Number(process.env.STUB_JOBS ?? 5_000);
export const NOW = Date.now();

const MINUTE = 60_000;
const STEPS = ["ingest", "clean", "join", "score", "report", "export", "check", "merge"];
const SOURCES = ["flights", "weather", "orders", "clicks", "stock", "rates", "parcels", "tickets"];

/** A number from 0 to 1 that depends on its arguments alone. */
export function chance(...seeds: number[]): number {
  let hash = 2166136261;
  for (const seed of seeds) hash = Math.imul(hash ^ (seed + 0x9e37), 16777619) ^ (hash >>> 13);
  return ((hash >>> 0) % 100_000) / 100_000;
}

/** The last part of an id: twenty hexadecimal digits that look random. */
export function idOf(number: number): string {
  const mixed = (salt: number) => (Math.imul(number ^ salt, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0");
  return (mixed(0x51ed) + mixed(0xc0de) + mixed(7)).slice(0, 20);
}

export const iso = (ms: number): string => new Date(ms).toISOString();
const pick = <T>(list: readonly T[], index: number): T => list[Math.abs(index) % list.length] as T;

export const STOP: Stop = {
  namespace: "demo",
  app: "demo.flights",
  tag: "team=a",
  reason: "the table is repaired",
  by: "arn:aws:sts::123456789012:assumed-role/data/ann",
  since: "2026-11-20T02:14:00.000Z",
  state: "stopped",
  timeouts: "count",
};

function stateOf(number: number): string {
  const value = chance(number, 1);
  if (value < 0.86) return "enabled";
  if (value < 0.9) return "hold";
  if (value < 0.92) return "backlog";
  if (value < 0.93) return "drain";
  return value < 0.95 ? "completed" : "disabled";
}

export const schedules = Array.from({ length: SCHEDULES }, (_, number) => {
  const app = pick(SOURCES, number);
  const step = pick(STEPS, Math.floor(number / 8));
  const name = `${NS}.${app}.${step}-${String(number).padStart(5, "0")}`;
  const state = stateOf(number);
  const tags: Record<string, string> = number % 4 === 0 ? { team: pick(["a", "b", "c"], number) } : {};
  return {
    name,
    app,
    state,
    enabled: state === "enabled",
    stops: app === "flights" && tags.team === "a" ? [STOP] : [],
    pause_reason: state === "hold" && chance(number, 2) < 0.3 ? "3 runs failed in a row" : null,
    triggered_by:
      number % 3 === 0
        ? "05:00 every day, Europe/Paris"
        : number % 3 === 1
          ? `1 partition of ${NS}.${app}`
          : `${NS}.${app}.clean reaching COMPLETED`,
    workflow: `${NS}.${app}.${step}`,
    tags,
    version: 2,
    priority: null,
    skips: [],
    dag: null,
    generation: NOW,
    policy: null,
    updated_at: iso(NOW - number * MINUTE),
    updated_by: "arn:aws:iam::123456789012:user/ada",
  };
});

// A node of a DAG, as Sluice names it.
export const NODE = {
  ...(schedules[1] as (typeof schedules)[number]),
  name: `${NS}.flights.nightly~1f0c22ab~join`,
  dag: `${NS}.flights.nightly`,
};

const schedule = (number: number) => schedules[number % schedules.length] as (typeof schedules)[number];

function runState(number: number): string {
  const value = chance(number, 3);
  if (number < 12) return "RUNNING";
  if (number < 14) return "STARTING";
  return value < 0.94 ? "SUCCEEDED" : value < 0.98 ? "FAILED" : "CANCELLED";
}

/** The run of a number, the newest first, as the lists of the API have it. */
export function run(number: number) {
  const of = schedule(Math.floor(chance(number, 4) * Math.min(SCHEDULES, 400)));
  const state = runState(number);
  const claimed = NOW - number * 800 - 2_000;
  const waited = Math.floor(chance(number, 5) * 30_000);
  const took = 5_000 + Math.floor(chance(number, 6) * 280_000);
  const living = state === "RUNNING" || state === "STARTING";
  const ended = living ? null : iso(Math.min(NOW, claimed + took));
  return {
    run_id: `${of.name}.mf3k0p2q.${idOf(number)}`,
    attempt: 1,
    attempts: 1,
    schedule: of.name,
    workflow: of.workflow,
    workflow_version: 1,
    state,
    reason:
      state === "FAILED"
        ? pick(["exit code 1: the file is empty", "exit code 137: out of memory", "timed out after 2 h"], number)
        : "",
    code: state === "FAILED" ? "target_failed" : null,
    fired_by: "trigger met: 1 partition of demo.weather came at 2026-11-20T05:00:00.000Z",
    kind: "gathering",
    number,
    waited_for: number % 40 === 27 ? "waits for a slot of pool demo.spark: 20 of 20 in use" : null,
    waited_ms: waited,
    took_ms: ended === null ? null : Math.max(0, Date.parse(ended) - claimed - 3_000),
    start_by: null,
    end_by: null,
    billed: { cost_usd: 0.012 },
    backfill: null,
    rerun_of: null,
    requested_by: null,
    outcome: state === "FAILED" ? "failed" : null,
    metrics: null,
    priority: 5,
    correlation: { year: "2013", month: "1", day: String(1 + (number % 28)) },
    partition: { year: "2013", month: "1", day: String(1 + (number % 28)) },
    dag: null,
    properties: { threshold: "0.7" },
    target: { type: "emr_serverless", entry_point: "s3://code/clean.py" },
    target_id: "00abc/00def",
    context: "s3://control/context.json",
    created_at: iso(claimed - waited),
    nominal_at: null,
    due_at: null,
    late: number % 40 === 27,
    lateness_ms: number % 40 === 27 ? 190_000 : 900,
    late_by_ms: number % 40 === 27 ? 190_000 : 900,
    accepted_at: iso(claimed - waited),
    claimed_at: iso(claimed),
    start_requested_at: iso(claimed + 200),
    started_at: state === "STARTING" ? null : iso(claimed + 3_000),
    ended_at: ended,
    start_calls: 1,
    count: 1,
    fire: null,
    spread: null,
    sends: null,
  };
}

const WAITS = [
  {
    state: "PENDING_LAUNCH",
    reason: "waits for a slot of workflow demo.flights.clean: 2 of 2 in use",
    code: "limit",
    queued_in: "workflow:demo.flights.clean",
    holds: [{ kind: "limit", name: "workflow:demo.flights.clean", of: "workflow demo.flights.clean" }],
  },
  {
    state: "PENDING_TRIGGER",
    reason: "waits for 1 partition of demo.weather (demo.flights.clean reached COMPLETED)",
    code: "trigger_unmet",
    queued_in: null,
    holds: [{ kind: "data", name: "demo.flights.join", of: "schedule demo.flights.join" }],
  },
  {
    state: "PENDING_CONSTRAINTS",
    reason: "waits for its window: between 22:00 and 06:00 Europe/Paris",
    code: "time_window",
    queued_in: null,
    holds: [{ kind: "window", name: "time_window", of: "between 22:00 and 06:00 in Europe/Paris" }],
  },
  {
    state: "PENDING_CONSTRAINTS",
    reason: "approved by a lead, else wait: waits for approval",
    code: "approval",
    queued_in: null,
    holds: [{ kind: "approval", name: "approval", of: "approved by a lead" }],
  },
] as const;

export function job(number: number) {
  const of = schedule(number * 7);
  const waits = pick(WAITS, Math.floor(chance(number, 9) * 3.2));
  const atNight = waits.holds[0].kind === "window" ? iso(NOW + 8 * 3_600_000) : null;
  return {
    job_id: `${of.name}.mf3k0p2q.${idOf(number + 0xa00000)}`,
    schedule: of.name,
    kind: waits.state === "PENDING_TRIGGER" ? "gathering" : "detached",
    state: waits.state,
    reason: waits.reason,
    code: waits.code,
    created_at: iso(NOW - (JOBS - number) * 9_000),
    due_at: null,
    nominal_at: null,
    met_at: waits.state === "PENDING_TRIGGER" ? null : iso(NOW - (JOBS - number) * 8_000),
    wake_at: atNight,
    queued_in: waits.queued_in,
    holds: [],
    correlation: { year: "2013", month: "1", day: String(1 + (number % 28)) },
    dag: null,
    attempt: 1,
    inherited_priority: number % 9 === 0 ? "priority 9, inherited from demo.flights.report" : null,
    approvals: [],
    backfill: null,
    progress: { "0": 1 },
    requested_by: null,
    waits_for: waits.holds.map((hold) => ({ ...hold, changes_at: atNight })),
    queue: waits.queued_in
      ? {
          of: "workflow demo.flights.clean",
          position: number + 1,
          waiting: JOBS,
          more_urgent: 0,
          since: "2026-11-20T11:30:00.000Z",
        }
      : null,
    count: 1,
    fire: null,
    spread: null,
  };
}

function notEnabled(state: string, since: string): string {
  if (state === "hold" || state === "backlog") return `the schedule has been paused (${state}) since ${since}`;
  if (state === "drain") return `the schedule takes no more work since ${since}`;
  if (state === "completed") return "all fires are done; enable the schedule to start again";
  return "the schedule is disabled: enable it, or run it now";
}

export function glance(name: string) {
  const number = Number(name.slice(-5)) || 0;
  const row = schedules.find((known) => known.name === name) ?? schedule(number);
  return {
    schedule: name,
    state: row.state,
    why:
      row.state === "enabled"
        ? pick(
            [
              `no event has arrived since the last run; trigger: ${row.triggered_by}`,
              `waits for 1 partition of demo.${row.app} (no event has arrived)`,
              "waits for a slot of workflow demo.flights.clean: 2 of 2 in use",
            ],
            number,
          )
        : notEnabled(row.state, iso(NOW - 7_200_000)),
    next_fire: row.enabled && number % 3 === 0 ? iso(NOW + (1 + (number % 20)) * 3_600_000) : null,
    waiting: number % 5 === 0 ? number % 7 : 0,
    at_least: false,
    last: Array.from({ length: number % 11 }, (_, index) => {
      const made = run(number * 10 + index + 20);
      return { run_id: made.run_id, attempt: 1, state: made.state, at: made.claimed_at, count: 1 };
    }),
  };
}

export function timeline(from: number, to: number, limit: number, ids: boolean) {
  const names = new Map<string, number>();
  const workflows: string[] = [];
  const states = ["SUCCEEDED", "FAILED", "RUNNING", "STARTING", "CANCELLED"];
  const columns = {
    row: [] as number[],
    at: [] as number[],
    waited: [] as number[],
    starting: [] as number[],
    took: [] as (number | null)[],
    state: [] as number[],
    count: [] as number[],
    ids: [] as string[],
  };
  let oldest = from;
  for (let number = Math.max(0, Math.floor((NOW - 2_000 - to) / 800)); number < RUNS; number++) {
    const claimed = NOW - number * 800 - 2_000;
    if (claimed >= to) continue;
    if (claimed < from) break;
    if (columns.row.length >= limit) {
      oldest = claimed + 800; // of the one before, which is the last of this page
      break;
    }
    const made = run(number);
    if (!names.has(made.schedule)) {
      names.set(made.schedule, names.size);
      workflows.push(made.workflow);
    }
    columns.row.push(names.get(made.schedule) ?? 0);
    columns.at.push(claimed - made.waited_ms);
    columns.waited.push(made.waited_ms);
    columns.starting.push(made.started_at ? 3_000 : 0);
    columns.took.push(made.took_ms);
    columns.state.push(states.indexOf(made.state));
    columns.count.push(made.count);
    columns.ids.push(`${made.run_id}#1`);
  }
  const { ids: all, ...rest } = columns;
  return {
    from: iso(from),
    to: iso(to),
    names: [...names.keys()],
    workflows,
    states,
    ...rest,
    ...(ids ? { ids: all } : {}),
    at_least: oldest > from,
    complete_from: iso(oldest),
  };
}
