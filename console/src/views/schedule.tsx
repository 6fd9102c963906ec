import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type ReactNode, useContext } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { schedule } from "../api/queries";
import type { StoredSchedule, WhySchedule } from "../api/types";
import { useKeys } from "../frame/keys";
import { ScheduleZone, useGo, useNs, usePlace, useZone } from "../frame/place";
import { tell } from "../frame/settings";
import { events } from "../lib/fires";
import { count, dagOfStart, partition, person, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { ofPartition } from "../lib/sentence";
import { PAUSED } from "../lib/states";
import { show, zoneLabel } from "../lib/zone";
import { ActButton, useAct } from "../parts/act";
import { Command, copy } from "../parts/command";
import { Chips } from "../parts/filters";
import { Go, JobLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { JobsTable, RecordsTable, RunsTable } from "../parts/runs-table";
import { Spark } from "../parts/spark";
import { openTab, type Tab, Tabs } from "../parts/tabs";
import { Ago, Lasts, Reason, State, When } from "../parts/text";
import { Constraints, TriggerTree } from "../parts/tree";
import { BackfillsTable } from "./schedule/backfills";
import { Calendar } from "./schedule/calendar";
import { Versions } from "./schedule/versions";

export function Schedule() {
  const ns = useNs();
  const { app = "", name: short = "" } = useParams({ strict: false }) as { app?: string; name?: string };
  const name = `${ns}.${app}.${short}`;
  const definition = useQuery(schedule.definition(name));
  return (
    <ScheduleZone.Provider value={definition.data?.zone ?? null}>
      <div className="page">
        <Await query={definition}>{(data) => <Page key={name} name={name} definition={data} />}</Await>
      </div>
    </ScheduleZone.Provider>
  );
}

function Page({ name, definition }: { name: string; definition: StoredSchedule }) {
  const { search } = usePlace();
  const go = useGo();
  const open = useAct();
  const why = useQuery(schedule.why(name));
  const waiting = events(why.data?.jobs ?? []);
  const tabs: Tab[] = [
    { id: "runs", word: "Runs" },
    { id: "jobs", word: "Waiting jobs", count: why.data ? String(waiting) : undefined },
    { id: "records", word: "Never ran" },
    { id: "backfills", word: "Backfills" },
    { id: "versions", word: "Versions", count: String(definition.version) },
    { id: "definition", word: "Definition" },
  ];
  const tab = openTab(tabs, search.tab);
  const paused = PAUSED.includes(definition.state);
  // Only the DAG itself changes a schedule that it owns.
  const able = definition.dag
    ? []
    : [
        actions.run(name, definition.by ?? []),
        ...(paused ? [actions.resume(name)] : definition.state === "enabled" ? [actions.pause(name)] : []),
        definition.state === "enabled" || paused ? actions.disable(name) : actions.enable(name),
      ];
  useKeys({
    w: () => go(paths.schedule(name), { tab: "jobs" }),
    c: () => copy(commands.describe("schedule", name)).then(() => tell("The command is copied")),
    r: definition.dag ? undefined : () => open(actions.run(name, definition.by ?? [])),
    p: definition.dag ? undefined : () => open(paused ? actions.resume(name) : actions.pause(name)),
  });
  return (
    <>
      <header className="page-head">
        <h1>{shortName(name)}</h1>
        <State state={definition.state} />
        <Go className="faint" to={paths.schedule(name)} search={{ tab: "versions" }}>
          version {definition.version}
        </Go>
        {definition.dag && <Go to={paths.dag(definition.dag)}>part of the DAG {shortName(definition.dag)}</Go>}
        {Object.entries(definition.tags ?? {}).map(([key, value]) => (
          <span key={key} className="tag">
            {key}={value}
          </span>
        ))}
        <span className="space" />
        <span className="tools">
          {able.map((action) => (
            <ActButton key={action.title} action={action} />
          ))}
          {(!definition.dag || dagOfStart(name)) && (
            <Go className="button" to={paths.backfill(name)}>
              Backfill
            </Go>
          )}
        </span>
      </header>
      {definition.description && (
        <p className="faint clamp" dir="auto">
          {definition.description}
        </p>
      )}
      <Await query={why}>{(data) => <WhyPanel why={data} definition={definition} />}</Await>
      <div className="grid days-next">
        <Panel title="Days" note="26 weeks; a day opens its runs">
          <div className="body">
            <Calendar name={name} />
          </div>
        </Panel>
        <Panel title="Next">
          <Next name={name} skips={definition.skips} command={<Command text={commands.preview(name)} />} />
        </Panel>
      </div>
      <section className="panel">
        <Tabs tabs={tabs} />
        {tab === "runs" && <RunsTab name={name} />}
        {tab === "jobs" && <JobsTab name={name} />}
        {tab === "records" && <RecordsTab name={name} />}
        {tab === "backfills" && <BackfillsTable name={name} />}
        {tab === "versions" && (
          <div className="pad">
            <Versions name={name} />
          </div>
        )}
        {tab === "definition" && <Definition definition={definition} />}
      </section>
    </>
  );
}

function WhyPanel({ why, definition }: { why: WhySchedule; definition: StoredSchedule }) {
  const { search, change } = usePlace();
  const chosen = why.jobs.find((job) => job.job_id === search.open) ?? why.jobs[0];
  const refs = ofPartition([...(why.refs ?? []), ...(chosen?.refs ?? [])], partition(chosen?.correlation));
  const tree = chosen ? chosen.tree : why.tree;
  return (
    <Panel title="Why" className="why" tools={<Command text={commands.why("schedule", why.schedule)} />}>
      <div className="body">
        <p className="because">
          <Reason
            text={definition.pause_reason ? `${why.why} (${definition.pause_reason})` : (chosen?.why ?? why.why)}
            refs={refs}
          />
        </p>
        {chosen && (
          <p className="faint">
            for <Lasts from={chosen.since} />; it goes on with <Reason text={chosen.wakes} refs={refs} />
          </p>
        )}
      </div>
      <div className="grid two split">
        <div>
          <div className="sub-head">
            <h3>Trigger</h3>
            {why.jobs.length > 0 && (
              <label>
                <span className="unseen">Waiting job</span>
                <select value={chosen?.job_id} onChange={(event) => change({ open: event.target.value }, true)}>
                  {why.jobs.map((job, index) => (
                    <option key={job.job_id} value={job.job_id}>
                      {Object.entries(job.correlation ?? {})
                        .map(([key, value]) => `${key}=${value}`)
                        .join(" ") || `job ${index + 1}${job.count > 1 ? `, ${count(job.count, "event")}` : ""}`}
                    </option>
                  ))}
                </select>
              </label>
            )}
            {chosen && (
              <span className="faint">
                {count(events(why.jobs), "waiting job")} · <JobLink id={chosen.job_id}>open it</JobLink>
              </span>
            )}
          </div>
          {tree ? (
            <TriggerTree node={tree} refs={refs} at={partition(chosen?.correlation)} />
          ) : (
            <Flat job={chosen} definition={definition} />
          )}
        </div>
        <div>
          <div className="sub-head">
            <h3>Constraints</h3>
            {!chosen && <span className="faint">for a job that would begin now</span>}
          </div>
          <Constraints
            constraints={chosen?.constraints ?? why.constraints ?? []}
            limits={chosen ? chosen.limits : why.limits}
            refs={refs}
          />
        </div>
      </div>
    </Panel>
  );
}

/** The trigger in words, where the API has no tree. */
function Flat({ job, definition }: { job: WhySchedule["jobs"][number] | undefined; definition: StoredSchedule }) {
  return (
    <ul className="constraints">
      {!job && (
        <li>
          <span className="glyph wait">…</span>
          <Reason text={definition.triggered_by} />
        </li>
      )}
      {job && job.arrived.length + job.missing.length === 0 && (
        <li>
          <span className="glyph ok">✓</span>
          <span>
            met: <Reason text={definition.triggered_by} />
          </span>
        </li>
      )}
      {job?.arrived.map((text) => (
        <li key={text}>
          <span className="glyph ok">✓</span>
          <Reason text={text} />
        </li>
      ))}
      {job?.missing.map((text) => (
        <li key={text}>
          <span className="glyph wait">…</span>
          <Reason text={text} />
        </li>
      ))}
    </ul>
  );
}

/** The next fires of a schedule, or of the start of a DAG. Each can be left out. */
/** The next fires. `command` stands below them: it is wider than a narrow panel. */
export function Next({ name, skips, command }: { name: string; skips: string[]; command?: ReactNode }) {
  const query = useQuery(schedule.preview(name, 6));
  const open = useAct();
  return (
    <Await query={query}>
      {(data) =>
        data.items.length === 0 ? (
          <Empty>
            No clock starts it: <Reason text={data.description} />.
          </Empty>
        ) : (
          <>
            <table>
              <tbody>
                {data.items.map((at, index) => {
                  const skipped = skips.some((skip) => Date.parse(skip) === Date.parse(at));
                  return (
                    <tr key={at}>
                      <td className="fit">
                        <When at={at} as="second" />
                        <InOtherZone at={at} />
                      </td>
                      <td className="faint">{skipped ? "skipped" : <Ago side="next" at={data.due[index] ?? at} />}</td>
                      <td className="end">
                        <button
                          type="button"
                          className="link"
                          onClick={() => open(skipped ? actions.unskip(name, at) : actions.skip(name, at))}
                        >
                          {skipped ? "Unskip" : "Skip"}
                        </button>
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            {command && <p className="below">{command}</p>}
          </>
        )
      }
    </Await>
  );
}

/** The wall time in the zone of the schedule, or in UTC if that zone is shown already; nothing if both are the same. */
function InOtherZone({ at }: { at: string }) {
  const own = useContext(ScheduleZone);
  const shown = useZone();
  const other = own && own !== shown ? own : shown === "UTC" ? null : "UTC";
  if (other === null) return null;
  return (
    <span className="sub">
      {show(Date.parse(at), other, "second")} {zoneLabel(other)}
    </span>
  );
}

const RUNS = ["RUNNING", "RETRYING", "SUCCEEDED", "FAILED", "CANCELLED"];

function RunsTab({ name }: { name: string }) {
  const { search } = usePlace();
  const query = useQuery(schedule.runs(name, search.state ? { state: search.state } : {}));
  return (
    <Await query={query}>
      {({ items }) => {
        const ended = [...items].reverse().filter((run) => run.ended_at);
        const known = (values: (number | null)[]) => values.filter((value): value is number => value !== null);
        return (
          <>
            {(items.length > 0 || search.state) && (
              <div className="toolbar pad">
                <Chips of="state" label="State" options={RUNS} />
                <Go to={paths.view(name.split(".")[0] ?? "", "runs")} search={{ schedule: name, state: search.state }}>
                  All its runs
                </Go>
              </div>
            )}
            {ended.length > 0 && (
              <div className="sparks">
                <Spark word="Took" values={known(ended.map((run) => run.took_ms))} />
                <Spark word="Waited" values={ended.map((run) => run.waited_ms)} />
                <Spark word="Late" values={known(ended.map((run) => run.sends?.late_p50 ?? run.late_by_ms))} />
              </div>
            )}
            <RunsTable
              runs={items}
              ofOne
              empty={
                <Empty command={commands.run(name)}>
                  {search.state ? `No run is ${search.state}.` : "No runs yet."} Its trigger starts one once it is met;
                  the command starts one now.
                </Empty>
              }
            />
          </>
        );
      }}
    </Await>
  );
}

function JobsTab({ name }: { name: string }) {
  const query = useQuery(schedule.jobs(name));
  return (
    <Await query={query}>
      {({ items }) => (
        <JobsTable
          jobs={items}
          ofOne
          empty={<Empty>Nothing waits. The next event of its trigger begins a job.</Empty>}
        />
      )}
    </Await>
  );
}

const RECORDS = ["ABORTED", "DROPPED", "EXPIRED", "SKIPPED", "COALESCED", "LATE"];

function RecordsTab({ name }: { name: string }) {
  const { search } = usePlace();
  const query = useQuery(schedule.records(name));
  return (
    <Await query={query}>
      {({ items }) => (
        <>
          {items.length > 0 && (
            <div className="toolbar pad">
              <Chips of="state" label="State" options={RECORDS} />
            </div>
          )}
          <RecordsTable
            records={items.filter((record) => !search.state || record.kind === search.state)}
            ofOne
            empty={
              <Empty>
                {items.length > 0
                  ? `None of the newest ${items.length} is ${search.state}.`
                  : "Nothing was aborted, dropped, skipped, coalesced or has expired."}
              </Empty>
            }
          />
        </>
      )}
    </Await>
  );
}

function Definition({ definition }: { definition: StoredSchedule }) {
  const { name, version, updated_at, updated_by } = definition;
  const versions = useQuery(schedule.versions(name));
  const made = versions.data?.items.find((one) => one.version === version);
  return (
    <div className="pad grid">
      <dl className="facts">
        <dt>Workflow</dt>
        <dd>
          <code>{definition.workflow}</code>
        </dd>
        <dt>Triggered by</dt>
        <dd dir="auto">{definition.triggered_by}</dd>
        {definition.by && definition.by.length > 0 && (
          <>
            <dt>One job for each</dt>
            <dd>{definition.by.join(", ")}</dd>
          </>
        )}
        <dt>Zone</dt>
        <dd>{definition.zone}</dd>
        <dt>Version</dt>
        <dd>
          {version}
          {made ? (
            <>
              , <When at={made.created_at} as="second" /> by{" "}
              <span title={made.created_by}>{person(made.created_by)}</span>
            </>
          ) : (
            versions.error && <span className="wait">, its date is not known: {versions.error.message}</span>
          )}
        </dd>
        <dt>State since</dt>
        <dd>
          <When at={updated_at} as="second" /> by <span title={updated_by}>{person(updated_by)}</span>
        </dd>
        <dt>Command</dt>
        <dd>
          <Command text={commands.get("schedule", name)} />
        </dd>
      </dl>
      <pre className="source">{JSON.stringify(definition, null, 2)}</pre>
    </div>
  );
}
