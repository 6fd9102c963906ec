import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Stage, sharedStage } from "./console.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

test("arrow keys move between cells, and a hole leads to its backfill", async () => {
  const { page, context } = await console_.open("/demo/periods?q=ingest-0000");
  await page.locator(".period-cell.failed.part").first().waitFor();
  await page.locator("button.period-cell").first().focus();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
  const [, first = ""] = (await focused()).split(/[,:] /);
  for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
  const day = new Date(Date.parse(first) + 86_400_000).toISOString().slice(0, 10);
  expect(await focused()).toContain(`weather.ingest-00001, ${day}: `);

  const row = page.locator("tr[data-row]", { hasText: "weather.ingest-00001" });
  await row.locator(".period-cell.missing").first().focus();
  const hole = /(\d{4}-\d\d-\d\d): missing/.exec(await focused())?.[1];
  await page.keyboard.press("Enter");
  const command = `sluice backfill begin demo.weather.ingest-00001 --partition day=${hole} --only missing`;
  await page.getByText(command).waitFor();
  await page.getByRole("button", { name: "Backfill what is missing" }).click();
  expect(await page.getByLabel("Which of them").inputValue()).toBe("missing");
  expect(await page.getByLabel("Or these partitions, one a line").inputValue()).toBe(`day=${hole}`);
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("The range now: 20 missing, 1 running, 10 failed").waitFor();
  await page.getByText("left alone").waitFor();
  await context.close();
});

test("the span of days is in the address, and Back returns", async () => {
  const { page, context } = await console_.open("/demo/periods?q=ingest-00000");
  await page.locator("button.period-cell").first().waitFor();
  const heads = () => page.locator(".periods-table thead th").count();
  expect(await heads()).toBe(32);
  const before = await page.locator(".periods-span").textContent();
  await page.getByRole("button", { name: "Earlier days" }).click();
  await expect.poll(() => page.locator(".periods-span").textContent()).not.toBe(before);
  await page.getByLabel("How many days").selectOption("14");
  await expect.poll(heads).toBe(15);
  await page.goBack();
  await page.goBack();
  await expect.poll(() => page.locator(".periods-span").textContent()).toBe(before);
  await context.close();
});
