import { Graph, layout } from "@dagrejs/dagre";
import type { Task } from "./layout";

addEventListener("message", ({ data: { number, boxes, arrows } }: MessageEvent<Task>) => {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  arrows.forEach(({ from, to }, index) => {
    if (graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to, {}, String(index));
  });
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  postMessage({
    number,
    layout: {
      width,
      height,
      boxes: Object.fromEntries(boxes.map(({ id }) => [id, { x: graph.node(id).x, y: graph.node(id).y }])),
      arrows: arrows.map(({ from, to }, index) =>
        graph.hasNode(from) && graph.hasNode(to) ? (graph.edge(from, to, String(index)).points ?? []) : [],
      ),
    },
  });
});
