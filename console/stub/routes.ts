// The answers of the stand-in, in the shapes of the API.

import { actsOf, BACKFILL, isOfPeriods, REPROCESS } from "./acts.ts";
import { glance, idOf, iso, JOBS, job, NODE, NOW, NS, RUNS, run, STOP, schedules, timeline } from "./data.ts";
import * as fires from "./fires.ts";

type Answer = [number, unknown];
type Handler = (params: Record<string, string>, query: URLSearchParams, body: Record<string, unknown>) => unknown;

const MINUTE = 60_000;
const page = (items: unknown[], next: string | null = null) => ({ items, next_cursor: next });
/** A page of a list: as many as the limit from the cursor on. */
function paged(items: unknown[], query: URLSearchParams) {
  const [from, many] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 50)];
  return page(items.slice(from, from + many), from + many < items.length ? String(from + many) : null);
}
const missing = (what: string): Answer => [
  404,
  { error: { code: "not_found", message: `no ${what}`, field: null, hint: "look at the list" } },
];
class NoPeriods extends Error {}
const hasNoPeriods = (name: string) => Number(name.slice(-2)) === 3;
/** The periods of a schedule that begin in a span: hours of each third schedule, else days. */
function periodsOf(name: string, from: number, to: number) {
  const day = 1440 * MINUTE;
  const each = name.endsWith("2") ? 60 * MINUTE : day;
  const begins = Math.ceil(from / each) * each;
  return Array.from({ length: Math.max(0, Math.floor((Math.min(to, NOW) - begins) / each)) }, (_, index) => {
    const at = begins + index * each;
    const row = Number(name.slice(-2)) || 0;
    const seed = (Math.floor(at / day) * 7 + row * 13 + (each < day ? (at / each) % 24 : 0)) % 29;
    const late = NOW - at < 2 * day;
    const ended = seed === 3 ? "failed" : seed === 11 ? "missing" : "succeeded";
    return { at, each, row, seed, state: late ? (["running", "waiting"] as const)[row % 2] : ended };
  });
}
const WORST = ["failed", "missing", "running", "waiting", "succeeded"];
/** The row of a schedule in the matrix of periods. */
function periodsByDay(full: string, first: number, last: number) {
  const name = full.slice(full.lastIndexOf(".") + 1);
  const day = 1440 * MINUTE;
  const mixed: Record<string, Record<string, number>> = {};
  let days = "";
  for (let at = first; at <= last; at += day) {
    const states = hasNoPeriods(name) ? [] : periodsOf(name, at, at + day).map((each) => each.state ?? "");
    const kinds = WORST.filter((state) => states.includes(state));
    days += kinds[0]?.[0] ?? ".";
    if (kinds.length > 1)
      mixed[iso(at).slice(0, 10)] = Object.fromEntries(
        kinds.map((state) => [state, states.filter((each) => each === state).length]),
      );
  }
  const why = hasNoPeriods(name) ? NO_PERIODS_WHY : null;
  return { schedule: full, days, mixed, why, complete_from: iso(first - day) };
}
const NO_PERIODS_WHY = "expected a schedule with a time in its trigger, or with by that names the period of a dataset";
const NO_PERIODS: Answer = [
  400,
  {
    error: {
      code: "invalid",
      message: NO_PERIODS_WHY,
      field: "name",
      hint: "give the dataset its period, and write all keys of the period into by",
    },
  },
];
const byName = (params: Record<string, string>) =>
  [...schedules, OF_FIRE].find((row) => row.name === `${params.ns}.${params.app}.${params.name}`);

const OF_FIRE = {
  ...(schedules[0] as (typeof schedules)[number]),
  name: fires.SCHEDULE,
  state: "enabled",
  enabled: true,
};

class Missing extends Error {}

function need<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new Missing(what);
  return found;
}

const runOf = (id: string) =>
  need(
    fires.runOf(id) ?? Array.from({ length: 2000 }, (_, number) => run(number)).find((made) => made.run_id === id),
    `run '${id}'`,
  );
const jobOf = (id: string) =>
  need(
    fires.jobOf(id) ?? Array.from({ length: JOBS }, (_, number) => job(number)).find((made) => made.job_id === id),
    `job '${id}'`,
  );
const runsOf = (name: string) =>
  name === fires.SCHEDULE
    ? fires.runs()
    : Array.from({ length: 4000 }, (_, number) => run(number)).filter((made) => made.schedule === name);

const REFS = [
  { text: "demo.flights.clean", kind: "workflow", name: "demo.flights.clean" },
  { text: "demo.weather", kind: "dataset", name: "demo.weather" },
];

const leaf = (type: string, text: string, met: boolean) => ({
  type,
  text,
  need: 1,
  have: met ? 1 : 0,
  met,
  arrived: met ? [`${text} at ${iso(NOW - 40 * MINUTE)}`] : [],
  missing: met ? [] : [text],
  lacks: [],
  changes_at: null,
  leaf: "0",
  children: [],
});

function whyJob(made: ReturnType<typeof jobOf>) {
  return {
    job_id: made.job_id,
    schedule: made.schedule,
    state: made.state,
    decision: "wait",
    why: made.reason,
    code: made.code,
    queue: made.queue,
    fired_by: null,
    arrived: ["demo.flights.clean reached COMPLETED"],
    missing: ["1 partition of demo.weather"],
    since: made.created_at,
    correlation: made.correlation,
    wakes: `the next event that its trigger waits for, or its timeout at ${iso(NOW + 23 * 60 * MINUTE)}`,
    tree: {
      ...leaf("all", "demo.flights.clean reaching COMPLETED and 1 partition of demo.weather", false),
      need: 2,
      have: 1,
      children: [
        leaf("program_status", "demo.flights.clean reaching COMPLETED", true),
        leaf("partition", "1 partition of demo.weather", false),
      ],
    },
    constraints: [
      {
        type: "concurrency",
        met: false,
        why: "at most 2 runs of the workflow at a time: 2 of 2 in use",
        until: null,
        used: 2,
        max: 2,
        held_by: [run(0).run_id, run(1).run_id],
      },
      {
        type: "time_window",
        met: true,
        why: "between 22:00 and 06:00 Europe/Paris",
        until: null,
        used: null,
        max: null,
        held_by: null,
      },
    ],
    limits: [
      {
        name: "pool:demo.small",
        text: "pool demo.small",
        rule: "at most 8 slots at a time",
        used: 7,
        max: 8,
        held_by: null,
        waiting: 3,
        waits_here: true,
      },
    ],
    count: 1,
    refs: REFS,
  };
}

function definition(params: Record<string, string>) {
  const row = need(byName(params), `schedule named '${params.ns}.${params.app}.${params.name}'`);
  return {
    ...row,
    kind: "schedule",
    skips: [FIRES[1]],
    description: "Cleans the day's rows. <b>Text is text.</b>",
    owner: "ada",
    trigger: {
      type: "all",
      triggers: [
        { type: "program_status", workflow: "demo.flights.clean", statuses: ["COMPLETED"], count: 1 },
        { type: "partition", dataset: "demo.weather", count: 1 },
      ],
    },
    by: ["year", "month", "day"],
    constraints: [{ type: "concurrency", max: 2 }],
    properties: { threshold: "0.7" },
    timeout: { after: "1d", then: "abort" },
    zone: "Europe/Paris",
    fires_per_day: 1,
    ...(isOfPeriods(params.name) ? OF_PERIODS : {}),
  };
}

const OF_PERIODS = {
  trigger: { type: "partition", dataset: `${NS}.hours`, of: "period" },
  by: [],
  per: { each: "day", zone: null, week_starts: "mon" },
  fires_per_day: 0,
};

const FIRES = [1, 2, 3, 4, 5].map((hour) => iso(NOW + hour * 60 * MINUTE));
const WINDOW = { count: 5, oldest: iso(NOW - 180 * MINUTE) };

/** The jobs that wait for an approval, by schedule: three of the first one, and one of any other. */
function askedOf(jobs: ReturnType<typeof job>[]) {
  return jobs.map((made, number) => {
    const own = number === 0 ? threeOf(made) : [made];
    return { schedule: made.schedule, count: own.length, late: own.length - 1, oldest: made.created_at, jobs: own };
  });
}

const threeOf = (made: ReturnType<typeof job>) =>
  ["a", "b", "c"].map((end, day) => ({
    ...made,
    job_id: `${made.job_id.slice(0, -1)}${end}`,
    correlation: { year: "2013", month: "1", day: String(day + 1) },
  }));

const isAsked = (made: ReturnType<typeof job>) => made.waits_for[0]?.kind === "approval";

/** The waiting jobs of a schedule. */
function jobsOf(name: string) {
  if (fires.SCHEDULE.endsWith(`.${name}`)) return fires.jobs;
  const [first] = Array.from({ length: 60 }, (_, number) => job(number)).filter(isAsked);
  return first?.schedule.endsWith(`.${name}`) ? threeOf(first) : [0, 1, 2, 3].map(job);
}

function now() {
  const jobs = Array.from({ length: 60 }, (_, number) => job(number));
  const approvals = jobs.filter(isAsked);
  const waiting = (kind: string) => jobs.filter((made) => made.waits_for[0]?.kind === kind).slice(0, 5);
  return {
    at: iso(Date.now()),
    at_least: JOBS > 2000,
    waiting: {
      count: Math.min(JOBS, 2000),
      at_least: JOBS > 2000,
      groups_left_out: 0,
      groups: [
        {
          kind: "limit",
          name: "workflow:demo.flights.clean",
          of: "workflow demo.flights.clean",
          why: "waits for a slot of workflow demo.flights.clean: 2 of 2 in use",
          count: Math.max(9, Math.min(JOBS, 2000) - WINDOW.count - 4 - approvals.length),
          oldest: job(0).created_at,
          changes_at: null,
          jobs: waiting("limit"),
        },
        {
          kind: "window",
          name: "time_window",
          of: "between 22:00 and 06:00 in Europe/Paris",
          why: "waits for its window",
          ...WINDOW,
          changes_at: iso(NOW + 480 * MINUTE),
          jobs: waiting("window"),
        },
        {
          kind: "data",
          name: "demo.flights.join",
          of: "schedule demo.flights.join",
          why: "waits for 1 partition of demo.weather",
          count: 4,
          oldest: iso(NOW - 55 * MINUTE),
          changes_at: null,
          jobs: waiting("data"),
        },
        {
          kind: "approval",
          name: "approval",
          of: "approved by a lead",
          why: "approved by a lead, else wait: waits for approval",
          count: approvals.length,
          oldest: iso(NOW - 200 * MINUTE),
          changes_at: null,
          jobs: approvals.slice(0, 5),
        },
      ],
    },
    approvals: { count: approvals.length + 2, at_least: false, schedules: askedOf(approvals) },
    running: { count: 12, at_least: false, runs: Array.from({ length: 12 }, (_, number) => run(number)) },
    overdue: {
      count: 3,
      at_least: false,
      going_on: 2,
      items: [
        {
          count: 1,
          goes_on_at: null,
          id: run(3).run_id,
          kind: "run",
          schedule: run(3).schedule,
          why: `has not ended by ${iso(NOW - 10 * MINUTE)}`,
          by: iso(NOW - 10 * MINUTE),
        },
        {
          count: 2,
          goes_on_at: iso(NOW + 480 * MINUTE),
          id: job(1).job_id,
          kind: "job",
          schedule: job(1).schedule,
          why: `not started by ${iso(NOW - 5 * MINUTE)}: waits for its window`,
          by: iso(NOW - 5 * MINUTE),
        },
      ],
    },
    stopped: [STOP],
    paused: {
      count: 1,
      at_least: false,
      schedules: [
        {
          schedule: need(schedules[0], "schedule").name,
          state: "hold",
          since: iso(NOW - 90 * MINUTE),
          reason: "3 runs failed in a row",
          by: "sluice",
        },
      ],
    },
  };
}

const limit = (name: string, full: boolean) => ({
  name,
  kind: name.split(":")[0],
  of: name.replace(":", " "),
  rule: name.startsWith("policy") ? "at most 5 starts in any 10s" : "at most 2 runs at a time",
  in_use: name.startsWith("policy") ? null : 2,
  maximum: name.startsWith("policy") ? null : 2,
  unit: name.startsWith("policy") ? "starts" : "runs",
  waiting: 3_000,
  next_at: name.startsWith("policy") ? iso(NOW) : null,
  holders: full
    ? [0, 1].map((number) => ({
        run_id: run(number).run_id,
        attempt: 1,
        schedule: run(number).schedule,
        state: "RUNNING",
        since: run(number).claimed_at,
      }))
    : null,
  waiters: full
    ? Array.from({ length: 100 }, (_, index) => ({
        position: index + 1,
        job_id: job(index).job_id,
        schedule: job(index).schedule,
        attempt: null,
        count: 1,
      }))
    : null,
  at_least: full,
});

const DATASET = {
  fresh: "26h",
  newest: {
    partition: { year: "2013", month: "12", day: "31" },
    at: iso(NOW - 90 * MINUTE - 26 * 60 * MINUTE),
  },
  freshness: {
    late: true,
    fresh_until: iso(NOW - 90 * MINUTE),
    newest: { year: "2013", month: "12", day: "31" },
    newest_at: iso(NOW - 90 * MINUTE - 26 * 60 * MINUTE),
  },
  name: "demo.weather",
  kind: "dataset",
  description: "",
  bucket: "lake",
  prefix: "raw/weather/",
  format: "files",
  keys: ["year", "month", "day"],
  version: 1,
  updated_at: iso(NOW),
  updated_by: "ada",
};

const dayOf = (values: string): [number, number, number] => {
  const [year = 2013, month = 1, day = 1] = values.split("/").map(Number);
  return [year, month - 1, day];
};

/** The record of a partition that came after the start of its week. */
const LATE = {
  id: "late-1",
  kind: "DROPPED",
  schedule: "demo.flights.join",
  reason: "event partition-1 of partition:demo.weather is late: the job of 2013-W52 has started as demo.flights.join.1",
  code: "event_not_counted",
  at: iso(NOW),
  count: 1,
};

/** The partitions of a dataset by days, the newest first; one in thirteen days is missing, and one came late. */
const PARTITIONS = Array.from({ length: 5_400 }, (_, index) => index)
  .filter((index) => index % 13 !== 5)
  .map((index) => {
    const at = Date.UTC(2013, 11, 31) - index * 1440 * MINUTE;
    const day = new Date(at);
    const partition = {
      year: String(day.getUTCFullYear()),
      month: String(day.getUTCMonth() + 1),
      day: String(day.getUTCDate()),
    };
    const put = iso(NOW - index * MINUTE);
    return {
      at,
      item: {
        dataset: "demo.weather",
        partition,
        path: "s3://lake/raw/weather/",
        ready_at: put,
        put_at: put,
        object: null,
        ...(index === 2 ? { late: [{ schedule: LATE.schedule, reason: LATE.reason, at: LATE.at }] } : {}),
      },
    };
  });

const MESSAGE = {
  kind: "message",
  version: 1,
  updated_at: iso(NOW),
  updated_by: "ada",
  schedule: "@every 10s",
  due_time: null,
  repeats: 4,
  ttl: null,
  zone: "UTC",
  next_fire: iso(NOW + 60 * MINUTE),
  target: { type: "sqs", queue_url: "https://sqs.eu-west-1.amazonaws.com/123456789012/beats" },
  data: { note: "<b>text</b>, גם מימין" },
};

const EDGES = [
  { from: "prepare", to: "ewr" },
  { from: "prepare", to: "jfk" },
  { from: "ewr", to: "evaluate" },
  { from: "jfk", to: "evaluate", within: "6h" },
  { from: "evaluate", to: "publish" },
];
const NODES = ["prepare", "ewr", "jfk", "evaluate", "publish"];
const DAG = {
  name: `${NS}.flights.nightly`,
  kind: "dag",
  version: 2,
  updated_at: iso(NOW),
  updated_by: "ada",
  description: "Trains a model for each airport.",
  trigger: { type: "partition", dataset: `${NS}.weather` },
  triggered_by: `1 partition of ${NS}.weather`,
  by: ["year", "month", "day"],
  zone: "Europe/Paris",
  concurrency: { max: 1, on_unmet: "wait" },
  run_timeout: "2d",
  deadline: { end_within: "4h" },
  nodes: Object.fromEntries(NODES.map((node) => [node, { workflow: `${NS}.flights.${node}`, priority: 5 }])),
  edges: EDGES,
  state: "enabled",
  enabled: true,
  schedules: NODES.map((node) => `${NS}.flights.nightly~1f0c22ab~${node}`),
};

const WHY: Record<string, string> = {
  jfk: "exit code 3: the file jfk.csv is empty",
  evaluate: "needs jfk COMPLETED, which is FAILED",
  publish: "needs evaluate COMPLETED, which is BLOCKED",
};

/** One that a person has paused. */
const WEEKLY = {
  ...DAG,
  name: `${NS}.flights.weekly`,
  description: "Compares the models of a week.",
  concurrency: null,
  run_timeout: null,
  deadline: null,
  state: "hold",
  enabled: false,
  schedules: NODES.map((node) => `${NS}.flights.weekly~1f0c22ab~${node}`),
};

const BLOCKED = ["SUCCEEDED", "SUCCEEDED", "FAILED", "BLOCKED", "BLOCKED"];
const UNDER_WAY = ["SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "RUNNING", "PENDING"];

/** A run of the DAG: of the newest one a node has failed, which holds those after it; the one before it is late and
 * goes on. A list has less of each. */
function dagRun(number: number, inFull = false) {
  const failed = number === 0;
  const late = number === 1;
  const states = failed ? BLOCKED : late ? UNDER_WAY : NODES.map(() => "SUCCEEDED");
  const begins = iso(NOW - (number * 24 + 1) * 60 * MINUTE);
  return {
    run_id: `${NS}.flights.nightly~.mf3k0p2q.${idOf(number)}`,
    dag: DAG.name,
    graph: "nightly~1f0c22ab",
    state: failed ? "FAILED" : late ? "RUNNING" : "SUCCEEDED",
    fired_by: `1 partition of ${NS}.weather`,
    partition: { year: "2013", month: "1", day: String(4 - number) },
    nominal_at: null,
    started_at: begins,
    ended_at: late ? null : iso(Date.parse(begins) + (9 + number) * MINUTE),
    end_by: iso(Date.parse(begins) + 240 * MINUTE),
    late,
    reruns: [],
    nodes: Object.fromEntries(
      NODES.map((node, index) => [
        node,
        {
          state: states[index],
          why: whyNode(failed ? node : "", states[index]),
          code: null,
          run_id: hasRun(states[index]) ? run(20 + index).run_id : null,
          started_at: hasRun(states[index]) ? iso(Date.parse(begins) + 2 * MINUTE) : null,
          ended_at: hasRun(states[index]) && states[index] !== "RUNNING" ? iso(Date.parse(begins) + 5 * MINUTE) : null,
          ...(node === "prepare" && { result: { mode: "full", airports: ["ewr", "jfk"] } }),
          ...(node === "jfk" && { elements: { count: 30, succeeded: failed ? 28 : 30, failed: failed ? 2 : 0 } }),
          ...(inFull && {
            attempt: hasRun(states[index]) ? 1 : null,
            round: 1,
            workflow: `${NS}.flights.${node}`,
            when: "all_succeeded",
          }),
        },
      ]),
    ),
    ...(inFull && { edges: EDGES.map((edge) => ({ on: ["COMPLETED"], within: null, ...edge })) }),
  };
}

const hasRun = (state: string | undefined) => state !== "BLOCKED" && state !== "PENDING";

function whyNode(node: string, state: string | undefined): string {
  if (state === "RUNNING") return "the run began";
  return state === "PENDING" ? "waits for evaluate" : (WHY[node] ?? "the run succeeded");
}

/** The start of a run that waits for the one before it: its job, and the DAG run that has not begun. */
const WAITS = `waits for room in the limit of the runs of ${DAG.name}: 1 of 1 in use`;
export const WAITING_START = {
  ...job(1),
  job_id: `${DAG.name}~.mf3k0p2q.${idOf(77)}`,
  schedule: `${DAG.name}~`,
  state: "PENDING_LAUNCH",
  reason: WAITS,
  code: null,
  created_at: iso(NOW - 12 * MINUTE),
  met_at: iso(NOW - 12 * MINUTE),
  correlation: { year: "2013", month: "1", day: "5" },
};
const WAITING_RUN = {
  run_id: WAITING_START.job_id,
  dag: DAG.name,
  graph: "nightly~1f0c22ab",
  state: "WAITING",
  fired_by: "",
  partition: WAITING_START.correlation,
  nominal_at: null,
  started_at: null,
  ended_at: null,
  end_by: null,
  late: false,
  why: WAITS,
  reruns: [],
  nodes: Object.fromEntries(
    NODES.map((node) => [
      node,
      {
        state: "PENDING",
        why: "the DAG run has not begun",
        code: null,
        run_id: null,
        started_at: null,
        ended_at: null,
        attempt: null,
        round: 1,
      },
    ]),
  ),
};

/** Whether a list of runs or jobs is filtered by more than a state and a day. */
const isFiltered = (query: URLSearchParams) =>
  ["app", "workflow", "target", "tag", "q", "late"].some((name) => query.has(name));

/** Whether work fits the filters that its schedule and its texts decide. */
function fitsWork(query: URLSearchParams, made: { schedule: string }, text: string): boolean {
  const of = schedules.find((row) => row.name === made.schedule);
  const [key = "", value] = (query.get("tag") ?? "").split("=");
  const tags: Record<string, string> = of?.tags ?? {};
  const words = `${made.schedule} ${text}`.toLowerCase();
  return (
    [null, made.schedule.split(".")[1]].includes(query.get("app")) &&
    [null, of?.workflow, of?.workflow.slice(NS.length + 1)].includes(query.get("workflow")) &&
    (!key || (key in tags && (value === undefined || tags[key] === value))) &&
    words.includes((query.get("q") ?? "").toLowerCase())
  );
}
/** The elements of the node jfk, those that failed first. */
const ELEMENTS = [
  3,
  17,
  ...Array.from({ length: 30 }, (_, index) => index).filter((index) => ![3, 17].includes(index)),
].map((index, place) => ({
  index,
  value: `s3://lake/raw/jfk/part-${index}.csv`,
  state: place < 2 ? "FAILED" : "SUCCEEDED",
  why: place < 2 ? WHY.jfk : "the run succeeded",
  run_id: run(100 + index).run_id,
  attempt: 1,
  started_at: iso(NOW - 58 * MINUTE),
  ended_at: iso(NOW - 55 * MINUTE),
}));

const S = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}";
const M = "/v1/namespaces/{ns}/apps/{app}/messages/{name}";
const D = "/v1/namespaces/{ns}/apps/{app}/dags/{name}";
const ROUTES: Record<string, Handler> = {
  "GET /console.json": () => ({
    api: "http://127.0.0.1:4566",
    namespace: NS,
    stage: "local",
    account: "000000000000",
    region: "us-east-1",
    version: "0.1.0",
    read_only: false,
  }),
  "GET /v1/whoami": () => ({
    arn: "arn:aws:iam::123456789012:user/ada",
    account: "123456789012",
    region: "eu-west-1",
    stage: "local",
    version: "0.1.0",
  }),
  "GET /v1/namespaces": () =>
    page([
      { name: NS, kind: "namespace", version: 1, description: "generated", updated_at: iso(NOW), updated_by: "ada" },
    ]),
  "GET /v1/namespaces/{ns}/schedules": ({ ns }, query) => {
    need(ns === NS ? ns : undefined, `namespace named '${ns}'`);
    const [from, many] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 500)];
    const part = query.get("q")?.toLowerCase() ?? "";
    const fitting = part ? schedules.filter((row) => row.name.includes(part)) : schedules;
    const last = from + many >= fitting.length;
    const nodes = last && NODE.name.includes(part) ? [NODE] : [];
    return page([...fitting.slice(from, from + many), ...nodes], last ? null : String(from + many));
  },
  "GET /v1/namespaces/{ns}/periods": (_, query) => {
    const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""];
    const part = (query.get("q") ?? "").toLowerCase();
    const rows = schedules.filter((row) => row.dag === null && row.name.includes(part)).slice(0, 500);
    const { items, next_cursor } = paged(
      rows,
      new URLSearchParams({ limit: "100", cursor: query.get("cursor") ?? "0" }),
    );
    const shown = (items as typeof rows).map((row) => periodsByDay(row.name, Date.parse(from), Date.parse(to)));
    return { items: shown, next_cursor, from, to };
  },
  "POST /v1/namespaces/{ns}/glance": (_, __, body) => ({ items: (body.schedules as string[]).map(glance), gone: [] }),
  "GET /v1/namespaces/{ns}/now": now,
  "GET /v1/namespaces/{ns}/fires": (_, query) => {
    const from = query.get("from") ? Date.parse(query.get("from") ?? "") : Date.now();
    const items = schedules
      .filter((_row, index) => index % 3 === 0)
      .slice(0, 300)
      .map((row, index) => ({
        schedule: row.name,
        nominal_at: iso(from + index * 5 * MINUTE),
        due_at: iso(from + index * 5 * MINUTE),
        skipped: index % 17 === 3,
        state: "enabled",
      }));
    const to = iso(from + 1440 * MINUTE);
    return { from: iso(from), to, complete_to: to, at_least: false, items };
  },
  "GET /v1/namespaces/{ns}/jobs": (_, query) => {
    const [from, many] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 50)];
    if (isFiltered(query)) {
      const every = Array.from({ length: JOBS }, (__, number) => job(number));
      return paged(
        every.filter((made) => fitsWork(query, made, made.reason)),
        query,
      );
    }
    const all = fires.jobs.length + JOBS;
    const items = Array.from({ length: Math.min(many, Math.max(0, all - from)) }, (__, index) => {
      const number = from + index;
      return fires.jobs[number - JOBS] ?? job(number);
    });
    return page(items, from + many < all ? String(from + many) : null);
  },
  "GET /v1/namespaces/{ns}/runs": (_, query) =>
    paged(
      [
        run(0),
        ...fires.runs(),
        ...Array.from({ length: Math.min(5000, RUNS) - 1 }, (__, number) => run(number + 1)),
      ].filter(
        (made) =>
          (!query.get("state") || made.state === query.get("state")) &&
          (!isFiltered(query) ||
            (fitsWork(query, made, `${made.fired_by} ${made.reason}`) &&
              [null, made.target.type].includes(query.get("target")) &&
              (query.get("late") !== "true" || (made.late_by_ms ?? 0) >= 1000))),
      ),
      query,
    ),
  "GET /v1/namespaces/{ns}/outcomes": () => {
    const newest = [...fires.runs(), ...Array.from({ length: Math.min(500, RUNS) }, (_, number) => run(number))];
    const states: Record<string, number> = {};
    for (const made of newest) states[made.state] = (states[made.state] ?? 0) + made.count;
    const failed = newest.filter((made) => made.state === "FAILED").slice(0, 8);
    return {
      runs: newest.reduce((sum, made) => sum + made.count, 0),
      more: RUNS > 500,
      since: newest.at(-1)?.claimed_at ?? null,
      states,
      failed,
    };
  },
  "GET /v1/namespaces/{ns}/limits": (_, query) =>
    page(
      query.get("name")
        ? [limit(query.get("name") ?? "", true)]
        : [
            "pool:demo.small",
            "pool:demo.cluster",
            "policy:demo.calm",
            "workflow:demo.flights.clean",
            "dag:demo.flights.nightly",
            "group:demo.heavy",
          ].map((name) => limit(name, false)),
    ),
  "GET /v1/namespaces/{ns}/quotas": () => ({
    schedules: null,
    fires_per_second: 50,
    documents: 100_000,
    requests_per_second: 100,
    waiting_jobs: 100_000,
    name: NS,
    kind: "quotas",
    version: 1,
    effective: {
      schedules: null,
      fires_per_second: 50,
      documents: 100_000,
      requests_per_second: 100,
      waiting_jobs: 100_000,
    },
    used: { schedules: 10_000, fires_per_second: 3, documents: 10_040, waiting_jobs: JOBS },
  }),
  "GET /v1/namespaces/{ns}/apps/{app}/messages": () => page([{ ...MESSAGE, name: `${NS}.flights.beat` }]),
  "GET /v1/namespaces/{ns}/pools/{name}": ({ name }) => ({
    name: need(name === "gone" ? undefined : `${NS}.${name}`, `pool named '${NS}.${name}'`),
    kind: "pool",
    version: 1,
    updated_at: iso(NOW),
    updated_by: "ada",
    size: 8,
    unit: "slots",
    shares: { "flights.clean": { reserved: 2 } },
    in_use: 7,
    waiting: 3,
    parts: [
      { of: "everybody", units: 6, in_use: 5, waiting: 3, queue: [] },
      { of: `${NS}.flights.clean`, units: 2, in_use: 2, waiting: 0, queue: [] },
    ],
  }),
  "GET /v1/namespaces/{ns}/timeline": (_, query) => {
    const to = query.get("to") ? Date.parse(query.get("to") ?? "") : NOW;
    const from = query.get("from") ? Date.parse(query.get("from") ?? "") : to - 60 * MINUTE;
    return timeline(from, to, Number(query.get("limit") ?? 2000), query.get("ids") === "true");
  },
  "GET /v1/namespaces/{ns}/graph": () => {
    const nodes = Array.from({ length: 200 }, (_, index) => {
      const kind = ["schedule", "workflow", "dataset"][index % 3] as string;
      return {
        id: `${kind}:demo.flights.n${index}`,
        kind,
        name: `demo.flights.n${index}`,
        depth: null,
        state: kind === "schedule" ? "enabled" : null,
        dag: null,
      };
    });
    const edges = nodes.slice(1).map((node, index) => ({
      from: need(nodes[Math.floor(index / 2)], "node").id,
      to: node.id,
      kind: "counts",
      text: "COMPLETED",
    }));
    return { around: null, nodes, edges, at_least: true };
  },
  "GET /v1/namespaces/{ns}/apps": () =>
    page([{ name: "demo.flights", kind: "app", version: 1, updated_at: iso(NOW), updated_by: "ada" }]),
  "GET /v1/namespaces/{ns}/apps/{app}/workflows": () =>
    page(
      ["clean", "ingest", "join"].map((word) => ({
        name: `${NS}.flights.${word}`,
        kind: "workflow",
        version: 1,
        updated_at: iso(NOW),
        updated_by: "ada",
        target: { type: "emr_serverless", entry_point: `s3://code/${word}.py` },
        pool: word === "join" ? null : "small",
      })),
    ),
  "GET /v1/namespaces/{ns}/datasets": () => page([DATASET]),
  "GET /v1/namespaces/{ns}/datasets/{name}": ({ name }) =>
    need(name === "weather" ? DATASET : undefined, `dataset named '${NS}.${name}'`),
  "GET /v1/namespaces/{ns}/datasets/{name}/partitions": (_, query) => {
    const day = (end: string) => (query.get(end) ? Date.UTC(...dayOf(query.get(end) ?? "")) : null);
    const [first, last] = [day("from") ?? 0, day("to") ?? Number.POSITIVE_INFINITY];
    const many = Number(query.get("limit") ?? 50);
    const fitting = PARTITIONS.filter(({ at }) => at >= first && at <= last);
    const more = fitting.length > many;
    const ranged = query.get("from") !== null || query.get("to") !== null;
    const items = fitting.slice(0, many).map(({ item }) => item);
    return { ...page(items, more && !ranged ? "next" : null), at_least: more };
  },
  "GET /v1/namespaces/{ns}/datasets/{name}/partition": (_, query) => {
    const [year, month, day] = (query.get("values") ?? "").split("/");
    const known = PARTITIONS.find(
      ({ item: { partition: of } }) => `${of.year}/${of.month}/${of.day}` === query.get("values"),
    );
    return {
      dataset: "demo.weather",
      values: [year, month, day],
      partition: { year, month, day },
      ready_at: known?.item.ready_at ?? null,
      path: "s3://lake/raw/weather/",
      made_by: known ? [{ ...run(21), at: run(21).claimed_at }] : [],
      waiting: known ? [] : [job(1)],
      runs: known ? [{ ...run(20), at: run(20).claimed_at }] : [],
      ended: known && "late" in known.item ? [LATE] : [],
      schedules: ["demo.flights.join"],
      at_least: false,
    };
  },
  "GET /v1/namespaces/{ns}/dead-letters": (_, query) =>
    paged(
      Array.from({ length: 300 }, (_, index) => ({
        run_id: run(index + 30).run_id,
        attempt: 1,
        schedule: run(index + 30).schedule,
        workflow: run(index + 30).workflow,
        target: "http",
        tries: 3,
        size: 2,
        reason: "not delivered in 3 tries; last answer: the callback answered with HTTP 503",
        code: "not_delivered",
        nominal_at: null,
        first_try_at: iso(NOW - 50 * MINUTE),
        failed_at: iso(NOW - 48 * MINUTE),
      })),
      query,
    ),
  "GET /v1/namespaces/{ns}/reports": () => ({
    ...page(
      Array.from({ length: 12 }, (_, index) => ({
        namespace: NS,
        workflow: `demo.flights.step${index}`,
        runs: 24 - index,
        succeeded: 23 - index,
        failed: index % 3,
        success_rate: 0.96,
        lateness_p95_ms: 2100 * index,
        duration_p50_ms: 48_000,
        duration_p95_ms: 62_000,
        waited_p50_ms: 820,
        cost_usd: 0.51 - index / 30,
        cost_change: 0.02 * index,
        runs_change: 0,
        duration_p50_change: -0.02,
        sla_misses: index % 2,
        last_failure: index % 3 ? "exit code 1" : null,
        last_failed_run: index % 3 ? run(30).run_id : null,
      })),
    ),
    day: iso(NOW - 1440 * MINUTE).slice(0, 10),
  }),
  "GET /v1/namespaces/{ns}/reprocess": () => page([REPROCESS]),
  "GET /v1/namespaces/{ns}/reprocess/{id}": ({ id }) =>
    need(id === REPROCESS.reprocess_id ? REPROCESS : undefined, `re-processing '${id}'`),
  [`GET ${S}`]: definition,
  [`GET ${S}/why`]: (params) => {
    const row = need(byName(params), `schedule named '${params.ns}.${params.app}.${params.name}'`);
    const waiting = row === OF_FIRE ? fires.jobs.slice(0, 3) : [0, 1, 2, 3].map(job);
    const jobs = waiting.map((one) => ({ ...whyJob(one), schedule: row.name, count: one.count }));
    return {
      schedule: row.name,
      state: row.state,
      why: jobs[0]?.why,
      next_fire: iso(NOW + 90 * MINUTE),
      constraints: jobs[0]?.constraints ?? [],
      limits: jobs[0]?.limits ?? [],
      jobs,
      ended: [],
      failures: [],
      tree: jobs[0]?.tree,
      refs: REFS,
    };
  },
  [`GET ${S}/preview`]: () => ({
    items: FIRES,
    due: FIRES,
    next_cursor: null,
    description: "every hour",
    zone: "Europe/Paris",
    fires_per_day: 24,
    events_per_fire: 1,
    periods: [],
    skipped: [],
  }),
  [`GET ${S}/periods`]: ({ app, name = "" }, query) => {
    if (hasNoPeriods(name)) throw new NoPeriods();
    const from = Date.parse(query.get("from") ?? "");
    const items = periodsOf(name, from, Date.parse(query.get("to") ?? "")).map(({ at, each, row, seed, state }) => {
      const full = `${NS}.${app}.${name}.m3k2j9x1.${String(seed).padStart(20, "0")}`;
      const has = state !== "missing" && state !== "waiting";
      return {
        at: iso(at),
        period: row % 2 ? { start: iso(at), end: iso(at + each), zone: "UTC", label: iso(at).slice(0, 10) } : null,
        values: row % 2 ? { day: iso(at).slice(0, 10) } : null,
        state,
        why:
          state === "failed" ? "the target reported: out of memory" : state === "waiting" ? "waits for a slot" : null,
        code: null,
        job_id: state === "waiting" ? full : null,
        runs: has ? [full] : [],
        attempts: has ? 1 : 0,
        revision: has ? 1 + (seed % 2) : 0,
        since: state === "missing" ? null : iso(at + each),
        ready_at: null,
      };
    });
    return { ...paged(items, query), complete_from: iso(from) };
  },
  [`GET ${S}/days`]: () => ({
    schedule: "",
    zone: "UTC",
    from: iso(NOW - 181 * 1440 * MINUTE).slice(0, 10),
    to: iso(NOW).slice(0, 10),
    at_least: false,
    complete_from: "",
    days: Array.from({ length: 182 }, (_, index) => index)
      .filter((index) => index % 9 !== 4)
      .map((index) => ({
        day: iso(NOW - index * 1440 * MINUTE).slice(0, 10),
        counts: {
          SUCCEEDED: 20 + (index % 5),
          ...(index % 12 === 3 ? { FAILED: 1 + (index % 3) } : {}),
          ...(index % 17 === 2 ? { SKIPPED: 2 } : {}),
        },
      })),
  }),
  [`GET ${S}/runs`]: ({ ns, app, name }) => page(runsOf(`${ns}.${app}.${name}`).slice(0, 100)),
  [`GET ${S}/jobs`]: ({ name }) => page(name === "nightly~" ? [WAITING_START] : jobsOf(name ?? "")),
  [`GET ${S}/records`]: ({ ns, app, name }) =>
    page([
      {
        id: job(3).job_id,
        kind: "EXPIRED",
        schedule: `${ns}.${app}.${name}`,
        reason: "its trigger was not met within 1 d",
        code: "match_expired",
        at: iso(NOW - 300 * MINUTE),
        count: 1,
      },
    ]),
  [`GET ${S}/versions`]: () =>
    page(
      [2, 1].map((version) => ({
        version,
        created_at: iso(NOW - (3 - version) * 1440 * MINUTE),
        created_by: "arn:aws:iam::123456789012:user/ada",
        changes: version === 2 ? ["constraints.0.max: 1 -> 2"] : ["created"],
        definition: {
          workflow: "demo.flights.clean",
          constraints: [{ type: "concurrency", max: version }],
          zone: "UTC",
        },
      })),
    ),
  [`GET ${S}/backfills`]: () => page([BACKFILL]),
  [`GET ${M}`]: ({ name }) => ({
    ...MESSAGE,
    name: need(name === "beat" ? `${NS}.flights.beat` : undefined, `message named '${NS}.flights.${name}'`),
  }),
  [`GET ${M}/why`]: () => ({
    schedule: `${NS}.flights.~beat`,
    state: "enabled",
    why: `waits for its fire at ${iso(NOW + 60 * MINUTE)}`,
    next_fire: iso(NOW + 60 * MINUTE),
    constraints: [],
    limits: [],
    jobs: [],
    ended: [],
    failures: [],
    tree: leaf("time", "every 10s", false),
    refs: [],
  }),
  [`GET ${M}/runs`]: ({ name }) => {
    need(name === "beat" || name === "sent" ? name : undefined, `message named '${NS}.flights.${name}'`);
    return page([run(40), run(41)].map((made) => ({ ...made, schedule: `${NS}.flights.~${name}` })));
  },
  "GET /v1/namespaces/{ns}/apps/{app}/dags": () => page([DAG, WEEKLY]),
  [`GET ${D}`]: ({ name }) =>
    need(
      [DAG, WEEKLY].find((dag) => dag.name.endsWith(`.${name}`)),
      `DAG named '${NS}.flights.${name}'`,
    ),
  [`GET ${D}/why`]: () => ({
    dag: `${NS}.flights.nightly`,
    state: "enabled",
    why:
      `node jfk, run ${run(22).run_id} failed at ${iso(NOW - 55 * MINUTE)}: ${WHY.jfk} (run it again: sluice dags rerun ` +
      `${NS}.flights.nightly ${dagRun(0).run_id} --from jfk); no partition has arrived since the last run; ` +
      `trigger: 1 partition of ${NS}.weather`,
    next_fire: null,
    failures: [
      {
        run_id: run(22).run_id,
        attempt: 1,
        attempts: 1,
        state: "FAILED",
        partition: dagRun(0).partition,
        node: "jfk",
        dag_run: dagRun(0).run_id,
        error: WHY.jfk,
        code: null,
        at: iso(NOW - 55 * MINUTE),
        next: `run it again: sluice dags rerun ${NS}.flights.nightly ${dagRun(0).run_id} --from jfk`,
      },
    ],
    refs: [
      { text: run(22).run_id, kind: "run", name: run(22).run_id },
      { text: dagRun(0).run_id, kind: "run", name: dagRun(0).run_id },
    ],
  }),
  [`GET ${D}/runs/{id}/nodes/{node}/elements`]: ({ node }) => page(node === "jfk" ? ELEMENTS : []),
  [`GET ${D}/runs`]: () => page([0, 1, 2, 3].map((number) => dagRun(number))),
  [`GET ${D}/runs/{id}`]: ({ id }) =>
    need(
      [WAITING_RUN, ...[0, 1, 2, 3].map((number) => dagRun(number, true))].find((made) => made.run_id === id),
      `run '${id}' of the DAG`,
    ),
  "GET /v1/jobs/{id}": ({ id }) => jobOf(id ?? ""),
  "GET /v1/jobs/{id}/why": ({ id }) => whyJob(jobOf(id ?? "")),
  "GET /v1/runs/{id}": ({ id }) => {
    const made = runOf(id ?? "");
    return {
      ...made,
      events: [
        { kind: "partition", id: "p1", instant: NOW - 50 * MINUTE, dataset: "demo.weather", partition: made.partition },
      ],
      history: [made],
    };
  },
  "GET /v1/fires/{id}": ({ id }) => need(id === fires.FIRE ? fires.state : undefined, `fire '${id}'`),
  "GET /v1/fires/{id}/events": ({ id }, query) => {
    need(id === fires.FIRE ? id : undefined, `fire '${id}'`);
    const state = query.get("state");
    return paged(
      fires.events.filter((event) => !state || event.state === state),
      query,
    );
  },
  "GET /v1/runs/{id}/why": ({ id }) => ({
    run_id: id,
    kind: "run",
    schedule: runOf(id ?? "").schedule,
    state: runOf(id ?? "").state,
    why: runOf(id ?? "").reason || "the run succeeded",
    code: runOf(id ?? "").code,
    at: null,
    fired_by: "trigger met: 1 partition of demo.weather came at 2026-11-20T05:00:00.000Z",
    waited_ms: 200,
    refs: [],
  }),
  "GET /v1/runs/{id}/logs": ({ id }) => ({
    run_id: id,
    attempt: 1,
    state: runOf(id ?? "").state,
    streams: {
      stdout: Array.from(
        { length: 40 },
        (_, index) => `2026-11-22 13:00:${String(index).padStart(2, "0")} INFO wrote part ${index}`,
      ),
      stderr: ["WARN <script>alert(1)</script>"],
    },
    why: null,
  }),
  "GET /v1/runs/{id}/lineage": ({ id }) => ({
    run_id: id,
    nodes: [
      {
        id,
        kind: "run",
        schedule: runOf(id ?? "").schedule,
        workflow: null,
        state: runOf(id ?? "").state,
        reason: "",
        code: null,
        at: iso(NOW),
        ended_at: null,
        depth: 0,
      },
      {
        id: "partition:demo.weather/2013/2/9",
        kind: "partition",
        schedule: null,
        workflow: null,
        state: null,
        reason: "partition 2013/2/9 of demo.weather",
        code: null,
        at: iso(NOW),
        ended_at: null,
        depth: -1,
      },
    ],
    edges: [{ from: "partition:demo.weather/2013/2/9", to: id, text: "partition" }],
    at_least: false,
  }),
};

const ACTS = actsOf({ schedule: definition, dag: DAG, dagRun: () => dagRun(0, true) });

type Answers = (params: Record<string, string>, query: URLSearchParams, body: Record<string, unknown>) => Answer;

export const ROUTES_OF_STUB = Object.entries<Answers>({
  ...Object.fromEntries(
    Object.entries(ROUTES).map(
      ([route, handler]) => [route, (...given) => [200, handler(...given)]] as [string, Answers],
    ),
  ),
  ...Object.fromEntries(
    Object.entries(ACTS).map(
      ([route, act]) => [route, (params, query, body) => act(params, body, query)] as [string, Answers],
    ),
  ),
})
  // Those with more fixed parts first: `/dead-letters/redrive` before `/dead-letters/{id}`.
  .sort(([a], [b]) => a.split("{").length - b.split("{").length)
  .map(([route, handler]) => {
    const [method = "", path = ""] = route.split(" ");
    return { method, pattern: new RegExp(`^${path.replace(/{(\w+)}/g, "(?<$1>[^/]+)")}$`), handler };
  });

/** The status and content of an answer. */
export function answer(method: string, url: URL, body: Record<string, unknown>): Answer {
  for (const { method: wanted, pattern, handler } of ROUTES_OF_STUB) {
    const match = wanted === method ? pattern.exec(url.pathname) : null;
    if (!match) continue;
    const params = Object.fromEntries(
      Object.entries(match.groups ?? {}).map(([key, value]) => [key, decodeURIComponent(value)]),
    );
    try {
      return handler(params, url.searchParams, body);
    } catch (error) {
      if (error instanceof Missing) return missing(error.message);
      if (error instanceof NoPeriods) return NO_PERIODS;
      throw error;
    }
  }
  return missing(`route ${method} ${url.pathname}`);
}
