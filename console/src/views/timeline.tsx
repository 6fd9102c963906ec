import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../api/client";
import { namespace } from "../api/queries";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace, useZone } from "../frame/place";
import { tell, useNowBy } from "../frame/settings";
import { dagOfStart, isNotice, isOfMessage, number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { moved, rangeOf, SPANS } from "../lib/spans";
import { fromWall, toWall } from "../lib/zone";
import { ScheduleLink } from "../parts/go";
import { WallField } from "../parts/moment";
import { Await, Empty } from "../parts/panel";
import { Rows } from "../parts/rows";
import { State, Took, When } from "../parts/text";
import { type Attempts, timelineOf } from "./timeline/load";
import { type Line, TimelinePicture } from "./timeline/picture";

const BY = ["schedule", "app", "workflow", "pool"] as const;
type By = (typeof BY)[number];

/** What ran when, what overlapped, what was late. */
export function TimelineView() {
  const ns = useNs();
  const zone = useZone();
  const { search, change } = usePlace();
  const now = useNowBy(15_000);
  const range = rangeOf(search.span, search.to, now);
  const by: By = BY.find((word) => word === search.by) ?? "schedule";
  // What was claimed before the range may still run in it.
  const from = new Date(range.from - Math.min(range.minutes, 1440) * 60_000).toISOString();
  const query = useQuery(timelineOf(ns, from, new Date(range.to).toISOString(), range.live, search.schedule));
  const fires = useQuery({
    ...namespace.fires(ns, { to: new Date(range.to + 60_000).toISOString() }),
    enabled: range.to > now && query.data !== undefined,
  });
  const move = (way: -1 | 1) => change({ to: moved(range, way, now) });
  useKeys({ "[": () => move(-1), "]": () => move(1) });
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Timeline</h1>
        <span className="faint" aria-live="polite">
          {query.data && `${number(query.data.attempts, query.data.atLeast)} attempts`}
          {query.data?.completeFrom === null && ", reading more"}
        </span>
        {search.schedule && (
          <span>
            of <ScheduleLink name={search.schedule} />{" "}
            <button type="button" className="link" onClick={() => change({ schedule: undefined })}>
              Show all
            </button>
          </span>
        )}
        <span className="space" />
        <span className="legend" aria-hidden="true">
          <span className="swatch wait-swatch" /> waited <span className="swatch mark-ok" /> ran{" "}
          <span className="swatch mark-bad" /> failed <span className="swatch off-swatch" /> cancelled{" "}
          <span className="swatch run-swatch" /> runs <span className="swatch fire-swatch" /> expected
        </span>
      </div>
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="unseen">Range</legend>
          <button type="button" aria-label="Earlier" title="Earlier ([)" onClick={() => move(-1)}>
            ◂
          </button>
          {SPANS.map(({ minutes, word }) => (
            <button
              key={word}
              type="button"
              aria-pressed={range.minutes === minutes}
              onClick={() => change({ span: minutes === 60 ? undefined : String(minutes) })}
            >
              {word}
            </button>
          ))}
          <button type="button" aria-label="Later" title="Later (])" disabled={range.live} onClick={() => move(1)}>
            ▸
          </button>
          <button type="button" aria-pressed={range.live} onClick={() => change({ to: undefined })}>
            now
          </button>
        </fieldset>
        <label>
          <span className="faint">until </span>
          <WallField
            aria-label={`Until, in ${zone}`}
            value={toWall(range.to, zone)}
            take={(text) => change({ to: fromWall(text, zone)?.instant }, true)}
          />
        </label>
        <fieldset className="chips">
          <legend className="unseen">Rows</legend>
          {BY.map((word) => (
            <button
              key={word}
              type="button"
              aria-pressed={by === word}
              onClick={() => change({ by: word === "schedule" ? undefined : word })}
            >
              by {word}
            </button>
          ))}
        </fieldset>
        <span className="space" />
        <fieldset className="chips">
          <legend className="unseen">Show as</legend>
          <button type="button" aria-pressed={search.tab !== "table"} onClick={() => change({ tab: undefined })}>
            picture
          </button>
          <button type="button" aria-pressed={search.tab === "table"} onClick={() => change({ tab: "table" })}>
            table
          </button>
        </fieldset>
      </div>
      <Await query={query} rows={10}>
        {(data) =>
          data.row.length === 0 ? (
            <Empty>Nothing ran in this range. Choose a longer one, or move to an earlier one with the key [.</Empty>
          ) : search.tab === "table" ? (
            <AsTable ns={ns} data={data} from={range.from} />
          ) : (
            <Shown ns={ns} data={data} by={by} fires={fires.data?.items ?? []} range={range} now={now} />
          )
        }
      </Await>
    </div>
  );
}

interface ShownProps {
  ns: string;
  data: Attempts;
  by: By;
  fires: Parameters<typeof TimelinePicture>[0]["fires"];
  range: { from: number; to: number };
  now: number;
}

function Shown({ ns, data, by, fires, range, now }: ShownProps) {
  const pick = usePick(ns, data);
  const pools = usePools(ns, by === "pool");
  const { lines, lineOf } = useMemo(() => linesOf(ns, data, by, pools), [ns, data, by, pools]);
  return (
    <TimelinePicture
      data={data}
      lines={lines}
      lineOf={lineOf}
      fires={fires}
      from={range.from}
      to={range.to}
      now={now}
      pick={(_, index) => void pick(index)}
    />
  );
}

/** Opens the run of an attempt. */
function usePick(ns: string, data: Attempts): (index: number) => Promise<void> {
  const go = useGo();
  return async (index) => {
    const name = data.names[data.row[index] ?? 0] ?? "";
    const at = (data.at[index] ?? 0) + (data.waited[index] ?? 0);
    const id = await idOf(ns, name, at);
    if (id) go(paths.run(id));
    else tell("The run is not on record any more", { bad: true });
  };
}

const NO_POOL = "no pool";
const NOTICES = "notices";

/** The view of a schedule, of the message or of the DAG that it is made for. */
function addressOfSchedule(name: string): { to: string } {
  const dag = dagOfStart(name);
  return { to: dag ? paths.dag(dag) : isOfMessage(name) ? paths.message(name) : paths.schedule(name) };
}

/** The pool of each workflow that has one, once a picture by pools is asked for. */
function usePools(ns: string, enabled: boolean): ReadonlyMap<string, string> {
  const workflows = useQuery({ ...namespace.workflows(ns), enabled }).data;
  return useMemo(() => {
    const found = new Map<string, string>();
    for (const { name, pool } of workflows ?? []) {
      if (pool) found.set(name, pool.includes(".") ? pool : `${ns}.${pool}`);
    }
    return found;
  }, [workflows, ns]);
}

/** The id of the attempt of a schedule that was claimed at an instant. The columns leave ids out: they are most of the bytes. */
async function idOf(ns: string, schedule: string, at: number): Promise<string | undefined> {
  const query = {
    from: new Date(at - 1000).toISOString(),
    to: new Date(at + 1000).toISOString(),
    schedule,
    ids: true,
    limit: 100,
  };
  const found = await get("/v1/namespaces/{ns}/timeline", { ns }, { query });
  const nearest = found.at
    .map((begun, index) => ({ index, apart: Math.abs(begun + (found.waited[index] ?? 0) - at) }))
    .sort((a, b) => a.apart - b.apart)[0];
  return nearest === undefined ? undefined : found.ids?.[nearest.index]?.split("#")[0];
}

function linesOf(
  ns: string,
  data: Attempts,
  by: By,
  pools: ReadonlyMap<string, string>,
): { lines: Line[]; lineOf: number[] } {
  // Each notice has a schedule of its own: those of an app are one row.
  const idOfName = (name: string, index: number) =>
    by === "schedule"
      ? isNotice(name)
        ? `${name.split(".").slice(0, 2).join(".")}.${NOTICES}`
        : name
      : by === "app"
        ? name.split(".").slice(0, 2).join(".")
        : by === "pool"
          ? (pools.get(data.workflows[index] ?? "") ?? NO_POOL)
          : (data.workflows[index] ?? name);
  const ids = data.names.map(idOfName);
  const sorted = [...new Set(ids)].sort();
  const place = new Map(sorted.map((id, index) => [id, index]));
  const lines = sorted.map((id): Line => {
    if (by === "schedule" && id.endsWith(`.${NOTICES}`))
      return { id, title: shortName(id), to: paths.view(ns, "runs"), search: { all: "yes", q: "notice-" } };
    if (by === "schedule") return { id, title: shortName(id), ...addressOfSchedule(id) };
    if (by === "pool") {
      const search: Record<string, string> = id === NO_POOL ? {} : { name: `pool:${id}` };
      return { id, title: id === NO_POOL ? id : shortName(id), to: paths.view(ns, "limits"), search };
    }
    return {
      id,
      title: shortName(id),
      to: paths.view(ns, "schedules"),
      search: { q: by === "app" ? `app:${shortName(id)}` : `workflow:${id}` },
    };
  });
  return { lines, lineOf: ids.map((id) => place.get(id) ?? 0) };
}

function AsTable({ ns, data, from }: { ns: string; data: Attempts; from: number }) {
  const pick = usePick(ns, data);
  const rows = useMemo(
    () =>
      data.row
        .map((name, index) => ({
          index,
          name: data.names[name] ?? "",
          state: data.states[data.state[index] ?? 0] ?? "",
          at: data.at[index] ?? 0,
          begun: (data.at[index] ?? 0) + (data.waited[index] ?? 0),
          took: data.took[index] ?? null,
          started: (data.at[index] ?? 0) + (data.waited[index] ?? 0) + (data.starting[index] ?? 0),
          count: data.count[index] ?? 1,
        }))
        .filter((row) => row.took === null || row.started + row.took >= from),
    [data, from],
  );
  const text = (ms: number) => new Date(ms).toISOString();
  return (
    <Rows
      label="Attempts"
      rows={rows}
      rowKey={(row) => String(row.index)}
      onOpen={(row) => void pick(row.index)}
      columns={[
        { id: "state", width: "120px", head: "State", cell: (row) => <State state={row.state} /> },
        {
          id: "name",
          width: "minmax(200px, 2fr)",
          head: "Schedule",
          cell: (row) => (
            <>
              <ScheduleLink name={row.name} />
              {row.count > 1 && <span className="faint"> {number(row.count)} events of a fire</span>}
            </>
          ),
        },
        { id: "at", width: "170px", head: "Begun", cell: (row) => <When at={text(row.begun)} as="second" /> },
        {
          id: "waited",
          width: "110px",
          head: "Waited",
          end: true,
          cell: (row) => <Took from={text(row.at)} to={text(row.begun)} />,
        },
        {
          id: "took",
          width: "110px",
          head: "Took",
          end: true,
          cell: (row) => (
            <Took
              from={text(row.started)}
              to={row.took === null ? null : text(row.started + row.took)}
              living={row.took === null}
            />
          ),
        },
      ]}
    />
  );
}
