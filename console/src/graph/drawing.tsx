import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useKeys } from "../frame/keys";
import { lookOfState } from "../lib/states";
import { Loading } from "../parts/panel";
import { type Layout, layOut, pathOf, type Size, type Spot } from "./layout";
import { Overview } from "./overview";
import type { PictureNode, PictureProps } from "./picture";
import { linesOf } from "./text";
import { READABLE, useView, type View } from "./view";
import { around, type Edge, first, towards } from "./walk";

const [NARROW, WIDE] = [168, 248]; // the width of nodes, in px: that of the longest name, within these
const PAD = 30; // left and right of a name, with the border
const [HEIGHT, LINE] = [46, 17]; // of a node whose name has one line, and what a second line adds
const [MOST, LABEL] = [132, 18]; // the width and the height of a text on an edge

/** A layout, with what it was made from: by the time it has come, the graph may have changed. */
interface Drawn {
  layout: Layout;
  /** The lines of the names, by node. */
  names: Map<string, string[]>;
  /** The texts on the edges, by `from` and `to`. */
  labels: Map<string, Text>;
}

/** A text on an edge, and its width in px. */
interface Text {
  text: string;
  width: number;
}

const pair = ({ from, to }: { from: string; to: string }) => `${from}\n${to}`;

/** A graph on a plane that is scrolled, dragged and zoomed. It begins at the chosen node, else at `begin`, at a size at
 * which each text can be read. */
export function Drawing({
  measured,
  ...props
}: PictureProps & { found: PictureNode[]; measured: (wide: number) => void }) {
  const drawn = useDrawn(props.nodes, props.edges, measured);
  return drawn ? <Plane {...props} drawn={drawn} /> : <Loading rows={5} />;
}

/** The layout of a graph. Only names and edges matter for it: states change often, and move nothing. */
function useDrawn(nodes: PictureNode[], edges: readonly Edge[], measured: (wide: number) => void): Drawn | null {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const shape = JSON.stringify([
    nodes.map(({ id, title }) => [id, title]),
    edges.map((edge) => [pair(edge), edge.label]),
  ]);
  useEffect(() => {
    let live = true;
    const [given, pairs] = JSON.parse(shape) as [[string, string][], [string, string | null][]];
    const [ofName, ofLabel] = [measureOf("500 13px"), measureOf("12px")];
    const longest = Math.max(...given.map(([, title]) => ofName(title)));
    const width = Math.ceil(Math.min(WIDE, Math.max(NARROW, longest + PAD)));
    const names = new Map(given.map(([id, title]) => [id, linesOf(title, width - PAD, 2, ofName)]));
    const labels = new Map<string, Text>();
    const boxes = given.map(([id]) => ({ id, width, height: HEIGHT + ((names.get(id)?.length ?? 1) - 1) * LINE }));
    const arrows = pairs.map(([key, label]) => {
      const [from = "", to = ""] = key.split("\n");
      if (!label) return { from, to };
      const text = linesOf(label, MOST, 1, ofLabel)[0] ?? "";
      const width = Math.ceil(ofLabel(text)) + 12;
      labels.set(key, { text, width });
      return { from, to, label: { width, height: LABEL } };
    });
    layOut(boxes, arrows).then((layout) => {
      if (!live) return;
      measured(Math.ceil(layout.width * READABLE));
      setDrawn({ layout, names, labels });
    });
    return () => {
      live = false;
    };
  }, [shape, measured]);
  return drawn;
}

/** How wide a text is in a font of the page, in px. */
function measureOf(font: string): (text: string) => number {
  const context = document.createElement("canvas").getContext("2d");
  if (context) context.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  return (text) => context?.measureText(text).width ?? text.length * 8;
}

function Plane({
  nodes,
  edges,
  chosen,
  begin,
  choose,
  label,
  found,
  drawn,
}: PictureProps & { found: PictureNode[]; drawn: Drawn }) {
  const { layout } = drawn;
  const view = useView(layout);
  const { box, scale, offset, space, show, shows } = view;
  const [focused, setFocused] = useState<string | null>(null);
  const placed = (id: string | null | undefined) => (id && layout.boxes[id] ? id : undefined);
  const start = placed(chosen) ?? placed(begin) ?? first(layout);
  const begun = useStart(view, layout, start);
  const lookAt = chosen && found.some(({ id }) => id === chosen) ? chosen : (found[0]?.id ?? chosen);
  useEffect(() => {
    const spot = layout.boxes[lookAt ?? ""];
    if (begun.current && spot && !shows(spot)) show(spot);
  }, [lookAt, layout, show, shows, begun]);
  const related = useMemo(() => (chosen ? around(edges, chosen) : null), [edges, chosen]);
  const isFound = new Set(found.map(({ id }) => id));
  const larger = () => view.zoom(1);
  useKeys({ "+": larger, "=": larger, "-": () => view.zoom(-1), "0": view.whole, f: view.fit });
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    if (!event.key.startsWith("Arrow") || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = towards(layout, focused ?? start ?? "", event.key);
    if (next) box.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(next)}"]`)?.focus();
  };
  return (
    <div className="graph-frame" style={{ "--natural": `${Math.ceil(layout.height)}px` } as CSSProperties}>
      <div
        className="graph-box"
        ref={box}
        role="group"
        aria-label={`${label}. Arrow keys go along the edges, Enter chooses.`}
        onKeyDown={press}
      >
        <div className="graph-space" style={space}>
          <div
            className={scale < 0.6 ? "graph-plane far" : "graph-plane"}
            style={{
              width: layout.width,
              height: layout.height,
              transform: `translate(${offset.x}px, ${offset.y}px) scale(${scale})`,
            }}
          >
            <Edges drawn={drawn} edges={edges} chosen={chosen} related={related} />
            {nodes.map((node) => {
              const at = layout.boxes[node.id];
              return at ? (
                <NodeBox
                  key={node.id}
                  node={node}
                  at={at}
                  names={drawn.names.get(node.id) ?? [node.title]}
                  part={partOf(node.id, chosen, related)}
                  isFound={isFound.has(node.id)}
                  isStop={node.id === (placed(focused) ?? start)}
                  choose={choose}
                  focus={setFocused}
                />
              ) : null;
            })}
          </div>
        </div>
      </div>
      <div className="graph-tools">
        <Overview view={view} layout={layout} nodes={nodes} chosen={chosen} />
        <div className="chips">
          <button type="button" aria-label="Smaller" title="Smaller ( - )" onClick={() => view.zoom(-1)}>
            −
          </button>
          <button type="button" title="The size of the texts ( 0 )" onClick={view.whole}>
            {Math.round(scale * 100)} %
          </button>
          <button type="button" aria-label="Larger" title="Larger ( + ), or ctrl and the wheel" onClick={larger}>
            +
          </button>
          <button type="button" title="The whole graph ( f )" onClick={view.fit}>
            Fit
          </button>
        </div>
      </div>
    </div>
  );
}

/** Bring the node where the graph begins into the middle, until a reader has moved it. */
function useStart({ box, room, show, begin }: View, layout: Layout, start: string | undefined) {
  const begun = useRef<string | null>(null);
  const moved = useRef(false);
  useEffect(() => {
    const element = box.current;
    const onMove = () => {
      moved.current = true;
    };
    const events = ["pointerdown", "wheel", "keydown"] as const;
    for (const event of events) element?.addEventListener(event, onMove, { passive: true });
    return () => {
      for (const event of events) element?.removeEventListener(event, onMove);
    };
  }, [box]);
  const isPlaced = room.width > 0;
  useLayoutEffect(() => {
    if (isPlaced) begin();
  }, [isPlaced, begin]);
  useLayoutEffect(() => {
    const spot = layout.boxes[start ?? ""];
    if (!isPlaced || !start || !spot || moved.current || begun.current === start) return;
    begun.current = start;
    show(spot);
  }, [layout, start, isPlaced, show]);
  return begun;
}

type Part = "chosen" | "before" | "after" | "beside" | "";

function partOf(id: string, chosen: string | undefined, related: ReturnType<typeof around> | null): Part {
  if (!related) return "";
  if (id === chosen) return "chosen";
  return related.before.has(id) ? "before" : related.after.has(id) ? "after" : "beside";
}

const Edges = memo(function Edges({
  drawn: { layout, labels },
  edges,
  chosen,
  related,
}: {
  drawn: Drawn;
  edges: readonly Edge[];
  chosen: string | undefined;
  related: ReturnType<typeof around> | null;
}) {
  const known = new Map(edges.map((edge) => [pair(edge), edge]));
  const isNear = ({ from, to }: { from: string; to: string }) => {
    const [start, end] = [partOf(from, chosen, related), partOf(to, chosen, related)];
    if (start === "before") return end === "before" || end === "chosen";
    return (start === "chosen" || start === "after") && (end === "chosen" || end === "after");
  };
  // Those of the chosen node lie above the others.
  const ways = layout.ways.map((way) => ({ way, near: isNear(way) })).sort((a, b) => Number(a.near) - Number(b.near));
  return (
    <svg width={layout.width} height={layout.height} aria-hidden="true">
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
      {ways.map(({ way, near }) => {
        const path = pathOf(way);
        const label = labels.get(pair(way));
        const edge = known.get(pair(way));
        const look = `edge ${near ? "near" : ""} ${edge?.isLeftOut ? "left-out" : ""}`;
        return (
          <g key={pair(way)} className={look} data-from={way.from} data-to={way.to}>
            <title>{`${edge?.text ?? ""}${edge?.isLeftOut ? ", not taken" : ""}`}</title>
            <path className="edge-target" d={path} />
            <path className="edge-line" d={path} markerEnd={near ? "url(#arrow-near)" : "url(#arrow)"} />
            {label && way.label && <Label of={label} at={way.label} />}
          </g>
        );
      })}
    </svg>
  );
});

/** A text on an edge, on a ground of its own: the line does not run through it. */
function Label({ of: { text, width }, at }: { of: Text; at: Spot }) {
  return (
    <>
      <rect
        className="edge-label-ground"
        x={at.x - width / 2 + 2}
        y={at.y - LABEL / 2}
        width={width - 4}
        height={LABEL}
      />
      <text className="edge-label" x={at.x} y={at.y + 4} textAnchor="middle">
        {text}
      </text>
    </>
  );
}

const NodeBox = memo(function NodeBox({
  node,
  at,
  names,
  part,
  isFound,
  isStop,
  choose,
  focus,
}: {
  node: PictureNode;
  at: Spot & Size;
  names: string[];
  part: Part;
  isFound: boolean;
  /** Whether the tab key stops at it: at one node of a graph. */
  isStop: boolean;
  choose: (id: string) => void;
  focus: (id: string) => void;
}) {
  const look = node.state ? lookOfState(node.state) : null;
  const note = [node.isWhole ? null : node.state, node.note].filter(Boolean).join(" · ") || node.kind;
  return (
    <button
      type="button"
      className={`node kind-${node.kind} tone-${look?.tone ?? "plain"} ${part} ${isFound ? "found" : ""}`}
      style={{ left: at.x - at.width / 2, top: at.y - at.height / 2, width: at.width, height: at.height }}
      data-node={node.id}
      tabIndex={isStop ? 0 : -1}
      aria-pressed={part === "chosen"}
      title={`${node.title}\n${note}`}
      onClick={() => choose(node.id)}
      onFocus={() => focus(node.id)}
    >
      <span className="unseen">
        {node.title}, {node.kind},{" "}
      </span>
      {names.map((line, index) => (
        <span key={index} className="node-name" aria-hidden="true">
          {line}
        </span>
      ))}
      <span className={`node-note ${look?.tone ?? ""}`}>
        {look && (
          <span className={look.glyph === "‖" ? "glyph pause" : "glyph"} aria-hidden="true">
            {look.glyph}
          </span>
        )}
        {note}
      </span>
    </button>
  );
});
