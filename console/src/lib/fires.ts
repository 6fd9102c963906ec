// Large fires: their events share rows, so lists have one line for all events of a fire.

import type { StateOfFire } from "../api/types";

/** The id of the fire of an event `FIRE-7`, or of events that share a row, `FIRE-0_5`; null for any other work. */
export function fireOf(id: string): string | null {
  const cut = id.lastIndexOf("-");
  return cut > id.lastIndexOf(".") ? id.slice(0, cut) : null;
}

/** Whether an id is that of events that share a row. */
export function isBundle(id: string): boolean {
  const fire = fireOf(id);
  return fire !== null && id.slice(fire.length).includes("_");
}

interface Work {
  fire: string | null;
  count: number;
}

/** A row of a list, or all rows of one fire. */
export type Line<Row> = { fire: null; row: Row } | { fire: string; rows: Row[] };

/** Rows with one line for each fire, where the first of its rows is. */
export function linesOf<Row extends { fire: string | null }>(rows: readonly Row[]): Line<Row>[] {
  const fires = new Map<string, Row[]>();
  const lines: Line<Row>[] = [];
  for (const row of rows) {
    if (row.fire === null) {
      lines.push({ fire: null, row });
      continue;
    }
    const known = fires.get(row.fire);
    if (known) known.push(row);
    else {
      const own = [row];
      fires.set(row.fire, own);
      lines.push({ fire: row.fire, rows: own });
    }
  }
  return lines;
}

/** How many jobs or runs these are, each event of a fire counted. */
export function events(rows: readonly Pick<Work, "count">[]): number {
  return rows.reduce((sum, row) => sum + row.count, 0);
}

export type StateOfEvent = "SENT" | "FAILED" | "RETRYING" | "WAITING" | "DROPPED" | "UNKNOWN";

const COUNTS = [
  ["SENT", "sent"],
  ["FAILED", "failed"],
  ["RETRYING", "tried again"],
  ["WAITING", "waiting"],
  ["DROPPED", "dropped"],
  ["UNKNOWN", "unknown"],
] as const;

export interface Count {
  state: StateOfEvent;
  word: string;
  many: number;
}

/** How many events of a fire are in each state, those without any left out. */
export function countsOf(fire: Record<Lowercase<StateOfEvent>, number>): Count[] {
  return COUNTS.map(([state, word]) => ({
    state,
    word,
    many: fire[state.toLowerCase() as Lowercase<StateOfEvent>],
  })).filter((count) => count.many > 0);
}

/** Whether events of a fire still wait, so that its numbers change. */
export function goesOn(fire: Pick<StateOfFire, "state"> | undefined): boolean {
  return fire === undefined || fire.state === "WAITING" || fire.state === "SENDING";
}

interface Attempt extends Work {
  run_id: string;
  state: string;
}

/** Where the API counts an event whose run is in a state. */
function countedAs(state: string): "sent" | "failed" | "retrying" | "waiting" {
  if (state === "SUCCEEDED") return "sent";
  if (state === "RETRYING") return "retrying";
  return state === "STARTING" || state === "RUNNING" ? "waiting" : "failed";
}

/** What the runs of a list, newest first, say of their fire: of an event that was tried again its last attempt. */
export function knownOf(runs: readonly Attempt[]): Count[] {
  const seen = new Set<string>();
  const known = { sent: 0, failed: 0, retrying: 0, waiting: 0, dropped: 0, unknown: 0 };
  for (const run of runs) {
    if (seen.has(run.run_id)) continue;
    seen.add(run.run_id);
    known[countedAs(run.state)] += run.count;
  }
  return countsOf(known);
}
