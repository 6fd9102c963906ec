import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { actions } from "../api/actions";
import { ApiError } from "../api/client";
import { commands } from "../api/commands";
import { lives, run as read } from "../api/queries";
import type { Run, RunInFull } from "../api/types";
import { useKeys } from "../frame/keys";
import { ScheduleZone, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { fireOf } from "../lib/fires";
import { asWritten, dollars, duration, number, partition, shortId, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { startInWords, waitInWords, withBeginning } from "../lib/sentence";
import { ActButton } from "../parts/act";
import { Command, copy } from "../parts/command";
import { PlaceInItsFire, useFireInstead } from "../parts/fire";
import { Go, PlaceInItsDag, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Failure, Loading, Panel } from "../parts/panel";
import { openTab, type Tab, Tabs } from "../parts/tabs";
import { LateRun, Partition, Ran, Reason, State, When } from "../parts/text";
import { Instants } from "./run/instants";
import { LineageOf } from "./run/lineage";
import { Log } from "./run/log";

const TABS: Tab[] = [
  { id: "events", word: "What led to it" },
  { id: "lineage", word: "Lineage" },
  { id: "log", word: "Log" },
  { id: "attempts", word: "Attempts" },
  { id: "details", word: "Details" },
];

export function RunView() {
  const { id = "" } = useParams({ strict: false }) as { id?: string };
  const shared = useFireInstead(id);
  const full = useQuery({ ...read.full(id), enabled: !shared });
  const missing = full.error instanceof ApiError && full.error.status === 404;
  return (
    <ScheduleZone.Provider value={null}>
      <div className="page">
        {shared ? (
          <Loading />
        ) : missing ? (
          <NeverRan id={id} />
        ) : (
          <Await query={full}>{(data) => <Page run={data} />}</Await>
        )}
      </div>
    </ScheduleZone.Provider>
  );
}

/** What started a run. The first node of a DAG starts with its run, which is an event of its own for Sluice. */
function causeOf(run: RunInFull): string {
  const dag = run.dag?.node ? run.dag.name : null;
  return dag ? withBeginning(run.fired_by, dag) : run.fired_by;
}

function Page({ run }: { run: RunInFull }) {
  const { search } = usePlace();
  const why = useQuery(read.why(run.run_id));
  const tab = openTab(TABS, search.tab);
  const living = lives(run.state);
  const shown = run.history.find((attempt) => String(attempt.attempt) === search.attempt) ?? run;
  useKeys({ c: () => copy(commands.showRun(run.run_id)).then(() => tell("The command is copied")) });
  return (
    <>
      <header className="page-head">
        <h1>
          <ScheduleLink name={run.schedule} element={run.each?.index} />{" "}
          <span className="crumb">{partition(run.partition ?? run.correlation) || shortId(run.run_id)}</span>
        </h1>
        <State state={run.state} />
        <PlaceInItsFire of={run} />
        <PlaceInItsDag of={run.dag} />
        {run.attempts > 1 && (
          <span className="faint">
            attempt {run.attempt} of {run.attempts}
          </span>
        )}
        <span className="space" />
        <span className="tools">
          {living ? (
            <>
              <ActButton action={actions.pingRun(run.run_id)} />
              <ActButton action={actions.cancelRun(run.run_id)} />
            </>
          ) : (
            <>
              <ActButton action={actions.rerunRun(run.run_id)} />
              <Go
                className="button"
                to={paths.view(run.run_id.split(".")[0] ?? "", "reprocess")}
                search={{ run: run.run_id }}
              >
                Reprocess
              </Go>
            </>
          )}
        </span>
      </header>
      <Panel title="Why" className="why" tools={<Command text={commands.why("run", run.run_id)} />}>
        <div className="body">
          <p className="because">
            <Reason text={why.data?.why ?? (run.reason || run.fired_by)} refs={why.data?.refs} />
            {why.error && !why.data && <span className="faint"> (its explanation has no answer)</span>}
          </p>
          <p className="faint">
            started <Reason text={startInWords(causeOf(run))} refs={why.data?.refs} />
            {run.waited_for && (
              <>
                ; it waited {duration(run.waited_ms)}
                <Reason text={waitInWords(run.waited_for)} refs={why.data?.refs} />
              </>
            )}
          </p>
        </div>
        <Instants run={shown} />
      </Panel>
      <div className="figures">
        <Figure word="Waited" value={duration(run.waited_ms)} />
        <Figure word="Took" value={<Ran run={run} />} />
        <Figure word="Late" value={<LateRun run={run} />} />
        <Figure word="Cost, list price" value={dollars(run.billed?.cost_usd)} />
        <Figure word="Priority" value={run.priority} />
      </div>
      <section className="panel">
        <Tabs tabs={TABS} />
        {tab === "events" && <Events run={run} />}
        {tab === "lineage" && <LineageOf id={run.run_id} />}
        {tab === "log" && <Log run={run} />}
        {tab === "attempts" && <Attempts run={run} />}
        {tab === "details" && <Details run={shown} />}
      </section>
    </>
  );
}

function Figure({ word, value }: { word: string; value: React.ReactNode }) {
  return (
    <div className="figure">
      <span className="label">{word}</span>
      <strong>{value}</strong>
    </div>
  );
}

function Events({ run }: { run: RunInFull }) {
  if (run.events.length === 0) return <Empty>No event: {run.fired_by}.</Empty>;
  return (
    <table>
      <thead>
        <tr>
          <th className="fit">At</th>
          <th className="fit">Kind</th>
          <th>What</th>
        </tr>
      </thead>
      <tbody>
        {run.events.map((event) => {
          const more = event as unknown as Record<string, unknown>;
          return (
            <tr key={`${event.kind} ${event.id}`}>
              <td className="fit">
                <When at={new Date(event.instant).toISOString()} as="second" />
              </td>
              <td className="fit">
                {event.kind === "program_status" ? "end of a run" : event.kind.replaceAll("_", " ")}
              </td>
              <td dir="auto">
                <EventText of={more} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function EventText({ of }: { of: Record<string, unknown> }) {
  const keys = of.partition as Record<string, string> | null;
  if (typeof of.dataset === "string") {
    return (
      <Go to={paths.dataset(of.dataset)} search={keys ? { at: partition(keys) } : {}}>
        {shortName(of.dataset)} <Partition keys={keys} />
      </Go>
    );
  }
  if (typeof of.run_id === "string") {
    return (
      <>
        {shortName(String(of.workflow ?? ""))} {String(of.status ?? "")} <RunLink id={of.run_id} />
      </>
    );
  }
  if (of.kind === "time") return "its fire by the clock";
  const words = Object.entries(of).filter(([key, value]) => !["kind", "id", "instant"].includes(key) && value !== null);
  return (
    <>
      {words.map(([key, value]) => `${key} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ") ||
        String(of.id)}
    </>
  );
}

function Attempts({ run }: { run: RunInFull }) {
  return (
    <table>
      <thead>
        <tr>
          <th className="fit">Attempt</th>
          <th className="fit">State</th>
          <th className="fit">Begun</th>
          <th className="end">Waited</th>
          <th className="end">Took</th>
          <th>Reason</th>
          <th className="fit">Execution</th>
        </tr>
      </thead>
      <tbody>
        {run.history.map((attempt: Run) => (
          <tr key={attempt.attempt}>
            <td className="fit">
              <Go to={paths.run(run.run_id)} search={{ tab: "log", attempt: String(attempt.attempt) }}>
                {attempt.attempt}
              </Go>
            </td>
            <td className="fit">
              <State state={attempt.state} />
            </td>
            <td className="fit">
              <When at={attempt.claimed_at} as="second" />
            </td>
            <td className="end">{duration(attempt.waited_ms)}</td>
            <td className="end">
              <Ran run={attempt} />
            </td>
            <td>
              <Reason text={attempt.reason || "–"} />
            </td>
            <td className="fit">
              <code>{attempt.target_id ?? "–"}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Details({ run }: { run: Run }) {
  const facts: [string, React.ReactNode][] = [
    ["Run", <code key="id">{run.run_id}</code>],
    ["Workflow", `${asWritten(run.workflow)}${run.workflow_version ? `, version ${run.workflow_version}` : ""}`],
    ...(run.fire && run.spread
      ? ([
          [
            "Fire",
            <Go key="fire" className="id" to={paths.fire(run.fire)}>
              {run.fire}
            </Go>,
          ],
          ["Event", number(run.spread.index)],
        ] as [string, React.ReactNode][])
      : []),
    ["Kind", run.kind.replaceAll("_", " ")],
    ["Context", <code key="context">{run.context}</code>],
    ["Execution", <code key="execution">{run.target_id ?? "–"}</code>],
    ["Must start by", <When key="start" at={run.start_by} as="second" />],
    ["Must end by", <When key="end" at={run.end_by} as="second" />],
    ["Start calls", run.start_calls],
    ...(run.requested_by
      ? ([["Requested by", <code key="requester">{run.requested_by}</code>]] as [string, React.ReactNode][])
      : []),
    ...(run.rerun_of
      ? ([["Runs again", <RunLink key="rerun" id={run.rerun_of} />]] as [string, React.ReactNode][])
      : []),
    ...(run.metrics
      ? ([["Metrics", <code key="metrics">{JSON.stringify(run.metrics)}</code>]] as [string, React.ReactNode][])
      : []),
    ...(run.result !== undefined
      ? ([["Result", <code key="result">{JSON.stringify(run.result)}</code>]] as [string, React.ReactNode][])
      : []),
    ...(run.result_refused ? ([["Result refused", run.result_refused]] as [string, React.ReactNode][]) : []),
  ];
  return (
    <div className="pad grid">
      <dl className="facts">
        {facts.map(([word, value]) => (
          <div key={word} className="fact">
            <dt>{word}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h3>Properties</h3>
      <pre className="source">{JSON.stringify(run.properties, null, 2)}</pre>
      <h3>Target</h3>
      <pre className="source">{JSON.stringify(run.target, null, 2)}</pre>
    </div>
  );
}

/** An id of a job that ended without a run: what became of it. */
function NeverRan({ id }: { id: string }) {
  const why = useQuery(read.why(id));
  const fire = fireOf(id);
  if (why.error)
    return (
      <>
        <Failure error={why.error} retry={() => why.refetch()} />
        {fire && (
          <p>
            It is an event of a{" "}
            <Go to={paths.fire(fire)} className="in-text">
              fire of many events
            </Go>
            , which says what is known of it. An event is prepared about two minutes before it is due.
          </p>
        )}
      </>
    );
  if (!why.data) return <Loading />;
  return (
    <>
      <header className="page-head">
        <h1>
          <ScheduleLink name={why.data.schedule} /> <span className="crumb">{shortId(id)}</span>
        </h1>
        <State state={why.data.state} />
        <span className="faint">it never ran</span>
        {fire && (
          <Go to={paths.fire(fire)} title={fire}>
            its fire
          </Go>
        )}
      </header>
      <Panel title="Why" className="why" tools={<Command text={commands.why("run", id)} />}>
        <div className="body">
          <p className="because">
            <Reason text={why.data.why} refs={why.data.refs} />
          </p>
          <p className="faint">
            at <When at={why.data.at} as="second" />
          </p>
        </div>
      </Panel>
    </>
  );
}
