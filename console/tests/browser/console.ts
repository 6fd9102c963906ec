// The console under test: the stand-in with generated data, or the one at CONSOLE_URL, an address with its token as
// `sluice console --no-open` prints it. The namespace of that one is in CONSOLE_NAMESPACE.

import type { Browser, Page } from "playwright-core";
import { start, TOKEN } from "../../stub/server.ts";
import { launch } from "./browser.ts";

export interface Stage {
  browser: Browser;
  origin: string;
  token: string;
  namespace: string;
  /** A page at a path, with the token, and without what another page has stored. What the page complains of is in `complaints`, and
   * each answer of the API with a status from 400 on is in `refused`. */
  open: (
    path: string,
    options?: Options,
  ) => Promise<{ page: Page; context: { close: () => Promise<void> }; complaints: string[]; refused: string[] }>;
  /** A page that has loaded nothing yet, and has the token: for tests that change answers before the first one. */
  blank: (options?: Pick<Options, "width">) => ReturnType<Stage["open"]>;
  /** The same without a load: one page goes on to the path as a click on a link does, and stays open. For tests that
   * change no answer of the API. `closePages` closes it, too. */
  walk: Stage["open"];
  /** Close all pages, also those that a test that failed has left. */
  closePages: () => Promise<void>;
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

/** Go to a path within a page, as a click on a link does. */
export const go = (page: Page, path: string) =>
  page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, path);

/** Close a page, and forget what it has stored for others, such as its theme. The others keep their token. */
async function leave(page: Page, token: string): Promise<void> {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  const forget = (known: string) => {
    localStorage.clear();
    localStorage.setItem("sluice-token", known);
  };
  await page.evaluate(forget, token).catch(() => {});
  await page.close();
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

/** The stage of all files of tests, which run in one process one after another. It ends with the process. */
let ofAll: Promise<Stage> | undefined;

/** One stand-in, one browser and one context, which keeps the scripts that it has read. The stand-in keeps nothing of
 * what a test sends, and a page that is closed leaves nothing behind. */
export function sharedStage(): Promise<Stage> {
  ofAll ??= stage();
  return ofAll;
}

export async function stage({ delay }: { delay?: () => number } = {}): Promise<Stage> {
  const { origin, token: known, namespace, end } = await served(delay);
  const browser = await launch();
  let walker: Awaited<ReturnType<Stage["open"]>> | undefined;
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  await context.addInitScript((token) => {
    if (location.protocol === "http:" && !localStorage.getItem("sluice-token"))
      localStorage.setItem("sluice-token", token);
  }, known);
  const made = async ({ theme = "light", width = 1280 }: Options = {}) => {
    const page = await context.newPage();
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: theme });
    const complaints: string[] = [];
    const refused: string[] = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("response", (answer) => {
      const { pathname, search } = new URL(answer.url());
      if (answer.status() >= 400) refused.push(`${answer.status()} ${answer.request().method()} ${pathname}${search}`);
    });
    return { page, complaints, refused, context: { close: () => leave(page, known) } };
  };
  const open: Stage["open"] = async (path, options = {}) => {
    const found = await made(options);
    await found.page.goto(`${origin}${path}#token=${options.token ?? known}`);
    return found;
  };
  return {
    browser,
    origin,
    token: known,
    namespace,
    open,
    blank: made,
    async walk(path, options = {}) {
      const { theme = "light", width = 1280 } = options;
      if (!walker || walker.page.isClosed()) walker = await open(path, options);
      else {
        const { page, complaints, refused } = walker;
        complaints.length = 0;
        refused.length = 0;
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme: theme });
        // What a test has opened over the page goes with it.
        if ((await page.getByRole("dialog").count()) > 0) {
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
        }
        // By a view between them, so that each begins anew.
        await go(page, "/demo/no/such/view");
        await page.getByText("No view has this address").waitFor();
        await go(page, path);
      }
      return { ...walker, context: { close: async () => {} } };
    },
    async closePages() {
      for (const page of context.pages()) await leave(page, known);
    },
    async close() {
      await browser.close();
      await end();
    },
  };
}
