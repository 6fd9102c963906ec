// The command for one action on many schedules: by the filter where the command line has it, or else by their names.

import { parseFilter } from "../lib/filter";
import { pauseOptions } from "./actions";
import { command, type Values } from "./commands";

export type BulkAct = "pause" | "resume" | "enable" | "disable";

const SHOWN = 6;

/** `text` is the whole command, `shown` what a dialog has room for. */
export function bulkCommand(
  act: BulkAct,
  names: string[],
  filter: string,
  values: Values,
): { text: string; shown: string } {
  const options = act === "pause" ? pauseWords(values) : [];
  const apps = [...new Set(names.map((name) => name.split(".").slice(0, 2).join(".")))];
  const words = filterWords(filter);
  if (words && apps.length === 1) {
    const text = command(act, "-a", apps[0], ...words, ...options);
    return { text, shown: text };
  }
  const text = command(act, ...names, ...options);
  const left = names.length - SHOWN;
  return {
    text,
    shown: left > 0 ? `${command(act, ...names.slice(0, SHOWN), ...options)} … and ${left} more names` : text,
  };
}

function pauseWords(values: Values): string[] {
  const { mode, timeouts } = pauseOptions(values);
  return [...(mode === "hold" ? [] : ["--mode", mode]), ...(timeouts === "stop" ? ["--stop-timeouts"] : [])];
}

/** The options of a filter that the command line has, too; null for one that only the console has. */
function filterWords(query: string): string[] | null {
  const filter = parseFilter(query);
  const one = (values: string[]) => values.length <= 1;
  if (
    filter.words.length > 0 ||
    filter.app.length > 1 ||
    !one(filter.state) ||
    !one(filter.tag) ||
    filter.workflow.length > 0
  )
    return null;
  if (filter.state[0] === "paused" || (filter.state.length === 0 && filter.tag.length === 0)) return null;
  return [...filter.tag.flatMap((tag) => ["--tag", tag]), ...filter.state.flatMap((state) => ["--state", state])];
}
