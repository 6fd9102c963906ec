// The console under test: the stand-in with generated data, or the one at CONSOLE_URL, an address with its token as
// `sluice console --no-open` prints it. The namespace of that one is in CONSOLE_NAMESPACE.

import type { Browser, BrowserContext, Page } from "playwright-core";
import { start, TOKEN } from "../../stub/server.ts";
import { launch } from "./browser.ts";

export interface Stage {
  browser: Browser;
  origin: string;
  token: string;
  namespace: string;
  /** A page in a context of its own, at a path, with the token. What the page complains of is in `complaints`, and
   * each answer of the API with a status from 400 on is in `refused`. */
  open: (
    path: string,
    options?: Options,
  ) => Promise<{ page: Page; context: BrowserContext; complaints: string[]; refused: string[] }>;
  close: () => Promise<void>;
}

interface Options {
  theme?: "light" | "dark";
  width?: number;
  token?: string;
}

interface Served {
  origin: string;
  token: string;
  namespace: string;
  end: () => Promise<void>;
}

async function served(delay?: () => number): Promise<Served> {
  const { CONSOLE_URL, CONSOLE_NAMESPACE = "demo" } = process.env;
  if (CONSOLE_URL) {
    const { origin, hash } = new URL(CONSOLE_URL);
    return { origin, token: hash.replace("#token=", ""), namespace: CONSOLE_NAMESPACE, end: async () => {} };
  }
  const server = await start(0, { delay });
  const address = server.address();
  return {
    origin: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    token: TOKEN,
    namespace: "demo",
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export async function stage({ delay }: { delay?: () => number } = {}): Promise<Stage> {
  const { origin, token: known, namespace, end } = await served(delay);
  const browser = await launch();
  return {
    browser,
    origin,
    token: known,
    namespace,
    async open(path, { theme = "light", width = 1280, token = known } = {}) {
      const context = await browser.newContext({
        viewport: { width, height: 800 },
        colorScheme: theme,
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const page = await context.newPage();
      const complaints: string[] = [];
      const refused: string[] = [];
      page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(error.message));
      page.on("response", (answer) => {
        const { pathname, search } = new URL(answer.url());
        if (answer.status() >= 400)
          refused.push(`${answer.status()} ${answer.request().method()} ${pathname}${search}`);
      });
      await page.goto(`${origin}${path}#token=${token}`);
      return { page, context, complaints, refused };
    },
    async close() {
      await browser.close();
      await end();
    },
  };
}
