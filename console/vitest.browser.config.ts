import { defineConfig } from "vitest/config";

// The tests in the browser share one process and one Chromium, so they run one after another.
export default defineConfig({
  test: {
    include: ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
