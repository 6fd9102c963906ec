// Pictures of views: `node tests/browser/shots.ts URL FOLDER path...`, at 1280 and 1920 px, light and dark.
//
// A picture is taken once nothing more is loading, at most WAIT ms (60,000) later.

import { mkdirSync } from "node:fs";
import { launch } from "./browser.ts";

const [url = "", folder = "shots", ...paths] = process.argv.slice(2);
const { origin, hash } = new URL(url);
mkdirSync(folder, { recursive: true });
const browser = await launch();
const sizes = process.env.SIZES?.split(",").map(Number) ?? [1280, 1920];
const themes = (process.env.THEMES?.split(",") ?? ["light", "dark"]) as ("light" | "dark")[];
const page = await browser.newPage();
page.on(
  "console",
  (message) => message.type() === "error" && console.log(`${message.text()} ${message.location().url}`),
);
page.on("pageerror", (error) => console.log(`page error: ${error.message}`));
await page.goto(`${origin}/${hash}`);
for (const path of paths) {
  await page.goto(origin + path);
  await page.locator("main h1").first().waitFor();
  await page.waitForTimeout(500);
  await page
    .waitForFunction(() => !document.querySelector(".loading"), null, { timeout: Number(process.env.WAIT ?? 60_000) })
    .catch(() => console.log(`${path} is still loading`));
  const name =
    path
      .split("/")
      .slice(2)
      .join("-")
      .replaceAll(/[^\w.-]/g, "_")
      .slice(0, 60) || "home";
  for (const width of sizes) {
    await page.setViewportSize({ width, height: width === 1280 ? 800 : 1080 });
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForTimeout(300);
      await page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png` });
    }
  }
}
await browser.close();
