import { describe, expect, test } from "vitest";
import { type Arrow, type Layout, pathOf, type Spot, type Way } from "../../src/graph/layout.ts";
import { place } from "../../src/graph/place.ts";
import { linesOf } from "../../src/graph/text.ts";
import { around, type Edge, first, merged, towards } from "../../src/graph/walk.ts";

const [WIDTH, HEIGHT] = [248, 63];
const boxesOf = (names: string[]) => names.map((id) => ({ id, width: WIDTH, height: HEIGHT }));

/** A number from 0 to 1, the same for the same seed. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const name = (index: number) => `n${index}`;
const names = (many: number) => Array.from({ length: many }, (_, index) => name(index));
const edge = (from: number, to: number): Arrow => ({ from: name(from), to: name(to) });

/** Graphs of about a hundred nodes. */
const GRAPHS: Record<string, { nodes: string[]; arrows: Arrow[] }> = {
  "a chain": { nodes: names(100), arrows: names(99).map((_, index) => edge(index, index + 1)) },
  "one before all": { nodes: names(100), arrows: names(99).map((_, index) => edge(0, index + 1)) },
  "all before one": { nodes: names(100), arrows: names(99).map((_, index) => edge(index, 99)) },
  "pairs apart": { nodes: names(100), arrows: names(50).map((_, index) => edge(2 * index, 2 * index + 1)) },
  "layers, each before the next": {
    nodes: names(40),
    arrows: names(35).flatMap((_, index) =>
      [0, 1, 2, 3, 4].map((step) => edge(index, (Math.floor(index / 5) + 1) * 5 + step)),
    ),
  },
  "edges over many layers": {
    nodes: names(60),
    arrows: names(59).flatMap((_, index) => [edge(index, index + 1), edge(0, index + 1)]),
  },
  "cycles and a node before itself": {
    nodes: names(9),
    arrows: [
      edge(0, 1),
      edge(1, 0),
      edge(1, 2),
      edge(2, 3),
      edge(3, 0),
      edge(4, 4),
      edge(5, 6),
      edge(6, 7),
      edge(7, 5),
    ],
  },
  ...Object.fromEntries(
    [1, 2, 3, 4, 5, 6].map((seed) => {
      const chance = chances(seed);
      const arrows = names(100).flatMap((_, to) =>
        to === 0 ? [] : names(1 + Math.floor(chance() * 3)).map(() => edge(Math.floor(chance() * to), to)),
      );
      return [`random ${seed}`, { nodes: names(100), arrows: merged(arrows as Edge[]) as Arrow[] }];
    }),
  ),
  "texts on edges": {
    nodes: names(60),
    arrows: names(59).flatMap((_, index) => [
      { ...edge(Math.floor(index / 3), index + 1), label: index % 2 === 0 ? { width: 90, height: 18 } : undefined },
    ]),
  },
};

/** Spots along a way, close to each other. */
function along({ spots }: Way): Spot[] {
  return spots.slice(1).flatMap((end, index) => {
    const start = spots[index] as Spot;
    return Array.from({ length: 25 }, (_, step) => {
      const part = step / 24;
      if (index % 2 === 1) return { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
      // The cubic curve whose handles lie in the middle, at the height of its ends.
      const [a, b, c, d] = [(1 - part) ** 3, 3 * (1 - part) ** 2 * part, 3 * (1 - part) * part ** 2, part ** 3];
      const middle = (start.x + end.x) / 2;
      return { x: a * start.x + (b + c) * middle + d * end.x, y: (a + b) * start.y + (c + d) * end.y };
    });
  });
}

function overlaps(layout: Layout): string[] {
  const all = Object.entries(layout.boxes);
  return all.flatMap(([id, a], index) =>
    all
      .slice(index + 1)
      .filter(
        ([, b]) => Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2,
      )
      .map(([other]) => `${id} and ${other}`),
  );
}

/** The edges that pass behind a node which is not one of their ends: they would seem to begin or end there. */
function behind(layout: Layout): string[] {
  const boxes = Object.entries(layout.boxes);
  return layout.ways.flatMap((way) => {
    const spots = along(way);
    const isBehind = (box: Spot) =>
      spots.some(({ x, y }) => Math.abs(x - box.x) < WIDTH / 2 - 0.5 && Math.abs(y - box.y) < HEIGHT / 2 - 0.5);
    const others = boxes.filter(([id, box]) => id !== way.from && id !== way.to && isBehind(box));
    return others.map(([id]) => `${way.from} to ${way.to} behind ${id}`);
  });
}

describe.each(Object.entries(GRAPHS))("%s", (_, { nodes, arrows }) => {
  const layout = place(boxesOf(nodes), arrows);

  test("no node lies on another one", () => {
    expect(Object.keys(layout.boxes)).toEqual(nodes);
    expect(overlaps(layout)).toEqual([]);
  });

  test("each edge goes from node to node, and behind no other", () => {
    expect(layout.ways.map(({ from, to }) => [from, to])).toEqual(arrows.map(({ from, to }) => [from, to]));
    expect(behind(layout)).toEqual([]);
    const wrong = layout.ways.filter((way) => {
      const [start, end] = [layout.boxes[way.from], layout.boxes[way.to]];
      const isAt = (spot: Spot | undefined, box: Spot | undefined) =>
        spot && box && Math.abs(Math.abs(spot.x - box.x) - WIDTH / 2) < 0.01 && Math.abs(spot.y - box.y) < HEIGHT / 2;
      return way.spots.length % 2 === 1 || !isAt(way.spots[0], start) || !isAt(way.spots.at(-1), end);
    });
    expect(wrong).toEqual([]);
  });

  test("the graph lies within its size", () => {
    const spots = [...Object.values(layout.boxes), ...layout.ways.flatMap(along)];
    const outside = spots.filter(({ x, y }) => x < 0 || y < 0 || x > layout.width || y > layout.height);
    expect(outside).toEqual([]);
  });
});

test("a text on an edge lies on its own edge, and on no node", () => {
  const { nodes, arrows } = GRAPHS["texts on edges"] as { nodes: string[]; arrows: Arrow[] };
  const layout = place(boxesOf(nodes), arrows);
  const labelled = layout.ways.filter(({ label }) => label);
  expect(labelled).toHaveLength(30);
  for (const way of labelled) {
    const { x, y } = way.label as Spot;
    expect(along(way).some((spot) => Math.hypot(spot.x - x, spot.y - y) < 12)).toBe(true);
    for (const box of Object.values(layout.boxes))
      expect(Math.abs(x - box.x) >= box.width / 2 + 45 || Math.abs(y - box.y) >= box.height / 2 + 9).toBe(true);
  }
});

test("an edge without one of its ends is left out", () => {
  const layout = place(boxesOf(["a"]), [{ from: "a", to: "gone" }]);
  expect(layout.ways).toEqual([]);
});

test("the path of an edge has curves and straight lines by turns", () => {
  const spots = [0, 10, 20, 30].map((x) => ({ x, y: x }));
  expect(pathOf({ from: "a", to: "b", spots })).toBe("M0 0 C5 0 5 10 10 10 L20 20 C25 20 25 30 30 30");
});

test("edges between two nodes become one with all their texts", () => {
  const given = [
    { from: "a", to: "b", text: "runs" },
    { from: "b", to: "a", text: "counts" },
    { from: "a", to: "b", text: "reads" },
    { from: "a", to: "b", text: "runs" },
  ];
  expect(merged(given).map(({ from, to, text }) => [from, to, text])).toEqual([
    ["a", "b", "runs; reads"],
    ["b", "a", "counts"],
  ]);
});

test("what is before and after a node is found, also in a cycle", () => {
  const edges = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 1), edge(4, 5)];
  const { before, after } = around(edges as Edge[], "n2");
  expect([...before].sort()).toEqual(["n0", "n1", "n3"]);
  expect([...after].sort()).toEqual(["n1", "n3"]);
});

test("arrow keys go along edges, and up and down in a column", () => {
  const layout = place(boxesOf(["a", "b", "c", "d"]), [
    { from: "a", to: "b" },
    { from: "a", to: "c" },
    { from: "c", to: "d" },
  ]);
  expect(first(layout)).toBe("a");
  const below = (layout.boxes.b?.y ?? 0) < (layout.boxes.c?.y ?? 0) ? "ArrowDown" : "ArrowUp";
  expect(towards(layout, "b", below)).toBe("c");
  expect(towards(layout, "c", "ArrowRight")).toBe("d");
  expect(towards(layout, "d", "ArrowLeft")).toBe("c");
  expect(towards(layout, "d", "ArrowRight")).toBeUndefined();
});

const tens = (text: string) => text.length * 10;

test.each([
  ["short", 100, 2, ["short"]],
  ["flights.clean-part-of-the-lake", 200, 2, ["flights.clean-part-", "of-the-lake"]],
  ["abcdefghijklmnopqrstuvwxyz", 100, 1, ["abcd…vwxyz"]],
  ["abcdefghijklmnopqrstuvwxyz", 100, 2, ["abcdefghij", "…rstuvwxyz"]],
])("%s in %i px and %i lines", (text, width, most, lines) => {
  expect(linesOf(text, width, most, tens)).toEqual(lines);
  for (const line of lines) expect(tens(line)).toBeLessThanOrEqual(width);
});
