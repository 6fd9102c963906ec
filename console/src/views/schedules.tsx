import { useQuery } from "@tanstack/react-query";
import { useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { glances, namespace, type ScheduleList, scheduleRows } from "../api/queries";
import type { GlanceAtSchedule, LastRun, ScheduleInShort } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { fits, parseFilter, toggleTerm } from "../lib/filter";
import { count, dagOfStart, isOfMessage, number, shortName, withoutNamespace } from "../lib/format";
import { paths } from "../lib/paths";
import { inShort } from "../lib/sentence";
import { lookOfState, PAUSED } from "../lib/states";
import { ActButton, useAct } from "../parts/act";
import { copy } from "../parts/command";
import { Go, ScheduleLink } from "../parts/go";
import { Await, Empty, Failure } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, Reason, State, Unread } from "../parts/text";
import { BulkDialog } from "./schedules/bulk";

const STATES = ["enabled", "paused", "completed", "disabled"];

export function Schedules() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(scheduleRows(ns));
  const [typed, setTyped] = useState(search.q ?? "");
  const [written, setWritten] = useState(search.q ?? "");
  if ((search.q ?? "") !== written) {
    setWritten(search.q ?? "");
    setTyped(search.q ?? "");
  }
  const field = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  // Those on which a dialog acts stay the same while it is open, also when the list changes.
  const [bulk, setBulk] = useState<ScheduleInShort[] | null>(null);
  useKeys({ "/": () => field.current?.focus() });

  const write = (q: string) => {
    setTyped(q);
    setWritten(q);
    change({ q: q || undefined }, true);
  };
  const sought = useDeferredValue(typed);
  const byTarget = parseFilter(sought).target.length > 0;
  const workflows = useQuery({ ...namespace.workflows(ns), enabled: byTarget });
  const shown = useMemo(() => {
    const filter = parseFilter(sought);
    const targets = new Map((workflows.data ?? []).map(({ name, target }) => [name, target.type]));
    const fitting = (query.data?.rows ?? []).filter(
      (row) => !isOfMessage(row.name) && (search.all === "yes" || row.dag === null) && fits(row, filter, targets),
    );
    return sorted(fitting, search.sort);
  }, [query.data, workflows.data, sought, search.sort, search.all]);
  // With the filter `app:flights`, the whole app can be stopped.
  const app = useMemo(() => {
    const apps = parseFilter(sought).app;
    return apps.length === 1 ? query.data?.rows.find((row) => row.app.toLowerCase() === apps[0])?.app : undefined;
  }, [query.data, sought]);
  const owned = useMemo(() => (query.data?.rows ?? []).filter((row) => row.dag !== null).length, [query.data]);

  const toggle = useCallback((name: string) => {
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  }, []);
  // Only the DAG itself changes the schedules that it owns.
  const able = shown.filter((row) => row.dag === null && (chosen.size === 0 || chosen.has(row.name)));

  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Schedules</h1>
        <span className="faint" aria-live="polite">
          {query.data && countOf(shown.length, search.all === "yes" ? 0 : owned, query.data)}
        </span>
      </div>
      <div className="toolbar">
        <input
          ref={field}
          className="grow"
          type="search"
          aria-label="Filter"
          placeholder="part of a name, state:hold, tag:team=a, target:sqs"
          title="Also workflow:NAME. The key / comes here."
          value={typed}
          spellCheck={false}
          onChange={(event) => write(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <fieldset className="chips">
          <legend className="unseen">State</legend>
          {STATES.map((state) => (
            <button
              key={state}
              type="button"
              aria-pressed={typed.split(/\s+/).includes(`state:${state}`)}
              onClick={() => write(toggleTerm(typed, `state:${state}`))}
            >
              {state}
            </button>
          ))}
        </fieldset>
        {owned > 0 && (
          <label className="toolbar">
            <input
              type="checkbox"
              checked={search.all === "yes"}
              onChange={(event) => change({ all: event.target.checked ? "yes" : undefined })}
            />
            also {count(owned, "node")} of DAGs
          </label>
        )}
        <span className="space" />
        {chosen.size > 0 && (
          <button type="button" className="link" onClick={() => setChosen(new Set())}>
            Clear the choice
          </button>
        )}
        {app && <ActButton action={actions.stop(`${ns}.${app}`)} />}
        <button
          type="button"
          className="button"
          disabled={able.length === 0 || !query.data?.whole}
          onClick={() => setBulk(able)}
        >
          {chosen.size > 0 ? `Act on ${number(able.length)} chosen` : `Act on all ${number(able.length)}`}
        </button>
      </div>
      {byTarget && workflows.error && <Failure error={workflows.error} retry={() => workflows.refetch()} />}
      <Await query={query} rows={12}>
        {() => (
          <ScheduleTable ns={ns} rows={shown} chosen={chosen} toggle={toggle} setChosen={setChosen} sought={sought} />
        )}
      </Await>
      {bulk && <BulkDialog rows={bulk} filter={chosen.size > 0 ? "" : typed} close={() => setBulk(null)} />}
    </div>
  );
}

/** `433 of 10,000`; while more are read, so many so far. */
function countOf(fitting: number, hidden: number, { rows, whole }: ScheduleList): string {
  const many = rows.length - hidden;
  const text = fitting === many ? number(many) : `${number(fitting)} of ${number(many)}`;
  return `${text}${whole ? "" : " so far, reading more"}`;
}

interface TableProps {
  ns: string;
  rows: ScheduleInShort[];
  chosen: ReadonlySet<string>;
  toggle: (name: string) => void;
  setChosen: (names: ReadonlySet<string>) => void;
  sought: string;
}

function ScheduleTable({ ns, rows, chosen, toggle, setChosen, sought }: TableProps) {
  const [onScreen, setOnScreen] = useState<string[]>([]);
  const { known: seen, error } = useGlances(ns, onScreen);
  const open = useAct();
  const go = useGo();
  const showRows = useCallback(
    (visible: ScheduleInShort[]) => setOnScreen(visible.slice(0, 50).map((row) => row.name)),
    [],
  );
  const all = rows.length > 0 && chosen.size >= rows.length;

  const columns: Column<ScheduleInShort>[] = [
    {
      id: "chosen",
      width: "16px",
      head: (
        <input
          type="checkbox"
          aria-label={`Choose all ${rows.length} that fit`}
          checked={all}
          onChange={() => setChosen(all ? new Set() : new Set(rows.map((row) => row.name)))}
        />
      ),
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Choose ${row.name}`}
          checked={chosen.has(row.name)}
          onChange={() => toggle(row.name)}
        />
      ),
    },
    {
      id: "name",
      width: "minmax(220px, 1.3fr)",
      head: <SortButton by="name" word="Name" />,
      cell: (row) => (
        <>
          <State state={row.state} word={false} /> <ScheduleLink name={row.name} />{" "}
          {row.dag && <span className="tag">dag</span>}
          <Tags ns={ns} of={row.tags ?? {}} />
        </>
      ),
    },
    {
      id: "trigger",
      width: "minmax(160px, 1.1fr)",
      head: <SortButton by="trigger" word="Triggered by" />,
      cell: (row) => (
        <span className="two-lines" title={row.triggered_by}>
          {withoutNamespace(row.triggered_by, ns)}
        </span>
      ),
    },
    {
      id: "now",
      width: "minmax(200px, 1.7fr)",
      head: "Now",
      cell: (row) => <NowOf row={row} glance={seen.get(row.name)} error={error} />,
    },
    { id: "next", width: "72px", head: "Next", cell: (row) => <NextOf glance={seen.get(row.name)} error={error} /> },
    {
      id: "last",
      width: "112px",
      head: "Last 10",
      cell: (row) => <LastTen name={row.name} runs={seen.get(row.name)?.last} error={error} />,
    },
  ];

  return (
    <Rows
      label="Schedules"
      rows={rows}
      columns={columns}
      rowKey={(row) => row.name}
      height={52}
      onShown={showRows}
      onOpen={(row) => go(dagOfStart(row.name) ? paths.dag(row.dag ?? "") : paths.schedule(row.name))}
      rowClass={(row) => (chosen.has(row.name) ? "chosen" : "")}
      keys={{
        x: (row) => toggle(row.name),
        w: (row) => go(paths.schedule(row.name), { tab: "jobs" }),
        p: (row) =>
          row.dag === null && open(PAUSED.includes(row.state) ? actions.resume(row.name) : actions.pause(row.name)),
        c: (row) => copy(commands.describe("schedule", row.name)).then(() => tell("The command is copied")),
      }}
      empty={
        sought ? (
          <Empty>
            No schedule fits <code>{sought}</code>. <Go to={paths.view(ns, "schedules")}>Show all of them</Go>
          </Empty>
        ) : (
          <Empty command="sluice apply app.yaml">
            No schedules yet. An app document defines them; the command deploys it.
          </Empty>
        )
      }
    />
  );
}

/** The dear facts of the rows on screen; those of rows that were on screen stay. */
function useGlances(ns: string, names: string[]): { known: Map<string, GlanceAtSchedule>; error: Error | null } {
  const known = useRef(new Map<string, GlanceAtSchedule>());
  const { data, error } = useQuery(glances(ns, names));
  if (data) for (const [name, glance] of data) known.current.set(name, glance);
  return { known: known.current, error };
}

interface OfGlance {
  glance: GlanceAtSchedule | undefined;
  error: Error | null;
}

function NowOf({ row, glance, error }: { row: ScheduleInShort } & OfGlance) {
  if (!glance)
    return row.enabled ? <Unread error={error} /> : <span className="faint">{row.pause_reason ?? row.state}</span>;
  return (
    <span className={glance.waiting > 0 ? "now" : "now two-lines"} title={glance.why}>
      {/* What triggers it stands in its own column. */}
      <Reason text={inShort(glance.why.replace(/; trigger: .*$/, ""))} short />
      {glance.waiting > 0 && (
        <Go className="sub" to={paths.schedule(row.name)} search={{ tab: "jobs" }}>
          {count(glance.waiting, "waiting job", glance.at_least)}
        </Go>
      )}
    </span>
  );
}

function NextOf({ glance, error }: OfGlance) {
  return glance ? <Ago side="next" at={glance.next_fire} /> : <Unread error={error} />;
}

const MARKS = {
  ok: "mark-ok",
  bad: "mark-bad",
  run: "mark-run",
  wait: "mark-wait",
  off: "mark-off",
  plain: "mark-off",
};

/** The last runs, the newest at the right. One link for all: single cells are too small to be hit. */
function LastTen({ name, runs, error }: { name: string; runs: LastRun[] | undefined; error: Error | null }) {
  if (!runs) return <Unread error={error} />;
  if (runs.length === 0) return <span className="faint">no runs</span>;
  const failed = runs.filter((run) => run.state === "FAILED").length;
  return (
    <Go
      className="last"
      to={paths.schedule(name)}
      title={runs.map((run) => (run.count > 1 ? `${count(run.count, "event")} ${run.state}` : run.state)).join(", ")}
      aria-label={`Last ${count(runs.length, "run")}: ${failed} failed`}
    >
      {[...runs].reverse().map((run) => (
        <span key={`${run.run_id} ${run.attempt}`} className={MARKS[lookOfState(run.state).tone]} />
      ))}
    </Go>
  );
}

function SortButton({ by, word }: { by: "name" | "trigger"; word: string }) {
  const { search, change } = usePlace();
  const sort = search.sort ?? "name";
  const next = sort === by ? `-${by}` : by;
  return (
    <button type="button" onClick={() => change({ sort: next === "name" ? undefined : next })}>
      {word} {sort === by ? "↑" : sort === `-${by}` ? "↓" : ""}
    </button>
  );
}

function sorted(rows: ScheduleInShort[], sort = "name"): ScheduleInShort[] {
  if (sort === "name") return rows;
  const [sign, key] = sort.startsWith("-") ? [-1, sort.slice(1)] : [1, sort];
  const value = (row: ScheduleInShort) =>
    key === "trigger" ? row.triggered_by : key === "state" ? row.state : shortName(row.name);
  return [...rows].sort((a, b) => sign * value(a).localeCompare(value(b)));
}

/** The tags of a schedule in a line below its name. */
function Tags({ ns, of }: { ns: string; of: Record<string, string> }) {
  const all = Object.entries(of);
  if (all.length === 0) return null;
  return (
    <span className="sub tags" title={all.map(([key, value]) => `${key}=${value}`).join(", ")}>
      {all.map(([key, value]) => (
        <Go key={key} className="tag" to={paths.view(ns, "schedules")} search={{ q: `tag:${key}=${value}` }}>
          {key}={value}
        </Go>
      ))}
    </span>
  );
}
