// The pictures of the documents: `node tests/browser/pictures.ts` takes those of the stand-in and its generated data,
// `node tests/browser/pictures.ts URL NAMESPACE` those with the data of `make demo`.
//
// URL is the address that `sluice console --no-open` prints. Each picture goes to docs/pictures and has at most 300 kB.

import { statSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../stub/data.ts";
import { FIRE } from "../../stub/fires.ts";
import { launch } from "./browser.ts";
import { stage } from "./console.ts";

const MOST = 300_000;
const FOLDER = join(import.meta.dirname, "../../../docs/pictures");

interface Picture {
  name: string;
  path: string;
  /** A text that only its data brings. */
  text: string | RegExp;
  height: number;
  dark?: boolean;
}

/** With 10,000 schedules, runs that failed and 5,200 waiting jobs. */
const GENERATED: Picture[] = [
  { name: "home", path: "/demo", text: "Held up by", height: 800 },
  { name: "schedules", path: "/demo/schedules", text: /^10,000/, height: 700 },
  { name: "queue", path: "/demo/queue?open=workflow:demo.flights.clean", text: /5,200 wait/, height: 640 },
  { name: "run", path: `/demo/runs/${run(25).run_id}?tab=log`, text: /WARN/, height: 640 },
  { name: "fire", path: `/demo/fires/${FIRE}`, text: "AccessDenied", height: 500 },
  { name: "dag", path: "/demo/dags/flights/nightly?node=evaluate", text: "needs jfk COMPLETED", height: 760 },
  { name: "timeline-dark", path: "/demo/timeline", text: /\d attempts/, height: 640, dark: true },
];

const demo = (namespace: string): Picture[] => [
  { name: "schedule", path: `/${namespace}/schedules/flights/join`, text: "waits for", height: 800 },
  { name: "timeline", path: `/${namespace}/timeline?span=15`, text: /\d attempts/, height: 420 },
];

const [url, namespace = ""] = process.argv.slice(2);
const stand = url ? null : await stage();
const browser = stand?.browser ?? (await launch());
const { origin, hash } = url ? new URL(url) : { origin: stand?.origin, hash: `#token=${stand?.token}` };
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.goto(`${origin}/${hash}`);
for (const { name, path, text, height, dark = false } of url ? demo(namespace) : GENERATED) {
  await page.setViewportSize({ width: 1280, height });
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  await page.goto(origin + path);
  await page.getByText(text).first().waitFor();
  await page.locator(".stage").waitFor();
  await page.waitForFunction(() => !document.querySelector(".loading"), null, { timeout: 60_000 });
  const file = join(FOLDER, `console-${name}.png`);
  await page.screenshot({ path: file });
  const { size } = statSync(file);
  console.log(`${file} ${size}`);
  if (size > MOST) throw new Error(`expected at most ${MOST} bytes, got ${size}`);
}
await (stand ?? browser).close();
