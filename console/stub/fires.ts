// A large fire: 1,000 events, of which three have failed and the last 200 are not due yet.

import { idOf, iso, job, NOW, NS, run } from "./data.ts";

const MINUTE = 60_000;
const STEP = 60; // ms between two events
const EVENTS = 1000;
const DUE = 800;
const FAILED: Record<number, string> = {
  3: "not delivered in 3 tries: AccessDenied: the queue refuses it",
  411: "not delivered in 3 tries: AccessDenied: the queue refuses it",
  702: "the message of 262,200 bytes is larger than 262,144 bytes",
};
const TOGETHER = 5; // waiting events that share a row
const USUALLY_LATE = 140; // in ms
const MOST_LATE = 1_100; // of the last event that was sent

export const SCHEDULE = `${NS}.flights.notify-each-carrier-of-its-late-arrivals-by-airport-and-hour`;
export const FIRE = `${SCHEDULE}.mf3k0p2q.${idOf(0xf1e)}`;
const WORKFLOW = `${NS}.flights.notify`;
const NOMINAL = Math.floor(NOW / MINUTE) * MINUTE - MINUTE;
const SENDS = {
  first: iso(NOMINAL + 140),
  last: iso(NOMINAL + (DUE - 1) * STEP + MOST_LATE),
  late_p50: USUALLY_LATE,
  late_max: MOST_LATE,
};

const due = (index: number) => NOMINAL + index * STEP;
const idOfEvent = (index: number) => `${FIRE}-${index.toString(36)}`;

const indexOf = (id: string): number | null => {
  const number = id.startsWith(`${FIRE}-`) ? id.slice(FIRE.length + 1) : "";
  const index = /^[0-9a-z]+$/.test(number) ? Number.parseInt(number, 36) : Number.NaN;
  return index < EVENTS ? index : null;
};

export const state = {
  id: FIRE,
  schedule: SCHEDULE,
  workflow: WORKFLOW,
  nominal_at: iso(NOMINAL),
  events: EVENTS,
  state: "SENDING",
  sent: DUE - Object.keys(FAILED).length,
  failed: Object.keys(FAILED).length,
  waiting: EVENTS - DUE,
  retrying: 0,
  dropped: 0,
  unknown: 0,
  sends: SENDS,
  at_least: false,
};

export const events = Array.from({ length: EVENTS }, (_, index) => {
  const failed = FAILED[index];
  const waits = index >= DUE;
  return {
    id: idOfEvent(index),
    index,
    due_at: iso(due(index)),
    state: waits ? "WAITING" : failed ? "FAILED" : "SENT",
    reason: waits ? `due at ${iso(due(index))}` : (failed ?? ""),
    code: waits ? "due_later" : failed ? "not_delivered" : null,
  };
});

const RUN = {
  ...run(30),
  schedule: SCHEDULE,
  workflow: WORKFLOW,
  fired_by: `its fire at ${iso(NOMINAL)}`,
  kind: "detached",
  waited_for: null,
  waited_ms: USUALLY_LATE,
  late: false,
  lateness_ms: USUALLY_LATE,
  late_by_ms: USUALLY_LATE,
  correlation: null,
  partition: null,
  properties: {},
  target: { type: "sqs", queue: "carriers" },
  target_id: null,
  nominal_at: iso(NOMINAL),
  billed: null,
  fire: FIRE,
};

/** The run of one event; undefined for the id of other work, and of an event that waits. */
export function runOf(id: string) {
  const index = indexOf(id);
  if (index === null || index >= DUE) return undefined;
  const failed = FAILED[index];
  const late = index === DUE - 1 ? MOST_LATE : USUALLY_LATE;
  return {
    ...RUN,
    run_id: id,
    state: failed ? "FAILED" : "SUCCEEDED",
    reason: failed ?? "",
    code: failed ? "not_delivered" : null,
    outcome: failed ? "failed" : null,
    number: index,
    created_at: iso(due(index)),
    due_at: iso(due(index)),
    accepted_at: iso(due(index)),
    claimed_at: iso(due(index) + late - 40),
    waited_ms: late,
    lateness_ms: late,
    late_by_ms: late,
    start_requested_at: iso(due(index) + late),
    started_at: iso(due(index) + late),
    ended_at: iso(due(index) + late + 60),
    spread: { index, count: EVENTS },
  };
}

/** The rows of the fire in a list of runs: one for all sent events, and those that failed. */
export function runs() {
  const first = runOf(idOfEvent(0));
  const sent = {
    ...first,
    run_id: `${idOfEvent(0)}_${TOGETHER}`,
    state: "SUCCEEDED",
    count: state.sent,
    lateness_ms: SENDS.late_max,
    late_by_ms: SENDS.late_max,
    ended_at: SENDS.last,
    sends: SENDS,
  };
  const failed = Object.keys(FAILED).map((index) => runOf(idOfEvent(Number(index))));
  return [sent, ...failed.reverse()] as NonNullable<typeof first>[];
}

const JOB = {
  ...job(2),
  schedule: SCHEDULE,
  kind: "detached",
  state: "PENDING_CONSTRAINTS",
  reason: `due at ${iso(due(DUE))}`,
  code: "due_later",
  queued_in: null,
  nominal_at: iso(NOMINAL),
  created_at: iso(NOMINAL),
  met_at: iso(NOMINAL),
  correlation: null,
  inherited_priority: null,
  waits_for: [{ kind: "clock", name: SCHEDULE, of: "a clock", changes_at: iso(due(DUE)) }],
  queue: null,
  fire: FIRE,
};

const jobFrom = (index: number, count: number, id: string) => ({
  ...JOB,
  job_id: id,
  due_at: iso(due(index)),
  wake_at: iso(due(index)),
  reason: `due at ${iso(due(index))}`,
  count,
  spread: { index, count: EVENTS },
});

/** The job of one waiting event; undefined for the id of other work. */
export function jobOf(id: string) {
  const index = indexOf(id);
  return index === null || index < DUE ? undefined : jobFrom(index, 1, id);
}

/** The waiting jobs of the fire, each of several events. */
export const jobs = Array.from({ length: (EVENTS - DUE) / TOGETHER }, (_, number) => {
  const index = DUE + number * TOGETHER;
  return jobFrom(index, TOGETHER, `${idOfEvent(index)}_${TOGETHER}`);
});
