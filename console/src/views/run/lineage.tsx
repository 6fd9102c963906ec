import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { run as read } from "../../api/queries";
import type { Lineage, NodeOfLineage } from "../../api/types";
import { useNs } from "../../frame/place";
import { scheduleOf, shortName, withoutNamespace } from "../../lib/format";
import { paths } from "../../lib/paths";
import { Go } from "../../parts/go";
import { Await } from "../../parts/panel";
import { Reason, State, When } from "../../parts/text";

/** What led to a run and what followed, in steps from left to right. */
export function LineageOf({ id }: { id: string }) {
  const query = useQuery(read.lineage(id));
  return <Await query={query}>{(data) => <Steps lineage={data} />}</Await>;
}

function Steps({ lineage }: { lineage: Lineage }) {
  const depths = [...new Set(lineage.nodes.map((node) => node.depth))].sort((a, b) => a - b);
  return (
    <div className="lineage">
      {depths.map((depth, index) => (
        <Fragment key={depth}>
          {index > 0 && (
            <span className="lineage-arrow" aria-hidden="true">
              →
            </span>
          )}
          <div className="lineage-step">
            <h3>{depth === 0 ? "This run" : depth < 0 ? "Led to it" : "Followed"}</h3>
            {lineage.nodes
              .filter((node) => node.depth === depth)
              .map((node) => (
                <Card
                  key={node.id}
                  node={node}
                  edges={lineage.edges.filter((edge) => (depth < 0 ? edge.from : edge.to) === node.id)}
                />
              ))}
          </div>
        </Fragment>
      ))}
      {lineage.at_least && <p className="faint">There is more than this: a hundred in each direction are shown.</p>}
    </div>
  );
}

function Card({ node, edges }: { node: NodeOfLineage; edges: Lineage["edges"] }) {
  const to = addressOf(node);
  const ns = useNs();
  const name = node.schedule ? shortName(node.schedule) : withoutNamespace(node.reason || node.id, ns);
  return (
    <div className={`card ${node.depth === 0 ? "here" : ""}`}>
      <p>
        {to && node.depth !== 0 ? (
          <Go {...to} className="name">
            {name}
          </Go>
        ) : (
          <span className="name">{name}</span>
        )}
      </p>
      {node.state && <State state={node.state} />}
      {node.schedule && node.reason && <Reason text={node.reason} short />}
      <p className="faint">
        <When at={node.at} as="second" />
      </p>
      {edges.length > 0 && node.depth !== 0 && (
        <p className="faint">{[...new Set(edges.map((edge) => edge.text))].join(", ")}</p>
      )}
    </div>
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
