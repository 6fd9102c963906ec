"""Converts DAG files of Airflow into an app document. Each DAG becomes a DAG, and each task becomes a workflow.

The user fills in the targets of the workflows that the operators do not define.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sluice.client import Document
from sluice.convert import airflow_yaml
from sluice.convert.airflow_graph import (
    AFTER_FAILURES,
    NEAREST,
    WHEN,
    Graph,
    check_order,
    graph,
    is_branch,
    is_sensor,
    is_short_circuit,
)
from sluice.convert.airflow_graph import EMPTY as EMPTY_KINDS
from sluice.convert.airflow_mapped import unroll
from sluice.convert.airflow_reader import Reader
from sluice.convert.airflow_tasks import Targets, delivery, literals
from sluice.convert.airflow_times import Times, is_timed, longest_gap, waits_for_all
from sluice.convert.airflow_values import Asset, Dag, Span, Task, inside
from sluice.convert.draft import Draft, name_of, span, unknown_target, without_empty
from sluice.errors import WrongUsage

PARTITION = re.compile(r"([A-Za-z_][\w-]*)=[^/]*")
MAX_NODES = 100
# What the node after a sensor in the middle of a DAG may have instead.
SENSORS = {
    "TimeDeltaSensor": "delay",
    "WaitSensor": "delay",
    "TimeSensor": "time_window",
    "DateTimeSensor": "time_window",
    "DayOfWeekSensor": "calendar",
    "HttpSensor": "probe",
    "ExternalTaskSensor": "fresh",
    "S3KeySensor": "dataset_fresh",
}
SENSOR_TIMEOUT = 7 * 86_400  # seconds that a sensor waits unless it says otherwise
# What a task of MWAA Serverless has unless it says otherwise.
MWAA_DEFAULTS = {"retries": 1, "retry_delay": Span(300), "execution_timeout": Span(3_600)}
UNCONDITIONAL = ("one_failed", "always")  # join rules that do not wait for successes
RUNS_ON = ("all_done", "always")  # rules under which a last node runs after a failure


def convert(text: str, draft: Draft, zone: str | None = None) -> None:
    """Convert a DAG file, in Python or in the YAML of dag-factory. Raises `WrongUsage` if it cannot be parsed, has no
    DAG, or has tasks that wait for one another."""
    if draft.source.endswith((".yaml", ".yml")):
        convert_yaml(text, draft, zone)
        return
    dags = Reader(draft).read(text)
    if not dags:
        hint = "the file needs DAG(...) or a function with @dag that it calls"
        raise WrongUsage("expected a DAG file of Airflow, got no DAG", draft.source, hint)
    convert_dags(dags, draft, zone)


def convert_yaml(text: str, draft: Draft, zone: str | None = None) -> None:
    """Convert the YAML of dag-factory. Raises as `convert`."""
    convert_dags(airflow_yaml.read(text, draft), draft, zone)


def convert_mwaa(text: str, draft: Draft, zone: str | None = None) -> None:
    """Convert a workflow of Amazon MWAA Serverless. It has defaults of its own, and ignores ``catchup`` and
    ``dagrun_timeout``. Raises as `convert`.

    https://docs.aws.amazon.com/mwaa/latest/mwaa-serverless-userguide/supported-airflow-parameters.html
    """
    dags = airflow_yaml.read(text, draft)
    for dag in dags:
        dag.named.pop("catchup", None)
        dag.named["default_args"] = {**MWAA_DEFAULTS, **dag.defaults}
        if _is_count(dag.named.get("max_active_runs")):
            draft.find(
                f"DAG {dag.id}",
                "max_active_runs became concurrency",
                "a further run waits, also one that is begun by hand",
                "remove concurrency if further runs must not wait",
            )
        if isinstance(dag.named.get("dagrun_timeout"), Span):
            draft.find(
                f"DAG {dag.id}",
                "dagrun_timeout became run_timeout",
                "the documentation of MWAA Serverless does not name it among the parameters that have an effect",
                "remove run_timeout if a longer run is right",
            )
    convert_dags(dags, draft, zone)


def convert_dags(dags: list[Dag], draft: Draft, zone: str | None = None) -> None:
    for dag in dags:
        check_order(dag, draft.source)
    app = App(draft, dags, zone or "UTC")
    for dag in dags:
        app.add(dag)


class App:
    """The DAGs of one file. An asset or a sensor may refer to another DAG of the file, so all are read before any is
    converted."""

    def __init__(self, draft: Draft, dags: list[Dag], zone: str) -> None:
        self.draft, self.dags = draft, dags
        self.times = Times(draft, zone, self._producers)
        self.targets = Targets(draft)
        self.workflows: dict[tuple[str, str], str] = {}
        self.dag_names = _distinct((dag.id for dag in dags), set(), "dag")
        taken: set[str] = set()
        for dag in dags:
            for task in dag.tasks.values():
                task.inherit(dag.defaults)
            unroll(dag, draft)
            wanted = {
                task.shown: f"{dag.id}-{task.shown}" if len(dags) > 1 else task.shown for task in dag.tasks.values()
            }
            found = _distinct(wanted.values(), taken, "task")
            taken |= set(found.values())
            for task in dag.tasks.values():
                self.workflows[dag.id, task.id] = found[wanted[task.shown]]

    def add(self, dag: Dag) -> None:
        where, name = f"DAG {dag.id}", self.dag_names[dag.id]
        trigger = self.times.trigger(dag)
        parts, conditions = self._beginning(dag)
        made = graph(dag, [task.id for task in parts], self.draft)
        if conditions and trigger.get("event") == f"{name}.requested":
            trigger = conditions[0] if len(conditions) == 1 else {"type": "all", "triggers": conditions}
        elif conditions:
            trigger = {"type": "all", "triggers": [trigger, *conditions]}
        timed, zone = is_timed(trigger), self.times.zone(dag)
        names = _distinct(made.before, set(), "task")
        self._report_names(dag, name, names)
        edges, joins = self._edges(dag, made, names)
        nodes = self._nodes(dag, made, names, joins)
        if len(nodes) > MAX_NODES:
            self.draft.find(
                where, f"it has {len(nodes)} nodes", f"a DAG has at most {MAX_NODES}", "split it by program_status"
            )
        self.targets.report_dag(dag)
        self._report_last(dag, made, joins)
        self._report_waits(dag, made, parts)
        tags, owner = dag.named.get("tags"), dag.defaults.get("owner")
        body = {
            "description": _text(dag.named.get("description"))[:1000] or dag.about.split("\n")[0][:1000],
            "tags": {tag[:100]: "yes" for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else {},
            "owner": owner if isinstance(owner, str) and owner != "airflow" else "",
            "enabled": self.draft.mode(dag.named.get("is_paused_upon_creation") is not True),
            "zone": zone if timed and zone != "UTC" else None,
            "trigger": trigger,
            "timeout": self._timeout(dag, parts, trigger),
            "catch_up": self._catch_up(dag, name) if timed else None,
            "concurrency": self._concurrency(dag),
            "run_timeout": self._run_timeout(dag),
            "nodes": nodes,
            "edges": edges,
        }
        self.draft.add("dags", name, body)

    def _producers(self, asset: Asset) -> Iterator[tuple[Dag, Task, str]]:
        """The tasks of the file that update an asset. Each workflow counts once, also if several nodes run it."""
        seen: set[str] = set()
        for dag in self.dags:
            for task in dag.tasks.values():
                workflow = self.workflows[dag.id, task.id]
                if workflow in seen or task.kind in EMPTY_KINDS or asset not in list(inside(task.named.get("outlets"))):
                    continue
                seen.add(workflow)
                yield dag, task, workflow

    def _catch_up(self, dag: Dag, name: str) -> str:
        where, given = f"DAG {dag.id}", dag.named.get("catchup")
        if given is None and dag.intervals:
            self.draft.find(
                where,
                "it names no catchup, and catches up with the latest fire",
                "Airflow 3 does so too; Airflow 2 runs all missed intervals, from start_date on",
                "write catch_up: all if it relied on that",
            )
        if given is not True:
            return "latest"
        self.draft.find(
            where,
            "catchup=True starts no runs of the past",
            "Sluice begins when the DAG is enabled",
            f"run the past: sluice backfill begin {self.draft.namespace}.{self.draft.app}.{name}~ --from ... --to ...",
        )
        return "all"

    def _concurrency(self, dag: Dag) -> Document | None:
        most = dag.named.get("max_active_runs")
        if _is_count(most):
            return {"max": most, "on_unmet": "wait"}
        if most is not None:
            self.draft.find(
                f"DAG {dag.id}",
                "max_active_runs is not carried over",
                f"expected a whole number from 1 on, got {_shown(most)}",
                "add to the DAG: concurrency: {max: ..., on_unmet: wait}",
            )
        return None

    def _run_timeout(self, dag: Dag) -> str | None:
        value = dag.named.get("dagrun_timeout")
        if value is None:
            return None
        if isinstance(value, Span) and 60 <= value.seconds <= 30 * 86_400:
            return span(value.seconds)
        why = "1m to 30d are allowed" if isinstance(value, Span) else f"expected a duration, got {_shown(value)}"
        self.draft.find(f"DAG {dag.id}", "dagrun_timeout is not carried over", why, "set run_timeout on the DAG")
        return None

    # The graph

    def _edges(self, dag: Dag, made: Graph, names: dict[str, str]) -> tuple[list[Document], dict[str, str]]:
        """The edges, and the join rule of each node that has another than the default."""
        edges, joins = [], {}
        for name, ups in made.before.items():
            rule = made.rules[name]
            if ups and rule not in WHEN and rule != AFTER_FAILURES:
                self._report_rule(dag, made, name)
            when = WHEN.get(rule) or NEAREST.get(rule, ("all_succeeded",))[0]
            if ups and when != "all_succeeded":
                joins[name] = when
            for up, condition in ups.items():
                edge: Document = {"from": names[up], "to": names[name]}
                if rule == AFTER_FAILURES:
                    edge["on"] = ["FAILED"]
                if condition is not None and (rule == AFTER_FAILURES or when in UNCONDITIONAL):
                    self.draft.find(
                        f"line {dag.tasks[name].line}",
                        f"{name} does not ask what {up} chooses",
                        f"trigger_rule={rule} does not wait for a success; in Airflow {up} skips it nevertheless",
                        "remove its trigger rule, or the edge",
                    )
                elif condition is not None:
                    edge["if"] = {condition[0]: list(condition[1])}
                edges.append(edge)
        return edges, joins

    def _report_rule(self, dag: Dag, made: Graph, name: str) -> None:
        rule = made.rules[name]
        if rule in NEAREST:
            when, difference = NEAREST[rule]
            self.draft.find(
                f"line {dag.tasks[name].line}",
                f"trigger_rule={rule} of {name} became {when}: {difference}",
                "Sluice has no such join rule",
                "nothing, if that does not matter; else set `when:` of the node, or split the DAG",
            )
            return
        made.held.add(name)
        self.draft.find(
            f"line {dag.tasks[name].line}",
            f"trigger_rule={rule} of {name} is not carried over, and its target was left out",
            "Sluice has no such join rule",
            "set `when:` of the node, or split the DAG; then write its target",
        )

    def _nodes(self, dag: Dag, made: Graph, names: dict[str, str], joins: dict[str, str]) -> Document:
        nodes: Document = {}
        for name in made.before:
            task = dag.tasks[name]
            self._workflow(dag, made, task)
            nodes[names[name]] = without_empty(
                {
                    "workflow": self.workflows[dag.id, name],
                    "when": joins.get(name),
                    "each": self._each(made, task, names, joins.get(name)),
                    "properties": task.item,
                    "constraints": self._limits(dag, made, task),
                }
            )
        if not nodes:
            name = self.dag_names[dag.id]
            nodes[name] = {"workflow": self.draft.unknown(f"DAG {dag.id}", name, f"the tasks of {dag.id}")}
        return nodes

    def _limits(self, dag: Dag, made: Graph, task: Task) -> list[Document]:
        named = task.named
        if delivery(task) is not None and not self._is_awaited(dag, made, task):
            return []
        limits: list[Document] = []
        most = named.get("max_active_tis_per_dag", named.get("task_concurrency"))
        if _is_count(most):
            limits.append({"type": "concurrency", "max": most, "on_unmet": "wait"})
        whole = dag.named.get("max_active_tasks", dag.named.get("concurrency"))
        if _is_count(whole):
            group = f"{self.dag_names[dag.id][:57]}-tasks"
            limits.append({"type": "concurrency", "group": group, "max": whole, "on_unmet": "wait"})
        return limits

    def _workflow(self, dag: Dag, made: Graph, task: Task) -> None:
        name = self.workflows[dag.id, task.id]
        if name in self.draft.parts["workflows"]:
            return  # of another item of a mapped task
        what = f"{task.kind} {task.shown}, line {task.line}"
        target = None if task.id in made.held or task.mapped is not None else self.targets.of(task)
        retries, timeout = self.targets.retries(task), self.targets.timeout(task)
        if (sent := delivery(task)) is not None and task.id not in made.held:
            if self._is_awaited(dag, made, task) and sent["type"] == "lambda":
                target = self._awaited_function(task, sent)
            elif self._is_awaited(dag, made, task):
                self.draft.find(
                    f"line {task.line}",
                    f"the target of {task.id}, {sent['type']}, is not carried over",
                    "other work waits for its end, and Sluice learns only of its delivery",
                    "let a Step Functions state machine or a Lambda function send it, or let nothing wait for it",
                )
            else:
                target, retries, timeout = sent, None, None
                self._delivered(task)
        if is_sensor(task):
            timeout = timeout or span(min(max(_longest_wait(task), 60), 30 * 86_400))
        body: Document = {
            "description": _text(task.named.get("doc_md")).strip().split("\n")[0][:200]
            or (f"{what}: fill in the target" if target is None else what),
            "target": target or unknown_target(),
            "retries": retries,
            "timeout": timeout,
            "properties": literals(task) if target is None else None,
        }
        self.draft.parts["workflows"][name] = without_empty(body)
        self.targets.report_task(dag, task, target)
        if target is None:
            self._missing(made, task, name)
        elif target["type"] == "worker":
            pool = target["pool"]
            self.draft.find(
                f"pool {pool}",
                "shell commands run on workers",
                "Sluice runs no shell; a worker on your machine asks for the runs of its pool",
                f"run there: sluice worker run --pool {self.draft.namespace}.{pool} -- {{args}}",
            )
        if task.takes:
            self.draft.find(
                f"line {task.line}",
                f"the results of {', '.join(dict.fromkeys(task.takes))} are not handed to {task.shown}",
                "XComs are not carried over",
                "let the first job call sluice_job.result, and the next one read it in its run context",
            )
        self._report_choice(made, task)

    def _report_choice(self, made: Graph, task: Task) -> None:
        """Say what the job of a branching task must return."""
        after = ", ".join(made.after(task.id))
        if not after or not (is_branch(task) or is_short_circuit(task)):
            return
        result = '{"continue": true}' if is_short_circuit(task) else '{"branch": [...]} with the task_ids of Airflow'
        self.draft.find(
            f"line {task.line}",
            f"{task.kind} {task.id} became conditions of the edges to {after}",
            "its code decides, and Sluice does not run it",
            f"let its job return {result} as its result (sluice_job.result); "
            "without one, the nodes after it are blocked",
        )

    def _each(self, made: Graph, task: Task, names: dict[str, str], when: str | None) -> Document | None:
        """One job for each element of a list in the result of another task; None for a task that is not mapped, and,
        with a finding, where that cannot be."""
        if task.mapped is None:
            return None
        where, over = f"line {task.mapped.line}", list(task.mapped.over.values())
        of = over[0] if len(over) == 1 else None
        why = ""
        if len(over) > 1:
            why = "it has several lists"
        elif not isinstance(of, Task):
            why = "its list is computed at run time, and is no result of a task"
        elif of.mapped is not None:
            why = f"its list are the results of {of.id}, which is mapped too"
        elif of.id not in made.before[task.id] or when in (*UNCONDITIONAL, "one_succeeded"):
            why = "it may begin before its list is there"
        if why or not isinstance(of, Task):
            self.draft.find(
                where,
                f"the mapped task {task.id} became one node",
                why,
                "let a node before it return one list, and add each: {of: NODE}; or let the workflow do all items",
            )
            return None
        self.draft.find(
            where,
            f"the mapped task {task.id} became one job for each element of the result of {of.id}",
            "an empty list is a success, with which the next nodes run; in Airflow it skips them",
            f"let the job of {of.id} return the list (sluice_job.result), of at most 1,000 elements and 10,000 bytes, "
            "and the other one read its element in its run context (each)",
        )
        most = task.named.get("max_active_tis_per_dagrun")
        return {"of": names[of.id], **({"concurrency": most} if _is_count(most) else {})}

    def _missing(self, made: Graph, task: Task, workflow: str) -> None:
        if is_sensor(task):
            self.draft.find(
                f"line {task.line}",
                f"the {task.kind} {task.id} became the workflow {workflow}, whose target is missing",
                "a node runs a workflow, and waits for nodes and constraints, not for events",
                "let the DAG's trigger wait for it, split the DAG there, or remove the node and add "
                f"{SENSORS.get(task.kind.removesuffix('Async'), 'fresh or probe')} to the next one",
            )
        elif task.id in made.held and task.kind in EMPTY_KINDS:
            self.draft.find(
                f"line {task.line}",
                f"the {task.kind} {task.id} became the workflow {workflow}, whose target is missing",
                "the tasks after it depend on how it ends, and Sluice has no node that runs nothing",
                f"write a target that does nothing into workflows.{workflow}, or the join rule into the nodes after it",
            )
        else:
            self.targets.report_missing(task, workflow)

    def _is_awaited(self, dag: Dag, made: Graph, task: Task) -> bool:
        """Whether a node, an asset or the sensor of another DAG waits for the end of a task."""
        every = [each for one in self.dags for each in one.tasks.values()]
        watched = any(
            each.kind == "ExternalTaskSensor" and each.named.get("external_dag_id") == dag.id for each in every
        )
        return bool(task.named.get("outlets")) or watched or bool(made.after(task.id))

    def _awaited_function(self, task: Task, sent: Document) -> Document:
        """The target of a Lambda function for whose end other work waits."""
        if not sent.get("wait"):
            self.draft.find(
                f"line {task.line}",
                f"the nodes after {task.id} wait for the end of its function",
                "Airflow waits until Lambda has taken an invocation of the type Event",
                "remove the edges from this node and wait: true if they must not wait",
            )
        if task.named.get("payload"):
            self._content(task)
        return {**sent, "wait": True}

    def _content(self, task: Task) -> None:
        self.draft.find(
            f"line {task.line}",
            f"the content that {task.id} sends is not carried over",
            "the node of a DAG sends its run context",
            "let the receiver read the context, or write a schedule with data instead of the node",
        )

    def _delivered(self, task: Task) -> None:
        """Report what a delivery has instead of the arguments of an operator."""
        self._content(task)
        if task.named.get("retries") or task.named.get("execution_timeout"):
            self.draft.find(
                f"line {task.line}",
                f"retries and execution_timeout of {task.id} are not carried over",
                "Sluice tries a delivery again for as long as the delivery policy of the target says",
                "set delivery on the target if the default does not fit",
            )

    # What the trigger waits for in addition to the schedule of the DAG

    def _beginning(self, dag: Dag) -> tuple[list[Task], list[Document]]:
        """The sensors that run before all other tasks and become a part of the trigger, and their triggers."""
        before: dict[str, list[str]] = {name: [] for name in dag.tasks}
        for one, other in dag.pairs():
            before[other].append(one)
        parts: dict[str, Task] = {}
        conditions: list[Document] = []
        left = dict(dag.tasks)
        while ready := [name for name in left if not set(before[name]) & set(left)]:
            for name in ready:
                task = left.pop(name)
                first = all(each in parts for each in before[name])
                if first and task.kind in EMPTY_KINDS:
                    parts[name] = task
                elif first and is_sensor(task) and (found := self._condition(dag, task)) is not None:
                    parts[name] = task
                    conditions.append(found)
        return [task for task in parts.values() if task.kind not in EMPTY_KINDS], conditions

    def _timeout(self, dag: Dag, parts: list[Task], trigger: Document) -> Document | str | None:
        """How long the trigger may wait. Airflow waits for assets without an end. A sensor waits from the fire on; the
        wait of a trigger begins with the first of its events, up to one interval before the fire."""
        if not parts:
            return "never" if waits_for_all(trigger) else None
        for task in parts:
            if task.named.get("soft_fail") is True:
                self.draft.find(
                    f"line {task.line}",
                    f"after the timeout of {task.id} no node runs",
                    "the job of the trigger is aborted; with soft_fail, Airflow skips the tasks after the sensor alone",
                    "nothing, if no other task may run then",
                )
        wait, before = max(1, min(_longest_wait(task) for task in parts)), longest_gap(trigger)
        if before:
            self.draft.find(
                f"DAG {dag.id}",
                f"its trigger waits at most {span(wait + before)} from the first of its events",
                f"Airflow waits {span(wait)} from the fire; the other events may come up to {span(before)} before it",
                "set timeout on the DAG if they come later or earlier",
            )
        return {"after": span(wait + before)}

    def _report_waits(self, dag: Dag, made: Graph, parts: list[Task]) -> None:
        pairs = dag.pairs()
        for task in parts:
            behind, ahead = {task.id}, [task.id]
            while ahead:
                name = ahead.pop()
                found = [other for one, other in pairs if one == name and other not in behind]
                behind |= set(found)
                ahead += found
            if free := [name for name in made.before if name not in behind]:
                self.draft.find(
                    f"line {task.line}",
                    f"also {', '.join(free)} wait for {task.id}",
                    "the trigger starts the whole DAG",
                    "make a DAG of their own for them if they must not wait",
                )

    def _condition(self, dag: Dag, task: Task) -> Document | None:
        """The trigger for a sensor that runs before all other tasks; None if there is none."""
        if task.kind == "S3KeySensor" and (found := self._dataset(task)) is not None:
            return {"type": "partition", "dataset": found}
        other = task.named.get("external_dag_id")
        if task.kind == "ExternalTaskSensor" and isinstance(other, str):
            return self._of_other_dag(dag, task, other)
        return None

    def _of_other_dag(self, dag: Dag, task: Task, other: str) -> Document | None:
        where, named = f"line {task.line}", task.named
        ids = named.get("external_task_ids", named.get("external_task_id"))
        wanted = [each for each in (ids if isinstance(ids, list) else [ids]) if isinstance(each, str)]
        known = next((each for each in self.dags if each.id == other and each is not dag), None)
        if known is not None and not wanted:
            firsts = {one for one, _ in known.pairs()}
            wanted = [name for name in known.tasks if name not in firsts]
        if known is None:
            names = [f"{self.draft.namespace}.{name_of(other)}.{name_of(each)}" for each in wanted or [other]]
            self.draft.find(
                where,
                f"it waits for the workflow {', '.join(names)}",
                f"the DAG {other} is in another file",
                "convert that file with the app's name, or correct the name",
            )
        else:
            names = [self.workflows[other, each] for each in wanted if (other, each) in self.workflows]
        if not names:
            return None
        self.draft.find(
            where,
            f"the sensor {task.id} became a part of the trigger: any next success of {', '.join(names)} counts",
            "Airflow waits for the run of the same logical date",
            "nothing, if both run as often; else add fresh to the first nodes",
        )
        leaves = [{"type": "program_status", "workflow": name} for name in names]
        return leaves[0] if len(leaves) == 1 else {"type": "all", "triggers": leaves}

    def _dataset(self, task: Task) -> str | None:
        """The name of the dataset whose partition a key such as ``s3://lake/raw/orders/day={{ ds }}/_SUCCESS`` names.
        None for a key without such a partition."""
        found = _partition_of(task)
        if found is None:
            return None
        name, body = found
        for known, other in self.draft.parts["datasets"].items():
            if other == body:
                return str(known)
        self.draft.find(
            f"line {task.line}",
            f"the sensor {task.id} became a part of the trigger: any new partition counts",
            "Airflow waits for the key of its own logical date",
            "nothing, if a partition comes for each run; else use a trigger of the partition alone, with by",
        )
        return self.draft.add("datasets", name_of(name, "dataset"), body)

    # What differs

    def _report_names(self, dag: Dag, name: str, names: dict[str, str]) -> None:
        changed = [f"{old} became {new}" for old, new in ((dag.id, name), *names.items()) if old != new]
        if changed:
            self.draft.find(
                f"DAG {dag.id}",
                f"names were changed: {', '.join(changed)}",
                "a name has lower-case letters, digits, - and _, and at most 63 of them",
                "use the new names in calls and alarms",
            )

    def _report_last(self, dag: Dag, made: Graph, joins: dict[str, str]) -> None:
        if last := [name for name in made.before if joins.get(name) in RUNS_ON and not made.after(name)]:
            self.draft.find(
                f"DAG {dag.id}",
                f"its run fails after a failure, although {', '.join(last)} succeeded",
                "in Airflow the last tasks alone decide the state of a run",
                "nothing; docs/dags.md says which join rules take care of a failure",
            )


def _partition_of(task: Task) -> tuple[str, Document] | None:
    """The dataset that the key of a sensor names: its name and its definition."""
    key = task.named.get("bucket_key")
    bucket, path = task.named.get("bucket_name"), key
    if isinstance(key, str) and key.startswith("s3://"):
        bucket, _, path = key[5:].partition("/")
    if not isinstance(path, str) or not isinstance(bucket, str):
        return None
    folders = re.sub(r"\{\{.*?\}\}", "x", path).split("/")
    first = next((at for at, part in enumerate(folders) if PARTITION.fullmatch(part)), None)
    if first is None or "{" in bucket or not first:
        return None
    keys: list[str] = []
    while first + len(keys) < len(folders) - 1 and (part := PARTITION.fullmatch(folders[first + len(keys)])):
        keys.append(part[1])
    flag = folders[-1]
    if not keys or first + len(keys) != len(folders) - 1:
        return None
    prefix = "/".join(folders[:first]) + "/"
    if any(sign in prefix for sign in "*?[") or prefix.startswith("/"):
        return None
    ready = {"ready": {"done_flag": flag}} if flag and not any(sign in flag for sign in "*?[") else {}
    return folders[first - 1], {"bucket": bucket, "prefix": prefix, "keys": keys, **ready}


def _distinct(texts: Iterator[str] | Any, taken: set[str], fallback: str) -> dict[str, str]:
    """A name for each text that no other has, nor any in ``taken``."""
    found: dict[str, str] = {}
    for text in texts:
        base = name = name_of(text, fallback)
        number = 2
        while name in taken or name in found.values():
            name, number = f"{base[:58]}-{number}", number + 1
        found.setdefault(text, name)
    return found


def _shown(value: Any) -> str:
    """A value for a report; a part of the code is not known before it runs."""
    return repr(value) if isinstance(value, str | int | float) else "what is computed at run time"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _seconds(value: Any) -> float:
    """The timeout of a sensor in seconds; that of Airflow if none is known."""
    if isinstance(value, Span):
        return value.seconds
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else SENSOR_TIMEOUT


def _longest_wait(task: Task) -> float:
    """The seconds after which a sensor gives up. Unless it is rescheduled between two looks, execution_timeout ends an
    attempt too, and another may follow."""
    named, wait = task.named, _seconds(task.named.get("timeout"))
    limit, retries = named.get("execution_timeout"), named.get("retries")
    if isinstance(limit, Span) and named.get("mode") != "reschedule":
        wait = min(wait, limit.seconds * (1 + (retries if isinstance(retries, int) else 0)))
    return wait


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
