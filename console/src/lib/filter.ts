// The filter of a list of schedules: `state:enabled tag:team=a clean`. Words without a key are parts of the name.

export interface Filter {
  state: string[];
  app: string[];
  workflow: string[];
  tag: string[];
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
  const filter: Filter = { state: [], app: [], workflow: [], tag: [], words: [] };
  for (const part of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const [key = "", ...rest] = part.split(":");
    const value = rest.join(":").replaceAll('"', "");
    if (value && (key === "state" || key === "app" || key === "workflow" || key === "tag")) filter[key].push(value);
    else filter.words.push(part.replaceAll('"', ""));
  }
  return filter;
}

/** Whether a schedule fits: one of the values of each key, and every word. */
export function fits(row: Filtered, filter: Filter): boolean {
  const any = (wanted: string[], test: (value: string) => boolean) => wanted.length === 0 || wanted.some(test);
  return (
    any(filter.state, (state) => row.state === state || (state === "paused" && PAUSED.includes(row.state))) &&
    any(filter.app, (app) => row.app === app) &&
    any(filter.workflow, (workflow) => row.workflow.includes(workflow)) &&
    any(filter.tag, (tag) => hasTag(row.tags, tag)) &&
    filter.words.every((word) => row.name.includes(word))
  );
}

const PAUSED = ["hold", "backlog", "drain"];

function hasTag(tags: Record<string, string>, tag: string): boolean {
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
