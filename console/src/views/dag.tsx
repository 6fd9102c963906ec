import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { dag as read } from "../api/queries";
import type { RunOfDag, StoredDag } from "../api/types";
import { useKeys } from "../frame/keys";
import { ScheduleZone, useNs, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { Picture } from "../graph/picture";
import { partition, shortId, shortName } from "../lib/format";
import { paths } from "../lib/paths";
import { ActButton } from "../parts/act";
import { Command, copy } from "../parts/command";
import { Go, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, Reason, State, Took, When } from "../parts/text";
import { Elements } from "./elements";
import { Next } from "./schedule";

/** A DAG: its graph with the states of one run, the panel of a node, and its runs. */
export function DagView() {
  const ns = useNs();
  const { app = "", name: short = "" } = useParams({ strict: false }) as { app?: string; name?: string };
  const name = `${ns}.${app}.${short}`;
  const definition = useQuery(read.definition(name));
  return (
    <ScheduleZone.Provider value={definition.data?.zone ?? null}>
      <div className="page">
        <Await query={definition}>{(data) => <Page key={name} name={name} definition={data} />}</Await>
      </div>
    </ScheduleZone.Provider>
  );
}

function Page({ name, definition }: { name: string; definition: StoredDag }) {
  const { search, change } = usePlace();
  const runs = useQuery(read.runs(name));
  const why = useQuery(read.why(name));
  const id = search.run ?? runs.data?.items[0]?.run_id;
  const one = useQuery({ ...read.run(name, id ?? ""), enabled: !!id });
  const run = one.data;
  const on = definition.enabled ?? definition.state === "enabled";
  useKeys({ c: () => copy(commands.describe("dag", name)).then(() => tell("The command is copied")) });
  const nodes = Object.keys(definition.nodes).map((node) => ({
    id: node,
    title: node,
    kind: "node",
    state: run?.nodes[node]?.state ?? null,
    note: "node",
  }));
  return (
    <>
      <header className="page-head">
        <h1>{shortName(name)}</h1>
        {definition.state && <State state={definition.state} />}
        <span className="faint">{definition.triggered_by && <Reason text={definition.triggered_by} short />}</span>
        <span className="space" />
        <span className="tools">
          <ActButton action={actions.runDag(name)} />
          <ActButton action={actions.switchDag(name, !on)} />
          <Go className="button" to={paths.backfill(`${name}~`)}>
            Backfill
          </Go>
        </span>
      </header>
      <section className="panel">
        <header>
          <h2>{run ? <RunTitle run={run} /> : "Graph"}</h2>
          {run && <State state={run.state} />}
          <span className="tools">
            {run && (
              <ActButton small action={actions.rerunDag(name, run.run_id, {})}>
                Run all again
              </ActButton>
            )}
            <Command text={run ? commands.showDag(name, run.run_id) : commands.describe("dag", name)} />
          </span>
        </header>
        <div className="sheet with-side tall">
          <Picture
            label={`Nodes of ${name}`}
            nodes={nodes}
            edges={(definition.edges ?? []) as unknown as { from: string; to: string }[]}
            chosen={search.node}
            choose={(node) => change({ node }, true)}
          />
          <NodePanel dag={name} definition={definition} run={run} node={search.node} />
        </div>
      </section>
      <Panel title="Why" className="why" tools={<Command text={commands.whyDag(name)} />}>
        <Await query={why}>
          {(data) => (
            <div className="body">
              <p className="because">
                <Reason text={data.why} refs={data.refs} />
              </p>
            </div>
          )}
        </Await>
      </Panel>
      <Panel title="Next" tools={<Command text={commands.preview(`${name}~`)} />}>
        <Next name={`${name}~`} skips={definition.skips ?? []} />
      </Panel>
      <Panel title="Runs" note="the newest first; one is shown above">
        <Await query={runs}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty command={commands.runDag(name)}>No runs yet.</Empty>
            ) : (
              <div className="scroll-x">
                <table>
                  <thead>
                    <tr>
                      <th>State</th>
                      <th>Run</th>
                      <th>Began</th>
                      <th className="end">Took</th>
                      <th>Nodes</th>
                      <th>Started by</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((item) => (
                      <tr key={item.run_id} aria-current={item.run_id === id}>
                        <td className="fit">
                          <State state={item.state} />
                        </td>
                        <td className="fit">
                          <button type="button" className="link id" onClick={() => change({ run: item.run_id })}>
                            {partition(item.partition) || shortId(item.run_id)}
                          </button>
                        </td>
                        <td className="fit">
                          <When at={item.started_at} as="second" />
                        </td>
                        <td className="end">
                          <Took from={item.started_at} to={item.ended_at} living={!item.ended_at} />
                        </td>
                        <td>
                          <span className="last">
                            {Object.entries(item.nodes).map(([node, state]) => (
                              <State key={node} state={state.state} word={false} />
                            ))}
                          </span>
                        </td>
                        <td>
                          <Reason text={item.fired_by} />
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
    </>
  );
}

function RunTitle({ run }: { run: RunOfDag }) {
  return (
    <>
      Run {partition(run.partition) || shortId(run.run_id)}, <Ago at={run.started_at} />
    </>
  );
}

/** Without a chosen node: those that have not succeeded, and why. They are what holds a run up. */
function OpenNodes({ run }: { run: RunOfDag | undefined }) {
  const { change } = usePlace();
  const open = Object.entries(run?.nodes ?? {}).filter(([, node]) => node.state !== "SUCCEEDED");
  return (
    <aside className="side">
      {open.length > 0 && <h2>Not succeeded</h2>}
      <ul>
        {open.map(([name, node]) => (
          <li key={name}>
            <State state={node.state} word={false} />{" "}
            <button type="button" className="link name" onClick={() => change({ node: name }, true)}>
              {name}
            </button>
            <span className="sub">
              <Reason text={node.why} />
            </span>
          </li>
        ))}
      </ul>
      <p className="faint">
        {run && open.length === 0 ? "All nodes have succeeded. " : ""}
        Choose a node to see its state, its reason, and what you can do.
      </p>
    </aside>
  );
}

function NodePanel({
  dag,
  definition,
  run,
  node,
}: {
  dag: string;
  definition: StoredDag;
  run: RunOfDag | undefined;
  node: string | undefined;
}) {
  const given = node ? definition.nodes[node] : undefined;
  if (!node || !given) return <OpenNodes run={run} />;
  const state = run?.nodes[node];
  const own = definition.schedules?.find((schedule) => schedule.endsWith(`~${node}`));
  return (
    <aside className="side">
      <p className="faint">node</p>
      <h2>{node}</h2>
      {state && (
        <>
          <State state={state.state} />
          <p>
            <Reason text={state.why} />
          </p>
          {state.started_at && (
            <p>
              <When at={state.started_at} as="second" />, took{" "}
              <Took from={state.started_at} to={state.ended_at} living={!state.ended_at} />
            </p>
          )}
          {state.run_id && (
            <p>
              <RunLink id={state.run_id}>its run, with the log</RunLink>
            </p>
          )}
        </>
      )}
      {state?.result !== undefined && (
        <p className="faint">
          result <code>{JSON.stringify(state.result)}</code>
        </p>
      )}
      {state?.result_refused && <p>result refused: {state.result_refused}</p>}
      {run && state?.elements && <Elements dag={dag} run={run} node={node} counts={state.elements} />}
      <p className="faint">
        workflow <code>{String((given as { workflow?: unknown }).workflow ?? "")}</code>
      </p>
      {given.when && (
        <p className="faint">
          join rule <code>{given.when}</code>
        </p>
      )}
      {own && <ScheduleLink name={own} />}
      {run && (
        <span className="row-tools stacked">
          <ActButton small action={actions.rerunDag(dag, run.run_id, { from: node })}>
            Run from here again
          </ActButton>
          <ActButton small action={actions.rerunDag(dag, run.run_id, { only: node })}>
            Run only this again
          </ActButton>
        </span>
      )}
    </aside>
  );
}
