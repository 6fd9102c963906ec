// What the stand-in answers to actions: the forms of the API. Nothing changes, so that each test finds the same.

import { iso, job, NOW, NS, run, STOP } from "./data.ts";

type Params = Record<string, string>;
type Body = Record<string, unknown>;
/** The status and the content of an answer. */
type Act = (params: Params, body: Body, query: URLSearchParams) => [number, unknown];

/** What the definitions of the stand-in are, for actions that answer with one. */
export interface Definitions {
  schedule: (params: Params) => unknown;
  dag: unknown;
  dagRun: () => unknown;
}

export const BACKFILL = {
  backfill_id: "0a1b2c3d4e5f6071",
  schedule: `${NS}.flights.ingest-00000`,
  state: "RUNNING",
  reason: null,
  order: "oldest",
  only: "all",
  left_alone: 0,
  in_flight: [],
  left_out: 0,
  incomplete: [],
  concurrency: 2,
  dataset: null,
  total: 30,
  launched: 12,
  waiting: 1,
  running: 1,
  succeeded: 9,
  failed: 1,
  cancelled: 0,
  position: null,
  properties: {},
  failures: null,
  active: [],
  created_at: iso(NOW - 3_600_000),
  created_by: "arn:aws:iam::123456789012:user/ada",
  ended_at: null,
  from: iso(NOW - 30 * 86_400_000),
  to: iso(NOW),
};

const STEP = {
  step: 1,
  schedule: `${NS}.flights.clean-00008`,
  workflow: `${NS}.flights.clean`,
  after: [],
  why: `counts partitions of ${NS}.weather`,
  registered: true,
  total: 1,
};

export const REPROCESS = {
  reprocess_id: "1f2e3d4c5b6a7988",
  namespace: NS,
  state: "RUNNING",
  reason: null,
  dataset: `${NS}.weather`,
  run: null,
  fires: null,
  first: { year: "2013", month: "1", day: "4" },
  last: { year: "2013", month: "1", day: "4" },
  concurrency: 1,
  properties: {},
  total: 2,
  waiting: 0,
  running: 1,
  succeeded: 1,
  failed: 0,
  cancelled: 0,
  steps: [
    {
      ...STEP,
      state: "running",
      reason: null,
      backfill_id: BACKFILL.backfill_id,
      waiting: 0,
      running: 1,
      succeeded: 0,
      failed: 0,
      cancelled: 0,
      failures: null,
    },
  ],
  created_at: iso(NOW - 600_000),
  created_by: "arn:aws:iam::123456789012:user/ada",
  ended_at: null,
};

const DAY = { year: "2013", month: "1", day: "4" };
const ENTRY = { why: null, code: null, run_id: null };
const PLAN = {
  schedule: BACKFILL.schedule,
  dataset: null,
  total: 30,
  first: [BACKFILL.from],
  last: [BACKFILL.to],
  now: { missing: 20, waiting: 0, running: 1, succeeded: 0, failed: 10 },
  entries: [
    { ...ENTRY, entry: BACKFILL.from, state: "running", runs: false },
    { ...ENTRY, entry: BACKFILL.to, state: "missing", runs: true },
  ],
};
const HOURS = `24 hours of 2026-02-27 UTC in ${NS}.hours: 17`;
const PLAN_OF_PERIODS = {
  ...PLAN,
  total: 2,
  first: [{ day: "2026-02-26" }, { day: "2026-02-28" }],
  last: [],
  now: { missing: 2, waiting: 1, running: 0, succeeded: 0, failed: 1 },
  entries: [
    { state: "missing", runs: true, have: 24, why: null, code: null },
    { state: "missing", runs: false, have: 23, why: `lacks 1 of ${HOURS}`, code: "trigger_unmet" },
    { state: "failed", runs: true, have: 24, why: "the target reported: out of memory", code: "run_failed" },
    { state: "waiting", runs: false, have: 1, why: "waits for 23 of 24 hours", code: "trigger_unmet" },
  ].map((each, index) => ({
    ...ENTRY,
    ...each,
    need: 24,
    entry: { day: ["2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"][index] },
  })),
};

/** Whether a schedule of the stand-in has one job for each day. */
export const isOfPeriods = (name = "") => name.startsWith("report-");
const PLAN_OF_REPROCESS = {
  namespace: NS,
  dataset: REPROCESS.dataset,
  run: null,
  fires: null,
  partitions: 1,
  total: 2,
  steps: [
    { ...STEP, first: [DAY], last: [DAY] },
    { ...STEP, step: 2, schedule: `${NS}.flights.report-00032`, after: [1], first: [DAY], last: [DAY] },
  ],
  not_followed: [
    {
      schedule: `${NS}.weather.join-00017`,
      dataset: `${NS}.cleaned`,
      workflow: `${NS}.flights.clean`,
      why: `a partition of ${NS}.cleaned that is written again starts it by itself`,
    },
  ],
};

/** A bulk change fails for schedules whose names end so. */
export const FAILS = "clean-00009";

const S = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}";
const D = "/v1/namespaces/{ns}/apps/{app}/dags/{name}";

const REPORT_OF_STOP = { changed: [], unchanged: [], failed: [], complete: true, dry_run: false, stops: [] };

export function actsOf({ schedule, dag, dagRun }: Definitions): Record<string, Act> {
  const changed: Act = (params) => [200, schedule(params)];
  const accepted: Act = () => [202, { job_id: job(0).job_id, state: "PENDING_LAUNCH", reason: "", code: null }];
  const letters = (id: string | undefined) => ({ run_id: id, attempt: 2 });
  return {
    [`POST ${S}/run`]: accepted,
    [`POST ${S}/pause`]: changed,
    [`POST ${S}/resume`]: changed,
    [`POST ${S}/enable`]: changed,
    [`POST ${S}/disable`]: changed,
    [`POST ${S}/skip`]: changed,
    [`POST ${S}/unskip`]: changed,
    [`POST ${S}/backfills`]: ({ name }, body) =>
      body.dry_run ? [200, isOfPeriods(name) ? PLAN_OF_PERIODS : PLAN] : [201, BACKFILL],
    [`POST ${S}/backfills/{id}/cancel`]: () => [200, { ...BACKFILL, state: "CANCELLED" }],
    "POST /v1/jobs/{id}/cancel": ({ id }) => [
      200,
      {
        id,
        kind: "DROPPED",
        schedule: job(1).schedule,
        reason: "cancelled by user/ada",
        code: "cancelled",
        at: iso(NOW),
        count: 1,
      },
    ],
    "POST /v1/jobs/{id}/approve": ({ id }) => [200, { ...job(1), job_id: id }],
    "POST /v1/jobs/{id}/refuse": ({ id }) => [
      200,
      { job_id: id, state: "ABORTED", reason: "refused by user/ada", code: "refused" },
    ],
    "POST /v1/runs/{id}/cancel": ({ id }) => [202, { ...run(1), run_id: id }],
    "POST /v1/runs/{id}/ping": ({ id }) => [202, { ...run(1), run_id: id }],
    "POST /v1/runs/{id}/rerun": accepted,
    "POST /v1/namespaces/{ns}/dead-letters/redrive": () => [
      202,
      { redriven: [run(30).run_id], refused: [], more: false },
    ],
    "POST /v1/namespaces/{ns}/dead-letters/{id}/redrive": ({ id }) => [202, letters(id)],
    "DELETE /v1/namespaces/{ns}/dead-letters/{id}": () => [204, null],
    "DELETE /v1/namespaces/{ns}/apps/{app}/messages/{name}": () => [204, null],
    [`POST ${D}/run`]: ({ ns, app, name }) => [202, { dag: `${ns}.${app}.${name}`, run_id: run(30).run_id }],
    [`POST ${D}/skip`]: () => [200, dag],
    [`POST ${D}/unskip`]: () => [200, dag],
    [`POST ${D}/enable`]: () => [200, dag],
    [`POST ${D}/disable`]: () => [200, dag],
    [`POST ${D}/pause`]: () => [200, dag],
    [`POST ${D}/resume`]: () => [200, dag],
    [`POST ${D}/runs/{id}/rerun`]: () => [200, dagRun()],
    "POST /v1/namespaces/{ns}/datasets/{name}/partitions": (_, body) => [
      201,
      {
        dataset: `${NS}.weather`,
        partition: body.partition,
        path: "s3://lake/raw/weather/",
        ready_at: iso(NOW),
        put_at: iso(NOW),
        object: null,
      },
    ],
    "POST /v1/namespaces/{ns}/reprocess": (_, body) => (body.dry_run ? [200, PLAN_OF_REPROCESS] : [201, REPROCESS]),
    "POST /v1/namespaces/{ns}/reprocess/{id}/cancel": () => [200, { ...REPROCESS, state: "CANCELLED" }],
    "POST /v1/namespaces/{ns}/stop": () => [200, { ...REPORT_OF_STOP, stops: [STOP] }],
    "POST /v1/namespaces/{ns}/apps/{app}/start": () => [200, REPORT_OF_STOP],
    "POST /v1/namespaces/{ns}/apps/{app}/bulk": ({ ns, app }, body) => {
      const names = (body.names as string[]).map((name) => `${ns}.${app}.${name}`);
      const fails = (name: string) => name.endsWith(FAILS);
      return [
        200,
        {
          changed: names.filter((name) => !fails(name)),
          unchanged: [],
          failed: names.filter(fails).map((name) => ({
            name,
            error: { code: "conflict", message: "someone else has just changed it", field: null, hint: "try again" },
          })),
          dry_run: body.dry_run === true,
        },
      ];
    },
  };
}
