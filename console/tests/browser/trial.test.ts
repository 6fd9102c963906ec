import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stage, stage } from "./console.ts";
import { TASKS, tried } from "./trial.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await stage();
});
afterAll(() => console_.close());

test.each(TASKS)("$name", async (task) => {
  const { clicks, keys } = await tried(console_, task);
  expect(clicks + keys).toBeLessThanOrEqual(task.most);
});
