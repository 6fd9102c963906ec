import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { run as read } from "../../api/queries";
import type { Lineage, NodeOfLineage } from "../../api/types";
import { useNs, useZone } from "../../frame/place";
import { Picture } from "../../graph/picture";
import { millis, scheduleOf, shortName, withoutNamespace } from "../../lib/format";
import { paths } from "../../lib/paths";
import { withInstants } from "../../lib/sentence";
import { show } from "../../lib/zone";
import { Go } from "../../parts/go";
import { Await } from "../../parts/panel";
import { Reason, State, When } from "../../parts/text";

/** What led to a run and what followed, from left to right. */
export function LineageOf({ id }: { id: string }) {
  const query = useQuery(read.lineage(id));
  return <Await query={query}>{(data) => <Steps lineage={data} />}</Await>;
}

function Steps({ lineage: { run_id: own, nodes, edges, at_least } }: { lineage: Lineage }) {
  const ns = useNs();
  const zone = useZone();
  const [chosen, choose] = useState(own);
  const nameOf = (node: NodeOfLineage) =>
    node.schedule
      ? shortName(node.schedule)
      : withInstants(withoutNamespace(node.reason || node.id, ns), (at) => show(at, zone, "second"));
  const node = nodes.find(({ id }) => id === chosen);
  return (
    <div className="sheet with-side tall">
      <Picture
        label="What led to this run and what followed"
        nodes={nodes.map((each) => ({
          id: each.id,
          title: nameOf(each),
          kind: each.id === own ? "this run" : each.kind,
          state: each.state,
          note: show(millis(each.at) ?? 0, zone, "clock"),
        }))}
        edges={edges}
        chosen={chosen}
        choose={choose}
      />
      <aside className="side">
        {node && <Facts node={node} name={nameOf(node)} isOwn={node.id === own} />}
        <Others
          title="Led to it"
          found={edges.filter(({ to }) => to === chosen).map(({ from, text }) => ({ id: from, text }))}
          {...{ nodes, nameOf, choose }}
        />
        <Others
          title="Followed"
          found={edges.filter(({ from }) => from === chosen).map(({ to, text }) => ({ id: to, text }))}
          {...{ nodes, nameOf, choose }}
        />
        {at_least && <p className="faint">There is more than this: a hundred in each direction are shown.</p>}
      </aside>
    </div>
  );
}

function Facts({ node, name, isOwn }: { node: NodeOfLineage; name: string; isOwn: boolean }) {
  const to = addressOf(node);
  return (
    <>
      <p className="faint">{isOwn ? "this run" : node.kind}</p>
      <h2>{to && !isOwn ? <Go {...to}>{name}</Go> : name}</h2>
      {node.state && <State state={node.state} />}
      {node.schedule && node.reason && (
        <p>
          <Reason text={node.reason} />
        </p>
      )}
      <p className="faint">
        <When at={node.at} as="second" />
      </p>
    </>
  );
}

function Others({
  title,
  found,
  nodes,
  nameOf,
  choose,
}: {
  title: string;
  found: { id: string; text: string }[];
  nodes: NodeOfLineage[];
  nameOf: (node: NodeOfLineage) => string;
  choose: (id: string) => void;
}) {
  if (found.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {found.map(({ id, text }) => {
          const other = nodes.find((node) => node.id === id);
          return (
            <li key={`${id} ${text}`}>
              {other?.state && <State state={other.state} word={false} />}{" "}
              <button type="button" className="link" onClick={() => choose(id)}>
                {other ? nameOf(other) : id}
              </button>
              <span className="sub">{text}</span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function addressOf(node: NodeOfLineage): { to: string; search?: Record<string, string> } | null {
  if (node.kind === "run" || node.kind === "record") return { to: paths.run(node.id) };
  if (node.kind === "job") return { to: paths.job(node.id) };
  if (node.kind === "partition") {
    const [dataset = "", ...values] = node.id.replace("partition:", "").split("/");
    return { to: paths.dataset(dataset), search: { at: values.join("/") } };
  }
  return node.schedule ? { to: paths.schedule(scheduleOf(node.schedule)) } : null;
}
