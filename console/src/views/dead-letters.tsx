import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { namespace } from "../api/queries";
import type { DeadLetter } from "../api/types";
import { useNs, usePlace } from "../frame/place";
import { isOfMessage, number, shortName } from "../lib/format";
import { ActButton } from "../parts/act";
import { Command } from "../parts/command";
import { RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, Reason } from "../parts/text";

/** Events that could not be delivered, by their reason: deliver one or many again, or drop one. */
export function DeadLetters() {
  const ns = useNs();
  const { search } = usePlace();
  const query = useQuery(namespace.letters(ns, search.schedule));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Dead letters</h1>
        <span className="faint">{query.data && number(query.data.items.length, query.data.next_cursor !== null)}</span>
        <span className="space" />
        <Command text={commands.letters(ns)} />
      </div>
      <Await query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <section className="panel">
              <Empty>
                Every event was delivered. One that its target refuses in every try would stand here, with the reason.
              </Empty>
            </section>
          ) : (
            <ByReason ns={ns} letters={items} />
          )
        }
      </Await>
    </div>
  );
}

/** The schedules whose letters one action redrives. The command line has no such action for a message. */
const schedulesOf = (letters: DeadLetter[]) =>
  [...new Set(letters.map((letter) => letter.schedule))].filter((name) => !isOfMessage(name)).slice(0, 3);

function ByReason({ ns, letters }: { ns: string; letters: DeadLetter[] }) {
  const groups = useMemo(() => {
    const found = new Map<string, DeadLetter[]>();
    for (const letter of letters) found.set(letter.reason, [...(found.get(letter.reason) ?? []), letter]);
    return [...found].sort(([, a], [, b]) => b.length - a.length);
  }, [letters]);
  return groups.map(([reason, group]) => (
    <Panel
      key={reason}
      title={<Reason text={reason} />}
      note={number(group.length)}
      tools={schedulesOf(group).map((schedule) => (
        <ActButton key={schedule} small action={actions.redriveAll(ns, schedule)}>
          Redrive all of {shortName(schedule)}
        </ActButton>
      ))}
    >
      <div className="scroll-x">
        <table>
          <thead>
            <tr>
              <th>Schedule</th>
              <th>Event</th>
              <th>Target</th>
              <th className="end">Tries</th>
              <th>Failed</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {group.map((letter) => (
              <tr key={letter.run_id}>
                <td>
                  <ScheduleLink name={letter.schedule} />
                </td>
                <td>
                  <RunLink id={letter.run_id} />
                </td>
                <td>{letter.target}</td>
                <td className="end">{letter.tries}</td>
                <td>
                  <Ago at={letter.failed_at} />
                </td>
                <td className="end">
                  <span className="row-tools">
                    <ActButton small action={actions.redrive(ns, letter.run_id)} />
                    <ActButton small action={actions.dropLetter(ns, letter.run_id)} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  ));
}
