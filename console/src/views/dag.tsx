import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { actions } from "../api/actions";
import { commands } from "../api/commands";
import { lives, dag as read, schedule } from "../api/queries";
import type { Deadline, Job, Node, RunOfDag, StateOfNode, StoredDag } from "../api/types";
import { useKeys } from "../frame/keys";
import { ScheduleZone, useNs, usePlace } from "../frame/place";
import { tell } from "../frame/settings";
import { Picture, type PictureNode } from "../graph/picture";
import type { Edge } from "../graph/walk";
import { between, count, duration, partition, shortId, shortName, withoutNamespace } from "../lib/format";
import { paths } from "../lib/paths";
import { causeInShort, type Noun, withBeginning } from "../lib/sentence";
import { PAUSED, type StateLook } from "../lib/states";
import { ActButton } from "../parts/act";
import { Command, copy } from "../parts/command";
import { Go, JobLink, RunLink, ScheduleLink } from "../parts/go";
import { Await, Empty, Panel } from "../parts/panel";
import { Ago, Lasts, Reason, State, Took, When } from "../parts/text";
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
  const waiting = notBegun(useQuery(schedule.jobs(`${name}~`)).data?.items ?? []);
  const id = search.run ?? runs.data?.items[0]?.run_id ?? waiting[0]?.job_id;
  const one = useQuery({ ...read.run(name, id ?? ""), enabled: !!id });
  const run = one.data;
  const state = definition.state ?? "";
  const on = definition.enabled ?? state === "enabled";
  const paused = PAUSED.includes(state);
  const limits = limitsInWords(definition);
  useKeys({ c: () => copy(commands.describe("dag", name)).then(() => tell("The command is copied")) });
  const graph = useMemo(() => graphOf(definition, run), [definition, run]);
  return (
    <>
      <header className="page-head">
        <h1>{shortName(name)}</h1>
        {definition.state && <State state={definition.state} />}
        <span className="faint">{definition.triggered_by && <Reason text={definition.triggered_by} short />}</span>
        <span className="space" />
        <span className="tools">
          <ActButton action={actions.runDag(name)} />
          {paused ? (
            <ActButton action={actions.resumeDag(name)} />
          ) : (
            on && <ActButton action={actions.pauseDag(name)} />
          )}
          <ActButton action={actions.switchDag(name, !on && !paused)} />
          <Go className="button" to={paths.backfill(`${name}~`)}>
            Backfill
          </Go>
        </span>
      </header>
      {(definition.description || limits) && (
        <p className="faint clamp" dir="auto">
          {definition.description}
          {definition.description && limits && <br />}
          {limits}
        </p>
      )}
      <section className="panel">
        <header>
          <h2>{run ? <RunTitle run={run} /> : "Graph"}</h2>
          {run && <State state={run.state} />}
          {run?.late && <State state="LATE" look={LATE} />}
          {run?.end_by && (
            <span className="note faint">
              to end by <When at={run.end_by} />
            </span>
          )}
          <span className="tools">
            {run && <ActOnRun dag={name} run={run} />}
            <Command text={run ? commands.showDag(name, run.run_id) : commands.describe("dag", name)} />
          </span>
        </header>
        <div className="sheet with-side tall">
          <Picture
            label={`Nodes of ${name}`}
            nodes={graph.nodes.map((node) => shownAs(node, run?.nodes[node.name]))}
            edges={graph.edges}
            chosen={search.node}
            begin={worst(run)}
            choose={(node) => change({ node }, true)}
          />
          <NodePanel dag={name} definition={definition} graph={graph} run={run} node={search.node} />
        </div>
      </section>
      <Panel title="Why" className="why" tools={<Command text={commands.whyDag(name)} />}>
        <Await query={why}>
          {(data) => (
            <div className="body">
              <WhyOfDag name={name} why={data.why} refs={data.refs} />
            </div>
          )}
        </Await>
      </Panel>
      <NextStarts name={name} definition={definition} />
      <Panel title="Runs" note="the newest first; one is shown above">
        <Await query={runs}>
          {({ items }) =>
            items.length + waiting.length === 0 ? (
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
                    {waiting.map((job) => (
                      <tr key={job.job_id} aria-current={job.job_id === id}>
                        <td className="fit">
                          <State state="WAITING" />
                        </td>
                        <td className="fit">
                          <button type="button" className="link id" onClick={() => change({ run: job.job_id })}>
                            {partition(job.correlation) || shortId(job.job_id)}
                          </button>
                        </td>
                        <td className="faint" colSpan={3}>
                          not begun, for <Lasts from={job.created_at} />
                        </td>
                        <td>
                          <Reason text={job.reason} />
                        </td>
                      </tr>
                    ))}
                    {items.map((item) => (
                      <tr key={item.run_id} aria-current={item.run_id === id}>
                        <td className="fit">
                          <State state={item.state} /> {item.late && <State state="LATE" look={LATE} word={false} />}
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
                          <Reason text={causeInShort(item.fired_by)} />
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

/** The next starts by a clock; nothing for a DAG that none starts. */
function NextStarts({ name, definition }: { name: string; definition: StoredDag }) {
  const start = `${name}~`;
  const query = useQuery(schedule.preview(start, 6));
  if (query.data?.items.length === 0) return null;
  return (
    <Panel title="Next" tools={<Command text={commands.preview(start)} />}>
      <Next name={start} skips={definition.skips ?? []} />
    </Panel>
  );
}

/** Why a DAG does what it does: each run and node in a line of its own. */
function WhyOfDag({ name, why, refs }: { name: string; why: string; refs: Noun[] | undefined }) {
  const [first = "", ...others] = withBeginning(why, name).split(
    /; (?=node \S+, run |run \S+, node |\d+ more failed|waits for |the next fire )/,
  );
  return (
    <>
      <p className="because">
        <Reason text={first} refs={refs} />
      </p>
      {others.length > 0 && (
        <ul className="reasons">
          {others.map((text) => (
            <li key={text}>
              <Reason text={text} refs={refs} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

const LATE: StateLook = { glyph: "◷", tone: "bad", means: "it did not end by its deadline" };

/** The runs that wait to begin. A job that gathers what starts a run is none yet. */
const notBegun = (jobs: Job[]) => jobs.filter(({ state }) => state !== "PENDING_TRIGGER");

/** What a run allows in its state: one that has not begun is a job, and no part runs again while another is active. */
function ActOnRun({ dag, run }: { dag: string; run: RunOfDag }) {
  if (run.state === "WAITING") return <ActButton small action={actions.cancelJob(run.run_id, run.partition)} />;
  if (run.state === "RUNNING") return <ActButton small action={actions.cancelDag(dag, run.run_id)} />;
  return (
    <ActButton small action={actions.rerunDag(dag, run.run_id, {})}>
      Run all again
    </ActButton>
  );
}

const OTHERS = { abort: "others are aborted", wait: "others wait", cancel_other: "another one cancels the oldest" };

/** The limits of the runs of a DAG: `at most 1 run at a time, others wait; a run takes at most 6h`. */
function limitsInWords({ concurrency, run_timeout, deadline }: StoredDag): string {
  return [
    ...(concurrency
      ? [`at most ${count(concurrency.max, "run")} at a time, ${OTHERS[concurrency.on_unmet ?? "abort"]}`]
      : []),
    ...(run_timeout ? [`a run is ended after ${run_timeout}`] : []),
    ...(deadline ? [deadlineInWords(deadline)] : []),
  ].join("; ");
}

function deadlineInWords({ start_within, end_within, from = "nominal" }: Deadline): string {
  const parts = [
    ...(start_within ? [`begin within ${start_within}`] : []),
    ...(end_within ? [`end within ${end_within}`] : []),
  ];
  return `it should ${parts.join(", and ")} of its ${from === "data" ? "data" : "nominal time"}`;
}

/** What the rules say for which a node waits, in words. */
const RULES: Record<NonNullable<Node["when"]>, string> = {
  all_succeeded: "once each node before it has ended as its edge needs",
  none_failed: "once all nodes before it have ended, and none has failed",
  all_done: "once all nodes before it have ended, however they ended",
  one_succeeded: "once one node before it has succeeded",
  one_failed: "once one node before it has failed",
  always: "when the run begins, whatever the nodes before it do",
};

interface NodeOfDag {
  name: string;
  workflow: string;
  when: NonNullable<Node["when"]>;
}

interface GraphOfDag {
  nodes: NodeOfDag[];
  edges: Edge[];
}

/** The graph with which a run began, which a later version of the DAG does not change; without a run, the present one. */
function graphOf(definition: StoredDag, run: RunOfDag | undefined): GraphOfDag {
  const given: [string, { workflow?: string; when?: Node["when"] }][] = Object.entries(
    run?.edges ? run.nodes : definition.nodes,
  );
  return {
    nodes: given.map(([name, { workflow = "", when = "all_succeeded" }]) => ({ name, workflow, when })),
    edges: (run?.edges ?? definition.edges ?? []).map((edge) => ({
      ...shownEdge(edge),
      isLeftOut: run?.nodes[String(edge.to)]?.state === "SKIPPED",
    })),
  };
}

/** What an edge needs stands on it, unless that is success. */
function shownEdge(edge: NonNullable<StoredDag["edges"]>[number]): Edge {
  const { from, to, on = ["COMPLETED"], within, if: pattern } = edge;
  const statuses = on.join(" or ");
  const more = [...(within ? [`within ${within}`] : []), ...(pattern ? [`if ${patternInWords(pattern)}`] : [])];
  return {
    from: String(from),
    to: String(to),
    text: [statuses, ...more].join(" "),
    label: [...(statuses === "COMPLETED" ? [] : [statuses]), ...more].join(" ") || undefined,
  };
}

/** `mode is full or both`, as much as a pattern of the result says in words; else its JSON. */
function patternInWords(pattern: Record<string, unknown>): string {
  return Object.entries(pattern)
    .map(([key, values]) => {
      const parts = Array.isArray(values) ? values.map(valueInWords) : [null];
      return parts.includes(null) ? `${key} ${JSON.stringify(values)}` : `${key} is ${parts.join(" or ")}`;
    })
    .join(", ");
}

/** One of the values of a pattern: `full`, or `not full or both`; null for what has no short words. */
function valueInWords(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return String(value);
  const [[word, of] = [], ...more] = Object.entries(value);
  const all = [of].flat();
  if (word !== "anything-but" || more.length > 0 || all.some((one) => typeof one === "object")) return null;
  return `not ${all.join(" or ")}`;
}

function shownAs({ name, when }: NodeOfDag, state: StateOfNode | undefined): PictureNode {
  const took = between(state?.started_at, state?.ended_at);
  const of = state?.elements;
  if (of) {
    const note = of.failed > 0 ? `${of.failed} of ${of.count} failed` : `${of.succeeded} of ${of.count} done`;
    return { id: name, title: name, kind: "node with elements", state: state.state, note, isWhole: true };
  }
  return {
    id: name,
    title: name,
    kind: "node",
    state: state?.state ?? null,
    note: took !== null ? duration(took) : when !== "all_succeeded" ? when : undefined,
  };
}

/** The node of a run that one looks at first: one that failed, else one that is under way. */
function worst(run: RunOfDag | undefined): string | undefined {
  const first = (...states: string[]) =>
    Object.entries(run?.nodes ?? {}).find(([, { state }]) => states.includes(state))?.[0];
  return first("FAILED", "ABORTED") ?? first("RUNNING", "STARTING", "RETRYING", "WAITING");
}

function RunTitle({ run }: { run: RunOfDag }) {
  return (
    <>
      Run {partition(run.partition) || shortId(run.run_id)},{" "}
      {run.started_at ? <Ago at={run.started_at} /> : "not begun"}
    </>
  );
}

/** Without a chosen node: those that have not succeeded, and why. They are what holds a run up. */
function OpenNodes({ dag, run }: { dag: string; run: RunOfDag | undefined }) {
  if (run?.state === "WAITING") {
    return (
      <aside className="side">
        <h2>Waits to begin</h2>
        <p>
          <Reason text={run.why ?? ""} />
        </p>
        <p>
          <JobLink id={run.run_id}>its job, with what it waits for</JobLink>
        </p>
      </aside>
    );
  }
  const open = Object.entries(run?.nodes ?? {}).filter(([, node]) => node.state !== "SUCCEEDED");
  return (
    <aside className="side">
      {open.length > 0 && <h2>Not succeeded</h2>}
      <ul>
        {open.map(([name, node]) => (
          <li key={name}>
            <Beside node={name} run={run} />
            <span className="sub">
              <Reason text={withBeginning(node.why, dag)} />
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

/** Another node, with its state. */
function Beside({ node, run }: { node: string; run: RunOfDag | undefined }) {
  const { change } = usePlace();
  const state = run?.nodes[node]?.state;
  return (
    <>
      {state && <State state={state} word={false} />}{" "}
      <button type="button" className="link name" onClick={() => change({ node }, true)}>
        {node}
      </button>
    </>
  );
}

function NodePanel({
  dag,
  definition,
  graph,
  run,
  node,
}: {
  dag: string;
  definition: StoredDag;
  graph: GraphOfDag;
  run: RunOfDag | undefined;
  node: string | undefined;
}) {
  const given = graph.nodes.find(({ name }) => name === node);
  if (!given || !node) return <OpenNodes dag={dag} run={run} />;
  const state = run?.nodes[node];
  const own = definition.schedules?.find((schedule) => schedule.endsWith(`~${node}`));
  const before = graph.edges.filter(({ to }) => to === node);
  const after = graph.edges.filter(({ from }) => from === node);
  return (
    <aside className="side">
      <p className="faint">node</p>
      <h2>{node}</h2>
      {state && <Now dag={dag} of={state} />}
      {state && <Result of={state} />}
      {run && (
        <span className="row-tools stacked">
          {state?.run_id && lives(state.state) && <ActButton small action={actions.cancelRun(state.run_id)} />}
          {!["WAITING", "RUNNING"].includes(run.state) && !isNotChosen(graph, state, node) && (
            <>
              <ActButton small action={actions.rerunDag(dag, run.run_id, { from: node })}>
                Run from here again
              </ActButton>
              <ActButton small action={actions.rerunDag(dag, run.run_id, { only: node })}>
                Run only this again
              </ActButton>
            </>
          )}
        </span>
      )}
      {run && state?.elements && <Elements dag={dag} run={run} node={node} counts={state.elements} />}
      <p className="faint">
        workflow <code>{withoutNamespace(given.workflow, dag.split(".")[0] ?? "")}</code>
      </p>
      {before.length > 0 && (
        <>
          <h3>Runs {RULES[given.when]}</h3>
          <p className="faint">
            join rule <code>{given.when}</code>
          </p>
          <ul>
            {before.map((edge) => (
              <li key={edge.from}>
                <Beside node={edge.from} run={run} /> <span className="faint">{edge.text}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {after.length > 0 && (
        <>
          <h3>Leads to</h3>
          <ul>
            {after.map((edge) => (
              <li key={edge.to}>
                <Beside node={edge.to} run={run} />
              </li>
            ))}
          </ul>
        </>
      )}
      {own && (
        <p className="faint">
          schedule <ScheduleLink name={own} />
        </p>
      )}
    </aside>
  );
}

/** Whether an edge has decided that a node does not run. Then no run again begins at it: its edges decide in each round. */
const isNotChosen = (graph: GraphOfDag, state: StateOfNode | undefined, node: string) =>
  state?.state === "SKIPPED" && graph.edges.some((edge) => edge.to === node && edge.text?.includes("if "));

const SHORT = 400; // characters of a result that is shown at once

/** What the run of a node has handed on, or why that was refused. */
function Result({ of: { result, result_refused } }: { of: StateOfNode }) {
  if (result_refused) return <p className="bad-text">Its result was refused: {result_refused}</p>;
  if (result === undefined) return null;
  const text = JSON.stringify(result, null, 2);
  return (
    <details className="result" open={text.length <= SHORT}>
      <summary>Result</summary>
      <pre className="source">{text}</pre>
    </details>
  );
}

/** The state of a node, why, and its run. */
function Now({ dag, of }: { dag: string; of: StateOfNode }) {
  const { state, why, run_id, attempt, round, started_at, ended_at } = of;
  return (
    <>
      <State state={state} />
      <p>
        <Reason text={withBeginning(why, dag)} />
      </p>
      {started_at && (
        <p>
          <When at={started_at} as="second" />, took <Took from={started_at} to={ended_at} living={!ended_at} />
        </p>
      )}
      {run_id && (
        <p>
          <RunLink id={run_id}>its run, with the log</RunLink>
          {attempt && attempt > 1 ? `, attempt ${attempt}` : ""}
          {round && round > 1 ? `, round ${round}` : ""}
        </p>
      )}
    </>
  );
}
