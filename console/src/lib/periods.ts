// The periods of a schedule by day: a cell of the matrix, and what became of the periods in it.

import type { PeriodOfSchedule, PeriodsByDay } from "../api/types";
import { partitionPath } from "./format";
import { show } from "./zone";

const DAY = 86_400_000;

export type PeriodState = PeriodOfSchedule["state"];

/** A cell shows the first of these states that one of its periods has. */
export const PERIOD_STATES: readonly PeriodState[] = ["failed", "missing", "running", "waiting", "succeeded"];

/** A cell of the matrix. `counts` has the states of its periods if they differ. */
export interface DayCell {
  day: string;
  state: PeriodState | null;
  counts: Partial<Record<PeriodState, number>> | null;
}

/** The day in whose cell a period stands: that of its beginning, in its own zone. */
export function dayOfPeriod(item: PeriodOfSchedule, zone: string): string {
  return show(Date.parse(item.at), item.period?.zone ?? zone, "day");
}

const LETTERS: Record<string, PeriodState> = {
  f: "failed",
  m: "missing",
  r: "running",
  w: "waiting",
  s: "succeeded",
};

/** The cells of a row, one for each day; `from` is the day of its first letter. */
export function cellsOf(days: readonly string[], row: PeriodsByDay, from: string): DayCell[] {
  return days.map((day) => {
    const state = LETTERS[row.days[(Date.parse(day) - Date.parse(from)) / DAY] ?? ""] ?? null;
    return { day, state, counts: row.mixed[day] ?? null };
  });
}

/** The periods of a list that stand in the cell of a day. */
export function periodsOf(day: string, items: readonly PeriodOfSchedule[], zone: string): PeriodOfSchedule[] {
  return items.filter((item) => dayOfPeriod(item, zone) === day);
}

/** `2 failed, 22 succeeded`, `succeeded`, or `no period`. */
export function inWords(cell: DayCell): string {
  const { counts } = cell;
  if (counts === null) return cell.state ?? "no period";
  return PERIOD_STATES.filter((state) => counts[state])
    .map((state) => `${counts[state]} ${state}`)
    .join(", ");
}

/** Whether the partition of a period is registered. Null where a period is no single partition, as with `per`: then no
 * period of the list has one. */
export function isReady(period: PeriodOfSchedule, list: readonly PeriodOfSchedule[]): boolean | null {
  if (period.ready_at) return true;
  return list.some((each) => each.ready_at) ? false : null;
}

/** What a backfill of the missing or failed periods of a cell names; null if there are none. */
export interface Hole {
  only: "missing" | "failed";
  from?: string;
  to?: string;
  partitions?: string[];
}

export function holeOf(periods: readonly PeriodOfSchedule[], only: Hole["only"]): Hole | null {
  const wanted = periods.filter((each) => each.state === only);
  const [first, last] = [wanted[0], wanted.at(-1)];
  if (!first || !last) return null;
  if (first.values) return { only, partitions: wanted.map((each) => partitionPath(each.values ?? {})) };
  // The end is excluded, and the form has minutes.
  return { only, from: first.at, to: new Date(Date.parse(last.at) + 60_000).toISOString() };
}
