import { type PointerEvent, useEffect, useState } from "react";
import { lookOfState } from "../lib/states";
import type { Layout } from "./layout";
import type { PictureNode } from "./picture";
import type { View } from "./view";

const [WIDTH, LEAST, MOST] = [180, 36, 120];

/** A small map of a graph that is larger than its place. It shows what part is on screen; a press goes there. */
export function Overview({
  view: { box, scale, offset, room, space, show },
  layout,
  nodes,
  chosen,
}: {
  view: View;
  layout: Layout;
  nodes: PictureNode[];
  chosen: string | undefined;
}) {
  const [at, setAt] = useState({ x: 0, y: 0 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = () => setAt({ x: element.scrollLeft, y: element.scrollTop });
    read();
    element.addEventListener("scroll", read, { passive: true });
    return () => element.removeEventListener("scroll", read);
  }, [box, scale]);
  if (space.width <= room.width + 1 && space.height <= room.height + 1) return null;
  const height = Math.min(MOST, Math.max(LEAST, (layout.height * WIDTH) / layout.width));
  const [x, y] = [WIDTH / layout.width, height / layout.height];
  const go = (event: PointerEvent<SVGSVGElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    show({ x: (event.clientX - left) / x, y: (event.clientY - top) / y });
  };
  return (
    <svg
      className="graph-map"
      width={WIDTH}
      height={height}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        go(event);
      }}
      onPointerMove={(event) => event.buttons === 1 && go(event)}
    >
      {nodes.map((node) => {
        const spot = layout.boxes[node.id];
        if (!spot) return null;
        const [wide, high] = [Math.max(2, spot.width * x), Math.max(2, spot.height * y)];
        const tone = node.state ? lookOfState(node.state).tone : "plain";
        return (
          <rect
            key={node.id}
            className={node.id === chosen ? "chosen" : tone}
            x={spot.x * x - wide / 2}
            y={spot.y * y - high / 2}
            width={wide}
            height={high}
          />
        );
      })}
      <rect
        className="graph-map-part"
        x={((at.x - offset.x) / scale) * x}
        y={((at.y - offset.y) / scale) * y}
        width={(room.width / scale) * x}
        height={(room.height / scale) * y}
      />
    </svg>
  );
}
