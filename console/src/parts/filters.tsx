// The filters of a list, kept in the address: a text, names, and choices. Each field has the name that the API gives it.

import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useId, useState } from "react";
import { namespace } from "../api/queries";
import { useNs, usePlace } from "../frame/place";
import { shortName } from "../lib/format";
import type { Search, SearchKey } from "../lib/search";

/** The types of targets that a workflow may have, and that of the run which begins a DAG. */
export const TARGETS = [
  "emr_serverless",
  "worker",
  "sqs",
  "sns",
  "http",
  "lambda",
  "event_bus",
  "step_functions",
  "batch",
  "ecs",
  "glue",
  "aws_api",
  "athena",
  "emr_eks",
  "dag",
] as const;

const PAUSE_MS = 350;

/** A text of the address. It is taken over a moment after the last key, with `enter`, and when the field is left. */
export function TextFilter({
  of,
  label,
  placeholder,
  grow = false,
  options,
  at,
}: {
  of: SearchKey;
  label: string;
  placeholder: string;
  grow?: boolean;
  /** What the field proposes. */
  options?: readonly string[];
  at?: RefObject<HTMLInputElement | null>;
}) {
  const { search, change } = usePlace();
  const known = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const written = search[of] ?? "";
  const take = (text: string) => {
    setTyped(null);
    if (text.trim() !== written) change({ [of]: text.trim() || undefined }, true);
  };
  useEffect(() => {
    if (typed === null) return;
    const timer = setTimeout(() => take(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <>
      <input
        ref={at}
        type="search"
        className={grow ? "grow" : "filter"}
        aria-label={label}
        placeholder={placeholder}
        value={typed ?? written}
        list={options ? known : undefined}
        spellCheck={false}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={(event) => take(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") take(event.currentTarget.value);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {options && (
        <datalist id={known}>
          {options.slice(0, 500).map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** One of a few values of the address, or any. */
export function ChoiceFilter({ of, label, options }: { of: SearchKey; label: string; options: readonly string[] }) {
  const { search, change } = usePlace();
  const chosen = search[of] ?? "";
  return (
    <select
      aria-label={label}
      className={chosen ? "filter set" : "filter"}
      value={chosen}
      onChange={(event) => change({ [of]: event.target.value || undefined })}
    >
      <option value="">any {label.toLowerCase()}</option>
      {chosen && !options.includes(chosen) && <option>{chosen}</option>}
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}

/** The apps of the namespace. */
export function AppFilter() {
  const apps = useQuery(namespace.apps(useNs()));
  return <ChoiceFilter of="app" label="App" options={(apps.data?.items ?? []).map((app) => shortName(app.name))} />;
}

/** App, workflow, type of target and tag: what both runs and jobs are filtered by. */
export function WorkFilters() {
  const workflows = useQuery(namespace.workflows(useNs()));
  const names = (workflows.data ?? []).map((workflow) => shortName(workflow.name));
  return (
    <>
      <AppFilter />
      <TextFilter of="workflow" label="Workflow" placeholder="workflow" options={names} />
      <ChoiceFilter of="target" label="Target" options={TARGETS} />
      <TextFilter of="tag" label="Tag" placeholder="tag: team=a" />
    </>
  );
}

/** Values of the address as chips, of which one may be chosen. */
export function Chips({ of, label, options }: { of: SearchKey; label: string; options: readonly string[] }) {
  const { search, change } = usePlace();
  return (
    <fieldset className="chips">
      <legend className="unseen">{label}</legend>
      {options.map((word) => (
        <button
          key={word}
          type="button"
          aria-pressed={search[of] === word}
          onClick={() => change({ [of]: search[of] === word ? undefined : word })}
        >
          {word}
        </button>
      ))}
    </fieldset>
  );
}

/** A link that takes all filters out of the address, while there is one. */
export function ClearFilters({ of }: { of: readonly SearchKey[] }) {
  const { search, change } = usePlace();
  if (!of.some((key) => search[key])) return null;
  const none: Search = Object.fromEntries(of.map((key) => [key, undefined]));
  return (
    <button type="button" className="link" onClick={() => change(none)}>
      Clear the filters
    </button>
  );
}
