// The picture of the timeline on a canvas. It is drawn at most once a frame, and what shares a pixel is one bar.

import type { Bar, Look, Span } from "../../lib/bars";
import { pixelOf } from "../../lib/bars";

export const ROW = 24;

export interface Colours {
  line: string;
  text: string;
  faint: string;
  now: string;
  mark: string;
  bars: Record<Look, string>;
}

/** The colours of the theme, from the style sheet. */
export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    line: of("line"),
    text: of("text"),
    faint: of("muted"),
    now: of("link"),
    mark: of("bar-text"),
    bars: {
      ok: of("bar-ok"),
      failed: of("bar-bad"),
      running: of("bar-run"),
      cancelled: of("bar-off"),
      waiting: of("wait-line"),
    },
  };
}

export interface Scene {
  width: number;
  height: number;
  /** Pixels that are scrolled away above. */
  top: number;
  rows: Map<number, Bar[]>;
  /** Row -> expected instants. */
  expected: Map<number, number[]>;
  count: number;
  span: Span;
  ticks: number[];
  now: number;
  colours: Colours;
}

export function draw(context: CanvasRenderingContext2D, scene: Scene, scale: number): void {
  const { width, height, top, colours, span } = scene;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.fillStyle = colours.line;
  for (const tick of scene.ticks) context.fillRect(Math.round(pixelOf(tick, span)), 0, 1, height);
  const first = Math.max(0, Math.floor(top / ROW));
  const last = Math.min(scene.count, Math.ceil((top + height) / ROW));
  for (let row = first; row < last; row++) {
    const y = row * ROW - top;
    context.fillStyle = colours.line;
    context.fillRect(0, y + ROW - 1, width, 1);
    drawRow(context, scene.rows.get(row) ?? [], y, colours);
    context.strokeStyle = colours.faint;
    for (const at of scene.expected.get(row) ?? []) {
      const x = Math.round(pixelOf(at, span)) + 0.5;
      context.setLineDash([2, 2]);
      context.beginPath();
      context.moveTo(x, y + 4);
      context.lineTo(x, y + ROW - 4);
      context.stroke();
    }
    context.setLineDash([]);
  }
  const now = pixelOf(scene.now, span);
  if (now >= 0 && now <= width) {
    context.fillStyle = colours.now;
    context.fillRect(Math.round(now), 0, 1.5, height);
  }
}

function drawRow(context: CanvasRenderingContext2D, bars: Bar[], y: number, colours: Colours): void {
  context.fillStyle = colours.bars.waiting;
  for (const bar of bars) if (bar.look === "waiting") context.fillRect(bar.x, y + 9, bar.width, 5);
  const ran = bars.filter((bar) => bar.look !== "waiting");
  for (const [index, bar] of ran.entries()) {
    context.fillStyle = colours.bars[bar.look];
    // A pixel between bars tells two runs apart from one long run.
    context.fillRect(bar.x, y + 5, bar.width > 3 ? bar.width - 1 : bar.width, ROW - 11);
    // Of a bar that the next one covers in part, the mark stands in the part that is seen.
    const next = ran[index + 1];
    const seen = next && next.x > bar.x ? Math.min(bar.width, next.x - bar.x) : bar.width;
    if (bar.look === "failed" && seen < 14) {
      // A notch tells a failure apart without its colour.
      context.clearRect(bar.x, y + 13, bar.width, 2);
    } else if (bar.look === "failed") {
      context.fillStyle = colours.mark;
      context.font = "11px sans-serif";
      context.fillText("✗", bar.x + seen / 2 - 4, y + 15);
    }
  }
}
