import { expect, test } from "vitest";
import type { PeriodOfSchedule, PeriodsByDay } from "../../src/api/types";
import { cellsOf, holeOf, inWords, isReady, type PeriodState, periodsOf } from "../../src/lib/periods";

const period = (at: string, state: PeriodState, more: Partial<PeriodOfSchedule> = {}): PeriodOfSchedule => ({
  at,
  period: null,
  values: null,
  state,
  why: null,
  code: null,
  job_id: null,
  runs: [],
  attempts: 0,
  revision: 0,
  since: null,
  ready_at: null,
  ...more,
});

test("a period stands in the day of its own zone", () => {
  const at = "2026-02-23T23:00:00.000Z";
  const paris = { start: at, end: "2026-02-24T23:00:00.000Z", zone: "Europe/Paris", label: "2026-02-24" };
  const of = (day: string, item: PeriodOfSchedule) => periodsOf(day, [item], "UTC").length;
  expect([of("2026-02-23", period(at, "missing", { period: paris })), of("2026-02-23", period(at, "missing"))]).toEqual(
    [0, 1],
  );
});

test("a cell has the letter of its day, and the counts of one whose periods differ", () => {
  const row: PeriodsByDay = {
    schedule: "demo.web.load",
    days: "sf.mw",
    mixed: { "2026-02-24": { failed: 1, succeeded: 23 } },
    why: null,
    complete_from: "2026-02-23T00:00:00.000Z",
  };
  const days = ["2026-02-22", "2026-02-23", "2026-02-24", "2026-02-25", "2026-02-26"];
  const cells = cellsOf(days, row, "2026-02-23");
  expect(cells.map((cell) => cell.state)).toEqual([null, "succeeded", "failed", null, "missing"]);
  expect(cells.map(inWords)).toEqual(["no period", "succeeded", "1 failed, 23 succeeded", "no period", "missing"]);
});

test("a period is ready, not registered, or no single partition", () => {
  const values = { day: "2026-02-23" };
  const [bare, ready] = [undefined, "2026-02-23T01:00:00.000Z"].map((ready_at) =>
    period("2026-02-23T00:00:00.000Z", "missing", { values, ready_at: ready_at ?? null }),
  ) as [PeriodOfSchedule, PeriodOfSchedule];
  expect([isReady(ready, [ready]), isReady(bare, [bare, ready]), isReady(bare, [bare])]).toEqual([true, false, null]);
});

test("a hole names its partitions, or the span of its fires", () => {
  const fires = ["01", "03"].map((hour) => period(`2026-02-23T${hour}:00:00.000Z`, "missing"));
  expect(holeOf(fires, "missing")).toEqual({
    only: "missing",
    from: "2026-02-23T01:00:00.000Z",
    to: "2026-02-23T03:01:00.000Z",
  });
  const values = { region: "eu", day: "2026-02-23" };
  expect(holeOf([period("2026-02-23T00:00:00.000Z", "failed", { values })], "failed")).toEqual({
    only: "failed",
    partitions: ["region=eu/day=2026-02-23"],
  });
  expect(holeOf(fires, "failed")).toBeNull();
});
