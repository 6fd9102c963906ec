import { Fragment } from "react";
import type { StoredDataset } from "../api/types";
import { useNs, useZone } from "../frame/place";
import { useNow, useNowBy } from "../frame/settings";
import {
  ago,
  asWritten,
  between,
  duration,
  lateness,
  millis,
  NOTHING,
  partition,
  partitionPath,
  type Side,
  since,
  withoutNamespace,
} from "../lib/format";
import { type Begun, lateBy, missedBy } from "../lib/late";
import { type Noun, pieces, withShortIds } from "../lib/sentence";
import { lookOfState, type StateLook } from "../lib/states";
import { full, type Precision, show } from "../lib/zone";
import { Go } from "./go";

interface StateProps {
  state: string;
  /** The look of a state that is not one of a run, job or schedule, such as that of a period. */
  look?: StateLook;
  word?: boolean;
}

/** A state: its shape and its word. */
export function State({ state, look = lookOfState(state), word = true }: StateProps) {
  return (
    <span className={`state ${look.tone}`} title={look.means}>
      <span className={look.glyph === "‖" ? "glyph pause" : "glyph"} aria-hidden="true">
        {look.glyph}
      </span>
      {word ? <span className="word">{state}</span> : <span className="unseen">{state}</span>}
    </span>
  );
}

/** A sentence of the API: nouns are links, instants in the reader's zone, names without the namespace of the page.
 * Commands stay as one types them. */
export function Reason({ text, refs, short = false }: { text: string; refs?: Noun[]; short?: boolean }) {
  const ns = useNs();
  return (
    <span
      className={short ? "reason short" : "reason"}
      title={short || withShortIds(asWritten(text)) !== text ? text : undefined}
      dir="auto"
    >
      {pieces(text, refs).map((piece, index) => (
        <Fragment key={index}>
          {piece.kind === "link" ? (
            <Go to={piece.to} search={piece.search}>
              {withShortIds(withoutNamespace(piece.text, ns))}
            </Go>
          ) : piece.kind === "instant" ? (
            <When at={piece.text} as="second" />
          ) : piece.kind === "command" ? (
            <code>{piece.text}</code>
          ) : (
            withShortIds(withoutNamespace(piece.text, ns))
          )}
        </Fragment>
      ))}
    </span>
  );
}

/** An instant, absolute in the reader's zone; its title has all of it. */
export function When({ at, as = "minute" }: { at: string | null | undefined; as?: Precision }) {
  const zone = useZone();
  const ms = millis(at);
  if (ms === null) return <span className="faint">{NOTHING}</span>;
  return (
    <time dateTime={at ?? undefined} title={full(ms, zone)}>
      {show(ms, zone, as)}
    </time>
  );
}

/** An instant relative to now, `3 m ago`; its title has the instant with its zone. What can only be past, or next, is
 * never shown on the other side of now. */
export function Ago({ at, side }: { at: string | null | undefined; side?: Side }) {
  const zone = useZone();
  const now = useNow();
  const ms = millis(at);
  if (ms === null) return <span className="faint">{NOTHING}</span>;
  return (
    <time dateTime={at ?? undefined} title={full(ms, zone)}>
      {ago(at, now, side)}
    </time>
  );
}

/** Whether a dataset with `fresh` is late; nothing for any other one. */
export function Freshness({ of }: { of: StoredDataset }) {
  if (!of.freshness) return null;
  return of.freshness.late ? (
    <span className="bad">
      ◷ late since <Ago at={of.freshness.fresh_until} />
    </span>
  ) : (
    <span>
      until <When at={of.freshness.fresh_until} />
    </span>
  );
}

/** In a cell whose value is still read, or could not be read. */
export function Unread({ error }: { error: Error | null | undefined }) {
  return error ? (
    <span className="wait" title={error.message}>
      no answer
    </span>
  ) : (
    <span className="faint">
      <span aria-hidden="true">…</span>
      <span className="unseen">Loading</span>
    </span>
  );
}

/** For how long something has lasted: `14 m`. */
export function Lasts({ from }: { from: string | null | undefined }) {
  const now = useNow();
  return <span title={from ?? undefined}>{since(from, now)}</span>;
}

/** How long something took, or has taken so far. */
export function Took({
  from,
  to,
  living = false,
}: {
  from: string | null | undefined;
  to?: string | null;
  living?: boolean;
}) {
  const now = useNowBy(living ? 1000 : 60_000);
  const ms = to || !living ? between(from, to) : now - (millis(from) ?? now);
  return <span className={living ? "num living" : "num"}>{duration(ms)}</span>;
}

interface Measured {
  took_ms?: number | null;
  started_at: string | null;
}

/** How long an attempt ran, as the API measures it; of one that goes on, for how long it has run since its start. */
export function Ran({ run }: { run: Measured }) {
  const began = run.took_ms == null ? millis(run.started_at) : null;
  const now = useNowBy(began === null ? 60_000 : 1000);
  const ms = run.took_ms ?? (began === null ? null : now - began);
  return <span className={began === null ? "num" : "num living"}>{duration(ms)}</span>;
}

/** How late something was; beyond its deadline in the colour of failures. */
export function Late({ ms, beyond = false }: { ms: number | null | undefined; beyond?: boolean }) {
  return <span className={beyond ? "num bad-text" : "num"}>{lateness(ms)}</span>;
}

/** How late a run is; beyond a deadline in the colour of failures. */
export function LateRun({ run }: { run: Begun & { late: boolean } }) {
  const now = useNow();
  const by = lateBy(run, now);
  return <Late ms={by} beyond={run.late || missedBy(run) > 0 || (by ?? 0) > (run.late_by_ms ?? 0)} />;
}

/** The values of a partition; its keys are in the title. */
export function Partition({ keys }: { keys: Record<string, string> | null | undefined }) {
  return keys ? (
    <span className="partition" title={partitionPath(keys)}>
      {partition(keys)}
    </span>
  ) : null;
}
