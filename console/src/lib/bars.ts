// Bars of the timeline, merged so that what shares a pixel is drawn once: 100,000 separate bars freeze the picture.

export type Look = "ok" | "failed" | "running" | "cancelled" | "waiting";

export interface Columns {
  row: number[];
  at: number[];
  waited: number[];
  /** From the claim to the start: part of what is drawn before the run. */
  starting?: number[];
  took: (number | null)[];
  state: number[];
  /** How many sent events of a large fire an attempt stands for. */
  count: number[];
}

export interface Bar {
  row: number;
  /** Pixels from the left of the picture. */
  x: number;
  width: number;
  look: Look;
  /** How many attempts it stands for, and the index of the last of them. */
  count: number;
  index: number;
}

export interface Span {
  from: number;
  to: number;
  width: number;
}

const LOOKS: Record<string, Look> = {
  SUCCEEDED: "ok",
  FAILED: "failed",
  RETRYING: "failed",
  ABORTED: "cancelled",
  CANCELLED: "cancelled",
  RUNNING: "running",
  STARTING: "running",
};
// What is merged has the look that matters most.
const WEIGHT: Record<Look, number> = { failed: 4, running: 3, cancelled: 2, ok: 1, waiting: 0 };

export function lookOf(state: string): Look {
  return LOOKS[state] ?? "ok";
}

/** The pixel of an instant. */
export function pixelOf(ms: number, span: Span): number {
  return ((ms - span.from) / (span.to - span.from)) * span.width;
}

/**
 * The bars of what ran, and before each that of its wait, as seen in a span. A bar that begins in the pixel in which the
 * one before it in its row ends becomes a part of that one, if both look alike, or if both are narrower than two pixels.
 * Otherwise a failure of a moment would colour the long run beside it.
 */
export function mergeBars(columns: Columns, states: string[], span: Span, now: number): Bar[] {
  const looks = states.map(lookOf);
  const bars: Bar[] = [];
  // The last bar of each row: at even places those of attempts, at odd ones those of waits.
  const last: (Bar | undefined)[] = [];
  const add = (place: number, start: number, end: number, look: Look, index: number) => {
    const begin = Math.max(0, pixelOf(start, span));
    const stop = Math.min(span.width, pixelOf(end, span));
    if (stop < 0 || begin > span.width) return;
    const many = columns.count[index] ?? 1;
    const before = last[place];
    const near = before !== undefined && begin <= before.x + before.width + 0.5 && Math.abs(begin - before.x) < 3;
    const narrow = Math.max(1, stop - begin) < 2;
    // Beside a narrow bar, a wide one begins where that one ends: both are seen.
    const x = near && !narrow && before.width < 2 && before.look !== look ? before.x + before.width : begin;
    const width = Math.max(1, stop - x);
    if (near && (before.look === look || (narrow && before.width < 2))) {
      before.width = Math.max(before.width, x + width - before.x);
      if (WEIGHT[look] >= WEIGHT[before.look]) before.look = look;
      before.count += many;
      before.index = index;
      return;
    }
    const bar = { row: place >> 1, x, width, look, count: many, index };
    last[place] = bar;
    bars.push(bar);
  };
  for (const index of inTime(columns)) {
    const row = columns.row[index] ?? 0;
    const at = columns.at[index] ?? 0;
    const took = columns.took[index] ?? null;
    // One that has not started yet is drawn from its claim on.
    const starting = took === null ? 0 : (columns.starting?.[index] ?? 0);
    const begun = at + (columns.waited[index] ?? 0) + starting;
    if (begun > at) add(row * 2 + 1, at, begun, "waiting", index);
    add(row * 2, begun, took === null ? now : begun + took, looks[columns.state[index] ?? 0] ?? "ok", index);
  }
  return bars;
}

/** The indices of the attempts, in the order in which they began. The API has the newest first: mostly a reversal. */
function inTime({ at, waited }: Columns): Uint32Array {
  const begun = Float64Array.from(at, (instant, index) => instant + (waited[index] ?? 0));
  const order = new Uint32Array(begun.length);
  let sorted = true;
  for (let place = 0; place < order.length; place++) {
    const index = order.length - 1 - place;
    order[place] = index;
    if (place > 0 && (begun[index + 1] ?? 0) > (begun[index] ?? 0)) sorted = false;
  }
  return sorted ? order : order.sort((a, b) => (begun[a] ?? 0) - (begun[b] ?? 0));
}

/** Instants for the labels of an axis: round steps, at least 90 pixels apart. */
export function ticks(span: Span): number[] {
  const minute = 60_000;
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => minutes * minute);
  const apart = ((span.to - span.from) / span.width) * 90;
  const step = steps.find((candidate) => candidate >= apart) ?? 10_080 * minute;
  const first = Math.ceil(span.from / step) * step;
  return Array.from(
    { length: Math.max(0, Math.floor((span.to - first) / step) + 1) },
    (_, number) => first + number * step,
  );
}
