// Filters of lists: what a person chooses is in the address, and an address gives the same list again.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Stage, sharedStage } from "./console.ts";

let shared: Stage;
beforeAll(async () => {
  shared = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? shared.closePages() : undefined));
afterAll(() => shared.closePages());

// In `make test` a list is left and opened again by its address; `npm run browser` loads the page again.
const { SAMPLE } = process.env;

const rows = (page: Page, label: string) => page.getByRole("table", { name: label }).getByRole("row");

/** Each list with an address that filters it, and what then stands above it, in it, and not in it. */
const LISTS: [path: string, above: string | RegExp, within: string | RegExp, without: string][] = [
  ["/demo/runs?q=memory&app=flights", /\d+ found|^\d+ of the last/, "out of memory", "the file is empty"],
  ["/demo/runs?tag=team%3Da&state=FAILED", /found|of the last/, "FAILED", "SUCCEEDED"],
  ["/demo/runs?by=late", /found|of the last/, "+3 m 10 s", "on time"],
  ["/demo/runs?target=http", /^0 of the last/, "No run fits", "SUCCEEDED"],
  ["/demo/queue?app=weather&q=window", /wait, the oldest/, "waits for its window", "approved by a lead"],
  ["/demo/queue?late=yes&tag=team", /wait, the oldest/, "flights.", "orders."],
  ["/demo/dags?q=airport&state=enabled", "1 of 2", "flights.nightly", "No DAG fits"],
  ["/demo/dags?state=disabled", "0 of 2", "No DAG fits", "nodes, each with"],
  ["/demo/workflows?target=emr_serverless&q=join", "1 of 3", "flights.join", "flights.clean"],
  ["/demo/workflows?target=sqs", "0 of 3", "No workflow fits", "flights.join"],
  ["/demo/messages?q=beat", "1", "flights.beat", "No message fits"],
  ["/demo/datasets?late=yes", "1", "weather", "No dataset fits"],
  ["/demo/datasets?q=nothing", "1", "No dataset fits", "s3://lake/raw"],
  ["/demo/limits?kind=policy", /^1 of pools/, "at most 5 starts in any 10s", "at most 2 runs"],
  ["/demo/limits?q=heavy", /^1 of pools/, "heavy", "calm"],
  ["/demo/dead-letters?q=nothing", "0 of the newest 200", "No dead letter fits", "503"],
  ["/demo/schedules?q=target%3Aemr_serverless%20join", /of [\d,]+$/, "flights.join-", "flights.clean-0"],
];

test.each(LISTS)("%s is filtered as its address says", async (path, above, within, without) => {
  const { page, complaints } = await shared.walk(path);
  const main = page.locator("main");
  await main.locator(".page-head").getByText(above).first().waitFor();
  await main.getByText(within).first().waitFor();
  expect(await main.locator("[role=table]").getByText(without).count()).toBe(0);
  // Lists of several pages are whole once their number is.
  await expect.poll(() => main.locator(".page-head").innerText()).not.toContain("at least");
  const text = await main.locator("[role=table]").first().innerText();
  if (SAMPLE === "yes") await shared.walk(path);
  else await page.reload();
  await main.getByText(within).first().waitFor();
  await expect.poll(() => main.locator("[role=table]").first().innerText()).toBe(text);
  expect(complaints).toEqual([]);
});

test("a filter that is typed or chosen stands in the address, and Back takes it out", async () => {
  const { page, context } = await shared.open("/demo/runs");
  await rows(page, "Runs").nth(3).waitFor();
  await page.getByRole("combobox", { name: "State" }).selectOption("FAILED");
  await page.getByRole("searchbox", { name: "Filter" }).fill("memory");
  await expect.poll(() => new URL(page.url()).search).toBe("?q=memory&state=FAILED");
  await page.getByText("out of memory").first().waitFor();
  await page.locator(".page-head").getByText("sluice runs list -n demo --state FAILED --text memory").waitFor();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect.poll(() => new URL(page.url()).search).toBe("");
  await page.goBack();
  await expect.poll(() => new URL(page.url()).search).toBe("?q=memory&state=FAILED");
  await context.close();
});

test("a day is written year first, and a wrong one says how", async () => {
  const { page, context } = await shared.open("/demo/runs");
  const day = page.getByRole("textbox", { name: "Day, in UTC" });
  expect(await day.getAttribute("placeholder")).toBe("day: 2026-11-20");
  await day.fill("11/20/2026");
  await page.getByText("such as 2026-11-20").waitFor();
  expect(new URL(page.url()).search).toBe("");
  await day.fill("2026-11-21");
  await expect.poll(() => new URL(page.url()).search).toBe("?day=2026-11-21");
  expect(await page.locator("input[type=date], input[type=datetime-local]").count()).toBe(0);
  await context.close();
});

test("a limit nobody waits for is listed with what it allows", async () => {
  const { page, context } = await shared.open("/demo/limits");
  const table = page.getByRole("table", { name: "Limits" });
  await table.getByText("at most 5 starts in any 10s").waitFor();
  // Its next start is never past, whatever the clock of the reader.
  await table.getByText("now", { exact: true }).first().waitFor();
  const quotas = page.locator("section", { has: page.getByRole("heading", { name: "Quotas" }) });
  await quotas.getByText("3 of 50").waitFor();
  await quotas.getByText("no quota").waitFor();
  await context.close();
});
