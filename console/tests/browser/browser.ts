// The browser of the tests: the one that the npm package ships. Not with its default arguments, which switch the
// security of the web off: tests of policies would prove nothing.

import chromium from "@sparticuz/chromium";
import { type Browser, chromium as playwright } from "playwright-core";

export async function launch(): Promise<Browser> {
  return playwright.launch({
    executablePath: process.env.CONSOLE_CHROMIUM ?? (await chromium.executablePath()),
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    headless: true,
  });
}
