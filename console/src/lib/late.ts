// Which runs began late.

const LATE_MS = 1000;

interface Begun {
  lateness_ms?: number | null;
}

/** The runs that began a second or more after their instant, the worst first. */
export function lateFirst<Run extends Begun>(runs: readonly Run[]): Run[] {
  return runs
    .filter((run) => (run.lateness_ms ?? 0) >= LATE_MS)
    .sort((a, b) => (b.lateness_ms ?? 0) - (a.lateness_ms ?? 0));
}
