import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { namespace } from "../api/queries";
import type { StoredMessage } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { hasTag, hasText } from "../lib/filter";
import { isNotice, number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { AppFilter, ChoiceFilter, ClearFilters, TARGETS, TextFilter } from "../parts/filters";
import { Go } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, When } from "../parts/text";

const FILTERS: SearchKey[] = ["q", "app", "target", "workflow", "tag"];

const targetOf = (message: StoredMessage) => message.target?.type ?? message.workflow ?? "";
const written = (schedule: unknown) => (typeof schedule === "string" ? schedule : JSON.stringify(schedule ?? null));

const COLUMNS: Column<StoredMessage>[] = [
  {
    id: "name",
    width: "minmax(200px, 1.2fr)",
    head: "Name",
    cell: (message) => (
      <Go to={paths.message(message.name)} className="name" title={message.description || message.name}>
        {shortName(message.name)}
      </Go>
    ),
  },
  { id: "next", width: "150px", head: "Sent next", cell: (message) => <When at={message.next_fire} as="second" /> },
  { id: "in", width: "80px", head: "", cell: (message) => <Ago side="next" at={message.next_fire} /> },
  {
    id: "when",
    width: "minmax(120px, 0.8fr)",
    head: "When",
    cell: (message) => (message.due_time ? "once" : <code>{written(message.schedule)}</code>),
  },
  { id: "to", width: "minmax(140px, 1fr)", head: "To", cell: (message) => targetOf(message) },
];

/** Only if a message has one: an empty column says nothing. */
const OWNER: Column<StoredMessage> = {
  id: "owner",
  width: "minmax(80px, 0.6fr)",
  head: "Owner",
  cell: (message) => message.owner ?? "",
};

/** The messages that have something left to send. */
export function Messages() {
  const ns = useNs();
  const go = useGo();
  const { search, change } = usePlace();
  const query = useQuery(namespace.messages(ns));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  const own = (query.data ?? []).filter((message) => search.all === "yes" || !isNotice(message.name));
  const shown = own.filter(
    (message) =>
      hasText(search.q, message.name, message.description) &&
      (!search.app || message.name.split(".")[1] === search.app) &&
      (!search.target || message.target?.type === search.target) &&
      (!search.workflow || message.workflow === search.workflow) &&
      (!search.tag || hasTag(message.tags ?? {}, search.tag.toLowerCase())),
  );
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Messages</h1>
        <span className="faint" aria-live="polite">
          {query.data &&
            (shown.length === own.length ? number(own.length) : `${number(shown.length)} of ${number(own.length)}`)}
          , with something left to send
        </span>
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name or of a description" grow at={field} />
        <AppFilter />
        <ChoiceFilter of="target" label="Target" options={TARGETS} />
        <TextFilter of="tag" label="Tag" placeholder="tag: team=a" />
        <fieldset className="chips">
          <legend className="unseen">Show</legend>
          <button
            type="button"
            aria-pressed={search.all === "yes"}
            onClick={() => change({ all: search.all === "yes" ? undefined : "yes" })}
          >
            also notices
          </button>
        </fieldset>
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={8}>
        {() => (
          <Rows
            label="Messages"
            rows={shown}
            columns={shown.some(({ owner }) => owner) ? [...COLUMNS, OWNER] : COLUMNS}
            rowKey={(message) => message.name}
            onOpen={(message) => go(paths.message(message.name))}
            empty={
              own.length > 0 ? (
                <Empty>No message fits.</Empty>
              ) : (
                <Empty command="sluice message put NAME --due 1h --target JSON">
                  No message has anything left to send. What was sent is among the runs.
                </Empty>
              )
            }
          />
        )}
      </Await>
    </div>
  );
}
