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
export async function faultsOf(page: Page): Promise<string[]> {
  // As a debugger: the policy of the page allows no script from elsewhere.
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const result = await (window as unknown as { axe: Axe }).axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    });
    return result.violations.flatMap((rule) =>
      rule.nodes.slice(0, 3).map((node) => `${rule.id}: ${node.html.slice(0, 160)}`),
    );
  });
}
