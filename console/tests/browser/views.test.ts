import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { run } from "../../stub/data.ts";
import { WAITING_START } from "../../stub/routes.ts";
import { faultsInThemes } from "./axe.ts";
import { go, type Stage, sharedStage } from "./console.ts";
import { VIEWS } from "./views.ts";

const S = "/demo/schedules/flights/ingest-00000";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

test.each(VIEWS)("%s shows its data, and axe finds nothing in either theme", async (_, path, text) => {
  const { page, context, complaints } = await console_.walk(path);
  await page.getByText(text).first().waitFor({ timeout: 20_000 });
  expect(await faultsInThemes(page), path).toEqual([]);
  expect(await cutOff(page), "nothing needs a scroll to the side at 1280 px").toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

/** What is wider than its place: the page itself, or a table that scrolls to the side. */
const cutOff = (page: Page) =>
  page.evaluate(() =>
    [document.scrollingElement, ...document.querySelectorAll(".scroll-x, .rows-body, main")]
      .filter((place): place is Element => place !== null && place.scrollWidth > place.clientWidth + 1)
      .map((place) => `${place.tagName} ${place.className}: ${place.scrollWidth} of ${place.clientWidth} px`),
  );

/** What opens over a page: how, and a text of it. */
const OVER: [name: string, path: string, open: (page: Page) => Promise<void>, text: string | RegExp][] = [
  [
    "the dialog of an action",
    S,
    (page) => page.getByRole("button", { name: "Pause", exact: true }).click(),
    "Nothing is dropped.",
  ],
  [
    "many at once",
    "/demo/schedules?q=clean-0000",
    (page) => page.getByRole("button", { name: "Act on all 2" }).click(),
    "someone else has just changed it",
  ],
  [
    "the palette",
    "/demo/schedules",
    async (page) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Name, id or view" }).fill("clean-00008");
    },
    "demo.flights.clean-00008",
  ],
  ["the keys", "/demo/schedules", (page) => page.keyboard.press("?"), "A key opens something."],
];

test.each(OVER)("axe finds nothing in %s in either theme", async (_, path, open, text) => {
  const { page, context } = await console_.walk(path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await open(page);
  await page.getByRole("dialog").getByText(text).first().waitFor();
  expect(await faultsInThemes(page), path).toEqual([]);
  await context.close();
});

test("texts of others are text, never markup", async () => {
  const { page, context } = await console_.walk(S);
  await page.getByText("<b>Text is text.</b>").waitFor();
  await go(page, `/demo/runs/${run(25).run_id}?tab=log`);
  await page.getByText("WARN <script>alert(1)</script>").waitFor();
  expect(await page.locator("pre script").count()).toBe(0);
  await context.close();
});

test("the token leaves the address at once, and a wrong one says what to run", async () => {
  const { page, context } = await console_.open("/demo/schedules?q=clean");
  await page.getByText("clean-00008").first().waitFor();
  expect(page.url()).toBe(`${console_.origin}/demo/schedules?q=clean`);
  await context.close();
  const old = await console_.open("/demo", { token: "old" });
  await old.page.getByText("sluice console", { exact: false }).first().waitFor();
  await old.page.getByText("This page belongs to an earlier start").first().waitFor();
  await old.context.close();
  const without = await console_.browser.newPage();
  await without.goto(`${console_.origin}/demo`);
  await without.getByText("This page has no token").waitFor();
  await without.getByText("run sluice console again").waitFor();
  await without.close();
});

test("what is gone says so in its own place, with a hint", async () => {
  const { page, context } = await console_.walk("/demo/schedules/flights/gone");
  await page.getByText("no schedule named 'demo.flights.gone'").waitFor();
  await page.getByText("look at the list").waitFor();
  await go(page, `/demo/messages/flights/sent`);
  await page.getByText("a message that has nothing left to send").waitFor();
  await page.getByRole("table", { name: "Runs" }).waitFor();
  await go(page, `/demo/messages/flights/never`);
  await page.getByText("no message named 'demo.flights.never'").waitFor();
  await go(page, `/demo/runs/demo.flights.clean.mf3k0p2q.gone`);
  await page.getByText("no run 'demo.flights.clean.mf3k0p2q.gone'").waitFor();
  await go(page, `/nowhere/schedules`);
  await page.getByText("no namespace named 'nowhere'").waitFor();
  await go(page, `/demo/a/view/of/later`);
  await page.getByText("No view has this address").waitFor();
  await context.close();
});

test("late data is told at the beginning, and a partition names what made it", async () => {
  const { page, context } = await console_.walk("/demo");
  const late = page.locator("section", { has: page.getByRole("heading", { name: "Late data" }) });
  await late.getByText("2013/12/31").waitFor();
  await late.getByRole("link", { name: "weather", exact: true }).click();
  await page.getByText("fresh for 26h: ◷ late since").waitFor();
  await go(page, `/demo/datasets/weather?at=2013/12/25`);
  await page.getByRole("heading", { name: "What made it" }).waitFor();
  await context.close();
});

test("a dataset says for which schedule a partition was late, and why", async () => {
  const { page, context } = await console_.walk("/demo/datasets/weather");
  await page.getByRole("button", { name: "2013/12/29: registered, late for join" }).click();
  await page.getByText("is late: the job of 2013-W52 has started as").waitFor();
  await context.close();
});

test("Home has the schedules with the most dead letters, and the way to the others", async () => {
  const { page, context } = await console_.walk("/demo");
  const needs = page.locator("#needs-you");
  await needs.getByText("◷ 3 approvals").waitFor();
  const counts = await needs
    .locator("tbody")
    .getByRole("link", { name: /^at least \d+ dead letters?$/ })
    .allTextContents();
  const numbers = counts.map((text) => Number(/\d+/.exec(text)?.[0]));
  expect(numbers).toHaveLength(5);
  expect(numbers).toEqual(numbers.toSorted((one, other) => other - one));
  await needs.getByRole("link", { name: /^dead letters of at least \d+ more schedules$/ }).click();
  await page.getByRole("heading", { name: "Dead letters", level: 1 }).waitFor();
  await context.close();
});

test("the page of a DAG says which node failed last, and the command that goes on", async () => {
  const { page, context } = await console_.walk("/demo/dags/flights/nightly");
  const why = page.locator("section.why");
  await why.getByText("the file jfk.csv is empty").waitFor();
  await why.getByText("sluice dags rerun demo.flights.nightly demo.flights.nightly~.").waitFor();
  await why.getByText("sluice why demo.flights.nightly").waitFor();
  await context.close();
});

test("a DAG says its limits, and which of its runs are late or wait to begin", async () => {
  const { page, context, complaints } = await console_.walk("/demo/dags/flights/nightly");
  await page
    .getByText("at most 1 run at a time, others wait; a run is ended after 2d; it should end within 4h")
    .waitFor();
  const row = (text: string) => page.getByRole("row", { name: text });
  await row("2013/1/3").getByText("LATE").waitFor({ state: "attached" });
  expect(await row("2013/1/4").getByText("LATE").count()).toBe(0);
  await row("2013/1/3").getByRole("button").click();
  const [head, side] = [page.locator(".panel > header").first(), page.getByRole("complementary")];
  await head.getByText("LATE").waitFor();
  await head.getByText("to end by").waitFor();
  await page.locator('[data-node="evaluate"]').click();
  await side.getByText("the run began").waitFor();
  expect(await side.getByRole("button", { name: /again$/ }).count(), "refused while a part is active").toBe(0);
  await row("2013/1/5")
    .getByText(/not begun, for \d+ m/)
    .waitFor();
  await row("2013/1/5").getByRole("button").click();
  await head.getByText("not begun").waitFor();
  await head.getByText("WAITING").waitFor();
  expect(await page.locator(".node").count(), "the graph of the DAG, since the run has none").toBe(5);
  expect(await page.locator(".edge").count()).toBe(5);
  await go(page, `/demo/dags/flights/nightly?run=${WAITING_START.job_id}`);
  await side.getByText("Waits to begin").waitFor();
  await side.getByText("1 of 1 in use").waitFor();
  expect(await page.getByRole("button", { name: "Run all again" }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await context.close();
});

test("a chain of five nodes is on screen as a whole at each width", async () => {
  for (const width of [1280, 1440, 1920]) {
    const { page } = await console_.walk("/demo/dags/flights/nightly", { width });
    await page.locator('[data-node="publish"]').waitFor();
    await expect
      .poll(() =>
        page.evaluate(() => {
          const box = document.querySelector(".graph-box")?.getBoundingClientRect();
          const nodes = [...document.querySelectorAll(".node")].map((node) => node.getBoundingClientRect());
          return box && nodes.filter(({ left, right }) => left >= box.left && right <= box.right).length;
        }),
      )
      .toBe(5);
  }
});

test("the dry run of a backfill of days counts their hours, and says which it leaves out", async () => {
  const { page, context } = await console_.walk("/demo/schedules/flights/report-00032/backfill");
  await page.getByText("A period that you name runs with what is there.").waitFor();
  await page.getByRole("button", { name: "Dry run" }).click();
  expect(await page.getByLabel("From").evaluate((field: HTMLInputElement) => field.validity.valueMissing)).toBe(true);
  await page.getByLabel("From").fill("day=2026-02-26");
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("The range now: 2 missing, 1 waiting, 1 failed").waitFor();
  const row = (day: string) => page.getByRole("row", { name: day }).getByRole("cell").allTextContents();
  const [, parts, , then, why] = await row("2026-02-27");
  expect([parts, then, why]).toEqual(["23 of 24", "left out", "lacks 1 of 24 hours of 2026-02-27 UTC in hours: 17"]);
  expect((await row("2026-02-28")).slice(1, 4)).toEqual(["24 of 24", "✗failed", "runs"]);
  expect((await row("2026-03-01"))[3]).toBe("left alone");
  await context.close();
});

test("an address of another version still opens", async () => {
  const { page, context } = await console_.open("/demo/schedules?panel=7&zone=mars&sort=age&q=ingest-00000");
  await page.getByText("flights.ingest-00000").waitFor();
  await context.close();
});

test("an address of sluice open leads to its view and no further", async () => {
  const { page, context } = await console_.open("/workflows/demo.flights.clean");
  await page.waitForURL((url) => url.searchParams.get("q") === "workflow:demo.flights.clean");
  await page.getByRole("heading", { name: "Schedules" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/demo/schedules");
  await page.goto(`${console_.origin}/messages/demo.flights.beat`);
  await page.waitForURL((url) => url.pathname === "/demo/messages/flights/beat");
  await page.getByRole("heading", { name: "flights.beat" }).waitFor();
  await context.close();
});

test("a link to a part of a run keeps it, however short the address is", async () => {
  const { run_id } = run(25);
  const { page, context } = await console_.open(`/demo/runs/${run_id}?tab=log`);
  for (const path of ["", `/runs/${run_id}`, `/open/${run_id}`, `/jobs/${run_id}`, `/demo/jobs/${run_id}`]) {
    if (path) await page.goto(`${console_.origin}${path}?tab=log&zone=local`);
    await page.getByText("INFO wrote part 39").waitFor();
    await page.locator('.tabs a[aria-current="page"]').getByText("Log").waitFor();
    expect(new URL(page.url()).pathname).toBe(`/demo/runs/${run_id}`);
    expect(new URL(page.url()).searchParams.get("tab")).toBe("log");
    expect(new URL(page.url()).searchParams.get("zone")).toBe(path ? "local" : null);
    if (process.env.SAMPLE === "yes" && path) continue;
    await page.reload();
    await page.getByText("INFO wrote part 39").waitFor();
  }
  await page.goBack();
  await page.getByRole("link", { name: "Attempts" }).click();
  await page.waitForURL(/tab=attempts/);
  await context.close();
});

test("the queue shows its first jobs while the others come", async () => {
  const { page, context } = await console_.blank();
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/jobs\?.*cursor=/, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto(`${console_.origin}/demo/queue`);
  await page.getByText("at least 100 wait").waitFor();
  expect(await page.locator('[role="row"] a.name').count()).toBeGreaterThan(0);
  release();
  await page.getByText("5,200 wait").waitFor();
  await context.close();
});

test("a list that was left before all had come is read whole when one comes back", async () => {
  const { page, context } = await console_.blank();
  let isHeld = true;
  // What is held is left: no answer ever comes.
  await page.route(/\/schedules\?.*cursor=/, (route) => (isHeld ? undefined : route.continue()));
  await page.goto(`${console_.origin}/demo/schedules`);
  await page.locator('[role="row"] a.name').first().waitFor();
  await go(page, "/demo/report");
  await page.getByText("12 workflows").waitFor();
  isHeld = false;
  await go(page, "/demo/schedules");
  // Sooner than the clock reads it again.
  await page.getByText(/^10,000$/).waitFor({ timeout: 15_000 });
  await context.close();
});

test("back goes back, and the zone stays", async () => {
  const { page, context } = await console_.walk("/demo/schedules?zone=local&q=ingest-00000");
  await page.getByRole("link", { name: "flights.ingest-00000" }).click();
  await page.getByRole("heading", { name: "flights.ingest-00000" }).waitFor();
  expect(new URL(page.url()).search).toBe("?zone=local");
  await page.goBack();
  expect(new URL(page.url()).search).toBe("?zone=local&q=ingest-00000");
  await context.close();
});

test("the stage is a band, red for prod, and none without a stage", async () => {
  const { page, context } = await console_.open("/demo/report");
  await page.getByText("12 workflows").waitFor();
  const at = async (stage: string | null) => {
    await page.unroute("**/console.json");
    await page.route("**/console.json", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), stage } });
    });
    const answered = page.waitForResponse("**/console.json");
    await page.reload();
    await answered;
    await page.getByText("12 workflows").waitFor();
  };
  const band = page.locator("header.top .stage");
  const look = () => band.evaluate((element) => getComputedStyle(element).backgroundColor);
  await at("prod");
  await band.getByText("prod · 000000000000 · us-east-1").waitFor();
  expect(await look()).toBe("rgb(179, 48, 15)");
  await at("test");
  await band.getByText("test ·").waitFor();
  expect(await look()).not.toBe("rgb(179, 48, 15)");
  await at(null);
  expect(await band.count()).toBe(0);
  await context.close();
});
