// Rules about the nodes and edges of a graph: what is before and after a node, and which one a key leads to.

import type { Layout, Spot } from "./layout";

export interface Edge {
  from: string;
  to: string;
  /** What the edge means, in words. */
  text?: string;
  /** A few words that stand on it. */
  label?: string;
  /** Whether a run did not take it. */
  isLeftOut?: boolean;
}

/** One edge for each pair of nodes, with the different texts of all between them. */
export function merged(edges: readonly Edge[]): Edge[] {
  const found = new Map<string, Edge[]>();
  for (const edge of edges) {
    const key = `${edge.from}\n${edge.to}`;
    found.set(key, [...(found.get(key) ?? []), edge]);
  }
  const joined = (texts: (string | undefined)[]) => [...new Set(texts.filter(Boolean))].join("; ") || undefined;
  return [...found.values()].map((same) => ({
    ...(same[0] as Edge),
    text: joined(same.map((edge) => edge.text)),
    label: joined(same.map((edge) => edge.label)),
  }));
}

/** All nodes that lead to a node, and all to which it leads, in any number of steps; without the node itself. */
export function around(edges: readonly Edge[], id: string): { before: Set<string>; after: Set<string> } {
  const up = beside(edges.map(({ from, to }) => ({ from: to, to: from })));
  return { before: reached(up, id), after: reached(beside(edges), id) };
}

function beside(edges: readonly Edge[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { from, to } of edges) found.set(from, [...(found.get(from) ?? []), to]);
  return found;
}

function reached(next: Map<string, string[]>, id: string): Set<string> {
  const found = new Set<string>();
  let level = next.get(id) ?? [];
  while (level.length > 0) {
    for (const each of level) found.add(each);
    level = level.flatMap((each) => next.get(each) ?? []).filter((each) => !found.has(each));
  }
  found.delete(id);
  return found;
}

/** The node to which an arrow key leads: along an edge, or up and down in the column. Undefined if there is none. */
export function towards(layout: Layout, id: string, key: string): string | undefined {
  const here = layout.boxes[id];
  if (!here) return undefined;
  const spot = (other: string): Spot => layout.boxes[other] ?? here;
  const nearest = (others: string[]) =>
    others.toSorted((a, b) => Math.abs(spot(a).y - here.y) - Math.abs(spot(b).y - here.y))[0];
  const others = layout.ways.filter(({ from, to }) => from !== to);
  if (key === "ArrowRight") return nearest(others.filter(({ from }) => from === id).map(({ to }) => to));
  if (key === "ArrowLeft") return nearest(others.filter(({ to }) => to === id).map(({ from }) => from));
  const column = Object.keys(layout.boxes).filter((other) => Math.abs(spot(other).x - here.x) < 1);
  if (key === "ArrowDown") return nearest(column.filter((other) => spot(other).y > here.y));
  if (key === "ArrowUp") return nearest(column.filter((other) => spot(other).y < here.y));
  return undefined;
}

/** The node at the left, the highest of them: where one begins to read. */
export function first({ boxes }: Layout): string | undefined {
  return Object.entries(boxes).sort(([, a], [, b]) => a.x - b.x || a.y - b.y)[0]?.[0];
}
