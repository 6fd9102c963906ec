import { type CSSProperties, useMemo, useRef, useState } from "react";
import { useKeys } from "../frame/keys";
import { usePlace } from "../frame/place";
import { Drawing } from "./drawing";
import { NodeList } from "./list";
import { type Edge, merged } from "./walk";

export interface PictureNode {
  id: string;
  title: string;
  /** What it is, in a word: `schedule`. */
  kind: string;
  state?: string | null;
  /** What stands beside its state, or instead of it. */
  note?: string;
  /** Whether the note says the state, too. */
  isWhole?: boolean;
}

export interface PictureProps {
  nodes: PictureNode[];
  edges: readonly Edge[];
  chosen?: string;
  /** Where a large graph begins if no node is chosen, such as at a failed one. */
  begin?: string;
  choose: (id: string) => void;
  label: string;
}

/** A graph from left to right, or its nodes as a list, with a search. */
export function Picture({ nodes, edges: given, chosen, begin, choose, label }: PictureProps) {
  const { search, change } = usePlace();
  const edges = useMemo(() => merged(given), [given]);
  const [words, setWords] = useState("");
  // How wide the graph is at the smallest size at which it can be read.
  const [wide, setWide] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  const wanted = words.trim().toLowerCase();
  const found = wanted ? nodes.filter(({ title }) => title.toLowerCase().includes(wanted)) : [];
  const at = found.findIndex(({ id }) => id === chosen);
  const go = (step: 1 | -1) => {
    const next = found[at < 0 ? 0 : (at + step + found.length) % found.length];
    if (next) choose(next.id);
  };
  const asList = search.as === "list";
  const all = { nodes, edges, chosen, choose, label };
  return (
    <div className="graph" style={{ "--wide": `${wide}px` } as CSSProperties}>
      <div className="graph-bar">
        <input
          ref={field}
          type="search"
          placeholder="Find a node"
          aria-label="Find a node"
          title="Enter goes to the next one ( / )"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
            if (event.key === "Escape") setWords("");
          }}
        />
        <span className="faint" role="status">
          {wanted && (at < 0 ? `${found.length || "none"} found` : `${at + 1} of ${found.length}`)}
        </span>
        <span className="space" />
        <fieldset className="chips">
          <legend className="unseen">Shown as</legend>
          <button type="button" aria-pressed={!asList} onClick={() => change({ as: undefined }, true)}>
            Graph
          </button>
          <button type="button" aria-pressed={asList} onClick={() => change({ as: "list" }, true)}>
            List
          </button>
        </fieldset>
      </div>
      {asList ? (
        <NodeList {...all} shown={wanted ? found : nodes} />
      ) : (
        <Drawing {...all} begin={begin} found={found} measured={setWide} />
      )}
    </div>
  );
}
