"""Converts DAG files of Airflow into an app document. Each DAG becomes a DAG, and each task becomes a workflow.

The user fills in the targets of the workflows that the operators do not define.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from sluice import zones
from sluice.client import Document
from sluice.convert import cron
from sluice.convert.airflow_reader import Reader
from sluice.convert.airflow_values import Asset, Assets, Dag, Span, Task, Timetable, When, ZoneName, inside
from sluice.convert.aws_targets import spark_target
from sluice.convert.draft import Draft, NotCarried, name_of, span, unknown_target, without_empty
from sluice.errors import WrongUsage

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * sun",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@midnight": "0 0 * * *",
    "@once": "R1/PT1S",
}
EMPTY = ("EmptyOperator", "DummyOperator", "LatestOnlyOperator")
ENDS = {"all_failed": ["FAILED"]}  # the `on` of the edges to a task with this trigger rule
WHEN = {  # its join rule
    "all_done": "all_done",
    "all_done_setup_success": "all_done",
    "always": "always",
    "none_failed": "none_failed",
    "one_failed": "one_failed",
    "one_success": "one_succeeded",
}
PARTITION = re.compile(r"([A-Za-z_][\w-]*)=[^/]*")
MAX_NODES = 100
# Arguments of a DAG or a task that change what runs or when, and have no counterpart in Sluice.
LOST = {
    "dagrun_timeout": ("a DAG's run has no timeout", "set timeout on its workflows, or deadline"),
    "on_failure_callback": ("Sluice runs no code of yours in itself", "add notify with on: [failed] to the workflows"),
    "on_success_callback": ("Sluice runs no code of yours in itself", "add a schedule with a program_status trigger"),
    "sla_miss_callback": ("Sluice runs no code of yours in itself", "set deadline, and notify on: [missed_end]"),
    "email": ("Sluice sends no mail", "add notify with on: [failed] and an SNS topic to the workflows"),
    "depends_on_past": (
        "a node does not wait for its own last success",
        "add to the node: {type: concurrency, max: 1, on_unmet: wait}; or re-run what failed before the next run",
    ),
    "wait_for_downstream": ("a node does not wait for the nodes of the last run", "limit the nodes to one at a time"),
    "sla": ("an SLA counts from the end of the interval", "set deadline: {end_within: ...} on the workflow"),
    "pool": ("pools of Airflow are not in the file", "declare it under pools, and name it in the workflow"),
    "priority_weight": ("priorities are from 0 to 9", "set priority on the node"),
}


def convert(text: str, draft: Draft, zone: str | None = None) -> None:
    dags = Reader(draft).read(text)
    if not dags:
        hint = "the file needs DAG(...) or a function with @dag that it calls"
        raise WrongUsage("expected a DAG file of Airflow, got no DAG", draft.source, hint)
    app = App(draft, dags, zone or "UTC")
    for dag in dags:
        app.add(dag)


class App:
    """The DAGs of one file. An asset or a sensor may refer to another DAG of the file, so all are read before any is
    converted."""

    def __init__(self, draft: Draft, dags: list[Dag], zone: str) -> None:
        self.draft, self.dags, self.default_zone = draft, dags, zone
        self.workflows: dict[tuple[str, str], str] = {}
        several = len(dags) > 1
        for dag in dags:
            for task in dag.tasks.values():
                name = name_of(f"{dag.id}-{task.id}" if several else task.id, "task")
                taken = set(self.workflows.values())
                number = 2
                while name in taken:
                    name, number = f"{name[:58]}-{number}", number + 1
                self.workflows[dag.id, task.id] = name

    def add(self, dag: Dag) -> None:
        where, defaults = f"DAG {dag.id}", _dict(dag.named.get("default_args"))
        timed, zone = True, self._zone(dag, defaults)
        try:
            trigger = self._schedule(dag, where, zone, defaults)
        except NotCarried as lost:
            self.draft.find(where, f"its schedule was not converted: {lost.what}", lost.why, lost.todo)
            trigger = self._by_hand(dag)
        edges, sensors = self._graph(dag)
        conditions = [condition for task in sensors if (condition := self._condition(dag, task)) is not None]
        if conditions and trigger.get("type") == "event" and trigger["event"] == f"{name_of(dag.id)}.requested":
            trigger = conditions[0] if len(conditions) == 1 else {"type": "all", "triggers": conditions}
        elif conditions:
            trigger = {"type": "all", "triggers": [trigger, *conditions]}
        timed = _is_timed(trigger)
        tasks, after = [task for task in dag.tasks.values() if _is_node(task, sensors)], {edge["to"] for edge in edges}
        nodes = self._nodes(dag, where, defaults, tasks, after)
        if len(nodes) > MAX_NODES:
            self.draft.find(
                where, f"it has {len(nodes)} nodes", f"a DAG has at most {MAX_NODES}", "split it by program_status"
            )
        self._lost(dag, where, defaults)
        catchup = dag.named.get("catchup")
        if timed and catchup is True:
            self.draft.find(
                where,
                "catchup=True starts no runs of the past",
                "Sluice begins when the DAG is enabled",
                f"run the past: sluice backfill begin {self.draft.namespace}.{self.draft.app}.{name_of(dag.id)}~ "
                "--from ... --to ...",
            )
        tags = dag.named.get("tags")
        owner = defaults.get("owner")
        body = {
            "description": _text(dag.named.get("description"))[:1000] or dag.about.split("\n")[0][:1000],
            "tags": {tag[:100]: "yes" for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else {},
            "owner": owner if isinstance(owner, str) and owner != "airflow" else "",
            "enabled": self.draft.mode(dag.named.get("is_paused_upon_creation") is not True),
            "zone": zone if timed and zone != "UTC" else None,
            "trigger": trigger,
            "catch_up": None if not timed else ("all" if catchup is True else "latest"),
            "nodes": nodes,
            "edges": edges,
        }
        self.draft.add("dags", name_of(dag.id, "dag"), body)

    # When it runs

    def _zone(self, dag: Dag, defaults: dict[str, Any]) -> str:
        value = dag.named.get("schedule", dag.named.get("timetable"))
        named = value.named.get("timezone") if isinstance(value, Timetable) else None
        if isinstance(named, ZoneName | str):
            return named.name if isinstance(named, ZoneName) else named
        start = dag.named.get("start_date", defaults.get("start_date"))
        return start.zone if isinstance(start, When) and start.zone else self.default_zone

    def _schedule(self, dag: Dag, where: str, zone: str, defaults: dict[str, Any]) -> Document:
        keys = ("schedule", "schedule_interval", "timetable")
        given = [dag.named[key] for key in keys if key in dag.named]
        if not given:
            self.draft.find(
                where,
                "it has no schedule, so it runs by hand",
                "Airflow 3 does so too; Airflow 2 runs such a DAG once a day",
                "write a time trigger if it ran daily",
            )
        value = given[0] if given else None
        if value is None or value == "None":
            return self._by_hand(dag)
        bounds = self._bounds(dag, where, zone, defaults)
        return self._times(value, where, zone, bounds)

    def _by_hand(self, dag: Dag) -> Document:
        event = f"{name_of(dag.id)}.requested"
        self.draft.find(
            f"DAG {dag.id}",
            f"it waits for the event {event}",
            "every DAG of Sluice has a trigger",
            f"start it by hand: sluice dags run {self.draft.namespace}.{self.draft.app}.{name_of(dag.id)}; "
            f"or post the event where TriggerDagRunOperator was used: sluice event",
        )
        return {"type": "event", "event": event}

    def _bounds(self, dag: Dag, where: str, zone: str, defaults: dict[str, Any]) -> dict[str, datetime]:
        found = {}
        for key, field in (("start_date", "start"), ("end_date", "end")):
            value = dag.named.get(key, defaults.get(key))
            if isinstance(value, When):
                found[field] = _in_zone(value.wall, value.zone or zone)
            elif value is not None:
                todo = f"add `{field}:` to the trigger if it matters"
                self.draft.find(where, f"{key} is not carried over", "its value is computed at run time", todo)
        return found

    def _times(self, value: Any, where: str, zone: str, bounds: dict[str, datetime]) -> Document:
        limits = {field: _iso(at) for field, at in bounds.items()}
        if isinstance(value, str):
            if value == "@continuous":
                raise NotCarried("@continuous", "a DAG cannot wait for its own end", "use elapsed, or a time trigger")
            if value == "@once":
                return {"type": "time", "expression": PRESETS[value]}
            self._intervals(where, limits)
            return {"type": "time", "expression": PRESETS.get(value) or cron.croniter(value), **limits}
        if isinstance(value, Span) and value.seconds >= 1:
            self._intervals(where, {})
            step = timedelta(seconds=value.seconds)
            shifted = {field: _iso(at + step) for field, at in bounds.items()}
            return {"type": "time", "expression": f"@every {span(value.seconds)}", **shifted}
        if isinstance(value, Asset | Assets | list | tuple):
            return self._assets(value, where)
        if isinstance(value, Timetable):
            return self._timetable(value, where, zone, bounds)
        text = getattr(value, "text", repr(value))
        raise NotCarried(f"the schedule {text[:100]}", "its value is computed at run time", "write a time trigger")

    def _timetable(self, table: Timetable, where: str, zone: str, bounds: dict[str, datetime]) -> Document:
        first = table.given[0] if table.given else next(
            (table.named[key] for key in ("cron", "crons", "delta", "event_dates", "timetable") if key in table.named),
            None,
        )  # fmt: skip
        limits = {field: _iso(at) for field, at in bounds.items()}
        if table.kind in ("CronTriggerTimetable", "MultipleCronTriggerTimetable"):
            texts = [each for each in (*table.given, first) if isinstance(each, str)]
            leaves = [
                {"type": "time", "expression": PRESETS.get(text) or cron.croniter(text), **limits}
                for text in dict.fromkeys(texts)
            ]
            if leaves:
                return leaves[0] if len(leaves) == 1 else {"type": "any", "triggers": leaves}
        if table.kind in ("CronDataIntervalTimetable", "DeltaDataIntervalTimetable") and first is not None:
            return self._times(first, where, zone, bounds)
        if table.kind == "DeltaTriggerTimetable" and isinstance(first, Span):
            return {"type": "time", "expression": f"@every {span(first.seconds)}", **limits}
        if table.kind == "EventsTimetable" and isinstance(first, list) and all(isinstance(at, When) for at in first):
            due = [_iso(_in_zone(at.wall, at.zone or zone)) for at in first]
            return {"type": "any", "triggers": [{"type": "time", "due_time": at} for at in due]}
        if table.kind in ("AssetOrTimeSchedule", "DatasetOrTimeSchedule"):
            assets = table.named.get("assets", table.named.get("datasets"))
            time = self._times(table.named.get("timetable"), where, zone, bounds)
            return {"type": "any", "triggers": [time, self._assets(assets, where)]}
        raise NotCarried(f"the timetable {table.kind}", "its code says when it fires", "write a trigger by hand")

    def _intervals(self, where: str, limits: dict[str, str]) -> None:
        self.draft.find(
            "all DAGs with an interval",
            "logical_start_time is the instant of the fire",
            "Airflow's logical date is the beginning of the interval that ends there",
            "subtract the interval where a job reads the logical date",
        )
        if limits:
            self.draft.find(
                where,
                f"the bounds of the trigger ({', '.join(limits)}) are instants of fires",
                "in Airflow they are beginnings of intervals, whose runs start one interval later",
                "move a bound that is still to come on by one interval",
            )

    def _assets(self, value: Any, where: str) -> Document:
        if isinstance(value, Asset):
            return self._asset(value, where)
        kind, items = (value.kind, value.items) if isinstance(value, Assets) else ("all", value)
        if not isinstance(items, list | tuple) or not items:
            raise NotCarried("its assets", "their names are computed at run time", "write a trigger by hand")
        leaves = [self._assets(each, where) for each in items]
        return leaves[0] if len(leaves) == 1 else {"type": kind, "triggers": leaves}

    def _asset(self, asset: Asset, where: str) -> Document:
        """The trigger that waits for an asset. It waits for the success of the task of the file that has the asset as
        an outlet, or else for an event."""
        for dag in self.dags:
            for task in dag.tasks.values():
                if asset in list(inside(task.named.get("outlets"))) and _is_node(task, []):
                    return {"type": "program_status", "workflow": self.workflows[dag.id, task.id]}
        event = "asset." + (re.sub(r"[^A-Za-z0-9._/-]+", "-", asset.name).strip("-/")[:100] or "unnamed")
        self.draft.find(
            where,
            f"the asset {asset.name} became the event {event}",
            "no task of the file updates it",
            "name the workflow that does in a program_status trigger, declare a dataset, or post the event",
        )
        return {"type": "event", "event": event}

    # What runs

    def _graph(self, dag: Dag) -> tuple[list[Document], list[Task]]:
        """The edges between nodes, and the sensors that run before all other tasks. The edges leave out empty operators
        and sensors, and connect the tasks before each of them with the tasks after it."""
        pairs = dag.pairs()
        before: dict[str, list[str]] = {name: [one for one, other in pairs if other == name] for name in dag.tasks}
        sensors = [
            task
            for name, task in dag.tasks.items()
            if _is_sensor(task) and self._only_sensors_before(dag, name, before)
        ]
        for task in dag.tasks.values():
            if _is_sensor(task) and task not in sensors:
                self.draft.find(
                    f"line {task.line}",
                    f"the sensor {task.id} was taken out",
                    "a node waits for nodes and constraints, not for events",
                    "let the DAG's trigger wait for it, split the DAG there, or use fresh or probe on the next node",
                )
        for name in list(before):
            if not _is_node(dag.tasks[name], []):
                for ups in before.values():
                    if name in ups:
                        at = ups.index(name)
                        ups[at : at + 1] = [each for each in before[name] if each not in ups]
                before[name] = []
        names = self._node_names(dag)
        edges = []
        for name, ups in before.items():
            rule = _rule(dag.tasks[name])
            if rule not in ("all_success", *ENDS, *WHEN) and ups:
                self.draft.find(
                    f"line {dag.tasks[name].line}",
                    f"trigger_rule={rule} of {name} became all_success",
                    "Sluice has no such join rule",
                    "set `when:` of the node, `on:` of its edges, or split the DAG",
                )
            for up in ups:
                edge: Document = {"from": names[up], "to": names[name]}
                edges.append({**edge, "on": ENDS[rule]} if rule in ENDS else edge)
        return edges, sensors

    def _only_sensors_before(self, dag: Dag, name: str, before: dict[str, list[str]]) -> bool:
        return all(
            not _is_node(dag.tasks[each], []) and self._only_sensors_before(dag, each, before) for each in before[name]
        )

    def _node_names(self, dag: Dag) -> dict[str, str]:
        names: dict[str, str] = {}
        for task in dag.tasks:
            name, number, base = name_of(task, "task"), 2, name_of(task, "task")
            while name in names.values():
                name, number = f"{base[:58]}-{number}", number + 1
            names[task] = name
        return names

    def _nodes(
        self, dag: Dag, where: str, defaults: dict[str, Any], tasks: list[Task], after: Collection[str]
    ) -> Document:
        names, nodes = self._node_names(dag), {}
        for task in tasks:
            named = {**defaults, **task.named}
            workflow = self.workflows[dag.id, task.id]
            self._workflow(dag, task, workflow, named)
            limits: list[Document] = []
            delivered = _delivery(task) is not None and not self._is_awaited(dag, task)
            most = named.get("max_active_tis_per_dag", named.get("task_concurrency", dag.named.get("max_active_runs")))
            if isinstance(most, int) and not isinstance(most, bool) and most > 0 and not delivered:
                limits.append({"type": "concurrency", "max": most, "on_unmet": "wait"})
            whole = dag.named.get("max_active_tasks", dag.named.get("concurrency"))
            if isinstance(whole, int) and whole > 0 and not delivered:
                limits.append(
                    {"type": "concurrency", "group": name_of(dag.id)[:57] + "-tasks", "max": whole, "on_unmet": "wait"}
                )
            when = WHEN.get(_rule(task)) if names[task.id] in after else None
            nodes[names[task.id]] = without_empty({"workflow": workflow, "when": when, "constraints": limits})
        if "max_active_runs" in dag.named and isinstance(dag.named["max_active_runs"], int):
            self.draft.find(
                where,
                f"max_active_runs={dag.named['max_active_runs']} became a limit of each node",
                "Sluice limits runs of a workflow, not runs of a DAG",
                "nothing, unless a run must end before the first node of the next one begins",
            )
        if not nodes:
            name = name_of(dag.id, "dag")
            nodes[name] = {"workflow": self.draft.unknown(where, name, f"the tasks of {dag.id}")}
        return nodes

    def _workflow(self, dag: Dag, task: Task, name: str, named: dict[str, Any]) -> None:
        what, target = f"{task.kind} {task.id}, line {task.line}", self._target(task)
        if (sent := _delivery(task)) is not None:
            if self._is_awaited(dag, task):
                self.draft.find(
                    f"line {task.line}",
                    f"the target of {task.id}, {sent['type']}, is not carried over",
                    "other work waits for its end, and Sluice learns only of its delivery",
                    "let a Step Functions state machine call it, or let nothing wait for it",
                )
            else:
                target = sent
                self._delivered(task, named)
                named = {key: value for key, value in named.items() if key not in ("retries", "execution_timeout")}
        attempts = named.get("retries")
        body: Document = {
            "description": _text(named.get("doc_md")).strip().split("\n")[0][:200]
            or (f"{what}: fill in the target" if target is None else what),
            "target": target or unknown_target(),
            "retries": self._retries(named) if isinstance(attempts, int) and attempts > 0 else None,
            "timeout": self._timeout(task, named.get("execution_timeout")),
            "properties": _literals(task) if target is None else None,
        }
        self.draft.parts["workflows"][name] = without_empty(body)
        if target is None:
            self.draft.find(
                f"line {task.line}",
                f"{task.kind} {task.id} became the workflow {name}, whose target is missing",
                "Sluice runs no code of Airflow",
                f"replace the target of workflows.{name}; its literal arguments are in its properties",
            )
        elif target["type"] == "worker":
            pool = target["pool"]
            self.draft.find(
                f"pool {pool}",
                "shell commands run on workers",
                "Sluice runs no shell; a worker on your machine asks for the runs of its pool",
                f"run there: sluice worker run --pool {self.draft.namespace}.{pool} -- {{args}}",
            )

    def _is_awaited(self, dag: Dag, task: Task) -> bool:
        """Whether a node, an asset or the sensor of another DAG waits for the end of a task."""
        if task.named.get("outlets"):
            return True
        every = [each for one in self.dags for each in one.tasks.values()]
        if any(each.kind == "ExternalTaskSensor" and each.named.get("external_dag_id") == dag.id for each in every):
            return True
        ahead, seen = [task.id], {task.id}
        while ahead:
            name = ahead.pop()
            for other in (other for one, other in dag.pairs() if one == name and other not in seen):
                if _is_node(dag.tasks[other], []):
                    return True
                seen.add(other)
                ahead.append(other)
        return False

    def _delivered(self, task: Task, named: dict[str, Any]) -> None:
        """Report what a delivery has instead of the arguments of an operator."""
        where = f"line {task.line}"
        self.draft.find(
            where,
            f"the content that {task.id} sends is not carried over",
            "the node of a DAG sends its run context",
            "let the receiver read the context, or write a schedule with data instead of the node",
        )
        if named.get("retries") or named.get("execution_timeout"):
            self.draft.find(
                where,
                f"retries and execution_timeout of {task.id} are not carried over",
                "Sluice tries a delivery again for as long as the delivery policy of the target says",
                "set delivery on the target if the default does not fit",
            )

    def _target(self, task: Task) -> Document | None:
        """The target of an operator whose arguments contain all that Sluice needs; None for any other."""
        named = task.named
        if task.kind == "BashOperator":
            command = named.get("bash_command")
            plain = isinstance(command, str) and "{{" not in command and "{%" not in command and len(command) < 4_000
            known = plain and not {"env", "cwd"} & set(named)
            return {"type": "worker", "pool": "bash", "arguments": ["bash", "-c", command]} if known else None
        if task.kind == "EmrServerlessStartJobOperator":
            submit = _dict(_dict(named.get("job_driver")).get("sparkSubmit"))
            texts = [_text(named.get(key)) for key in ("application_id", "execution_role_arn")]
            parts = [_text(submit.get(key)) for key in ("entryPoint", "sparkSubmitParameters")]
            arguments = submit.get("entryPointArguments", [])
            if any("{{" in text for text in (*texts, *parts, json.dumps(arguments, default=str))):
                return None
            return spark_target(texts[0], texts[1], parts[0], arguments, parts[1])
        arn = _text(named.get("state_machine_arn"))
        if task.kind == "StepFunctionStartExecutionOperator" and arn.startswith("arn:") and "{{" not in arn:
            return {"type": "step_functions", "state_machine": arn}
        return None

    def _retries(self, named: dict[str, Any]) -> Document:
        delay, longest = named.get("retry_delay"), named.get("max_retry_delay")
        found: Document = {"attempts": min(named["retries"] + 1, 20)}
        found["delay"] = span(delay.seconds) if isinstance(delay, Span) and delay.seconds > 0 else "5m"
        if named.get("retry_exponential_backoff") is True:
            found["backoff"] = "exponential"
            most = longest.seconds if isinstance(longest, Span) else 86_400
            found["max_delay"] = span(max(most, delay.seconds if isinstance(delay, Span) else 300))
        return found

    def _timeout(self, task: Task, value: Any) -> str | None:
        if not isinstance(value, Span):
            return None
        if not 60 <= value.seconds <= 30 * 86_400:
            todo = "set timeout on the workflow"
            self.draft.find(f"line {task.line}", "execution_timeout is not carried over", "1m to 30d are allowed", todo)
            return None
        return span(value.seconds)

    # What the trigger waits for in addition to the schedule of the DAG

    def _condition(self, dag: Dag, task: Task) -> Document | None:
        """The trigger for a sensor that runs before all other tasks; None, with a finding, if there is none."""
        where, named = f"line {task.line}", task.named
        if task.kind == "S3KeySensor" and (found := self._dataset(task)) is not None:
            return {"type": "partition", "dataset": found}
        if task.kind == "ExternalTaskSensor" and isinstance(other := named.get("external_dag_id"), str):
            ids = named.get("external_task_ids", named.get("external_task_id"))
            wanted = [each for each in (ids if isinstance(ids, list) else [ids]) if isinstance(each, str)]
            known = next((each for each in self.dags if each.id == other), None)
            if known is not None and not wanted:
                pairs = known.pairs()
                wanted = [name for name in known.tasks if not any(one == name for one, _ in pairs)]
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
            if names:
                self.draft.find(
                    where,
                    f"the sensor {task.id} became a part of the trigger: any next success of {', '.join(names)} counts",
                    "Airflow waits for the run of the same logical date",
                    "nothing, if both run as often; else add fresh to the first nodes",
                )
                leaves = [{"type": "program_status", "workflow": name} for name in names]
                return leaves[0] if len(leaves) == 1 else {"type": "all", "triggers": leaves}
        self.draft.find(
            where,
            f"the {task.kind} {task.id} was taken out",
            "no trigger follows from its arguments",
            "write a trigger (docs/triggers.md), or use the constraint probe",
        )
        return None

    def _dataset(self, task: Task) -> str | None:
        """The name of the dataset whose partition a key such as ``s3://lake/raw/orders/day={{ ds }}/_SUCCESS`` names.
        None for a key without such a partition."""
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
        body = {"bucket": bucket, "prefix": prefix, "keys": keys, **ready}
        for known, other in self.draft.parts["datasets"].items():
            if other == body:
                return str(known)
        self.draft.find(
            f"line {task.line}",
            f"the sensor {task.id} became a part of the trigger: any new partition counts",
            "Airflow waits for the key of its own logical date",
            "nothing, if a partition comes for each run; else use a trigger of the partition alone, with by",
        )
        return self.draft.add("datasets", name_of(folders[first - 1], "dataset"), body)

    def _lost(self, dag: Dag, where: str, defaults: dict[str, Any]) -> None:
        for key, (why, todo) in LOST.items():
            for place, named in ((where, dag.named), (where, defaults)):
                if named.get(key) and key in named:
                    self.draft.find(place, f"{key} is not carried over", why, todo)
            for task in dag.tasks.values():
                if task.named.get(key):
                    self.draft.find(f"line {task.line}", f"{key} of {task.id} is not carried over", why, todo)
        if "params" in dag.named:
            self.draft.find(where, "params are not carried over", "nodes have properties", "add them to the nodes")


def _delivery(task: Task) -> Document | None:
    """The target of an operator that sends something and does not wait for an end; None for any other operator, and for
    one whose address is no plain value."""
    named = task.named
    if task.kind == "LambdaInvokeFunctionOperator":
        function = _plain(named.get("function_name"))
        waits = named.get("invocation_type", "RequestResponse") == "RequestResponse"
        found: Document = {"type": "lambda", "function": function, **({"wait": True} if waits else {})}
        return found if function.startswith("arn:") else None
    if task.kind == "SqsPublishOperator":
        url, group = _plain(named.get("sqs_queue")), _plain(named.get("message_group_id"))
        found = {"type": "sqs", "queue_url": url, **({"group": group} if group else {})}
        return found if url.startswith("https://") else None
    if task.kind == "SnsPublishOperator":
        topic, subject = _plain(named.get("target_arn")), _plain(named.get("subject"))
        found = {"type": "sns", "topic_arn": topic, **({"subject": subject} if subject else {})}
        return found if topic.startswith("arn:") else None
    return None


def _plain(value: Any) -> str:
    """A text without a template; else an empty one."""
    return value if isinstance(value, str) and "{{" not in value and "{%" not in value else ""


def _is_sensor(task: Task) -> bool:
    return task.kind.endswith("Sensor") or task.kind == "@task.sensor"


def _is_node(task: Task, sensors: list[Task]) -> bool:
    return task not in sensors and not _is_sensor(task) and task.kind not in EMPTY


def _is_timed(trigger: Document) -> bool:
    return trigger["type"] == "time" or any(_is_timed(each) for each in trigger.get("triggers", ()))


def _rule(task: Task) -> str:
    """The trigger rule of a task, in lower case."""
    return (_text(task.named.get("trigger_rule")) or "all_success").rpartition(".")[2].lower()


def _literals(task: Task) -> Document:
    """The arguments of a task that are plain values, for the user who fills in the workflow."""
    skipped = {"task_id", "outlets", "inlets", "doc_md", "trigger_rule", "dag", "retries", *LOST}
    found = {}
    for key, value in task.named.items():
        if key not in skipped and all(
            each is None or isinstance(each, str | int | float | bool | list | tuple | dict) for each in inside(value)
        ):
            found[key] = json.loads(json.dumps(value))
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _in_zone(wall: datetime, name: str) -> datetime:
    zone = zones.zone(name)
    if zone is None:
        raise NotCarried(f"the time zone {name}", "no such zone is known", "name an IANA time zone")
    return wall.replace(tzinfo=zone)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
