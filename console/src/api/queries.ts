// What each view reads, and how often it is read again.

import { infiniteQueryOptions, keepPreviousData, type Query, QueryClient, queryOptions } from "@tanstack/react-query";
import { goesOn, type StateOfEvent } from "../lib/fires";
import type { About } from "./about";
import { ApiError, fill, get, pace, post, send } from "./client";
import type { ReportRow } from "./report";
import type {
  DeadLetter,
  GlanceAtSchedule,
  Job,
  Limit,
  Now,
  PeriodOfSchedule,
  Run,
  ScheduleInShort,
  StoredDag,
  StoredMessage,
  StoredWorkflow,
} from "./types";

const SECOND = 1000;

/** For how long an answer is not asked for again. */
const FRESH = 2 * SECOND;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH,
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiError && (error.status === 429 || error.status >= 502),
      refetchOnWindowFocus: true,
      refetchIntervalInBackground: false,
    },
  },
});

/** Show a part of an answer while the rest is read. It is stale at once: who leaves the view before the rest has come,
 * and comes back, has it read again. */
function showPart<T>(queryKey: readonly unknown[], part: T): void {
  client.setQueryData(queryKey, part, { updatedAt: Date.now() - FRESH });
}

/** Poll each so many seconds, less often after slow answers, and not at all while an answer is a refusal of the token. */
export function every(seconds: number) {
  // biome-ignore lint/suspicious/noExplicitAny: the data of the query does not matter here
  return (query: Query<any, any, any, any>): number | false => {
    const error = query.state.error;
    if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return false;
    return Math.max(seconds * SECOND, pace.last * 5, error ? 10 * SECOND : 0);
  };
}

const parts = (name: string) => {
  const [ns = "", app = "", ...rest] = name.split(".");
  return { ns, app, name: rest.join(".") };
};

const ofTwo = (name: string) => {
  const [ns = "", ...rest] = name.split(".");
  return { ns, name: rest.join(".") };
};

/** Each waiting job that is listed; `whole` once the list has ended or has reached its bound. */
export interface JobList {
  rows: Job[];
  whole: boolean;
}

const MOST_JOBS = 5_000;
const MOST_LIMITS = 4; // requests for limits
const MOST_PERIODS = 3_000;

interface Part<T> {
  items: T[];
  next_cursor: string | null;
}

/** A list in parts: the first, short one is shown while the others come. Read again, they are as long as possible. With
 * filters, a page may be short although others follow: so many `requests` are made at most. */
async function inParts<T>(
  queryKey: readonly unknown[],
  path: string,
  query: Filters,
  { first, most, requests = 2 }: { first: number; most: number; requests?: number },
  signal: AbortSignal,
): Promise<Part<T>> {
  const known = client.getQueryData(queryKey) !== undefined;
  const all: Part<T> = { items: [], next_cursor: null };
  for (let made = 0; made < requests; made += 1) {
    const limit = made === 0 && !known ? first : most - all.items.length;
    const part: Part<T> = await send("GET", path, { query: { limit, cursor: all.next_cursor, ...query }, signal });
    all.items.push(...part.items);
    all.next_cursor = part.next_cursor;
    if (part.next_cursor === null || all.items.length >= most) break;
    if (!known) showPart(queryKey, { ...all, items: all.items.slice() });
  }
  return all;
}

type Filters = Record<string, string | boolean | undefined>;

/** What runs and jobs are filtered by, with the names of the API. */
export interface WorkFilter {
  state?: string;
  day?: string;
  app?: string;
  workflow?: string;
  target?: string;
  tag?: string;
  q?: string;
  late?: boolean;
}

/** The filters that are given, in a fixed order: those of a key. */
function given(filter: WorkFilter): Filters {
  const { state, day, app, workflow, target, tag, q, late } = filter;
  const all: Filters = { state, day, app, workflow, target, tag, q, late: late || undefined };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== ""));
}

/** Requests of a filtered list of runs, each of which reads some 500: so far back a search goes. */
const SEARCHES = 8;

/** The lists that each app has. */
const OF_APPS = {
  workflows: "/v1/namespaces/{ns}/apps/{app}/workflows",
  dags: "/v1/namespaces/{ns}/apps/{app}/dags",
  messages: "/v1/namespaces/{ns}/apps/{app}/messages",
};

/** The items of a list of each app, all apps at once. */
async function ofApps<T>(ns: string, kind: keyof typeof OF_APPS, signal: AbortSignal): Promise<T[]> {
  const { items } = await get("/v1/namespaces/{ns}/apps", { ns }, { query: { limit: 500 }, signal });
  const of = async (name: string) => {
    const path = fill(OF_APPS[kind], { ns, app: ofTwo(name).name });
    const found: T[] = [];
    let cursor: string | null = null;
    do {
      const part: Part<T> = await send("GET", path, { query: { limit: 500, cursor }, signal });
      found.push(...part.items);
      cursor = part.next_cursor;
    } while (cursor !== null);
    return found;
  };
  return (await Promise.all(items.map((app) => of(app.name)))).flat();
}

export const about = queryOptions({
  queryKey: ["about"],
  queryFn: () => send<About>("GET", "/console.json"),
  staleTime: Number.POSITIVE_INFINITY,
});

export const namespaces = queryOptions({
  queryKey: ["namespaces"],
  queryFn: ({ signal }) => get("/v1/namespaces", {}, { query: { limit: 500 }, signal }),
  staleTime: 60 * SECOND,
});

/** The schedules of a namespace; `whole` once there are no more. An action on all that fit has to wait for that. */
export interface ScheduleList {
  rows: ScheduleInShort[];
  whole: boolean;
}

/** Each schedule of a namespace as a row; the first page is shown while the others come. */
export function scheduleRows(ns: string) {
  const queryKey = [ns, "schedules"];
  return queryOptions({
    queryKey,
    structuralSharing: false,
    queryFn: async ({ signal }): Promise<ScheduleList> => {
      const path = fill("/v1/namespaces/{ns}/schedules", { ns });
      const rows: ScheduleInShort[] = [];
      let cursor: string | null = null;
      do {
        const query: { limit: number; cursor: string | null } = { limit: rows.length === 0 ? 100 : 2000, cursor };
        const page: { items: ScheduleInShort[]; next_cursor: string | null } = await send("GET", path, {
          query,
          signal,
        });
        rows.push(...page.items);
        cursor = page.next_cursor;
        const shown = client.getQueryData<ScheduleList>(queryKey);
        if (cursor && !shown?.whole) showPart(queryKey, { rows: rows.slice(), whole: false });
      } while (cursor);
      return { rows, whole: true };
    },
    refetchInterval: every(30),
  });
}

/** The first schedules whose full names contain a part: what the palette shows. The API reads no other schedule. */
export const schedulesNamed = (ns: string, part: string) =>
  queryOptions({
    queryKey: [ns, "schedules", "named", part],
    queryFn: ({ signal }) =>
      get("/v1/namespaces/{ns}/schedules", { ns }, { query: { q: part, limit: FOUND_AT_ONCE }, signal }),
    placeholderData: keepPreviousData,
    staleTime: 30 * SECOND,
  });

// The API reads the states of a hundred names together, so fewer rows are no cheaper, and these can be ranked.
const FOUND_AT_ONCE = 50;

/** The dear facts of the schedules on screen, by name. At most 50 a request. */
export function glances(ns: string, names: string[]) {
  return queryOptions({
    queryKey: [ns, "glance", ...names],
    queryFn: async ({ signal }): Promise<Map<string, GlanceAtSchedule>> => {
      if (names.length === 0) return new Map();
      const answer = await post(
        "/v1/namespaces/{ns}/glance",
        { ns },
        { body: { schedules: names.slice(0, 50) }, signal },
      );
      return new Map(answer.items.map((item) => [item.schedule, item]));
    },
    placeholderData: keepPreviousData,
    refetchInterval: every(10),
  });
}

const SCHEDULE = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}";

export const schedule = {
  definition: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name],
      queryFn: ({ signal }) => get(SCHEDULE, parts(name), { signal }),
      refetchInterval: every(10),
    }),
  why: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name, "why"],
      queryFn: ({ signal }) => get(`${SCHEDULE}/why`, parts(name), { signal }),
      refetchInterval: every(5),
    }),
  preview: (name: string, count = 5) =>
    queryOptions({
      queryKey: ["schedule", name, "preview", count],
      queryFn: ({ signal }) => get(`${SCHEDULE}/preview`, parts(name), { query: { count }, signal }),
      refetchInterval: every(30),
      retry: false,
    }),
  days: (name: string, zone: string) =>
    queryOptions({
      queryKey: ["schedule", name, "days", zone],
      queryFn: ({ signal }) => get(`${SCHEDULE}/days`, parts(name), { query: { zone }, signal }),
      staleTime: 60 * SECOND,
    }),
  /** All periods of a span, at most `MOST_PERIODS`. */
  periods: (name: string, from: string, to: string) =>
    queryOptions({
      queryKey: ["schedule", name, "periods", from, to],
      queryFn: async ({ signal }) => {
        const items: PeriodOfSchedule[] = [];
        let cursor: string | null = null;
        do {
          const query: Record<string, string | number | null> = { from, to, limit: 500, cursor };
          const part: Part<PeriodOfSchedule> = await get(`${SCHEDULE}/periods`, parts(name), { query, signal });
          items.push(...part.items);
          cursor = part.next_cursor;
        } while (cursor !== null && items.length < MOST_PERIODS);
        return { items, whole: cursor === null };
      },
      retry: false,
      staleTime: 60 * SECOND,
    }),
  runs: (name: string, query: { state?: string; day?: string; limit?: number } = {}) =>
    queryOptions({
      queryKey: ["schedule", name, "runs", query],
      queryFn: ({ signal }) => get(`${SCHEDULE}/runs`, parts(name), { query: { limit: 100, ...query }, signal }),
      placeholderData: keepPreviousData,
      refetchInterval: every(10),
    }),
  jobs: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name, "jobs"],
      queryFn: ({ signal }) => get(`${SCHEDULE}/jobs`, parts(name), { query: { limit: 200 }, signal }),
      refetchInterval: every(5),
    }),
  records: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name, "records"],
      queryFn: ({ signal }) => get(`${SCHEDULE}/records`, parts(name), { query: { limit: 200 }, signal }),
      refetchInterval: every(30),
    }),
  versions: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name, "versions"],
      queryFn: ({ signal }) => get(`${SCHEDULE}/versions`, parts(name), { query: { limit: 100 }, signal }),
      staleTime: 60 * SECOND,
    }),
  backfills: (name: string) =>
    queryOptions({
      queryKey: ["schedule", name, "backfills"],
      queryFn: ({ signal }) => get(`${SCHEDULE}/backfills`, parts(name), { query: { limit: 50 }, signal }),
      refetchInterval: every(5),
    }),
};

export const job = (id: string) =>
  queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => get("/v1/jobs/{job_id}", { job_id: id }, { signal }),
    refetchInterval: every(5),
    retry: false,
  });

export const jobWhy = (id: string) =>
  queryOptions({
    queryKey: ["job", id, "why"],
    queryFn: ({ signal }) => get("/v1/jobs/{job_id}/why", { job_id: id }, { signal }),
    refetchInterval: every(5),
    retry: false,
  });

const LIVING = ["STARTING", "RUNNING", "RETRYING"];
export const lives = (state: string | undefined): boolean => state !== undefined && LIVING.includes(state);

export const run = {
  full: (id: string) =>
    queryOptions({
      queryKey: ["run", id],
      queryFn: ({ signal }) => get("/v1/runs/{run_id}", { run_id: id }, { signal }),
      refetchInterval: (query) =>
        query.state.data && !lives(query.state.data.state) ? every(30)(query) : every(2)(query),
    }),
  why: (id: string) =>
    queryOptions({
      queryKey: ["run", id, "why"],
      queryFn: ({ signal }) => get("/v1/runs/{run_id}/why", { run_id: id }, { signal }),
      refetchInterval: every(5),
      retry: false,
    }),
  logs: (id: string, attempt: number, lines: number, living: boolean) =>
    queryOptions({
      queryKey: ["run", id, "logs", attempt, lines],
      queryFn: ({ signal }) => get("/v1/runs/{run_id}/logs", { run_id: id }, { query: { attempt, lines }, signal }),
      refetchInterval: living ? every(3) : false,
    }),
  lineage: (id: string) =>
    queryOptions({
      queryKey: ["run", id, "lineage"],
      queryFn: ({ signal }) => get("/v1/runs/{run_id}/lineage", { run_id: id }, { signal }),
      refetchInterval: every(30),
    }),
};

const EVENTS_AT_ONCE = 500;
const PAGES_READ_AGAIN = 4;
const MANY_EVENTS = 10_000;

export const fire = {
  /** A large fire in numbers. They are read again while events wait, of many events less often: each answer reads the
   * rows of all. */
  state: (id: string) =>
    queryOptions({
      queryKey: ["fire", id],
      queryFn: ({ signal }) => get("/v1/fires/{fire_id}", { fire_id: id }, { signal }),
      staleTime: 10 * SECOND,
      refetchInterval: (query) => {
        const { data } = query.state;
        return goesOn(data) && every((data?.events ?? 0) > MANY_EVENTS ? 60 : 10)(query);
      },
    }),
  /** Its events by number, page after page. While events wait (`living`), they are read again, unless they are many. */
  events: (id: string, state: StateOfEvent | undefined, living: boolean) =>
    infiniteQueryOptions({
      queryKey: ["fire", id, "events", state ?? ""],
      queryFn: ({ pageParam, signal }) =>
        get(
          "/v1/fires/{fire_id}/events",
          { fire_id: id },
          { query: { state, limit: EVENTS_AT_ONCE, cursor: pageParam }, signal },
        ),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      refetchInterval: (query) =>
        living && (query.state.data?.pages.length ?? 0) <= PAGES_READ_AGAIN && every(10)(query),
    }),
};

export const namespace = {
  /** The periods of schedules by day, page after page: those whose full names contain a part. */
  periods: (ns: string, part: string, from: string, to: string, zone: string) =>
    infiniteQueryOptions({
      queryKey: [ns, "periods", part, from, to, zone],
      queryFn: ({ pageParam, signal }) =>
        get(
          "/v1/namespaces/{ns}/periods",
          { ns },
          { query: { q: part || undefined, from, to, zone, cursor: pageParam }, signal },
        ),
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.next_cursor,
      placeholderData: keepPreviousData,
      staleTime: 60 * SECOND,
    }),
  /** What waits and runs. A first answer from few rows is shown while all are read. */
  now: (ns: string) => {
    const queryKey = [ns, "now"];
    return queryOptions({
      queryKey,
      queryFn: async ({ signal }): Promise<Now> => {
        if (client.getQueryData<Now>(queryKey) === undefined) {
          const some = await get("/v1/namespaces/{ns}/now", { ns }, { query: { rows: 100 }, signal });
          if (!some.at_least) return some;
          showPart(queryKey, some);
        }
        return get("/v1/namespaces/{ns}/now", { ns }, { signal });
      },
      refetchInterval: every(5),
    });
  },
  fires: (ns: string, asked: { from?: string; to?: string; limit?: number }) =>
    queryOptions({
      queryKey: [ns, "fires", asked],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/fires", { ns }, { query: asked, signal }),
      placeholderData: keepPreviousData,
      refetchInterval: every(30),
    }),
  /** The newest 500 runs that fit; the first page is shown while the others come. */
  runs: (ns: string, filter: WorkFilter = {}) => {
    const query = given(filter);
    const queryKey = [ns, "runs", query];
    const searches = Object.keys(query).some((key) => key !== "state" && key !== "day");
    return queryOptions({
      queryKey,
      queryFn: ({ signal }) =>
        inParts<Run>(
          queryKey,
          fill("/v1/namespaces/{ns}/runs", { ns }),
          query,
          { first: 100, most: 500, requests: searches ? SEARCHES : 2 },
          signal,
        ),
      placeholderData: keepPreviousData,
      // A search reads many runs to find a few.
      refetchInterval: every(searches ? 30 : 10),
    });
  },
  /** The waiting jobs that fit; the first page is shown while the others come. */
  jobs: (ns: string, filter: WorkFilter = {}) => {
    const filters = given(filter);
    const queryKey = [ns, "jobs", filters];
    return queryOptions({
      queryKey,
      structuralSharing: false,
      queryFn: async ({ signal }): Promise<JobList> => {
        const path = fill("/v1/namespaces/{ns}/jobs", { ns });
        const rows: Job[] = [];
        let cursor: string | null = null;
        do {
          const query = { limit: rows.length === 0 ? 100 : 500, cursor, ...filters };
          const page: Part<Job> = await send("GET", path, { query, signal });
          rows.push(...page.items);
          cursor = page.next_cursor;
          const shown = client.getQueryData<JobList>(queryKey);
          if (cursor && !shown?.whole) showPart(queryKey, { rows: rows.slice(), whole: false });
        } while (cursor && rows.length < MOST_JOBS);
        return { rows, whole: true };
      },
      refetchInterval: every(5),
    });
  },
  outcomes: (ns: string) =>
    queryOptions({
      queryKey: [ns, "outcomes"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/outcomes", { ns }, { signal }),
      refetchInterval: every(5),
    }),
  /** All limits: those of pools and policies and those that schedules define, used or not. At most `MOST_LIMITS`
   * requests are made, each of which reads 500 schedules; `whole` if that was enough. */
  allLimits: (ns: string) =>
    queryOptions({
      queryKey: [ns, "limits", "all"],
      queryFn: async ({ signal }): Promise<{ items: Limit[]; whole: boolean }> => {
        const path = fill("/v1/namespaces/{ns}/limits", { ns });
        const found = new Map<string, Limit>();
        let cursor: string | null = null;
        let requests = 0;
        do {
          const query = { all: true, limit: 500, cursor };
          const page: Part<Limit> = await send("GET", path, { query, signal });
          for (const limit of page.items) found.set(limit.name, limit);
          cursor = page.next_cursor;
          requests += 1;
        } while (cursor !== null && requests < MOST_LIMITS);
        const items = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
        return { items, whole: cursor === null };
      },
      placeholderData: keepPreviousData,
      refetchInterval: every(15),
    }),
  quotas: (ns: string) =>
    queryOptions({
      queryKey: [ns, "quotas"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/quotas", { ns }, { signal }),
      refetchInterval: every(60),
      retry: false,
    }),
  limits: (ns: string, name?: string) =>
    queryOptions({
      queryKey: [ns, "limits", name ?? ""],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/limits", { ns }, { query: { name }, signal }),
      placeholderData: name ? undefined : keepPreviousData,
      refetchInterval: every(5),
    }),
  pool: (name: string) =>
    queryOptions({
      queryKey: ["pool", name],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/pools/{name}", ofTwo(name), { signal }),
      refetchInterval: every(5),
      retry: false,
    }),
  /** Dead letters, at most 200; the first page is shown while the others come. */
  letters: (ns: string, schedule?: string) => {
    const queryKey = [ns, "dead-letters", schedule ?? ""];
    return queryOptions({
      queryKey,
      queryFn: ({ signal }) =>
        inParts<DeadLetter>(
          queryKey,
          fill("/v1/namespaces/{ns}/dead-letters", { ns }),
          { schedule },
          { first: 50, most: 200 },
          signal,
        ),
      refetchInterval: every(30),
    });
  },
  /** How many dead letters there are, up to a bound. */
  lettersCounted: (ns: string) =>
    queryOptions({
      queryKey: [ns, "dead-letters", "count"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/dead-letters", { ns }, { query: { limit: 50 }, signal }),
      refetchInterval: every(30),
    }),
  report: (ns: string, day?: string) =>
    queryOptions({
      queryKey: [ns, "report", day ?? ""],
      queryFn: async ({ signal }) => {
        const answer = await get("/v1/namespaces/{ns}/reports", { ns }, { query: { limit: 500, day }, signal });
        return { day: answer.day, items: answer.items as unknown as ReportRow[], next_cursor: answer.next_cursor };
      },
      retry: false,
      staleTime: 60 * SECOND,
    }),
  timeline: (
    ns: string,
    query: { from: string; to: string; limit?: number; ids?: boolean; schedule?: string; workflow?: string },
  ) =>
    queryOptions({
      queryKey: [ns, "timeline", query],
      queryFn: ({ signal }) =>
        get("/v1/namespaces/{ns}/timeline", { ns }, { query: { limit: 5000, ...query }, signal }),
      placeholderData: keepPreviousData,
    }),
  graph: (ns: string, query: { around?: string; up?: string; down?: string }) =>
    queryOptions({
      queryKey: [ns, "graph", query],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/graph", { ns }, { query, signal }),
      refetchInterval: every(30),
    }),
  apps: (ns: string) =>
    queryOptions({
      queryKey: [ns, "apps"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/apps", { ns }, { query: { limit: 500 }, signal }),
      staleTime: 60 * SECOND,
    }),
  /** The workflows of all apps. An app has few workflows, and a namespace few apps. */
  workflows: (ns: string) =>
    queryOptions({
      queryKey: [ns, "workflows"],
      queryFn: ({ signal }) => ofApps<StoredWorkflow>(ns, "workflows", signal),
      staleTime: 60 * SECOND,
    }),
  /** The DAGs of all apps. */
  dags: (ns: string) =>
    queryOptions({
      queryKey: [ns, "dags"],
      queryFn: ({ signal }) => ofApps<StoredDag>(ns, "dags", signal),
      refetchInterval: every(30),
    }),
  /** The messages of all apps that have something left to send. */
  messages: (ns: string) =>
    queryOptions({
      queryKey: [ns, "messages"],
      queryFn: ({ signal }) => ofApps<StoredMessage>(ns, "messages", signal),
      refetchInterval: every(30),
    }),
  datasets: (ns: string) =>
    queryOptions({
      queryKey: [ns, "datasets"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/datasets", { ns }, { query: { limit: 500 }, signal }),
      refetchInterval: every(30),
    }),
  reprocesses: (ns: string) =>
    queryOptions({
      queryKey: [ns, "reprocess"],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/reprocess", { ns }, { query: { limit: 100 }, signal }),
      refetchInterval: every(5),
    }),
  reprocess: (ns: string, id: string) =>
    queryOptions({
      queryKey: [ns, "reprocess", id],
      queryFn: ({ signal }) =>
        get("/v1/namespaces/{ns}/reprocess/{reprocess_id}", { ns, reprocess_id: id }, { signal }),
      refetchInterval: every(5),
    }),
};

export const dataset = {
  definition: (name: string) =>
    queryOptions({
      queryKey: ["dataset", name],
      queryFn: ({ signal }) => get("/v1/namespaces/{ns}/datasets/{name}", ofTwo(name), { signal }),
    }),
  partitions: (name: string, query: { from?: string; to?: string } = {}) =>
    queryOptions({
      queryKey: ["dataset", name, "partitions", query],
      queryFn: ({ signal }) =>
        get("/v1/namespaces/{ns}/datasets/{name}/partitions", ofTwo(name), {
          // Without a range: half a year of days.
          query: { limit: query.from ? 500 : 200, order: "desc", ...query },
          signal,
        }),
      refetchInterval: every(30),
    }),
  partition: (name: string, values: string) =>
    queryOptions({
      queryKey: ["dataset", name, "partition", values],
      queryFn: ({ signal }) =>
        get("/v1/namespaces/{ns}/datasets/{name}/partition", ofTwo(name), { query: { values }, signal }),
    }),
};

const MESSAGE = "/v1/namespaces/{ns}/apps/{app}/messages/{name}";

export const message = {
  definition: (name: string) =>
    queryOptions({
      queryKey: ["message", name],
      queryFn: ({ signal }) => get(MESSAGE, parts(name), { signal }),
      refetchInterval: every(5),
      retry: false,
    }),
  why: (name: string) =>
    queryOptions({
      queryKey: ["message", name, "why"],
      queryFn: ({ signal }) => get(`${MESSAGE}/why`, parts(name), { signal }),
      refetchInterval: every(5),
      retry: false,
    }),
  runs: (name: string) =>
    queryOptions({
      queryKey: ["message", name, "runs"],
      queryFn: ({ signal }) => get(`${MESSAGE}/runs`, parts(name), { query: { limit: 100 }, signal }),
      refetchInterval: every(5),
      retry: false,
    }),
};

const DAG = "/v1/namespaces/{ns}/apps/{app}/dags/{name}";

export const dag = {
  definition: (name: string) =>
    queryOptions({
      queryKey: ["dag", name],
      queryFn: ({ signal }) => get(DAG, parts(name), { signal }),
      refetchInterval: every(30),
    }),
  why: (name: string) =>
    queryOptions({
      queryKey: ["dag", name, "why"],
      queryFn: ({ signal }) => get(`${DAG}/why`, parts(name), { signal }),
      refetchInterval: every(10),
    }),
  runs: (name: string) =>
    queryOptions({
      queryKey: ["dag", name, "runs"],
      queryFn: ({ signal }) => get(`${DAG}/runs`, parts(name), { query: { limit: 30 }, signal }),
      refetchInterval: every(5),
    }),
  run: (name: string, id: string) =>
    queryOptions({
      queryKey: ["dag", name, "run", id],
      queryFn: ({ signal }) => get(`${DAG}/runs/{run_id}`, { ...parts(name), run_id: id }, { signal }),
      refetchInterval: every(3),
    }),
  elements: (name: string, id: string, node: string) =>
    queryOptions({
      queryKey: ["dag", name, "run", id, node],
      queryFn: ({ signal }) =>
        get(
          `${DAG}/runs/{run_id}/nodes/{node}/elements`,
          { ...parts(name), run_id: id, node },
          { query: { limit: 100 }, signal },
        ),
      refetchInterval: every(5),
    }),
};
