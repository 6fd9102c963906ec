// The partitions of a dataset as a calendar, where its keys are those of a day.

import type { RegisteredPartition } from "../api/types";

export interface Registered {
  partition: Record<string, string>;
  ready_at: string;
}

const pad = (value: string | undefined) => String(value ?? "").padStart(2, "0");

/** The day of a partition, as `2013-02-09`; null if its keys are not those of a day. */
export function dayOf(partition: Record<string, string>): string | null {
  const { year, month, day, date, dt } = partition;
  const text = year && month && day ? `${year}-${pad(month)}-${pad(day)}` : (day ?? date ?? dt ?? "");
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;
}

const hasZeros = (partition: Record<string, string>) => Object.values(partition).some((value) => /^0\d$/.test(value));

/** A partition that shows the form of its dataset: one with leading zeros, if there is one. December has none. */
export function typical(items: readonly { partition: Record<string, string> }[]): Record<string, string> {
  return (items.find((item) => hasZeros(item.partition)) ?? items[0])?.partition ?? {};
}

/** The partition of a day, in the form of others of its dataset: with or without leading zeros. */
export function partitionOfDay(day: string, like: Record<string, string>): Record<string, string> {
  const [year = "", month = "", date = ""] = day.split("-");
  const padded = hasZeros(like);
  const plain = (value: string) => (padded ? value : String(Number(value)));
  return Object.fromEntries(
    Object.keys(like).map((key) => {
      const long = /^\d{4}-/.test(like[key] ?? "");
      return [
        key,
        long
          ? day
          : key === "year"
            ? year
            : key === "month"
              ? plain(month)
              : key === "day"
                ? plain(date)
                : (like[key] ?? ""),
      ];
    }),
  );
}

const FARTHEST_DAYS = 60;

/** The last day to show: that of the newest partition, or of one that is chosen and not there, at most 60 days later. */
export function reachOf(last: string, chosen: string | undefined, like: Record<string, string>): string {
  const values = chosen?.split("/") ?? [];
  const wanted = dayOf(Object.fromEntries(Object.keys(like).map((key, index) => [key, values[index] ?? ""])));
  if (wanted === null || wanted <= last) return last;
  return Date.parse(wanted) - Date.parse(last) <= FARTHEST_DAYS * 86_400_000 ? wanted : last;
}

const KEYS_OF_DAY = ["year", "month", "day", "date", "dt"];

/** Whether a day has one partition: its keys are those of a day, and no more, such as an hour. */
export function isOfOneDay(partition: Record<string, string>): boolean {
  return dayOf(partition) !== null && Object.keys(partition).every((key) => KEYS_OF_DAY.includes(key));
}

const daysOf = (items: readonly { partition: Record<string, string> }[]) =>
  items.map((item) => dayOf(item.partition)).filter((day): day is string => day !== null);

/** The newest day that has a partition among these. */
export function newestDay(items: readonly { partition: Record<string, string> }[]): string | null {
  return daysOf(items).reduce<string | null>((last, day) => (last === null || day > last ? day : last), null);
}

const DAYS = 182;
const plus = (day: string, days: number) => new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);

export interface HalfYear {
  from: string;
  to: string;
  /** All partitions of these days are among the known ones. */
  known: boolean;
  newest: string;
  /** The last day of the half-year before and of that after; null if there is none. */
  earlier: string | null;
  later: string | null;
}

/** The days to show: half a year up to the newest one, or up to `to`, or around a chosen day that is earlier. With
 * `more`, earlier partitions exist than the known ones. */
export function halfYear(
  known: readonly { partition: Record<string, string> }[],
  {
    more,
    like,
    chosen,
    to: asked,
  }: { more: boolean; like: Record<string, string>; chosen?: string | undefined; to?: string | undefined },
): HalfYear {
  const days = daysOf(known).sort();
  const [first = "1970-01-01", last = "1970-01-01"] = [days[0], days.at(-1)];
  const newest = reachOf(last, chosen, like);
  const values = chosen?.split("/") ?? [];
  const wanted = dayOf(Object.fromEntries(Object.keys(like).map((key, index) => [key, values[index] ?? ""])));
  const early = wanted !== null && wanted <= plus(newest, -DAYS) ? plus(wanted, DAYS / 2) : null;
  const end = asked ?? early ?? newest;
  const to = end > newest ? newest : end;
  const start = plus(to, 1 - DAYS);
  const from = !more && start < first && first <= to ? first : start;
  const next = plus(to, DAYS);
  return {
    from,
    to,
    newest,
    known: !more || first <= from,
    earlier: more || first < from ? plus(from, -1) : null,
    later: to < newest ? (next > newest ? newest : next) : null,
  };
}

/** `late for join`: the schedules that have ignored a partition, because it came after the start of their job. */
export function lateFor({ late = [] }: Pick<RegisteredPartition, "late">): string | null {
  const names = [...new Set(late.map(({ schedule }) => schedule.split(".").at(-1)))];
  return names.length > 0 ? `late for ${names.join(" and ")}` : null;
}
