import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { Limit } from "../api/types";
import { useKeys } from "../frame/keys";
import { useNs, usePlace } from "../frame/place";
import { number, withoutNamespace } from "../lib/format";
import { paths } from "../lib/paths";
import { Command, copyCommand } from "../parts/command";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, State, When } from "../parts/text";

/** Pools, policies, and every limit in which someone waits: what is in use, and the queue in its order. */
export function Limits() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.limits(ns));
  useKeys({ c: () => void copyCommand(commands.pools(ns)) });
  return (
    <div className="page">
      <div className="page-head">
        <h1>Limits</h1>
        <span className="faint">pools, policies, and limits with a queue</span>
        <span className="space" />
        <Command text={commands.pools(ns)} />
      </div>
      <div className="grid wide-left start">
        <section className="panel">
          <Await query={query}>
            {({ items }) => <Every ns={ns} limits={items} chosen={search.name} choose={(name) => change({ name })} />}
          </Await>
        </section>
        {search.name ? (
          <OneLimit ns={ns} name={search.name} />
        ) : (
          <Panel title="One limit">
            <Empty>Choose a limit to see who holds it and who waits for it.</Empty>
          </Panel>
        )}
      </div>
    </div>
  );
}

/** The name of a limit without its kind and namespace. A share stands after its pool. */
const nameOf = (limit: Limit, ns: string) =>
  (limit.name.split(":").slice(1) || [limit.name]).map((part) => withoutNamespace(part, ns)).join(" › ");

function Every({
  ns,
  limits,
  chosen,
  choose,
}: {
  ns: string;
  limits: Limit[];
  chosen: string | undefined;
  choose: (name: string) => void;
}) {
  const columns: Column<Limit>[] = [
    { id: "kind", width: "72px", head: "Kind", cell: (limit) => <span className="faint">{limit.kind}</span> },
    {
      id: "name",
      width: "minmax(140px, 1.4fr)",
      head: "Name",
      cell: (limit) => (
        <button
          type="button"
          className="link name"
          title={limit.name}
          aria-pressed={chosen === limit.name}
          onClick={() => choose(limit.name)}
        >
          {nameOf(limit, ns)}
        </button>
      ),
    },
    { id: "use", width: "minmax(150px, 1fr)", head: "In use", cell: (limit) => <Use of={limit} /> },
    { id: "waiting", width: "72px", head: "Waiting", end: true, cell: (limit) => number(limit.waiting) },
    {
      id: "next",
      width: "90px",
      head: "Next start",
      cell: (limit) => (limit.next_at ? <Ago at={limit.next_at} /> : <span className="faint">–</span>),
    },
  ];
  return (
    <Rows
      label="Limits"
      rows={limits}
      columns={columns}
      fill={false}
      rowKey={(limit) => limit.name}
      rowClass={(limit) => (limit.name === chosen ? "chosen" : "")}
      onOpen={(limit) => choose(limit.name)}
      keys={{ c: (limit) => void copyCommand(commandOf(ns, limit)) }}
      empty={
        <Empty command="sluice apply app.yaml">
          No pools, no policies, and nobody waits in a queue. An app document may have pools and policies.
        </Empty>
      }
    />
  );
}

/** The command that shows a limit, or the list in which it stands. */
function commandOf(ns: string, limit: Limit): string {
  const [, owner = ""] = limit.name.split(":");
  if (limit.kind === "pool" || limit.kind === "policy") return commands.describe(limit.kind, owner);
  return limit.kind === "workflow" ? commands.describe("workflow", owner) : commands.jobs(ns);
}

/** How many of a list are drawn before a person asks for more: more than these nobody compares at a glance. */
const AT_FIRST = 20;

interface FewProps<T> {
  title: string;
  note: string;
  /** Null if the limit does not list them. */
  items: readonly T[] | null;
  /** What the items are, after their number. */
  word: string;
  empty: string;
  rowKey: (item: T) => string;
  cells: (item: T) => ReactNode;
}

/** A panel with the first of some items, each a row, and a button for the others. */
function Few<T>({ title, note, items, word, empty, rowKey, cells }: FewProps<T>) {
  const [whole, setWhole] = useState(false);
  const all = items ?? [];
  const left = whole ? 0 : all.length - AT_FIRST;
  return (
    <Panel title={title} note={note}>
      {items?.length === 0 && <Empty>{empty}</Empty>}
      <table>
        <tbody>
          {(left > 0 ? all.slice(0, AT_FIRST) : all).map((item) => (
            <tr key={rowKey(item)}>{cells(item)}</tr>
          ))}
        </tbody>
      </table>
      {left > 0 && (
        <p className="pad">
          <button type="button" className="button small" onClick={() => setWhole(true)}>
            Show {number(left)} more {word}
          </button>
        </p>
      )}
    </Panel>
  );
}

function Use({ of }: { of: Pick<Limit, "in_use" | "maximum" | "unit"> }) {
  if (of.in_use === null) return <span className="faint">–</span>;
  const share = of.maximum ? Math.min(1, of.in_use / of.maximum) : 0;
  return (
    <span className="counts use">
      {of.maximum !== null && (
        <span className="counts-bar" aria-hidden="true">
          <span className={share >= 1 ? "full" : "used"} style={{ width: `${share * 100}%` }} />
        </span>
      )}
      <span className="num">
        {number(of.in_use)}
        {of.maximum !== null && ` of ${number(of.maximum)}`} {of.unit}
      </span>
    </span>
  );
}

function OneLimit({ ns, name }: { ns: string; name: string }) {
  const query = useQuery(namespace.limits(ns, name));
  return (
    <Await query={query}>
      {({ items }) => {
        const limit = items[0];
        if (!limit) return <Empty>No limit is named {name}.</Empty>;
        return (
          <div className="grid start">
            <Panel
              title={withoutNamespace(limit.of, ns)}
              note={limit.of.startsWith(limit.kind) ? undefined : limit.kind}
            >
              <div className="body grid start">
                <Use of={limit} />
                {limit.next_at && (
                  <p>
                    it lets the next start at <When at={limit.next_at} as="second" />
                  </p>
                )}
              </div>
            </Panel>
            {limit.kind === "pool" && <Shares ns={ns} name={limit.name} />}
            <Holders limit={limit} />
            <Waiters limit={limit} />
          </div>
        );
      }}
    </Await>
  );
}

/** The parts of a pool: what its shares reserve, and what everybody may use. */
function Shares({ ns, name }: { ns: string; name: string }) {
  const { search } = usePlace();
  const pool = name.split(":")[1] ?? "";
  const query = useQuery(namespace.pool(pool));
  return (
    <Panel title="Shares" note="what each may use; the rest is for everybody">
      <Await query={query}>
        {(data) => (
          <table>
            <tbody>
              {((data.parts ?? []) as unknown as PartOfPool[]).map((part) => {
                const limit = part.of === "everybody" ? `pool:${pool}` : `pool:${pool}:${part.of}`;
                return (
                  <tr key={part.of} aria-current={search.name === limit}>
                    <td>
                      <Go to={paths.view(ns, "limits")} search={{ name: limit }} className="name">
                        {withoutNamespace(part.of, ns)}
                      </Go>
                    </td>
                    <td>
                      <Use of={{ in_use: part.in_use, maximum: part.units, unit: data.unit ?? "slots" }} />
                    </td>
                    <td className="end">{number(part.waiting)} wait</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
      </Await>
    </Panel>
  );
}

interface PartOfPool {
  of: string;
  units: number;
  in_use: number;
  waiting: number;
}

function Holders({ limit }: { limit: Limit }) {
  return (
    <Few
      title="In use by"
      note={limit.holders ? number(limit.holders.length, limit.at_least) : "it does not list its holders"}
      items={limit.holders}
      word="holders"
      empty="Nobody."
      rowKey={(holder) => `${holder.run_id} ${holder.attempt}`}
      cells={(holder) => (
        <>
          <td className="fit">
            <State state={holder.state} word={false} /> <ScheduleLink name={holder.schedule} />
          </td>
          <td>
            <RunLink id={holder.run_id} />
          </td>
          <td className="end">
            <Ago at={holder.since} />
          </td>
        </>
      )}
    />
  );
}

function Waiters({ limit }: { limit: Limit }) {
  const listed = limit.waiters?.length ?? 0;
  return (
    <Few
      title="Queue"
      note={`${number(limit.waiting)} wait, in this order${listed < limit.waiting ? `; the first ${number(listed)} are listed` : ""}`}
      items={limit.waiters ?? []}
      word="that wait"
      empty="Nobody waits."
      rowKey={(waiter) => `${waiter.job_id} ${waiter.position}`}
      cells={(waiter) => (
        <>
          <td className="end fit">{waiter.position}</td>
          <td>
            <ScheduleLink name={waiter.schedule} />
          </td>
          <td className="end">
            {waiter.attempt === null ? (
              <JobLink id={waiter.job_id} />
            ) : (
              <RunLink id={waiter.job_id}>attempt {waiter.attempt}</RunLink>
            )}
          </td>
        </>
      )}
    />
  );
}
