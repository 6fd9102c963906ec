import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactNode, useCallback, useEffect, useMemo } from "react";
import { commands } from "../api/commands";
import { fire as read } from "../api/queries";
import type { EventInFire, StateOfFire } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { countsOf, goesOn, type StateOfEvent } from "../lib/fires";
import { between, duration, number, shortId } from "../lib/format";
import { paths } from "../lib/paths";
import { lookOfState } from "../lib/states";
import { Command, copy, copyCommand } from "../parts/command";
import { FireBar } from "../parts/fire";
import { Go, ScheduleLink } from "../parts/go";
import { Await, Empty, Loading } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Reason, State, When } from "../parts/text";

const STATES: readonly StateOfEvent[] = ["SENT", "FAILED", "RETRYING", "WAITING", "DROPPED", "UNKNOWN"];
const stateOf = (word: string | undefined) => STATES.find((state) => state === word);

/** A large fire: what has become of its events, in numbers and one by one. */
export function FireView() {
  const { id = "" } = useParams({ strict: false }) as { id?: string };
  const query = useQuery(read.state(id));
  const { search } = usePlace();
  const state = stateOf(search.state);
  useKeys({ c: () => copy(commands.showFire(id, state)).then(() => tell("The command is copied")) });
  return (
    <div className="page fill">
      <Await query={query} rows={12}>
        {(fire) => (
          <>
            <header className="page-head">
              <h1>
                <ScheduleLink name={fire.schedule} />{" "}
                <span className="crumb">
                  fire of <When at={fire.nominal_at} as="second" />
                </span>
              </h1>
              <State state={fire.state} />
              <span className="space" />
              <Command text={commands.showFire(id, state)} />
            </header>
            <Numbers fire={fire} />
            <Events fire={fire} state={state} />
          </>
        )}
      </Await>
    </div>
  );
}

function Numbers({ fire }: { fire: StateOfFire }) {
  const { sends } = fire;
  return (
    <div className="grid">
      <FireBar fire={fire} />
      <div className="figures">
        <Figure word="Events" value={number(fire.events)} />
        {countsOf(fire).map((one) => (
          <Figure
            key={one.state}
            word={one.word.replace(/^./, (letter) => letter.toUpperCase())}
            tone={lookOfState(one.state).tone === "bad" ? "bad" : ""}
            value={number(one.many, fire.at_least && one.state !== "UNKNOWN")}
          />
        ))}
        {sends && (
          <>
            <Figure word="Late, p50" value={duration(sends.late_p50)} />
            <Figure word="Late, max" value={duration(sends.late_max)} />
            <Figure word="First send" value={<When at={sends.first} as="clock" />} />
            <Figure
              word="Last send"
              value={
                <>
                  <When at={sends.last} as="clock" />{" "}
                  <small className="faint">after {duration(between(sends.first, sends.last))}</small>
                </>
              }
            />
          </>
        )}
      </div>
    </div>
  );
}

function Figure({ word, value, tone = "" }: { word: string; value: ReactNode; tone?: string }) {
  return (
    <div className="figure">
      <span className="label">{word}</span>
      <strong className={tone}>{value}</strong>
    </div>
  );
}

/** Waiting work has the page of its job, any other that of its run. */
const kindOf = (event: EventInFire) => (event.state === "WAITING" || event.state === "RETRYING" ? "job" : "run");
const addressOf = (event: EventInFire) => paths[kindOf(event)](event.id);

const COLUMNS: Column<EventInFire>[] = [
  { id: "index", width: "70px", head: "Event", end: true, cell: (event) => number(event.index) },
  { id: "state", width: "112px", head: "State", cell: (event) => <State state={event.state} /> },
  {
    id: "work",
    width: "140px",
    head: "Run or job",
    cell: (event) => (
      <Go to={addressOf(event)} className="id" title={event.id}>
        {shortId(event.id)}
      </Go>
    ),
  },
  { id: "due", width: "190px", head: "Due", cell: (event) => <When at={event.due_at} as="millisecond" /> },
  { id: "why", width: "minmax(240px, 1fr)", head: "Why", cell: (event) => <Reason text={event.reason} short /> },
];

/** The events by number; the next page is read when the end of those before comes on screen. */
function Events({ fire, state }: { fire: StateOfFire; state: StateOfEvent | undefined }) {
  const go = useGo();
  const { change } = usePlace();
  const query = useInfiniteQuery(read.events(fire.id, state, goesOn(fire)));
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isError } = query;
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isError, fetchNextPage]);
  const last = rows.at(-1);
  const onShown = useCallback(
    (shown: EventInFire[]) => {
      if (shown.at(-1) === last) more();
    },
    [last, more],
  );
  // A request reads a bounded part of a fire, so a page may have no event in the state.
  useEffect(() => {
    if (last === undefined) more();
  }, [last, more]);
  const open = (event: EventInFire) => go(addressOf(event));
  return (
    <>
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="unseen">State</legend>
          <button type="button" aria-pressed={state === undefined} onClick={() => change({ state: undefined })}>
            all {number(fire.events)}
          </button>
          {countsOf(fire).map((one) => (
            <button
              key={one.state}
              type="button"
              aria-pressed={state === one.state}
              onClick={() => change({ state: state === one.state ? undefined : one.state })}
            >
              {lookOfState(one.state).glyph} {number(one.many, fire.at_least)} {one.word}
            </button>
          ))}
        </fieldset>
        <span className="faint" aria-live="polite">
          {query.data && (hasNextPage ? `the first ${number(rows.length)} are listed, scroll for more` : "")}
          {isFetchingNextPage && ", reading more"}
        </span>
      </div>
      <Await query={query} rows={10}>
        {() =>
          rows.length === 0 && hasNextPage && !isError ? (
            <Loading rows={10} />
          ) : (
            <Rows
              label="Events of the fire"
              rows={rows}
              columns={COLUMNS}
              rowKey={(event) => event.id}
              onShown={onShown}
              onOpen={open}
              keys={{ w: open, c: (event) => void copyCommand(commands.why(kindOf(event), event.id)) }}
              empty={
                <Empty command={commands.showFire(fire.id)}>
                  No event of this fire is {state ?? "known"}. The command lists all of them.
                </Empty>
              }
            />
          )
        }
      </Await>
    </>
  );
}
