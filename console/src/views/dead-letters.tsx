import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useRef } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { DeadLetter } from "../api/types";
import { useKeys } from "../frame/keys";
import { useGo, useNs, usePlace } from "../frame/place";
import { hasText } from "../lib/filter";
import { isOfMessage, number, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import type { SearchKey } from "../lib/search";
import { ActButton } from "../parts/act";
import { Command, copyCommand } from "../parts/command";
import { AppFilter, ChoiceFilter, ClearFilters, TARGETS, TextFilter } from "../parts/filters";
import { RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty } from "../parts/panel";
import { type Column, Rows } from "../parts/rows";
import { Ago, Reason } from "../parts/text";

const FILTERS: SearchKey[] = ["q", "app", "target", "schedule"];

/** Events that could not be delivered, by their reason: deliver one or many again, or drop one. */
export function DeadLetters() {
  const ns = useNs();
  const { search, change } = usePlace();
  const query = useQuery(namespace.letters(ns, search.schedule));
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() });
  const fits = (letter: DeadLetter) =>
    hasText(search.q, letter.run_id, letter.workflow, letter.reason) &&
    (!search.app || letter.schedule.split(".")[1] === search.app) &&
    (!search.target || letter.target === search.target);
  const shown = query.data?.items.filter(fits).length ?? 0;
  return (
    <div className="page fill">
      <div className="page-head">
        <h1>Dead letters</h1>
        <span className="faint">
          {query.data &&
            (shown === query.data.items.length
              ? number(shown, query.data.next_cursor !== null)
              : `${number(shown)} of the newest ${number(query.data.items.length)}`)}
        </span>
        {search.schedule && (
          <span>
            of <ScheduleLink name={search.schedule} />{" "}
            <button type="button" className="link" onClick={() => change({ schedule: undefined })}>
              Show all
            </button>
          </span>
        )}
        <span className="space" />
        <Command text={commands.letters(ns)} />
      </div>
      <div className="toolbar">
        <TextFilter of="q" label="Filter" placeholder="part of a name, an id or a reason" grow at={field} />
        <AppFilter />
        <ChoiceFilter of="target" label="Target" options={TARGETS} />
        <ClearFilters of={FILTERS} />
      </div>
      <Await query={query} rows={8}>
        {({ items }) => <ByReason ns={ns} letters={items.filter(fits)} some={items.length > 0} />}
      </Await>
    </div>
  );
}

/** Two schedules whose letters one action redrives. The command line has no such action for a message. */
const schedulesOf = (letters: DeadLetter[]) =>
  [...new Set(letters.map((letter) => letter.schedule))].filter((name) => !isOfMessage(name)).slice(0, 2);

type Line = { reason: string; letters: DeadLetter[] } | DeadLetter;

function ByReason({ ns, letters, some }: { ns: string; letters: DeadLetter[]; some: boolean }) {
  const go = useGo();
  const lines = useMemo(() => {
    const found = new Map<string, DeadLetter[]>();
    for (const letter of letters) {
      const group = found.get(letter.reason);
      if (group) group.push(letter);
      else found.set(letter.reason, [letter]);
    }
    return [...found]
      .sort(([, a], [, b]) => b.length - a.length)
      .flatMap(([reason, group]): Line[] => [{ reason, letters: group }, ...group]);
  }, [letters]);
  // The same in each rendering: a row is drawn again only when its data changes.
  const columns = useMemo(() => columnsOf(ns), [ns]);
  const whole = useCallback(
    (line: Line) => "letters" in line && <GroupOf ns={ns} reason={line.reason} letters={line.letters} />,
    [ns],
  );
  useKeys({ c: () => void copyCommand(commands.letters(ns)) });
  return (
    <Rows
      label="Dead letters"
      rows={lines}
      columns={columns}
      height={36}
      rowKey={(line) => ("letters" in line ? `reason ${line.reason}` : line.run_id)}
      rowClass={(line) => ("letters" in line ? "group" : "")}
      whole={whole}
      onOpen={(line) => "run_id" in line && go(paths.run(line.run_id))}
      keys={{
        w: (line) => "run_id" in line && go(paths.run(line.run_id)),
        c: (line) => "run_id" in line && void copyCommand(commands.redrive(line.run_id)),
      }}
      empty={
        <Empty>
          {some
            ? "No dead letter fits."
            : "Every event was delivered. One that its target refuses in every try would stand here, with the reason."}
        </Empty>
      }
    />
  );
}

function GroupOf({ ns, reason, letters }: { ns: string; reason: string; letters: DeadLetter[] }) {
  return (
    <>
      <span className="bad" aria-hidden="true">
        ✗
      </span>
      <strong>{number(letters.length)}</strong>
      <Reason text={reason} short />
      <span className="space" />
      <span className="row-tools">
        {schedulesOf(letters).map((schedule) => (
          <ActButton key={schedule} small action={actions.redriveAll(ns, schedule)}>
            Redrive all of {shortName(schedule)}
          </ActButton>
        ))}
      </span>
    </>
  );
}

function columnsOf(ns: string): Column<Line>[] {
  const of = (cell: (letter: DeadLetter) => ReactNode) => (line: Line) => ("run_id" in line ? cell(line) : null);
  return [
    {
      id: "schedule",
      width: "minmax(180px, 1.4fr)",
      head: "Schedule",
      cell: of((letter) => <ScheduleLink name={letter.schedule} />),
    },
    { id: "event", width: "minmax(120px, 1fr)", head: "Event", cell: of((letter) => <RunLink id={letter.run_id} />) },
    { id: "target", width: "90px", head: "Target", cell: of((letter) => letter.target) },
    { id: "tries", width: "60px", head: "Tries", end: true, cell: of((letter) => letter.tries) },
    { id: "failed", width: "90px", head: "Failed", cell: of((letter) => <Ago side="past" at={letter.failed_at} />) },
    {
      id: "act",
      width: "150px",
      head: "",
      end: true,
      cell: of((letter) => (
        <span className="row-tools">
          <ActButton small action={actions.redrive(ns, letter.run_id)} />
          <ActButton small action={actions.dropLetter(ns, letter.run_id)} />
        </span>
      )),
    },
  ];
}
