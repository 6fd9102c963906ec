// The pictures of the documents, from the data of `make demo`: `node tests/browser/pictures.ts URL NAMESPACE [DAG]`.
//
// URL is the address that `sluice console --no-open` prints. DAG is the full name of a DAG of any namespace, such as that
// of `make example NAME=retraining.retrain`. Each picture goes to docs/pictures and has at most 300 kB.

import { statSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./browser.ts";

const MOST = 300_000;
const FOLDER = join(import.meta.dirname, "../../../docs/pictures");
const [url = "", namespace = "", dag = ""] = process.argv.slice(2);
const { origin, hash } = new URL(url);

/** Picture -> address, a text that only its data brings, and its height. */
const PICTURES: Record<string, [path: string, text: string | RegExp, height: number]> = {
  home: [`/${namespace}`, "Held up by", 660],
  schedule: [`/${namespace}/schedules/flights/join`, "waits for", 800],
  timeline: [`/${namespace}/timeline?span=15`, /\d attempts/, 420],
  ...(dag ? { dag: [`/dags/${dag}`, /^Run /, 700] } : {}),
};

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
const page = await context.newPage();
await page.goto(`${origin}/${hash}`);
for (const [name, [path, text, height]] of Object.entries(PICTURES)) {
  await page.setViewportSize({ width: 1280, height });
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
await browser.close();
