// Figures of views with the data of a real API: node tests/browser/at-size.ts ADDRESS VIEWS TIMES
//
// ADDRESS is what `sluice console --no-open` prints, VIEWS a list as JSON, and TIMES how often each view is opened, each
// time by a new browser context. Writes a list as JSON: for each view and each time the ms to its first rows, the longest
// task, and the requests of the API until it was quiet.

import { launch } from "./browser.ts";

interface View {
  name: string;
  path: string;
  /** What appears with the first rows. */
  rows: string;
  /** Words to type into the palette once the page has all its answers; the time begins with the first of them. */
  words?: string;
}

const [address = "", views = "[]", times = "1"] = process.argv.slice(2);
const url = new URL(address);
const QUIET_MS = 400;
const PATIENCE_MS = 60_000;

const browser = await launch();

async function open(view: View) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const seen = { longest: 0 };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ type: "longtask", buffered: true });
  });
  const requests: { method: string; path: string; body: string | null; status: number; bytes: number; ms: number }[] =
    [];
  let bytesOfPage = 0;
  let pending = 0;
  let last = Date.now();
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/v1/")) pending += 1;
  });
  page.on("requestfailed", (request) => {
    if (new URL(request.url()).pathname.startsWith("/v1/")) pending -= 1;
  });
  page.on("requestfinished", async (request) => {
    const to = new URL(request.url());
    const answer = await request.response();
    const { responseBodySize } = await request.sizes();
    if (!to.pathname.startsWith("/v1/")) {
      bytesOfPage += responseBodySize;
      return;
    }
    pending -= 1;
    last = Date.now();
    requests.push({
      method: request.method(),
      path: to.pathname + to.search,
      body: request.postData(),
      status: answer?.status() ?? 0,
      bytes: responseBodySize,
      ms: Math.round(request.timing().responseEnd),
    });
  });
  async function quiet(since: number) {
    while (pending > 0 || Date.now() - last < QUIET_MS) {
      if (Date.now() - since > PATIENCE_MS) break;
      await page.waitForTimeout(50);
    }
  }
  let began = Date.now();
  await page.goto(`${url.origin}${view.path}${url.hash}`, { waitUntil: "commit" });
  if (view.words) {
    await page.locator(".big-figure").first().waitFor({ timeout: PATIENCE_MS });
    await quiet(began);
    requests.length = 0;
    began = Date.now();
    await page.keyboard.press("Control+k");
    await page.locator(".palette input").fill(view.words);
  }
  try {
    await page.locator(view.rows).first().waitFor({ timeout: PATIENCE_MS });
  } catch (error) {
    const text = await page.locator("body").innerText();
    const asked = requests.map(({ path, status, ms }) => `${status} in ${ms} ms: ${path}`);
    throw new Error(`${view.name} shows no rows: ${text.slice(0, 600)}\n${asked.join("\n")}`, { cause: error });
  }
  const first = Date.now() - began;
  await quiet(began);
  const whole = Math.max(first, last - began);
  const longest = await page.evaluate(() => (window as unknown as { seen: { longest: number } }).seen.longest);
  await context.close();
  return { view: view.name, first, whole, longest: Math.round(longest), bytesOfPage, requests };
}

const found = [];
for (const view of JSON.parse(views) as View[]) {
  for (let time = 0; time < Number(times); time += 1) found.push(await open(view));
}
await browser.close();
console.log(JSON.stringify(found));
