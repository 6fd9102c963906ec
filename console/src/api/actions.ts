// What a person can do, as data: what it does, its command, the request, and what to say afterwards.

import { count, dagOfStart, nameParts, number, partition, scheduleOf, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { ApiError, fill, get, send } from "./client";
import { type AgainInDag, commands, type Values } from "./commands";
import type { Job, StopReport } from "./types";

export interface Field {
  name: string;
  label: string;
  kind: "text" | "choice" | "check" | "pairs" | "instant";
  choices?: { value: string; label: string }[];
  hint?: string;
  initial?: string;
  required?: boolean;
}

export interface Action {
  title: string;
  /** What it will do, as a sentence. */
  effect: string;
  label: string;
  danger?: boolean;
  fields?: Field[];
  command: (values: Values) => string;
  /** `key` is the same for each repeat of one dialog, so that a repeat counts once. */
  send: (values: Values, key: string) => Promise<unknown>;
  done: (answer: never) => { text: string; to?: string };
}

const SCHEDULE = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}";
const NAMESPACE = "/v1/namespaces/{ns}";
const APP = "/v1/namespaces/{ns}/apps/{app}";
const DAG = "/v1/namespaces/{ns}/apps/{app}/dags/{name}";
const MESSAGE = "/v1/namespaces/{ns}/apps/{app}/messages/{name}";
const act = (path: string, params: Record<string, string>, body?: unknown, key?: string) =>
  send("POST", fill(path, params), { body: body ?? {}, key });

/** An action on a schedule; on the start of a DAG, that of the DAG. */
function onStart(action: "skip" | "unskip", name: string, body: unknown): Promise<unknown> {
  const dag = dagOfStart(name);
  return dag ? act(`${DAG}/${action}`, nameParts(dag), body) : act(`${SCHEDULE}/${action}`, nameParts(name), body);
}

/** Stop or start a namespace or an app. A request whose time does not suffice is sent again. */
async function whole(action: "stop" | "start", place: string, body: unknown): Promise<StopReport> {
  const [ns = "", app = ""] = place.split(".");
  for (;;) {
    const report = (await act(`${app ? APP : NAMESPACE}/${action}`, { ns, app }, body)) as StopReport;
    if (report.complete || report.failed.length > 0) return report;
  }
}

interface Answered {
  done: number;
  refused: ApiError[];
}

/** Approve or refuse each job of a schedule that waits for an approval now. One that the API refuses stops no other. */
async function answerAll(verb: "approve" | "refuse", schedule: string, reason: string): Promise<Answered> {
  const answered: Answered = { done: 0, refused: [] };
  let cursor: string | null = null;
  const jobs: Job[] = [];
  do {
    const page: { items: Job[]; next_cursor: string | null } = await get(`${SCHEDULE}/jobs`, nameParts(schedule), {
      query: { limit: 100, cursor },
    });
    jobs.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  for (const job of jobs.filter((each) => each.waits_for.some((hold) => hold.kind === "approval"))) {
    try {
      await act(`/v1/jobs/{job_id}/${verb}`, { job_id: job.job_id }, { reason });
      answered.done += 1;
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.status === 0) throw failure;
      answered.refused.push(failure);
    }
  }
  if (answered.done === 0 && answered.refused[0]) throw answered.refused[0];
  return answered;
}

const answered = (verb: string) => (answer: Answered) => {
  const first = answer.refused[0];
  const left = first ? `; ${number(answer.refused.length)} not ${verb}: ${first.message}` : "";
  return { text: `${count(answer.done, "job")} ${verb}${left}` };
};

/** An app of a namespace, by its short name; the place itself without one. */
const within = (place: string, app: string | undefined) => (app ? `${place}.${app}` : place);

/** `key=value` rows of a field as an object. */
export function pairs(text: string | undefined): Values {
  const rows = (text ?? "").split("\n").map((row) => row.trim());
  return Object.fromEntries(
    rows
      .filter((row) => row.includes("="))
      .map((row) => [row.slice(0, row.indexOf("=")), row.slice(row.indexOf("=") + 1)]),
  );
}

const REASON: Field = { name: "reason", label: "Reason", kind: "text", hint: "stored with the job" };
const MODE: Field = {
  name: "mode",
  label: "Mode",
  kind: "choice",
  initial: "hold",
  choices: [
    { value: "hold", label: "hold: waiting jobs gather, and launch on resume" },
    { value: "backlog", label: "backlog: new jobs are queued, and run on resume" },
    { value: "drain", label: "drain: waiting jobs go on, new events are not accepted" },
  ],
};
const TIMEOUTS: Field = { name: "stop", label: "Stop the timeouts of waiting jobs during the pause", kind: "check" };
export const PAUSE_FIELDS = [MODE, TIMEOUTS];
export const pauseOptions = (values: Values) => ({
  mode: values.mode ?? "hold",
  timeouts: values.stop === "true" ? "stop" : "count",
});

const begun = (noun: string) => (answer: { job_id: string }) => ({
  text: `${noun} begun`,
  to: paths.job(answer.job_id),
});

/** `sales.publish 2026-11-21`: the schedule of a job and its partition, if it has one. */
const jobInWords = (id: string, of?: Values | null): string =>
  [shortName(scheduleOf(id)), partition(of)].filter(Boolean).join(" ");

export const actions = {
  run: (name: string, by: readonly string[] = []): Action => ({
    title: `Run ${shortName(name)}`,
    effect: "Makes a job without the trigger. The constraints still hold.",
    label: "Run",
    fields: [
      { name: "at", label: "When", kind: "text", hint: "empty for now; an instant with a zone, or 2h30m" },
      ...(by.length > 0
        ? [
            {
              name: "partition",
              label: `Partition (${by.join(", ")})`,
              kind: "pairs" as const,
              hint: by.map((key) => `${key}=…`).join("\n"),
            },
          ]
        : []),
      { name: "properties", label: "Properties of this run", kind: "pairs", hint: "key=value, one in each row" },
    ],
    command: (values) =>
      commands.run(name, {
        at: values.at,
        properties: pairs(values.properties),
        partition: values.partition ? pairs(values.partition) : undefined,
      }),
    send: (values, key) =>
      act(
        `${SCHEDULE}/run`,
        nameParts(name),
        {
          properties: pairs(values.properties),
          ...(values.at ? { at: values.at } : {}),
          ...(values.partition ? { partition: pairs(values.partition) } : {}),
        },
        key,
      ),
    done: begun("A run has"),
  }),
  stop: (place: string): Action => ({
    title: `Stop everything of ${place}`,
    effect:
      "No schedule, DAG, message or backfill of it starts anything. Runs that have started go on, and nothing is lost.",
    label: "Stop everything",
    danger: true,
    fields: [
      { name: "reason", label: "Reason", kind: "text", hint: "shown wherever something waits", required: true },
      ...(place.includes(".")
        ? []
        : [{ name: "app", label: "Only this app", kind: "text" as const, hint: "empty for all apps" }]),
      { name: "tag", label: "Only with this tag", kind: "text", hint: "empty for everything; team=a, or team" },
      { ...TIMEOUTS, label: "Stop the timeouts of waiting jobs" },
    ],
    command: (values) =>
      commands.stop(within(place, values.app), values.reason ?? "", values.tag, values.stop === "true"),
    send: (values) =>
      whole("stop", within(place, values.app), {
        reason: values.reason ?? "",
        ...(values.tag ? { tag: values.tag } : {}),
        ...(values.stop === "true" ? { timeouts: "stop" } : {}),
      }),
    done: (report: StopReport) => ({ text: `${count(report.changed.length, "part")} of ${place} stopped` }),
  }),
  start: (place: string, tag: string | null): Action => ({
    title: `Start ${tag === null ? place : `what has the tag ${tag} in ${place}`}`,
    effect: "All that ran before runs again, unless another stop covers it. What was paused or disabled stays so.",
    label: "Start",
    command: () => commands.start(place, tag),
    send: () => whole("start", place, tag === null ? {} : { tag }),
    done: () => ({ text: `${place} is started` }),
  }),
  pause: (name: string): Action => ({
    title: `Pause ${shortName(name)}`,
    effect: "Nothing is dropped. Runs that have started go on.",
    label: "Pause",
    fields: PAUSE_FIELDS,
    command: (values) => commands.pause([name], pauseOptions(values)),
    send: (values) => act(`${SCHEDULE}/pause`, nameParts(name), pauseOptions(values)),
    done: () => ({ text: `${shortName(name)} is paused` }),
  }),
  resume: (name: string): Action => ({
    title: `Resume ${shortName(name)}`,
    effect: "The jobs that waited go on, and what a backlog has queued runs.",
    label: "Resume",
    command: () => commands.resume(name),
    send: () => act(`${SCHEDULE}/resume`, nameParts(name)),
    done: () => ({ text: `${shortName(name)} is resumed` }),
  }),
  enable: (name: string): Action => ({
    title: `Enable ${shortName(name)}`,
    effect: "Its trigger fires from now on. Earlier events do not count.",
    label: "Enable",
    command: () => commands.enable(name),
    send: () => act(`${SCHEDULE}/enable`, nameParts(name)),
    done: () => ({ text: `${shortName(name)} is enabled` }),
  }),
  disable: (name: string): Action => ({
    title: `Disable ${shortName(name)}`,
    effect: "Its waiting jobs are dropped, on record. Its runs go on.",
    label: "Disable",
    danger: true,
    command: () => commands.disable(name),
    send: () => act(`${SCHEDULE}/disable`, nameParts(name)),
    done: () => ({ text: `${shortName(name)} is disabled` }),
  }),
  skip: (name: string, at: string): Action => ({
    title: `Skip one fire of ${shortName(name)}`,
    effect: `The fire of ${at} is left out. You can undo this until then.`,
    label: "Skip",
    command: () => commands.skip(name, at),
    send: () => onStart("skip", name, { at }),
    done: () => ({ text: "The fire is skipped" }),
  }),
  unskip: (name: string, at: string): Action => ({
    title: `Cancel the skip of ${shortName(name)}`,
    effect: `The fire of ${at} takes place.`,
    label: "Cancel the skip",
    command: () => commands.unskip(name, at),
    send: () => onStart("unskip", name, { at }),
    done: () => ({ text: "The fire takes place" }),
  }),
  cancelJob: (id: string, of?: Values | null): Action => ({
    title: `Cancel the waiting job ${jobInWords(id, of)}`,
    effect: "The job never becomes a run. It is on record as DROPPED, with your name.",
    label: "Cancel the job",
    danger: true,
    command: () => commands.cancelJob(id),
    send: () => act("/v1/jobs/{job_id}/cancel", { job_id: id }),
    done: () => ({ text: "The job is cancelled" }),
  }),
  approve: (id: string, of?: Values | null): Action => ({
    title: `Approve the job ${jobInWords(id, of)}`,
    effect: "The job goes on, if its other constraints allow it. Your name is stored with it.",
    label: "Approve",
    fields: [REASON],
    command: (values) => commands.approve(id, values.reason),
    send: (values) => act("/v1/jobs/{job_id}/approve", { job_id: id }, { reason: values.reason ?? "" }),
    done: () => ({ text: "The job is approved" }),
  }),
  refuse: (id: string, of?: Values | null): Action => ({
    title: `Refuse the job ${jobInWords(id, of)}`,
    effect: "The job is aborted, on record, with your name.",
    label: "Refuse",
    danger: true,
    fields: [REASON],
    command: (values) => commands.refuse(id, values.reason),
    send: (values) => act("/v1/jobs/{job_id}/refuse", { job_id: id }, { reason: values.reason ?? "" }),
    done: () => ({ text: "The job is refused" }),
  }),
  approveAll: (schedule: string, many: number): Action => ({
    title: `Approve all jobs of ${shortName(schedule)}`,
    effect: `Approves each job of the schedule that waits for an approval: ${number(many)} now. Your name is stored with each.`,
    label: "Approve all",
    fields: [REASON],
    command: (values) => commands.answerAll("approve", schedule, values.reason),
    send: (values) => answerAll("approve", schedule, values.reason ?? ""),
    done: answered("approved"),
  }),
  refuseAll: (schedule: string, many: number): Action => ({
    title: `Refuse all jobs of ${shortName(schedule)}`,
    effect: `Aborts each job of the schedule that waits for an approval: ${number(many)} now. Each is on record, with your name.`,
    label: "Refuse all",
    danger: true,
    fields: [REASON],
    command: (values) => commands.answerAll("refuse", schedule, values.reason),
    send: (values) => answerAll("refuse", schedule, values.reason ?? ""),
    done: answered("refused"),
  }),
  cancelRun: (id: string): Action => ({
    title: "Cancel a run",
    effect: "Sluice asks the target to end the run until it has ended.",
    label: "Cancel the run",
    danger: true,
    command: () => commands.cancelRun(id),
    send: () => act("/v1/runs/{run_id}/cancel", { run_id: id }),
    done: () => ({ text: "The end of the run is requested" }),
  }),
  pingRun: (id: string): Action => ({
    title: "Poll the target of a run",
    effect: "Sluice asks the target for the run's state now, instead of at the next poll.",
    label: "Poll now",
    command: () => commands.pingRun(id),
    send: () => act("/v1/runs/{run_id}/ping", { run_id: id }),
    done: () => ({ text: "The target is polled" }),
  }),
  rerunRun: (id: string): Action => ({
    title: "Run again",
    effect: "Makes a job with the run's own properties, data and context.",
    label: "Run again",
    command: () => commands.rerunRun(id),
    send: (_, key) => act("/v1/runs/{run_id}/rerun", { run_id: id }, undefined, key),
    done: begun("The run has"),
  }),
  redrive: (ns: string, id: string): Action => ({
    title: "Deliver again",
    effect: "Delivers the event again, under the same id.",
    label: "Redrive",
    command: () => commands.redrive(id),
    send: () => act("/v1/namespaces/{ns}/dead-letters/{id}/redrive", { ns, id }),
    done: () => ({ text: "The event is delivered again", to: paths.run(id) }),
  }),
  redriveAll: (ns: string, schedule: string): Action => ({
    title: `Deliver all of ${shortName(schedule)} again`,
    effect: "Delivers its dead letters again, at most 100, the newest first.",
    label: "Redrive all",
    command: () => commands.redriveAll(ns, schedule),
    send: () => act("/v1/namespaces/{ns}/dead-letters/redrive", { ns }, { schedule, limit: 100 }),
    done: (answer: { redriven: string[]; refused: unknown[]; more: boolean }) => ({
      text: `${answer.redriven.length} redriven, ${answer.refused.length} refused${answer.more ? ", some are left" : ""}`,
    }),
  }),
  dropLetter: (ns: string, id: string): Action => ({
    title: "Drop a dead letter",
    effect: "Gives the event up for good, on record.",
    label: "Drop",
    danger: true,
    command: () => commands.dropLetter(id),
    send: () => send("DELETE", fill("/v1/namespaces/{ns}/dead-letters/{id}", { ns, id })),
    done: () => ({ text: "The dead letter is dropped" }),
  }),
  runDag: (name: string): Action => ({
    title: `Run ${shortName(name)}`,
    effect: "Starts a run of the DAG without its trigger.",
    label: "Run",
    fields: [{ name: "at", label: "When", kind: "text", hint: "empty for now; an instant with a zone, or 2h30m" }],
    command: (values) => commands.runDag(name, values.at),
    send: (values, key) => act(`${DAG}/run`, nameParts(name), values.at ? { at: values.at } : {}, key),
    done: () => ({ text: "A run of the DAG has begun" }),
  }),
  switchDag: (name: string, on: boolean): Action => ({
    title: `${on ? "Enable" : "Disable"} ${shortName(name)}`,
    effect: on ? "Its trigger starts runs from now on." : "Its trigger starts no runs. Runs that have started go on.",
    label: on ? "Enable" : "Disable",
    danger: !on,
    command: () => (on ? commands.enableDag(name) : commands.disableDag(name)),
    send: () => act(`${DAG}/${on ? "enable" : "disable"}`, nameParts(name)),
    done: () => ({ text: `${shortName(name)} is ${on ? "enabled" : "disabled"}` }),
  }),
  pauseDag: (name: string): Action => ({
    title: `Pause ${shortName(name)}`,
    effect: "It starts no run, and no node of a run begins. Nothing is dropped. Nodes that run go on.",
    label: "Pause",
    fields: PAUSE_FIELDS,
    command: (values) => commands.pauseDag(name, pauseOptions(values)),
    send: (values) => act(`${DAG}/pause`, nameParts(name), pauseOptions(values)),
    done: () => ({ text: `${shortName(name)} is paused` }),
  }),
  resumeDag: (name: string): Action => ({
    title: `Resume ${shortName(name)}`,
    effect: "The nodes and runs that waited go on, and what a backlog has queued runs.",
    label: "Resume",
    command: () => commands.resumeDag(name),
    send: () => act(`${DAG}/resume`, nameParts(name)),
    done: () => ({ text: `${shortName(name)} is resumed` }),
  }),
  cancelDag: (name: string, id: string): Action => ({
    title: "Cancel a run of the DAG",
    effect: "Its active nodes end, and no other node starts, not even one with the rule all_done.",
    label: "Cancel the run",
    danger: true,
    command: () => commands.cancelDag(name, id),
    send: () => act("/v1/runs/{run_id}/cancel", { run_id: id }),
    done: () => ({ text: "The end of the run is requested" }),
  }),
  rerunDag: (name: string, id: string, what: AgainInDag): Action => ({
    title: what.elements
      ? `Run ${what.elements === "failed" ? "the failed elements" : `element ${what.elements.join(", ")}`} of ${what.from ?? what.only} again`
      : what.from
        ? `Run ${what.from} and all after it again`
        : what.only
          ? `Run only ${what.only} again`
          : "Run all nodes again",
    effect: "Adds a round to this run of the DAG. It is refused while a part of the run is active.",
    label: "Run again",
    command: () => commands.rerunDag(name, id, what),
    send: (_, key) =>
      act(
        `${DAG}/runs/{run_id}/rerun`,
        { ...nameParts(name), run_id: id },
        what.from || what.only ? what : { all: true },
        key,
      ),
    done: () => ({ text: "A new round has begun" }),
  }),
  deleteMessage: (name: string): Action => ({
    title: `Delete the message ${shortName(name)}`,
    effect: "Nothing more of it is sent. What it has sent stays in the history.",
    label: "Delete",
    danger: true,
    command: () => commands.deleteMessage(name),
    send: () => send("DELETE", fill(MESSAGE, nameParts(name))),
    done: () => ({ text: `The message ${shortName(name)} is deleted` }),
  }),
  cancelBackfill: (name: string, id: string): Action => ({
    title: "Cancel a backfill",
    effect: "It starts nothing more.",
    label: "Cancel the backfill",
    danger: true,
    fields: [{ name: "runs", label: "Cancel its active runs, too", kind: "check" }],
    command: (values) => commands.cancelBackfill(name, id, values.runs === "true"),
    send: (values) =>
      send("POST", fill(`${SCHEDULE}/backfills/{id}/cancel`, { ...nameParts(name), id }), {
        body: {},
        query: { runs: values.runs === "true" ? "cancel" : null },
      }),
    done: () => ({ text: "The backfill starts nothing more" }),
  }),
  cancelReprocess: (ns: string, id: string): Action => ({
    title: "Cancel a re-processing",
    effect: "It starts nothing more.",
    label: "Cancel the re-processing",
    danger: true,
    fields: [{ name: "runs", label: "Cancel its active runs, too", kind: "check" }],
    command: (values) => commands.cancelReprocess(ns, id, values.runs === "true"),
    send: (values) =>
      send("POST", fill("/v1/namespaces/{ns}/reprocess/{id}/cancel", { ns, id }), {
        body: {},
        query: { runs: values.runs === "true" ? "cancel" : null },
      }),
    done: () => ({ text: "The re-processing starts nothing more" }),
  }),
  register: (dataset: string, values: Values): Action => ({
    title: `Report partition ${partition(values)} of ${shortName(dataset)}`,
    effect: "States that the partition is ready. Schedules that wait for it count it.",
    label: "Report it ready",
    command: () => commands.registerPartition(dataset, values),
    send: () => {
      const [ns = "", ...rest] = dataset.split(".");
      return act("/v1/namespaces/{ns}/datasets/{name}/partitions", { ns, name: rest.join(".") }, { partition: values });
    },
    done: () => ({ text: "The partition is registered" }),
  }),
};
