import { expect, test } from "vitest";
import { fromWall, full, show, toWall, zoneName } from "../../src/lib/zone";

const at = Date.parse("2026-07-01T12:30:15.250Z");

test("an instant is written in the wall time of a zone", () => {
  expect(show(at, "UTC")).toBe("2026-07-01 12:30");
  expect(show(at, "Europe/Paris", "second")).toBe("2026-07-01 14:30:15");
  expect(show(at, "Asia/Kolkata", "time")).toBe("18:00");
  expect(full(at, "Europe/Paris")).toBe("2026-07-01 14:30:15.250 UTC+2 (Europe/Paris)");
});

test("a wall time in the gap is the instant after it", () => {
  expect(fromWall("2026-03-29T02:30", "Europe/Paris")).toEqual({ instant: "2026-03-29T01:30:00Z", note: "gap" });
});

test("a wall time in the overlap is the first of both", () => {
  expect(fromWall("2026-10-25T02:30", "Europe/Paris")).toEqual({ instant: "2026-10-25T00:30:00Z", note: "overlap" });
});

test("any other wall time means one instant", () => {
  expect(fromWall("2026-07-01T14:30", "Europe/Paris")).toEqual({ instant: "2026-07-01T12:30:00Z", note: null });
  expect(fromWall("2026-07-01T14:30", "UTC")?.instant).toBe("2026-07-01T14:30:00Z");
  expect(fromWall("", "UTC")).toBeNull();
});

test("the field of a form round-trips in each zone", () => {
  for (const zone of ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]) {
    expect(Date.parse(fromWall(toWall(at, zone), zone)?.instant ?? "")).toBe(Math.floor(at / 60_000) * 60_000);
  }
});

test("the schedule's zone is UTC where there is no schedule", () => {
  expect(zoneName("schedule", null)).toBe("UTC");
  expect(zoneName("schedule", "Asia/Tokyo")).toBe("Asia/Tokyo");
  expect(zoneName("utc", "Asia/Tokyo")).toBe("UTC");
});
