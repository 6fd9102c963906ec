// Time zones: how an instant is written, and which instant a wall time of a form means, also where clocks change.

import type { Temporal as T } from "temporal-polyfill";

declare const Temporal: typeof T;

export type ZoneChoice = "utc" | "local" | "schedule";
export const ZONE_CHOICES: readonly ZoneChoice[] = ["utc", "local", "schedule"];

export type Precision = "minute" | "second" | "millisecond" | "day" | "time" | "clock";

/** The IANA name of a choice. `schedule` is the zone of the schedule on the page, or UTC where there is none. */
export function zoneName(choice: ZoneChoice, ofSchedule?: string | null): string {
  if (choice === "local") return Intl.DateTimeFormat().resolvedOptions().timeZone;
  return choice === "schedule" && ofSchedule ? ofSchedule : "UTC";
}

/** `Paris`, `New York`, `UTC`: a zone in few letters. */
export function zoneLabel(zone: string): string {
  return (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");
}

const formats = new Map<string, Intl.DateTimeFormat>();

function parts(ms: number, zone: string): Record<string, string> {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
      timeZoneName: "shortOffset",
    });
    formats.set(zone, format);
  }
  return Object.fromEntries(format.formatToParts(ms).map((part) => [part.type, part.value]));
}

/** An instant as a wall time of a zone: `2026-11-20 12:00`. */
export function show(ms: number, zone: string, precision: Precision = "minute"): string {
  const at = parts(ms, zone);
  const day = `${at.year}-${at.month}-${at.day}`;
  const clock = `${at.hour}:${at.minute}`;
  switch (precision) {
    case "day":
      return day;
    case "time":
      return clock;
    case "clock":
      return `${clock}:${at.second}`;
    case "second":
      return `${day} ${clock}:${at.second}`;
    case "millisecond":
      return `${day} ${clock}:${at.second}.${at.fractionalSecond}`;
    default:
      return `${day} ${clock}`;
  }
}

/** The offset of a zone at an instant: `UTC`, `UTC+1`. */
export function offset(ms: number, zone: string): string {
  return (parts(ms, zone).timeZoneName ?? "UTC").replace("GMT", "UTC");
}

/** The instant with its zone, for titles: `2026-11-20 12:00:00.123 UTC+1 (Europe/Paris)`. */
export function full(ms: number, zone: string): string {
  const name = zone === "UTC" ? "UTC" : `${offset(ms, zone)} (${zone})`;
  return `${show(ms, zone, "millisecond")} ${name}`;
}

export interface Wall {
  /** RFC 3339 in UTC. */
  instant: string;
  /** `gap`: the wall time does not exist and the instant is after the change; `overlap`: it exists twice, and this is the first. */
  note: "gap" | "overlap" | null;
}

/** The instant of `2026-03-29T02:30` in a zone; null if the text is no wall time. */
export function fromWall(text: string, zone: string): Wall | null {
  try {
    const wall = Temporal.PlainDateTime.from(text);
    const earlier = wall.toZonedDateTime(zone, { disambiguation: "earlier" });
    const later = wall.toZonedDateTime(zone, { disambiguation: "later" });
    if (earlier.epochMilliseconds === later.epochMilliseconds)
      return { instant: earlier.toInstant().toString(), note: null };
    const exists = earlier.toPlainDateTime().equals(wall);
    return { instant: (exists ? earlier : later).toInstant().toString(), note: exists ? "overlap" : "gap" };
  } catch {
    return null;
  }
}

/** The wall time of an instant, as the form field `datetime-local` takes it. */
export function toWall(ms: number, zone: string): string {
  return show(ms, zone, "minute").replace(" ", "T");
}

/** The days from one to another, both included, as `2026-11-20`. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let day = Date.parse(from); day <= Date.parse(to); day += 86_400_000) {
    days.push(new Date(day).toISOString().slice(0, 10));
  }
  return days;
}
