import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { Fire, HeldJobs, Now, Outcomes, Run, StoredDataset } from "../api/types";
import { useNs } from "../frame/place";
import { useNow } from "../frame/settings";
import { fireOf, knownOf, linesOf } from "../lib/fires";
import { count, millis, number, partition, since, withoutNamespace } from "../lib/format";
import { ofRef, paths } from "../lib/paths";
import { inShort } from "../lib/sentence";
import { ActButton } from "../parts/act";
import { Command } from "../parts/command";
import { FireLink, FireSummary } from "../parts/fire";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, Freshness, Lasts, Ran, Reason, State, When } from "../parts/text";

const FIRES = 10;

/** Is anything wrong, and what comes next? */
export function Home() {
  const ns = useNs();
  const now = useQuery(namespace.now(ns));
  // The figures come first: what fills the panels below is asked for when they are there.
  const enabled = now.data !== undefined || now.isError;
  const runs = useQuery({ ...namespace.outcomes(ns), enabled });
  const letters = useQuery({ ...namespace.lettersCounted(ns), enabled });
  const fires = useQuery({ ...namespace.fires(ns, { limit: FIRES + 1 }), enabled });
  const datasets = useQuery({ ...namespace.datasets(ns), enabled });
  const undelivered = undeliveredOf(letters.data);
  const first = runs.data?.runs === 0 && now.data?.waiting.count === 0;
  return (
    <div className="page">
      <h1 className="unseen">Home of {ns}</h1>
      <Await query={now}>
        {(data) => <Figures ns={ns} now={data} letters={undelivered} runs={runs.data} failed={runs.error} />}
      </Await>
      {first && <FirstTime ns={ns} />}
      <div className="grid wide-left home">
        <div className="grid start">
          <Await query={now}>{(data) => <Stopped now={data} />}</Await>
          <Await query={now}>{(data) => <NeedsYou ns={ns} now={data} letters={undelivered} />}</Await>
          <NoAnswer of="Dead letters are not known" query={letters} />
          <NoAnswer of="Whether data is late is not known" query={datasets} />
          <LateDatasets datasets={datasets.data?.items ?? []} />
          <Panel
            title="Held up by"
            note="what waits, by what would let it go"
            tools={
              <span className="row-tools">
                <ActButton small action={actions.stop(ns)} />
                <Go to={paths.view(ns, "queue")}>Queue</Go>
              </span>
            }
          >
            <Await query={now}>{(data) => <HeldUp ns={ns} now={data} />}</Await>
          </Panel>
          <Panel
            title="Failed last"
            tools={
              <Go to={paths.view(ns, "runs")} search={{ state: "FAILED" }}>
                All that failed
              </Go>
            }
          >
            <Await query={runs}>{(data) => <FailedLast outcomes={data} />}</Await>
          </Panel>
        </div>
        <div className="grid start">
          <Panel title="Next fires" note="within a day" tools={<Go to={paths.view(ns, "timeline")}>Timeline</Go>}>
            <Await query={fires}>{(data) => <NextFires fires={data.items} />}</Await>
          </Panel>
          <Panel
            title="Running"
            tools={
              <Go to={paths.view(ns, "runs")} search={{ state: "RUNNING" }}>
                All that run
              </Go>
            }
          >
            <Await query={now}>{(data) => <Running now={data} />}</Await>
          </Panel>
        </div>
      </div>
    </div>
  );
}

/** A count; a bounded one says so, smaller. */
function Many({ many, atLeast = false }: { many: number; atLeast?: boolean }) {
  return (
    <>
      {atLeast && <small>at least </small>}
      {number(many)}
    </>
  );
}

/** The figure of what needs a person; it leads to the panel below, which has the parts. */
function NeedFigure({ need, atLeast }: { need: number; atLeast: boolean }) {
  return (
    <a className={`big-figure ${need > 0 ? "alert" : ""}`} href="#needs-you">
      <strong>
        <Many many={need} atLeast={atLeast} />
      </strong>
      <span>{need === 1 ? "needs you" : "need you"}</span>
    </a>
  );
}

function Figure({
  value,
  word,
  to,
  search,
  tone = "",
}: {
  value: ReactNode;
  word: string;
  to: string;
  search?: Record<string, string>;
  tone?: string;
}) {
  return (
    <Go className={`big-figure ${tone}`} to={to} search={search}>
      <strong>{value}</strong>
      <span>{word}</span>
    </Go>
  );
}

/** The dead letters, and how many each schedule has, the most first. */
interface Undelivered {
  count: number;
  atLeast: boolean;
  schedules: [string, number][];
}

function undeliveredOf(letters?: { items: { schedule: string }[]; next_cursor: string | null }): Undelivered {
  const items = letters?.items ?? [];
  const counts = new Map<string, number>();
  for (const { schedule } of items) counts.set(schedule, (counts.get(schedule) ?? 0) + 1);
  const schedules = [...counts].sort(([, one], [, other]) => other - one);
  return { count: items.length, atLeast: !!letters?.next_cursor, schedules };
}

/** Of what a part of the page would say if its request had an answer; nothing while it has one, even an old one. */
function NoAnswer({ of, query }: { of: string; query: UseQueryResult<unknown, Error> }) {
  if (!query.error || query.data !== undefined) return null;
  return (
    <div className="stale" role="status">
      <span className="glyph" aria-hidden="true">
        ◷
      </span>
      {of}: {query.error.message}.{" "}
      <button type="button" className="link" onClick={() => query.refetch()}>
        Try again
      </button>
    </div>
  );
}

interface FiguresProps {
  ns: string;
  now: Now;
  letters: Undelivered;
  runs?: Outcomes;
  /** Why the outcomes of runs are not known. */
  failed: Error | null;
}

function Figures({ ns, now, letters, runs, failed }: FiguresProps) {
  const ended = (state: string) => runs?.states[state] ?? 0;
  const need = needs(now, letters);
  return (
    <div className="big-figures">
      <NeedFigure
        need={need}
        atLeast={now.approvals.at_least || now.overdue.at_least || now.paused.at_least || letters.atLeast}
      />
      <Figure
        value={<Many many={now.running.count} atLeast={now.running.at_least} />}
        word="running"
        to={paths.view(ns, "runs")}
        search={{ state: "RUNNING" }}
      />
      <Figure
        value={<Many many={now.waiting.count} atLeast={now.at_least} />}
        word="wait"
        to={paths.view(ns, "queue")}
      />
      <Figure
        value={runs ? number(ended("SUCCEEDED")) : failed ? "?" : "…"}
        word="succeeded"
        to={paths.view(ns, "runs")}
        search={{ state: "SUCCEEDED" }}
      />
      <Figure
        value={runs ? number(ended("FAILED")) : failed ? "?" : "…"}
        word="failed"
        to={paths.view(ns, "runs")}
        search={{ state: "FAILED" }}
        tone={ended("FAILED") > 0 ? "bad-figure" : ""}
      />
      {runs?.since && (
        <p className="faint figures-note">
          of the newest {number(runs.runs)} runs,
          <br />
          since <When at={runs.since} />
        </p>
      )}
    </div>
  );
}

/** Schedules that Sluice itself has paused, with a reason. */
const pausedWithReason = (now: Now) => now.paused.schedules.filter((schedule) => schedule.reason);

/** Late work that no clock lets go on. */
const stuck = (now: Now) => now.overdue.count - now.overdue.going_on;

/** How many things need a person. Each counts once: a late job that waits for an approval is an approval. */
function needs(now: Now, letters: Undelivered): number {
  return now.approvals.count + letters.count + stuck(now) + pausedWithReason(now).length;
}

/** The parts of the figure, each with the way to what it counts. */
function PartsOfNeed({ ns, now, letters }: { ns: string; now: Now; letters: Undelivered }) {
  const late = now.overdue.items.every((item) => item.kind === "run") ? "runs" : "queue";
  const parts = [
    {
      many: stuck(now),
      word: "late",
      atLeast: now.overdue.at_least,
      to: paths.view(ns, late),
      search: LATE[late],
    },
    {
      many: now.approvals.count,
      word: "approval",
      atLeast: now.approvals.at_least,
      to: paths.view(ns, "queue"),
      search: { name: "approval" },
    },
    {
      many: pausedWithReason(now).length,
      word: "paused",
      atLeast: now.paused.at_least,
      to: paths.view(ns, "schedules"),
      search: { q: "state:hold" },
    },
    { many: letters.count, word: "dead letter", atLeast: letters.atLeast, to: paths.view(ns, "dead-letters") },
  ].filter((part) => part.many > 0);
  return parts.map((part, index) => (
    <span key={part.word}>
      {index > 0 && " · "}
      <Go to={part.to} search={part.search}>
        {part.word === "late" || part.word === "paused"
          ? `${number(part.many, part.atLeast)} ${part.word}`
          : count(part.many, part.word, part.atLeast)}
      </Go>
    </span>
  ));
}

const MOST_UNDELIVERED = 5; // schedules; the view of dead letters has the others
const LATE = { runs: { state: "RUNNING", by: "late" }, queue: {} };

function NeedsYou({ ns, now, letters }: { ns: string; now: Now; letters: Undelivered }) {
  if (needs(now, letters) === 0) return null;
  const approvals = now.approvals.schedules;
  const late = now.overdue.items.filter((item) => item.goes_on_at === null);
  const others = letters.schedules.length - MOST_UNDELIVERED;
  return (
    <Panel
      id="needs-you"
      title="Needs you"
      note={<PartsOfNeed ns={ns} now={now} letters={letters} />}
      className="alert-panel"
    >
      <table>
        <tbody>
          {late.map((item) => (
            <LateLine key={`${item.schedule} ${item.kind}`} ns={ns} item={item} />
          ))}
          {approvals.map((of) => (
            <ApprovalsLine key={of.schedule} ns={ns} of={of} />
          ))}
          {pausedWithReason(now).map((schedule) => (
            <Line
              key={schedule.schedule}
              what={<State state={schedule.state} />}
              schedule={schedule.schedule}
              act={<ActButton small action={actions.resume(schedule.schedule)} />}
            >
              paused <Ago at={schedule.since} />: <Reason text={schedule.reason ?? ""} />
            </Line>
          ))}
          {letters.schedules.slice(0, MOST_UNDELIVERED).map(([schedule, many]) => (
            <Line
              key={schedule}
              what={<span className="bad">✗ undelivered</span>}
              schedule={schedule}
              act={<ActButton small action={actions.redriveAll(ns, schedule)} />}
            >
              <Go to={paths.view(ns, "dead-letters")}>{count(many, "dead letter", letters.atLeast)}</Go>
            </Line>
          ))}
          {others > 0 && (
            <tr>
              <td />
              <td colSpan={3}>
                <Go to={paths.view(ns, "dead-letters")}>
                  dead letters of {count(others, "more schedule", letters.atLeast)}
                </Go>
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </Panel>
  );
}

/** A line of what needs a person: what it is, of which schedule, why, and what to do. */
function Line({
  what,
  schedule,
  act,
  children,
}: {
  what: ReactNode;
  schedule: string;
  act: ReactNode;
  children: ReactNode;
}) {
  return (
    <tr>
      <td className="fit">{what}</td>
      <td className="of">
        <ScheduleLink name={schedule} breaks />
      </td>
      <td>{children}</td>
      <td className="end">
        <span className="row-tools">{act}</span>
      </td>
    </tr>
  );
}

function LateLine({ ns, item }: { ns: string; item: Now["overdue"]["items"][number] }) {
  const fire = fireOf(item.id);
  const one = item.kind === "run" ? paths.run(item.id) : paths.job(item.id);
  const all = item.kind === "run" ? { to: paths.view(ns, "runs"), search: LATE.runs } : queueOf(ns, item.schedule);
  const show =
    fire !== null ? (
      <Go to={paths.fire(fire)}>Show the fire</Go>
    ) : item.count === 1 ? (
      <Go to={one}>Show the {item.kind}</Go>
    ) : (
      <Go {...all}>Show them</Go>
    );
  return (
    <Line
      what={<span className="bad">◷ {count(item.count, `late ${item.kind}`)}</span>}
      schedule={item.schedule}
      act={show}
    >
      <Reason text={item.why} />
      <span className="sub">
        due <Ago at={item.by} />
      </span>
    </Line>
  );
}

const queueOf = (ns: string, schedule: string) => ({ to: paths.view(ns, "queue"), search: { schedule } });

/** The approvals of a schedule, answered at once, or each by itself. */
function ApprovalsLine({ ns, of }: { ns: string; of: Now["approvals"]["schedules"][number] }) {
  const [only] = of.jobs;
  if (!only) return null;
  const left = of.count - of.jobs.length;
  const one = of.count === 1;
  const act = (
    <>
      <ActButton
        small
        action={one ? actions.approve(only.job_id, only.correlation) : actions.approveAll(of.schedule, of.count)}
      />
      <ActButton
        small
        action={one ? actions.refuse(only.job_id, only.correlation) : actions.refuseAll(of.schedule, of.count)}
      />
    </>
  );
  return (
    <Line what={<span className="wait">◷ {count(of.count, "approval")}</span>} schedule={of.schedule} act={act}>
      <Reason text={inShort(only.reason)} />
      <span className="sub">
        waits since <Ago side="past" at={of.oldest} />
        {of.late > 0 && <span className="bad"> · {one ? "late" : `${of.late} late`}</span>}
        {of.jobs.map((job) => (
          <span key={job.job_id}>
            {" · "}
            <JobLink id={job.job_id}>{partition(job.correlation) || undefined}</JobLink>
          </span>
        ))}
        {left > 0 && (
          <>
            {" · "}
            <Go {...queueOf(ns, of.schedule)}>{number(left)} more</Go>
          </>
        )}
      </span>
    </Line>
  );
}

/** Datasets whose newest partition came longer ago than their `fresh`. */
function LateDatasets({ datasets }: { datasets: StoredDataset[] }) {
  const late = datasets.filter((dataset) => dataset.freshness?.late);
  if (late.length === 0) return null;
  return (
    <Panel title="Late data" note={count(late.length, "dataset")}>
      <table>
        <tbody>
          {late.map((dataset) => (
            <tr key={dataset.name}>
              <td className="fit">
                <Go to={paths.dataset(dataset.name)}>{dataset.name.split(".").at(-1)}</Go>
              </td>
              <td>
                <Freshness of={dataset} />
              </td>
              <td className="end">
                {dataset.freshness?.newest ? partition(dataset.freshness.newest) : "no partition has come"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

/** What people have stopped: since when, who, and why. */
function Stopped({ now }: { now: Now }) {
  const stops = now.stopped ?? []; // an older API has none
  if (stops.length === 0) return null;
  return (
    <Panel title="Stopped" note="nothing of it starts" className="alert-panel">
      <table>
        <tbody>
          {stops.map((stop) => (
            <tr key={`${stop.app ?? stop.namespace}#${stop.tag ?? ""}`}>
              <td className="fit">
                {stop.app ?? stop.namespace}
                {stop.tag !== null && <span className="faint"> tag {stop.tag}</span>}
              </td>
              <td>
                stopped <Ago at={stop.since} /> <Reason text={`by ${stop.by}: ${stop.reason}`} />
              </td>
              <td className="end">
                <ActButton small action={actions.start(stop.app ?? stop.namespace, stop.tag)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function groupTarget(ns: string, group: HeldJobs): { to: string; search: Record<string, string> } {
  const limit = group.kind === "limit" ? ofRef("limit", group.name) : null;
  if (limit) return limit;
  if (group.kind === "data" || (group.kind === "pause" && group.of === `schedule ${group.name}`))
    return { to: paths.view(ns, "queue"), search: { schedule: group.name } };
  return { to: paths.view(ns, "queue"), search: { name: group.kind } };
}

/** What holds them: a schedule and a limit lead to their own views. */
function HolderName({ ns, group }: { ns: string; group: HeldJobs }) {
  const words = withoutNamespace(group.of, ns);
  const target =
    group.kind === "limit"
      ? ofRef("limit", group.name)
      : group.of === `schedule ${group.name}`
        ? ofRef("schedule", group.name)
        : null;
  return target ? <Go {...target}>{words}</Go> : words;
}

function HeldUp({ ns, now }: { ns: string; now: Now }) {
  const clock = useNow();
  if (now.waiting.groups.length === 0) return <Empty>Nothing waits.</Empty>;
  return (
    <table>
      <thead>
        <tr>
          <th>What holds it</th>
          <th className="end">Waiting</th>
          <th className="end">Oldest</th>
          <th>Goes on</th>
        </tr>
      </thead>
      <tbody>
        {now.waiting.groups.slice(0, 12).map((group) => (
          <tr key={`${group.kind} ${group.name} ${group.of}`}>
            <td>
              <span className="name">
                <HolderName ns={ns} group={group} />
              </span>
              <span className="sub">
                <Reason text={inShort(group.why)} />
              </span>
            </td>
            <td className="end">
              <Go {...groupTarget(ns, group)}>{number(group.count)}</Go>
            </td>
            <td className="end">{since(group.oldest, clock)}</td>
            <td className="fit">
              <LetsGo group={group} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** When a clock lets them go, or what else does. */
function LetsGo({ group }: { group: HeldJobs }) {
  const clock = useNow();
  const words = group.of.startsWith("policy ") ? "with the next permit" : LETS_GO[group.kind];
  if (words || !group.changes_at) return <span className="faint">{words ?? "with the next event"}</span>;
  if ((millis(group.changes_at) ?? 0) <= clock) return <span className="faint">any moment now</span>;
  return (
    <>
      at <When at={group.changes_at} as="time" />{" "}
      <span className="faint">
        (<Ago at={group.changes_at} />)
      </span>
    </>
  );
}

const LETS_GO: Record<string, string> = {
  limit: "when a run ends",
  approval: "when a person approves",
  pause: "when it is resumed",
  data: "when the data arrives",
  upstream: "when the upstream run ends",
  grant: "when the other namespace grants it",
};

function FailedLast({ outcomes: { runs, failed } }: { outcomes: Outcomes }) {
  if (failed.length === 0) return <Empty>No run of the newest {number(runs)} has failed.</Empty>;
  const ended = [...failed].sort((one, other) => (other.ended_at ?? "").localeCompare(one.ended_at ?? ""));
  return (
    <table>
      <tbody>
        {linesOf(ended).map((line) => {
          const run = line.fire === null ? line.row : (line.rows[0] as Run);
          return (
            <tr key={line.fire ?? `${run.run_id} ${run.attempt}`}>
              <td className="of">
                <State state={run.state} word={false} />{" "}
                <ScheduleLink name={run.schedule} element={run.each?.index} breaks />
              </td>
              <td className="fit">
                {line.fire === null ? (
                  <RunLink id={run.run_id}>{partition(run.partition ?? run.correlation) || undefined}</RunLink>
                ) : (
                  <FireLink id={line.fire} at={run.nominal_at} search={{ state: "FAILED" }} />
                )}
              </td>
              <td>
                {line.fire !== null && (
                  <span className="sub">
                    <FireSummary id={line.fire} known={knownOf(line.rows)} />
                  </span>
                )}
                <span className="three-lines" title={run.reason}>
                  <Reason text={run.reason} />
                </span>
              </td>
              <td className="end">
                <Ago at={run.ended_at} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function NextFires({ fires }: { fires: Fire[] }) {
  if (fires.length === 0) return <Empty>No clock starts anything within a day.</Empty>;
  return (
    <>
      <table>
        <tbody>
          {fires.slice(0, FIRES).map((fire) => (
            <tr key={`${fire.schedule} ${fire.nominal_at}`}>
              <td className="fit">
                <When at={fire.due_at} as="time" />
              </td>
              <td>
                <ScheduleLink name={fire.schedule} /> {fire.skipped && <span className="off">⤫ skipped</span>}
              </td>
              <td className="end faint">
                <Ago side="next" at={fire.due_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {fires.length > FIRES && <p className="faint pad">and more within a day</p>}
    </>
  );
}

/** Work with one for all events of a large fire. */
const oneOfEachFire = <Work,>(all: readonly Work[], id: (work: Work) => string) =>
  linesOf(all.map((work) => ({ ...work, fire: fireOf(id(work)) }))).flatMap((line) =>
    line.fire === null ? [line.row] : line.rows.slice(0, 1),
  );

function Running({ now }: { now: Now }) {
  if (now.running.runs.length === 0) return <Empty>Nothing runs.</Empty>;
  return (
    <table>
      <tbody>
        {oneOfEachFire(now.running.runs, (run) => run.run_id)
          .slice(0, 10)
          .map((run) => (
            <tr key={run.run_id}>
              <td className="fit">
                <State state={run.state} word={false} /> <ScheduleLink name={run.schedule} />
              </td>
              <td>{run.fire === null ? <RunLink id={run.run_id} /> : <FireLink id={run.fire} />}</td>
              <td className="end">
                {run.started_at ? (
                  <Ran run={run} />
                ) : (
                  <span className="faint">
                    starting for <Lasts from={run.claimed_at} />
                  </span>
                )}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

function FirstTime({ ns }: { ns: string }) {
  return (
    <Panel title="Begin" note="nothing has run here yet">
      <div className="body grid start">
        <p>1. Write a first app, with a job and sample data:</p>
        <Command text="sluice init first-app" />
        <p>2. Deploy it; the command before prints how, for its files:</p>
        <Command text="sluice apply first-app/app.yaml" />
        <p>3. See what it waits for:</p>
        <Command text={commands.top(ns)} />
      </div>
    </Panel>
  );
}
