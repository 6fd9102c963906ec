// Where the nodes of a graph stand, and the way of each edge: layers from left to right, by dagre.
//
// An edge bends only in the space between two columns. Where it passes a column, it goes straight through a lane of its
// own, so that it never lies behind a node that is not one of its ends.

import { Graph, layout } from "@dagrejs/dagre";
import type { Arrow, Box, Layout, Size, Spot, Way } from "./layout";

const GAP = 56; // between columns
const MARGIN = { x: 24, y: 20 };
const TWIN = 6; // half the distance between an edge and the one that leads back
const LOOP = { wide: 22, high: 7 };

/** Lay a graph out. Edges of which an end is missing are left out. */
export function place(boxes: readonly Box[], arrows: readonly Arrow[]): Layout {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 16, edgesep: 10, ranksep: GAP });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  const known = arrows.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  for (const { from, to, label } of known) {
    if (from !== to)
      graph.setEdge(from, to, { width: label?.width ?? 0, height: label?.height ?? 0, labelpos: "c", labeloffset: 0 });
  }
  layout(graph);
  const placed: Layout["boxes"] = Object.fromEntries(
    boxes.map((box) => {
      const { x, y } = graph.node(box.id) as Spot;
      return [box.id, { x, y, width: box.width, height: box.height }];
    }),
  );
  const labels = known.flatMap(({ from, to, label }) =>
    label && from !== to ? [{ ...(graph.edge(from, to) as unknown as Spot), ...label }] : [],
  );
  const halves = halvesOf([...Object.values(placed), ...labels]);
  const back = new Set(known.map(({ from, to }) => `${to}\n${from}`));
  const ways = known.map(({ from, to, label }): Way => {
    const [start, end] = [placed[from], placed[to]] as [Spot & Size, Spot & Size];
    if (from === to) return { from, to, spots: loop(start) };
    const { points, x, y } = graph.edge(from, to) as unknown as { points: Spot[] } & Spot;
    const spots = wayOf(start, end, points.slice(1, -1), halves, back.has(`${from}\n${to}`));
    return { from, to, spots, ...(label && { label: { x, y } }) };
  });
  return framed(placed, ways);
}

/** The whole with a margin around it, from 0. dagre leaves out the edges that pass above and below all nodes. */
function framed(boxes: Layout["boxes"], ways: Way[]): Layout {
  const all = Object.values(boxes);
  const spots = ways.flatMap((way) => way.spots);
  const ends = (by: "x" | "y", size: "width" | "height", margin: number) => {
    const values = [
      ...all.flatMap((box) => [box[by] - box[size] / 2, box[by] + box[size] / 2]),
      ...spots.map((spot) => spot[by]),
    ];
    const [low, high] = [values.reduce((a, b) => Math.min(a, b), 0), values.reduce((a, b) => Math.max(a, b), 0)];
    return { from: low - margin, length: high - low + 2 * margin };
  };
  const [x, y] = [ends("x", "width", MARGIN.x), ends("y", "height", MARGIN.y)];
  const moved = <T extends Spot>(spot: T): T => ({ ...spot, x: spot.x - x.from, y: spot.y - y.from });
  return {
    width: x.length,
    height: y.length,
    boxes: Object.fromEntries(Object.entries(boxes).map(([id, box]) => [id, moved(box)])),
    ways: ways.map((way) => ({ ...way, spots: way.spots.map(moved), ...(way.label && { label: moved(way.label) }) })),
  };
}

/** Half the width of each column of nodes or labels, by its centre. */
function halvesOf(things: readonly (Spot & Size)[]): Map<number, number> {
  const found = new Map<number, number>();
  for (const { x, width } of things) {
    const column = Math.round(x);
    found.set(column, Math.max(found.get(column) ?? 0, width / 2));
  }
  return found;
}

function wayOf(
  start: Spot & Size,
  end: Spot & Size,
  between: Spot[],
  halves: Map<number, number>,
  isTwin: boolean,
): Spot[] {
  const side = end.x >= start.x ? 1 : -1;
  const shift = isTwin ? -side * TWIN : 0;
  const lanes = between.flatMap(({ x, y }) => {
    const half = halves.get(Math.round(x));
    return half
      ? [
          { x: x - side * half, y },
          { x: x + side * half, y },
        ]
      : [];
  });
  return [
    { x: start.x + (side * start.width) / 2, y: start.y + shift },
    ...lanes,
    { x: end.x - (side * end.width) / 2, y: end.y + shift },
  ];
}

/** The way of a node back to itself, at its right side. */
function loop({ x, y, width }: Spot & Size): Spot[] {
  const right = x + width / 2;
  return [
    { x: right, y: y - LOOP.high },
    { x: right + LOOP.wide, y },
    { x: right + LOOP.wide, y },
    { x: right, y: y + LOOP.high },
  ];
}
