import { readFileSync } from "node:fs";
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

test("an occurrence of the start of a DAG is skipped by the name of the DAG", () => {
  expect(commands.skip("a.b.c~", "2026-11-22T05:00:00Z")).toBe("sluice dags skip a.b.c 2026-11-22T05:00:00Z");
  expect(commands.unskip("a.b.c~", "2026-11-22T05:00:00Z")).toBe("sluice dags unskip a.b.c 2026-11-22T05:00:00Z");
});

test("the commands of actions have the options that were chosen", () => {
  const { pause, run, backfill, reprocess, approve } = commands;
  expect(pause(["a.b.c"])).toBe("sluice pause a.b.c");
  expect(pause(["a.b.c"], { mode: "drain", timeouts: "stop" })).toBe("sluice pause a.b.c --mode drain --stop-timeouts");
  expect(run("a.b.c", { at: "2h", properties: { x: "a b" }, partition: { day: "1" } })).toBe(
    "sluice run a.b.c -p 'x=a b' --at 2h --partition day=1",
  );
  expect(
    backfill("a.b.c", {
      from: "2026-01-01T00:00:00Z",
      to: "2026-02-01T00:00:00Z",
      concurrency: 3,
      newestFirst: true,
      dryRun: true,
    }),
  ).toBe(
    "sluice backfill begin a.b.c --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -c 3 --newest-first --dry-run",
  );
  expect(reprocess({ dataset: "a.b", partition: { year: "2013", day: "5" } })).toBe(
    "sluice reprocess a.b year=2013/day=5",
  );
  expect(reprocess({ schedule: "a.b.c", from: "2026-11-22T05:00:00Z", to: "2026-11-23T05:00:00Z", dryRun: true })).toBe(
    "sluice reprocess begin --schedule a.b.c --from 2026-11-22T05:00:00Z --to 2026-11-23T05:00:00Z --dry-run",
  );
  expect(commands.jobs("a")).toBe("sluice jobs -n a");
  expect(commands.jobs("a", undefined, { app: "b", tag: "team=a", q: "out of", late: true })).toBe(
    "sluice jobs -n a -a b --tag team=a --text 'out of' --late",
  );
  expect(commands.listRuns("a", { workflow: "a.b.c", target: "sqs", state: "FAILED" })).toBe(
    "sluice runs list -n a --workflow a.b.c --target sqs --state FAILED",
  );
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

const [NS, NAME, ID] = ["demo", "demo.flights.clean", "demo.flights.clean.mwpf8i2l.6562d4990586c37d8acd"];
const AT = "2026-11-22T05:00:00Z";

/** Each command with all its options. The test of the command line reads the same list, and parses each of them. */
const EVERY: Record<keyof typeof commands, string> = {
  describe: commands.describe("schedule", NAME),
  why: commands.why("job", ID),
  whyDag: commands.whyDag(NAME),
  enable: commands.enable(NAME),
  disable: commands.disable(NAME),
  pause: commands.pause([NAME], { mode: "drain", timeouts: "stop" }),
  resume: commands.resume(NAME),
  stop: commands.stop("demo.flights", "table is repaired", "team=a"),
  start: commands.start(NS, "team=a"),
  run: commands.run(NAME, {
    at: "2h30m",
    properties: { threshold: "0.7 or so" },
    partition: { year: "2013", day: "4" },
  }),
  skip: commands.skip(NAME, AT),
  unskip: commands.unskip(NAME, AT),
  preview: commands.preview(NAME),
  versions: commands.versions(NAME),
  cancelJob: commands.cancelJob(ID),
  approve: commands.approve(ID, "looked fine"),
  refuse: commands.refuse(ID, "no"),
  answerAll: commands.answerAll("refuse", NAME, "no"),
  showRun: commands.showRun(ID),
  showFire: commands.showFire(ID, "FAILED"),
  cancelRun: commands.cancelRun(ID),
  pingRun: commands.pingRun(ID),
  rerunRun: commands.rerunRun(ID),
  logs: commands.logs(ID, 2),
  listRuns: commands.listRuns(NS, { state: "FAILED", day: "2026-11-20" }),
  redrive: commands.redrive(ID),
  redriveAll: commands.redriveAll(NS, NAME),
  dropLetter: commands.dropLetter(ID),
  runDag: commands.runDag(NAME, "2h"),
  enableDag: commands.enableDag(NAME),
  disableDag: commands.disableDag(NAME),
  pauseDag: commands.pauseDag(NAME, { mode: "drain", timeouts: "stop" }),
  resumeDag: commands.resumeDag(NAME),
  cancelDag: commands.cancelDag(NAME, ID),
  rerunDag: commands.rerunDag(NAME, ID, { from: "join" }),
  elements: commands.elements(NAME, ID, "join"),
  backfill: commands.backfill(NAME, {
    from: AT,
    to: AT,
    dataset: "demo.flights",
    only: "missing",
    concurrency: 3,
    newestFirst: true,
    dryRun: true,
  }),
  cancelBackfill: commands.cancelBackfill(NAME, "0a1b2c3d4e5f6071", true),
  reprocess: commands.reprocess({
    dataset: "demo.flights",
    partition: { year: "2013", day: "4" },
    scope: "only",
    concurrency: 2,
    dryRun: true,
  }),
  cancelReprocess: commands.cancelReprocess(NS, "0a1b2c3d4e5f6071", true),
  registerPartition: commands.registerPartition("demo.flights", { year: "2013", day: "4" }),
  periods: commands.periods(NAME, AT, AT),
  partitions: commands.partitions("demo.flights"),
  jobs: commands.jobs(NS, NAME),
  pools: commands.pools(NS),
  letters: commands.letters(NS),
  list: commands.list("schedules", NS),
  get: commands.get("schedule", NAME),
  showMessage: commands.showMessage(NAME),
  listMessages: commands.listMessages("demo.flights"),
  deleteMessage: commands.deleteMessage(NAME),
  showDag: commands.showDag(NAME, ID),
  reprocesses: commands.reprocesses(NS),
  showReprocess: commands.showReprocess(NS, "0a1b2c3d4e5f6071"),
  top: commands.top(NS),
  report: commands.report(NS, "2026-11-20"),
};

test("the list of commands for the test of the CLI is complete", () => {
  const listed = JSON.parse(readFileSync(new URL("../commands.json", import.meta.url), "utf8"));
  expect(listed).toEqual({
    ...EVERY,
    bulk: bulkCommand("pause", ["a.b.c"], "tag:team=a state:hold", { mode: "drain" }).text,
  });
});
