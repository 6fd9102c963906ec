import { useQuery } from "@tanstack/react-query";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { dag as read } from "../api/queries";
import type { Element, RunOfDag } from "../api/types";
import { ActButton } from "../parts/act";
import { Command } from "../parts/command";
import { RunLink } from "../parts/go";
import { Await } from "../parts/panel";
import { Reason, State } from "../parts/text";

type Counts = NonNullable<RunOfDag["nodes"][string]["elements"]>;
const SHOWN = 20;

/** The elements of a node of a DAG run: how many there are, those that failed first, and a way to run them again. */
export function Elements({ dag, run, node, counts }: { dag: string; run: RunOfDag; node: string; counts: Counts }) {
  const listed = useQuery(read.elements(dag, run.run_id, node));
  return (
    <>
      <h3>Elements</h3>
      <p>{said(counts)}</p>
      {counts.failed > 0 && run.state !== "RUNNING" && (
        <ActButton small action={actions.rerunDag(dag, run.run_id, { from: node, elements: "failed" })}>
          Run {counts.failed.toLocaleString("en")} failed again
        </ActButton>
      )}
      <Await query={listed}>
        {({ items }) => (
          <>
            <ul>
              {items.slice(0, SHOWN).map((item) => (
                <One key={item.index} node={node} item={item} />
              ))}
            </ul>
            {counts.count > SHOWN && (
              <p className="faint">
                {(counts.count - SHOWN).toLocaleString("en")} more <Command text={commands.elements(dag, run.run_id, node)} />
              </p>
            )}
          </>
        )}
      </Await>
    </>
  );
}

function One({ node, item }: { node: string; item: Element }) {
  const name = `${node}[${item.index}]`;
  return (
    <li>
      <State state={item.state} word={false} /> {item.run_id ? <RunLink id={item.run_id}>{name}</RunLink> : name}{" "}
      <code title={JSON.stringify(item.value)}>{short(JSON.stringify(item.value))}</code>
      {item.state !== "SUCCEEDED" && (
        <span className="sub">
          <Reason text={item.why} />
        </span>
      )}
    </li>
  );
}

function said(counts: Counts): string {
  const part = (number: number | undefined, word: string) => (number ? [`${number.toLocaleString("en")} ${word}`] : []);
  const { count, failed, succeeded, running, waiting } = counts;
  const parts = [...part(failed, "failed"), ...part(running, "running"), ...part(waiting, "waiting")];
  return `${succeeded.toLocaleString("en")} of ${count.toLocaleString("en")} succeeded${parts.length ? `; ${parts.join(", ")}` : ""}`;
}

function short(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 37)}...`;
}
