import { expect, test } from "vitest";
import { firstQueries } from "../../src/frame/early";

const keys = (path: string, search = {}) => firstQueries(path, search).map((query) => query.queryKey);

test("a page asks at once for what its view shows first", () => {
  expect(keys("/demo")).toEqual([["demo", "now"]]);
  expect(keys("/demo/schedules/flights/clean", { tab: "versions" })).toEqual([
    ["schedule", "demo.flights.clean"],
    ["schedule", "demo.flights.clean", "why"],
    ["schedule", "demo.flights.clean", "versions"],
  ]);
  expect(keys("/demo/runs", { state: "FAILED" })).toEqual([["demo", "runs", { state: "FAILED" }]]);
  expect(keys("/demo/runs", { q: "disk", app: "flights", by: "late" })).toEqual([
    ["demo", "runs", { app: "flights", q: "disk", late: true }],
  ]);
  expect(keys("/demo/queue", { tag: "team=a", q: "sought here" })).toEqual([["demo", "jobs", { tag: "team=a" }]]);
  expect(keys("/demo/datasets/landing%2Fx")[0]).toEqual(["dataset", "demo.landing/x"]);
});

test("an unknown address asks for nothing early", () => {
  for (const path of ["/", "/demo/nothing", "/demo/schedules/flights/clean/backfill", "/de%mo/x"])
    expect(keys(path)).toEqual([]);
});
