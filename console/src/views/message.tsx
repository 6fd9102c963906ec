import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { actions } from "../api/actions";
import { ApiError } from "../api/client";
import { commands } from "../api/commands";
import { message as read } from "../api/queries";
import type { StoredMessage } from "../api/types";
import { useKeys } from "../frame/keys";
import { ScheduleZone, useNs } from "../frame/place";
import { tell } from "../frame/settings";
import { shortName } from "../lib/format";
import { ActButton } from "../parts/act";
import { Command, copy } from "../parts/command";
import { Await, Empty, Panel } from "../parts/panel";
import { RunsTable } from "../parts/runs-table";
import { Ago, Reason, When } from "../parts/text";

/** A message: when it is sent next, what it carries, and what it has sent, also after its last send. */
export function MessageView() {
  const ns = useNs();
  const { app = "", name: short = "" } = useParams({ strict: false }) as { app?: string; name?: string };
  const name = `${ns}.${app}.${short}`;
  const definition = useQuery(read.definition(name));
  const runs = useQuery(read.runs(name));
  const over = definition.error instanceof ApiError && definition.error.status === 404 && runs.data !== undefined;
  useKeys({ c: () => copy(commands.showMessage(name)).then(() => tell("The command is copied")) });
  return (
    <ScheduleZone.Provider value={definition.data?.zone ?? null}>
      <div className="page">
        {over ? (
          <header className="page-head">
            <h1>{shortName(name)}</h1>
            <span className="faint">a message that has nothing left to send</span>
            <span className="space" />
            <Command text={commands.listMessages(`${ns}.${app}`)} />
          </header>
        ) : (
          <Await query={definition}>{(data) => <Living name={name} message={data} />}</Await>
        )}
        {(runs.data || definition.data) && (
          <Panel title="Sent" note="the newest first">
            <Await query={runs}>
              {({ items }) => <RunsTable runs={items} ofOne empty={<Empty>Nothing has been sent yet.</Empty>} />}
            </Await>
          </Panel>
        )}
      </div>
    </ScheduleZone.Provider>
  );
}

function Living({ name, message }: { name: string; message: StoredMessage }) {
  const why = useQuery(read.why(name));
  return (
    <>
      <header className="page-head">
        <h1>{shortName(name)}</h1>
        <span className="faint">message, version {message.version}</span>
        {Object.entries(message.tags ?? {}).map(([key, value]) => (
          <span key={key} className="tag">
            {key}={value}
          </span>
        ))}
        <span className="space" />
        <span className="tools">
          <ActButton action={actions.deleteMessage(name)} />
        </span>
      </header>
      {message.description && (
        <p className="faint clamp" dir="auto">
          {message.description}
        </p>
      )}
      <Panel title="Why" className="why" tools={<Command text={commands.showMessage(name)} />}>
        <div className="body">
          <p className="because">
            {why.data ? (
              <Reason text={why.data.why} refs={why.data.refs} />
            ) : why.error ? (
              `Its reason is not known: ${why.error.message}`
            ) : (
              "Reading its reason"
            )}
          </p>
          <p className="faint">
            {message.next_fire ? (
              <>
                sent next at <When at={message.next_fire} as="second" /> (<Ago side="next" at={message.next_fire} />)
              </>
            ) : (
              "no send is planned"
            )}
          </p>
        </div>
      </Panel>
      <Panel title="Message">
        <div className="body">
          <dl className="facts">
            {factsOf(message).map(([word, value]) => (
              <div key={word} className="fact">
                <dt>{word}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </div>
      </Panel>
    </>
  );
}

const written = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** The fields that the message has, with their names in its document. */
function factsOf(message: StoredMessage): [string, ReactNode][] {
  const code = (value: unknown) => <code dir="auto">{written(value)}</code>;
  const facts: [string, unknown, ReactNode][] = [
    ["schedule", message.schedule, code(message.schedule)],
    ["due_time", message.due_time, <When key="due" at={message.due_time} as="second" />],
    ["repeats", message.repeats, message.repeats],
    ["ttl", message.ttl, <When key="ttl" at={message.ttl} as="second" />],
    ["zone", message.zone, message.zone],
    ["workflow", message.workflow, code(message.workflow)],
    ["target", message.target, code(message.target)],
    ["content_type", message.content_type, message.content_type],
    ["data", message.data, code(message.data)],
    ["data_base64", message.data_base64, code(message.data_base64)],
    ["data_uri", message.data_uri, code(message.data_uri)],
    ["owner", message.owner, message.owner],
  ];
  return facts
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([word, , shown]) => [word, shown]);
}
