// The periods of a schedule by day: a cell of the matrix, and what became of the periods in it.

import type { PeriodOfSchedule } from "../api/types";
import { partitionPath } from "./format";
import { show } from "./zone";

export type PeriodState = PeriodOfSchedule["state"];

/** A cell shows the first of these states that one of its periods has. */
export const PERIOD_STATES: readonly PeriodState[] = ["failed", "missing", "running", "waiting", "succeeded"];

export interface DayCell {
  day: string;
  state: PeriodState | null;
  periods: PeriodOfSchedule[];
}

/** The day in whose cell a period stands: that of its beginning, in its own zone. */
export function dayOfPeriod(item: PeriodOfSchedule, zone: string): string {
  return show(Date.parse(item.at), item.period?.zone ?? zone, "day");
}

/** The cells of a row, one for each day. */
export function cellsOf(days: readonly string[], items: readonly PeriodOfSchedule[], zone: string): DayCell[] {
  const byDay = new Map<string, PeriodOfSchedule[]>(days.map((day) => [day, []]));
  for (const item of items) byDay.get(dayOfPeriod(item, zone))?.push(item);
  return days.map((day) => {
    const periods = byDay.get(day) ?? [];
    return { day, periods, state: PERIOD_STATES.find((state) => periods.some((each) => each.state === state)) ?? null };
  });
}

/** `22 succeeded, 2 failed`, or `no period`. */
export function inWords(periods: readonly PeriodOfSchedule[]): string {
  const words = PERIOD_STATES.map((state) => [periods.filter((each) => each.state === state).length, state] as const)
    .filter(([many]) => many > 0)
    .map(([many, state]) => (periods.length === 1 ? state : `${many} ${state}`));
  return words.length > 0 ? words.join(", ") : "no period";
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
