import { afterEach, expect, test } from "vitest";
import { type Stage, stage } from "./console.ts";

let console_: Stage;
afterEach(() => console_.close());

test("a slow API shows rows in place of data, and then says so", async () => {
  console_ = await stage({ delay: () => 6000 });
  const { page } = await console_.open("/demo/schedules");
  await page.locator(".bone").first().waitFor();
  await page.getByText("The API takes longer than usual").waitFor();
  await page.getByText("flights.ingest-00000").waitFor({ timeout: 30_000 });
});

test("when answers stop, the old data stays with its age and a retry", async () => {
  console_ = await stage();
  const { page } = await console_.open("/demo/queue");
  await page.getByText("5,000 wait").waitFor();
  await page.route("**/v1/**", (route) => route.abort());
  await page.getByText(/What you see is .* old/).waitFor({ timeout: 30_000 });
  expect(await page.getByText("5,000 wait").count()).toBe(1);
  await page.unroute("**/v1/**");
  await page.getByRole("button", { name: "Try again" }).first().click();
  await page.getByText(/What you see is .* old/).waitFor({ state: "detached", timeout: 30_000 });
});

test("a throttled read is tried again, and an expired credential says why", async () => {
  console_ = await stage();
  const { page } = await console_.open("/demo");
  await page.getByText("Held up by").waitFor();
  let refused = 0;
  await page.route("**/v1/**/limits*", (route) =>
    refused++ < 1 ? route.fulfill({ status: 429, body: '{"message":"Too Many Requests"}' }) : route.continue(),
  );
  await page.goto(`${console_.origin}/demo/limits`);
  await page.getByRole("button", { name: "small" }).waitFor();
  expect(refused).toBeGreaterThan(1);
  const expired = {
    error: { code: "forbidden", message: "the security token is expired", field: null, hint: "sign in again" },
  };
  await page.route("**/v1/**/dead-letters*", (route) => route.fulfill({ status: 403, body: JSON.stringify(expired) }));
  await page.goto(`${console_.origin}/demo/dead-letters`);
  await page.getByText("the security token is expired").waitFor();
  await page.getByText("sign in again").waitFor();
});

test("10,000 characters, right-to-left text and 0 rows break no page", async () => {
  console_ = await stage();
  const { page, complaints } = await console_.open("/demo");
  await page.getByText("Held up by").waitFor();
  const long = `ל${"א ב ".repeat(500)}${"x".repeat(8000)}`;
  const fault = { error: { code: "invalid", message: long, field: long, hint: long } };
  await page.route("**/v1/**/dead-letters*", (route) => route.fulfill({ status: 400, body: JSON.stringify(fault) }));
  await page.goto(`${console_.origin}/demo/dead-letters`);
  await page.getByText("Try again").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await page.route(/\/(jobs|schedules|runs)\?/, (route) =>
    route.fulfill({ status: 200, body: '{"items":[],"next_cursor":null}' }),
  );
  for (const [path, text] of [
    ["queue", "Nothing waits"],
    ["schedules", "No schedules yet"],
    ["runs", "No run fits"],
  ]) {
    await page.goto(`${console_.origin}/demo/${path}`);
    await page.getByText(text as string).waitFor();
  }
  expect(complaints.filter((text) => !text.includes("status of 400"))).toEqual([]);
});
