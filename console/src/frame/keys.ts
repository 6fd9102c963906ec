// Keys: one listener, to which the frame and the view on screen add theirs. A key opens something and never acts.

import { useEffect, useRef } from "react";

type Handler = () => void;
export type Bindings = Record<string, Handler | undefined>;

/** Whose keys they are. Those of the current row come before those of its page, and these before those of the frame. */
const RANKS = ["frame", "page", "row"] as const;
type Rank = (typeof RANKS)[number];

interface Layer {
  current: Bindings;
  rank: Rank;
}

const layers: Layer[] = [];
let pending = "";
let forget: ReturnType<typeof setTimeout> | undefined;

const isField = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  const name = `${event.ctrlKey || event.metaKey ? "ctrl " : ""}${event.key}`;
  const dialog = document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]');
  if (name !== "ctrl k" && (isField(event.target) || dialog || event.ctrlKey || event.metaKey)) return;
  if (name === "Enter" && event.target instanceof HTMLElement && event.target.closest("a, button")) return;
  const sequence = pending ? `${pending} ${event.key}` : name;
  pending = "";
  clearTimeout(forget);
  const order = [...layers].reverse().sort((a, b) => RANKS.indexOf(b.rank) - RANKS.indexOf(a.rank));
  for (const layer of order) {
    const handler = layer.current[sequence];
    if (handler) {
      event.preventDefault();
      handler();
      return;
    }
  }
  if (event.key === "g") {
    pending = "g";
    forget = setTimeout(() => {
      pending = "";
    }, 1500);
  }
}

/** Add keys while the component is on screen. Of one rank, the latest added come first. */
export function useKeys(bindings: Bindings, rank: Rank = "page"): void {
  const latest = useRef<Layer>({ current: bindings, rank });
  latest.current.current = bindings;
  useEffect(() => {
    const layer = latest.current;
    if (layers.length === 0) window.addEventListener("keydown", onKey);
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
      if (layers.length === 0) window.removeEventListener("keydown", onKey);
    };
  }, []);
}
