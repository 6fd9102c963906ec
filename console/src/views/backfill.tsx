import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { fill, send } from "../api/client";
import { commands } from "../api/commands";
import { schedule } from "../api/queries";
import type { PlanOfBackfill } from "../api/types";
import { ScheduleZone, useGo, useNs, useZone } from "../frame/place";
import { tell } from "../frame/settings";
import { partition, partitionPath, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { fromWall } from "../lib/zone";
import { ReadOnlyNote, useReadOnly } from "../parts/act";
import { Command } from "../parts/command";
import { ScheduleLink } from "../parts/go";
import { Await, Failure, Panel } from "../parts/panel";
import { When } from "../parts/text";

/** A schedule run for the past: a range, a dry run of it, then the beginning. */
export function Backfill() {
  const ns = useNs();
  const { app = "", name: short = "" } = useParams({ strict: false }) as { app?: string; name?: string };
  const name = `${ns}.${app}.${short}`;
  const definition = useQuery(schedule.definition(name));
  return (
    <ScheduleZone.Provider value={definition.data?.zone ?? null}>
      <div className="page narrow">
        <div className="page-head">
          <h1>
            Backfill of <ScheduleLink name={name} />
          </h1>
        </div>
        <Await query={definition}>{(data) => <Wizard name={name} byData={(data.fires_per_day ?? 0) === 0} />}</Await>
      </div>
    </ScheduleZone.Provider>
  );
}

interface Range {
  from: string;
  to: string;
}

function Wizard({ name, byData }: { name: string; byData: boolean }) {
  const zone = useZone();
  const go = useGo();
  const queries = useQueryClient();
  const readOnly = useReadOnly();
  const [range, setRange] = useState<Range>({ from: "", to: "" });
  const [concurrency, setConcurrency] = useState(1);
  const [newestFirst, setNewestFirst] = useState(false);
  const [plan, setPlan] = useState<PlanOfBackfill | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [key, setKey] = useState(() => crypto.randomUUID());

  const [from, to] = [fromWall(range.from, zone), fromWall(range.to, zone)];
  // Another request has another key; a repeat of one, after an answer was lost, has the same and counts once.
  const edit = (change: () => void) => {
    change();
    setPlan(null);
    setKey(crypto.randomUUID());
  };
  const ends = byData ? range : { from: from?.instant ?? "", to: to?.instant ?? "" };
  const body = {
    ...(byData
      ? {
          partitions: {
            ...(range.from ? { from: keysOf(range.from) } : {}),
            ...(range.to ? { to: keysOf(range.to) } : {}),
          },
        }
      : { from: ends.from, to: ends.to }),
    concurrency,
    order: newestFirst ? "newest" : "oldest",
  };
  const submit = async (dryRun: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const { ns, app, name: short } = parts(name);
      const path = fill("/v1/namespaces/{ns}/apps/{app}/schedules/{name}/backfills", { ns, app, name: short });
      const answer = await send<PlanOfBackfill>("POST", path, {
        body: { ...body, dry_run: dryRun },
        key: dryRun ? undefined : key,
      });
      if (dryRun) setPlan(answer);
      else {
        tell("The backfill has begun");
        queries.invalidateQueries();
        go(paths.schedule(name), { tab: "backfills" });
      }
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const command = (dryRun: boolean) => commands.backfill(name, { ...ends, concurrency, newestFirst, dryRun });
  return (
    <>
      <Panel title="1. Range">
        <form
          className="body"
          onSubmit={(event: FormEvent) => {
            event.preventDefault();
            submit(true);
          }}
        >
          <p className="effect">
            {byData
              ? "The registered partitions from the first to the last, both included. The first keys are enough: year=2013/month=1."
              : `The fires from the first instant (included) to the last (excluded), in ${zone}.`}
          </p>
          <div className="grid two after">
            {(["from", "to"] as const).map((end) => (
              <label key={end} className="field">
                <span>{end === "from" ? "From" : "To"}</span>
                <input
                  type={byData ? "text" : "datetime-local"}
                  value={range[end]}
                  required={!byData}
                  placeholder={byData ? "year=2013/month=1/day=1" : undefined}
                  onChange={(event) => edit(() => setRange({ ...range, [end]: event.target.value }))}
                />
                {!byData && <Note note={(end === "from" ? from : to)?.note ?? null} />}
              </label>
            ))}
            <label className="field">
              <span>How many runs at a time</span>
              <input
                type="number"
                min={1}
                max={100}
                value={concurrency}
                onChange={(event) => edit(() => setConcurrency(Math.max(1, Number(event.target.value))))}
              />
            </label>
            <label className="field check">
              <input
                type="checkbox"
                checked={newestFirst}
                onChange={(event) => edit(() => setNewestFirst(event.target.checked))}
              />
              Begin with the newest
            </label>
          </div>
          {(byData ? ends.from || ends.to : ends.from && ends.to) ? <Command text={command(true)} /> : <Incomplete />}
          <footer className="form-end">
            <button type="submit" className="button primary" disabled={busy}>
              Dry run
            </button>
          </footer>
        </form>
        {error !== null && <Failure error={error} />}
      </Panel>
      {plan && (
        <Panel title="2. What would run">
          <div className="body">
            <p className="because">
              {plan.total === null
                ? "An unknown number of runs"
                : plan.total === 1
                  ? "1 run"
                  : `${plan.total.toLocaleString("en-US")} runs`}{" "}
              of {shortName(name)}
            </p>
            <dl className="facts">
              <dt>First</dt>
              <dd>
                <Entries entries={plan.first} />
              </dd>
              <dt>Last</dt>
              <dd>
                <Entries entries={plan.last} />
              </dd>
            </dl>
            <p className="after">
              <Command text={command(false)} />
            </p>
            <ReadOnlyNote>dry runs only</ReadOnlyNote>
            <footer className="form-end">
              <button
                type="button"
                className="button primary"
                disabled={busy || readOnly || plan.total === 0}
                onClick={() => submit(false)}
              >
                Begin the backfill
              </button>
            </footer>
          </div>
        </Panel>
      )}
    </>
  );
}

/** In place of a command that would be refused. */
export function Incomplete() {
  return <p className="faint">The command stands here once the form is complete.</p>;
}

export function Note({ note }: { note: "gap" | "overlap" | null }) {
  if (note === "gap")
    return (
      <small className="wait">
        This time does not exist there: clocks change. The instant after the change is taken.
      </small>
    );
  if (note === "overlap")
    return <small className="wait">This time exists twice there: clocks change. The first is taken.</small>;
  return null;
}

export function Entries({ entries }: { entries: unknown[] }) {
  if (entries.length === 0) return <>–</>;
  return (
    <>
      {entries.map((entry, index) => (
        <span key={index}>
          {index > 0 && ", "}
          {typeof entry === "string" ? (
            <When at={entry} />
          ) : (
            <span title={partitionPath(entry as Record<string, string>)}>
              {partition(entry as Record<string, string>)}
            </span>
          )}
        </span>
      ))}
    </>
  );
}

/** The keys of `year=2013/month=1`. With the names of a dataset's keys, `2013/1` has the same. */
export function keysOf(text: string, names: readonly string[] = []): Record<string, string> {
  const values = text.trim().split("/");
  if (!text.includes("=") && values.length === names.length && values.every(Boolean))
    return Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""]));
  return Object.fromEntries(
    values
      .filter((part) => part.includes("="))
      .map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
  );
}

function parts(name: string): { ns: string; app: string; name: string } {
  const [ns = "", app = "", ...rest] = name.split(".");
  return { ns, app, name: rest.join(".") };
}
