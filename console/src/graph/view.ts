// What of a graph is on screen, and how large: scroll, zoom, drag.

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Size, Spot } from "./layout";

const STEP = 1.25;
const [SMALLEST, LARGEST] = [0.1, 2];
export const READABLE = 11 / 12; // the smallest text of a node has 12 px
const MAP = 150; // px that the map and the buttons take at the lower right
const DRAG = 4; // px that a pointer moves before a press becomes a drag

export interface View {
  box: RefObject<HTMLDivElement | null>;
  scale: number;
  /** The size of the part of the page in which the graph is. 0 until it is known. */
  room: Size;
  /** The size of what is scrolled, and where the graph begins in it: in the middle, if there is room. */
  space: Size;
  offset: Spot;
  zoom: (steps: number) => void;
  /** The scale at which each text has its own size. */
  whole: () => void;
  /** The scale at which the whole graph is on screen. */
  fit: () => void;
  /** A scale at which all texts can be read; if the graph almost fits, that at which it does. */
  begin: () => void;
  /** Bring a spot of the graph into the middle. */
  show: (spot: Spot) => void;
  /** Whether a part of the graph is on screen as a whole. */
  shows: (part: Spot & Size) => boolean;
}

export function useView(layout: Size): View {
  const box = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  const [room, setRoom] = useState<Size>({ width: 0, height: 0 });
  // The spot of the graph that stays where it is on screen while the scale changes.
  const kept = useRef<{ spot: Spot; at: Spot } | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = () => setRoom({ width: element.clientWidth, height: element.clientHeight });
    const watch = new ResizeObserver(read);
    watch.observe(element);
    read();
    return () => watch.disconnect();
  }, []);
  const [width, height] = [layout.width * scale, layout.height * scale];
  // The last nodes of a graph that is scrolled can be brought above the map.
  const needed = height + (width > room.width || height > room.height ? MAP : 0);
  const space = { width: Math.max(room.width, width), height: Math.max(room.height, needed) };
  const offset = { x: (space.width - width) / 2, y: (space.height - needed) / 2 };
  const latest = useRef({ scale, offset, room, layout });
  latest.current = { scale, offset, room, layout };

  const zoomTo = useCallback((next: number, at?: Spot) => {
    const element = box.current;
    if (!element) return;
    const { scale, offset, room } = latest.current;
    const bounded = Math.min(LARGEST, Math.max(SMALLEST, next));
    const point = at ?? { x: room.width / 2, y: room.height / 2 };
    const spot = {
      x: (element.scrollLeft + point.x - offset.x) / scale,
      y: (element.scrollTop + point.y - offset.y) / scale,
    };
    kept.current = { spot, at: point };
    setScale(bounded);
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !kept.current) return;
    const { spot, at } = kept.current;
    kept.current = null;
    element.scrollLeft = spot.x * scale + latest.current.offset.x - at.x;
    element.scrollTop = spot.y * scale + latest.current.offset.y - at.y;
  }, [scale]);

  useWheel(box, (turns, at) => zoomTo(latest.current.scale * STEP ** turns, at));
  useDrag(box);

  return {
    box,
    scale,
    room,
    space,
    offset,
    zoom: (steps) => zoomTo(nextOf(scale, steps)),
    whole: () => zoomTo(1),
    fit: () => zoomTo(fitting(room, layout)),
    begin: useCallback(() => {
      const { room, layout } = latest.current;
      const fits = fitting(room, layout);
      if (fits >= READABLE) setScale(fits);
    }, []),
    show: useCallback((spot) => {
      const { scale, offset, room } = latest.current;
      box.current?.scrollTo({
        left: spot.x * scale + offset.x - room.width / 2,
        top: spot.y * scale + offset.y - room.height / 2,
      });
    }, []),
    shows: useCallback((part) => {
      const element = box.current;
      if (!element) return false;
      const { scale, offset, room } = latest.current;
      const inside = (middle: number, size: number, from: number, length: number) =>
        middle - (size * scale) / 2 >= from && middle + (size * scale) / 2 <= from + length;
      return (
        inside(part.x * scale + offset.x, part.width, element.scrollLeft, room.width) &&
        inside(part.y * scale + offset.y, part.height, element.scrollTop, room.height)
      );
    }, []),
  };
}

const fitting = (room: Size, { width, height }: Size) => Math.min(1, room.width / width, room.height / height);

/** The scale some steps away. Steps pass through the scale at which texts have their own size. */
function nextOf(scale: number, steps: number): number {
  const exponent = Math.log(scale) / Math.log(STEP);
  return STEP ** (steps > 0 ? Math.floor(exponent + 1.001) : Math.ceil(exponent - 1.001));
}

/** The wheel scrolls. With ctrl, as a pinch on a touch pad sends it, it zooms around the pointer. */
function useWheel(box: RefObject<HTMLDivElement | null>, zoom: (turns: number, at: Spot) => void): void {
  const latest = useRef(zoom);
  latest.current = zoom;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, top } = element.getBoundingClientRect();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
      latest.current(Math.max(-1, Math.min(1, -pixels / 100)), { x: event.clientX - left, y: event.clientY - top });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [box]);
}

/** A mouse drags the graph. What is touched by a finger scrolls by itself. */
function useDrag(box: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let from: (Spot & { left: number; top: number }) | null = null;
    const onDown = (event: PointerEvent) => {
      const onScrollbar = event.target === element && event.offsetX >= element.clientWidth;
      if (event.button !== 0 || event.pointerType !== "mouse" || onScrollbar) return;
      from = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
    };
    const onMove = (event: PointerEvent) => {
      if (!from) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!element.hasPointerCapture(event.pointerId)) {
        if (Math.hypot(x, y) < DRAG) return;
        // From here on the press belongs to the graph: the node under it is not chosen.
        element.setPointerCapture(event.pointerId);
      }
      element.scrollTo({ left: from.left - x, top: from.top - y });
    };
    const onEnd = () => {
      from = null;
    };
    element.addEventListener("pointerdown", onDown);
    element.addEventListener("pointermove", onMove);
    element.addEventListener("pointerup", onEnd);
    element.addEventListener("pointercancel", onEnd);
    return () => {
      element.removeEventListener("pointerdown", onDown);
      element.removeEventListener("pointermove", onMove);
      element.removeEventListener("pointerup", onEnd);
      element.removeEventListener("pointercancel", onEnd);
    };
  }, [box]);
}
