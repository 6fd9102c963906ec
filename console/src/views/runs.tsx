import { useQuery } from "@tanstack/react-query";
import { commands } from "../api/commands";
import { namespace, schedule } from "../api/queries";
import type { Run } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { number, shortName } from "../lib/format";
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
  const ofNamespace = useQuery({ ...namespace.runs(ns, { state, day }), enabled: !search.schedule });
  const ofSchedule = useQuery({
    ...schedule.runs(search.schedule ?? "", { state, day, limit: 500 }),
    enabled: !!search.schedule,
  });
  const query = search.schedule ? ofSchedule : ofNamespace;
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Runs</h1>
        <span className="faint">
          {query.data &&
            (query.data.next_cursor
              ? `the newest ${number(query.data.items.length)}`
              : number(query.data.items.length))}
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
        </fieldset>
        <label className="toolbar">
          <span className="faint">Day, in UTC</span>
          <input type="date" value={day ?? ""} onChange={(event) => change({ day: event.target.value || undefined })} />
        </label>
      </div>
      <Await query={query} rows={12}>
        {({ items }) => (
          <RunsTable
            runs={search.by === "late" ? lateFirst(visible(items)) : visible(items)}
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

const visible = (runs: Run[]) => runs.filter((run) => !run.schedule.includes(".~"));
