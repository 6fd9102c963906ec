import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { fill, send } from "../api/client";
import { commands } from "../api/commands";
import { dataset, schedule } from "../api/queries";
import type { EntryNow, PlanOfBackfill } from "../api/types";
import { ScheduleZone, useGo, useNs, usePlace, useZone } from "../frame/place";
import { tell } from "../frame/settings";
import { partition, partitionPath, shortName } from "../lib/format";
import { datasetOf, exampleOf, firstKeys, keysOf, pathOf } from "../lib/layout";
import { paths } from "../lib/paths";
import { lookOfPeriod } from "../lib/states";
import { fromWall, toWall } from "../lib/zone";
import { ReadOnlyNote, useReadOnly } from "../parts/act";
import { Command } from "../parts/command";
import { Go, ScheduleLink } from "../parts/go";
import { WallField } from "../parts/moment";
import { Await, Failure, Panel } from "../parts/panel";
import { Reason, State, When } from "../parts/text";

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
        <Await query={definition}>
          {(data) => (
            <Wizard
              name={name}
              byData={(data.fires_per_day ?? 0) === 0}
              per={data.per?.each ?? null}
              counted={datasetOf(data.trigger)}
            />
          )}
        </Await>
      </div>
    </ScheduleZone.Provider>
  );
}

const ONLY = ["all", "missing", "failed"] as const;
type Only = (typeof ONLY)[number];

interface Range {
  from: string;
  to: string;
}

/** A label of a period of each length; shorter ones are named by their hour. */
const LABELS: Record<string, string> = {
  day: "2026-02-27",
  week: "2026-W09",
  month: "2026-02",
  quarter: "2026-Q1",
  year: "2026",
};

/** What a range of a schedule means. `example`: the keys of its partitions. */
function effectOf(byData: boolean, per: string | null, zone: string, example: string): string {
  if (per !== null)
    return "The periods from the first to the last, both included. One that its trigger would not start now is left out. A period that you name runs with what is there.";
  return byData
    ? `The registered partitions from the first to the last, both included.${firstKeys(example)}`
    : `The fires from the first instant (included) to the last (excluded), in ${zone}.`;
}

interface WizardProps {
  name: string;
  byData: boolean;
  per: string | null;
  /** The dataset whose partitions its trigger counts. */
  counted: string | null;
}

function Wizard({ name, byData: isByData, per, counted }: WizardProps) {
  const zone = useZone();
  const go = useGo();
  const queries = useQueryClient();
  const readOnly = useReadOnly();
  const { search } = usePlace();
  const byData = isByData || search.partition !== undefined;
  const layout = useQuery({
    ...dataset.definition(counted ?? ""),
    enabled: byData && per === null && counted !== null,
  });
  const keys = layout.data?.keys ?? [];
  const example = per !== null ? `${per}=${LABELS[per] ?? "2026-02-27T07"}` : layout.data ? exampleOf(layout.data) : "";
  const wall = (at: string | undefined) => (at && !byData ? toWall(Date.parse(at), zone) : "");
  const [range, setRange] = useState<Range>({ from: wall(search.from), to: wall(search.to) });
  const [named, setNamed] = useState(byData ? (search.partition ?? "") : "");
  const [only, setOnly] = useState<Only>((search.only ?? "all") as Only);
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
  const partitions = named
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => pathOf(line, keys));
  const first = { from: pathOf(range.from, keys), to: pathOf(range.to, keys) };
  const ends = byData ? first : { from: from?.instant ?? "", to: to?.instant ?? "" };
  const body = {
    ...(partitions.length > 0
      ? { partitions: { values: partitions.map((line) => keysOf(line)) } }
      : byData
        ? {
            partitions: {
              ...(first.from ? { from: keysOf(first.from) } : {}),
              ...(first.to ? { to: keysOf(first.to) } : {}),
            },
          }
        : { from: ends.from, to: ends.to }),
    only,
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
  const command = (dryRun: boolean) =>
    commands.backfill(name, {
      ...(partitions.length > 0 ? { partitions } : ends),
      only,
      concurrency,
      newestFirst,
      dryRun,
    });
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
          <p className="effect">{effectOf(byData, per, zone, example)}</p>
          {byData && per === null && (
            <p className="faint after">
              {counted === null ? (
                "Its trigger counts no dataset: write the keys of its `by`."
              ) : layout.data ? (
                <>
                  Its partitions are those of <Go to={paths.dataset(counted)}>{counted.split(".").at(-1)}</Go>, with the
                  keys <code>{keys.join("/")}</code>.
                </>
              ) : layout.error ? (
                `The keys of ${counted} are not known: ${layout.error.message}`
              ) : (
                "Reading the keys of its partitions …"
              )}
            </p>
          )}
          <div className="grid two after">
            {(["from", "to"] as const).map((end) => (
              <label key={end} className="field">
                <span>{end === "from" ? "From" : "To"}</span>
                {byData ? (
                  <input
                    type="text"
                    value={range[end]}
                    required={end === "from" && !range.to}
                    disabled={partitions.length > 0}
                    placeholder={example && `such as ${example}`}
                    spellCheck={false}
                    onChange={(event) => edit(() => setRange({ ...range, [end]: event.target.value }))}
                  />
                ) : (
                  <WallField
                    value={range[end]}
                    required
                    disabled={partitions.length > 0}
                    take={(text) => edit(() => setRange({ ...range, [end]: text }))}
                  />
                )}
                {!byData && <Note note={(end === "from" ? from : to)?.note ?? null} />}
              </label>
            ))}
            {byData && (
              <label className="field">
                <span>Or these {per ? "periods" : "partitions"}, one a line</span>
                <textarea
                  rows={3}
                  value={named}
                  placeholder={example && `such as ${example}`}
                  spellCheck={false}
                  onChange={(event) => edit(() => setNamed(event.target.value))}
                />
              </label>
            )}
            <label className="field">
              <span>Which of them</span>
              <select value={only} onChange={(event) => edit(() => setOnly(event.target.value as Only))}>
                <option value="all">all that do not wait or run now</option>
                <option value="missing">those that have never run</option>
                <option value="failed">those that failed</option>
              </select>
            </label>
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
          {(byData ? ends.from || ends.to || partitions.length > 0 : ends.from && ends.to) ? (
            <Command text={command(true)} />
          ) : (
            <Incomplete />
          )}
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
              {plan.last.length > 0 && (
                <>
                  <dt>Last</dt>
                  <dd>
                    <Entries entries={plan.last} />
                  </dd>
                </>
              )}
            </dl>
            <EntriesNow plan={plan} />
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

const SHOWN = 100;

/** What a backfill does with an entry. A period that its trigger would not start is left out. */
function thenOf({ runs, state, code }: EntryNow): string {
  if (runs) return "runs";
  if (state === "waiting" || state === "running") return "left alone";
  return code === "trigger_unmet" ? "left out" : "–";
}

/** What became of each entry of the range so far. */
function EntriesNow({ plan }: { plan: PlanOfBackfill }) {
  const total = Object.values(plan.now).reduce((sum, many) => sum + many, 0);
  const counted = plan.entries.some((each) => each.need !== undefined);
  return (
    <table className="table after">
      <caption>
        The range now:{" "}
        {Object.entries(plan.now)
          .filter(([, many]) => many > 0)
          .map(([state, many]) => `${many} ${state}`)
          .join(", ")}
      </caption>
      <thead>
        <tr>
          <th>Of</th>
          {counted && <th>Partitions</th>}
          <th>Now</th>
          <th>Then</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {plan.entries.slice(0, SHOWN).map((each, index) => (
          <tr key={index}>
            <td>
              <Entries entries={[each.entry]} />
            </td>
            {counted && (
              <td>
                {each.have} of {each.need}
              </td>
            )}
            <td>
              <State state={each.state} look={lookOfPeriod(each.state)} />
            </td>
            <td>{thenOf(each)}</td>
            <td>{each.why && <Reason text={each.why} short />}</td>
          </tr>
        ))}
        {total > SHOWN && (
          <tr>
            <td colSpan={counted ? 5 : 4} className="faint">
              {(total - SHOWN).toLocaleString("en-US")} more
            </td>
          </tr>
        )}
      </tbody>
    </table>
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

function parts(name: string): { ns: string; app: string; name: string } {
  const [ns = "", app = "", ...rest] = name.split(".");
  return { ns, app, name: rest.join(".") };
}
