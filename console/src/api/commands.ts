// The command of the command line that does what a button does.

import { dagOfStart, partitionPath } from "../lib/format";

export type Values = Record<string, string>;

/** A word as a shell takes it. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command of words; what is false, null or empty is left out. */
export function command(...words: (string | number | false | null | undefined)[]): string {
  const given = words.filter((word) => word !== false && word !== null && word !== undefined && word !== "");
  return ["sluice", ...given.map((word) => quote(String(word)))].join(" ");
}

/** The words of properties: `-p`, `threshold=0.7`. */
function properties(values: Values | undefined): string[] {
  return Object.entries(values ?? {}).flatMap(([key, value]) => ["-p", `${key}=${value}`]);
}

/** What of a DAG run runs again: all, a node with what follows it, or a node alone; of a node with each, some elements. */
export interface AgainInDag {
  from?: string;
  only?: string;
  elements?: number[] | "failed";
}

export interface PauseOptions {
  mode?: string;
  timeouts?: string;
}

export interface RunOptions {
  at?: string;
  properties?: Values;
  partition?: Values;
}

export interface BackfillOptions {
  from?: string;
  to?: string;
  partitions?: string[];
  dataset?: string;
  only?: "all" | "missing" | "failed";
  concurrency?: number;
  newestFirst?: boolean;
  dryRun?: boolean;
}

export interface ReprocessOptions {
  dataset?: string;
  partition?: Values;
  run?: string;
  schedule?: string;
  from?: string;
  to?: string;
  scope?: string;
  concurrency?: number;
  dryRun?: boolean;
}

/** What a list of runs or jobs is filtered by. */
export interface Listed {
  state?: string;
  day?: string;
  app?: string;
  workflow?: string;
  target?: string;
  tag?: string;
  q?: string;
  late?: boolean;
}

const filterWords = ({ state, app, workflow, target, tag, q, late }: Listed) => [
  ...(app ? ["-a", app] : []),
  ...(workflow ? ["--workflow", workflow] : []),
  ...(target ? ["--target", target] : []),
  ...(tag ? ["--tag", tag] : []),
  ...(state ? ["--state", state] : []),
  ...(q ? ["--text", q] : []),
  ...(late ? ["--late"] : []),
];

const pauseWords = ({ mode, timeouts }: PauseOptions) => [
  ...(mode && mode !== "hold" ? ["--mode", mode] : []),
  ...(timeouts === "stop" ? ["--stop-timeouts"] : []),
];

/** A command on a schedule; on the start of a DAG, that of the DAG. */
const ofStart = (word: string, name: string) => {
  const dag = dagOfStart(name);
  return dag ? ["dags", word, dag] : [word, name];
};

export const commands = {
  describe: (kind: string, name: string) => command("describe", kind, name),
  why: (kind: string, name: string) => command("why", kind, name),
  whyDag: (name: string) => command("why", name),
  enable: (...names: string[]) => command("enable", ...names),
  disable: (...names: string[]) => command("disable", ...names),
  pause: (names: string[], options: PauseOptions = {}) => command("pause", ...names, ...pauseWords(options)),
  resume: (...names: string[]) => command("resume", ...names),
  stop: (place: string, reason: string, tag?: string | null, stopTimeouts = false) =>
    command("stop", place, tag && "--tag", tag, "--reason", reason || "TEXT", stopTimeouts && "--stop-timeouts"),
  start: (place: string, tag?: string | null) => command("start", place, tag && "--tag", tag),
  run: (name: string, { at, properties: given, partition }: RunOptions = {}) =>
    command("run", name, ...properties(given), at && "--at", at, partition && "--partition", partitionPath(partition)),
  skip: (name: string, at: string) => command(...ofStart("skip", name), at),
  unskip: (name: string, at: string) => command(...ofStart("unskip", name), at),
  preview: (name: string) => command("preview", name),
  versions: (name: string) => command("versions", name),
  cancelJob: (id: string) => command("jobs", "cancel", id),
  approve: (id: string, reason?: string) => command("jobs", "approve", id, reason && "--reason", reason),
  refuse: (id: string, reason?: string) => command("jobs", "refuse", id, reason && "--reason", reason),
  answerAll: (verb: "approve" | "refuse", schedule: string, reason?: string) =>
    command("jobs", verb, "--schedule", schedule, reason && "--reason", reason),
  showRun: (id: string) => command("runs", "show", id),
  showFire: (id: string, state?: string) => command("fires", id, state && "--state", state),
  cancelRun: (id: string) => command("runs", "cancel", id),
  pingRun: (id: string) => command("runs", "ping", id),
  rerunRun: (id: string) => command("runs", "rerun", id),
  logs: (id: string, attempt?: number) => command("logs", id, attempt && "--attempt", attempt),
  listRuns: (ns: string, filter: Listed = {}) =>
    command("runs", "list", "-n", ns, ...filterWords(filter), ...(filter.day ? ["--day", filter.day] : [])),
  redrive: (id: string) => command("dead-letters", "redrive", id),
  redriveAll: (ns: string, schedule: string) => command("dead-letters", "redrive", "-n", ns, "--schedule", schedule),
  dropLetter: (id: string) => command("dead-letters", "drop", id),
  runDag: (name: string, at?: string) => command("dags", "run", name, at && "--at", at),
  enableDag: (name: string) => command("dags", "enable", name),
  disableDag: (name: string) => command("dags", "disable", name),
  pauseDag: (name: string, options: PauseOptions = {}) => command("dags", "pause", name, ...pauseWords(options)),
  resumeDag: (name: string) => command("dags", "resume", name),
  cancelDag: (name: string, id: string) => command("dags", "cancel", name, id),
  rerunDag: (name: string, id: string, what: AgainInDag) => {
    const chosen = what.elements && `[${what.elements === "failed" ? "failed" : what.elements.join(",")}]`;
    const part = `${what.from ?? what.only ?? ""}${chosen ?? ""}`;
    const option = what.from ? ["--from", part] : what.only ? ["--only", part] : ["--all"];
    return command("dags", "rerun", name, id, ...option);
  },
  elements: (name: string, id: string, node: string) => command("dags", "elements", name, id, node),
  backfill: (name: string, given: BackfillOptions) =>
    command(
      "backfill",
      "begin",
      name,
      given.from && "--from",
      given.from,
      given.to && "--to",
      given.to,
      ...(given.partitions ?? []).flatMap((path) => ["--partition", path]),
      given.dataset && "--dataset",
      given.dataset,
      ...(given.only && given.only !== "all" ? ["--only", given.only] : []),
      ...(given.concurrency && given.concurrency > 1 ? ["-c", given.concurrency] : []),
      given.newestFirst && "--newest-first",
      given.dryRun && "--dry-run",
    ),
  cancelBackfill: (name: string, id: string, runs: boolean) =>
    command("backfill", "cancel", name, id, runs && "--runs"),
  reprocess: (given: ReprocessOptions) =>
    command(
      "reprocess",
      ...(given.dataset ? [given.dataset] : ["begin"]),
      given.partition && partitionPath(given.partition),
      given.run && "--run",
      given.run,
      given.schedule && "--schedule",
      given.schedule,
      given.from && "--from",
      given.from,
      given.to && "--to",
      given.to,
      given.scope === "only" && "--only",
      ...(given.concurrency && given.concurrency > 1 ? ["-c", given.concurrency] : []),
      given.dryRun && "--dry-run",
    ),
  cancelReprocess: (ns: string, id: string, runs: boolean) =>
    command("reprocess", "cancel", id, "-n", ns, runs && "--runs"),
  registerPartition: (dataset: string, partition: Values) =>
    command("datasets", "register", dataset, ...Object.entries(partition).map(([key, value]) => `${key}=${value}`)),
  periods: (name: string, from: string, to: string) => command("periods", name, "--from", from, "--to", to),
  partitions: (dataset: string) => command("datasets", dataset),
  jobs: (ns: string, schedule?: string, filter: Listed = {}) =>
    command("jobs", ...(schedule ? ["-s", schedule] : ["-n", ns]), ...filterWords(filter)),
  pools: (ns: string) => command("pools", "-n", ns),
  letters: (ns: string) => command("dead-letters", "list", "-n", ns),
  list: (kind: string, ns: string) => command("get", kind, "-n", ns),
  get: (kind: string, name: string) => command("get", kind, name),
  showMessage: (name: string) => command("message", "get", name),
  listMessages: (app: string) => command("message", "list", "-a", app),
  deleteMessage: (name: string) => command("message", "delete", name),
  showDag: (name: string, id: string) => command("dags", "show", name, id),
  reprocesses: (ns: string) => command("reprocess", "list", "-n", ns),
  showReprocess: (ns: string, id: string) => command("reprocess", "show", id, "-n", ns),
  top: (ns: string) => command("top", "-n", ns),
  report: (ns: string, day?: string) => command("report", "-n", ns, day && "--day", day),
};
