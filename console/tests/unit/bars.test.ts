import { expect, test } from "vitest";
import { mergeBars, pixelOf, ticks } from "../../src/lib/bars";

const STATES = ["SUCCEEDED", "FAILED", "RUNNING"];
const span = { from: 0, to: 1_000_000, width: 1000 };
type Made = [row: number, at: number, waited: number, took: number | null, state: number, count?: number];

function bars(made: Made[], now = 2_000_000) {
  const column = (index: 0 | 1 | 2 | 4) => made.map((attempt) => attempt[index]);
  return mergeBars(
    {
      row: column(0),
      at: column(1),
      waited: column(2),
      took: made.map((attempt) => attempt[3]),
      state: column(4),
      count: made.map((attempt) => attempt[5] ?? 1),
    },
    STATES,
    span,
    now,
  );
}

test("attempts in one pixel become one bar, which counts them", () => {
  const found = bars(Array.from({ length: 500 }, (_, index): Made => [0, 10_000 + index, 0, 100, 0]));
  expect(found).toHaveLength(1);
  expect(found[0]?.count).toBe(500);
});

test("a bar counts each event of a fire for which its attempt stands", () => {
  const found = bars([
    [0, 10_000, 0, 100, 0, 797],
    [0, 10_050, 0, 100, 1],
  ]);
  expect(found.map((bar) => bar.count)).toEqual([798]);
});

test("a merged bar looks as the worst of its attempts", () => {
  const found = bars([
    [0, 10_000, 0, 100, 0],
    [0, 10_050, 0, 100, 1],
    [0, 10_100, 0, 100, 0],
  ]);
  expect(found.map((bar) => bar.look)).toEqual(["failed"]);
});

test("a failure of a moment leaves the run that begins beside it its look, and both are seen", () => {
  const found = bars([
    [0, 10_000, 0, 0, 1],
    [0, 10_050, 0, null, 2],
  ]);
  expect(found.map(({ look, count }) => [look, count])).toEqual([
    ["failed", 1],
    ["running", 1],
  ]);
  const [failed, running] = found;
  expect(running?.x).toBe((failed?.x ?? 0) + (failed?.width ?? 0));
  expect((running?.x ?? 0) + (running?.width ?? 0)).toBe(span.width);
});

test("100,000 attempts become at most two bars per pixel and row", () => {
  const many = bars(
    Array.from({ length: 100_000 }, (_, index): Made => [index % 20, (index * 9.9) | 0, 5, 40, index % 3]),
  );
  expect(many.length).toBeLessThanOrEqual(2 * 1000 * 20);
  expect(many.reduce((sum, bar) => sum + (bar.look === "waiting" ? 0 : bar.count), 0)).toBe(100_000);
});

test("long attempts stay apart, and so do rows", () => {
  const found = bars([
    [0, 100_000, 0, 50_000, 0],
    [0, 200_000, 0, 50_000, 0],
    [1, 100_000, 0, 50_000, 0],
  ]);
  expect(found).toHaveLength(3);
});

test("the order of the answer does not matter", () => {
  const made: Made[] = [
    [0, 100_000, 0, 40_000, 0],
    [0, 300_000, 5_000, 40_000, 1],
    [0, 500_000, 0, 40_000, 0],
  ];
  const places = (found: ReturnType<typeof bars>) => found.map((bar) => [bar.look, bar.x]);
  expect(places(bars([...made].reverse()))).toEqual(places(bars(made)));
});

test("a wait is a bar before the attempt", () => {
  expect(bars([[0, 100_000, 50_000, 50_000, 0]]).map((bar) => [bar.look, bar.x, bar.width])).toEqual([
    ["waiting", 100, 50],
    ["ok", 150, 50],
  ]);
});

test("what is not over reaches to now", () => {
  expect(bars([[0, 100_000, 0, null, 2]], 500_000)[0]).toMatchObject({ look: "running", x: 100, width: 400 });
});

test("what lies outside of the span is left out or cut", () => {
  expect(bars([[0, -300_000, 0, 100_000, 0]])).toEqual([]);
  expect(bars([[0, -50_000, 0, 100_000, 0]])[0]).toMatchObject({ x: 0, width: 50 });
});

test("labels of the axis stand on round instants, far apart", () => {
  const hour = { from: Date.parse("2026-11-22T13:07:00Z"), to: Date.parse("2026-11-22T14:07:00Z"), width: 900 };
  const found = ticks(hour);
  expect(found.every((tick) => tick % 600_000 === 0)).toBe(true);
  expect(pixelOf(found[1] ?? 0, hour) - pixelOf(found[0] ?? 0, hour)).toBeGreaterThanOrEqual(90);
});
