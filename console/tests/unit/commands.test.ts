import { expect, test } from "vitest";
import { bulkCommand } from "../../src/api/bulk-command";
import { command, commands, quote } from "../../src/api/commands";

test("a word that a shell would change is quoted", () => {
  expect(quote("demo.flights.clean")).toBe("demo.flights.clean");
  expect(quote("year=2013/month=1")).toBe("year=2013/month=1");
  expect(quote("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`);
  expect(quote("$HOME")).toBe("'$HOME'");
});

test("what is left out leaves no word", () => {
  expect(command("run", "a.b.c", false, null, undefined, "", 3)).toBe("sluice run a.b.c 3");
});

test("the commands of actions have the options that were chosen", () => {
  const { pause, run, backfill, reprocess, approve } = commands;
  expect(pause(["a.b.c"])).toBe("sluice pause a.b.c");
  expect(pause(["a.b.c"], { mode: "drain", timeouts: "stop" })).toBe("sluice pause a.b.c --mode drain --stop-timeouts");
  expect(run("a.b.c", { at: "2h", properties: { x: "a b" }, partition: { day: "1" } })).toBe("sluice run a.b.c -p 'x=a b' --at 2h --partition day=1");
  expect(backfill("a.b.c", { from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z", concurrency: 3, newestFirst: true, dryRun: true })).toBe(
    "sluice backfill begin a.b.c --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -c 3 --newest-first --dry-run",
  );
  expect(reprocess({ dataset: "a.b", partition: { year: "2013", day: "5" } })).toBe("sluice reprocess a.b year=2013/day=5");
  expect(reprocess({ run: "a.b.c.d.e", scope: "only" })).toBe("sluice reprocess begin --run a.b.c.d.e --only");
  expect(approve("a.b.c.d.e", "looked fine")).toBe("sluice jobs approve a.b.c.d.e --reason 'looked fine'");
});

test("an action on many is by the filter where the CLI has it", () => {
  expect(bulkCommand("pause", ["a.b.c", "a.b.d"], "tag:team=a state:enabled", { mode: "drain" }).text).toBe(
    "sluice pause -a a.b --tag team=a --state enabled --mode drain",
  );
});

test("an action on many is by names where the CLI lacks the filter", () => {
  expect(bulkCommand("resume", ["a.b.c", "a.x.d"], "state:hold", {}).text).toBe("sluice resume a.b.c a.x.d");
  expect(bulkCommand("resume", ["a.b.c"], "clean", {}).text).toBe("sluice resume a.b.c");
  expect(bulkCommand("resume", ["a.b.c"], "state:paused", {}).text).toBe("sluice resume a.b.c");
});

test("a long command is shown short and copied whole", () => {
  const names = Array.from({ length: 40 }, (_, index) => `a.b.c${index}`);
  const { text, shown } = bulkCommand("enable", names, "", {});
  expect(text.split(" ")).toHaveLength(42);
  expect(shown).toMatch(/… and 34 more names$/);
});
