// What axe finds on a page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

/** The part of axe that is used. */
interface Axe {
  run: (page: Document, options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG A and AA that a page breaks, each with its element. */
export const faultsOf = (page: Page): Promise<string[]> =>
  broken(page, ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]);

/** The same in both themes, with the theme. In the dark one, the rules about colours: no other one depends on it. */
export async function faultsInThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await faultsOf(page);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await broken(page, { type: "rule", values: ["color-contrast", "link-in-text-block"] });
  return [...light.map((fault) => `light ${fault}`), ...dark.map((fault) => `dark ${fault}`)];
}

async function broken(page: Page, runOnly: object): Promise<string[]> {
  // As a debugger: the policy of the page allows no script from elsewhere. A page keeps it.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  return page.evaluate(async (runOnly) => {
    const result = await (window as unknown as { axe: Axe }).axe.run(document, { runOnly });
    return result.violations.flatMap((rule) =>
      rule.nodes.slice(0, 3).map((node) => `${rule.id}: ${node.html.slice(0, 160)}`),
    );
  }, runOnly);
}
