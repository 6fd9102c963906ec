import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { commands } from "../api/commands";
import { namespace, schedule } from "../api/queries";
import type { PeriodOfSchedule, PeriodsByDay } from "../api/types";
import { useGo, useNs, usePlace, useZone } from "../frame/place";
import { useRested } from "../frame/rested";
import { partitionPath, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { cellsOf, type DayCell, type Hole, holeOf, inWords, isReady, PERIOD_STATES, periodsOf } from "../lib/periods";
import { lookOfPeriod } from "../lib/states";
import { daysBetween, show } from "../lib/zone";
import { Command } from "../parts/command";
import { JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, Reason, State, When } from "../parts/text";

const DAY = 86_400_000;
const SPANS = ["14", "31", "62"] as const;
const TYPING = 250; // ms without a key before the filter is sent
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Schedules against days: what became of each period, and the backfill of what is missing or has failed. */
export function Periods() {
  const ns = useNs();
  const zone = useZone();
  const { search, change } = usePlace();
  const [now] = useState(() => Date.now());
  const span = SPANS.find((each) => each === search.span) ?? "31";
  const last = search.day ?? show(now, zone, "day");
  const first = new Date(Date.parse(last) - (Number(span) - 1) * DAY).toISOString().slice(0, 10);
  const days = useMemo(() => daysBetween(first, last), [first, last]);
  const move = (by: number) =>
    change({ day: new Date(Date.parse(last) + by * Number(span) * DAY).toISOString().slice(0, 10), at: undefined });
  const isNewest = last >= show(now, zone, "day");
  const text = useRested(search.q ?? "", TYPING);
  const query = useInfiniteQuery(namespace.periods(ns, text, first, last, zone));
  const [chosen, setChosen] = useState<{ name: string; cell: DayCell } | null>(null);
  return (
    <div className="page periods">
      <div className="page-head">
        <h1>Periods</h1>
        <input
          className="filter"
          type="search"
          aria-label="Filter schedules"
          placeholder="Filter schedules"
          value={search.q ?? ""}
          onChange={(event) => change({ q: event.target.value || undefined }, true)}
        />
        <span className="space" />
        <span className="tools" role="group" aria-label="Days">
          <button type="button" className="button" onClick={() => move(-1)} aria-label="Earlier days">
            ‹
          </button>
          <span className="periods-span">
            {first} to {last}
          </span>
          <button type="button" className="button" disabled={isNewest} onClick={() => move(1)} aria-label="Later days">
            ›
          </button>
          <select
            aria-label="How many days"
            value={span}
            onChange={(event) => change({ span: event.target.value, at: undefined })}
          >
            {SPANS.map((each) => (
              <option key={each} value={each}>
                {each} days
              </option>
            ))}
          </select>
        </span>
      </div>
      <Legend />
      <Await query={query} rows={8}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items.map((row) => ({ row, from: page.from })));
          if (rows.length === 0 && !query.hasNextPage)
            return <Empty command="sluice apply app.yaml">No schedule {text ? "fits" : "is here yet"}.</Empty>;
          return (
            <div className={`periods-body ${chosen ? "with-chosen" : ""}`}>
              <div className="periods-left">
                <Matrix rows={rows} days={days} chosen={chosen} choose={(name, cell) => setChosen({ name, cell })} />
                {query.hasNextPage && (
                  <button
                    type="button"
                    className="button after"
                    disabled={query.isFetchingNextPage}
                    onClick={() => query.fetchNextPage()}
                  >
                    Show more
                  </button>
                )}
              </div>
              <Chosen chosen={chosen} />
            </div>
          );
        }}
      </Await>
    </div>
  );
}

function Legend() {
  return (
    <p className="periods-legend">
      {PERIOD_STATES.map((state) => (
        <span key={state} title={lookOfPeriod(state).means}>
          <span className={`period-cell ${state}`} aria-hidden="true">
            {lookOfPeriod(state).glyph}
          </span>{" "}
          {state}
        </span>
      ))}
      <span className="faint">
        A cell is a day. If its periods differ, it shows the first of these states that occurs, and for how many. Arrow
        keys move, Enter opens.
      </span>
    </p>
  );
}

interface Choice {
  name: string;
  cell: DayCell;
}
type Choose = (name: string, cell: DayCell) => void;

function Matrix({
  rows: shown,
  days,
  chosen,
  choose,
}: {
  rows: { row: PeriodsByDay; from: string }[];
  days: string[];
  chosen: Choice | null;
  choose: Choose;
}) {
  const table = useRef<HTMLTableElement>(null);
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-cell]") : null;
    if (!step || !cell || !table.current) return;
    event.preventDefault();
    const rows = [...table.current.querySelectorAll<HTMLElement>("tr[data-row]")].map((row) => [
      ...row.querySelectorAll<HTMLElement>("[data-cell]"),
    ]);
    const filled = rows.filter((row) => row.length > 0);
    const row = filled.findIndex((each) => each.includes(cell));
    const to = filled[row + (step[0] ?? 0)]?.[(filled[row]?.indexOf(cell) ?? 0) + (step[1] ?? 0)];
    if (!to) return;
    cell.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  // The newest days stand at the right end.
  const sheet = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (sheet.current && days.length > 0) sheet.current.scrollLeft = sheet.current.scrollWidth;
  }, [days]);
  useEffect(() => {
    if (chosen)
      table.current?.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [chosen]);
  return (
    <div ref={sheet} className="periods-sheet">
      <table ref={table} className="periods-table" aria-label="Schedules and days" onKeyDown={onKey}>
        <thead>
          <tr>
            <th scope="col">Schedule</th>
            {days.map((day, index) => (
              <th key={day} scope="col" className={new Date(day).getUTCDay() === 1 ? "monday" : undefined}>
                {(index === 0 || day.endsWith("-01")) && (
                  <span className="periods-month">{MONTHS[Number(day.slice(5, 7)) - 1]}</span>
                )}
                {day.slice(8)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(({ row, from }, index) => (
            <Row
              key={row.schedule}
              row={row}
              from={from}
              days={days}
              isFirst={index === 0}
              chosen={chosen}
              choose={choose}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  row,
  from,
  days,
  isFirst,
  chosen,
  choose,
}: {
  row: PeriodsByDay;
  from: string;
  days: string[];
  isFirst: boolean;
  chosen: Choice | null;
  choose: Choose;
}) {
  const name = row.schedule;
  const cells = useMemo(() => cellsOf(days, row, from), [days, row, from]);
  return (
    <tr data-row className={row.why ? "none" : undefined}>
      <th scope="row">
        <ScheduleLink name={name} />
      </th>
      {row.why ? (
        <td colSpan={days.length} className="faint">
          <span className="periods-none" title={row.why}>
            no periods: no clock starts it, and its trigger counts none
          </span>
        </td>
      ) : (
        cells.map((cell, index) => (
          <td key={cell.day}>
            <Cell
              name={name}
              cell={cell}
              first={isFirst && index === 0}
              isChosen={chosen?.name === name && chosen.cell.day === cell.day}
              choose={choose}
            />
          </td>
        ))
      )}
    </tr>
  );
}

function Cell({
  name,
  cell,
  first,
  isChosen,
  choose,
}: {
  name: string;
  cell: DayCell;
  first: boolean;
  isChosen: boolean;
  choose: Choose;
}) {
  const words = `${shortName(name)}, ${cell.day}: ${inWords(cell)}`;
  const alike = cell.state && cell.counts?.[cell.state];
  return (
    <button
      type="button"
      data-cell
      tabIndex={first ? 0 : -1}
      className={`period-cell ${cell.state ?? "empty"} ${alike ? "part" : ""}`}
      title={words}
      aria-label={words}
      aria-pressed={isChosen}
      onClick={() => choose(name, cell)}
    >
      {cell.state === null ? "" : alike || lookOfPeriod(cell.state).glyph}
    </button>
  );
}

/** The periods of the chosen cell, and the backfills of what is missing or has failed. */
function Chosen({ chosen }: { chosen: Choice | null }) {
  if (!chosen) return null;
  const { name, cell } = chosen;
  return (
    <aside className="periods-chosen" aria-live="polite">
      <Panel title={`${shortName(name)}, ${cell.day}`} note={inWords(cell)}>
        <div className="body">
          <PeriodsOfDay name={name} day={cell.day} />
          <Command text={commands.periods(name, cell.day, dayAfter(cell.day))} />
        </div>
      </Panel>
    </aside>
  );
}

/** The periods of a day, which are read when its cell is chosen. */
function PeriodsOfDay({ name, day }: { name: string; day: string }) {
  const zone = useZone();
  // A day more at each end: the days of a period are those of its own zone.
  const ends = [Date.parse(day) - DAY, Date.parse(day) + 2 * DAY].map((ms) => new Date(ms).toISOString());
  const query = useQuery(schedule.periods(name, ends[0] ?? "", ends[1] ?? ""));
  return (
    <Await query={query} rows={2}>
      {({ items }) => {
        const periods = periodsOf(day, items, zone);
        const holes = (["missing", "failed"] as const)
          .map((only) => holeOf(periods, only))
          .filter((hole) => hole !== null);
        return (
          <>
            {holes.map((hole) => (
              <Fill key={hole.only} name={name} hole={hole} />
            ))}
            <ul className="periods-list">
              {periods.map((item) => (
                <OnePeriod
                  key={`${item.at}${partitionPath(item.values ?? {})}`}
                  item={item}
                  ready={isReady(item, items)}
                />
              ))}
            </ul>
          </>
        );
      }}
    </Await>
  );
}

const dayAfter = (day: string) => new Date(Date.parse(day) + DAY).toISOString().slice(0, 10);

function Fill({ name, hole }: { name: string; hole: Hole }) {
  const go = useGo();
  const place = { only: hole.only, from: hole.from, to: hole.to, partition: hole.partitions?.join("\n") };
  return (
    <div className="periods-fill">
      <button type="button" className="button primary" onClick={() => go(paths.backfill(name), place)}>
        Backfill what {hole.only === "missing" ? "is missing" : "has failed"}
      </button>
      <Command text={commands.backfill(name, hole)} />
    </div>
  );
}

function OnePeriod({ item, ready }: { item: PeriodOfSchedule; ready: boolean | null }) {
  const [newest] = item.runs;
  return (
    <li>
      <State state={item.state} look={lookOfPeriod(item.state)} />{" "}
      {item.values ? <code>{partitionPath(item.values)}</code> : <When at={item.at} />}
      {item.since && (
        <>
          {" "}
          <Ago at={item.since} />
        </>
      )}
      {item.revision > 1 && <span className="faint"> run {item.revision} of it</span>}
      {item.attempts > 1 && <span className="faint"> attempt {item.attempts}</span>}
      {item.why && (
        <div>
          <Reason text={item.why} short />
        </div>
      )}
      {newest ? (
        <div>
          <RunLink id={newest} />
        </div>
      ) : (
        item.job_id && (
          <div>
            <JobLink id={item.job_id} />
          </div>
        )
      )}
      {item.state === "missing" && ready !== null && (
        <div className="faint">its partition is {ready ? "ready" : "not registered"}</div>
      )}
    </li>
  );
}
