import { useQuery } from "@tanstack/react-query";
import { commands } from "../api/commands";
import { namespace, schedule } from "../api/queries";
import type { Run } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { events } from "../lib/fires";
import { isInternal, number, shortName } from "../lib/format";
import { lateFirst } from "../lib/late";
import { paths } from "../lib/paths";
import { Command } from "../parts/command";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { RunsTable } from "../parts/runs-table";

const STATES = ["RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED"];

/** Runs of a namespace or of one schedule, of the last two weeks or of one day. */
export function Runs() {
  const ns = useNs();
  const { search, change } = usePlace();
  const { state, day } = search;
  // Those of one schedule were asked for, also if it is a node of a DAG.
  const all = search.all === "yes" || !!search.schedule;
  const ofNamespace = useQuery({ ...namespace.runs(ns, { state, day }), enabled: !search.schedule });
  const ofSchedule = useQuery({
    ...schedule.runs(search.schedule ?? "", { state, day, limit: 500 }),
    enabled: !!search.schedule,
  });
  const query = search.schedule ? ofSchedule : ofNamespace;
  const kept = visible(query.data?.items ?? [], all);
  const shown = search.by === "late" ? lateFirst(kept) : kept;
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Runs</h1>
        <span className="faint">
          {query.data &&
            (query.data.next_cursor ? ofNewest(events(shown), events(query.data.items)) : number(events(shown)))}
          {day ? ` of ${day}` : " of the last two weeks"}
        </span>
        {search.schedule && (
          <span>
            of <Go to={paths.schedule(search.schedule)}>{shortName(search.schedule)}</Go>{" "}
            <button type="button" className="link" onClick={() => change({ schedule: undefined })}>
              Show those of all schedules
            </button>
          </span>
        )}
        <span className="space" />
        <Command text={commands.listRuns(ns, state, day)} />
      </div>
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="unseen">State</legend>
          {STATES.map((word) => (
            <button
              key={word}
              type="button"
              aria-pressed={state === word}
              onClick={() => change({ state: state === word ? undefined : word })}
            >
              {word}
            </button>
          ))}
          <button
            type="button"
            aria-pressed={search.by === "late"}
            onClick={() => change({ by: search.by === "late" ? undefined : "late" })}
          >
            late ones, the worst first
          </button>
          {!search.schedule && (
            <button type="button" aria-pressed={all} onClick={() => change({ all: all ? undefined : "yes" })}>
              also nodes of DAGs
            </button>
          )}
        </fieldset>
        <label className="toolbar">
          <span className="faint">Day, in UTC</span>
          <input type="date" value={day ?? ""} onChange={(event) => change({ day: event.target.value || undefined })} />
        </label>
      </div>
      <Await query={query} rows={12}>
        {() => (
          <RunsTable
            runs={shown}
            late={search.by === "late"}
            fill
            empty={
              <Empty command="sluice run NAME">
                No run fits. A schedule makes one once its trigger is met; the command makes one now.
              </Empty>
            }
          />
        )}
      </Await>
    </div>
  );
}

/** How many of the newest ones are shown: `the newest 500`, or `12 of the newest 500`. */
const ofNewest = (shown: number, read: number) =>
  shown === read ? `the newest ${number(read)}` : `${number(shown)} of the newest ${number(read)}`;

const visible = (runs: Run[], all: boolean) => (all ? runs : runs.filter((run) => !isInternal(run.schedule)));
