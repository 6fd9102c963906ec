import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { commands } from "../api/commands";
import { namespace, schedule, type WorkFilter } from "../api/queries";
import type { Run } from "../api/types";
import { useKeys } from "../frame/keys";
import { useNs, usePlace } from "../frame/place";
import { useNow } from "../frame/settings";
import { filterOfRuns } from "../lib/filter";
import { events } from "../lib/fires";
import { isInternal, number, shortName } from "../lib/format";
import { lateFirst } from "../lib/late";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { Command } from "../parts/command";
import { ChoiceFilter, ClearFilters, TextFilter, WorkFilters } from "../parts/filters";
import { Go } from "../parts/go";
import { DayField } from "../parts/moment";
import { Await, Empty } from "../parts/panel";
import { RunsTable } from "../parts/runs-table";

const STATES = ["STARTING", "RUNNING", "RETRYING", "SUCCEEDED", "FAILED", "CANCELLED", "ABORTED"];
const FILTERS: SearchKey[] = ["q", "app", "workflow", "target", "tag", "state", "day", "by"];

/** Runs of a namespace or of one schedule, of the last two weeks or of one day. */
export function Runs() {
  const ns = useNs();
  const now = useNow();
  const { search, change } = usePlace();
  const { state, day } = search;
  const field = useRef<HTMLInputElement>(null);
  const filter = filterOfRuns(search);
  useKeys({ "/": () => field.current?.focus() });
  // Those of one schedule were asked for, also if it is a node of a DAG.
  const all = search.all === "yes" || !!search.schedule;
  const ofNamespace = useQuery({ ...namespace.runs(ns, filter), enabled: !search.schedule });
  const ofSchedule = useQuery({
    ...schedule.runs(search.schedule ?? "", { state, day, limit: 500 }),
    enabled: !!search.schedule,
  });
  const query = search.schedule ? ofSchedule : ofNamespace;
  const kept = visible(query.data?.items ?? [], all);
  const shown = filter.late ? lateFirst(kept, now) : kept;
  const searches = !search.schedule && isSearch(filter);
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Runs</h1>
        <span className="faint" aria-live="polite">
          {query.data &&
            (query.data.next_cursor
              ? searches
                ? `${number(events(shown))} found, older ones were not searched: choose a day for them`
                : ofNewest(events(shown), events(query.data.items))
              : number(events(shown)))}
          {day ? ` of ${day}` : search.workflow ? "" : " of the last two weeks"}
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
        <Command text={commands.listRuns(ns, filter)} />
      </div>
      <div className="toolbar">
        {!search.schedule && (
          <>
            <TextFilter of="q" label="Filter" placeholder="part of an id, a cause or a reason" grow at={field} />
            <WorkFilters />
          </>
        )}
        <ChoiceFilter of="state" label="State" options={STATES} />
        <label>
          <span className="unseen">Day, in UTC</span>
          <DayField value={day ?? ""} title="A day, in UTC" take={(text) => change({ day: text || undefined })} />
        </label>
        <fieldset className="chips">
          <legend className="unseen">Show</legend>
          <button
            type="button"
            aria-pressed={filter.late}
            onClick={() => change({ by: filter.late ? undefined : "late" })}
          >
            late ones, the worst first
          </button>
          {!search.schedule && (
            <button type="button" aria-pressed={all} onClick={() => change({ all: all ? undefined : "yes" })}>
              also nodes of DAGs
            </button>
          )}
        </fieldset>
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={12}>
        {() => (
          <RunsTable
            runs={shown}
            late={filter.late}
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

/** Whether a filter leaves out most runs, so that the API searches for those that fit. */
const isSearch = ({ q, app, workflow, target, tag, late }: WorkFilter) =>
  [q, app, workflow, target, tag].some(Boolean) || late === true;

/** How many of the newest ones are shown: `the newest 500`, or `12 of the newest 500`. */
const ofNewest = (shown: number, read: number) =>
  shown === read ? `the newest ${number(read)}` : `${number(shown)} of the newest ${number(read)}`;

const visible = (runs: Run[], all: boolean) => (all ? runs : runs.filter((run) => !isInternal(run.schedule)));
