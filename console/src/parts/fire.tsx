// A large fire: the line that stands for it in lists, and the place of one of its events.

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { fire as read } from "../api/queries";
import type { PlaceInFire, Sends, StateOfFire } from "../api/types";
import { useGo } from "../frame/place";
import { type Count, countsOf, isBundle } from "../lib/fires";
import { duration, number } from "../lib/format";
import { paths } from "../lib/paths";
import { lookOfState } from "../lib/states";
import { Go } from "./go";
import { State, Unread, When } from "./text";

/** `fire of 13:00`: a link to the fire, whose instant may still be unknown. */
export function FireLink({ id, at, search }: { id: string; at?: string | null; search?: { state: string } }) {
  const query = useQuery(read.state(id));
  const nominal = query.data?.nominal_at ?? at;
  return (
    <Go to={paths.fire(id)} search={search} title={id}>
      fire{nominal && " of "}
      {nominal && <When at={nominal} as="time" />}
    </Go>
  );
}

/** The state of a fire. What has become of all its events is read for the lines on screen only. */
export function FireState({ id }: { id: string }) {
  const query = useQuery(read.state(id));
  if (query.data) return <State state={query.data.state} />;
  return <Unread error={query.error} />;
}

/** How many events were sent, failed and wait, and how late they were sent. Until that is read, and if it cannot be
 * read, what the rows of the list (`known`) say. */
export function FireSummary({ id, known, sends }: { id: string; known: Count[]; sends?: Sends | null }) {
  const query = useQuery(read.state(id));
  const { data, error } = query;
  const counts = data ? countsOf(data) : known;
  const late = data ? data.sends : sends;
  return (
    <span className="fire-summary" title={error ? `its other events are not known: ${error.message}` : undefined}>
      {data?.at_least === true || !data ? <span className="faint">at least </span> : null}
      {counts.map((one, index) => (
        <span key={one.state}>
          {index > 0 && <span className="faint"> · </span>}
          <CountLink id={id} count={one} all={index === 0 ? data?.events : undefined} />
        </span>
      ))}
      {late && <LateOf sends={late} />}
      {error && !data && <span className="faint"> · the others are not known</span>}
    </span>
  );
}

/** `797 of 1,000 sent`: a number of events leads to them. */
function CountLink({ id, count, all }: { id: string; count: Count; all?: number }) {
  const { tone } = lookOfState(count.state);
  return (
    <Go to={paths.fire(id)} search={{ state: count.state }} className={tone === "bad" ? "bad" : "as-text"}>
      {number(count.many)}
      {all !== undefined && ` of ${number(all)}`} {count.word}
    </Go>
  );
}

function LateOf({ sends }: { sends: Sends }) {
  return (
    <span className="faint">
      {" · late p50 "}
      {duration(sends.late_p50)}, max {duration(sends.late_max)}
    </span>
  );
}

const MARKS = {
  ok: "mark-ok",
  bad: "mark-bad",
  run: "mark-run",
  wait: "mark-wait",
  off: "mark-off",
  plain: "mark-off",
};

/** The events of a fire as a bar, each state with its share; what is there at all takes two pixels. */
export function FireBar({ fire }: { fire: StateOfFire }) {
  const counts = countsOf(fire);
  return (
    <div
      className="counts-bar fire-bar"
      role="img"
      aria-label={counts.map((one) => `${number(one.many)} ${one.word}`).join(", ")}
    >
      {counts.map((one) => (
        <span
          key={one.state}
          className={MARKS[lookOfState(one.state).tone]}
          title={`${number(one.many)} ${one.word}`}
          style={{ flex: `${one.many} 0 2px` }}
        />
      ))}
    </div>
  );
}

/** Whether an address names events that share a row. Then the view becomes that of their fire. */
export function useFireInstead(id: string): boolean {
  const go = useGo();
  const shared = isBundle(id);
  useEffect(() => {
    if (shared) go(paths.run(id), {}, true);
  }, [shared, go, id]);
  return shared;
}

interface OfFire {
  fire: string | null;
  spread: PlaceInFire | null;
  count: number;
  nominal_at: string | null;
}

/** `event 7 of 1,000 of the fire of 13:00`, with a link to the fire; nothing for other work. */
export function PlaceInItsFire({ of }: { of: OfFire }) {
  const id = of.fire;
  // The row of a single event does not always say how many there are.
  const query = useQuery({ ...read.state(id ?? ""), enabled: id !== null && of.spread?.count === null });
  if (id === null || of.spread === null) return null;
  const first = of.spread.index;
  const all = of.spread.count ?? query.data?.events;
  const nominal = of.nominal_at ?? query.data?.nominal_at;
  return (
    <span>
      {of.count > 1 ? `events from ${number(first)} on` : `event ${number(first)}`}
      {all !== undefined && ` of ${number(all)}`} of the{" "}
      <Go to={paths.fire(id)} className="in-text" title={id}>
        fire{nominal && " of "}
        {nominal && <When at={nominal} as="time" />}
      </Go>
    </span>
  );
}
