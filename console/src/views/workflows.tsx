import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { StoredWorkflow } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { hasTag, hasText } from "../lib/filter";
import { number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { Command, copyCommand } from "../parts/command";
import { AppFilter, ChoiceFilter, ClearFilters, TARGETS, TextFilter } from "../parts/filters";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";

const FILTERS: SearchKey[] = ["q", "app", "target", "tag"];

/** The workflows of a namespace: what each runs, where, and the ways to its schedules and runs. */
export function Workflows() {
  const ns = useNs();
  const go = useGo();
  const { search } = usePlace();
  const query = useQuery(namespace.workflows(ns));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus(), c: () => void copyCommand(commands.list("workflows", ns)) });
  const shown = (query.data ?? []).filter(
    (workflow) =>
      hasText(search.q, workflow.name, workflow.description, placeOf(workflow)) &&
      (!search.app || workflow.name.split(".")[1] === search.app) &&
      (!search.target || workflow.target.type === search.target) &&
      (!search.tag || hasTag(workflow.tags ?? {}, search.tag.toLowerCase())),
  );
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Workflows</h1>
        <span className="faint" aria-live="polite">
          {query.data &&
            (shown.length === query.data.length
              ? number(shown.length)
              : `${number(shown.length)} of ${number(query.data.length)}`)}
        </span>
        <span className="space" />
        <Command text={commands.list("workflows", ns)} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of what it runs" grow at={field} />
        <AppFilter />
        <ChoiceFilter of="target" label="Target" options={TARGETS} />
        <TextFilter of="tag" label="Tag" placeholder="tag: team=a" />
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={8}>
        {(all) => (
          <Rows
            label="Workflows"
            rows={shown}
            columns={columnsOf(ns)}
            rowKey={(workflow) => workflow.name}
            onOpen={(workflow) => go(paths.view(ns, "schedules"), { q: `workflow:${workflow.name}` })}
            keys={{ c: (workflow) => void copyCommand(commands.describe("workflow", workflow.name)) }}
            empty={
              all.length > 0 ? (
                <Empty>No workflow fits.</Empty>
              ) : (
                <Empty command="sluice apply app.yaml">
                  No workflows. An app document has them under workflows: each with the target that it runs.
                </Empty>
              )
            }
          />
        )}
      </Await>
    </div>
  );
}

/** What a target runs, or where its events go. */
export function placeOf({ target }: Pick<StoredWorkflow, "target">): string {
  const {
    entry_point,
    queue_url,
    topic_arn,
    url,
    function: called,
    bus,
    state_machine,
    task_definition,
    job_definition,
    job,
    pool,
  } = target as unknown as Record<string, unknown>;
  const engines = [task_definition, job_definition, job];
  const found = [entry_point, queue_url, topic_arn, url, called, bus, state_machine, ...engines, pool];
  return found.find((text): text is string => typeof text === "string") ?? "";
}

function columnsOf(ns: string): Column<StoredWorkflow>[] {
  const links = (name: string) => [
    { to: paths.view(ns, "schedules"), search: { q: `workflow:${name}` }, word: "Schedules" },
    { to: paths.view(ns, "runs"), search: { workflow: name }, word: "Runs" },
    { to: paths.view(ns, "graph"), search: { around: `workflow:${name}` }, word: "Lineage" },
  ];
  return [
    {
      id: "name",
      width: "minmax(180px, 1fr)",
      head: "Name",
      cell: ({ name, description }) => (
        <Go
          to={paths.view(ns, "schedules")}
          search={{ q: `workflow:${name}` }}
          className="name"
          title={description || name}
        >
          {shortName(name)}
        </Go>
      ),
    },
    { id: "target", width: "112px", head: "Target", cell: (workflow) => workflow.target.type },
    {
      id: "place",
      width: "minmax(180px, 2.2fr)",
      head: "Runs",
      cell: (workflow) => <code title={placeOf(workflow)}>{placeOf(workflow)}</code>,
    },
    { id: "pool", width: "minmax(64px, 0.4fr)", head: "Pool", cell: (workflow) => workflow.pool ?? "" },
    { id: "priority", width: "64px", head: "Priority", end: true, cell: (workflow) => workflow.priority ?? 5 },
    { id: "timeout", width: "64px", head: "Timeout", end: true, cell: (workflow) => workflow.timeout ?? "" },
    {
      id: "links",
      width: "210px",
      head: "",
      end: true,
      cell: ({ name }) => (
        <span className="row-tools">
          {links(name).map(({ word, ...to }) => (
            <Go key={word} {...to}>
              {word}
            </Go>
          ))}
        </span>
      ),
    },
  ];
}
