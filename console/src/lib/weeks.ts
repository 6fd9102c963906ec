// The calendar of days as weeks, for the heat map.

export interface Day {
  day: string;
  counts: Record<string, number>;
}

const DAY = 86_400_000;

/** The weeks from Monday to Sunday that hold the days from one to another; days outside are null. */
export function weeks(from: string, to: string, days: readonly Day[]): (Day | null)[][] {
  const counts = new Map(days.map((day) => [day.day, day.counts]));
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * DAY;
  const found: (Day | null)[][] = [];
  for (let week = monday; week <= last; week += 7 * DAY) {
    found.push(
      Array.from({ length: 7 }, (_, index) => {
        const at = week + index * DAY;
        if (at < first || at > last) return null;
        const day = new Date(at).toISOString().slice(0, 10);
        return { day, counts: counts.get(day) ?? {} };
      }),
    );
  }
  return found;
}

export type DayLook = "none" | "ok" | "some" | "bad" | "never" | "run";

const sum = (counts: Record<string, number>, ...states: string[]) =>
  states.reduce((total, state) => total + (counts[state] ?? 0), 0);

/** How a day looks: failures first, then what runs, then what never ran. */
export function lookOfDay(counts: Record<string, number>): DayLook {
  const [ok, failed] = [sum(counts, "SUCCEEDED"), sum(counts, "FAILED", "RETRYING")];
  if (failed > 0) return failed >= ok ? "bad" : "some";
  if (sum(counts, "RUNNING", "STARTING") > 0) return "run";
  if (ok > 0) return "ok";
  return Object.keys(counts).length > 0 ? "never" : "none";
}

/** `20 SUCCEEDED, 1 FAILED`. */
export function countsInWords(counts: Record<string, number>): string {
  const words = Object.entries(counts).map(([state, many]) => `${many} ${state}`);
  return words.length > 0 ? words.join(", ") : "nothing ran";
}

/** The month that stands above a week of the grid: above its first week, and above the first whole week of a month. */
export function monthAbove(grid: readonly (readonly (Day | null)[])[], index: number): string {
  const monday = grid[index]?.[0]?.day;
  if (index === 0) return grid[0]?.find((day) => day !== null)?.day.slice(0, 7) ?? "";
  // A word is two weeks wide.
  return index > 1 && monday && Number(monday.slice(8)) <= 7 ? monday.slice(0, 7) : "";
}
