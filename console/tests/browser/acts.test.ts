import { afterAll, beforeAll, expect, test } from "vitest";
import { job, run } from "../../stub/data.ts";
import { type Stage, stage } from "./console.ts";

const S = "/demo/schedules/flights/ingest-00000";
const NAME = "demo.flights.ingest-00000";

let console_: Stage;
beforeAll(async () => {
  console_ = await stage();
});
afterAll(() => console_.close());

/** Each action: where its button is, its command, and the request that it sends. */
const ACTS: [button: string, path: string, command: string, request: string][] = [
  ["Run", S, `sluice run ${NAME}`, `POST /v1/namespaces/demo/apps/flights/schedules/ingest-00000/run`],
  ["Pause", S, `sluice pause ${NAME}`, `POST /v1/namespaces/demo/apps/flights/schedules/ingest-00000/pause`],
  ["Disable", S, `sluice disable ${NAME}`, `POST /v1/namespaces/demo/apps/flights/schedules/ingest-00000/disable`],
  [
    "Cancel the run",
    `/demo/runs/${run(1).run_id}`,
    `sluice runs cancel ${run(1).run_id}`,
    `POST /v1/runs/${run(1).run_id}/cancel`,
  ],
  [
    "Poll now",
    `/demo/runs/${run(1).run_id}`,
    `sluice runs ping ${run(1).run_id}`,
    `POST /v1/runs/${run(1).run_id}/ping`,
  ],
  [
    "Run again",
    `/demo/runs/${run(25).run_id}`,
    `sluice runs rerun ${run(25).run_id}`,
    `POST /v1/runs/${run(25).run_id}/rerun`,
  ],
  [
    "Cancel the job",
    `/demo/jobs/${job(1).job_id}`,
    `sluice jobs cancel ${job(1).job_id}`,
    `POST /v1/jobs/${job(1).job_id}/cancel`,
  ],
  [
    "Redrive",
    "/demo/dead-letters",
    `sluice dead-letters redrive ${run(30).run_id}`,
    `POST /v1/namespaces/demo/dead-letters/${run(30).run_id}/redrive`,
  ],
];

test.each(ACTS)("%s opens a dialog with its command, and acts there alone", async (button, path, command, request) => {
  const { page, context } = await console_.open(path);
  const sent: string[] = [];
  page.on(
    "request",
    (made) => made.method() !== "GET" && sent.push(`${made.method()} ${new URL(made.url()).pathname}`),
  );
  await page.getByRole("button", { name: button, exact: true }).first().click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.locator("code").innerText()).toBe(`$ ${command}`);
  await dialog.getByRole("button", { name: "Copy the command" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(command);
  expect(sent.filter((made) => !made.includes("/glance"))).toEqual([]);
  await dialog.getByRole("button", { name: button, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  expect(sent).toContain(request);
  await context.close();
});

test("the command of a dialog follows its fields", async () => {
  const { page, context } = await console_.open(S);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByLabel("Mode").selectOption("drain");
  await page.getByLabel("Stop the timeouts").check();
  expect(await page.getByRole("dialog").locator("code").innerText()).toBe(
    `$ sluice pause ${NAME} --mode drain --stop-timeouts`,
  );
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await context.close();
});

test("all that fit are acted on: dry run, number typed, progress", async () => {
  const { page, context } = await console_.open("/demo/schedules?q=state:hold");
  const act = page.getByRole("button", { name: /^Act on all/ });
  await page.getByText(/^\d+ of 10,000$/).waitFor();
  const many = Number(/\d+/.exec((await act.innerText()).replace(",", ""))?.[0]);
  expect(many).toBeGreaterThan(100);
  await act.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Resume", exact: true }).click();
  await dialog.getByRole("button", { name: "Dry run" }).click();
  await dialog.getByText(`Would change ${many}`).waitFor();
  const confirm = dialog.getByRole("button", { name: `Resume ${many}` });
  expect(await confirm.isDisabled()).toBe(true);
  await dialog.getByLabel(/to confirm/).fill(String(many));
  await confirm.click();
  await dialog.getByText(`Changed ${many}`).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await context.close();
});

test("a few schedules get their dry run at once, anew for each option", async () => {
  const { page, context } = await console_.open("/demo/schedules?q=clean-00008");
  const asked: string[] = [];
  page.on("request", (made) => made.url().endsWith("/bulk") && asked.push(made.postData() ?? ""));
  await page.getByText("1 of 10,000").waitFor();
  await page.getByRole("button", { name: "Act on all 1" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Would change 1").waitFor();
  await dialog.getByLabel("Mode").selectOption("drain");
  await expect.poll(() => asked.length).toBe(2);
  await dialog.getByText("Would change 1").waitFor();
  expect(asked.map((body) => JSON.parse(body))).toMatchObject([
    { action: "pause", mode: "hold", dry_run: true },
    { action: "pause", mode: "drain", dry_run: true },
  ]);
  await context.close();
});

test("only the DAG acts on the schedules that it owns", async () => {
  const { page, context } = await console_.open("/demo/schedules?all=yes&q=nightly");
  await page.getByRole("link", { name: "flights.nightly/join" }).waitFor();
  expect(await page.getByRole("button", { name: /^Act on all/ }).isDisabled()).toBe(true);
  await page.getByLabel(/^with 1 of DAGs/).uncheck();
  await page.getByText(/No schedule fits/).waitFor();
  await context.close();
});

test("keys: go, move, open, choose, filter, palette, zone, help", async () => {
  const { page, context } = await console_.open("/demo");
  await page.getByText("Held up by").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { name: "Schedules" }).waitFor();
  await page.getByText("flights.ingest-00000").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "Act on 1 chosen" }).waitFor();
  await page.keyboard.press("c");
  await page.getByText("The command is copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    "sluice describe schedule demo.weather.ingest-00001",
  );
  await page.keyboard.press("/");
  await page.keyboard.type("clean-00008");
  await page.getByText("1 of 10,000").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("z");
  await page.waitForURL(/zone=local/);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Name, id or view" }).fill("report-00032");
  await page.getByRole("listbox", { name: "What fits" }).getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "flights.report-00032" }).waitFor();
  await context.close();
});

test("a key opens a dialog and never acts by itself", async () => {
  const { page, context } = await console_.open(S);
  await page.getByText("reaching COMPLETED").first().waitFor();
  const sent: string[] = [];
  page.on("request", (made) => made.method() !== "GET" && sent.push(made.url()));
  for (const key of ["p", "r"]) {
    await page.keyboard.press(key);
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  expect(sent).toEqual([]);
  await context.close();
});
