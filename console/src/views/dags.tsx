import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { StoredDag } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { hasTag, hasText } from "../lib/filter";
import { number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { PAUSED } from "../lib/states";
import { Command, copyCommand } from "../parts/command";
import { AppFilter, Chips, ClearFilters, TextFilter } from "../parts/filters";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Reason, State } from "../parts/text";

const FILTERS: SearchKey[] = ["q", "app", "state", "tag"];
const STATES = ["enabled", "paused", "completed", "disabled"];

const COLUMNS: Column<StoredDag>[] = [
  {
    id: "name",
    width: "minmax(200px, 1fr)",
    head: "Name",
    cell: (dag) => (
      <Go to={paths.dag(dag.name)} className="name">
        {shortName(dag.name)}
      </Go>
    ),
  },
  { id: "state", width: "130px", head: "State", cell: (dag) => <StateOfDag of={dag} /> },
  { id: "nodes", width: "70px", head: "Nodes", end: true, cell: (dag) => number(Object.keys(dag.nodes).length) },
  {
    id: "description",
    width: "minmax(200px, 2fr)",
    head: "Description",
    cell: (dag) =>
      dag.description ? (
        <span title={dag.description}>{dag.description}</span>
      ) : (
        <span className="faint">{dag.triggered_by && <Reason text={dag.triggered_by} short />}</span>
      ),
  },
];

/** The DAGs of a namespace. */
export function Dags() {
  const ns = useNs();
  const go = useGo();
  const { search } = usePlace();
  const query = useQuery(namespace.dags(ns));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), c: () => void copyCommand(commands.list("dags", ns)) });
  const shown = (query.data ?? []).filter(
    (dag) =>
      hasText(search.q, dag.name, dag.description) &&
      (!search.tag || hasTag(dag.tags ?? {}, search.tag.toLowerCase())) &&
      (!search.app || dag.name.split(".")[1] === search.app) &&
      (!search.state || dag.state === search.state || (search.state === "paused" && isPaused(dag))),
  );
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>DAGs</h1>
        <span className="faint">
          {query.data &&
            (shown.length === query.data.length
              ? number(shown.length)
              : `${number(shown.length)} of ${number(query.data.length)}`)}
        </span>
        <span className="space" />
        <Command text={commands.list("dags", ns)} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of a description" grow at={field} />
        <AppFilter />
        <TextFilter of="tag" label="Tag" placeholder="tag: team=a" />
        <Chips of="state" label="State" options={STATES} />
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={6}>
        {(all) => (
          <Rows
            label="DAGs"
            rows={shown}
            columns={COLUMNS}
            rowKey={(dag) => dag.name}
            onOpen={(dag) => go(paths.dag(dag.name))}
            empty={
              all.length > 0 ? (
                <Empty>No DAG fits.</Empty>
              ) : (
                <Empty command={commands.list("dags", ns)}>
                  No DAGs. An app document may have them under dags: nodes, each with its workflow, and edges.
                </Empty>
              )
            }
          />
        )}
      </Await>
    </div>
  );
}

const isPaused = (dag: StoredDag) => PAUSED.includes(dag.state ?? "");

function StateOfDag({ of }: { of: StoredDag }) {
  if (!of.state) return <span className="faint">not known</span>;
  return (
    <>
      <State state={of.state} />
      {(of.stops?.length ?? 0) > 0 && <span className="tag">stopped</span>}
    </>
  );
}
