import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { lookOfState } from "../lib/states";
import { Loading } from "../parts/panel";
import { type Layout, layOut } from "./layout";

export interface PictureNode {
  id: string;
  title: string;
  kind: string;
  state?: string | null;
  note?: string;
}

export interface PictureEdge {
  from: string;
  to: string;
  text?: string;
}

const [WIDTH, HEIGHT] = [190, 44];
const ZOOMS = [0.35, 0.5, 0.7, 0.85, 1, 1.25];
const SMALLEST = 0.6; // below, the texts of a graph that is made to fit are too small
const nearest = (scale: number) => ZOOMS.findLastIndex((zoom) => zoom <= scale);

/** A graph from left to right. A node is chosen by a click, or by Enter. */
export function Picture({
  nodes,
  edges,
  chosen,
  choose,
  label,
}: {
  nodes: PictureNode[];
  edges: PictureEdge[];
  chosen?: string;
  choose: (id: string) => void;
  label: string;
}) {
  const [layout, setLayout] = useState<Layout | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  // Until a reader chooses another, the size is the largest at which the graph is as wide as its place.
  const [chosenZoom, setZoom] = useState<number | null>(null);
  // Only the shape matters for the layout: states change often, and move nothing.
  const shape = JSON.stringify([nodes.map((node) => node.id), edges.map((edge) => [edge.from, edge.to])]);
  const drawn = useMemo(() => edges, [shape]);
  useEffect(() => {
    let live = true;
    const [ids, pairs] = JSON.parse(shape) as [string[], [string, string][]];
    layOut(
      ids.map((id) => ({ id, width: WIDTH, height: HEIGHT })),
      pairs.map(([from, to]) => ({ from, to })),
    ).then((found) => live && setLayout(found));
    return () => {
      live = false;
    };
  }, [shape]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setRoom(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, [layout]);
  const placed = room > 0;
  // A high graph is first shown where it begins: at the chosen node, else at the first one on the left.
  useEffect(() => {
    const element = box.current;
    const begin = layout && (layout.boxes[chosen ?? ""] ?? leftmost(layout));
    if (!element || !layout || !begin || !placed) return;
    element.scrollTop = begin.y * fitting(room, layout) - element.clientHeight / 2;
  }, [layout, placed]);
  if (!layout) return <Loading rows={5} />;
  const fits = fitting(room || layout.width, layout);
  const scale = chosenZoom === null ? fits : (ZOOMS[chosenZoom] ?? 1);
  const zoom = chosenZoom ?? nearest(fits);
  const around = new Set(
    drawn.flatMap((edge) => (edge.from === chosen ? [edge.to] : edge.to === chosen ? [edge.from] : [])),
  );
  return (
    <div className="graph">
      <div className="graph-tools chips">
        <button type="button" aria-label="Smaller" onClick={() => setZoom(Math.max(0, zoom - 1))}>
          −
        </button>
        <button type="button" aria-label="Larger" onClick={() => setZoom(Math.min(ZOOMS.length - 1, zoom + 1))}>
          +
        </button>
      </div>
      <div className="graph-scroll" ref={box} tabIndex={0} role="group" aria-label={label}>
        <svg
          width={layout.width * scale}
          height={layout.height * scale}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          aria-label={label}
          role="group"
        >
          <defs>
            {["arrow", "arrow-near"].map((id) => (
              <marker
                key={id}
                id={id}
                viewBox="0 0 8 8"
                refX="7"
                refY="4"
                markerWidth="8"
                markerHeight="8"
                markerUnits="userSpaceOnUse"
                orient="auto"
              >
                <path d="M0 0L8 4L0 8z" />
              </marker>
            ))}
          </defs>
          {layout.arrows.map((points, index) => {
            const edge = drawn[index];
            if (!edge || points.length === 0) return null;
            const near = edge.from === chosen || edge.to === chosen;
            return (
              <path
                key={index}
                className={near ? "edge near" : "edge"}
                d={curve(points)}
                markerEnd={near ? "url(#arrow-near)" : "url(#arrow)"}
              >
                {edge.text && <title>{edge.text}</title>}
              </path>
            );
          })}
          {nodes.map((node) => {
            const at = layout.boxes[node.id];
            if (!at) return null;
            return (
              <NodeBox
                key={node.id}
                node={node}
                x={at.x}
                y={at.y}
                chosen={node.id === chosen}
                near={around.has(node.id)}
                choose={choose}
              />
            );
          })}
        </svg>
      </div>
    </div>
  );
}

function NodeBox({
  node,
  x,
  y,
  chosen,
  near,
  choose,
}: {
  node: PictureNode;
  x: number;
  y: number;
  chosen: boolean;
  near: boolean;
  choose: (id: string) => void;
}) {
  const look = node.state ? lookOfState(node.state) : null;
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(node.id);
    }
  };
  return (
    <g
      className={`node kind-${node.kind} ${chosen ? "chosen" : ""} ${near ? "near" : ""}`}
      transform={`translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`}
      role="button"
      tabIndex={0}
      aria-pressed={chosen}
      onClick={() => choose(node.id)}
      onKeyDown={onKey}
    >
      <rect width={WIDTH} height={HEIGHT} rx={node.kind === "dataset" ? 20 : 6}>
        <title>{node.title}</title>
      </rect>
      <text x={12} y={19} className="node-title">
        {cut(node.title, 25)}
      </text>
      <text x={12} y={34} className={look ? look.tone : "node-note"}>
        {look ? `${look.glyph} ${node.state}` : (node.note ?? node.kind)}
      </text>
    </g>
  );
}

/** The largest scale at which a graph is as wide as its place. */
const fitting = (room: number, { width }: Layout) => Math.min(1, Math.max(SMALLEST, room / width));
const leftmost = ({ boxes }: Layout) => Object.values(boxes).sort((a, b) => a.x - b.x || a.y - b.y)[0];

const cut = (text: string, most: number) => (text.length > most ? `…${text.slice(text.length - most + 1)}` : text);

function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  return rest.reduce((path, point, index) => {
    const before = points[index] ?? first;
    const middle = (before.x + point.x) / 2;
    return `${path} C${middle} ${before.y} ${middle} ${point.y} ${point.x} ${point.y}`;
  }, `M${first.x} ${first.y}`);
}
