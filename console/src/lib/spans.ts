// The range of the timeline, as the address has it.

export const SPANS: { minutes: number; word: string }[] = [
  { minutes: 15, word: "15 m" },
  { minutes: 60, word: "1 h" },
  { minutes: 360, word: "6 h" },
  { minutes: 1440, word: "1 d" },
  { minutes: 10_080, word: "7 d" },
];

const MINUTE = 60_000;

export interface Range {
  from: number;
  to: number;
  minutes: number;
  /** It ends a little after now, and moves on. */
  live: boolean;
}

/** The range of an address: `span` minutes up to `to`, or up to now with some room for what comes. */
export function rangeOf(span: string | undefined, to: string | undefined, now: number): Range {
  const minutes = Math.min(10_080, Math.max(1, Number(span ?? 60)));
  const given = to ? Date.parse(to) : Number.NaN;
  const end = Number.isNaN(given) ? Math.ceil(now / MINUTE) * MINUTE + minutes * MINUTE * 0.1 : given;
  return { from: end - minutes * MINUTE, to: end, minutes, live: Number.isNaN(given) };
}

/** The end of the range that is half a span earlier (-1) or later (1), as the address has it; undefined is now. */
export function moved(range: Range, way: -1 | 1, now: number): string | undefined {
  const to = range.to + way * range.minutes * MINUTE * 0.5;
  return to >= now ? undefined : new Date(to).toISOString();
}
