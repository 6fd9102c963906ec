// The layout of a graph, computed in a worker, so that the page stays alive meanwhile.

export interface Size {
  width: number;
  height: number;
}

export interface Spot {
  x: number;
  y: number;
}

export interface Box extends Size {
  id: string;
}

/** At most one between two nodes in each direction. `label` is the size of its text, if it has one. */
export interface Arrow {
  from: string;
  to: string;
  label?: Size;
}

export interface Way {
  from: string;
  to: string;
  /** Curves and straight lines by turns: from the first to the second a curve, to the third a line, and so on. */
  spots: Spot[];
  /** The centre of its text. */
  label?: Spot;
}

export interface Layout extends Size {
  /** The centre and the size of each box. */
  boxes: Record<string, Spot & Size>;
  ways: Way[];
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

/** The path of a way for an SVG. */
export function pathOf({ spots }: Way): string {
  const [first, ...rest] = spots;
  if (!first) return "";
  return rest.reduce((path, { x, y }, index) => {
    if (index % 2 === 1) return `${path} L${x} ${y}`;
    const before = spots[index] as Spot;
    const middle = (before.x + x) / 2;
    return `${path} C${middle} ${before.y} ${middle} ${y} ${x} ${y}`;
  }, `M${first.x} ${first.y}`);
}
