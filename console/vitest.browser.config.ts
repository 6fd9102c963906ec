import { defineConfig } from "vitest/config";

// The tests in the browser share one server and one Chromium, so they run one after another.
export default defineConfig({
  test: {
    include: ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
