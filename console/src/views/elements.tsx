import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { dag as read } from "../api/queries";
import type { Elements as Counts, Element, RunOfDag } from "../api/types";
import { number } from "../lib/format";
import { ActButton } from "../parts/act";
import { Command } from "../parts/command";
import { RunLink } from "../parts/go";
import { Await } from "../parts/panel";
import { Reason, State, Took } from "../parts/text";

const SHOWN = 10;

/** The elements of a node of a DAG run: how many there are, those that failed first, and a way to run them again. */
export function Elements({ dag, run, node, counts }: { dag: string; run: RunOfDag; node: string; counts: Counts }) {
  const listed = useQuery(read.elements(dag, run.run_id, node));
  const [most, setMost] = useState(SHOWN);
  const isOver = run.state !== "RUNNING";
  return (
    <>
      <h3>Elements</h3>
      <CountsBar of={counts} />
      <p>{elementsInWords(counts)}</p>
      {counts.failed > 0 && isOver && (
        <ActButton small action={actions.rerunDag(dag, run.run_id, { from: node, elements: "failed" })}>
          Run {number(counts.failed)} failed again
        </ActButton>
      )}
      <Await query={listed}>
        {({ items }) => (
          <>
            <ul className="elements">
              {items.slice(0, most).map((item) => (
                <One key={item.index} dag={dag} run={run.run_id} node={node} item={item} isOver={isOver} />
              ))}
            </ul>
            {items.length > most ? (
              <button type="button" className="button small" onClick={() => setMost(items.length)}>
                Show {number(items.length - most)} more
              </button>
            ) : (
              counts.count > items.length && (
                <p className="faint">
                  {number(counts.count - items.length)} more <Command text={commands.elements(dag, run.run_id, node)} />
                </p>
              )
            )}
          </>
        )}
      </Await>
    </>
  );
}

function One({
  dag,
  run,
  node,
  item,
  isOver,
}: {
  dag: string;
  run: string;
  node: string;
  item: Element;
  isOver: boolean;
}) {
  const name = `${node}[${item.index}]`;
  const value = typeof item.value === "string" ? item.value : JSON.stringify(item.value);
  const failed = !["SUCCEEDED", "RUNNING", "STARTING", "RETRYING", "WAITING", "PENDING"].includes(item.state);
  return (
    <li>
      <span className="element">
        <State state={item.state} word={false} />
        {item.run_id ? <RunLink id={item.run_id}>{name}</RunLink> : <span className="id">{name}</span>}
        <span className="space" />
        {item.started_at && (
          <span className="faint">
            <Took from={item.started_at} to={item.ended_at} living={!item.ended_at} />
          </span>
        )}
        {failed && isOver && (
          <ActButton small action={actions.rerunDag(dag, run, { from: node, elements: [item.index] })}>
            Again
          </ActButton>
        )}
      </span>
      <code className="element-value" title={value}>
        <bdi>{value}</bdi>
      </code>
      {item.state !== "SUCCEEDED" && (
        <span className="sub">
          <Reason text={item.why} />
        </span>
      )}
    </li>
  );
}

/** The parts of a list by what became of them, with those that are open at the right. */
function CountsBar({ of: { count, succeeded, failed, running = 0 } }: { of: Counts }) {
  const part = (many: number, look: string) =>
    many > 0 && <span className={look} style={{ width: `${(100 * many) / count}%` }} />;
  return (
    <span className="counts-bar elements-bar" aria-hidden="true">
      {part(failed, "mark-bad")}
      {part(succeeded, "used")}
      {part(running, "mark-run")}
    </span>
  );
}

/** `28 of 30 succeeded; 2 failed`. */
function elementsInWords({ count, failed, succeeded, running, waiting }: Counts): string {
  const part = (many: number | undefined, word: string) => (many ? [`${number(many)} ${word}`] : []);
  const parts = [...part(failed, "failed"), ...part(running, "running"), ...part(waiting, "waiting")];
  return `${number(succeeded)} of ${number(count)} succeeded${parts.length ? `; ${parts.join(", ")}` : ""}`;
}
