import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { actions } from "../../src/api/actions.ts";
import { BACKFILL, FAILS, REPROCESS } from "../../stub/acts.ts";
import { idOf, job, run, schedules } from "../../stub/data.ts";
import { WAITING_START } from "../../stub/routes.ts";
import { type Stage, sharedStage } from "./console.ts";

const S = "/demo/schedules/flights/ingest-00000";
const NAME = "demo.flights.ingest-00000";
const API = "/v1/namespaces/demo/apps/flights/schedules/ingest-00000";
const DAG = "/demo/dags/flights/nightly";
const DAG_API = "/v1/namespaces/demo/apps/flights/dags/nightly";
const RUN_UNDER_WAY = `demo.flights.nightly~.mf3k0p2q.${idOf(1)}`;
const LETTER = run(30);

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

const found = <T>(item: T | undefined): T => {
  if (item === undefined) throw new Error("the stand-in has none");
  return item;
};
const inState = (state: string) => found(schedules.find((row) => row.state === state && row.app === "flights"));
const [HELD, OFF] = [inState("hold"), inState("disabled")];
const ASKED = found(
  Array.from({ length: 200 }, (_, number) => job(number)).find((made) => /approval/.test(made.reason)),
);
const short = (name: string) => name.split(".").at(-1) ?? "";
const viewOf = (name: string) => `/demo/schedules/flights/${short(name)}`;
const apiOf = (name: string) => `/v1/namespaces/demo/apps/flights/schedules/${short(name)}`;

interface Act {
  /** Its key in the table of actions. */
  key: keyof typeof actions;
  path: string;
  /** The words on the button that opens the dialog, and on the one that acts. */
  button: string;
  label?: string;
  command: string | RegExp;
  request: string;
  body?: object;
  /** The label of a field that has to be filled, and its text. */
  fill?: [string, string];
  /** How many requests it sends: 1 unless it says otherwise. */
  requests?: number;
}

/** Each action: where its button is, its command, and the request that it sends. */
const ACTS: Act[] = [
  {
    key: "run",
    path: S,
    button: "Run",
    command: `sluice run ${NAME}`,
    request: `POST ${API}/run`,
    body: { properties: {} },
  },
  {
    key: "pause",
    path: S,
    button: "Pause",
    command: `sluice pause ${NAME}`,
    request: `POST ${API}/pause`,
    body: { mode: "hold", timeouts: "count" },
  },
  {
    key: "stop",
    path: "/demo",
    button: "Stop everything",
    command: "sluice stop demo --reason repair",
    request: "POST /v1/namespaces/demo/stop",
    body: { reason: "repair" },
    fill: ["Reason", "repair"],
  },
  {
    key: "start",
    path: "/demo",
    button: "Start",
    command: "sluice start demo.flights --tag team=a",
    request: "POST /v1/namespaces/demo/apps/flights/start",
    body: { tag: "team=a" },
  },
  {
    key: "resume",
    path: viewOf(HELD.name),
    button: "Resume",
    command: `sluice resume ${HELD.name}`,
    request: `POST ${apiOf(HELD.name)}/resume`,
  },
  {
    key: "enable",
    path: viewOf(OFF.name),
    button: "Enable",
    command: `sluice enable ${OFF.name}`,
    request: `POST ${apiOf(OFF.name)}/enable`,
  },
  { key: "disable", path: S, button: "Disable", command: `sluice disable ${NAME}`, request: `POST ${API}/disable` },
  { key: "skip", path: S, button: "Skip", command: new RegExp(`^sluice skip ${NAME} 2`), request: `POST ${API}/skip` },
  {
    key: "unskip",
    path: S,
    button: "Unskip",
    label: "Cancel the skip",
    command: new RegExp(`^sluice unskip ${NAME} 2`),
    request: `POST ${API}/unskip`,
  },
  {
    key: "cancelJob",
    path: `/demo/jobs/${job(1).job_id}`,
    button: "Cancel the job",
    command: `sluice jobs cancel ${job(1).job_id}`,
    request: `POST /v1/jobs/${job(1).job_id}/cancel`,
  },
  {
    key: "approve",
    path: `/demo/jobs/${ASKED.job_id}`,
    button: "Approve",
    command: `sluice jobs approve ${ASKED.job_id}`,
    request: `POST /v1/jobs/${ASKED.job_id}/approve`,
    body: { reason: "" },
  },
  {
    key: "refuse",
    path: `/demo/jobs/${ASKED.job_id}`,
    button: "Refuse",
    command: `sluice jobs refuse ${ASKED.job_id}`,
    request: `POST /v1/jobs/${ASKED.job_id}/refuse`,
    body: { reason: "" },
  },
  {
    key: "approveAll",
    path: "/demo",
    button: "Approve all",
    command: `sluice jobs approve --schedule ${ASKED.schedule}`,
    request: `POST /v1/jobs/${ASKED.job_id.slice(0, -1)}`,
    body: { reason: "" },
    requests: 3,
  },
  {
    key: "refuseAll",
    path: "/demo",
    button: "Refuse all",
    command: `sluice jobs refuse --schedule ${ASKED.schedule}`,
    request: `POST /v1/jobs/${ASKED.job_id.slice(0, -1)}`,
    body: { reason: "" },
    requests: 3,
  },
  {
    key: "cancelRun",
    path: `/demo/runs/${run(1).run_id}`,
    button: "Cancel the run",
    command: `sluice runs cancel ${run(1).run_id}`,
    request: `POST /v1/runs/${run(1).run_id}/cancel`,
  },
  {
    key: "pingRun",
    path: `/demo/runs/${run(1).run_id}`,
    button: "Poll now",
    command: `sluice runs ping ${run(1).run_id}`,
    request: `POST /v1/runs/${run(1).run_id}/ping`,
  },
  {
    key: "rerunRun",
    path: `/demo/runs/${run(25).run_id}`,
    button: "Run again",
    command: `sluice runs rerun ${run(25).run_id}`,
    request: `POST /v1/runs/${run(25).run_id}/rerun`,
  },
  {
    key: "redrive",
    path: "/demo/dead-letters",
    button: "Redrive",
    command: `sluice dead-letters redrive ${LETTER.run_id}`,
    request: `POST /v1/namespaces/demo/dead-letters/${LETTER.run_id}/redrive`,
  },
  {
    key: "redriveAll",
    path: "/demo/dead-letters",
    button: `Redrive all of ${LETTER.schedule.replace("demo.", "")}`,
    label: "Redrive all",
    command: `sluice dead-letters redrive -n demo --schedule ${LETTER.schedule}`,
    request: "POST /v1/namespaces/demo/dead-letters/redrive",
    body: { schedule: LETTER.schedule, limit: 100 },
  },
  {
    key: "dropLetter",
    path: "/demo/dead-letters",
    button: "Drop",
    command: `sluice dead-letters drop ${LETTER.run_id}`,
    request: `DELETE /v1/namespaces/demo/dead-letters/${LETTER.run_id}`,
  },
  {
    key: "runDag",
    path: DAG,
    button: "Run",
    command: "sluice dags run demo.flights.nightly",
    request: `POST ${DAG_API}/run`,
  },
  {
    key: "switchDag",
    path: DAG,
    button: "Disable",
    command: "sluice dags disable demo.flights.nightly",
    request: `POST ${DAG_API}/disable`,
  },
  {
    key: "pauseDag",
    path: DAG,
    button: "Pause",
    command: "sluice dags pause demo.flights.nightly",
    request: `POST ${DAG_API}/pause`,
    body: { mode: "hold", timeouts: "count" },
  },
  {
    key: "resumeDag",
    path: "/demo/dags/flights/weekly",
    button: "Resume",
    command: "sluice dags resume demo.flights.weekly",
    request: "POST /v1/namespaces/demo/apps/flights/dags/weekly/resume",
  },
  {
    key: "cancelDag",
    path: `${DAG}?run=${RUN_UNDER_WAY}`,
    button: "Cancel the run",
    command: `sluice dags cancel demo.flights.nightly ${RUN_UNDER_WAY}`,
    request: `POST /v1/runs/${RUN_UNDER_WAY}/cancel`,
  },
  {
    key: "cancelJob",
    path: `${DAG}?run=${WAITING_START.job_id}`,
    button: "Cancel the job",
    command: `sluice jobs cancel ${WAITING_START.job_id}`,
    request: `POST /v1/jobs/${WAITING_START.job_id}/cancel`,
  },
  {
    key: "rerunDag",
    path: DAG,
    button: "Run all again",
    label: "Run again",
    command: /^sluice dags rerun demo.flights.nightly \S+ --all$/,
    request: `POST ${DAG_API}/runs/`,
    body: { all: true },
  },
  {
    key: "rerunDag",
    path: `${DAG}?node=jfk`,
    button: "Run from here again",
    label: "Run again",
    command: /--from jfk$/,
    request: `POST ${DAG_API}/runs/`,
    body: { from: "jfk" },
  },
  {
    key: "rerunDag",
    path: `${DAG}?node=jfk`,
    button: "Run only this again",
    label: "Run again",
    command: /--only jfk$/,
    request: `POST ${DAG_API}/runs/`,
    body: { only: "jfk" },
  },
  {
    key: "deleteMessage",
    path: "/demo/messages/flights/beat",
    button: "Delete",
    command: "sluice message delete demo.flights.beat",
    request: "DELETE /v1/namespaces/demo/apps/flights/messages/beat",
  },
  {
    key: "cancelBackfill",
    path: `${S}?tab=backfills`,
    button: "Cancel",
    label: "Cancel the backfill",
    command: `sluice backfill cancel ${NAME} ${BACKFILL.backfill_id}`,
    request: `POST ${API}/backfills/${BACKFILL.backfill_id}/cancel`,
  },
  {
    key: "cancelReprocess",
    path: `/demo/reprocess/${REPROCESS.reprocess_id}`,
    button: "Cancel the re-processing",
    command: `sluice reprocess cancel ${REPROCESS.reprocess_id} -n demo`,
    request: `POST /v1/namespaces/demo/reprocess/${REPROCESS.reprocess_id}/cancel`,
  },
  {
    key: "register",
    path: "/demo/datasets/weather?at=2013/12/26",
    button: "Report it ready",
    command: "sluice datasets register demo.weather year=2013 month=12 day=26",
    request: "POST /v1/namespaces/demo/datasets/weather/partitions",
    body: { partition: { year: "2013", month: "12", day: "26" } },
  },
];

test("each action has a row here: a new one is submitted by mouse and by keys, too", () => {
  expect([...new Set(ACTS.map((act) => act.key))].sort()).toEqual(Object.keys(actions).sort());
});

interface Sent {
  what: string;
  body: unknown;
}

/** What a page sends from now on, apart from reads. */
function listen(page: Page): Sent[] {
  const sent: Sent[] = [];
  page.removeAllListeners("request");
  page.on("request", (made) => {
    const { pathname } = new URL(made.url());
    if (made.method() === "GET" || pathname.endsWith("/glance")) return;
    sent.push({
      what: `${made.method()} ${pathname}`,
      body: made.postData() ? JSON.parse(made.postData() ?? "") : null,
    });
  });
  return sent;
}

const isFocused = (element: Locator) => element.evaluate((node) => node === document.activeElement);

/** Press Tab until an element has the focus. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  for (let tries = 0; tries < 25; tries += 1) {
    if (await isFocused(element)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error("Tab does not reach it");
}

const { SAMPLE } = process.env;
/** `make test` plays every eighth action also by keys, and `make test-long` all of them. */
const BY_KEYS = SAMPLE === "yes" ? ACTS.filter((_, place) => place % 8 === 0) : ACTS;

describe.each(ACTS)("$key: $button", ({ path, button, label = button, command, request, body, fill, requests = 1 }) => {
  test("by mouse: the dialog has its command, and acts alone", async () => {
    const { page, context, complaints } = await console_.walk(path);
    const sent = listen(page);
    await page.getByRole("button", { name: button, exact: true }).first().click();
    const dialog = page.getByRole("dialog");
    if (fill) await dialog.getByRole("textbox", { name: fill[0], exact: true }).fill(fill[1]);
    const shown = (await dialog.locator("code").innerText()).replace("$ ", "");
    expect(shown).toMatch(typeof command === "string" ? new RegExp(`^${command.replaceAll(".", "\\.")}$`) : command);
    await dialog.getByRole("button", { name: "Copy the command" }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(shown);
    expect(sent, "nothing is sent before it is confirmed").toEqual([]);
    await dialog.getByRole("button", { name: label, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    expect(sent).toHaveLength(requests);
    expect(sent[0]?.what.startsWith(request), `${sent[0]?.what} is ${request}`).toBe(true);
    if (body) expect(sent[0]?.body).toEqual(body);
    expect(complaints).toEqual([]);
    await context.close();
  });
});

describe.each(BY_KEYS)("$key: $button", ({ path, button, label = button, request, fill, requests = 1 }) => {
  test("by keys: Enter, Tab, Enter, and the focus comes back", async () => {
    const { page, context } = await console_.walk(path);
    const sent = listen(page);
    const opener = page.getByRole("button", { name: button, exact: true }).first();
    await opener.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    const submit = dialog.getByRole("button", { name: label, exact: true });
    await submit.waitFor();
    // On a busy machine the dialog is drawn before it has the focus.
    await expect.poll(() => dialog.evaluate((shown) => shown.contains(document.activeElement))).toBe(true);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(sent, "Escape leaves it").toEqual([]);
    await expect.poll(() => isFocused(opener)).toBe(true);
    await page.keyboard.press("Enter");
    if (fill) await dialog.getByRole("textbox", { name: fill[0], exact: true }).fill(fill[1]);
    await tabTo(page, submit);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    expect(sent.map(({ what }) => what.startsWith(request))).toEqual(Array(requests).fill(true));
    await expect.poll(() => isFocused(opener)).toBe(true);
    await context.close();
  });
});

/** Use a button of a form by mouse, or by the keyboard alone. */
const press = {
  mouse: (_: Page, button: Locator) => button.click(),
  keys: async (page: Page, button: Locator) => {
    await button.waitFor();
    await tabTo(page, button);
    await page.keyboard.press("Enter");
  },
};

describe.each(["mouse", "keys"] as const)("by %s", (by) => {
  test("a backfill: range, dry run, begin", async () => {
    const { page, context } = await console_.walk(`${S}/backfill`);
    const sent = listen(page);
    await page.getByLabel("From").fill("2026-11-01T05:00");
    await page.getByLabel("To", { exact: true }).fill("2026-11-04T05:00");
    await press[by](page, page.getByRole("button", { name: "Dry run" }));
    await page.getByText("30 runs of flights.ingest-00000").waitFor();
    await press[by](page, page.getByRole("button", { name: "Begin the backfill" }));
    await page.waitForURL(/tab=backfills/);
    const range = {
      only: "all",
      from: "2026-11-01T05:00:00Z",
      to: "2026-11-04T05:00:00Z",
      concurrency: 1,
      order: "oldest",
    };
    expect(sent).toEqual([
      { what: `POST ${API}/backfills`, body: { ...range, dry_run: true } },
      { what: `POST ${API}/backfills`, body: { ...range, dry_run: false } },
    ]);
    await context.close();
  });

  test("a re-processing: beginning, dry run, begin", async () => {
    const { page, context } = await console_.walk("/demo/reprocess?name=demo.weather&at=2013/1/4");
    const sent = listen(page);
    await expect.poll(() => page.getByLabel("Partition", { exact: true }).inputValue()).toBe("year=2013/month=1/day=4");
    await page.getByLabel("Partition", { exact: true }).focus();
    await press[by](page, page.getByRole("button", { name: "Dry run" }));
    await page.getByText("2 runs in 2 steps").waitFor();
    await page.getByRole("table", { name: "Not followed" }).getByText("weather.join-00017").waitFor();
    await press[by](page, page.getByRole("button", { name: "Begin the re-processing" }));
    await page.waitForURL(/reprocess\/1f2e3d4c5b6a7988/);
    const partition = { year: "2013", month: "1", day: "4" };
    const asked = { dataset: "demo.weather", partition, scope: "downstream", concurrency: 1 };
    expect(sent.map((one) => one.body)).toEqual([
      { ...asked, dry_run: true },
      { ...asked, dry_run: false },
    ]);
    await context.close();
  });

  test("many at once, of which one fails: its reason is listed", async () => {
    const { page, context } = await console_.walk("/demo/schedules?q=clean-0000");
    const sent = listen(page);
    await page.getByText("2 of 10,000").waitFor();
    const open = page.getByRole("button", { name: /^Act on all/ });
    await open.focus();
    await press[by](page, open);
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^Would change/).waitFor();
    const many = Number(/\d+/.exec(await dialog.getByText(/^Would change/).innerText())?.[0]);
    const act = dialog.getByRole("button", { name: `Pause ${many}`, exact: true });
    await press[by](page, act);
    await dialog.getByText(`Changed ${many}`).waitFor();
    await dialog.getByText("1 fail").waitFor();
    await dialog.getByText("someone else has just changed it").waitFor();
    expect(await dialog.getByRole("link").first().innerText()).toContain(FAILS);
    await press[by](page, dialog.getByRole("button", { name: "Close" }));
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => isFocused(open)).toBe(true);
    expect(sent.map((one) => (one.body as { dry_run?: boolean }).dry_run ?? false)).toEqual([true, true, false, false]);
    await context.close();
  });
});

test("the command of a dialog follows its fields", async () => {
  const { page, context } = await console_.walk(S);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByLabel("Mode").selectOption("drain");
  await page.getByLabel("Stop the timeouts").check();
  expect(await page.getByRole("dialog").locator("code").innerText()).toBe(
    `$ sluice pause ${NAME} --mode drain --stop-timeouts`,
  );
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await context.close();
});

test("all that fit are acted on: dry run, number typed, progress", async () => {
  const { page, context } = await console_.walk("/demo/schedules?q=state:hold");
  const act = page.getByRole("button", { name: /^Act on all/ });
  await page.getByText(/^\d+ of 10,000$/).waitFor();
  const many = Number(/\d+/.exec((await act.innerText()).replace(",", ""))?.[0]);
  expect(many).toBeGreaterThan(100);
  await act.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Resume", exact: true }).click();
  await dialog.getByRole("button", { name: "Dry run" }).click();
  await dialog.getByText(`Would change ${many}`).waitFor();
  const confirm = dialog.getByRole("button", { name: `Resume ${many}` });
  expect(await confirm.isDisabled()).toBe(true);
  const field = dialog.getByLabel(/to confirm/);
  await field.fill(String(many - 1));
  await field.press("Enter");
  expect(await confirm.isDisabled(), "another number confirms nothing").toBe(true);
  await field.fill(String(many));
  await field.press("Enter");
  await dialog.getByText(`Changed ${many}`).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await context.close();
});

test("the dialog of an approval names its schedule and partition", async () => {
  const { page, context } = await console_.walk(`/demo/jobs/${ASKED.job_id}`);
  await page.getByRole("button", { name: "Approve", exact: true }).first().click();
  const { year, month, day } = found(ASKED.correlation ?? undefined);
  const of = `${ASKED.schedule.replace("demo.", "")} ${year}/${month}/${day}`;
  await page.getByRole("heading", { name: `Approve the job ${of}` }).waitFor();
  await context.close();
});

test("a partition is also known by its values alone", async () => {
  const { page, context } = await console_.walk("/demo/reprocess?name=demo.weather");
  const field = page.getByLabel("Partition", { exact: true });
  await page.getByPlaceholder("year=…/month=…/day=…").waitFor();
  await field.fill("2013/1");
  await page.getByText("once the form is complete").waitFor();
  await field.fill("2013/1/4");
  await page.getByText("sluice reprocess demo.weather year=2013/month=1/day=4 --dry-run").waitFor();
  await context.close();
});

test("a few schedules get their dry run at once, anew for each option", async () => {
  const { page, context } = await console_.walk("/demo/schedules?q=clean-00008");
  const asked: string[] = [];
  page.on("request", (made) => made.url().endsWith("/bulk") && asked.push(made.postData() ?? ""));
  await page.getByText("1 of 10,000").waitFor();
  await page.getByRole("button", { name: "Act on all 1" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Would change 1").waitFor();
  await dialog.getByLabel("Mode").selectOption("drain");
  await expect.poll(() => asked.length).toBe(2);
  await dialog.getByText("Would change 1").waitFor();
  expect(asked.map((body) => JSON.parse(body))).toMatchObject([
    { action: "pause", mode: "hold", dry_run: true },
    { action: "pause", mode: "drain", dry_run: true },
  ]);
  await context.close();
});

test("only the DAG acts on the schedules that it owns", async () => {
  const { page, context } = await console_.walk("/demo/schedules?all=yes&q=nightly");
  await page.getByRole("link", { name: "flights.nightly/join" }).waitFor();
  expect(await page.getByRole("button", { name: /^Act on all/ }).isDisabled()).toBe(true);
  await page.getByLabel(/^also 1 node of DAGs/).uncheck();
  await page.getByText(/No schedule fits/).waitFor();
  await context.close();
});
