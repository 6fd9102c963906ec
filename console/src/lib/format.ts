// Durations, instants relative to now, names and partitions as texts for people. Nothing here reads a clock.

export const NOTHING = "–";

const UNITS = [
  { seconds: 86_400, unit: "d", smaller: 3_600, letter: "h" },
  { seconds: 3_600, unit: "h", smaller: 60, letter: "m" },
  { seconds: 60, unit: "m", smaller: 1, letter: "s" },
] as const;

/** `820 ms`, `2.1 s`, `42 s`, `3 m 20 s`, `1 h 5 m`, `2 d 4 h`: at most two units, as the command line has them. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return NOTHING;
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  for (const { seconds: size, unit, smaller, letter } of UNITS) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / smaller);
    return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${letter}` : ""}`;
  }
  return `${whole} s`;
}

/** On which side of now an instant can only be: the clock of the reader is not that of the API. */
export type Side = "past" | "next";

/** `3 m ago`, `in 5 h`, `now`: one unit. An instant on the wrong `side` of now is now. */
export function ago(at: string | null | undefined, now: number, side?: Side): string {
  const moment = millis(at);
  if (moment === null) return NOTHING;
  const apart = (now - moment) / 1000;
  const seconds = (side === "past" && apart < 0) || (side === "next" && apart > 0) ? 0 : apart;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const { span, unit } = [
    { span: 86_400, unit: "d" },
    { span: 3_600, unit: "h" },
    { span: 60, unit: "m" },
    { span: 1, unit: "s" },
  ].find((step) => size >= step.span) ?? { span: 1, unit: "s" };
  const count = Math.floor(size / span);
  return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
}

/** `14 m`, `3 h`: for how long something has lasted, in one unit. */
export function since(at: string | null | undefined, now: number): string {
  return ago(at, now)
    .replace(" ago", "")
    .replace(/^in .*/, "0 s");
}

/** Milliseconds since 1970 of an instant of the API; null for null or any other text. */
export function millis(at: string | null | undefined): number | null {
  if (!at) return null;
  const parsed = Date.parse(at);
  return Number.isNaN(parsed) ? null : parsed;
}

/** Milliseconds from one instant to the other; null unless both are known. */
export function between(start: string | null | undefined, end: string | null | undefined): number | null {
  const [first, last] = [millis(start), millis(end)];
  return first === null || last === null ? null : last - first;
}

/** `+3 m 10 s`, `on time`: how late something was. */
export function lateness(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NOTHING;
  return ms < 1000 ? "on time" : `+${duration(ms)}`;
}

const UNITS_OF_TIME = ["year", "quarter", "month", "week", "day", "hour", "minute"];

/** `2013/1/4`: the values of a partition, in the order of its keys. Some answers have the keys by the alphabet: then
 * units of time stand in their own order. */
export function partition(keys: Record<string, string> | null | undefined): string {
  const names = Object.keys(keys ?? {});
  const sorted = names.every((name, index) => index === 0 || (names[index - 1] ?? "") <= name);
  const units = UNITS_OF_TIME.filter((unit) => names.includes(unit));
  const ordered = sorted ? names.map((name) => (UNITS_OF_TIME.includes(name) ? (units.shift() ?? name) : name)) : names;
  return ordered.map((name) => keys?.[name] ?? "").join("/");
}

/** `year=2013/month=1/day=4`: a partition as the command line takes it. */
export function partitionPath(keys: Record<string, string> | null | undefined): string {
  return keys
    ? Object.entries(keys)
        .map(([key, value]) => `${key}=${value}`)
        .join("/")
    : "";
}

/** `flights.clean` of `demo.flights.clean`: a full name without its namespace, as a reader knows it. */
export function shortName(name: string): string {
  return asWritten(name.split(".").slice(1).join(".") || name);
}

/** A text with the names that the authors of definitions gave. Sluice names the schedule of a message `app.~backup`, the
 * start of a DAG `app.nightly~`, its graph `app.nightly~1f0c22ab`, and a node of it `app.nightly~1f0c22ab~join`. It names
 * notices by a digest, and the targets of messages `app.~`. People and roles are shown without their account. */
export function asWritten(text: string): string {
  return text
    .replace(/arn:[\w-]+:(?:iam|sts)::\d{12}:(?=(?:user|role|assumed-role)\/)/g, "")
    .replace(/\.~?notice-[0-9a-f]{24}/g, ".notice")
    .replace(/\.~(?![\w-])/g, ".messages")
    .replace(/([\w-])~[0-9a-f]{8}~(?=[\w-])/g, "$1/")
    .replace(/([\w-])~(?:[0-9a-f]{8})?(?![\w-])/g, "$1")
    .replace(/([\w-]\.)~(?=[\w-])/g, "$1");
}

/** Whether a schedule is one that Sluice made: a node of a DAG, or a notice. The command line leaves out the same. */
export function isInternal(schedule: string): boolean {
  const last = schedule.split(".").at(-1) ?? "";
  const ofNode = last.slice(1).includes("~") && !last.startsWith("~") && !last.endsWith("~");
  return ofNode || isNotice(schedule);
}

/** Whether a schedule is that of a notice, of which each has one of its own. */
export function isNotice(schedule: string): boolean {
  return /^~?notice-[0-9a-f]{24}$/.test(schedule.split(".").at(-1) ?? "");
}

/** The DAG that a schedule starts, or null. */
export function dagOfStart(schedule: string): string | null {
  return schedule.endsWith("~") && !isOfMessage(schedule) ? schedule.slice(0, -1) : null;
}

/** Whether a schedule is that of a message. */
export function isOfMessage(schedule: string): boolean {
  return schedule.split(".").at(-1)?.startsWith("~") ?? false;
}

/** The parts of a schedule's full name. Raises no error: what is missing is empty. */
export function nameParts(name: string): { ns: string; app: string; name: string } {
  const [ns = "", app = "", ...rest] = name.split(".");
  return { ns, app, name: rest.join(".") };
}

/** `0c6213d7`: the end of an id, which tells runs of one schedule apart; `0c6213d7-7` for an event of a large fire. */
export function shortId(id: string): string {
  const [fire = "", number] = (id.split(".").at(-1) ?? id).split("-");
  return number === undefined ? fire.slice(0, 8) : `${fire.slice(0, 8)}-${number}`;
}

/** The full name of the schedule that an id of a run or job belongs to. */
export function scheduleOf(id: string): string {
  return id.split(".").slice(0, 3).join(".");
}

/** `1 run`, `2 runs`, `at least 1 run`, `at least 2,000 runs`. */
export function count(many: number, noun: string, atLeast = false): string {
  return `${number(many, atLeast)} ${noun}${many === 1 ? "" : "s"}`;
}

/** `2,000`, `at least 2,000`. */
export function number(many: number, atLeast = false): string {
  return `${atLeast ? "at least " : ""}${many.toLocaleString("en-US")}`;
}

/** `12 %`, `0.4 %`. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return NOTHING;
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** `+12 %`, `-3 %`: a change. */
export function change(share: number | null | undefined): string {
  return share === null || share === undefined
    ? NOTHING
    : `${share >= 0 ? "+" : "−"}${Math.round(Math.abs(share) * 100)} %`;
}

/** `$0.51`; null is unknown. */
export function dollars(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return NOTHING;
  return amount !== 0 && Math.abs(amount) < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

/** The name of a person or role of an ARN. */
export function person(arn: string | null | undefined): string {
  return arn ? (arn.split(":").at(-1)?.split("/").slice(1).join("/") ?? arn) || arn : NOTHING;
}

/** A text without a namespace before its names: that of the page stands at the top of it. */
export function withoutNamespace(text: string, ns: string): string {
  return asWritten(ns ? text.replaceAll(`${ns}.`, "") : text);
}
