import type { Task } from "./layout";
import { place } from "./place";

addEventListener("message", ({ data: { number, boxes, arrows } }: MessageEvent<Task>) => {
  postMessage({ number, layout: place(boxes, arrows) });
});
