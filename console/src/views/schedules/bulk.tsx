import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { PAUSE_FIELDS, pauseOptions } from "../../api/actions";
import { type BulkAct, bulkCommand } from "../../api/bulk-command";
import { ApiError, post } from "../../api/client";
import type { Values } from "../../api/commands";
import type { BulkChange, ScheduleInShort } from "../../api/types";
import { count, number, shortName } from "../../lib/format";
import { PAUSED } from "../../lib/states";
import { FormField, ReadOnlyNote, Sheet, useReadOnly } from "../../parts/act";
import { Command } from "../../parts/command";
import { ScheduleLink } from "../../parts/go";
import { Failure } from "../../parts/panel";

const ACTS: { act: BulkAct; word: string; effect: string }[] = [
  { act: "pause", word: "Pause", effect: "Nothing is dropped. Runs that have started go on." },
  { act: "resume", word: "Resume", effect: "The jobs that waited go on." },
  { act: "enable", word: "Enable", effect: "Their triggers fire from now on. Earlier events do not count." },
  { act: "disable", word: "Disable", effect: "Their waiting jobs are dropped, on record. Their runs go on." },
];
const AT_ONCE = 100;
const ASK_FROM = 10;

interface Progress {
  done: number;
  changed: string[];
  unchanged: string[];
  failed: BulkChange["failed"];
}

const NOTHING_YET: Progress = { done: 0, changed: [], unchanged: [], failed: [] };

/** One action on many: who fits, a dry run, a confirmation, progress, and the reason of each that failed. */
export function BulkDialog({ rows, filter, close }: { rows: ScheduleInShort[]; filter: string; close: () => void }) {
  // What is paused is most likely to be resumed.
  const [act, setAct] = useState<BulkAct>(() => (rows.every((row) => PAUSED.includes(row.state)) ? "resume" : "pause"));
  const [values, setValues] = useState<Values>({ mode: "hold" });
  const [planned, setPlanned] = useState<Progress | null>(null);
  const [done, setDone] = useState<Progress | null>(null);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<unknown>(null);
  const readOnly = useReadOnly();
  const queries = useQueryClient();
  const names = useMemo(() => rows.map((row) => row.name), [rows]);
  const command = useMemo(() => bulkCommand(act, names, filter, values), [act, names, filter, values]);
  const effect = ACTS.find((known) => known.act === act)?.effect;

  const choose = (next: BulkAct) => {
    setAct(next);
    setDone(null);
  };
  const latest = useRef(0);
  const send = async (dryRun: boolean) => {
    const mine = ++latest.current;
    setBusy(true);
    setError(null);
    let progress = NOTHING_YET;
    const tell = dryRun ? setPlanned : setDone;
    try {
      for (const part of inParts(names)) {
        const { ns, app, short } = part;
        const body = { action: act, names: short, dry_run: dryRun, ...(act === "pause" ? pauseOptions(values) : {}) };
        const answer = await post("/v1/namespaces/{ns}/apps/{app}/bulk", { ns, app }, { body });
        progress = {
          done: progress.done + short.length,
          changed: [...progress.changed, ...answer.changed],
          unchanged: [...progress.unchanged, ...answer.unchanged],
          failed: [...progress.failed, ...answer.failed],
        };
        if (mine !== latest.current) return; // the action or its options have changed since
        tell(progress);
      }
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, { code: "error", message: String(failure) }));
    } finally {
      if (mine === latest.current) setBusy(false);
      if (!dryRun) queries.invalidateQueries();
    }
  };

  // A dry run is of one action with its options. That of a few schedules needs no click.
  useEffect(() => {
    setPlanned(null);
    if (names.length <= AT_ONCE) void send(true);
  }, [act, values, names]);

  // The button that acted is gone then, and the focus must stay in the dialog: Escape closes it.
  const leave = useRef<HTMLButtonElement>(null);
  const over = done !== null;
  useEffect(() => {
    if (over) leave.current?.focus();
  }, [over]);

  const ready = planned !== null && planned.done === names.length;
  const mustType = (planned?.changed.length ?? 0) > ASK_FROM;
  const confirmed = !mustType || typed.replaceAll(",", "").trim() === String(planned?.changed.length);
  const able = ready && !busy && !readOnly && confirmed && planned.changed.length > 0;
  return (
    <Sheet title={`Act on ${count(names.length, "schedule")}`} close={close} wide>
      <div className="toolbar">
        <div className="chips">
          {ACTS.map((known) => (
            <button key={known.act} type="button" aria-pressed={act === known.act} onClick={() => choose(known.act)}>
              {known.word}
            </button>
          ))}
        </div>
      </div>
      <p className="effect after">{effect}</p>
      {act === "pause" &&
        PAUSE_FIELDS.map((field) => (
          <FormField
            key={field.name}
            field={field}
            value={values[field.name] ?? ""}
            set={(value) => setValues({ ...values, [field.name]: value })}
          />
        ))}
      <Command text={command.text} shown={command.shown} />
      <Outcome title="Would change" progress={planned} total={names.length} shown={done === null} />
      <Outcome title="Changed" progress={done} total={names.length} shown={done !== null} />
      {error !== null && <Failure error={error} />}
      {ready && done === null && mustType && (
        <label className="field after">
          <span>
            Type <strong>{planned.changed.length}</strong> to confirm
          </span>
          <input
            value={typed}
            inputMode="numeric"
            onChange={(event) => setTyped(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && able && void send(false)}
          />
        </label>
      )}
      <ReadOnlyNote>dry runs only</ReadOnlyNote>
      <footer>
        <button ref={leave} type="button" className="button" onClick={close}>
          {done ? "Close" : "Leave"}
        </button>
        {done === null && (
          <button
            type="button"
            className={ready ? "button" : "button primary"}
            disabled={busy}
            onClick={() => send(true)}
          >
            Dry run
          </button>
        )}
        {ready && done === null && (
          <button
            type="button"
            className={act === "disable" ? "button danger" : "button primary"}
            disabled={!able}
            onClick={() => send(false)}
          >
            {ACTS.find((known) => known.act === act)?.word} {number(planned.changed.length)}
          </button>
        )}
      </footer>
    </Sheet>
  );
}

function Outcome({
  title,
  progress,
  total,
  shown,
}: {
  title: string;
  progress: Progress | null;
  total: number;
  shown: boolean;
}) {
  if (!progress || !shown) return null;
  return (
    <div className="outcome" role="status">
      <progress max={total} value={progress.done} aria-label={title} />
      <p>
        <strong>
          {title} {number(progress.changed.length)}
        </strong>
        , {number(progress.unchanged.length)} stay as they are
        {progress.failed.length > 0 && <span className="bad-text">, {number(progress.failed.length)} fail</span>}
      </p>
      {progress.changed.length > 0 && (
        <p className="faint clamp">{progress.changed.slice(0, 40).map(shortName).join(", ")}</p>
      )}
      {progress.failed.slice(0, 50).map((failed) => (
        <p key={failed.name}>
          <span className="bad">✗</span> <ScheduleLink name={failed.name} /> {failed.error.message}
        </p>
      ))}
    </div>
  );
}

/** The names app by app, at most a hundred at once. */
function inParts(names: string[]): { ns: string; app: string; short: string[] }[] {
  const byApp = new Map<string, string[]>();
  for (const name of names) {
    const app = name.split(".").slice(0, 2).join(".");
    byApp.set(app, [...(byApp.get(app) ?? []), name]);
  }
  return [...byApp].flatMap(([full, all]) => {
    const [ns = "", app = ""] = full.split(".");
    const count = Math.ceil(all.length / AT_ONCE);
    return Array.from({ length: count }, (_, part) => ({
      ns,
      app,
      short: all.slice(part * AT_ONCE, (part + 1) * AT_ONCE),
    }));
  });
}
