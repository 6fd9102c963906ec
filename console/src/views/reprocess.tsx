import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { actions } from "../api/actions";
import { fill, send } from "../api/client";
import { commands } from "../api/commands";
import { dataset, namespace } from "../api/queries";
import type { PlanOfReprocess, StoredReprocess } from "../api/types";
import { useGo, useNs, usePlace, useZone } from "../frame/place";
import { tell } from "../frame/settings";
import { count, number, partition, partitionPath, shortId, shortName } from "../lib/format";
import { keysOf } from "../lib/layout";
import { paths } from "../lib/paths";
import { fromWall } from "../lib/zone";
import { ActButton, ReadOnlyNote, useReadOnly } from "../parts/act";
import { Command } from "../parts/command";
import { Chips } from "../parts/filters";
import { Go, ScheduleLink } from "../parts/go";
import { WallField } from "../parts/moment";
import { Await, Empty, Failure, Panel } from "../parts/panel";
import { Ago, Reason, State } from "../parts/text";
import { Entries, Incomplete, Note } from "./backfill";
import { Counts } from "./schedule/backfills";

/** Run something again with everything downstream of it: what to begin with, a dry run, then the beginning. */
export function Reprocess() {
  const ns = useNs();
  const { search } = usePlace();
  const query = useQuery(namespace.reprocesses(ns));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Reprocess</h1>
        <span className="faint">run something again, with everything downstream of it, in order</span>
      </div>
      <Wizard ns={ns} />
      <Panel title="Re-processings" note="the newest first">
        <Await query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty command={commands.reprocesses(ns)}>None yet.</Empty>
            ) : (
              <div className="scroll-x">
                <div className="toolbar pad">
                  <Chips of="state" label="State" options={["RUNNING", "DONE", "FAILED", "CANCELLED"]} />
                </div>
                <table>
                  <tbody>
                    {items
                      .filter((item) => !search.state || item.state === search.state)
                      .map((item) => (
                        <tr key={item.reprocess_id}>
                          <td className="fit">
                            <State state={item.state} />
                          </td>
                          <td>
                            <Go to={paths.reprocess(ns, item.reprocess_id)}>{beginning(item)}</Go>
                          </td>
                          <td>
                            <Counts of={item} />
                          </td>
                          <td className="end">
                            <Ago at={item.created_at} />
                          </td>
                        </tr>
                      ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Await>
      </Panel>
    </div>
  );
}

function beginning(item: StoredReprocess): string {
  if (item.run) return `run ${shortId(item.run)} of ${shortName(item.run.split(".").slice(0, 3).join("."))}`;
  if (item.fires) return `fires of ${shortName(item.fires.schedule)}`;
  const ends = [
    ...new Set([item.first, item.last].map((end) => partition(end as Record<string, string> | null))),
  ].filter(Boolean);
  return `${item.dataset?.split(".").at(-1)} ${ends.join(" to ")}`;
}

type Beginning = "dataset" | "run" | "fires";

function Wizard({ ns }: { ns: string }) {
  const { search } = usePlace();
  const go = useGo();
  const queries = useQueryClient();
  const readOnly = useReadOnly();
  const sets = useQuery(namespace.datasets(ns)).data?.items ?? [];
  const [kind, setKind] = useState<Beginning>(search.run ? "run" : search.schedule ? "fires" : "dataset");
  const zone = useZone();
  const [fires, setFires] = useState({ schedule: search.schedule ?? "", from: "", to: "" });
  const [since, until] = [fromWall(fires.from, zone), fromWall(fires.to, zone)];
  const [chosen, setChosen] = useState(search.name ?? "");
  const name = chosen || sets[0]?.name || "";
  const keys = useQuery({ ...dataset.definition(name), enabled: name !== "" }).data?.keys ?? [];
  const known = useId();
  const partitions =
    useQuery({ ...dataset.partitions(name), enabled: name !== "" && kind === "dataset" }).data?.items ?? [];
  const given = search.at?.split("/") ?? [];
  const [typed, setTyped] = useState<string | null>(null);
  const values =
    typed ??
    (given.length > 0 && keys.length === given.length
      ? keys.map((key, index) => `${key}=${given[index]}`).join("/")
      : "");
  const [run, setRun] = useState(search.run ?? "");
  const [scope, setScope] = useState("downstream");
  const [concurrency, setConcurrency] = useState(1);
  const [plan, setPlan] = useState<PlanOfReprocess | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [key, setKey] = useState(() => crypto.randomUUID());

  // Another request has another key; a repeat of one, after an answer was lost, has the same and counts once.
  const edit = (change: () => void) => {
    change();
    setPlan(null);
    setKey(crypto.randomUUID());
  };
  const range = { schedule: fires.schedule, from: since?.instant ?? "", to: until?.instant ?? "" };
  const of = keysOf(values, keys);
  const start = kind === "run" ? { run } : kind === "fires" ? { fires: range } : { dataset: name, partition: of };
  const complete =
    kind === "run" ? run : kind === "fires" ? fires.schedule && since && until : Object.keys(of).length > 0;
  const command = (dryRun: boolean) => {
    const { fires: ofSchedule, ...rest } = start as { fires?: typeof range };
    return commands.reprocess({ ...rest, ...ofSchedule, scope, concurrency, dryRun });
  };
  const submit = async (dryRun: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const body = { ...start, scope, concurrency, dry_run: dryRun };
      const path = fill("/v1/namespaces/{ns}/reprocess", { ns });
      if (dryRun) setPlan(await send<PlanOfReprocess>("POST", path, { body }));
      else {
        const begun = await send<StoredReprocess>("POST", path, { body, key });
        tell("The re-processing has begun");
        queries.invalidateQueries();
        go(paths.reprocess(ns, begun.reprocess_id));
      }
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Panel title="1. Begin with">
        <form
          className="body"
          onSubmit={(event: FormEvent) => {
            event.preventDefault();
            submit(true);
          }}
        >
          <div className="chips after">
            <button type="button" aria-pressed={kind === "dataset"} onClick={() => edit(() => setKind("dataset"))}>
              a partition
            </button>
            <button type="button" aria-pressed={kind === "run"} onClick={() => edit(() => setKind("run"))}>
              a run
            </button>
            <button type="button" aria-pressed={kind === "fires"} onClick={() => edit(() => setKind("fires"))}>
              fires of a schedule
            </button>
          </div>
          <div className="grid two after">
            {kind === "dataset" ? (
              <>
                <label className="field">
                  <span>Dataset</span>
                  <select value={name} onChange={(event) => edit(() => setChosen(event.target.value))}>
                    {sets.map((set) => (
                      <option key={set.name}>{set.name}</option>
                    ))}
                  </select>
                </label>
                <label className="field">
                  <span>Partition</span>
                  <input
                    required
                    value={values}
                    placeholder={keys.map((key) => `${key}=…`).join("/")}
                    list={known}
                    spellCheck={false}
                    onChange={(event) => edit(() => setTyped(event.target.value))}
                  />
                  <datalist id={known}>
                    {partitions.map((item) => (
                      <option key={item.path} value={partitionPath(item.partition)} />
                    ))}
                  </datalist>
                </label>
              </>
            ) : kind === "fires" ? (
              <>
                <label className="field">
                  <span>Schedule</span>
                  <input
                    required
                    value={fires.schedule}
                    placeholder={`${ns}.app.name`}
                    spellCheck={false}
                    onChange={(event) => edit(() => setFires({ ...fires, schedule: event.target.value.trim() }))}
                  />
                </label>
                {(["from", "to"] as const).map((end) => (
                  <label key={end} className="field">
                    <span>{end === "from" ? `From, in ${zone}` : `To (excluded), in ${zone}`}</span>
                    <WallField
                      required
                      value={fires[end]}
                      take={(text) => edit(() => setFires({ ...fires, [end]: text }))}
                    />
                    <Note note={(end === "from" ? since : until)?.note ?? null} />
                  </label>
                ))}
              </>
            ) : (
              <label className="field">
                <span>Id of a run</span>
                <input
                  required
                  value={run}
                  spellCheck={false}
                  onChange={(event) => edit(() => setRun(event.target.value))}
                />
              </label>
            )}
            <label className="field">
              <span>How much</span>
              <select value={scope} onChange={(event) => edit(() => setScope(event.target.value))}>
                <option value="downstream">with everything downstream</option>
                <option value="only">only the first schedules</option>
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
          </div>
          {complete ? <Command text={command(true)} /> : <Incomplete />}
          <footer className="form-end">
            <button type="submit" className="button primary" disabled={busy}>
              Dry run
            </button>
          </footer>
        </form>
        {error !== null && <Failure error={error} />}
      </Panel>
      {plan && (
        <Panel title="2. What would run" note={`${count(plan.total, "run")} in ${count(plan.steps.length, "step")}`}>
          <table>
            <tbody>
              {plan.steps.map((step) => (
                <tr key={step.step}>
                  <td className="fit">{step.step}</td>
                  <td className="fit">
                    <ScheduleLink name={step.schedule} />
                  </td>
                  <td className="end">{number(step.total)}</td>
                  <td>
                    <Reason text={step.why} />
                  </td>
                  <td className="faint">
                    <Entries entries={step.first} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {plan.not_followed.length > 0 && (
            <table>
              <caption>Not followed</caption>
              <tbody>
                {plan.not_followed.map((each) => (
                  <tr key={`${each.schedule} ${each.dataset} ${each.workflow}`}>
                    <td className="fit">
                      <ScheduleLink name={each.schedule} />
                    </td>
                    <td>
                      <Reason text={each.why} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <div className="body after">
            <Command text={command(false)} />
            <ReadOnlyNote>dry runs only</ReadOnlyNote>
            <footer className="form-end">
              <button
                type="button"
                className="button primary"
                disabled={busy || readOnly || plan.total === 0}
                onClick={() => submit(false)}
              >
                Begin the re-processing
              </button>
            </footer>
          </div>
        </Panel>
      )}
    </>
  );
}

/** The progress of one, step by step. */
export function OneReprocess() {
  const ns = useNs();
  const { id = "" } = useParams({ strict: false }) as { id?: string };
  const query = useQuery(namespace.reprocess(ns, id));
  return (
    <div className="page">
      <Await query={query}>
        {(data) => (
          <>
            <div className="page-head">
              <h1>Re-processing of {beginning(data)}</h1>
              <State state={data.state} />
              <span className="space" />
              <span className="tools">
                {data.state === "RUNNING" && <ActButton action={actions.cancelReprocess(ns, id)} />}
                <Command text={commands.showReprocess(ns, id)} />
              </span>
            </div>
            <p>
              <Counts of={data} /> {data.reason && <Reason text={data.reason} />}
            </p>
            <section className="panel scroll-x">
              <table>
                <thead>
                  <tr>
                    <th className="fit">Step</th>
                    <th className="fit">State</th>
                    <th>Schedule</th>
                    <th>After</th>
                    <th>Progress</th>
                    <th>Why</th>
                  </tr>
                </thead>
                <tbody>
                  {data.steps.map((step) => (
                    <tr key={step.step}>
                      <td className="fit">{step.step}</td>
                      <td className="fit">
                        <State state={step.state.toUpperCase()} />
                      </td>
                      <td>
                        <Go to={paths.schedule(step.schedule)} search={{ tab: "backfills" }}>
                          {shortName(step.schedule)}
                        </Go>
                      </td>
                      <td className="fit">{step.after.join(", ") || "–"}</td>
                      <td>
                        <Counts of={step} />
                      </td>
                      <td>
                        <Reason text={step.reason ?? step.why} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </>
        )}
      </Await>
    </div>
  );
}
