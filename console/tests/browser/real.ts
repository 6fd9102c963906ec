// The views with the answers of the product: `tests/console/test_real_answers.py` starts the product and runs this by
// `npm run real`. CONSOLE_URL is its address, CONSOLE_VIEWS a list as JSON of views with their paths and texts.

import { afterAll, beforeAll, expect, test } from "vitest";
import { faultsOf } from "./axe.ts";
import { type Stage, stage } from "./console.ts";

interface View {
  name: string;
  path: string;
  /** Texts that only its data bring. */
  texts: string[];
}

const views = JSON.parse(process.env.CONSOLE_VIEWS ?? "[]") as View[];
if (!process.env.CONSOLE_URL || views.length === 0) throw new Error("expected CONSOLE_URL and CONSOLE_VIEWS, got none");

let console_: Stage;
beforeAll(async () => {
  console_ = await stage();
});
afterAll(() => console_.close());

test.each(views)("$name", async ({ path, texts }) => {
  const { page, context, complaints, refused } = await console_.open(`/${console_.namespace}${path}`);
  for (const text of texts) {
    await page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 20_000 });
  }
  await expect.poll(() => page.locator(".loading").count(), { timeout: 20_000 }).toBe(0);
  expect(refused, "each answer is below 400").toEqual([]);
  expect(complaints).toEqual([]);
  expect(await page.locator(".failure").count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
  await context.close();
});
