import { expect, test } from "vitest";
import { faultOf } from "../../src/api/client";
import type { Job } from "../../src/api/types";
import { differences, lineDiff } from "../../src/lib/diff";
import { fits, parseFilter, toggleTerm } from "../../src/lib/filter";
import { best } from "../../src/lib/fuzzy";
import { byHolder, useInWords, waitsFor } from "../../src/lib/held";
import { lateBy, lateFirst, missedBy } from "../../src/lib/late";
import { dayOf, halfYear, isOfOneDay, lateFor, partitionOfDay, reachOf, typical } from "../../src/lib/partitions";
import {
  causeInShort,
  inShort,
  ofPartition,
  pieces,
  startInWords,
  waitInWords,
  withBeginning,
  withInstants,
  withShortIds,
} from "../../src/lib/sentence";
import { moved, rangeOf } from "../../src/lib/spans";
import { lookOfState } from "../../src/lib/states";
import { lookOfDay, monthsAbove, weeks } from "../../src/lib/weeks";

test("the nouns of a sentence are links, the longest first", () => {
  const found = pieces("waits for demo.a.clean_flights and demo.a.clean at 2026-11-22T10:00:00.000Z", [
    { text: "demo.a.clean", kind: "schedule", name: "demo.a.clean" },
    { text: "demo.a.clean_flights", kind: "run", name: "demo.a.clean_flights" },
  ]);
  expect(found.map((piece) => [piece.kind, piece.text])).toEqual([
    ["text", "waits for "],
    ["link", "demo.a.clean_flights"],
    ["text", " and "],
    ["link", "demo.a.clean"],
    ["text", " at "],
    ["instant", "2026-11-22T10:00:00.000Z"],
  ]);
});

test("a noun within a longer name is no link", () => {
  const found = pieces("demo.a of demo.a-b, demo.a.b, x.demo.a and demo.a.", [
    { text: "demo.a", kind: "dataset", name: "demo.a" },
  ]);
  expect(found.map((piece) => [piece.kind, piece.text])).toEqual([
    ["link", "demo.a"],
    ["text", " of demo.a-b, demo.a.b, x.demo.a and "],
    ["link", "demo.a"],
    ["text", "."],
  ]);
});

test("a dataset opens at the partition that its sentence is about", () => {
  const nouns = ofPartition([{ text: "demo.weather", kind: "dataset", name: "demo.weather" }], "2013/2/9");
  expect(pieces("1 partition of demo.weather", nouns)[1]).toMatchObject({
    to: "/demo/datasets/weather",
    search: { at: "2013/2/9" },
  });
});

test("a command of a sentence stays as one types it", () => {
  const id = "demo.a.daily~.m3k2j9x1.01";
  const command = `sluice dags rerun demo.a.daily ${id} --from load`;
  const nouns = [{ text: id, kind: "run", name: id }];
  const found = pieces(`run ${id} failed: disk full (run it again: ${command}); sluice is idle`, nouns);
  expect(found.map((piece) => piece.kind)).toEqual(["text", "link", "text", "command", "text"]);
  expect(found[3]?.text).toBe(command);
});

test("what a job waited for follows the word 'waited'", () => {
  expect(waitInWords("waits for a slot of pool a.b: 1 of 1 in use")).toBe(" for a slot of pool a.b: 1 of 1 in use");
  expect(waitInWords("approved by a lead, else wait: waits for approval")).toBe(" for approval by a lead");
  expect(waitInWords("the schedule has been paused (hold)")).toBe(": the schedule has been paused (hold)");
});

test("who has to approve stands first in the reason of an approval", () => {
  expect(inShort("approved by a lead, else wait: waits for approval")).toBe("waits for approval by a lead");
  expect(inShort("waits for 1 partition of demo.weather")).toBe("waits for 1 partition of demo.weather");
});

test("a sentence with markup stays one text", () => {
  expect(pieces("<img src=x onerror=alert(1)>")).toEqual([{ kind: "text", text: "<img src=x onerror=alert(1)>" }]);
});

const row = {
  name: "demo.flights.clean",
  app: "flights",
  state: "hold",
  workflow: "demo.flights.clean_flights",
  tags: { team: "a" },
};

test("a filter needs one value of each key, and every word", () => {
  const fit = (query: string) => fits(row, parseFilter(query));
  expect(fit("")).toBe(true);
  expect(fit("state:enabled state:hold clean")).toBe(true);
  expect(fit("state:paused tag:team flights")).toBe(true);
  expect(fit("tag:team=b")).toBe(false);
  expect(fit("clean nothing")).toBe(false);
  expect(toggleTerm("a state:hold", "state:hold")).toBe("a");
});

test("the palette puts a whole word before scattered letters", () => {
  expect(best(["demo.flights.clean", "demo.clear.lean", "demo.x.cancel-learn"], (text) => text, "clean", 3)[0]).toBe(
    "demo.flights.clean",
  );
  expect(best(["abc"], (text) => text, "xyz", 3)).toEqual([]);
});

test("changed paths of a definition, with what is new", () => {
  expect(differences({ a: 1, b: { c: [1, 2] } }, { a: 1, b: { c: [1, 3] }, d: null })).toEqual([
    { path: "b.c[1]", before: 2, after: 3 },
    { path: "d", before: undefined, after: null },
  ]);
  expect(lineDiff("a\nb\nc", "a\nx\nc").map((line) => line.mark + line.text)).toEqual([" a", "-b", "+x", " c"]);
});

type Kind = Job["waits_for"][number]["kind"];

/** A job that waits for these things: its kind, and what it is in words. */
const job = (waits: [Kind, string][], given: Partial<Job> = {}) =>
  ({
    reason: "",
    state: "PENDING_CONSTRAINTS",
    created_at: "2026-11-22T10:00:00Z",
    waits_for: waits.map(([kind, of]) => ({ kind, name: of, of, changes_at: null })),
    queue: null,
    ...given,
  }) as Job;

test("the queue is by what would let jobs go", () => {
  const groups = byHolder([
    job([["data", "schedule demo.a.b"]]),
    job([["data", "schedule demo.a.c"]]),
    job([["approval", "approved by a lead"]], { reason: "on hold" }),
    job([["limit", "pool:demo.small"]], {
      queue: { of: "pool demo.small", position: 2, waiting: 2, more_urgent: 0, since: "2026-03-02T12:00:00.000Z" },
    }),
    job([["limit", "pool:demo.small"]], {
      queue: { of: "pool demo.small", position: 1, waiting: 2, more_urgent: 0, since: "2026-03-02T12:00:00.000Z" },
    }),
    job([["clock", "its instant"]], { reason: "approved" }),
    job([
      ["window", "between 22:00 and 06:00"],
      ["approval", "approved by a lead"],
    ]),
    job([["window", "not on a holiday"]]),
    job([["grant", "a grant of lake"]]),
    job([["pause", "schedule demo.a.b"]], { reason: "waits for a grant of lake" }),
  ]);
  expect(groups.map((group) => [group.kind, group.title, group.jobs.length])).toEqual([
    ["limit", "pool:demo.small", 2],
    ["approval", "approval", 1],
    ["data", "data and events", 2],
    ["window", "between 22:00 and 06:00", 1],
    ["window", "not on a holiday", 1],
    ["clock", "a clock", 1],
    ["pause", "a paused schedule", 1],
    ["grant", "a grant of lake", 1],
  ]);
  expect(groups[0]?.jobs.map((waiting) => waiting.queue?.position)).toEqual([1, 2]);
});

test("a job may wait for an approval among others", () => {
  const both = job([
    ["window", "between 22:00 and 06:00"],
    ["approval", "approved by a lead"],
  ]);
  expect(waitsFor(both, "approval")).toBe(true);
  expect(waitsFor(both, "pause")).toBe(false);
});

test("the calendar has whole weeks from Monday on", () => {
  const found = weeks("2026-11-18", "2026-11-24", [{ day: "2026-11-20", counts: { FAILED: 1, SUCCEEDED: 5 } }]);
  expect(found.map((week) => week.map((day) => day?.day.slice(8) ?? "-").join(" "))).toEqual([
    "- - 18 19 20 21 22",
    "23 24 - - - - -",
  ]);
  expect(monthsAbove(weeks("2026-01-29", "2026-02-10", []))).toEqual(["", "2026-02", ""]);
  expect(monthsAbove(weeks("2013-01-01", "2013-01-20", []))).toEqual(["2013-01", "", ""]);
  expect(lookOfDay(found[0]?.[4]?.counts ?? {})).toBe("some");
  expect(lookOfDay({})).toBe("none");
  expect(lookOfDay({ SKIPPED: 2 })).toBe("never");
});

test("the calendar reaches to a chosen day that is not there", () => {
  const like = { year: "2013", month: "2", day: "8" };
  expect(reachOf("2013-02-08", "2013/2/9", like)).toBe("2013-02-09");
  expect(reachOf("2013-02-08", "2013/2/3", like)).toBe("2013-02-08");
  expect(reachOf("2013-02-08", "2026/2/9", like)).toBe("2013-02-08");
  expect(reachOf("2013-02-08", undefined, like)).toBe("2013-02-08");
});

test("a step of a re-processing looks like a run in its state", () => {
  for (const state of ["waiting", "running", "succeeded", "failed", "skipped", "cancelled"]) {
    expect(lookOfState(state)).toEqual(lookOfState(state.toUpperCase()));
    expect(lookOfState(state).glyph).not.toBe("·");
  }
});

test("late runs come the worst first, and those on time not at all", () => {
  const runs = [{ late_by_ms: 400 }, { late_by_ms: 2000 }, { late_by_ms: null }, { late_by_ms: 9000 }, {}];
  expect(lateFirst(runs, 0)).toEqual([{ late_by_ms: 9000 }, { late_by_ms: 2000 }]);
});

test("a run that goes on is late once its deadline is over", () => {
  const run = { late_by_ms: null, end_by: "2026-11-22T10:01:00Z", ended_at: null };
  const at = (text: string) => lateFirst([run], Date.parse(text)).length;
  expect([at("2026-11-22T10:00:59Z"), at("2026-11-22T10:01:05Z")]).toEqual([0, 1]);
});

test("a deadline that is missed is told from a late instant", () => {
  const run = {
    start_by: "2026-11-22T10:00:05Z",
    start_requested_at: "2026-11-22T10:00:25Z",
    end_by: "2026-11-22T10:01:00Z",
    ended_at: "2026-11-22T10:00:40Z",
  };
  expect(missedBy(run)).toBe(20_000);
  const living = { late_by_ms: 1000, end_by: "2026-11-22T10:00:00Z", ended_at: null };
  expect(lateBy(living, Date.parse("2026-11-22T10:01:00Z")), "it goes on after its deadline").toBe(60_000);
  expect(lateBy(living, Date.parse("2026-11-22T09:59:00Z"))).toBe(1000);
  expect(lateBy({ ...living, late_by_ms: null, ended_at: "2026-11-22T10:00:05Z" }, Date.now())).toBeNull();
  expect(missedBy({ ...run, start_requested_at: "2026-11-22T10:00:01Z" })).toBe(0);
});

test("each state of a DAG's node has a shape", () => {
  const states = "PENDING WAITING STARTING RUNNING RETRYING SUCCEEDED FAILED CANCELLED ABORTED BLOCKED SKIPPED";
  for (const state of states.split(" ")) expect(lookOfState(state).glyph).not.toBe("·");
});

test("a limit of starts has nothing in use", () => {
  expect(useInWords({ in_use: 2, maximum: 4, unit: "slots" })).toBe("2 of 4 slots in use");
  expect(useInWords({ in_use: 2, maximum: null, unit: "runs" })).toBe("2 runs in use");
  expect(useInWords({ in_use: null, maximum: null, unit: "starts" })).toBe("");
});

test("a day of a dataset keeps the form of its keys", () => {
  expect(dayOf({ year: "2013", month: "1", day: "4" })).toBe("2013-01-04");
  expect(dayOf({ region: "eu" })).toBeNull();
  expect(partitionOfDay("2013-01-05", { year: "2013", month: "1", day: "4" })).toEqual({
    year: "2013",
    month: "1",
    day: "5",
  });
  expect(partitionOfDay("2013-01-05", { year: "2013", month: "01", day: "04" })).toEqual({
    year: "2013",
    month: "01",
    day: "05",
  });
  expect(partitionOfDay("2013-01-05", { region: "eu", day: "2013-01-04" })).toEqual({
    region: "eu",
    day: "2013-01-05",
  });
});

test("a missing day has leading zeros if any partition has them", () => {
  const december = { year: "2013", month: "12", day: "31" };
  const march = { year: "2013", month: "03", day: "15" };
  const like = typical([{ partition: december }, { partition: march }]);
  expect(partitionOfDay("2013-09-05", like)).toEqual({ year: "2013", month: "09", day: "05" });
  expect(typical([{ partition: december }])).toEqual(december);
  expect(typical([])).toEqual({});
});

test("a range of the timeline moves by half, and stops at now", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  const range = rangeOf("60", "2026-11-22T10:00:00Z", now);
  expect(range.to - range.from).toBe(3_600_000);
  expect(moved(range, -1, now)).toBe("2026-11-22T09:30:00.000Z");
  expect(moved(rangeOf("60", "2026-11-22T11:45:00Z", now), 1, now)).toBeUndefined();
  expect(rangeOf("nonsense", "nonsense", now).live).toBe(true);
});

test("every kind of refusal becomes a message", () => {
  expect(
    faultOf(400, '{"error":{"code":"invalid","message":"expected a day","field":"day","hint":"x"}}'),
  ).toMatchObject({ code: "invalid", field: "day" });
  expect(faultOf(401, '{"code":"token","message":"old","hint":"again"}').hint).toBe("again");
  expect(faultOf(502, "<html>bad gateway</html>").message).toBe("the API answered with HTTP 502");
  expect(faultOf(403, '{"message":"Forbidden"}')).toMatchObject({ code: "http_403", message: "Forbidden" });
});

test("half a year of days is shown, and the way to the half-years beside it", () => {
  const like = { year: "2013", month: "1", day: "1" };
  const days = (from: string, many: number) =>
    Array.from({ length: many }, (_, index) => ({
      partition: partitionOfDay(new Date(Date.parse(from) + index * 86_400_000).toISOString().slice(0, 10), like),
    }));
  const few = days("2013-12-01", 31);
  expect(halfYear(few, { more: false, like })).toEqual({
    from: "2013-12-01",
    to: "2013-12-31",
    newest: "2013-12-31",
    known: true,
    earlier: null,
    later: null,
  });
  const year = days("2013-01-01", 365);
  const last = halfYear(year, { more: false, like });
  expect(last).toMatchObject({ from: "2013-07-03", to: "2013-12-31", known: true, earlier: "2013-07-02", later: null });
  const before = halfYear(year, { more: false, like, to: last.earlier ?? "" });
  expect(before).toMatchObject({ from: "2013-01-02", to: "2013-07-02", earlier: "2013-01-01", later: "2013-12-31" });
  expect(halfYear(few, { more: true, like }), "earlier ones must be read").toMatchObject({
    from: "2013-07-03",
    known: false,
    earlier: "2013-07-02",
  });
  expect(halfYear(year, { more: false, like, chosen: "2013/1/4" }), "a chosen day is on screen").toMatchObject({
    from: "2013-01-01",
    to: "2013-04-05",
  });
});

test("only what has one partition a day is a calendar", () => {
  expect(isOfOneDay({ year: "2013", month: "1", day: "4" })).toBe(true);
  expect(isOfOneDay({ day: "2013-01-04" })).toBe(true);
  expect(isOfOneDay({ year: "2013", month: "1", day: "4", hour: "7" })).toBe(false);
  expect(isOfOneDay({ region: "eu" })).toBe(false);
});

test("a partition that schedules have ignored names each of them once", () => {
  const late = (schedule: string) => ({ schedule, reason: "is late", at: "2026-03-02T12:00:00Z" });
  expect(lateFor({ late: ["demo.flights.week", "demo.flights.week", "demo.flights.day"].map(late) })).toBe(
    "late for week and day",
  );
  expect([lateFor({}), lateFor({ late: [] })]).toEqual([null, null]);
});

test("what started a run is told after the word started", () => {
  expect(startInWords("due")).toBe("because it was due");
  expect(startInWords("trigger met: 1 partition of a.b came")).toBe("because 1 partition of a.b came");
  expect(startInWords("element 7 of its node, which has 12 elements")).toBe(
    "for element 7 of its node, which has 12 elements",
  );
  expect(startInWords("backfill d8a3eb678910e85e")).toBe("by backfill d8a3eb678910e85e");
  expect(causeInShort("trigger met: demo.a.b reached COMPLETED")).toBe("demo.a.b reached COMPLETED");
});

test("ids of runs are short in a sentence, those of events are whole", () => {
  expect(withShortIds("run a.b.mwz19wji.22f7ed3f514a94d965cf is RUNNING; run a.c.mwz19wji.99f7ed3f514a94d965cf.")).toBe(
    "run a.b 22f7ed3f is RUNNING; run a.c 99f7ed3f.",
  );
  expect(withShortIds("a.b.mwz19wji.22f7ed3f514a94d965cf-7")).toBe("a.b.mwz19wji.22f7ed3f514a94d965cf-7");
});

test("the first node of a DAG waits for the begin of its run", () => {
  const reason = "trigger met: demo.a.nightly reached COMPLETED at 2026-11-28T15:15:02.718Z";
  expect(withBeginning(reason, "demo.a.nightly")).toBe("trigger met: the run began at 2026-11-28T15:15:02.718Z");
  expect(withBeginning("demo.a.nightly2 reached COMPLETED at x", "demo.a.nightly")).toBe(
    "demo.a.nightly2 reached COMPLETED at x",
  );
  expect(withInstants("fire of 2026-11-28T00:00:00.000Z", (at) => String(at))).toBe("fire of 1795824000000");
});
