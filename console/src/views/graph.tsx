import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { every, glances, namespace } from "../api/queries";
import type { EdgeOfGraph, GlanceAtSchedule, NodeOfGraph } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { useNowBy } from "../frame/settings";
import { Picture, type PictureNode } from "../graph/picture";
import { around } from "../graph/walk";
import { ago, count, shortName } from "../lib/format";
import { ofRef, paths } from "../lib/paths";
import { Go, RunLink } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { Ago, Reason, State } from "../parts/text";

const AT_ONCE = 50; // schedules in a request for their last runs
const MINUTE = 60_000;

/** Schedules, workflows and datasets, and what counts for what. */
export function GraphView() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.graph(ns, { around: search.around, up: search.up, down: search.down }));
  const seen = useGlances(ns, query.data?.nodes);
  const failed = query.data?.nodes.filter((node) => lastOf(seen.get(node.name))?.state === "FAILED") ?? [];
  const chosen = search.node ?? query.data?.around ?? undefined;
  const toNextFailed = () => {
    const at = failed.findIndex(({ id }) => id === chosen);
    change({ node: failed[(at + 1) % failed.length]?.id }, true);
  };
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Lineage</h1>
        <span className="faint">
          {query.data && count(query.data.nodes.length, "node", query.data.at_least)}
          {search.around ? ` around ${shortName(search.around.split(":").at(-1) ?? "")}` : ""}
        </span>
        {failed.length > 0 && (
          <button type="button" className="button small danger-text" onClick={toNextFailed}>
            ✗ {failed.length} failed last
          </button>
        )}
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
                <Lineage nodes={data.nodes} edges={data.edges} seen={seen} chosen={chosen} begin={failed[0]?.id} />
                <Side
                  node={data.nodes.find((node) => node.id === chosen)}
                  nodes={data.nodes}
                  edges={data.edges}
                  seen={seen}
                  failed={failed}
                />
              </>
            )
          }
        </Await>
      </div>
    </div>
  );
}

/** What the schedules among some nodes did last, by their names. */
function useGlances(ns: string, nodes: NodeOfGraph[] | undefined): Map<string, GlanceAtSchedule> {
  const names = (nodes ?? []).filter(({ kind }) => kind === "schedule").map(({ name }) => name);
  const parts = Array.from({ length: Math.ceil(names.length / AT_ONCE) }, (_, index) =>
    names.slice(index * AT_ONCE, (index + 1) * AT_ONCE),
  );
  return useQueries({
    queries: parts.map((part) => ({ ...glances(ns, part), refetchInterval: every(60) })),
    combine: together,
  });
}

const together = (found: { data?: Map<string, GlanceAtSchedule> }[]) =>
  new Map(found.flatMap(({ data }) => [...(data ?? [])]));

/** The newest run of a schedule. */
const lastOf = (glance: GlanceAtSchedule | undefined) => glance?.last.toSorted((a, b) => b.at.localeCompare(a.at))[0];

function Lineage({
  nodes,
  edges,
  seen,
  chosen,
  begin,
}: {
  nodes: NodeOfGraph[];
  edges: EdgeOfGraph[];
  seen: Map<string, GlanceAtSchedule>;
  chosen: string | undefined;
  begin: string | undefined;
}) {
  const { search, change } = usePlace();
  const now = useNowBy(MINUTE);
  const shown = useMemo(() => nodes.map((node) => shownAs(node, seen.get(node.name), now)), [nodes, seen, now]);
  return (
    <Picture
      key={search.around ?? ""}
      label="Schedules, workflows and datasets"
      nodes={shown}
      edges={edges}
      chosen={chosen}
      begin={begin}
      choose={(node) => change({ node }, true)}
    />
  );
}

/** A schedule that may run has the state of its last run. Any other one has its own state, and that of its last run
 * beside it. */
function shownAs(
  { id, name, kind, state }: NodeOfGraph,
  glance: GlanceAtSchedule | undefined,
  now: number,
): PictureNode {
  const last = lastOf(glance);
  const when = last && ago(last.at, Math.max(now, Date.parse(last.at)));
  const isOn = state === "enabled";
  return {
    id,
    title: shortName(name),
    kind,
    state: isOn && last ? last.state : state,
    note: last && (isOn ? when : `${last.state} ${when}`),
  };
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
  nodes,
  edges,
  seen,
  failed,
}: {
  node: NodeOfGraph | undefined;
  nodes: NodeOfGraph[];
  edges: EdgeOfGraph[];
  seen: Map<string, GlanceAtSchedule>;
  failed: NodeOfGraph[];
}) {
  const { change } = usePlace();
  if (!node) return <Failed nodes={failed} seen={seen} />;
  const glance = seen.get(node.name);
  const target = ofRef(node.kind, node.name);
  const last = lastOf(glance);
  const whole = around(edges, node.id);
  const titles = new Map(nodes.map(({ id, name }) => [id, shortName(name)]));
  const list = (title: string, all: number, found: { id: string; text: string }[]) =>
    found.length > 0 && (
      <>
        <h3>
          {title}
          {all > found.length && <span className="faint"> {count(all, "node")} in all</span>}
        </h3>
        <ul>
          {found.map((item) => (
            <li key={`${item.id} ${item.text}`}>
              <button type="button" className="link" onClick={() => change({ node: item.id }, true)}>
                {titles.get(item.id)}
              </button>
              <span className="sub">
                <Reason text={item.text} />
              </span>
            </li>
          ))}
        </ul>
      </>
    );
  return (
    <aside className="side">
      <p className="faint">
        {node.kind}
        {node.dag && (
          <>
            {" "}
            of the DAG <Go to={paths.dag(node.dag)}>{shortName(node.dag)}</Go>
          </>
        )}
      </p>
      <h2>{target ? <Go {...target}>{shortName(node.name)}</Go> : shortName(node.name)}</h2>
      {node.state && <State state={node.state} />}
      {last && (
        <p>
          last run <State state={last.state} /> <Ago at={last.at} />, <RunLink id={last.run_id} />
        </p>
      )}
      {glance && (
        <p className="sub">
          <Reason text={glance.why} />
        </p>
      )}
      <button type="button" className="button small" onClick={() => change({ around: node.id, node: undefined })}>
        Show only what is around it
      </button>
      {list(
        "Waits for",
        whole.before.size,
        edges.filter((edge) => edge.to === node.id).map((edge) => ({ id: edge.from, text: edge.text })),
      )}
      {list(
        "Leads to",
        whole.after.size,
        edges.filter((edge) => edge.from === node.id).map((edge) => ({ id: edge.to, text: edge.text })),
      )}
    </aside>
  );
}

/** Without a chosen node: the schedules whose last run has failed. */
function Failed({ nodes, seen }: { nodes: NodeOfGraph[]; seen: Map<string, GlanceAtSchedule> }) {
  const { change } = usePlace();
  return (
    <aside className="side">
      {nodes.length > 0 && <h2>Failed last</h2>}
      <ul>
        {nodes.map(({ id, name }) => (
          <li key={id}>
            <button type="button" className="link name" onClick={() => change({ node: id }, true)}>
              {shortName(name)}
            </button>{" "}
            <span className="faint">
              <Ago at={lastOf(seen.get(name))?.at} />
            </span>
          </li>
        ))}
      </ul>
      <p className="faint">Choose a node to see what it waits for and what waits for it.</p>
    </aside>
  );
}
