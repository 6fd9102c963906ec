// What a view keeps in the address: filters, sort, range, zone, open panel. All values are texts; unknown or wrong ones
// are dropped, so that an address of another version still opens.

import { ZONE_CHOICES } from "./zone";

type Check = (value: string) => boolean;

const text: Check = (value) => value.length <= 500;
const oneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.includes(value);
const digits: Check = (value) => /^\d{1,6}$/.test(value);
const day: Check = (value) => /^\d{4}-\d{2}-\d{2}$/.test(value);
const instant: Check = (value) => !Number.isNaN(Date.parse(value));

const CHECKS = {
  zone: oneOf(...ZONE_CHOICES),
  q: text,
  state: text,
  app: text,
  tag: text,
  workflow: text,
  target: text,
  late: oneOf("yes"),
  kind: text,
  schedule: text,
  sort: oneOf("name", "-name", "state", "-state", "trigger", "-trigger", "workflow", "-workflow"),
  by: text,
  tab: text,
  open: text,
  as: oneOf("list"),
  day,
  from: instant,
  to: instant,
  all: oneOf("yes"),
  span: digits,
  a: digits,
  b: digits,
  attempt: digits,
  run: text,
  node: text,
  only: oneOf("all", "missing", "failed"),
  partition: text,
  around: text,
  up: digits,
  down: digits,
  at: text,
  name: text,
} satisfies Record<string, Check>;

export type SearchKey = keyof typeof CHECKS;
export type Search = Partial<Record<SearchKey, string>>;

/** The known and valid values among those given. */
export function readSearch(given: Record<string, unknown>): Search {
  const found: Search = {};
  for (const [key, check] of Object.entries(CHECKS) as [SearchKey, Check][]) {
    const value = given[key];
    if (typeof value === "string" && value !== "" && check(value)) found[key] = value;
  }
  return found;
}

/** The texts of a query, without the question mark. A key that occurs twice counts once, with its last value. */
export function parseSearch(query: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(query));
}

/** The query of an address, with its question mark; empty without values. Keys are in a fixed order. */
export function writeSearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const key of Object.keys(CHECKS)) {
    const value = search[key];
    if (typeof value === "string" && value !== "") query.set(key, value);
  }
  const written = query.toString();
  return written ? `?${written}` : "";
}
