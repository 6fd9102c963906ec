import { expect, test } from "vitest";
import {
  ago,
  asWritten,
  between,
  count,
  dollars,
  duration,
  isInternal,
  isOfMessage,
  lateness,
  nameParts,
  number,
  partition,
  partitionPath,
  percent,
  person,
  shortName,
} from "../../src/lib/format";

test.each([
  [820, "820 ms"],
  [999.6, "1.0 s"],
  [2_100, "2.1 s"],
  [42_000, "42 s"],
  [200_000, "3 m 20 s"],
  [120_000, "2 m"],
  [3_900_000, "1 h 5 m"],
  [187_200_000, "2 d 4 h"],
  [-5, "0 ms"],
  [null, "–"],
])("a duration of %s ms is %s, as in the CLI", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test("an age has one unit and a direction", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  expect(ago("2026-11-22T11:56:20Z", now)).toBe("3 m ago");
  expect(ago("2026-11-22T17:00:00Z", now)).toBe("in 5 h");
  expect(ago("2026-11-22T12:00:00.400Z", now)).toBe("now");
  expect(ago("no instant", now)).toBe("–");
  expect(ago("2026-11-22T12:01:00Z", now, "past")).toBe("now");
  expect(ago("2026-11-22T11:59:57Z", now, "next")).toBe("now");
  expect(ago("2026-11-22T11:59:57Z", now, "past")).toBe("3 s ago");
});

test("a partition is its values, its path has the keys", () => {
  const keys = { year: "2013", month: "1", day: "4" };
  expect(partition(keys)).toBe("2013/1/4");
  expect(partitionPath(keys)).toBe("year=2013/month=1/day=4");
  expect(partition({ day: "4", month: "1", year: "2013" })).toBe("2013/1/4");
  expect(partition({ airport: "JFK", day: "4", month: "1", year: "2013" })).toBe("JFK/2013/1/4");
  expect(partition({ region: "eu", day: "4" })).toBe("eu/4");
  expect(partition(null)).toBe("");
});

test("names lose their namespace, and come apart", () => {
  expect(shortName("demo.flights.clean")).toBe("flights.clean");
  expect(shortName("demo")).toBe("demo");
  expect(nameParts("demo.flights.daily.~x")).toEqual({ ns: "demo", app: "flights", name: "daily.~x" });
});

test("names that Sluice makes are shown as their authors know them", () => {
  expect(shortName("demo.flights.nightly~1f0c22ab~join")).toBe("flights.nightly/join");
  expect(shortName("demo.flights.nightly~")).toBe("flights.nightly");
  expect(shortName("demo.flights.~backup")).toBe("flights.backup");
  expect(asWritten("workflow a.b.nightly~1f0c22ab reached STARTED")).toBe("workflow a.b.nightly reached STARTED");
  expect(asWritten("demo.shop.~notice-0123456789abcdef01234567")).toBe("demo.shop.notice");
  expect(asWritten("shop.~ had 3 runs, shop.~beat one")).toBe("shop.messages had 3 runs, shop.beat one");
  expect(asWritten("approved by arn:aws:iam::000000000000:user/ada")).toBe("approved by user/ada");
  expect(asWritten("wrote ~/out and C:/PROGRA~1, about ~5 rows")).toBe("wrote ~/out and C:/PROGRA~1, about ~5 rows");
});

test("nodes of DAGs and notices are internal, as in the CLI", () => {
  expect(isInternal("demo.flights.nightly~1f0c22ab~join")).toBe(true);
  expect(isInternal("demo.flights.~notice-0123456789abcdef01234567")).toBe(true);
  expect(isInternal("demo.flights.nightly~")).toBe(false);
  expect(isInternal("demo.flights.~backup")).toBe(false);
  expect(isOfMessage("demo.flights.~backup")).toBe(true);
  expect(isOfMessage("demo.flights.nightly~")).toBe(false);
});

test("a bounded count says that it is one", () => {
  expect(number(2000, true)).toBe("at least 2,000");
  expect(count(1, "run")).toBe("1 run");
  expect(count(1, "run", true)).toBe("at least 1 run");
});

test("lateness has a sign, unless it is less than a second", () => {
  expect(lateness(190_000)).toBe("+3 m 10 s");
  expect(lateness(999)).toBe("on time");
  expect(lateness(null)).toBe("–");
});

test("what is unknown stays unknown", () => {
  expect(between("2026-01-01T00:00:00Z", null)).toBeNull();
  expect(dollars(null)).toBe("–");
  expect(percent(undefined)).toBe("–");
});

test("an ARN is shown as the person in it", () => {
  expect(person("arn:aws:iam::123456789012:user/ada")).toBe("ada");
  expect(person("arn:aws:sts::1:assumed-role/lead/ada")).toBe("lead/ada");
});
