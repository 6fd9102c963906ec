// Rows of Timeline and Queue: those of a pool, of a schedule, and of what holds them.

import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { JOBS, job, run } from "../../stub/data.ts";
import { type Stage, sharedStage } from "./console.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

const texts = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) => all.map((one) => one.textContent ?? ""));
const waiting = Array.from({ length: JOBS }, (_, number) => job(number));

test("the timeline by pool has a row for each pool, which leads to it, and one for all others", async () => {
  const { page, context, complaints } = await console_.walk("/demo/timeline");
  await page.getByText(/\d attempts/).waitFor();
  const before = await page.locator(".timeline canvas").getAttribute("aria-label");
  await page.getByRole("button", { name: "by pool" }).click();
  await page.waitForURL(/by=pool/);
  await expect.poll(() => texts(page, ".timeline-labels li")).toEqual(["small", "no pool"]);
  const after = await page.locator(".timeline canvas").getAttribute("aria-label");
  expect(after).toMatch(/^[\d,]+ attempts in 2 rows/);
  expect(after).not.toBe(before);
  await page.getByRole("link", { name: "small" }).click();
  await page.waitForURL((url) => url.pathname === "/demo/limits" && url.searchParams.get("name") === "pool:demo.small");
  await page.getByText("In use by").first().waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "no pool" }).click();
  await page.waitForURL((url) => url.pathname === "/demo/limits" && url.search === "");
  expect(complaints).toEqual([]);
  await context.close();
});

test("enter on a row of the timeline's table opens the run of that row", async () => {
  // Of a range that has ended, so that no new run moves the rows.
  const until = new Date(Date.parse(run(0).claimed_at) - 600_000).toISOString();
  const { page, context } = await console_.walk(`/demo/timeline?tab=table&to=${until}`);
  const rows = page.locator('[role="rowgroup"] [role="row"]');
  await rows.first().waitFor();
  await page.getByText("reading more").waitFor({ state: "detached" });
  for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
  const current = page.locator('[role="row"][aria-current="true"]');
  await current.waitFor();
  expect(await current.textContent()).toBe(await rows.nth(1).textContent());
  const [name, begun] = [await current.locator("a").textContent(), await current.locator("time").textContent()];
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/demo\/runs\/demo/);
  await page.getByText("started because").waitFor();
  const id = decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1) ?? "");
  const opened = Array.from({ length: 5_000 }, (_, number) => run(number)).find((made) => made.run_id === id);
  expect(opened?.schedule).toBe(`demo.${name}`);
  expect(opened?.claimed_at.replace("T", " ")).toContain(begun?.replace(" UTC", "") ?? "?");
  await context.close();
});

test("the queue shows the jobs of one schedule, by a filter that back takes away", async () => {
  const schedule = waiting[3]?.schedule ?? "";
  const many = waiting.filter((one) => one.schedule === schedule).length;
  const { page, context } = await console_.open("/demo/queue");
  await page.getByText("5,200 wait").waitFor();
  const field = page.getByRole("combobox", { name: "Schedule" });
  await field.fill(schedule.slice(0, -1));
  expect(new URL(page.url()).search, "a part of a name filters nothing").toBe("");
  await field.fill(schedule);
  await page.waitForURL((url) => url.searchParams.get("schedule") === schedule);
  await page.getByText(`${many} wait, the oldest first`).waitFor();
  const names = await texts(page, '.rows-body [role="row"]:not(.group) a.name');
  expect(names).toHaveLength(many);
  expect(new Set(names)).toEqual(new Set([schedule.replace("demo.", "")]));
  await page.reload();
  await page.getByText(`${many} wait, the oldest first`).waitFor();
  expect(await field.inputValue()).toBe(schedule);
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await page.getByText("5,200 wait").waitFor();
  expect(new URL(page.url()).search).toBe("");
  expect(await field.inputValue()).toBe("");
  await context.close();
});

test("the queue is grouped by what each job waits for, and not by the words of its reason", async () => {
  const { page, context } = await console_.blank();
  await page.route(/\/namespaces\/demo\/jobs\?/, async (route) => {
    const answer = await route.fetch();
    const given = [
      {
        reason: "the schedule has been paused (hold) since 05:00 (until a lead approved)",
        kind: "pause",
        of: "schedule demo.a.b",
      },
      { reason: "x", kind: "grant", of: "a grant of lake" },
      { reason: "y", kind: "approval", of: "approved by a lead" },
      { reason: "z", kind: "window", of: "between 22:00 and 06:00" },
    ];
    const items = given.map(({ reason, kind, of }, index) => ({
      ...job(index),
      reason,
      queued_in: null,
      queue: null,
      waits_for: [
        { kind, name: kind, of, changes_at: null },
        ...(kind === "window"
          ? [{ kind: "approval", name: "approval", of: "approved by a lead", changes_at: null }]
          : []),
      ],
    }));
    await route.fulfill({ response: answer, json: { items, next_cursor: null } });
  });
  await page.goto(`${console_.origin}/demo/queue`);
  await page.getByText("4 wait").first().waitFor();
  const lines = async () => {
    const all = page.locator('.rows-body [role="row"]');
    return all.evaluateAll((rows) =>
      rows.map((row) =>
        row.classList.contains("group")
          ? (row.querySelector("strong")?.textContent ?? "")
          : [...row.querySelectorAll("button")].map((button) => button.textContent).join(" "),
      ),
    );
  };
  expect(await lines()).toEqual([
    ...["approval", "Approve Refuse"],
    ...["between 22:00 and 06:00", "Approve Refuse"],
    ...["a paused schedule", "Resume Cancel"],
    ...["a grant of lake", "Cancel"],
  ]);
  await page.goto(`${console_.origin}/demo/queue?name=approval`);
  await page.getByText("held by: approval").waitFor();
  await expect.poll(lines).toEqual(["approval", "Approve Refuse", "between 22:00 and 06:00", "Approve Refuse"]);
  await context.close();
});

test("what holds jobs up leads to its view, and says when it goes on", async () => {
  const { page, context } = await console_.blank();
  await page.route(/\/v1\/namespaces\/demo\/now/, async (route) => {
    const answer = await route.fetch();
    const now = await answer.json();
    const [limit] = now.waiting.groups;
    const past = new Date(Date.now() - 60_000).toISOString();
    now.waiting.groups.push(
      { ...limit, name: "policy:demo.partner", of: "policy demo.partner", why: "waits for a permit" },
      { ...limit, kind: "clock", name: "due", of: "its instant", why: "due", changes_at: past },
    );
    await route.fulfill({ response: answer, json: now });
  });
  await page.goto(`${console_.origin}/demo`);
  const row = (words: string) => page.getByRole("row").filter({ hasText: words });
  await row("policy partner").getByText("with the next permit").waitFor();
  await row("its instant").getByText("any moment now").waitFor();
  await page.getByRole("link", { name: "policy partner" }).click();
  await page.waitForURL((url) => url.searchParams.get("name") === "policy:demo.partner");
  await page.goBack();
  await page.getByRole("link", { name: "schedule flights.join" }).click();
  await page.waitForURL("**/demo/schedules/flights/join");
  await context.close();
});

test("late runs say what they waited for", async () => {
  const { page, context } = await console_.walk("/demo/runs?by=late");
  await page.getByRole("columnheader", { name: "Why late" }).waitFor();
  await page.getByText("waited for a slot of pool spark: 20 of 20 in use").first().waitFor();
  await page.getByRole("button", { name: "late ones, the worst first" }).click();
  await page.getByRole("columnheader", { name: "Why", exact: true }).waitFor();
  expect(await page.getByText("waited for a slot").count()).toBe(0);
  await context.close();
});

test("the command of the queue is that of the schedule in its address", async () => {
  const { page, context } = await console_.walk(`/demo/queue?schedule=${job(0).schedule}`);
  await page.getByText(`sluice jobs -s ${job(0).schedule}`).waitFor();
  await context.close();
});
