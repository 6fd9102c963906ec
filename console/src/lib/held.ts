// Waiting jobs by what would let them go: the queue of a limit, a clock, an approval, data, or a pause.

import type { Job } from "../api/types";

export interface Held {
  id: string;
  kind: "limit" | "approval" | "data" | "clock" | "pause" | "condition";
  title: string;
  /** The limit that holds them, as the address of Limits takes it. */
  limit?: string;
  jobs: Job[];
}

const ORDER: Held["kind"][] = ["limit", "approval", "data", "clock", "pause", "condition"];

/** What holds a job: its kind, and words that are the same for jobs that one thing holds. */
export function holderOf(job: Job): Omit<Held, "jobs"> {
  if (job.queued_in) {
    const [kind = "", ...rest] = job.queued_in.split(":");
    return {
      id: job.queued_in,
      kind: "limit",
      title: job.queue?.of ?? `${kind} ${rest.join(":")}`,
      limit: job.queued_in,
    };
  }
  const reason = job.reason;
  const owner = /^waits for a grant of (\S+) to /.exec(reason)?.[1];
  if (owner) return { id: `grant:${owner}`, kind: "condition", title: `a grant of ${owner}` };
  if (/approv/.test(reason)) return { id: "approval", kind: "approval", title: "approval" };
  if (/on hold|backlog|paused/.test(reason)) return { id: "pause", kind: "pause", title: "a paused schedule" };
  if (job.state === "PENDING_TRIGGER") return { id: "data", kind: "data", title: "data and events" };
  if (job.wake_at || job.due_at) return { id: "clock", kind: "clock", title: "a clock" };
  return { id: "condition", kind: "condition", title: "another condition" };
}

/** The groups in their order, those with more jobs first; the jobs of a group as they stand in its queue, or by age. */
export function byHolder(jobs: readonly Job[]): Held[] {
  const groups = new Map<string, Held>();
  for (const job of jobs) {
    const holder = holderOf(job);
    const group = groups.get(holder.id) ?? { ...holder, jobs: [] };
    group.jobs.push(job);
    groups.set(holder.id, group);
  }
  for (const group of groups.values()) group.jobs.sort(inOrder);
  return [...groups.values()].sort(
    (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || b.jobs.length - a.jobs.length,
  );
}

/** The same by schedule or by state. */
export function byWord(jobs: readonly Job[], word: (job: Job) => string): Held[] {
  const groups = new Map<string, Held>();
  for (const job of jobs) {
    const title = word(job);
    const group = groups.get(title) ?? { id: title, kind: "condition", title, jobs: [] };
    group.jobs.push(job);
    groups.set(title, group);
  }
  return [...groups.values()].sort((a, b) => b.jobs.length - a.jobs.length || a.title.localeCompare(b.title));
}

// Instants of the API compare as texts; a comparison by language takes ten times as long.
function inOrder(a: Job, b: Job): number {
  const places = (a.queue?.position ?? 1e9) - (b.queue?.position ?? 1e9);
  return places || (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0);
}

/** What a limit has in use: `2 of 4 slots in use`; nothing for a limit of starts, which holds nothing. */
export function useInWords(limit: { in_use: number | null; maximum: number | null; unit: string }): string {
  if (limit.in_use === null) return "";
  const most = limit.maximum === null ? "" : ` of ${limit.maximum}`;
  return `${limit.in_use}${most} ${limit.unit} in use`;
}
