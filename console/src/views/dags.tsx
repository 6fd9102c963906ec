import { useQueries, useQuery } from "@tanstack/react-query";
import { commands } from "../api/commands";
import { namespace, dag as read } from "../api/queries";
import type { StoredDag } from "../api/types";
import { useNs } from "../frame/place";
import { number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { Go } from "../parts/go";
import { Await, Empty, Failure } from "../parts/panel";
import { State } from "../parts/text";

/** The DAGs of a namespace, app by app. */
export function Dags() {
  const ns = useNs();
  const apps = useQuery(namespace.apps(ns));
  return (
    <div className="page">
      <div className="page-head">
        <h1>DAGs</h1>
      </div>
      <section className="panel scroll-x">
        <Await query={apps}>
          {({ items }) => <OfApps ns={ns} apps={items.map((app) => app.name.split(".").at(-1) ?? "")} />}
        </Await>
      </section>
    </div>
  );
}

function OfApps({ ns, apps }: { ns: string; apps: string[] }) {
  const lists = useQueries({ queries: apps.map((app) => read.list(ns, app)) });
  const dags = lists.flatMap((list): StoredDag[] => list.data?.items ?? []);
  const failed = lists.find((list) => list.error);
  if (failed) return <Failure error={failed.error} retry={() => failed.refetch()} />;
  if (dags.length === 0) {
    return lists.some((list) => list.isPending) ? null : (
      <Empty command={commands.list("dags", ns)}>
        No DAGs. An app document may have them under dags: nodes, each with its workflow, and edges.
      </Empty>
    );
  }
  return (
    <table>
      <thead>
        <tr>
          <th>Name</th>
          <th className="end">Nodes</th>
          <th>State</th>
          <th>Description</th>
        </tr>
      </thead>
      <tbody>
        {dags.map((dag) => (
          <tr key={dag.name}>
            <td>
              <Go to={paths.dag(dag.name)} className="name">
                {shortName(dag.name)}
              </Go>
            </td>
            <td className="end">{number(Object.keys(dag.nodes).length)}</td>
            <td>{dag.state && <State state={dag.state} />}</td>
            <td dir="auto">{dag.description}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
