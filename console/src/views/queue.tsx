import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { Job } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { filterOfJobs, hasText } from "../lib/filter";
import { events, linesOf } from "../lib/fires";
import { number, partition, withoutNamespace } from "../lib/format";
import { byHolder, byWord, type Held, ONE_GROUP, useInWords, waitsFor } from "../lib/held";
import { ofRef, paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { inShort } from "../lib/sentence";
import { lookOfState } from "../lib/states";
import { ActButton, useAct } from "../parts/act";
import { Command, copyCommand } from "../parts/command";
import { ClearFilters, TextFilter, WorkFilters } from "../parts/filters";
import { FireLink } from "../parts/fire";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { WaitingOfFire } from "../parts/runs-table";
import { Ago, Reason, Unread, When } from "../parts/text";

const STATES = ["PENDING_TRIGGER", "PENDING_CONSTRAINTS", "PENDING_LAUNCH"];
const GROUPINGS = [
  { by: undefined, word: "what holds it" },
  { by: "schedule", word: "schedule" },
  { by: "state", word: "state" },
];

const FILTERS: SearchKey[] = ["q", "app", "workflow", "target", "tag", "schedule", "state", "late", "name"];

/** The kinds of what holds jobs, as the address names them. */
const KINDS: Record<string, string> = { ...ONE_GROUP, window: "a window of time", probe: "a probe", grant: "a grant" };

type Line = { group: Held; open: boolean } | { job: Job; place: number } | { fire: string; jobs: Job[]; place: number };

/** All that waits, by what would let it go. */
export function Queue() {
  const ns = useNs();
  const { search, change } = usePlace();
  const filter = filterOfJobs(search);
  const query = useQuery(namespace.jobs(ns, filter));
  const command = commands.jobs(ns, search.schedule, { ...filter, state: search.state, q: search.q });
  const names = useMemo(() => [...new Set((query.data?.rows ?? []).map((job) => job.schedule))].sort(), [query.data]);
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), c: () => void copyCommand(command) });
  const fitting = useMemo(
    () =>
      (query.data?.rows ?? []).filter(
        (job) =>
          (!search.state || job.state === search.state) &&
          (!search.schedule || job.schedule === search.schedule) &&
          hasText(search.q, job.job_id, job.reason),
      ),
    [query.data, search.state, search.schedule, search.q],
  );
  const groups = useMemo(
    () =>
      search.by === "schedule"
        ? byWord(fitting, (job) => job.schedule)
        : search.by === "state"
          ? byWord(fitting, (job) => job.state)
          : byHolder(search.name ? fitting.filter((job) => waitsFor(job, search.name ?? "")) : fitting),
    [fitting, search.by, search.name],
  );
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Queue</h1>
        <span className="faint" aria-live="polite">
          {query.data &&
            `${number(events(fitting), !query.data.whole || query.data.rows.length >= 5000)} wait, the oldest first in each group`}
        </span>
        <span className="space" />
        <Command text={command} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of a reason" grow at={field} />
        <WorkFilters />
        <TextFilter of="schedule" label="Schedule" placeholder="schedule" options={names} />
        <fieldset className="chips">
          <legend className="unseen">By</legend>
          {GROUPINGS.map(({ by, word }) => (
            <button key={word} type="button" aria-pressed={search.by === by} onClick={() => change({ by })}>
              by {word}
            </button>
          ))}
        </fieldset>
        <fieldset className="chips">
          <legend className="unseen">State</legend>
          {STATES.map((state) => (
            <button
              key={state}
              type="button"
              aria-pressed={search.state === state}
              onClick={() => change({ state: search.state === state ? undefined : state })}
            >
              {lookOfState(state).glyph} {state.replace("PENDING_", "").toLowerCase()}
            </button>
          ))}
          <button
            type="button"
            aria-pressed={search.late === "yes"}
            title="They have not started by their deadlines"
            onClick={() => change({ late: search.late === "yes" ? undefined : "yes" })}
          >
            late
          </button>
        </fieldset>
        <ClearFilters of={FILTERS} />
      </div>
      {(search.schedule || search.name) && (
        <div className="toolbar">
          {search.schedule && (
            <span>
              of <ScheduleLink name={search.schedule} />
            </span>
          )}
          {search.name && <span>held by: {KINDS[search.name] ?? search.name}</span>}
        </div>
      )}
      <Await query={query} rows={10}>
        {() => <Waiting ns={ns} groups={groups} />}
      </Await>
    </div>
  );
}

function Waiting({ ns, groups }: { ns: string; groups: Held[] }) {
  const { search, change } = usePlace();
  const go = useGo();
  const open = useAct();
  const closed = useMemo(() => new Set((search.open ?? "").split(",").filter(Boolean)), [search.open]);
  const lines = useMemo(
    () =>
      groups.flatMap((group): Line[] => [
        { group, open: !closed.has(group.id) },
        ...(closed.has(group.id) ? [] : linesIn(group.jobs)),
      ]),
    [groups, closed],
  );
  const toggle = (id: string) => {
    const next = new Set(closed);
    if (!next.delete(id)) next.add(id);
    change({ open: [...next].join(",") || undefined }, true);
  };
  const show = (line: Exclude<Line, { group: Held }>) =>
    "fire" in line ? go(paths.fire(line.fire), { state: "WAITING" }) : go(paths.job(line.job.job_id));
  const columns: Column<Line>[] = [
    {
      id: "place",
      width: "44px",
      head: "",
      cell: (line) =>
        "group" in line ? (
          <button
            type="button"
            className="icon-button"
            aria-expanded={line.open}
            aria-label={`${line.group.title}: show its jobs`}
            onClick={() => toggle(line.group.id)}
          >
            {line.open ? "▾" : "▸"}
          </button>
        ) : (
          <span className="faint">{line.place}</span>
        ),
    },
    {
      id: "schedule",
      width: "minmax(210px, 1.3fr)",
      head: "Schedule",
      cell: (line) =>
        "group" in line ? <GroupName ns={ns} group={line.group} /> : <ScheduleLink name={firstOf(line).schedule} />,
    },
    {
      id: "job",
      width: "minmax(104px, 0.5fr)",
      head: "Job",
      cell: (line) =>
        "group" in line ? (
          <span className="faint">{number(events(line.group.jobs))} wait</span>
        ) : "fire" in line ? (
          <FireLink id={line.fire} at={firstOf(line).nominal_at} search={{ state: "WAITING" }} />
        ) : (
          <JobLink id={line.job.job_id}>{partition(line.job.correlation) || undefined}</JobLink>
        ),
    },
    {
      id: "since",
      width: "80px",
      head: "Since",
      cell: (line) => (
        <Ago side="past" at={oldest("group" in line ? line.group.jobs : "fire" in line ? line.jobs : [line.job])} />
      ),
    },
    {
      id: "why",
      width: "minmax(240px, 3fr)",
      head: "Waits for",
      span: (line) => ("fire" in line && !line.jobs.some((job) => waitsFor(job, "pause")) ? 2 : 1),
      cell: (line) =>
        "group" in line ? (
          <UseOf ns={ns} group={line.group} open={line.open} />
        ) : "fire" in line ? (
          <WaitingOfFire id={line.fire} jobs={line.jobs} />
        ) : (
          <WaitsFor job={line.job} />
        ),
    },
    {
      id: "act",
      width: "150px",
      head: "",
      end: true,
      cell: (line) =>
        "group" in line ? null : "fire" in line ? (
          <ActsOnFire jobs={line.jobs} />
        ) : (
          <span className="row-tools">
            {waitsFor(line.job, "approval") ? (
              <>
                <ActButton small action={actions.approve(line.job.job_id, line.job.correlation)} />
                <ActButton small action={actions.refuse(line.job.job_id, line.job.correlation)} />
              </>
            ) : (
              <>
                {waitsFor(line.job, "pause") && <ActButton small action={actions.resume(line.job.schedule)} />}
                <ActButton small action={actions.cancelJob(line.job.job_id, line.job.correlation)}>
                  Cancel
                </ActButton>
              </>
            )}
          </span>
        ),
    },
  ];
  return (
    <Rows
      label="What waits"
      rows={lines}
      columns={columns}
      rowKey={(line) => ("group" in line ? `group ${line.group.id}` : firstOf(line).job_id)}
      height={36}
      rowClass={(line) => ("group" in line ? "group" : "")}
      onOpen={(line) => ("group" in line ? toggle(line.group.id) : show(line))}
      keys={{
        w: (line) => !("group" in line) && show(line),
        x: (line) => "job" in line && open(actions.cancelJob(line.job.job_id, line.job.correlation)),
        c: (line) =>
          !("group" in line) &&
          void copyCommand(
            "fire" in line ? commands.showFire(line.fire, "WAITING") : commands.why("job", line.job.job_id),
          ),
      }}
      empty={
        <Empty command={commands.list("schedules", ns)}>
          Nothing waits. A job begins with the next event, fire or run of a schedule; the command lists the schedules.
        </Empty>
      }
    />
  );
}

/** The jobs of a group, those of one fire as one line. A place counts each event before it. */
function linesIn(jobs: readonly Job[]): Line[] {
  let place = 1;
  return linesOf(jobs).map((line): Line => {
    const own = line.fire === null ? [line.row] : line.rows;
    const from = place;
    place += events(own);
    return line.fire === null ? { job: line.row, place: from } : { fire: line.fire, jobs: own, place: from };
  });
}

const firstOf = (line: Exclude<Line, { group: Held }>): Job => ("fire" in line ? (line.jobs[0] as Job) : line.job);

/** What lets the events of a fire go at once; each of them is cancelled by itself. */
function ActsOnFire({ jobs }: { jobs: Job[] }) {
  const paused = jobs.find((job) => waitsFor(job, "pause"));
  return paused ? (
    <span className="row-tools">
      <ActButton small action={actions.resume(paused.schedule)} />
    </span>
  ) : null;
}

function GroupName({ ns, group }: { ns: string; group: Held }) {
  const target = group.limit ? ofRef("limit", group.limit) : null;
  const title = withoutNamespace(group.title, ns);
  return <strong title={group.title}>{target ? <Go {...target}>{title}</Go> : title}</strong>;
}

/** Of a limit's queue: what is in use, and by which runs. */
function UseOf({ ns, group, open }: { ns: string; group: Held; open: boolean }) {
  const query = useQuery({ ...namespace.limits(ns, group.limit), enabled: open && !!group.limit, retry: false });
  const limit = group.limit ? query.data?.items[0] : undefined;
  if (!limit) return group.limit && query.error ? <Unread error={query.error} /> : null;
  return (
    <span className="faint">
      {useInWords(limit)}
      {limit.in_use === null && limit.next_at && (
        <>
          {limit.rule}
          {", the next "}
          <Ago side="next" at={limit.next_at} />
        </>
      )}
      {limit.holders && limit.holders.length > 0 && (
        <>
          {" by "}
          {limit.holders.slice(0, 4).map((holder, index) => (
            <span key={holder.run_id}>
              {index > 0 && ", "}
              <RunLink id={holder.run_id} />
            </span>
          ))}
          {limit.holders.length > 4 && ` and ${limit.holders.length - 4} more`}
        </>
      )}
    </span>
  );
}

function WaitsFor({ job }: { job: Job }) {
  return (
    <>
      {job.inherited_priority !== null && (
        <span className="tag" title={job.inherited_priority}>
          {job.inherited_priority.split(",")[0]}
        </span>
      )}{" "}
      {job.reason ? (
        <span title={job.reason}>
          <Reason text={inShort(job.reason)} />
        </span>
      ) : (
        <span className="faint">
          its fire at <When at={job.due_at} as="second" />
        </span>
      )}
    </>
  );
}

const oldest = (jobs: readonly Job[]) =>
  jobs.reduce<string | null>((first, job) => (first === null || job.created_at < first ? job.created_at : first), null);
