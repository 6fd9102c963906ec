// Tasks of people who watch data workflows, each from Home, with the clicks and keys that they take:
// `node tests/browser/trial.ts` prints a table. The time is that of a machine that reads nothing: it shows what the page
// makes a person wait for, and no more.

import type { Locator, Page } from "playwright-core";
import { type Stage, stage } from "./console.ts";

/** Counts what a person does. */
export class Hand {
  clicks = 0;
  keys = 0;
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  async click(button: Locator): Promise<void> {
    this.clicks += 1;
    await button.click();
  }

  async press(...keys: string[]): Promise<void> {
    this.keys += keys.length;
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** Typing one word or number counts as one. */
  async type(field: Locator, text: string): Promise<void> {
    this.keys += 1;
    await field.fill(text);
  }
}

export interface Task {
  name: string;
  act: (hand: Hand) => Promise<void>;
  /** The most clicks and keys together. */
  most: number;
}

const button = (page: Page | Locator, name: string | RegExp) => page.getByRole("button", { name, exact: true });

/** Act on all that fit: a dry run, the number, and the action. */
async function onAll(hand: Hand, word: string): Promise<void> {
  const { page } = hand;
  await hand.click(page.getByRole("button", { name: /^Act on all/ }));
  const dialog = page.getByRole("dialog");
  await hand.click(button(dialog, word));
  await hand.click(button(dialog, "Dry run"));
  // The number is there once the dry run is whole.
  const field = dialog.getByLabel(/to confirm/);
  await field.waitFor();
  const many = await dialog.locator("label strong").innerText();
  await hand.type(field, many);
  await hand.click(dialog.getByRole("button", { name: new RegExp(`^${word} [\\d,]+$`) }));
  await dialog.getByText(/^Changed/).waitFor();
  await hand.click(button(dialog, "Close"));
}

export const TASKS: Task[] = [
  {
    name: "Find why the join of yesterday did not run, and make it run",
    most: 6,
    async act(hand) {
      const { page } = hand;
      await hand.press("Control+k");
      await hand.type(page.getByRole("combobox", { name: "Name, id or view" }), "join-00016");
      await page.getByRole("option").filter({ hasText: "flights.join-00016" }).waitFor();
      await hand.press("Enter");
      await page
        .getByText(/waits for/)
        .first()
        .waitFor();
      await hand.click(button(page, "Run").first());
      await hand.click(button(page.getByRole("dialog"), "Run"));
      await page.getByText("A run has begun").waitFor();
    },
  },
  {
    name: "Pause all that is tagged team=a, and resume it",
    most: 16,
    async act(hand) {
      const { page } = hand;
      await hand.press("g", "s");
      await page.getByRole("heading", { name: "Schedules" }).waitFor();
      await hand.type(page.getByLabel("Filter", { exact: true }), "tag:team=a");
      await page.getByText(/^[\d,]+ of 10,000$/).waitFor();
      for (const word of ["Pause", "Resume"]) await onAll(hand, word);
    },
  },
  {
    name: "Run one day again, with everything after it",
    most: 7,
    async act(hand) {
      const { page } = hand;
      await hand.press("g", "a");
      await hand.click(page.getByRole("link", { name: "weather", exact: true }));
      await hand.click(button(page, "2013/12/20: registered"));
      await hand.click(page.getByRole("main").getByRole("link", { name: "Reprocess" }).last());
      await hand.click(button(page, "Dry run"));
      await page.getByText("2 runs in 2 steps").waitFor();
      await hand.click(button(page, "Begin the re-processing"));
      await page.getByText("The re-processing has begun").waitFor();
    },
  },
  {
    name: "Find what was late in the last days, and why",
    most: 5,
    async act(hand) {
      const { page } = hand;
      await hand.press("g", "r");
      await hand.click(button(page, "late ones, the worst first"));
      const worst = page.locator('[role="rowgroup"] [role="row"]').first();
      await worst.getByText("+3 m 10 s").waitFor();
      await hand.press("j", "Enter");
      await page.getByText("started because").waitFor();
    },
  },
  {
    name: "Approve what waits for it",
    most: 2,
    async act(hand) {
      const { page } = hand;
      await hand.click(button(page, "Approve").first());
      await hand.click(button(page.getByRole("dialog"), "Approve"));
      await page.getByText("The job is approved").waitFor();
    },
  },
  {
    name: "Approve all jobs of a schedule that wait for it",
    most: 2,
    async act(hand) {
      const { page } = hand;
      await hand.click(button(page, "Approve all").first());
      await hand.click(button(page.getByRole("dialog"), "Approve all"));
      await page.getByText(/jobs approved/).waitFor();
    },
  },
  {
    name: "Read the log of the last failure",
    most: 2,
    async act(hand) {
      const { page } = hand;
      const failed = page.locator("section.panel").filter({ has: page.getByRole("heading", { name: "Failed last" }) });
      await hand.click(failed.locator("tbody tr").first().getByRole("link").last());
      await hand.click(page.getByRole("link", { name: "Log", exact: true }));
      await page.getByText("INFO wrote part 39").waitFor();
    },
  },
  {
    name: "Stop a namespace",
    most: 3,
    async act(hand) {
      const { page } = hand;
      await hand.click(button(page, "Stop everything"));
      const dialog = page.getByRole("dialog");
      await hand.type(dialog.getByRole("textbox", { name: "Reason", exact: true }), "the table is repaired");
      await hand.click(button(dialog, "Stop everything"));
      await dialog.waitFor({ state: "detached" });
    },
  },
  {
    name: "Run a failed element of a node again",
    most: 6,
    async act(hand) {
      const { page } = hand;
      await hand.press("g", "d");
      await hand.click(page.getByRole("link", { name: "flights.nightly" }));
      await hand.click(page.locator('[data-node="jfk"]'));
      await hand.click(button(page, "Again").first());
      await hand.click(button(page.getByRole("dialog"), "Run again"));
      await page.getByText("A new round has begun").waitFor();
    },
  },
];

export async function tried(console_: Stage, task: Task): Promise<{ clicks: number; keys: number; seconds: number }> {
  const { page, context } = await console_.open("/demo");
  await page.getByText("Needs you").waitFor();
  const hand = new Hand(page);
  const began = Date.now();
  await task.act(hand);
  const seconds = (Date.now() - began) / 1000;
  await context.close();
  return { clicks: hand.clicks, keys: hand.keys, seconds };
}

if (import.meta.main) {
  const console_ = await stage();
  console.log("| task | clicks | keys | machine, s |\n|---|---|---|---|");
  for (const task of TASKS) {
    const { clicks, keys, seconds } = await tried(console_, task);
    console.log(`| ${task.name} | ${clicks} | ${keys} | ${seconds.toFixed(1)} |`);
  }
  await console_.close();
}
