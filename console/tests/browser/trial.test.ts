import { afterEach, beforeAll, expect, test } from "vitest";
import { type Stage, sharedStage } from "./console.ts";
import { TASKS, tried } from "./trial.ts";

let console_: Stage;
beforeAll(async () => {
  console_ = await sharedStage();
});
afterEach(() => console_.closePages());

test.each(TASKS)("$name", async (task) => {
  const { clicks, keys } = await tried(console_, task);
  expect(clicks + keys).toBeLessThanOrEqual(task.most);
});
