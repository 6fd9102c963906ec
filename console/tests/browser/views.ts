// Each view, and a text that only its data brings.

import { REPROCESS } from "../../stub/acts.ts";
import { job, run } from "../../stub/data.ts";
import { FIRE } from "../../stub/fires.ts";

const S = "/demo/schedules/flights/ingest-00000";

export type View = [name: string, path: string, text: string | RegExp];
export const VIEWS: View[] = [
  ["home", "/demo", "Held up by"],
  ["schedules", "/demo/schedules", "flights.ingest-00000"],
  ["schedule", S, "reaching COMPLETED"],
  ["waiting jobs", `${S}?tab=jobs`, "PENDING_CONSTRAINTS"],
  ["backfills", `${S}?tab=backfills`, "9 succeeded, 1 failed, 1 running of 30"],
  ["versions", `${S}?tab=versions`, "constraints[0].max"],
  ["definition", `${S}?tab=definition`, "Europe/Paris"],
  ["backfill", `${S}/backfill`, "1. Range"],
  ["periods", "/demo/periods?q=ingest-0000", "A cell is a day"],
  ["timeline", "/demo/timeline", /\d attempts/],
  ["timeline as a table", "/demo/timeline?tab=table", "SUCCEEDED"],
  ["queue", "/demo/queue", "5,200 wait"],
  ["job", `/demo/jobs/${job(1).job_id}`, "it goes on with"],
  ["runs", "/demo/runs", /of the last/],
  ["run", `/demo/runs/${run(25).run_id}`, "started because"],
  ["log", `/demo/runs/${run(25).run_id}?tab=log`, "INFO wrote part 39"],
  ["lineage of a run", `/demo/runs/${run(25).run_id}?tab=lineage`, "Led to it"],
  ["lineage", "/demo/graph", "at least 200 nodes"],
  ["fire", `/demo/fires/${FIRE}`, "AccessDenied"],
  ["event of a fire", `/demo/runs/${FIRE}-7`, "event 7 of 1,000"],
  ["dags", "/demo/dags", "Trains a model"],
  ["dag", "/demo/dags/flights/nightly?node=evaluate", "needs jfk COMPLETED, which is FAILED"],
  ["workflows", "/demo/workflows", "s3://code/join.py"],
  ["messages", "/demo/messages", "flights.beat"],
  ["message", "/demo/messages/flights/beat", "@every 10s"],
  ["datasets", "/demo/datasets", "late since"],
  ["dataset", "/demo/datasets/weather?at=2013/12/26", "Report it ready"],
  ["limits", "/demo/limits?name=pool:demo.small", "In use by"],
  ["reprocess", "/demo/reprocess", "1. Begin with"],
  ["one re-processing", `/demo/reprocess/${REPROCESS.reprocess_id}`, "Re-processing of weather 2013/1/4"],
  ["dead letters", "/demo/dead-letters", "not delivered in 3 tries"],
  ["report", "/demo/report", "12 workflows"],
];
