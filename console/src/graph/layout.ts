// Where the nodes of a graph stand, computed by dagre in a worker, so that the page stays alive meanwhile.

export interface Box {
  id: string;
  width: number;
  height: number;
}

export interface Arrow {
  from: string;
  to: string;
}

export interface Layout {
  width: number;
  height: number;
  /** The centres of the boxes. */
  boxes: Record<string, { x: number; y: number }>;
  /** The points of each arrow, in the order of the arrows. */
  arrows: { x: number; y: number }[][];
}

export interface Task {
  number: number;
  boxes: Box[];
  arrows: Arrow[];
}

let worker: Worker | undefined;
let tasks = 0;
const waiting = new Map<number, (layout: Layout) => void>();

/** Lay a graph out from left to right. */
export function layOut(boxes: Box[], arrows: Arrow[]): Promise<Layout> {
  if (!worker) {
    worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<{ number: number; layout: Layout }>) => {
      waiting.get(data.number)?.(data.layout);
      waiting.delete(data.number);
    };
  }
  const number = ++tasks;
  const answer = new Promise<Layout>((resolve) => waiting.set(number, resolve));
  worker.postMessage({ number, boxes, arrows } satisfies Task);
  return answer;
}
