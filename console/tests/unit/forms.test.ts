import { expect, test } from "vitest";
import { hasText } from "../../src/lib/filter";
import { datasetOf, exampleOf, pathOf } from "../../src/lib/layout";

test("a filter needs each of its words, whatever the case", () => {
  expect(hasText("Out MEMORY", "exit code 137: out of memory")).toBe(true);
  expect(hasText("out disk", "exit code 137: out of memory")).toBe(false);
  expect(hasText(undefined, null)).toBe(true);
});

test("the form of a backfill has the keys of the schedule's own dataset", () => {
  const inner = { type: "partition", dataset: "demo.orders" };
  expect(datasetOf({ type: "quiet", trigger: inner })).toBe("demo.orders");
  expect(datasetOf({ type: "all", triggers: [{ type: "program_status" }, inner] })).toBe("demo.orders");
  expect(datasetOf({ type: "time", expression: "0 5 * * *" })).toBeNull();
  expect(exampleOf({ keys: ["date", "region"], newest: null })).toBe("date=2026-02-27/region=1");
  const newest = { partition: { region: "eu", date: "2026-11-20" }, at: "2026-11-20T05:00:00Z" };
  expect(exampleOf({ keys: ["region", "date"], newest })).toBe("region=eu/date=2026-11-20");
});

test("values without the names of keys get them, in the order of the dataset", () => {
  expect(pathOf("eu/2026-11-20", ["region", "date"])).toBe("region=eu/date=2026-11-20");
  expect(pathOf(" eu ", ["region", "date"])).toBe("region=eu");
  expect(pathOf("region=eu", ["region", "date"])).toBe("region=eu");
  expect(pathOf("eu/2026/11", ["region", "date"])).toBe("eu/2026/11");
  expect(pathOf("", ["region"])).toBe("");
});
