// Large fires: one line in each list, the page of a fire, and the pages of its events.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FIRE, SCHEDULE } from "../../stub/fires.ts";
import { faultsOf } from "./axe.ts";
import { type Stage, sharedStage } from "./console.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

const OF_SCHEDULE = `/demo/schedules/flights/${SCHEDULE.split(".").at(-1)}`;
const NUMBERS = "797 of 1,000 sent · 3 failed · 200 waiting · late p50 140 ms, max 1.1 s";

const lineIn = (page: Page, table: string) =>
  page.getByRole("table", { name: table }).locator('[role="row"]').filter({ hasText: "fire of" });

const LISTS: [name: string, path: string, table: string, text: string, state: string | null][] = [
  ["runs", "/demo/runs", "Runs", NUMBERS, null],
  ["runs that failed", "/demo/runs?state=FAILED", "Runs", NUMBERS, null],
  ["late runs", "/demo/runs?by=late&q=notify-each", "Runs", NUMBERS, null],
  ["runs of a schedule", OF_SCHEDULE, "Runs", NUMBERS, null],
  ["waiting jobs of a schedule", `${OF_SCHEDULE}?tab=jobs`, "Waiting jobs", NUMBERS, "WAITING"],
  ["queue", `/demo/queue?schedule=${SCHEDULE}`, "What waits", NUMBERS, "WAITING"],
];

test.each(LISTS)("a fire is one line of the %s, and enter opens it", async (_, path, table, text, state) => {
  const { page, context, complaints } = await console_.walk(path);
  const line = lineIn(page, table);
  await line.getByText("of 1,000 sent").waitFor();
  expect(await line.count()).toBe(1);
  expect(await line.textContent()).toContain(text);
  await line.locator('[role="cell"]').first().click();
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === `/demo/fires/${FIRE}`);
  expect(new URL(page.url()).searchParams.get("state")).toBe(state);
  await page.getByRole("table", { name: "Events of the fire" }).waitFor();
  expect(complaints).toEqual([]);
  await context.close();
});

test("nothing of the line of a fire is cut off at 1280 px", async () => {
  const { page, context } = await console_.walk("/demo/runs");
  const line = lineIn(page, "Runs");
  await line.getByText("of 1,000 sent").waitFor();
  const cut = await line
    .locator('[aria-colspan="4"]')
    .evaluate((cell) => cell.scrollWidth - cell.clientWidth + Math.max(0, cell.scrollHeight - 32));
  expect(cut).toBe(0);
  await context.close();
});

test("a number of a line leads to the events that it counts", async () => {
  const { page, context } = await console_.walk("/demo/runs");
  await lineIn(page, "Runs").getByRole("link", { name: "3 failed" }).click();
  await page.waitForURL((url) => url.searchParams.get("state") === "FAILED");
  const rows = page.getByRole("table", { name: "Events of the fire" }).locator('.rows-body [role="row"]');
  await expect.poll(() => rows.count()).toBe(3);
  expect(await rows.first().textContent()).toMatch(/^3.*FAILED.*AccessDenied/);
  await page.getByRole("button", { name: "all 1,000" }).click();
  await expect.poll(() => rows.count()).toBeGreaterThan(10);
  await context.close();
});

test("the events of a fire are read as far as they are scrolled", async () => {
  const { page, context } = await console_.walk(`/demo/fires/${FIRE}`);
  const table = page.getByRole("table", { name: "Events of the fire" });
  await page.getByText("the first 500 are listed").waitFor();
  await table.locator(".rows-body").evaluate((body) => body.scrollTo(0, body.scrollHeight));
  await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("1001");
  await table.locator(".rows-body").evaluate((body) => body.scrollTo(0, body.scrollHeight));
  await table.getByRole("link", { name: "-rr" }).click();
  await page.waitForURL((url) => url.pathname === `/demo/jobs/${FIRE}-rr`);
  await page.getByText("event 999 of 1,000 of the").waitFor();
  await context.close();
});

test("an event has its place in its fire, and leads to it", async () => {
  const { page, context } = await console_.walk(`/demo/runs/${FIRE}-7`);
  await page.getByText("event 7 of 1,000 of the fire of").waitFor();
  await page.getByRole("link", { name: /^fire of/ }).click();
  await page.waitForURL((url) => url.pathname === `/demo/fires/${FIRE}`);
  await context.close();
});

test("an address of events that share a row is that of their fire", async () => {
  const { page, context } = await console_.open(`/demo/runs/${FIRE}-0_5`);
  for (const path of ["", `/demo/jobs/${FIRE}-mi_5`, `/open/${FIRE}`, `/fires/${FIRE}`]) {
    if (path) await page.goto(`${console_.origin}${path}`);
    await page.waitForURL((url) => url.pathname === `/demo/fires/${FIRE}`);
    await page.getByRole("table", { name: "Events of the fire" }).waitFor();
  }
  await context.close();
});

test("home has a fire once, and counts each of its events", async () => {
  const { page, context } = await console_.walk("/demo");
  const panel = page.locator("section.panel").filter({ hasText: "Failed last" });
  await panel.getByText("of 1,000 sent").waitFor();
  expect(await panel.getByRole("link", { name: /^fire of/ }).count()).toBe(1);
  await page.getByText("of the newest 1,300 runs").waitFor();
  await context.close();
});

test("the timeline counts each event for which an attempt stands", async () => {
  const { page, context } = await console_.blank();
  let attempts = 0;
  await page.route(/\/v1\/.*\/timeline\?/, async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    attempts += json.count.length;
    await route.fulfill({ response: answer, json: { ...json, count: json.count.map(() => 5) } });
  });
  // Of a range that has ended, so that nothing is read twice.
  const until = new Date(Date.now() - 600_000).toISOString();
  await page.goto(`${console_.origin}/demo/timeline?tab=table&span=15&to=${until}`);
  await page.getByText("5 events of a fire").first().waitFor();
  await page.getByText("reading more").waitFor({ state: "detached" });
  await page.getByText(`${(5 * attempts).toLocaleString("en-US")} attempts`).waitFor();
  await context.close();
});

test("while a fire is read, and if that fails, its line has what the list says", async () => {
  const { page, context } = await console_.blank();
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/v1/fires/*", async (route) => {
    await held;
    await route.fulfill({
      status: 400,
      json: { error: { code: "broken", message: "the table is gone", field: null, hint: null } },
    });
  });
  await page.goto(`${console_.origin}/demo/runs`);
  const line = lineIn(page, "Runs");
  await line.getByText("797 sent").waitFor();
  expect(await line.textContent()).toContain("at least 797 sent · 3 failed · late p50 140 ms");
  expect(await line.textContent()).not.toContain("not known");
  release();
  await line.getByText("the others are not known").waitFor();
  await page.goto(`${console_.origin}/demo/fires/${FIRE}`);
  await page.getByRole("alert").getByText("the table is gone").waitFor();
  await page.getByRole("button", { name: "Try again" }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await context.close();
});

test("a fire that is gone says so, as does a state without events", async () => {
  const { page, context } = await console_.open("/demo/fires/demo.flights.gone.mf3k0p2q.0a1b");
  await page.getByText("no fire 'demo.flights.gone.mf3k0p2q.0a1b'").waitFor();
  await page.goto(`${console_.origin}/demo/fires/${FIRE}?state=DROPPED`);
  await page.getByText("No event of this fire is DROPPED").waitFor();
  await page.goto(`${console_.origin}/demo/runs/${FIRE}-zzzz`);
  await page.getByText("an event of a").waitFor();
  await page.getByRole("link", { name: "fire of many events" }).click();
  await page.waitForURL((url) => url.pathname === `/demo/fires/${FIRE}`);
  await context.close();
});
