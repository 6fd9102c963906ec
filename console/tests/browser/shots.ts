// Pictures of views: `node tests/browser/shots.ts URL FOLDER path...`, at 1280 and 1920 px, light and dark.

import { mkdirSync } from "node:fs";
import { launch } from "./browser.ts";

const [url = "", folder = "shots", ...paths] = process.argv.slice(2);
const { origin, hash } = new URL(url);
mkdirSync(folder, { recursive: true });
const browser = await launch();
const sizes = process.env.SIZES?.split(",").map(Number) ?? [1280, 1920];
const themes = process.env.THEMES?.split(",") ?? ["light", "dark"];
for (const width of sizes) {
  for (const theme of themes) {
    const context = await browser.newContext({
      viewport: { width, height: width === 1280 ? 800 : 1080 },
      colorScheme: theme as "light" | "dark",
    });
    const page = await context.newPage();
    page.on(
      "console",
      (message) => message.type() === "error" && console.log(`${message.text()} ${message.location().url}`),
    );
    page.on("pageerror", (error) => console.log(`page error: ${error.message}`));
    await page.goto(`${origin}/${hash}`);
    for (const path of paths) {
      await page.goto(origin + path);
      await page.waitForTimeout(Number(process.env.WAIT ?? 900));
      const name = path.split("?")[0]?.split("/").slice(2, 5).join("-") || "home";
      await page.screenshot({ path: `${folder}/${name}-${width}-${theme}.png` });
    }
    await context.close();
  }
}
await browser.close();
