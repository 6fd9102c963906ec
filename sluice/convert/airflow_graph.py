"""The graph of a DAG of Airflow as nodes and edges: join rules, the conditions of branches, and the tasks that run
nothing, which the graph leaves out where that changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from sluice.convert.airflow_values import Dag, Task
from sluice.convert.draft import Draft
from sluice.errors import WrongUsage

EMPTY = ("EmptyOperator", "DummyOperator", "LatestOnlyOperator")
# The sensors that wait for a run, by the operator that starts it. Sluice waits for the end of a run itself.
WATCHES = {
    "EmrServerlessJobSensor": "EmrServerlessStartJobOperator",
    "StepFunctionExecutionSensor": "StepFunctionStartExecutionOperator",
}
# The join rule for each trigger rule with the same meaning.
WHEN = {
    "all_success": "all_succeeded",
    "none_failed": "none_failed",
    "all_done": "all_done",
    "one_failed": "one_failed",
    "one_success": "one_succeeded",
    "always": "always",
    "dummy": "always",
}
# The nearest join rule for the others, and the difference.
NEAREST = {
    "none_failed_min_one_success": ("none_failed", "it runs also if all tasks before it were skipped"),
    "none_failed_or_skipped": ("none_failed", "it runs also if all tasks before it were skipped"),
    "none_skipped": ("all_succeeded", "it does not run after a failure"),
    "one_done": ("all_done", "it waits until all tasks before it have ended"),
    "all_done_min_one_success": ("all_done", "it runs also if no task before it succeeded"),
    "all_done_setup_success": ("all_done", "it runs also if its setup failed"),
}
AFTER_FAILURES = "all_failed"  # this one becomes `on: [FAILED]` of the edges
# Rules under which a task that has succeeded at once, and has no task before it, does not count.
_PASSES = ("all_success", "none_failed", "all_done", "all_done_setup_success", "none_skipped", "always", "dummy")
_REGARDLESS = ("one_failed", "all_failed", "always", "dummy")  # rules that do not wait for successes
_BRANCHES = ("Branch", "@task.branch")
_SHORT = ("ShortCircuitOperator", "@task.short_circuit")

Condition = tuple[str, tuple[Any, ...]]  # a field of the result of the task before, and the values that lead on


def rule_of(task: Task) -> str:
    """The trigger rule of a task, in lower case."""
    given = task.named.get("trigger_rule")
    text = given if isinstance(given, str) else getattr(given, "text", "")
    return text.rpartition(".")[2].lower() or ("all_done_setup_success" if task.kind == "@teardown" else "all_success")


def is_branch(task: Task) -> bool:
    return task.kind.startswith(_BRANCHES) or task.kind.endswith("BranchOperator")


def is_short_circuit(task: Task) -> bool:
    return task.kind.startswith(_SHORT) or task.kind.endswith("ShortCircuitOperator")


def is_sensor(task: Task) -> bool:
    return task.kind.removesuffix("Async").endswith("Sensor") or task.kind == "@task.sensor"


def check_order(dag: Dag, source: str) -> None:
    """Raises `WrongUsage` for tasks that wait for one another."""
    waits: dict[str, set[str]] = {name: set() for name in dag.tasks}
    for one, other in dag.pairs():
        waits[other].add(one)
    open_ = dict(waits)
    while ready := [name for name, ups in open_.items() if not ups & set(open_)]:
        for name in ready:
            del open_[name]
    if not open_:
        return
    path = [min(open_, key=list(dag.tasks).index)]
    while path.count(path[-1]) < 2:
        path.append(min(waits[path[-1]] & set(open_)))
    cycle = path[path.index(path[-1]) :][::-1]
    where = f"{source}, line {dag.tasks[cycle[0]].line}, DAG {dag.id}"
    raise WrongUsage(
        f"expected tasks in an order, got {' >> '.join(cycle)}", where, "remove an edge: Airflow refuses such a file"
    )


@dataclass
class Graph:
    """The tasks of a DAG that become nodes. ``before``: for each, the tasks before it, each with the condition on its
    result, or None. ``rules``: the trigger rule of each. ``held``: those without a counterpart that need a target which
    does nothing, because others depend on how they end."""

    before: dict[str, dict[str, Condition | None]]
    rules: dict[str, str]
    held: set[str] = field(default_factory=set)

    def after(self, name: str) -> list[str]:
        return [other for other, ups in self.before.items() if name in ups]

    def reached(self, names: Iterable[str]) -> set[str]:
        """These tasks, and all after them."""
        found, ahead = set(), list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += self.after(name)
        return found


def graph(dag: Dag, parts: Collection[str], draft: Draft) -> Graph:
    """The graph without the tasks in ``parts``, which the trigger stands for, and without those that run nothing."""
    before: dict[str, dict[str, Condition | None]] = {name: {} for name in dag.tasks}
    for one, other in dag.pairs():
        before[other][one] = None
    made = Graph(before, {name: rule_of(task) for name, task in dag.tasks.items()})
    for task in dag.tasks.values():
        _set_conditions(made, dag, task)
        if is_short_circuit(task):
            _skip_behind(made, dag, task, draft)
    for name in _in_order(before):
        task = dag.tasks[name]
        watched = is_sensor(task) and _watches(made, dag, task)
        if not (name in parts or task.kind in EMPTY or watched):
            continue
        if task.kind == "LatestOnlyOperator":
            draft.find(
                f"line {task.line}",
                f"the LatestOnlyOperator {name} was taken out",
                "every run counts as the newest one, also those of a backfill",
                "nothing, unless you run a backfill: begin it with --only, or of the nodes that you need",
            )
        if watched:
            draft.find(
                f"line {task.line}",
                f"the sensor {name} was taken out",
                "Sluice waits for the end of a run itself",
                "set timeout on the workflow before it if the sensor's timeout matters",
            )
        if not _take_out(made, name):
            made.held.add(name)
    return made


def _in_order(before: dict[str, dict[str, Condition | None]]) -> list[str]:
    waits = {name: set(ups) for name, ups in before.items()}
    found: list[str] = []
    while ready := [name for name, ups in waits.items() if not ups]:
        found += ready
        waits = {name: ups - set(ready) for name, ups in waits.items() if name not in ready}
    return found


def _set_conditions(made: Graph, dag: Dag, task: Task) -> None:
    """The conditions of the edges from a branching task. A branch keeps all that lies behind the chosen tasks, so an
    edge also leads on if a task was chosen from which its end is reached."""
    after = made.after(task.id)
    if is_short_circuit(task):
        for name in after:
            made.before[name][task.id] = ("continue", (True,))
    elif is_branch(task):
        behind = {name: made.reached([name]) for name in after}
        for name in after:
            chosen = [each for each in after if name in behind[each]]
            ids = [
                *(dag.tasks[each].shown for each in chosen),
                *(group for each in chosen for group in _groups(dag.tasks[each], task)),
            ]
            made.before[name][task.id] = ("branch", tuple(dict.fromkeys(ids)))


def _groups(task: Task, branch: Task) -> list[str]:
    """The ids of the groups that contain a task and not the branch before it: a branch may also choose a group."""
    shared = 0
    while task.path[: shared + 1] == branch.path[: shared + 1] and shared < len(task.path):
        shared += 1
    return [".".join(task.path[: depth + 1]) for depth in range(shared, len(task.path))]


def _skip_behind(made: Graph, dag: Dag, task: Task, draft: Draft) -> None:
    """Airflow skips all tasks behind a short circuit. A task whose rule would run it here gets an edge with the
    condition of the short circuit."""
    if task.named.get("ignore_downstream_trigger_rules") is False:
        return
    direct = made.after(task.id)
    behind = made.reached(direct)
    runs = []
    for name in dag.tasks:
        rule = made.rules[name]
        if name not in behind or rule in ("all_success", "none_skipped"):
            continue
        if rule in (*_REGARDLESS, "one_success"):
            runs.append(name)
        elif name not in direct:
            made.before[name][task.id] = ("continue", (True,))
    if runs:
        draft.find(
            f"line {task.line}",
            f"{', '.join(runs)} may run although {task.id} skips",
            "their join rules do not wait for all nodes; in Airflow a short circuit skips all tasks after it",
            "remove the trigger rule",
        )


def _watches(made: Graph, dag: Dag, task: Task) -> bool:
    operator = WATCHES.get(task.kind)
    return any(dag.tasks[name].kind == operator and name not in made.held for name in made.before[task.id])


def _take_out(made: Graph, name: str) -> bool:
    """Remove a task that runs nothing, and connect the tasks before it with those after it, if each of these then runs
    exactly when it would have run. Returns whether it did."""
    ups, rule, downs = made.before[name], made.rules[name], made.after(name)
    merged = {down: _without(made, name, down) for down in downs}
    found = {down: each for down, each in merged.items() if each is not None}
    if len(found) < len(downs):
        return False
    for down, edges in found.items():
        made.before[down] = edges
        if rule != "all_success" and ups:
            made.rules[down] = rule
        if not edges:
            made.rules[down] = "all_success"
    del made.before[name]
    return True


def _without(made: Graph, name: str, down: str) -> dict[str, Condition | None] | None:
    """The edges to ``down`` without the task ``name``; None if its rule then had another meaning."""
    ups, rule, own = made.before[name], made.rules[name], made.rules[down]
    others = {up: condition for up, condition in made.before[down].items() if up != name}
    if not ups:
        alone = not others and own not in ("one_failed", "all_failed", "all_skipped")
        return others if alone or own in _PASSES or (others and own == "one_failed") else None
    if rule != "all_success":
        return dict(ups) if not others and own == "all_success" else None
    if own not in ("all_success", "none_failed", "all_done", "always", "dummy") and len(ups) > 1:
        return None
    # Airflow skips a task that was not chosen under each rule. A task behind an empty task that was not chosen is
    # skipped only if its rule counts the skipped task.
    counts = own in ("all_success", "one_success")
    for up, condition in ups.items():
        if up not in others:
            others[up] = condition if counts else None
        elif own == "one_success":
            others[up] = _either(others[up], condition)
        elif own == "all_success":
            if others[up] != condition and None not in (others[up], condition):
                return None  # both must be chosen
            others[up] = others[up] or condition
    return others


def _either(one: Condition | None, other: Condition | None) -> Condition | None:
    """The condition that holds where one of the two does; both are on the result of one task."""
    if one is None or other is None:
        return None
    return one[0], tuple(dict.fromkeys((*one[1], *other[1])))
