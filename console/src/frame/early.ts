// The first requests of a page that is opened by its address. They are sent at once, while the code of the view loads;
// the view then finds their answers, or waits for them.

import type { FetchQueryOptions } from "@tanstack/react-query";
import { client, dag, dataset, fire, namespace, run, schedule, scheduleRows } from "../api/queries";
import { filterOfJobs, filterOfRuns } from "../lib/filter";
import type { Search } from "../lib/search";

// biome-ignore lint/suspicious/noExplicitAny: each query has data of its own
type Query = FetchQueryOptions<any, any, any, any>;

const OF_TAB: Record<string, (name: string) => Query> = {
  runs: (name) => schedule.runs(name),
  jobs: (name) => schedule.jobs(name),
  records: (name) => schedule.records(name),
  backfills: (name) => schedule.backfills(name),
  versions: (name) => schedule.versions(name),
};

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the view at an address reads first; nothing for an unknown view. */
export function firstQueries(pathname: string, search: Search): Query[] {
  const [ns = "", view = "", ...rest] = pathname.split("/").slice(1).map(decoded);
  const [first, second] = rest;
  if (!ns) return [];
  if (!view) return [namespace.now(ns)];
  if (first && second) {
    const name = `${ns}.${first}.${second}`;
    if (view === "schedules" && rest.length === 2) {
      const ofTab = OF_TAB[search.tab ?? "runs"];
      return [schedule.definition(name), schedule.why(name), ...(ofTab ? [ofTab(name)] : [])];
    }
    return view === "dags" ? [dag.definition(name), dag.runs(name)] : [];
  }
  if (first) {
    if (view === "runs") return [run.full(first), run.why(first)];
    if (view === "fires") return [fire.state(first)];
    const name = `${ns}.${first}`;
    return view === "datasets" ? [dataset.definition(name), dataset.partitions(name)] : [];
  }
  switch (view) {
    case "schedules":
      return [scheduleRows(ns)];
    case "queue":
      return [namespace.jobs(ns, filterOfJobs(search))];
    case "runs":
      return search.schedule ? [] : [namespace.runs(ns, filterOfRuns(search))];
    case "limits":
      return [namespace.allLimits(ns), ...(search.name ? [namespace.limits(ns, search.name)] : [])];
    case "dead-letters":
      return [namespace.letters(ns, search.schedule)];
    case "report":
      return [namespace.report(ns, search.day)];
    default:
      return [];
  }
}

export function askEarly(pathname: string, search: Search): void {
  for (const query of firstQueries(pathname, search)) client.prefetchQuery(query);
}
