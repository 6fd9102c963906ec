// The partitions of a dataset as a calendar, where its keys are those of a day.

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

/** The partition of a day, in the form of others of its dataset: with or without leading zeros. */
export function partitionOfDay(day: string, like: Record<string, string>): Record<string, string> {
  const [year = "", month = "", date = ""] = day.split("-");
  const padded = Object.values(like).some((value) => /^0\d$/.test(value));
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
