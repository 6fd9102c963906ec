import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { job } from "../../stub/data.ts";
import { type Stage, sharedStage } from "./console.ts";

const S = "/demo/schedules/flights/ingest-00000";
let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
// A page that a failed test leaves is not the one that the next test expects.
afterEach(({ task }) => (task.result?.state === "fail" ? console_.closePages() : undefined));
afterAll(() => console_.closePages());

const clipboard = (page: Page) => page.evaluate(() => navigator.clipboard.readText());
const current = (page: Page) => page.locator('[role="row"][aria-current="true"]');
const LIST = "/demo/schedules";
const listed = async (page: Page) => page.getByText("flights.ingest-00000").waitFor();
const opened = async (page: Page) => page.getByText("reaching COMPLETED").first().waitFor();
const GRAPH = "/demo/graph";
const drawn = (page: Page) => page.locator(".node").first().waitFor();
/** A press on Escape closes the dialog. */
async function closes(page: Page): Promise<void> {
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Close what a key has opened over the page. */
async function leaveDialog(page: Page): Promise<void> {
  if ((await page.getByRole("dialog").count()) > 0) await closes(page);
}

interface Check {
  path: string;
  ready: (page: Page) => Promise<unknown>;
  /** After the key was pressed. */
  then: (page: Page) => Promise<unknown>;
  /** Keys before it. */
  before?: string[];
}

const KEYS: Record<string, Check> = {
  "ctrl k": {
    path: LIST,
    ready: listed,
    then: (page) => page.getByRole("combobox", { name: "Name, id or view" }).waitFor(),
  },
  "?": { path: LIST, ready: listed, then: (page) => page.getByRole("heading", { name: "Keys" }).waitFor() },
  j: { path: LIST, ready: listed, then: (page) => current(page).getByText("flights.ingest-00000").waitFor() },
  k: {
    path: LIST,
    ready: listed,
    before: ["j", "j"],
    then: (page) => current(page).getByText("flights.ingest-00000").waitFor(),
  },
  enter: {
    path: LIST,
    ready: listed,
    before: ["j"],
    then: (page) => page.waitForURL((url) => url.pathname === S),
  },
  x: {
    path: LIST,
    ready: listed,
    before: ["j"],
    then: (page) => page.getByRole("button", { name: "Act on 1 chosen" }).waitFor(),
  },
  "/": {
    path: LIST,
    ready: listed,
    then: async (page) => {
      await page.keyboard.type("clean-00008");
      await page.getByText("1 of 10,000").waitFor();
    },
  },
  w: { path: S, ready: opened, then: (page) => page.waitForURL(/tab=jobs/) },
  c: {
    path: S,
    ready: opened,
    then: async (page) => {
      await page.getByText("The command is copied").first().waitFor();
      await expect.poll(() => clipboard(page)).toBe("sluice describe schedule demo.flights.ingest-00000");
    },
  },
  r: {
    path: S,
    ready: opened,
    then: async (page) => {
      await page.getByRole("dialog").waitFor();
      // The first text field has the focus: a key press is text at once.
      await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("INPUT");
      await page.keyboard.type("2h30m");
      await page.getByRole("dialog").locator("code").getByText("--at 2h30m").waitFor();
      await closes(page);
    },
  },
  p: { path: S, ready: opened, then: closes },
  "[": {
    path: "/demo/timeline",
    ready: (page) => page.getByText(/\d attempts/).waitFor(),
    then: (page) => page.waitForURL(/to=/),
  },
  "]": {
    path: "/demo/timeline",
    ready: (page) => page.getByText(/\d attempts/).waitFor(),
    before: ["["],
    then: (page) => page.waitForURL((url) => !url.search.includes("to=")),
  },
  "+": {
    path: GRAPH,
    ready: drawn,
    then: (page) => page.getByRole("button", { name: "125 %" }).waitFor(),
  },
  f: {
    path: GRAPH,
    ready: drawn,
    before: ["+", "+"],
    then: (page) => page.getByRole("button", { name: "156 %" }).waitFor({ state: "detached" }),
  },
  z: { path: LIST, ready: listed, then: (page) => page.waitForURL(/zone=local/) },
  esc: {
    path: LIST,
    ready: listed,
    before: ["?"],
    then: (page) => page.getByRole("dialog").waitFor({ state: "detached" }),
  },
};

const NAMES: Record<string, string> = { enter: "Enter", esc: "Escape", "ctrl k": "Control+k" };
const pressed = async (page: Page, key: string) => {
  for (const one of key.startsWith("g ") ? key.split(" ") : [NAMES[key] ?? key]) await page.keyboard.press(one);
};

test.each(Object.entries(KEYS))("the key %s", async (key, { path, ready, before = [], then }) => {
  const { page, context } = await console_.walk(path);
  await ready(page);
  const sent: string[] = [];
  page.removeAllListeners("request");
  page.on("request", (made) => made.method() !== "GET" && !made.url().endsWith("/glance") && sent.push(made.url()));
  for (const one of before) await pressed(page, one);
  if (key === "esc") await page.getByRole("dialog").waitFor();
  await pressed(page, key);
  await then(page);
  expect(sent, "a key never acts by itself").toEqual([]);
  await leaveDialog(page);
  await context.close();
});

test("the list of keys names each of these, and the key of each view leads to it", async () => {
  const { page, context } = await console_.walk(LIST);
  await listed(page);
  await page.keyboard.press("?");
  const rows = page.getByRole("dialog").locator("dl > div");
  await rows.first().waitFor();
  const words = await rows.evaluateAll((all) =>
    all.map((row) => [row.querySelector("dt")?.textContent ?? "", row.querySelector("dd")?.textContent ?? ""] as const),
  );
  expect(words.map(([key]) => key).filter((key) => !key.startsWith("g "))).toEqual(Object.keys(KEYS));
  await page.keyboard.press("Escape");
  const views = words.filter(([key]) => key.startsWith("g "));
  expect(views).toHaveLength(15);
  for (const [key, name] of views) {
    await pressed(page, key);
    await page.locator(`nav a[aria-current="page"]`).filter({ hasText: name }).waitFor();
  }
  await context.close();
});

/** Views with rows: what their keys copy and open. */
const ROWS: [view: string, path: string, command: RegExp, opens: RegExp][] = [
  ["schedules", LIST, /^sluice describe schedule demo/, /\/schedules\/flights\//],
  ["runs", "/demo/runs", /^sluice runs show demo/, /\/demo\/runs\/demo/],
  ["limits", "/demo/limits?kind=pool", /^sluice describe pool demo/, /name=pool/],
  ["limits of DAGs", "/demo/limits?kind=dag", /^sluice describe dag demo/, /name=dag/],
  ["datasets", "/demo/datasets", /^sluice datasets demo.weather/, /\/datasets\/weather/],
];

test("keys of the current row come before those of its page", async () => {
  const { page, context } = await console_.walk(`${S}?tab=runs`);
  await opened(page);
  await page.locator('[role="rowgroup"] [role="row"]').first().waitFor();
  await page.keyboard.press("j");
  await current(page).waitFor();
  await page.keyboard.press("c");
  await expect.poll(() => clipboard(page)).toMatch(/^sluice runs show demo/);
  await context.close();
});

test.each(ROWS)("rows of %s: j, c, enter", async (_, path, command, opens) => {
  const { page, context } = await console_.walk(path);
  await page.locator('[role="rowgroup"] [role="row"]').first().waitFor();
  await page.keyboard.press("j");
  await current(page).waitFor();
  await page.keyboard.press("c");
  await page.getByText("The command is copied").first().waitFor();
  await expect.poll(() => clipboard(page)).toMatch(command);
  await page.keyboard.press("Enter");
  await page.waitForURL(opens);
  await context.close();
});

test("rows in groups: the queue and the dead letters", async () => {
  const { page, context } = await console_.walk("/demo/dead-letters");
  await page.locator('[role="row"] a.name').first().waitFor();
  for (const key of ["j", "j", "c"]) await page.keyboard.press(key);
  await page.getByText("The command is copied").first().waitFor();
  await expect.poll(() => clipboard(page)).toMatch(/^sluice dead-letters redrive demo/);
  await page.keyboard.press("w");
  await page.waitForURL(/\/demo\/runs\/demo/);
  await console_.walk("/demo/queue");
  await page.locator('[role="row"] a.name').first().waitFor();
  for (const key of ["j", "j", "x"]) await page.keyboard.press(key);
  await page.getByRole("dialog").getByText("$ sluice jobs cancel demo").waitFor();
  await closes(page);
  await page.keyboard.press("/");
  await page.keyboard.type("approval");
  await page.waitForURL(/q=approval/);
  await page.keyboard.press("Escape");
  await console_.walk(`/demo/jobs/${job(1).job_id}`);
  await page.getByText("it goes on with").waitFor();
  await page.keyboard.press("c");
  await expect.poll(() => clipboard(page)).toBe(`sluice why job ${job(1).job_id}`);
  await context.close();
});
