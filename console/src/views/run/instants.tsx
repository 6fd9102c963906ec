import type { Run } from "../../api/types";
import { useNowBy } from "../../frame/settings";
import { duration, millis } from "../../lib/format";
import { When } from "../../parts/text";

interface Part {
  word: string;
  from: number;
  to: number;
  tone: string;
}

/** The parts of a run's life, from its job to its end. Unknown instants are left out. */
export function lifeOf(run: Run, now: number): Part[] {
  const end = millis(run.ended_at) ?? now;
  const claimed = millis(run.claimed_at);
  const made = millis(run.created_at);
  // Before a job waits, it may gather what its trigger waits for.
  const waits = claimed === null ? made : Math.max(made ?? 0, claimed - run.waited_ms);
  const gathers = made !== null && waits !== null && waits - made >= 1000;
  const known = [
    { word: "gathered", at: gathers ? made : null, tone: "off" },
    { word: "waited", at: gathers ? waits : made, tone: "wait" },
    { word: "claimed", at: millis(run.claimed_at), tone: "off" },
    { word: "starting", at: millis(run.start_requested_at), tone: "start" },
    {
      word: "ran",
      at: millis(run.started_at),
      tone: run.state === "FAILED" || run.state === "RETRYING" ? "bad" : run.ended_at ? "ok" : "run",
    },
  ].filter((part): part is { word: string; at: number; tone: string } => part.at !== null && part.at <= end);
  return known.map(({ word, at, tone }, index) => ({ word, tone, from: at, to: known[index + 1]?.at ?? end }));
}

/** The instants of a run as one bar, and as text. */
export function Instants({ run }: { run: Run }) {
  const now = useNowBy(1000);
  const parts = lifeOf(run, now);
  const [from, to] = [parts[0]?.from ?? 0, parts.at(-1)?.to ?? 1];
  const facts: [string, string | null][] = [
    ["due", run.due_at],
    ["job made", run.created_at],
    ["claimed", run.claimed_at],
    ["start requested", run.start_requested_at],
    ["started", run.started_at],
    ["ended", run.ended_at],
  ];
  return (
    <div className="instants">
      <div
        className="instants-bar"
        role="img"
        aria-label={parts.map((part) => `${part.word} ${duration(part.to - part.from)}`).join(", ")}
      >
        {parts.map((part) => (
          <span
            key={part.word}
            className={`mark-${part.tone}`}
            title={`${part.word} ${duration(part.to - part.from)}`}
            style={{ width: `${Math.max(0.4, ((part.to - part.from) / Math.max(1, to - from)) * 100)}%` }}
          />
        ))}
      </div>
      <dl className="instants-facts">
        {parts.map((part) => (
          <div key={part.word}>
            <dt>
              <span className={`dot mark-${part.tone}`} /> {part.word}
            </dt>
            <dd>{duration(part.to - part.from)}</dd>
          </div>
        ))}
      </dl>
      <dl className="instants-facts">
        {facts
          .filter(([, at]) => at)
          .map(([word, at]) => (
            <div key={word}>
              <dt>{word}</dt>
              <dd>
                <When at={at} as="clock" />
              </dd>
            </div>
          ))}
      </dl>
    </div>
  );
}
