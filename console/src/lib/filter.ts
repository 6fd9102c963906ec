// The filters of lists. That of schedules is a text: `state:enabled tag:team=a clean`. Words without a key are parts of the name.

import type { WorkFilter } from "../api/queries";
import type { Search } from "./search";

export interface Filter {
  state: string[];
  app: string[];
  workflow: string[];
  tag: string[];
  target: string[];
  words: string[];
}

interface Filtered {
  name: string;
  app: string;
  state: string;
  workflow: string;
  tags: Record<string, string>;
}

export function parseFilter(query: string): Filter {
  const filter: Filter = { state: [], app: [], workflow: [], tag: [], target: [], words: [] };
  for (const part of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const [key = "", ...rest] = part.split(":");
    const value = rest.join(":").replaceAll('"', "");
    if (value && isKey(key)) filter[key].push(value);
    else filter.words.push(part.replaceAll('"', ""));
  }
  return filter;
}

const KEYS = ["state", "app", "workflow", "tag", "target"] as const;
const isKey = (key: string): key is (typeof KEYS)[number] => (KEYS as readonly string[]).includes(key);

/** Whether a schedule fits: one of the values of each key, and every word. `targets` has the type of the target of each
 * workflow. */
export function fits(row: Filtered, filter: Filter, targets: ReadonlyMap<string, string> = new Map()): boolean {
  const any = (wanted: string[], test: (value: string) => boolean) => wanted.length === 0 || wanted.some(test);
  return (
    any(filter.state, (state) => row.state === state || (state === "paused" && PAUSED.includes(row.state))) &&
    any(filter.app, (app) => row.app === app) &&
    any(filter.workflow, (workflow) => row.workflow.includes(workflow)) &&
    any(filter.tag, (tag) => hasTag(row.tags, tag)) &&
    any(filter.target, (target) => targets.get(row.workflow) === target) &&
    filter.words.every((word) => row.name.includes(word))
  );
}

const PAUSED = ["hold", "backlog", "drain"];

/** Whether a tag, in small letters as `team=a` or `team`, is among those of a definition. */
export function hasTag(tags: Record<string, string>, tag: string): boolean {
  const [key = "", value] = tag.split("=");
  return Object.entries(tags ?? {}).some(
    ([name, given]) => name.toLowerCase() === key && (value === undefined || given.toLowerCase() === value),
  );
}

/** The query with a value of a key added, or taken out if it was there. */
export function toggleTerm(query: string, term: string): string {
  const parts = query.split(/\s+/).filter(Boolean);
  return (parts.includes(term) ? parts.filter((part) => part !== term) : [...parts, term]).join(" ");
}

/** What the address filters runs by, as the API takes it. */
export function filterOfRuns(search: Search): WorkFilter {
  const { q, app, workflow, target, tag, state, day, by } = search;
  return { q, app, workflow, target, tag, state, day, late: by === "late" };
}

/** What the API filters the queue by. Text, state and schedule are sought among what it has answered. */
export function filterOfJobs(search: Search): WorkFilter {
  const { app, workflow, target, tag, late } = search;
  return { app, workflow, target, tag, late: late === "yes" };
}

/** Whether one of some texts has the words of a filter, whatever the case of letters. */
export function hasText(sought: string | undefined, ...texts: (string | null | undefined)[]): boolean {
  const words = (sought ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const text = texts.join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}
