// Which runs were late: for their instant, or for a deadline.

import { between } from "./format";

const LATE_MS = 1000;

interface Begun {
  lateness_ms?: number | null;
  late?: boolean;
  start_by?: string | null;
  started_at?: string | null;
  end_by?: string | null;
  ended_at?: string | null;
  /** Of the sent events of a large fire. */
  sends?: { late_max: number } | null;
}

/** By how many ms a run missed its deadlines, the worse of both; 0 if it met them or has none. */
export function missedBy(run: Begun): number {
  const begun = run.started_at ?? run.ended_at;
  return Math.max(0, between(run.start_by, begun) ?? 0, between(run.end_by, run.ended_at) ?? 0);
}

/** How late a run was in ms, for its instant or its deadlines; null if nothing says when it was due. Of many events,
 * the latest one counts. */
export function lateBy(run: Begun): number | null {
  const missed = missedBy(run);
  const late = run.sends?.late_max ?? run.lateness_ms ?? null;
  return missed > 0 ? Math.max(missed, late ?? 0) : late;
}

/** The runs that were late by a second or more, the worst first. */
export function lateFirst<Run extends Begun>(runs: readonly Run[]): Run[] {
  return runs.filter((run) => (lateBy(run) ?? 0) >= LATE_MS).sort((a, b) => (lateBy(b) ?? 0) - (lateBy(a) ?? 0));
}
