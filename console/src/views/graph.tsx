import { useQuery } from "@tanstack/react-query";
import { namespace } from "../api/queries";
import type { NodeOfGraph } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { Picture } from "../graph/picture";
import { count, shortName } from "../lib/format";
import { ofRef } from "../lib/paths";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { State } from "../parts/text";

/** Schedules, workflows and datasets, and what counts for what. */
export function GraphView() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.graph(ns, { around: search.around, up: search.up, down: search.down }));
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Lineage</h1>
        <span className="faint">
          {query.data && count(query.data.nodes.length, "node", query.data.at_least)}
          {search.around ? ` around ${search.around.split(":").at(-1)}` : ""}
        </span>
        <span className="space" />
        {search.around && (
          <span className="tools">
            <Steps word="up" value={search.up ?? "2"} set={(up) => change({ up })} />
            <Steps word="down" value={search.down ?? "2"} set={(down) => change({ down })} />
            <button
              type="button"
              className="button"
              onClick={() => change({ around: undefined, up: undefined, down: undefined, node: undefined })}
            >
              Show all
            </button>
          </span>
        )}
      </div>
      <div className="sheet with-side">
        <Await query={query} rows={8}>
          {(data) =>
            data.nodes.length === 0 ? (
              <Empty command="sluice apply app.yaml">No schedules yet.</Empty>
            ) : (
              <>
                <Picture
                  label="Schedules, workflows and datasets"
                  nodes={data.nodes.map((node) => ({
                    id: node.id,
                    title: shortName(node.name),
                    kind: node.kind,
                    state: node.state,
                  }))}
                  edges={data.edges}
                  chosen={search.node ?? data.around ?? undefined}
                  choose={(node) => change({ node }, true)}
                />
                <Side
                  node={data.nodes.find((node) => node.id === (search.node ?? data.around))}
                  edges={data.edges}
                  focus={(around) => change({ around, node: undefined })}
                />
              </>
            )
          }
        </Await>
      </div>
    </div>
  );
}

function Steps({ word, value, set }: { word: string; value: string; set: (value: string) => void }) {
  return (
    <label>
      <span className="faint">steps {word} </span>
      <select value={value} onChange={(event) => set(event.target.value)}>
        {["0", "1", "2", "3", "4", "6", "8", "10"].map((steps) => (
          <option key={steps}>{steps}</option>
        ))}
      </select>
    </label>
  );
}

function Side({
  node,
  edges,
  focus,
}: {
  node: NodeOfGraph | undefined;
  edges: { from: string; to: string; text: string }[];
  focus: (id: string) => void;
}) {
  if (!node) return <aside className="side faint">Choose a node to see what it waits for and what waits for it.</aside>;
  const target = ofRef(node.kind, node.name);
  const list = (title: string, found: { id: string; text: string }[]) =>
    found.length > 0 && (
      <>
        <h3>{title}</h3>
        <ul>
          {found.map((item) => (
            <li key={`${item.id} ${item.text}`}>
              <button type="button" className="link" onClick={() => focus(item.id)}>
                {shortName(item.id.split(":").at(-1) ?? "")}
              </button>
              <span className="sub">{item.text}</span>
            </li>
          ))}
        </ul>
      </>
    );
  return (
    <aside className="side">
      <p className="faint">{node.kind}</p>
      <h2>{target ? <Go {...target}>{shortName(node.name)}</Go> : shortName(node.name)}</h2>
      {node.state && <State state={node.state} />}
      <button type="button" className="button small" onClick={() => focus(node.id)}>
        Show what is around it
      </button>
      {list(
        "Waits for",
        edges.filter((edge) => edge.to === node.id).map((edge) => ({ id: edge.from, text: edge.text })),
      )}
      {list(
        "Leads to",
        edges.filter((edge) => edge.from === node.id).map((edge) => ({ id: edge.to, text: edge.text })),
      )}
    </aside>
  );
}
