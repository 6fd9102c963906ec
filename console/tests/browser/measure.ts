// Figures at size: `npm run measure` with the stand-in, or CONSOLE_URL=http://...#token=... for another console.
//
// First rows, the longest task, frames while scrolling, and 100,000 bars of the timeline. Ends with 1 beyond a bound.

import type { Page } from "playwright-core";
import { start, TOKEN } from "../../stub/server.ts";
import { launch } from "./browser.ts";

const BOUNDS = { firstRowsMs: 1000, longestTaskMs: 150, frameP95Ms: 34, frameGapMs: 250 };

const server = process.env.CONSOLE_URL ? null : await start(0);
const address = server?.address();
const url = new URL(
  process.env.CONSOLE_URL ?? `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/#token=${TOKEN}`,
);
const namespace = process.env.CONSOLE_NAMESPACE ?? "demo";
const browser = await launch();

async function fresh(path: string, rows: string): Promise<{ page: Page; first: number }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${url.origin}/${url.hash}`);
  await page.addInitScript(() => {
    const seen = { longest: 0, bytes: 0 };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ type: "longtask", buffered: true });
  });
  const began = Date.now();
  await page.goto(url.origin + path);
  await page.locator(rows).first().waitFor();
  return { page, first: Date.now() - began };
}

const seen = (page: Page) => page.evaluate(() => (window as unknown as { seen: { longest: number } }).seen.longest);

/** The gaps between frames in ms, while a region scrolls for some seconds. */
const frames = (page: Page, region: string) =>
  page.evaluate(async (selector) => {
    const element = document.querySelector(selector);
    if (!element) throw new Error(`nothing to scroll: ${selector}`);
    const gaps: number[] = [];
    let before = performance.now();
    const end = before + 4000;
    while (before < end) {
      const at: number = await new Promise((resolve) => requestAnimationFrame(resolve));
      gaps.push(at - before);
      before = at;
      element.scrollTop += 37;
    }
    gaps.sort((a, b) => a - b);
    return { p95: gaps[Math.floor(gaps.length * 0.95)] ?? 0, most: gaps.at(-1) ?? 0 };
  }, region);

const results: Record<string, Record<string, number>> = {};
const view = async (name: string, path: string, rows: string, region: string, settle: number) => {
  const { page, first } = await fresh(`/${namespace}${path}`, rows);
  await page.waitForTimeout(settle);
  const scrolled = await frames(page, region);
  results[name] = {
    firstRowsMs: first,
    longestTaskMs: Math.round(await seen(page)),
    frameP95Ms: Math.round(scrolled.p95),
    frameGapMs: Math.round(scrolled.most),
  };
  await page.close();
};

await view("schedules", "/schedules", '[role="row"] a.name', ".rows-body", 2500);
await view("queue", "/queue", '[role="row"] a.name', ".rows-body", 2500);
await view("runs", "/runs", '[role="row"] a.name', ".rows-body", 1500);
await view("timeline of 100,000", "/timeline?span=1440", ".timeline-labels a", ".timeline-box", 8000);
const { page, first } = await fresh(`/${namespace}`, ".big-figure");
results.home = { firstRowsMs: first, longestTaskMs: Math.round(await seen(page)) };
await browser.close();
server?.closeAllConnections();
server?.close();

console.log(JSON.stringify(results, null, 2));
const beyond = Object.entries(results).flatMap(([name, figures]) =>
  Object.entries(BOUNDS)
    .filter(([figure, bound]) => (figures[figure] ?? 0) > bound)
    .map(([figure, bound]) => `${name}: ${figure} ${figures[figure]}, expected at most ${bound}`),
);
if (beyond.length > 0) {
  console.error(beyond.join("\n"));
  process.exitCode = 1;
}
