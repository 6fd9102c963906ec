import type { Page } from "playwright-core";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { go, type Stage, sharedStage } from "./console.ts";
import { VIEWS } from "./views.ts";

const S = "/schedules/flights/ingest-00000";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
afterEach(() => console_.closePages());

const DOWN = {
  error: {
    code: "not_reachable",
    message: "the API does not answer: connection refused",
    field: null,
    hint: "make up starts a local one",
  },
};
const release = async (page: Page) => {
  await page.unrouteAll({ behavior: "ignoreErrors" });
};

// `make test` plays every eighth view, and `make test-long` all of them.
const { SAMPLE } = process.env;
const PLAYED = SAMPLE === "yes" ? VIEWS.filter((_, place) => place % 8 === 0) : VIEWS;

describe.each(PLAYED)("%s", (_, path, text) => {
  test("before an answer it has rows in place of data, also when that takes ten seconds", async () => {
    const { page, context } = await console_.blank();
    await page.clock.install();
    let go = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    await page.route("**/v1/**", async (route) => {
      await held;
      await route.continue().catch(() => {});
    });
    await page.goto(console_.origin + path);
    await page.locator("main h1, main .loading").first().waitFor();
    await expect
      .poll(
        async () => {
          await page.clock.runFor(250);
          return page.locator(".bone").count();
        },
        { timeout: 20_000 },
      )
      .toBeGreaterThan(0);
    await page.clock.runFor(10_000);
    await page.getByText("The API takes longer than usual").first().waitFor();
    go();
    await expect
      .poll(
        async () => {
          await page.clock.runFor(250);
          return page.getByText(text).count();
        },
        { timeout: 30_000 },
      )
      .toBeGreaterThan(0);
    await context.close();
  });

  test("without the API it has the message, the hint and a retry that helps", async () => {
    const { page, context } = await console_.blank();
    await page.clock.install();
    await page.route("**/v1/**", (route) => route.fulfill({ status: 502, body: JSON.stringify(DOWN) }));
    await page.goto(console_.origin + path);
    // A read is tried again twice before its error is shown.
    await expect
      .poll(
        async () => {
          await page.clock.runFor(2000);
          return page.locator(".failure").count();
        },
        { timeout: 20_000 },
      )
      .toBeGreaterThan(0);
    const failure = page.locator(".failure").first();
    await failure.getByText("the API does not answer: connection refused").waitFor();
    await failure.getByText("make up starts a local one").waitFor();
    await release(page);
    await expect
      .poll(
        async () => {
          const again = page.getByRole("button", { name: "Try again" }).first();
          if (await again.count()) await again.click({ timeout: 2000 }).catch(() => {});
          await page.clock.runFor(2000);
          return page.getByText(text).count();
        },
        { timeout: 30_000 },
      )
      .toBeGreaterThan(0);
    await context.close();
  });
});

/** What is gone or never was, in each view of one thing. */
const GONE: [what: string, path: string, text: string | RegExp][] = [
  ["schedule", "/demo/schedules/flights/gone", "no schedule named 'demo.flights.gone'"],
  ["DAG", "/demo/dags/flights/gone", "no DAG named 'demo.flights.gone'"],
  ["dataset", "/demo/datasets/gone", "no dataset named 'demo.gone'"],
  ["job", "/demo/jobs/demo.flights.clean.mf3k0p2q.gone", "no run 'demo.flights.clean.mf3k0p2q.gone'"],
  ["run", "/demo/runs/demo.flights.clean.mf3k0p2q.gone", "no run 'demo.flights.clean.mf3k0p2q.gone'"],
  ["message", "/demo/messages/flights/gone", "no message named 'demo.flights.gone'"],
  ["re-processing", "/demo/reprocess/gone", "no re-processing 'gone'"],
  ["pool", "/demo/limits?name=pool:demo.gone", "no pool named 'demo.gone'"],
];

test("what is gone says so, with a hint", async () => {
  for (const [what, path, text] of GONE) {
    const { page } = await console_.walk(path);
    await page.getByText(text).first().waitFor();
    expect(await page.getByText("look at the list").count(), what).toBeGreaterThan(0);
  }
});

test("when answers stop, the old data stays with its age and a retry", async () => {
  const { page } = await console_.open("/demo/queue");
  await page.getByText("5,200 wait").waitFor();
  await page.route("**/v1/**", (route) => route.abort());
  const age = page.locator(".age");
  await age.getByText("live", { exact: true }).waitFor();
  await page.getByText(/What you see is .* old/).waitFor({ timeout: 30_000 });
  expect(await page.getByText("5,200 wait").count()).toBe(1);
  await age.getByText("no answer").waitFor();
  await page.unroute("**/v1/**");
  await page.getByRole("button", { name: "Try again" }).first().click();
  await page.getByText(/What you see is .* old/).waitFor({ state: "detached", timeout: 30_000 });
  await age.getByText("live", { exact: true }).waitFor();
});

test("a throttled read is tried again, and an expired credential says why", async () => {
  const { page } = await console_.blank();
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
  const { page, complaints } = await console_.blank();
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

test("an API that is down from the start says so in each panel, and a retry helps", async () => {
  const { page } = await console_.blank();
  const down = {
    error: {
      code: "not_reachable",
      message: "the API does not answer: connection refused",
      field: null,
      hint: "make up starts a local one",
    },
  };
  await page.route("**/v1/**", (route) => route.fulfill({ status: 502, body: JSON.stringify(down) }));
  await page.goto(`${console_.origin}/demo/limits`);
  await page.getByText("the API does not answer: connection refused").first().waitFor({ timeout: 20_000 });
  await page.getByText("make up starts a local one").first().waitFor();
  await page.unroute("**/v1/**");
  await page.getByRole("button", { name: "Try again" }).first().click();
  await page.getByRole("button", { name: "small" }).waitFor();
});

test("an action that is throttled or refused stays open with its error", async () => {
  const { page } = await console_.open("/demo/schedules/flights/ingest-00000");
  const pause = page.getByRole("button", { name: "Pause", exact: true });
  await pause.first().click();
  const dialog = page.getByRole("dialog");
  for (const [status, message] of [
    [429, "Too Many Requests"],
    [403, "user/ada may not change schedules of demo"],
  ] as const) {
    await page.route("**/pause", (route) => route.fulfill({ status, body: JSON.stringify({ message }) }));
    await dialog.getByRole("button", { name: "Pause", exact: true }).click();
    await dialog.getByText(message).waitFor();
  }
  await page.unroute("**/pause");
  await dialog.getByRole("button", { name: "Pause", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
});

test("a console that only reads offers the command and sends no change", async () => {
  const { page } = await console_.blank();
  await page.route("**/console.json", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), read_only: true } });
  });
  await page.goto(`${console_.origin}/demo/schedules/flights/ingest-00000`);
  await page.getByText("read only", { exact: true }).waitFor();
  const pause = page.getByRole("button", { name: "Pause", exact: true });
  await expect.poll(() => pause.getAttribute("title")).toBe("Read only: shows the command");
  await pause.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("copy the command instead").waitFor();
  expect(await dialog.getByRole("button", { name: "Pause", exact: true }).isDisabled()).toBe(true);
  await page.goto(`${console_.origin}/demo/schedules?q=clean-00008`);
  await page.getByRole("button", { name: "Act on all 1" }).click();
  await dialog.getByText("Would change 1").waitFor();
  expect(await dialog.getByRole("button", { name: "Pause 1" }).isDisabled()).toBe(true);
});

test("reasons of 10,000 characters with markup stay within their rows", async () => {
  const { page, complaints } = await console_.blank();
  const long = `<i>ממתין</i> ${"ש".repeat(5000)} ${"y".repeat(5000)}`;
  await page.route(/\/v1\/.*(jobs|now|why)/, async (route) => {
    const answer = await route.fetch();
    let left = 30;
    const text = (await answer.text()).replace(/"(why|reason)":"[^"]*"/g, (found, key) =>
      left-- > 0 ? `"${key}":${JSON.stringify(long)}` : found,
    );
    await route.fulfill({ response: answer, body: text });
  });
  for (const path of ["", "/queue", "/schedules/flights/ingest-00000"]) {
    await page.goto(`${console_.origin}/demo${path}`);
    await page.getByText("<i>ממתין</i>").first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path).toBe(true);
  }
  expect(await page.locator("i").count()).toBe(0);
  expect(complaints).toEqual([]);
});

test("a namespace without anything says how to begin, in each view", async () => {
  const { page, complaints } = await console_.blank();
  const none = { items: [], next_cursor: null };
  const empty: Record<string, object> = {
    now: {
      at: new Date().toISOString(),
      at_least: false,
      waiting: { count: 0, at_least: false, groups: [], groups_left_out: 0 },
      approvals: { count: 0, at_least: false, schedules: [] },
      running: { count: 0, at_least: false, runs: [] },
      overdue: { count: 0, at_least: false, going_on: 0, items: [] },
      paused: { count: 0, at_least: false, schedules: [] },
    },
    outcomes: { runs: 0, more: false, since: null, states: {}, failed: [] },
    fires: { ...none, at_least: false },
    graph: { around: null, nodes: [], edges: [], at_least: false },
    timeline: {
      names: [],
      workflows: [],
      states: [],
      row: [],
      at: [],
      waited: [],
      starting: [],
      took: [],
      state: [],
      at_least: false,
    },
  };
  // One thing is there; what belongs to it is not.
  const one = /\/(ingest-00000|weather|why|preview|days|quotas)$/;
  await page.route("**/v1/namespaces/demo/**", (route) => {
    const { pathname } = new URL(route.request().url());
    if (one.test(pathname)) return route.continue();
    const last = pathname.split("/").at(-1) ?? "";
    return route.fulfill({ status: 200, body: JSON.stringify(empty[last] ?? none) });
  });
  for (const [path, text] of [
    ["", "sluice init first-app"],
    ["/timeline", "Nothing ran in this range"],
    ["/dags", "No DAGs"],
    ["/graph", "No schedules yet"],
    ["/workflows", "No workflows"],
    ["/messages", "No message has anything left"],
    ["/datasets", "No datasets"],
    ["/limits", "nobody waits in a queue"],
    ["/reprocess", "None yet"],
    ["/dead-letters", "Every event was delivered"],
    ["/report", "Nothing ended on this day"],
    ["/queue", "Nothing waits"],
    ["/schedules", "No schedules yet"],
    ["/runs", "No run fits"],
    [`${S}?tab=runs`, "No runs yet"],
    [`${S}?tab=jobs`, "Nothing waits. The next event"],
    [`${S}?tab=records`, "Nothing was aborted"],
    [`${S}?tab=backfills`, "No backfills"],
    ["/datasets/weather", "No partition is registered"],
    ["/limits?name=pool:demo.small", "No limit is named pool:demo.small"],
  ]) {
    if (path === "") await page.goto(`${console_.origin}/demo`);
    else await go(page, `/demo${path}`);
    await page
      .getByText(text as string)
      .first()
      .waitFor();
  }
  expect(complaints).toEqual([]);
});
