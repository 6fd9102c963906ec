import { afterEach, beforeAll, expect, test } from "vitest";
import { type Stage, sharedStage } from "./console.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
afterEach(() => console_.closePages());

/** A page with the palette open, and the requests for schedules since then. */
async function opened(path: string) {
  const { page, context } = await console_.open(path);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  const asked: string[] = [];
  page.on("request", (made) => {
    const url = new URL(made.url());
    if (url.pathname.endsWith("/schedules")) asked.push(url.search);
  });
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Name, id or view" });
  await field.waitFor();
  const options = page.getByRole("listbox", { name: "What fits" }).getByRole("option");
  return { page, context, asked, field, options };
}

test("one of 10,000 schedules is found by a part of its name with one request", async () => {
  const { page, context, asked, field, options } = await opened("/demo/report");
  await page.waitForTimeout(300);
  expect(asked, "nothing is read before a word is typed").toEqual([]);
  await field.pressSequentially("PORT-00032", { delay: 20 });
  await options.filter({ hasText: "demo.flights.report-00032" }).waitFor();
  expect(asked).toEqual(["?q=port-00032&limit=50"]);
  await field.fill("flights report-00032");
  await expect.poll(() => asked.at(-1)).toBe("?q=flights.report-00032&limit=50");
  await options.filter({ hasText: "demo.flights.report-00032" }).waitFor();
  await field.fill("no such name");
  await page.getByText("No name has this part").waitFor();
  expect(asked.length).toBe(3);
  await context.close();
});

test("a part of many names says that more fit", async () => {
  const { page, context, field, options } = await opened("/demo/report");
  await field.fill("clean");
  await options.filter({ hasText: "clean-" }).first().waitFor();
  await page.getByText("More names fit").waitFor();
  await context.close();
});

test("what has been read whole is not asked for again", async () => {
  const { page, context } = await console_.open("/demo/schedules");
  await page.getByText(/^10,000/).waitFor();
  const asked: string[] = [];
  page.on("request", (made) => new URL(made.url()).pathname.endsWith("/schedules") && asked.push(made.url()));
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Name, id or view" }).fill("report-00032");
  await page.getByRole("option").filter({ hasText: "demo.flights.report-00032" }).waitFor();
  await page.waitForTimeout(400);
  expect(asked).toEqual([]);
  await context.close();
});

test("after > an action and a part of a name find its dialog", async () => {
  const { page, context, asked, field, options } = await opened("/demo/report");
  await field.fill("> pause");
  await page.getByText("Type a part of a schedule's name").waitFor();
  expect(asked).toEqual([]);
  await field.fill("> pause ingest-00000");
  await options.filter({ hasText: "Pause flights.ingest-00000" }).waitFor();
  expect(asked).toEqual(["?q=ingest-00000&limit=50"]);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("$ sluice pause demo.flights.ingest-00000").waitFor();
  await context.close();
});
