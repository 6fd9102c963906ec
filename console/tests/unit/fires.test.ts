import { expect, test } from "vitest";
import { countsOf, events, fireOf, goesOn, isBundle, knownOf, linesOf } from "../../src/lib/fires";
import { shortId } from "../../src/lib/format";
import { ofCollection, paths } from "../../src/lib/paths";

const FIRE = "demo.flights.notify-all.mf3k0p2q.0a1b2c3d4e5f60718293";
const OTHER = "demo.flights.clean-00008.mf3k0p2q.6562d4990586c37d8acd";

test("an id names the fire of an event, or that it has none", () => {
  expect(fireOf(`${FIRE}-7`)).toBe(FIRE);
  expect(fireOf(`${FIRE}-rr_5`)).toBe(FIRE);
  expect(fireOf(FIRE)).toBeNull();
  expect(fireOf(OTHER)).toBeNull();
  expect([`${FIRE}-rr_5`, `${FIRE}-7`, FIRE, OTHER].map(isBundle)).toEqual([true, false, false, false]);
});

test("events that share a row lead to their fire, and one event to its own page", () => {
  expect(paths.run(`${FIRE}-0_5`)).toBe(`/demo/fires/${FIRE}`);
  expect(paths.job(`${FIRE}-0_5`)).toBe(`/demo/fires/${FIRE}`);
  expect(paths.run(`${FIRE}-7`)).toBe(`/demo/runs/${FIRE}-7`);
  expect(paths.job(OTHER)).toBe(`/demo/jobs/${OTHER}`);
  expect(ofCollection("fires", FIRE).to).toBe(`/demo/fires/${FIRE}`);
});

test("the short ids of two events of a fire differ", () => {
  expect([`${FIRE}-7`, `${FIRE}-rr`, FIRE].map(shortId)).toEqual(["0a1b2c3d-7", "0a1b2c3d-rr", "0a1b2c3d"]);
});

test("the rows of a fire are one line, where the first of them is", () => {
  const rows = [
    { id: 1, fire: null, count: 1 },
    { id: 2, fire: "a", count: 797 },
    { id: 3, fire: null, count: 1 },
    { id: 4, fire: "b", count: 5 },
    { id: 5, fire: "a", count: 1 },
  ];
  expect(linesOf(rows).map((line) => (line.fire === null ? line.row.id : line.rows.map((row) => row.id)))).toEqual([
    1,
    [2, 5],
    3,
    [4],
  ]);
  expect(events(rows)).toBe(805);
});

test("a list counts the last attempt of each event", () => {
  const of = (run_id: string, state: string, count = 1) => ({ run_id, state, count, fire: FIRE });
  const known = knownOf([
    of(`${FIRE}-0_5`, "SUCCEEDED", 797),
    of(`${FIRE}-3`, "SUCCEEDED"),
    of(`${FIRE}-3`, "FAILED"),
    of(`${FIRE}-4`, "FAILED"),
    of(`${FIRE}-5`, "RETRYING"),
    of(`${FIRE}-6`, "RUNNING"),
    of(`${FIRE}-7`, "CANCELLED"),
  ]);
  expect(known.map((count) => [count.state, count.many])).toEqual([
    ["SENT", 798],
    ["FAILED", 2],
    ["RETRYING", 1],
    ["WAITING", 1],
  ]);
});

test("states without an event are left out, and the others are in one order", () => {
  const fire = { sent: 0, failed: 3, waiting: 200, retrying: 0, dropped: 1, unknown: 0 };
  expect(countsOf(fire).map((count) => `${count.many} ${count.word}`)).toEqual([
    "3 failed",
    "200 waiting",
    "1 dropped",
  ]);
});

test("the numbers of a fire change while its events wait", () => {
  expect(goesOn(undefined)).toBe(true);
  expect((["WAITING", "SENDING", "SENT", "FAILED", "DROPPED"] as const).map((state) => goesOn({ state }))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});
