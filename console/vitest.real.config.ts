import { defineConfig } from "vitest/config";

// The views on the product, which `tests/console/test_real_answers.py` starts.
export default defineConfig({
  test: { include: ["tests/browser/real.ts"], environment: "node", testTimeout: 60_000, hookTimeout: 60_000 },
});
