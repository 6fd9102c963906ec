// The keys of a dataset's partitions in forms: examples, and what a person writes.

import type { StoredDataset } from "../api/types";
import { partitionPath } from "./format";

/** The dataset whose partitions a trigger counts; null without one. Of several, the first. */
export function datasetOf(trigger: unknown): string | null {
  if (typeof trigger !== "object" || trigger === null) return null;
  const { dataset, trigger: inner, triggers } = trigger as Record<string, unknown>;
  if (typeof dataset === "string") return dataset;
  for (const part of [inner, ...(Array.isArray(triggers) ? triggers : [])]) {
    const found = datasetOf(part);
    if (found) return found;
  }
  return null;
}

/** Values of keys such as a form wants them: those of the newest partition, or else the keys with numbers. */
export function exampleOf({ keys, newest }: Pick<StoredDataset, "keys" | "newest">): string {
  if (newest) return partitionPath(newest.partition);
  return (keys ?? []).map((key) => `${key}=${SAMPLES[key] ?? "1"}`).join("/");
}

const SAMPLES: Record<string, string> = { year: "2026", day: "2026-02-27", date: "2026-02-27", hour: "07" };

/** Of several keys, the first are enough. */
export function firstKeys(example: string): string {
  const parts = example.split("/");
  return parts.length > 1 ? ` The first keys are enough: ${parts.slice(0, -1).join("/")}.` : "";
}

/** `2013/1` as `year=2013/month=1`, with the names of a dataset's keys; also of the first of them. Any other text stays. */
export function pathOf(text: string, names: readonly string[]): string {
  const values = text.trim().split("/");
  if (text.includes("=") || !values.every(Boolean) || values.length > names.length) return text.trim();
  return values.map((value, index) => `${names[index]}=${value}`).join("/");
}

/** The keys of `year=2013/month=1`. With the names of a dataset's keys, `2013/1` has the same. */
export function keysOf(text: string, names: readonly string[] = []): Record<string, string> {
  const values = text.trim().split("/");
  if (!text.includes("=") && values.length === names.length && values.every(Boolean))
    return Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
  return Object.fromEntries(
    values
      .filter((part) => part.includes("="))
      .map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
  );
}
