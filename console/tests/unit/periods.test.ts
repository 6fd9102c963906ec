import { expect, test } from "vitest";
import type { PeriodOfSchedule } from "../../src/api/types";
import { cellsOf, holeOf, inWords, type PeriodState } from "../../src/lib/periods";

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
  const days = ["2026-02-23", "2026-02-24"];
  const counts = (items: PeriodOfSchedule[]) => cellsOf(days, items, "UTC").map((cell) => cell.periods.length);
  expect(counts([period(at, "missing", { period: paris })])).toEqual([0, 1]);
  expect(counts([period(at, "missing")])).toEqual([1, 0]);
});

test("a failed or missing period of a day is not hidden by others", () => {
  const items = (["succeeded", "running", "missing", "failed"] as const).map((state, hour) =>
    period(`2026-02-23T0${hour}:00:00.000Z`, state),
  );
  const states = [1, 2, 3, 4].map((many) => cellsOf(["2026-02-23"], items.slice(0, many), "UTC")[0]?.state);
  expect(states).toEqual(["succeeded", "running", "missing", "failed"]);
  expect(inWords(items)).toBe("1 failed, 1 missing, 1 running, 1 succeeded");
  expect([inWords(items.slice(0, 1)), inWords([])]).toEqual(["succeeded", "no period"]);
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
