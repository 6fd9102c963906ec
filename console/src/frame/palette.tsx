import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { Dialog, Modal, ModalOverlay } from "react-aria-components";
import { actions } from "../api/actions";
import { namespace, namespaces, scheduleRows, schedulesNamed } from "../api/queries";
import type { ScheduleInShort } from "../api/types";
import { isInternal, isOfMessage, nameParts } from "../lib/format";
import { best } from "../lib/fuzzy";
import { paths } from "../lib/paths";
import { lookOfState, PAUSED } from "../lib/states";
import { useAct } from "../parts/act";
import { VIEWS, viewPath } from "./frame";
import { useGo } from "./place";
import { useRested } from "./rested";

interface Entry {
  kind: string;
  text: string;
  note?: string;
  to?: string;
  act?: () => void;
}

const SHOWN = 12;

/** Names, ids, views and actions in one field. `>` before the words finds actions only. */
export function Palette({ ns, close }: { ns: string; close: () => void }) {
  const [query, setQuery] = useState("");
  const [current, setCurrent] = useState(0);
  const { entries, reading, more } = useEntries(ns, query);
  const go = useGo();
  const list = useId();
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    if (entry.act) entry.act();
    else if (entry.to) go(entry.to);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setCurrent((current + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(entries[current]);
    }
  };
  return (
    <ModalOverlay className="overlay" isOpen isDismissable onOpenChange={(open) => open || close()}>
      <Modal className="modal palette">
        <Dialog className="dialog" aria-label="Go to a name, id or view">
          <input
            autoFocus
            role="combobox"
            aria-expanded="true"
            aria-controls={list}
            aria-activedescendant={entries.length > 0 ? `${list}-${current}` : undefined}
            aria-label="Name, id or view"
            placeholder="A name, an id, a view, or > for actions"
            value={query}
            spellCheck={false}
            onChange={(event) => {
              setQuery(event.target.value);
              setCurrent(0);
            }}
            onKeyDown={onKey}
          />
          <div role="listbox" id={list} aria-label="What fits">
            {entries.map((entry, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys of the list
              <div
                key={`${entry.kind} ${entry.text}`}
                id={`${list}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === current}
                onMouseMove={() => setCurrent(index)}
                onClick={() => choose(entry)}
              >
                <span className="kind">{entry.kind}</span>
                <span className="text">{entry.text}</span>
                {entry.note && <span className="faint">{entry.note}</span>}
              </div>
            ))}
          </div>
          {entries.length === 0 && (
            <p className="faint pad" role="status">
              {reading
                ? "Searching the names of the namespace"
                : query.trim().startsWith(">") && nameIn(query) === ""
                  ? "Type a part of a schedule's name: > pause clean"
                  : "No name has this part. An id of a run or job may be pasted whole."}
            </p>
          )}
          {entries.length > 0 && more && <p className="faint pad">More names fit. Type more of the name.</p>}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

const VERB = /^(run|pause|resume|enable|disable)(\s+|$)/;

/** The part of a schedule's name in what was typed: without `>` and the word of an action. A space stands for a dot. */
export function nameIn(query: string): string {
  const words = query.trim();
  const part = words.startsWith(">") ? words.slice(1).trim().replace(VERB, "") : words;
  return part.trim().toLowerCase().replace(/\s+/g, ".");
}

/** The schedules whose names have a part, from the API; from the list of all, if the page has read it already. */
function useSchedules(ns: string, part: string): { rows: ScheduleInShort[]; reading: boolean; more: boolean } {
  const rested = useRested(part, RESTS_MS);
  const all = useQuery({ ...scheduleRows(ns), enabled: false }).data;
  const whole = all?.whole ? all.rows : undefined;
  const asked = ns !== "" && rested !== "" && whole === undefined;
  const search = useQuery({ ...schedulesNamed(ns, rested), enabled: asked });
  const found = whole ?? (part === "" ? NONE : (search.data?.items ?? NONE));
  // A DAG stands for the schedules that it owns: for its start.
  const rows = useMemo(() => found.filter((row) => !isInternal(row.name) && !isOfMessage(row.name)), [found]);
  return {
    rows,
    reading: ns !== "" && part !== "" && whole === undefined && (rested !== part || search.isFetching),
    more: asked && rested === part && !!search.data?.next_cursor,
  };
}

const RESTS_MS = 150;
const NONE: ScheduleInShort[] = [];

/** What fits the query, and whether more may fit. */
function useEntries(ns: string, query: string): { entries: Entry[]; reading: boolean; more: boolean } {
  const { rows, reading, more } = useSchedules(ns, nameIn(query));
  const datasets = useQuery({ ...namespace.datasets(ns), enabled: ns !== "", refetchInterval: false }).data;
  const spaces = useQuery(namespaces).data;
  const open = useAct();
  const fixed = useMemo(
    (): Entry[] => [
      ...VIEWS.filter(() => ns).map((view) => ({
        kind: "view",
        text: view.name,
        note: `g ${view.key}`,
        to: viewPath(ns, view),
      })),
      ...(datasets?.items ?? []).map((item) => ({ kind: "dataset", text: item.name, to: paths.dataset(item.name) })),
      ...(spaces?.items ?? []).map((item) => ({ kind: "namespace", text: item.name, to: paths.home(item.name) })),
    ],
    [ns, datasets, spaces],
  );
  const entries = useMemo(() => {
    const words = query.trim();
    const part = nameIn(query);
    if (words.startsWith(">")) {
      const wanted = words.slice(1).trim();
      const own = part === "" ? [] : rows.filter((row) => row.dag === null);
      return best(own, (row) => row.name, part, 4)
        .flatMap((row): Entry[] => {
          const able = PAUSED.includes(row.state)
            ? [actions.resume(row.name), actions.run(row.name)]
            : row.state === "disabled"
              ? [actions.enable(row.name), actions.run(row.name)]
              : [actions.run(row.name), actions.pause(row.name), actions.disable(row.name)];
          return able.map((action) => ({ kind: "action", text: action.title, act: () => open(action) }));
        })
        .filter((entry) => best([entry], (given) => given.text, wanted, 1).length > 0)
        .slice(0, SHOWN);
    }
    const pasted: Entry[] =
      words.split(".").length >= 4 && !words.includes(" ") ? [{ kind: "id", text: words, to: paths.open(words) }] : [];
    const found = best(fixed, (entry) => entry.text, words, 6);
    const schedules = words
      ? best(rows, (row) => row.name, part, SHOWN).map((row) => ({
          kind: row.dag ? "DAG" : "schedule",
          text: row.dag ?? row.name,
          note: `${lookOfState(row.state).glyph} ${row.state}`,
          to: row.dag ? paths.dag(row.dag) : paths.schedule(row.name),
        }))
      : [];
    const short = schedules.filter((entry) => nameParts(entry.text).name === words);
    return [...new Set([...pasted, ...short, ...found, ...schedules])].slice(0, SHOWN);
  }, [query, rows, fixed, open]);
  return { entries, reading, more };
}
