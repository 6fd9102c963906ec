import type { ReactNode } from "react";
import { commands } from "../api/commands";
import { lives } from "../api/queries";
import type { EndedWork, Job, Run } from "../api/types";
import { useGo } from "../frame/place";
import { dagOfStart, partition, shortId } from "../lib/format";
import { lateBy, missedBy } from "../lib/late";
import { paths } from "../lib/paths";
import { waitInWords } from "../lib/sentence";
import { copyCommand } from "./command";
import { Go, JobLink, RunLink, ScheduleLink } from "./go";
import { type Column, Rows } from "./rows";
import { Ago, Late, Reason, State, Took, When } from "./text";

const SCHEDULE: Column<{ schedule: string }> = {
  id: "schedule",
  width: "minmax(150px, 1.2fr)",
  head: "Schedule",
  cell: (row) => <ScheduleLink name={row.schedule} />,
};

const TOOK: Column<Run> = {
  id: "took",
  width: "86px",
  head: "Took",
  end: true,
  cell: (run) => <Took from={run.claimed_at} to={run.ended_at} living={lives(run.state)} />,
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

/** Runs as rows, the newest first. */
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
  const columns: Column<Run>[] = [
    { id: "state", width: "112px", head: "State", cell: (run) => <State state={run.state} /> },
    ...(ofOne ? [] : [SCHEDULE]),
    {
      id: "run",
      width: "minmax(150px, 0.9fr)",
      head: "Run",
      cell: (run) => (
        <>
          <OneRun run={run} />
          {run.attempt > 1 && <span className="faint"> attempt {run.attempt}</span>}
        </>
      ),
    },
    { id: "claimed", width: "132px", head: "Begun", cell: (run) => <When at={run.claimed_at} /> },
    {
      id: "waited",
      width: "78px",
      head: "Waited",
      end: true,
      cell: (run) => <Took from={run.created_at} to={run.claimed_at} />,
    },
    // Why they were late takes its room.
    ...(late ? [] : [TOOK]),
    {
      id: "late",
      width: "86px",
      head: "Late",
      end: true,
      cell: (run) => <Late ms={lateBy(run)} beyond={run.late || missedBy(run) > 0} />,
    },
    {
      id: "why",
      width: "minmax(160px, 2fr)",
      head: late ? "Why late" : "Why",
      cell: (run) => (
        <Reason
          text={late && run.waited_for ? `waited${waitInWords(run.waited_for)}` : run.reason || run.fired_by}
          short
        />
      ),
    },
  ];
  return (
    <Rows
      label="Runs"
      rows={runs}
      columns={columns}
      rowKey={(run) => `${run.run_id} ${run.attempt}`}
      fill={fill}
      onOpen={(run) => go(paths.run(run.run_id))}
      keys={{
        w: (run) => go(paths.run(run.run_id)),
        c: (run) => void copyCommand(commands.showRun(run.run_id)),
      }}
      empty={empty}
    />
  );
}

/** Waiting jobs as rows. */
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
  const columns: Column<Job>[] = [
    { id: "state", width: "178px", head: "State", cell: (job) => <State state={job.state} /> },
    ...(ofOne ? [] : [SCHEDULE]),
    {
      id: "job",
      width: "minmax(120px, 0.8fr)",
      head: "Job",
      cell: (job) => <JobLink id={job.job_id}>{partition(job.correlation) || undefined}</JobLink>,
    },
    { id: "since", width: "80px", head: "Since", cell: (job) => <Ago at={job.created_at} /> },
    { id: "why", width: "minmax(200px, 3fr)", head: "Waits for", cell: (job) => <Reason text={job.reason} short /> },
  ];
  return (
    <Rows
      label="Waiting jobs"
      rows={jobs}
      columns={columns}
      rowKey={(job) => job.job_id}
      fill={fill}
      onOpen={(job) => go(paths.job(job.job_id))}
      keys={{
        w: (job) => go(paths.job(job.job_id)),
        c: (job) => void copyCommand(commands.why("job", job.job_id)),
      }}
      empty={empty}
    />
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
    ...(ofOne ? [] : [SCHEDULE]),
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
