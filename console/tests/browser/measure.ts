// Figures at size: `npm run measure` with the stand-in, or CONSOLE_URL=http://...#token=... for another console.
//
// Of each view the ms to its first rows and its longest task; of those with many rows or bars also the frames from the
// first rows on: while the others come, and while the view scrolls. Writes them as JSON with their bounds, which
// `make bench ONLY=frames` checks and records.

import { job, run } from "../../stub/data.ts";
import { start, TOKEN } from "../../stub/server.ts";
import { launch } from "./browser.ts";

const BOUNDS = { firstRowsMs: 1000, longestTaskMs: 150, frameP95Ms: 34, frameGapMs: 250 };
const only = process.argv[2]?.split(",");
const FIRST: Record<string, number> = { Home: 1500, Queue: 2000 };

interface View {
  name: string;
  path: string;
  /** What appears with the first rows. */
  rows: string;
  /** What scrolls, and the text that says that everything has come. */
  scrolls?: string;
  whole?: string;
}

const ROW = '[role="row"] a.name';
const TABLE = "table tbody tr";
const SCHEDULE = "/schedules/flights/ingest-00000";
const VIEWS: View[] = [
  { name: "Home", path: "", rows: ".big-figure" },
  { name: "Schedules", path: "/schedules", rows: ROW, scrolls: ".rows-body", whole: "text=/^10,000$/" },
  { name: "Schedule", path: SCHEDULE, rows: '[role="row"] a' },
  { name: "Versions", path: `${SCHEDULE}?tab=versions`, rows: TABLE },
  { name: "Timeline, 1 h", path: "/timeline", rows: ".timeline-labels a" },
  {
    name: "Timeline, 24 h",
    path: "/timeline?span=1440",
    rows: ".timeline-labels a",
    scrolls: ".timeline-box",
    whole: "text=/^100,000 attempts$/",
  },
  { name: "Timeline, table", path: "/timeline?span=1440&tab=table", rows: ROW, scrolls: ".rows-body" },
  { name: "Queue", path: "/queue", rows: ROW, scrolls: ".rows-body", whole: "text=/^(at least )?5,200 wait/" },
  { name: "Job", path: `/jobs/${job(1).job_id}`, rows: ".page-head .state" },
  { name: "Runs", path: "/runs", rows: ROW, scrolls: ".rows-body", whole: "text=/the newest 500/" },
  { name: "Run", path: `/runs/${run(25).run_id}`, rows: ".page-head .state" },
  { name: "Lineage", path: "/graph", rows: ".graph .node" },
  { name: "DAG", path: "/dags/flights/nightly", rows: TABLE },
  { name: "Dataset", path: "/datasets/weather", rows: ".calendar-cell.ok" },
  { name: "Limits", path: "/limits?name=pool:demo.small", rows: '[role="row"] button.name' },
  { name: "Dead letters", path: "/dead-letters", rows: ROW },
  { name: "Report", path: "/report", rows: TABLE },
];

const server = process.env.CONSOLE_URL ? null : await start(0);
const address = server?.address();
const url = new URL(
  process.env.CONSOLE_URL ?? `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/#token=${TOKEN}`,
);
const namespace = process.env.CONSOLE_NAMESPACE ?? "demo";
const browser = await launch();

interface Seen {
  longest: number;
  gaps: number[];
}

async function measured({ name, path, rows, scrolls, whole }: View) {
  // A context of its own for each view: nothing is cached.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  let bytes = 0;
  page.on("requestfinished", async (request) => {
    if (!new URL(request.url()).pathname.startsWith("/v1/")) bytes += (await request.sizes()).responseBodySize;
  });
  await page.addInitScript(() => {
    const seen: Seen = { longest: 0, gaps: [] };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ type: "longtask", buffered: true });
    let before = performance.now();
    const next = (at: number) => {
      seen.gaps.push(at - before);
      before = at;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  const began = Date.now();
  await page.goto(`${url.origin}/${namespace}${path}${url.hash}`, { waitUntil: "commit" });
  await page.locator(rows).first().waitFor();
  const firstRowsMs = Date.now() - began;
  const frames: Record<string, number> = {};
  if (scrolls) {
    await page.evaluate(() => {
      (window as unknown as { seen: Seen }).seen.gaps.length = 0;
    });
    if (whole) await page.locator(whole).first().waitFor({ timeout: 60_000 });
    await page.evaluate(async (selector) => {
      const element = document.querySelector(selector);
      if (!element) throw new Error(`nothing to scroll: ${selector}`);
      const end = performance.now() + 4000;
      while (performance.now() < end) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        element.scrollTop += 37;
      }
    }, scrolls);
    const gaps = await page.evaluate(() => (window as unknown as { seen: Seen }).seen.gaps.slice());
    gaps.sort((a, b) => a - b);
    frames.frameP95Ms = Math.round(gaps[Math.floor(gaps.length * 0.95)] ?? 0);
    frames.frameGapMs = Math.round(gaps.at(-1) ?? 0);
  } else await page.waitForTimeout(1500);
  const longest = await page.evaluate(() => (window as unknown as { seen: Seen }).seen.longest);
  await context.close();
  return { view: name, firstRowsMs, longestTaskMs: Math.round(longest), ...frames, firstLoadBytes: bytes };
}

// The first page also starts the browser and the stand-in: it does not count.
await measured(VIEWS[1] as View);
const found = [];
for (const view of VIEWS) if (!only || only.includes(view.name)) found.push(await measured(view));
await browser.close();
server?.closeAllConnections();
server?.close();

const bounds = (view: string) => ({ ...BOUNDS, firstRowsMs: FIRST[view] ?? BOUNDS.firstRowsMs });
const list = found.find((one) => one.view === "Schedules");
console.log(
  JSON.stringify(
    {
      firstLoadBytes: list?.firstLoadBytes ?? 0,
      views: found.map(({ firstLoadBytes, ...figures }) => ({ ...figures, bounds: bounds(figures.view) })),
    },
    null,
    2,
  ),
);
