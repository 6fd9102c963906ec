// The console under test: the stand-in with generated data, or the address in CONSOLE_URL (with its token).

import type { Browser, BrowserContext, Page } from "playwright-core";
import { start, TOKEN } from "../../stub/server.ts";
import { launch } from "./browser.ts";

export interface Stage {
  browser: Browser;
  origin: string;
  /** A page in a context of its own, at a path, with the token. What the page complains of is in `complaints`. */
  open: (path: string, options?: Options) => Promise<{ page: Page; context: BrowserContext; complaints: string[] }>;
  close: () => Promise<void>;
}

interface Options {
  theme?: "light" | "dark";
  width?: number;
  token?: string;
}

export async function stage({ delay }: { delay?: () => number } = {}): Promise<Stage> {
  const server = await start(0, { delay });
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  const browser = await launch();
  return {
    browser,
    origin,
    async open(path, { theme = "light", width = 1280, token = TOKEN } = {}) {
      const context = await browser.newContext({
        viewport: { width, height: 800 },
        colorScheme: theme,
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(error.message));
      await page.goto(`${origin}${path}#token=${token}`);
      return { page, context, complaints };
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
