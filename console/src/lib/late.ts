// Which runs were late: for their instant, or for a deadline.

import { between } from "./format";

const LATE_MS = 1000;

export interface Begun {
  /** By how much it was late, as the API measures it. */
  late_by_ms?: number | null;
  start_by?: string | null;
  start_requested_at?: string | null;
  end_by?: string | null;
  ended_at?: string | null;
}

/** By how many ms a run missed its deadlines, the worse of both; 0 if it met them or has none. */
export function missedBy(run: Begun): number {
  const begun = run.start_requested_at ?? run.ended_at;
  return Math.max(0, between(run.start_by, begun) ?? 0, between(run.end_by, run.ended_at) ?? 0);
}

/** The runs that were late by a second or more, and those whose deadline is over; the worst first. */
export function lateFirst<Run extends Begun>(runs: readonly Run[], now: number): Run[] {
  const by = (run: Run) => Math.max(run.late_by_ms ?? 0, overdueBy(run, now));
  return runs.filter((run) => by(run) >= LATE_MS).sort((a, b) => by(b) - by(a));
}

/** How late a run is, in ms: as the API measures it; of one that goes on after its deadline, by how much it has passed
 * that. null if nothing is known. */
export function lateBy(run: Begun, now: number): number | null {
  const over = overdueBy(run, now);
  return over > 0 ? Math.max(run.late_by_ms ?? 0, over) : (run.late_by_ms ?? null);
}

/** By how many ms a run that goes on has passed the instant by which it must end. */
const overdueBy = (run: Begun, now: number) =>
  run.end_by && !run.ended_at ? Math.max(0, now - Date.parse(run.end_by)) : 0;
