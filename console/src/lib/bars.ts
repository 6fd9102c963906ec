// Bars of the timeline, merged so that what shares a pixel is drawn once: 100,000 separate bars freeze the picture.

export type Look = "ok" | "failed" | "running" | "cancelled" | "waiting";

export interface Columns {
  row: number[];
  at: number[];
  waited: number[];
  took: (number | null)[];
  state: number[];
}

export interface Bar {
  row: number;
  /** Pixels from the left of the picture. */
  x: number;
  width: number;
  look: Look;
  /** How many bars it stands for, and the index of the last of them. */
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
 * one before it in its row ends becomes a part of that one, if one of both is narrower than two pixels.
 */
export function mergeBars(columns: Columns, states: string[], span: Span, now: number): Bar[] {
  const order = [...columns.row.keys()].sort(
    (a, b) => (columns.row[a] ?? 0) - (columns.row[b] ?? 0) || (columns.at[a] ?? 0) - (columns.at[b] ?? 0),
  );
  const bars: Bar[] = [];
  const last = new Map<string, Bar>();
  const add = (row: number, start: number, end: number, look: Look, index: number) => {
    const x = Math.max(0, pixelOf(start, span));
    const stop = Math.min(span.width, pixelOf(end, span));
    if (stop < 0 || x > span.width) return;
    const width = Math.max(1, stop - x);
    const layer = `${row}${look === "waiting"}`;
    const before = last.get(layer);
    if (before && x <= before.x + before.width + 0.5 && (width < 2 || before.width < 2 || before.look === look) && before.count > 0 && x - before.x < 3) {
      before.width = Math.max(before.width, x + width - before.x);
      if (WEIGHT[look] >= WEIGHT[before.look]) before.look = look;
      before.count += 1;
      before.index = index;
      return;
    }
    const bar = { row, x, width, look, count: 1, index };
    last.set(layer, bar);
    bars.push(bar);
  };
  for (const index of order) {
    const row = columns.row[index] ?? 0;
    const at = columns.at[index] ?? 0;
    const begun = at + (columns.waited[index] ?? 0);
    const took = columns.took[index];
    if (begun > at) add(row, at, begun, "waiting", index);
    const state = states[columns.state[index] ?? 0] ?? "";
    add(row, begun, took === null || took === undefined ? now : begun + took, lookOf(state), index);
  }
  return bars;
}

/** Instants for the labels of an axis: round steps, at least 90 pixels apart. */
export function ticks(span: Span): number[] {
  const minute = 60_000;
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => minutes * minute);
  const apart = ((span.to - span.from) / span.width) * 90;
  const step = steps.find((candidate) => candidate >= apart) ?? 10_080 * minute;
  const first = Math.ceil(span.from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((span.to - first) / step) + 1) }, (_, number) => first + number * step);
}
