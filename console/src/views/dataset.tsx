import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { Fragment, useMemo } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { dataset as read } from "../api/queries";
import type { IgnoredObject, Period, RegisteredPartition, RunOfPartition, StoredDataset } from "../api/types";
import { useKeys } from "../frame/keys";
import { useNs, usePlace } from "../frame/place";
import { number, partition } from "../lib/format";
import { dayOf, halfYear, isOfOneDay, lateFor, newestDay, partitionOfDay, typical } from "../lib/partitions";
import { paths } from "../lib/paths";
import { monthsAbove, weeks } from "../lib/weeks";
import { ActButton } from "../parts/act";
import { Command } from "../parts/command";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, Freshness, Reason, State, When } from "../parts/text";
import { WeekdayNames } from "../parts/weekdays";

/** A dataset: which partitions are there, which are missing, who waits for one, what made it and what used it. */
export function DatasetView() {
  const ns = useNs();
  const { name: short = "" } = useParams({ strict: false }) as { name?: string };
  const name = `${ns}.${short}`;
  const definition = useQuery(read.definition(name));
  return (
    <div className="page">
      <Await query={definition}>{(data) => <Page key={name} ns={ns} definition={data} />}</Await>
    </div>
  );
}

function Page({ ns, definition }: { ns: string; definition: StoredDataset }) {
  const { name } = definition;
  const { search, change } = usePlace();
  const query = useQuery(read.partitions(name));
  return (
    <>
      <header className="page-head">
        <h1>{name.split(".").at(-1)}</h1>
        <span className="faint">
          {definition.format}, by {(definition.keys ?? []).join("/")}
        </span>
        <span className="space" />
        <span className="tools">
          <Go className="button" to={paths.view(ns, "graph")} search={{ around: `dataset:${name}` }}>
            Lineage
          </Go>
          <Go className="button" to={paths.view(ns, "reprocess")} search={{ name, at: search.at }}>
            Reprocess
          </Go>
          <Command text={commands.partitions(name)} />
        </span>
      </header>
      <p className="faint">
        <code>
          s3://{definition.bucket}/{definition.prefix}
        </code>
        {definition.newest && (
          <>
            {" · "}newest <code>{partition(definition.newest.partition)}</code>, came{" "}
            <Ago side="past" at={definition.newest.at} />
          </>
        )}
        {definition.freshness && (
          <>
            {" · "}fresh for {definition.fresh}: <Freshness of={definition} />
          </>
        )}
      </p>
      <div className="grid wide-left start">
        <Panel
          title="Partitions"
          note={query.data && `${query.data.next_cursor ? "the newest " : ""}${number(query.data.items.length)}`}
        >
          <Await query={query} rows={6}>
            {({ items, next_cursor }) =>
              items.length === 0 ? (
                <Empty command={`sluice upload FILES --to s3://${definition.bucket}/${definition.prefix}`}>
                  No partition is registered. Files with their done flag register one, and so does a report that it is
                  ready.
                </Empty>
              ) : (
                <Partitions
                  name={name}
                  items={items}
                  more={next_cursor !== null}
                  chosen={search.at}
                  choose={(at) => change({ at }, true)}
                />
              )
            }
          </Await>
        </Panel>
        {search.at ? (
          <One name={name} values={search.at} />
        ) : (
          <Panel title="One partition">
            <Empty>Choose a partition to see who waits for it and what it started.</Empty>
          </Panel>
        )}
      </div>
      <Ignored objects={definition.ignored ?? []} />
    </>
  );
}

/** The last objects that belong to no partition, and why: mistakes in the names of folders. */
function Ignored({ objects }: { objects: IgnoredObject[] }) {
  if (objects.length === 0) return null;
  return (
    <Panel title="In no partition" note={number(objects.length)}>
      <dl className="body facts">
        {objects.map((object) => (
          <Fragment key={object.key}>
            <dt>
              <Ago at={object.at} />
            </dt>
            <dd>
              <code>{object.key}</code>
              <br />
              {object.why}
            </dd>
          </Fragment>
        ))}
      </dl>
    </Panel>
  );
}

function Partitions({
  name,
  items,
  more,
  chosen,
  choose,
}: {
  name: string;
  items: RegisteredPartition[];
  more: boolean;
  chosen: string | undefined;
  choose: (values: string) => void;
}) {
  if (!items.every((item) => isOfOneDay(item.partition))) {
    const periods = items.some((item) => item.period);
    return (
      <Rows
        label="Partitions"
        rows={items}
        fill={false}
        rowKey={(item) => `${partition(item.partition)} ${item.put_at}`}
        onOpen={(item) => choose(partition(item.partition))}
        columns={[
          {
            id: "partition",
            width: "minmax(110px, 1fr)",
            head: "Partition",
            cell: (item) => (
              <button type="button" className="link id" onClick={() => choose(partition(item.partition))}>
                {partition(item.partition)}
              </button>
            ),
          },
          ...(periods ? [PERIOD] : []),
          ...(items.some((item) => item.late?.length) ? [LATE] : []),
          { id: "ready", width: "140px", head: "Ready", cell: (item) => <When at={item.ready_at} as="second" /> },
          {
            id: "path",
            width: "minmax(140px, 2fr)",
            head: "Path",
            cell: (item) => <code title={item.path}>{within(item.path)}</code>,
          },
        ]}
      />
    );
  }
  return <Days name={name} items={items} more={more} chosen={chosen} choose={choose} />;
}

/** The end of a path that has the keys: `day=2026-11-20/`. What is before them is the place of the dataset. */
const within = (path: string) => /(?:[^/=]+=[^/]*\/)+[^/]*$/.exec(path)?.[0] ?? path;

const PERIOD: Column<RegisteredPartition> = {
  id: "period",
  width: "minmax(100px, 1fr)",
  head: "Period",
  cell: ({ period }) => (period ? <span title={reach(period)}>{period.label}</span> : "-"),
};

/** The schedules that have ignored a partition, because it came after the start of a job to which it belongs. */
const LATE: Column<RegisteredPartition> = {
  id: "late",
  width: "minmax(120px, 1fr)",
  head: "Late for",
  cell: ({ late = [] }) =>
    late.map(({ schedule, reason, at }, index) => (
      <span key={`${schedule} ${at} ${reason}`} className="wait" title={reason}>
        {index > 0 && ", "}◷ <ScheduleLink name={schedule} />
      </span>
    )),
};

function reach({ start, end, zone }: Period): string {
  return `${start} to ${end}, ${zone}`;
}

/** Half a year of days as cells, also the missing ones; `[` and `]` move to another half-year. */
function Days({
  name,
  items,
  more,
  chosen,
  choose,
}: {
  name: string;
  items: RegisteredPartition[];
  more: boolean;
  chosen: string | undefined;
  choose: (values: string) => void;
}) {
  const { search, change } = usePlace();
  const like = typical(items);
  const values = (day: string) => partition(partitionOfDay(day, like));
  // The list is ordered by the texts of the values, where month 9 comes after month 12. A range compares numbers.
  const year = more && like.month ? newestDay(items)?.slice(0, 4) : undefined;
  const ofYear = useQuery({ ...read.partitions(name, { from: year }), enabled: year !== undefined });
  const known = ofYear.data?.items.length ? ofYear.data.items : items;
  const span = halfYear(known, { more, like, chosen, to: search.to?.slice(0, 10) });
  const ofSpan = useQuery({
    ...read.partitions(name, { from: values(span.from), to: values(span.to) }),
    enabled: !span.known,
  });
  const shown = span.known ? known : (ofSpan.data?.items ?? []);
  const move = (to: string | null) => to !== null && change({ to: to === span.newest ? undefined : to });
  useKeys({ "[": () => move(span.earlier), "]": () => move(span.later) });
  return (
    <>
      <div className="toolbar pad">
        <fieldset className="chips">
          <legend className="unseen">Days</legend>
          <button type="button" title="Earlier ([)" disabled={span.earlier === null} onClick={() => move(span.earlier)}>
            ◂ earlier
          </button>
          <button type="button" title="Later (])" disabled={span.later === null} onClick={() => move(span.later)}>
            later ▸
          </button>
        </fieldset>
        <span className="faint">
          {span.from} to {span.to}
        </span>
      </div>
      {!span.known && ofSpan.data === undefined ? (
        <Await query={ofSpan} rows={6}>
          {() => null}
        </Await>
      ) : (
        <DayGrid items={shown} like={like} from={span.from} to={span.to} chosen={chosen} choose={choose} />
      )}
    </>
  );
}

function DayGrid({
  items,
  like,
  from,
  to,
  chosen,
  choose,
}: {
  items: RegisteredPartition[];
  like: Record<string, string>;
  from: string;
  to: string;
  chosen: string | undefined;
  choose: (values: string) => void;
}) {
  const { grid, months, ready, missing } = useMemo(() => {
    const ready = new Map(items.map((item) => [dayOf(item.partition), item]));
    const grid = weeks(from, to, []);
    const missing = grid.flat().filter((day) => day && !ready.has(day.day)).length;
    return { grid, months: monthsAbove(grid), ready, missing };
  }, [items, from, to]);
  const days = grid.flat().filter((day) => day !== null).length;
  return (
    <div className="body">
      <div className="calendar" role="group" aria-label={`Partitions from ${from} to ${to}`}>
        <WeekdayNames />
        {grid.map((week, number) => (
          <div key={number} className="calendar-week">
            <span className="calendar-month">{months[number]}</span>
            {week.map((day, index) => {
              if (!day) return <span key={index} className="calendar-cell outside" />;
              const here = ready.get(day.day);
              const values = partition(here?.partition ?? partitionOfDay(day.day, like));
              const late = here ? lateFor(here) : null;
              const words = here ? `${values}: registered${late ? `, ${late}` : ""}` : `${values}: missing`;
              return (
                <button
                  key={day.day}
                  type="button"
                  className={`calendar-cell ${here ? "ok" : "missing"} ${chosen === values ? "chosen" : ""}`}
                  title={words}
                  aria-label={words}
                  aria-pressed={chosen === values}
                  onClick={() => choose(values)}
                >
                  {late ? "◷" : here ? "✓" : "?"}
                </button>
              );
            })}
          </div>
        ))}
      </div>
      <p className="faint after">
        {number(days - missing)} registered, {number(missing)} missing in these {number(days)} days
      </p>
    </div>
  );
}

function One({ name, values }: { name: string; values: string }) {
  const query = useQuery(read.partition(name, values));
  return (
    <Panel title={`Partition ${values}`}>
      <Await query={query}>
        {(data) => (
          <div className="body grid">
            <dl className="facts">
              <dt>State</dt>
              <dd>
                {data.ready_at ? (
                  <>
                    <span className="ok">✓ registered</span> <Ago side="past" at={data.ready_at} />
                  </>
                ) : (
                  <span className="wait">? missing</span>
                )}
              </dd>
              {data.period && (
                <>
                  <dt>Period</dt>
                  <dd title={reach(data.period)}>
                    {data.period.label} ({data.period.zone})
                  </dd>
                </>
              )}
              {data.path && (
                <>
                  <dt>Path</dt>
                  <dd>
                    <code>{data.path}</code>
                  </dd>
                </>
              )}
              <dt>Counted by</dt>
              <dd>
                {data.schedules.length === 0 && "no schedule"}
                {data.schedules.map((schedule, index) => (
                  <span key={schedule}>
                    {index > 0 && ", "}
                    <ScheduleLink name={schedule} />
                  </span>
                ))}
              </dd>
            </dl>
            <span className="row-tools">
              {!data.ready_at && <ActButton small action={actions.register(name, data.partition)} />}
              <Go
                className="button small"
                to={paths.view(name.split(".")[0] ?? "", "reprocess")}
                search={{ name, at: values }}
              >
                Reprocess
              </Go>
            </span>
            {data.made_by.length > 0 && (
              <>
                <h3>What made it</h3>
                <Runs runs={data.made_by} />
              </>
            )}
            <h3>Who waits for it</h3>
            {data.waiting.length === 0 ? (
              <p className="faint">No job counts or awaits it.</p>
            ) : (
              <ul className="plain">
                {data.waiting.map((job) => (
                  <li key={job.job_id}>
                    <State state={job.state} word={false} /> <ScheduleLink name={job.schedule} />{" "}
                    <JobLink id={job.job_id} />
                    <span className="sub">
                      <Reason text={job.reason} />
                    </span>
                  </li>
                ))}
              </ul>
            )}
            <h3>What used it</h3>
            {data.runs.length === 0 ? <p className="faint">No run.</p> : <Runs runs={data.runs} />}
            {data.at_least && <p className="faint">There may be more runs: not all backfills were read.</p>}
            {data.ended.length > 0 && (
              <>
                <h3>What did not run</h3>
                <ul className="plain">
                  {data.ended.map((record) => (
                    <li key={record.id}>
                      <State state={record.kind} /> <ScheduleLink name={record.schedule} /> <Ago at={record.at} />
                      <span className="sub">
                        <Reason text={record.reason} />
                      </span>
                    </li>
                  ))}
                </ul>
              </>
            )}
          </div>
        )}
      </Await>
    </Panel>
  );
}

/** What made a run beside the trigger: a backfill of its schedule, or a step of a re-processing, whose id has a point. */
function MadeBy({ backfill, schedule }: { backfill: string; schedule: string }) {
  const [id = "", step] = backfill.split(".");
  const to =
    step === undefined
      ? { to: paths.schedule(schedule), search: { tab: "backfills" } }
      : { to: paths.reprocess(schedule.split(".")[0] ?? "", id) };
  return (
    <span className="sub" title={backfill}>
      by <Go {...to}>{step === undefined ? "a backfill" : `step ${Number(step) + 1} of a re-processing`}</Go>
    </span>
  );
}

/** Runs, each with its schedule, and whether a backfill or a re-processing made it. */
function Runs({ runs }: { runs: RunOfPartition[] }) {
  return (
    <ul className="plain">
      {runs.map((run) => (
        <li key={run.run_id}>
          <State state={run.state} word={false} /> <ScheduleLink name={run.schedule} /> <RunLink id={run.run_id} />{" "}
          <Ago side="past" at={run.at} />
          {run.backfill && <MadeBy backfill={run.backfill} schedule={run.schedule} />}
        </li>
      ))}
    </ul>
  );
}
