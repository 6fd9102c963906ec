// The views with the answers of the product: `tests/console/test_real_answers.py` starts the product and runs this by
// `npm run real`. CONSOLE_URL is its address, CONSOLE_VIEWS a list as JSON of views with their paths and texts.

import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { faultsOf } from "./axe.ts";
import { type Stage, stage } from "./console.ts";

interface View {
  name: string;
  path: string;
  /** Texts that only its data bring. */
  texts: string[];
}

const views = JSON.parse(process.env.CONSOLE_VIEWS ?? "[]") as View[];
if (!process.env.CONSOLE_URL || views.length === 0) throw new Error("expected CONSOLE_URL and CONSOLE_VIEWS, got none");

let console_: Stage;
beforeAll(async () => {
  console_ = await stage();
});
afterAll(() => console_.close());

test.each(views)("$name", async ({ path, texts }) => {
  const { page, context, complaints, refused } = await console_.open(`/${console_.namespace}${path}`);
  for (const text of texts) {
    await page.getByText(text).filter({ visible: true }).first().waitFor({ timeout: 20_000 });
  }
  await expect.poll(() => page.locator(".loading").count(), { timeout: 20_000 }).toBe(0);
  expect(refused, "each answer is below 400").toEqual([]);
  expect(complaints).toEqual([]);
  expect(await page.locator(".failure").count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
  await context.close();
});

test("a page on another port with a stolen token can neither read, post nor frame", async () => {
  const other = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/html" });
    response.end("<!doctype html><title>elsewhere</title><form method=post></form><iframe></iframe>");
  });
  const port = await new Promise<number>((resolve) =>
    other.listen(0, "127.0.0.1", () => {
      const address = other.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    }),
  );
  const page = await console_.browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  const token = new URL(process.env.CONSOLE_URL ?? "").hash.replace("#token=", "");
  const api = `${console_.origin}/v1/namespaces/${console_.namespace}`;
  const run = `${api}/apps/flights/schedules/clean/run`;
  const results = await page.evaluate(
    async ({ api, run, token }) => {
      const tried = async (url: string, options: RequestInit) => {
        try {
          const answer = await fetch(url, options);
          return answer.type === "opaque" ? "unread" : `read ${answer.status}`;
        } catch {
          return "refused";
        }
      };
      const headers = { "X-Sluice-Token": token };
      return {
        read: await tried(`${api}/schedules`, { headers }),
        plain: await tried(`${api}/schedules`, { mode: "no-cors" }),
        post: await tried(run, { method: "POST", headers, body: "{}" }),
        simple: await tried(run, { method: "POST", mode: "no-cors", body: "{}" }),
        about: await tried(`${api.split("/v1/")[0]}/console.json`, { headers }),
      };
    },
    { api, run, token },
  );
  // Nothing is read, not even without its content. Whether a run began is counted where the product is.
  const refused = "refused";
  expect(results).toEqual({ read: refused, plain: refused, post: refused, simple: refused, about: refused });
  await page.evaluate((url) => {
    (document.querySelector("iframe") as HTMLIFrameElement).src = url;
  }, `${console_.origin}/#token=${token}`);
  await expect.poll(() => page.frames().at(-1)?.url()).toMatch(/^chrome-error:/);
  // A form may be sent to anywhere, and leads there; the proxy refuses it.
  const answered = page.waitForResponse((answer) => answer.url() === run);
  await page.evaluate((url) => {
    const form = document.querySelector("form") as HTMLFormElement;
    form.action = url;
    form.submit();
  }, run);
  expect([401, 403]).toContain((await answered).status());
  await page.close();
  other.close();
});
