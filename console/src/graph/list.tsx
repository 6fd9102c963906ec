import { useMemo } from "react";
import { State } from "../parts/text";
import type { PictureNode, PictureProps } from "./picture";

/** The nodes of a graph as a table, each with those before and after it. */
export function NodeList({ nodes, edges, shown, chosen, choose, label }: PictureProps & { shown: PictureNode[] }) {
  const beside = useMemo(() => {
    const titles = new Map(nodes.map(({ id, title }) => [id, title]));
    const found = new Map<string, { before: [string, string][]; after: [string, string][] }>(
      nodes.map(({ id }) => [id, { before: [], after: [] }]),
    );
    for (const { from, to } of edges) {
      found.get(to)?.before.push([from, titles.get(from) ?? from]);
      found.get(from)?.after.push([to, titles.get(to) ?? to]);
    }
    return found;
  }, [nodes, edges]);
  const names = (others: [string, string][] | undefined) => (
    <ul className="graph-names">
      {others?.map(([id, title]) => (
        <li key={id}>
          <button type="button" className="link" onClick={() => choose(id)}>
            {title}
          </button>
        </li>
      ))}
    </ul>
  );
  return (
    <div className="graph-list">
      <table aria-label={label}>
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th>Waits for</th>
            <th>Leads to</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((node) => (
            <tr key={node.id} aria-current={node.id === chosen}>
              <td>
                <button type="button" className="link name" onClick={() => choose(node.id)}>
                  {node.title}
                </button>
                <span className="sub">{node.kind}</span>
              </td>
              <td className="fit">
                {node.state && <State state={node.state} />}
                {node.note && <span className="sub">{node.note}</span>}
              </td>
              <td>{names(beside.get(node.id)?.before)}</td>
              <td>{names(beside.get(node.id)?.after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
