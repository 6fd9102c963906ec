import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { commands } from "../../api/commands";
import { lives, run as read } from "../../api/queries";
import type { RunInFull } from "../../api/types";
import { usePlace } from "../../frame/place";
import { Command } from "../../parts/command";
import { Await, Empty } from "../../parts/panel";
import { When } from "../../parts/text";

const MORE = 1000;

/** The last lines of each stream of an attempt. */
export function Log({ run }: { run: RunInFull }) {
  const { search, change } = usePlace();
  const attempt = Number(search.attempt ?? run.attempt);
  const [lines, setLines] = useState(200);
  const query = useQuery(read.logs(run.run_id, attempt, lines, lives(run.state)));
  return (
    <div>
      <div className="toolbar pad">
        {run.attempts > 1 && (
          <label>
            <span className="faint">Attempt </span>
            <select value={attempt} onChange={(event) => change({ attempt: event.target.value }, true)}>
              {run.history.map((known) => (
                <option key={known.attempt}>{known.attempt}</option>
              ))}
            </select>
          </label>
        )}
        <button
          type="button"
          className="button small"
          onClick={() => setLines((many) => Math.min(10_000, many + MORE))}
        >
          {lines < 10_000 ? `Read ${MORE} lines more` : "At most 10,000 lines"}
        </button>
        <span className="space" />
        <Command text={commands.logs(run.run_id, attempt)} />
      </div>
      <Await query={query}>
        {(data) => {
          const streams = Object.entries(data.streams).filter(([, text]) => text.length > 0);
          if (streams.length === 0) return <Empty>{data.why ?? "The attempt has written nothing."}</Empty>;
          return (
            <>
              {data.exit_code !== undefined && data.exit_code !== null && (
                <p className="pad">
                  exit code <strong>{data.exit_code}</strong>, reported at <When at={data.reported_at} as="second" />
                </p>
              )}
              {streams.map(([stream, text]) => (
                <section key={stream} className="log">
                  <h3>{stream}</h3>
                  <pre tabIndex={0}>{text.join("\n")}</pre>
                </section>
              ))}
            </>
          );
        }}
      </Await>
    </div>
  );
}
