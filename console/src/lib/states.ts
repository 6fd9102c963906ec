// How each state looks: a shape, a colour, and the word of the command line.

import type { PeriodState } from "./periods";

export type Tone = "ok" | "bad" | "run" | "wait" | "off" | "plain";

export interface StateLook {
  glyph: string;
  tone: Tone;
  /** What stands beside the word for those who read neither colour nor shape. */
  means: string;
}

const look = (glyph: string, tone: Tone, means: string): StateLook => ({ glyph, tone, means });

const LOOKS: Record<string, StateLook> = {
  SUCCEEDED: look("✓", "ok", "it ran and succeeded"),
  DONE: look("✓", "ok", "all of it has ended"),
  COMPLETED: look("✓", "ok", "it ran and succeeded"),
  FAILED: look("✗", "bad", "it ran and failed"),
  RUNNING: look("▶", "run", "it runs"),
  STARTING: look("◔", "run", "its start was requested"),
  RETRYING: look("↻", "wait", "an attempt failed, another follows"),
  CANCELLED: look("⊘", "off", "a person ended it"),
  PENDING_TRIGGER: look("…", "wait", "it waits for its trigger"),
  PENDING_CONSTRAINTS: look("◷", "wait", "its trigger is met, it waits for a constraint"),
  PENDING_LAUNCH: look("≡", "wait", "it waits in the queue of a limit"),
  SENT: look("✓", "ok", "it was sent"),
  SENDING: look("◔", "run", "some of its events were sent, others wait"),
  UNKNOWN: look("?", "plain", "no row says what became of it"),
  WAITING: look("…", "wait", "it waits"),
  PENDING: look("…", "wait", "it waits"),
  BLOCKED: look("⊣", "off", "it cannot start: a node before it did not end as its edge needs"),
  ABORTED: look("⤫", "off", "it never ran, or was aborted"),
  DROPPED: look("⤫", "off", "it never ran: it was dropped"),
  EXPIRED: look("⤫", "off", "it never ran: it expired"),
  SKIPPED: look("↷", "off", "it never ran: it was skipped"),
  LATE: look("◷", "bad", "it began after its deadline"),
  COALESCED: look("⤫", "off", "it was added to a job that waited"),
  enabled: look("●", "ok", "its trigger fires"),
  hold: look("‖", "wait", "paused: waiting jobs gather, and launch on resume"),
  backlog: look("‖", "wait", "paused: new jobs are queued, and run on resume"),
  drain: look("‖", "wait", "paused: waiting jobs go on, new events are not accepted"),
  completed: look("■", "off", "its last fire is over"),
  disabled: look("○", "off", "its trigger does not fire"),
  deleted: look("⤫", "off", "it is deleted"),
};

const LOOKS_OF_PERIODS: Record<PeriodState, StateLook> = {
  succeeded: look("✓", "ok", "its newest run succeeded"),
  failed: look("✗", "bad", "its newest run failed or was cancelled"),
  running: look("▶", "run", "a run of it is active"),
  waiting: look("◷", "wait", "a job or a backfill waits to run it"),
  missing: look("○", "bad", "no run of it is stored"),
};

export function lookOfPeriod(state: PeriodState): StateLook {
  return LOOKS_OF_PERIODS[state];
}

export function lookOfState(state: string): StateLook {
  // The states of a re-processing's steps are in lower case.
  return LOOKS[state] ?? LOOKS[state.toUpperCase()] ?? look("·", "plain", state);
}

/** Whether work in this state never became a run. */
export function neverRan(state: string): boolean {
  return ["ABORTED", "DROPPED", "EXPIRED", "SKIPPED", "COALESCED"].includes(state);
}

export const PAUSED = ["hold", "backlog", "drain"];
