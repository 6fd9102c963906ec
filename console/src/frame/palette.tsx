import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { Dialog, Modal, ModalOverlay } from "react-aria-components";
import { actions } from "../api/actions";
import { namespace, namespaces, scheduleRows } from "../api/queries";
import { isInternal, isOfMessage, nameParts } from "../lib/format";
import { best } from "../lib/fuzzy";
import { paths } from "../lib/paths";
import { lookOfState, PAUSED } from "../lib/states";
import { useAct } from "../parts/act";
import { VIEWS, viewPath } from "./frame";
import { useGo } from "./place";

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
  const { entries, reading } = useEntries(ns, query);
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
                ? "Reading the names of the namespace"
                : "Nothing has this name. An id of a run or job may be pasted whole."}
            </p>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

/** What fits the query, and whether more may fit once all names are read. */
function useEntries(ns: string, query: string): { entries: Entry[]; reading: boolean } {
  const all = useQuery({ ...scheduleRows(ns), enabled: ns !== "", refetchInterval: false }).data?.rows;
  // A DAG stands for the schedules that it owns: for its start.
  const rows = useMemo(() => all?.filter((row) => !isInternal(row.name) && !isOfMessage(row.name)), [all]);
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
    if (words.startsWith(">")) {
      const wanted = words.slice(1).trim();
      const own = (rows ?? []).filter((row) => row.dag === null);
      return best(own, (row) => row.name, wanted.replace(/^(run|pause|resume|enable|disable)\s*/, ""), 4)
        .flatMap((row): Entry[] => {
          const able = PAUSED.includes(row.state)
            ? [actions.resume(row.name), actions.run(row.name)]
            : row.state === "disabled"
              ? [actions.enable(row.name), actions.run(row.name)]
              : [actions.run(row.name), actions.pause(row.name), actions.disable(row.name)];
          return able.map((action) => ({ kind: "action", text: action.title, act: () => open(action) }));
        })
        .filter((entry) => wanted === "" || best([entry], (given) => given.text, wanted, 1).length > 0)
        .slice(0, SHOWN);
    }
    const pasted: Entry[] =
      words.split(".").length >= 4 && !words.includes(" ") ? [{ kind: "id", text: words, to: paths.open(words) }] : [];
    const found = best(fixed, (entry) => entry.text, words, 6);
    const schedules = words
      ? best(rows ?? [], (row) => row.name, words, SHOWN).map((row) => ({
          kind: row.dag ? "DAG" : "schedule",
          text: row.dag ?? row.name,
          note: `${lookOfState(row.state).glyph} ${row.state}`,
          to: row.dag ? paths.dag(row.dag) : paths.schedule(row.name),
        }))
      : [];
    const short = schedules.filter((entry) => nameParts(entry.text).name === words);
    return [...new Set([...pasted, ...short, ...found, ...schedules])].slice(0, SHOWN);
  }, [query, rows, fixed, open]);
  return { entries, reading: ns !== "" && rows === undefined };
}
