import { type ReactNode, useMemo } from "react";
import { commands } from "../api/commands";
import type { EndedWork, Job, Run } from "../api/types";
import { useGo } from "../frame/place";
import { events, knownOf, type Line, linesOf } from "../lib/fires";
import { dagOfStart, duration, partition, shortId } from "../lib/format";
import { paths } from "../lib/paths";
import { causeInShort, inShort, waitInWords } from "../lib/sentence";
import { copyCommand } from "./command";
import { FireLink, FireState, FireSummary } from "./fire";
import { Go, JobLink, RunLink, ScheduleLink } from "./go";
import { type Column, Rows } from "./rows";
import { Ago, LateRun, Ran, Reason, State, When } from "./text";

const scheduleOf = <T,>(name: (row: T) => string): Column<T> => ({
  id: "schedule",
  width: "minmax(150px, 1.2fr)",
  head: "Schedule",
  cell: (row) => <ScheduleLink name={name(row)} element={elementOf(row)} />,
});

/** The place of an element in the list of its node, of the run of one. */
const elementOf = (row: unknown) => (row as { row?: { each?: { index: number } } }).row?.each?.index;

/** The first of the rows of a line. */
const firstOf = <T,>(line: Line<T>): T => (line.fire === null ? line.row : (line.rows[0] as T));

/** The row of a line that is not a fire. */
const rowOf =
  <T,>(cell: (row: T) => ReactNode) =>
  (line: Line<T>) =>
    line.fire === null ? cell(line.row) : null;

const TOOK: Column<Line<Run>> = {
  id: "took",
  width: "74px",
  head: "Took",
  end: true,
  cell: rowOf((run) => <Ran run={run} />),
};

/** The run; one that has only begun a DAG leads to the DAG, whose nodes tell how it goes. */
function OneRun({ run }: { run: Run }) {
  const text = partition(run.partition ?? run.correlation) || shortId(run.run_id);
  const dag = dagOfStart(run.schedule);
  if (!dag) return <RunLink id={run.run_id}>{text}</RunLink>;
  return (
    <>
      <Go to={paths.dag(dag)} search={{ run: run.run_id }} className="id" title={run.run_id}>
        {text}
      </Go>{" "}
      <span className="tag" title="It has only begun the DAG, which its link shows.">
        dag
      </span>
    </>
  );
}

/** When the first of the events of a fire was sent, of those that a list has. */
const begunAt = (runs: readonly Run[]) =>
  runs.map((run) => run.sends?.first ?? run.claimed_at).reduce((first, at) => (at < first ? at : first));

/** Runs as rows, the newest first. All events of a large fire are one row, which opens the fire. */
export function RunsTable({
  runs,
  ofOne = false,
  late = false,
  fill = false,
  empty,
}: {
  runs: Run[];
  ofOne?: boolean;
  /** Say why they were late, not why they ran. */
  late?: boolean;
  fill?: boolean;
  empty?: ReactNode;
}) {
  const go = useGo();
  const lines = useMemo(() => linesOf(runs), [runs]);
  const columns: Column<Line<Run>>[] = [
    {
      id: "state",
      width: "112px",
      head: "State",
      cell: (line) => (line.fire === null ? <State state={line.row.state} /> : <FireState id={line.fire} />),
    },
    ...(ofOne ? [] : [scheduleOf<Line<Run>>((line) => firstOf(line).schedule)]),
    {
      id: "run",
      width: "minmax(124px, 0.8fr)",
      head: "Run",
      cell: (line) =>
        line.fire === null ? (
          <>
            <OneRun run={line.row} />
            {line.row.attempt > 1 && <span className="faint"> attempt {line.row.attempt}</span>}
          </>
        ) : (
          <FireLink id={line.fire} at={firstOf(line).nominal_at} />
        ),
    },
    {
      id: "claimed",
      width: "120px",
      head: "Begun",
      cell: (line) => <When at={line.fire === null ? line.row.claimed_at : begunAt(line.rows)} />,
    },
    {
      id: "waited",
      width: "70px",
      head: "Waited",
      end: true,
      span: (line) => (line.fire === null ? 1 : late ? 3 : 4),
      cell: (line) =>
        line.fire === null ? (
          <span className="num">{duration(line.row.waited_ms)}</span>
        ) : (
          <FireSummary
            id={line.fire}
            known={knownOf(line.rows)}
            sends={line.rows.find((run) => run.sends !== null)?.sends}
          />
        ),
    },
    // Why they were late takes its room.
    ...(late ? [] : [TOOK]),
    {
      id: "late",
      width: "72px",
      head: "Late",
      end: true,
      cell: rowOf((run) => <LateRun run={run} />),
    },
    {
      id: "why",
      width: "minmax(160px, 2fr)",
      head: late ? "Why late" : "Why",
      cell: rowOf((run) => (
        <Reason
          text={
            late && run.waited_for ? `waited${waitInWords(run.waited_for)}` : run.reason || causeInShort(run.fired_by)
          }
          short
        />
      )),
    },
  ];
  const open = (line: Line<Run>) => go(line.fire === null ? paths.run(line.row.run_id) : paths.fire(line.fire));
  return (
    <Rows
      label="Runs"
      rows={lines}
      columns={columns}
      rowKey={(line) => line.fire ?? `${firstOf(line).run_id} ${firstOf(line).attempt}`}
      fill={fill}
      onOpen={open}
      keys={{
        w: open,
        c: (line) =>
          void copyCommand(line.fire === null ? commands.showRun(line.row.run_id) : commands.showFire(line.fire)),
      }}
      empty={empty}
    />
  );
}

/** Waiting jobs as rows. All waiting events of a large fire are one row, which opens the fire. */
export function JobsTable({
  jobs,
  ofOne = false,
  fill = false,
  empty,
}: {
  jobs: Job[];
  ofOne?: boolean;
  fill?: boolean;
  empty?: ReactNode;
}) {
  const go = useGo();
  const lines = useMemo(() => linesOf(jobs), [jobs]);
  const columns: Column<Line<Job>>[] = [
    { id: "state", width: "178px", head: "State", cell: (line) => <State state={firstOf(line).state} /> },
    ...(ofOne ? [] : [scheduleOf<Line<Job>>((line) => firstOf(line).schedule)]),
    {
      id: "job",
      width: "minmax(150px, 0.8fr)",
      head: "Job",
      cell: (line) =>
        line.fire === null ? (
          <JobLink id={line.row.job_id}>{partition(line.row.correlation) || undefined}</JobLink>
        ) : (
          <FireLink id={line.fire} at={firstOf(line).nominal_at} search={{ state: "WAITING" }} />
        ),
    },
    { id: "since", width: "80px", head: "Since", cell: (line) => <Ago side="past" at={firstOf(line).created_at} /> },
    {
      id: "why",
      width: "minmax(200px, 3fr)",
      head: "Waits for",
      cell: (line) =>
        line.fire === null ? (
          <Reason text={line.row.reason} short />
        ) : (
          <WaitingOfFire id={line.fire} jobs={line.rows} />
        ),
    },
  ];
  const open = (line: Line<Job>) =>
    line.fire === null ? go(paths.job(line.row.job_id)) : go(paths.fire(line.fire), { state: "WAITING" });
  return (
    <Rows
      label="Waiting jobs"
      rows={lines}
      columns={columns}
      rowKey={(line) => line.fire ?? firstOf(line).job_id}
      fill={fill}
      onOpen={open}
      keys={{
        w: open,
        c: (line) =>
          void copyCommand(
            line.fire === null ? commands.why("job", line.row.job_id) : commands.showFire(line.fire, "WAITING"),
          ),
      }}
      empty={empty}
    />
  );
}

/** What has become of a fire, and what the first of its waiting jobs waits for. */
export function WaitingOfFire({ id, jobs }: { id: string; jobs: readonly Job[] }) {
  const many = events(jobs);
  return (
    <span className="fire-waits" title={jobs[0]?.reason}>
      <FireSummary id={id} known={[{ state: "WAITING", word: "waiting", many }]} />
      <span className="faint"> · </span>
      <Reason text={inShort(jobs[0]?.reason ?? "")} />
    </span>
  );
}

/** Work that never ran, and why. */
export function RecordsTable({
  records,
  ofOne = false,
  empty,
}: {
  records: EndedWork[];
  ofOne?: boolean;
  empty?: ReactNode;
}) {
  const columns: Column<EndedWork>[] = [
    { id: "state", width: "112px", head: "State", cell: (record) => <State state={record.kind} /> },
    ...(ofOne ? [] : [scheduleOf<EndedWork>((record) => record.schedule)]),
    { id: "id", width: "100px", head: "Work", cell: (record) => <RunLink id={record.id} /> },
    { id: "at", width: "132px", head: "At", cell: (record) => <When at={record.at} /> },
    { id: "count", width: "60px", head: "Count", end: true, cell: (record) => record.count },
    { id: "why", width: "minmax(200px, 3fr)", head: "Why", cell: (record) => <Reason text={record.reason} short /> },
  ];
  return (
    <Rows
      label="Never ran"
      rows={records}
      columns={columns}
      rowKey={(record) => `${record.id} ${record.at}`}
      fill={false}
      empty={empty}
    />
  );
}
