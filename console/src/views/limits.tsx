import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { Limit } from "../api/types";
import { useKeys } from "../frame/keys";
import { useNs, usePlace } from "../frame/place";
import { hasText } from "../lib/filter";
import { number, withoutNamespace } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { Command, copyCommand } from "../parts/command";
import { ChoiceFilter, ClearFilters, TextFilter } from "../parts/filters";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, State } from "../parts/text";

const FILTERS: SearchKey[] = ["q", "kind"];

/** The kinds of limits, each with its word. An admission is a part of a policy. */
const KINDS: Record<string, string> = {
  workflow: "workflow",
  dag: "DAG",
  group: "group",
  rate: "rate",
  pool: "pool",
  policy: "policy",
  admission: "admission",
  application: "EMR application",
  emr: "EMR",
};

/** Every limit, whether or not someone waits: what it allows, what is in use, and the queue in its order. */
export function Limits() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.allLimits(ns));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), c: () => void copyCommand(commands.pools(ns)) });
  const shown = (query.data?.items ?? []).filter(
    (limit) => (!search.kind || limit.kind === search.kind) && hasText(search.q, limit.of, limit.name, limit.rule),
  );
  return (
    <div className="page">
      <div className="page-head">
        <h1>Limits</h1>
        <span className="faint" aria-live="polite">
          {query.data &&
            `${number(shown.length, !query.data.whole)} of pools, policies, workflows, DAGs, groups, rates and EMR`}
        </span>
        <span className="space" />
        <Command text={commands.pools(ns)} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of a rule" grow at={field} />
        <ChoiceFilter of="kind" label="Kind" options={Object.keys(KINDS)} />
        <ClearFilters of={FILTERS} />
      </div>
      <div className="grid wide-left start">
        <div className="grid start">
          <section className="panel">
            <Await query={query} rows={8}>
              {({ items }) => (
                <Every
                  ns={ns}
                  limits={shown}
                  some={items.length > 0}
                  chosen={search.name}
                  choose={(name) => change({ name })}
                />
              )}
            </Await>
          </section>
          <OfNamespace ns={ns} />
        </div>
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

const QUOTAS = [
  { id: "schedules", word: "Schedules" },
  { id: "documents", word: "Documents" },
  { id: "fires_per_second", word: "Fires a second" },
  { id: "waiting_jobs", word: "Waiting jobs" },
  { id: "requests_per_second", word: "Requests a second" },
] as const;

/** What the namespace may have, and what it has. */
function OfNamespace({ ns }: { ns: string }) {
  const query = useQuery(namespace.quotas(ns));
  return (
    <Panel title="Quotas" note="of the namespace; beyond them a request is refused">
      <Await query={query} rows={3}>
        {({ effective, used }) => (
          <table>
            <tbody>
              {QUOTAS.map(({ id, word }) => {
                const has = id === "requests_per_second" ? null : used[id];
                return (
                  <tr key={id}>
                    <td className="fit">{word}</td>
                    <td>
                      {has !== null && <Use of={{ in_use: has, maximum: effective[id], unit: "" }} />}
                      {has === null && effective[id] !== null && `at most ${number(effective[id])}`}
                      {effective[id] === null && <span className="faint"> no quota</span>}
                    </td>
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

/** The name of a limit without its kind and namespace. A share stands after its pool, and the rule of a rate is told
 * beside it. */
function nameOf(limit: Limit, ns: string): string {
  if (limit.kind === "emr") return "starts of jobs in this account";
  const parts = limit.name.split(":").slice(1);
  return (limit.kind === "rate" ? parts.slice(0, 1) : parts).map((part) => withoutNamespace(part, ns)).join(" › ");
}

function Every({
  ns,
  limits,
  some,
  chosen,
  choose,
}: {
  ns: string;
  limits: Limit[];
  /** Whether there are any, also such as do not fit. */
  some: boolean;
  chosen: string | undefined;
  choose: (name: string) => void;
}) {
  const columns: Column<Limit>[] = [
    {
      id: "kind",
      width: "76px",
      head: "Kind",
      cell: (limit) => <span className="faint">{KINDS[limit.kind] ?? limit.kind}</span>,
    },
    {
      id: "name",
      width: "minmax(200px, 2.4fr)",
      head: "Name, and what it allows",
      cell: (limit) => (
        <>
          <button
            type="button"
            className="link name"
            title={limit.name}
            aria-pressed={chosen === limit.name}
            onClick={() => choose(limit.name)}
          >
            {nameOf(limit, ns)}
          </button>
          <span className="sub" title={limit.rule ?? undefined}>
            {limit.rule ?? "what its schedules say"}
          </span>
        </>
      ),
    },
    { id: "use", width: "minmax(130px, 1fr)", head: "In use", cell: (limit) => <Use of={limit} /> },
    { id: "waiting", width: "64px", head: "Waiting", end: true, cell: (limit) => number(limit.waiting) },
    {
      id: "next",
      width: "80px",
      head: "Next start",
      cell: (limit) => (limit.next_at ? <Ago side="next" at={limit.next_at} /> : <span className="faint">–</span>),
    },
  ];
  return (
    <Rows
      label="Limits"
      rows={limits}
      columns={columns}
      fill={false}
      height={46}
      rowKey={(limit) => limit.name}
      rowClass={(limit) => (limit.name === chosen ? "chosen" : "")}
      onOpen={(limit) => choose(limit.name)}
      keys={{ c: (limit) => void copyCommand(commandOf(ns, limit)) }}
      empty={
        some ? (
          <Empty>No limit fits.</Empty>
        ) : (
          <Empty command="sluice apply app.yaml">
            No limits, and nobody waits in a queue. An app document may have pools, policies, and schedules with limits.
          </Empty>
        )
      }
    />
  );
}

/** The command that shows a limit, or the list in which it stands. */
function commandOf(ns: string, limit: Limit): string {
  const [, owner = ""] = limit.name.split(":");
  const has = ["pool", "policy", "workflow", "dag"].includes(limit.kind);
  return has ? commands.describe(limit.kind, owner) : commands.jobs(ns);
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
                {limit.rule && <p>{limit.rule}</p>}
                {limit.in_use !== null && <Use of={limit} />}
                {limit.next_at && (
                  <p>
                    the next may start <Ago side="next" at={limit.next_at} />
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
            <Ago side="past" at={holder.since} />
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
