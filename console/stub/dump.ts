// Prints an answer of each route of the stand-in as JSON: `node stub/dump.ts`. A test compares them with the OpenAPI document.

import { BACKFILL, REPROCESS } from "./acts.ts";
import { job, run } from "./data.ts";
import { FIRE } from "./fires.ts";
import { answer, ROUTES_OF_STUB, WAITING_START } from "./routes.ts";

const N = "/v1/namespaces/demo";
const S = `${N}/apps/flights/schedules/clean-00008`;
const D = `${N}/apps/flights/dags/nightly`;
const M = `${N}/apps/flights/messages/beat`;
const [RUN, JOB] = [run(25).run_id, job(1).job_id];
const DAG_RUN = (answer("GET", new URL(`http://stub${D}/runs`), {})[1] as { items: { run_id: string }[] }).items[0];

const READS = [
  "/v1/whoami",
  "/v1/namespaces",
  `${N}/schedules?limit=20`,
  `${N}/schedules?q=nightly&limit=20`,
  `${N}/now`,
  `${N}/fires`,
  `${N}/jobs?limit=100`,
  `${N}/runs?limit=100`,
  `${N}/outcomes`,
  `${N}/limits`,
  `${N}/limits?all=true`,
  `${N}/quotas`,
  `${N}/limits?name=pool:demo.small`,
  `${N}/pools/small`,
  `${N}/timeline?limit=50`,
  `${N}/timeline?limit=50&ids=true`,
  `${N}/graph`,
  `${N}/apps`,
  `${N}/apps/flights/workflows`,
  `${N}/apps/flights/messages`,
  `${S}/periods?from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z`,
  `${N}/periods?q=ingest-0000&from=2026-01-01&to=2026-01-31`,
  `${N}/datasets`,
  `${N}/datasets/weather`,
  `${N}/datasets/weather/partitions?limit=20`,
  `${N}/datasets/weather/partition?values=2013/12/26`,
  `${N}/dead-letters`,
  `${N}/reports`,
  `${N}/reprocess`,
  `${N}/reprocess/${REPROCESS.reprocess_id}`,
  S,
  ...["why", "preview", "days", "runs", "jobs", "records", "versions", "backfills"].map((part) => `${S}/${part}`),
  M,
  `${M}/why`,
  `${M}/runs`,
  `${N}/apps/flights/dags`,
  D,
  `${D}/why`,
  `${D}/runs`,
  `${D}/runs/${DAG_RUN?.run_id}`,
  `${D}/runs/${WAITING_START.job_id}`,
  `${D.replace("/dags/", "/schedules/")}~/jobs`,
  `${D}/runs/${DAG_RUN?.run_id}/nodes/jfk/elements`,
  `/v1/fires/${FIRE}`,
  `/v1/fires/${FIRE}/events?state=FAILED`,
  `/v1/runs/${FIRE}-3`,
  `/v1/jobs/${FIRE}-mg`,
  `/v1/jobs/${JOB}`,
  `/v1/jobs/${JOB}/why`,
  `/v1/runs/${RUN}`,
  ...["why", "logs", "lineage"].map((part) => `/v1/runs/${RUN}/${part}`),
];
const ACTS: [method: string, path: string, body?: object][] = [
  ["POST", `${N}/glance`, { schedules: ["demo.flights.clean-00008"] }],
  ["POST", `${N}/apps/flights/bulk`, { action: "pause", names: ["clean-00008", "clean-00009"], dry_run: true }],
  ["POST", `${N}/stop`, { reason: "the table is repaired", tag: "team=a" }],
  ["POST", `${N}/apps/flights/start`, { tag: "team=a" }],
  ...["run", "pause", "resume", "enable", "disable", "skip", "unskip"].map((act): [string, string] => [
    "POST",
    `${S}/${act}`,
  ]),
  ...["skip", "unskip"].map((act): [string, string] => ["POST", `${D}/${act}`]),
  ["POST", `${S}/backfills`, { dry_run: true }],
  ["POST", `${S}/backfills`],
  ["POST", `${S}/backfills/${BACKFILL.backfill_id}/cancel`],
  ...["cancel", "approve", "refuse"].map((act): [string, string] => ["POST", `/v1/jobs/${JOB}/${act}`]),
  ...["cancel", "ping", "rerun"].map((act): [string, string] => ["POST", `/v1/runs/${RUN}/${act}`]),
  ["POST", `${N}/dead-letters/redrive`],
  ["POST", `${N}/dead-letters/${RUN}/redrive`],
  ["DELETE", `${N}/dead-letters/${RUN}`],
  ["DELETE", M],
  ...["run", "enable", "disable", "pause", "resume"].map((act): [string, string] => ["POST", `${D}/${act}`]),
  ["POST", `${D}/runs/${DAG_RUN?.run_id}/rerun`, { all: true }],
  ["POST", `${N}/datasets/weather/partitions`, { partition: { year: "2013", month: "12", day: "26" } }],
  ["POST", `${N}/reprocess`, { dry_run: true }],
  ["POST", `${N}/reprocess`],
  ["POST", `${N}/reprocess/${REPROCESS.reprocess_id}/cancel`],
];

const asked = [...READS.map((path): [string, string, object?] => ["GET", path]), ...ACTS];
const left = ROUTES_OF_STUB.filter(
  ({ method, pattern }) => !asked.some(([by, path]) => by === method && pattern.test(path.split("?")[0] ?? "")),
).map(({ method, pattern }) => `${method} ${pattern.source}`);
if (left.length > 1) throw new Error(`expected a request for each route, got none for ${left.join(", ")}`);
console.log(
  JSON.stringify(
    asked.map(([method, path, body]) => {
      const [status, content] = answer(method, new URL(`http://stub${path}`), { ...body });
      return { method, path, status, body: content };
    }),
  ),
);
