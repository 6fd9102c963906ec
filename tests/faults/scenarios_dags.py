"""DAGs, for `test_crash_points.py` (W4, W17, W19): put, run, run again in part, replaced while they run, deleted,
joined, with a node that runs for each element of a list."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Run
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags import cancel
from chalicelib.flow.jobs import actions as job_actions
from chalicelib.flow.runs import actions as run_actions
from tests.faults.dying import Scenario, passes, people, upload
from tests.faults.scenarios_gathered import HALVES, half
from tests.support import dags
from tests.support.fakes import EmrRun
from tests.support.world import World, full

DAILY = full("daily")
NODES = {"a": {"workflow": "clean"}, "b": {"workflow": "join"}, "c": {"workflow": "clean"}}
FAN = dags.dag("a -> b", "a -> c", nodes=NODES)
CHAIN = dags.dag("a -> b", "b -> c", nodes=NODES)
NOT_NOW = {"type": "time_window", "start": "03:00", "end": "03:01", "on_unmet": "abort"}
RULES = {
    "b": {"workflow": "join", "constraints": [NOT_NOW]},
    "alarm": {"workflow": "clean", "when": "one_failed"},
    "tidy": {"workflow": "join", "when": "all_done"},
}
RULED = dags.dag("a -> b", "a -> c", "c -> alarm", "b -> tidy", "alarm -> tidy", nodes=NODES | RULES)


def _b_fails_at_first(run: EmrRun) -> str:
    answer = run.request["dag"]
    return "FAILED" if (answer["node"], answer["round"]) == ("b", 1) else "SUCCESS"


def _c_fails(run: EmrRun) -> str:
    return "FAILED" if run.request["dag"]["node"] == "c" else "SUCCESS"


def _settle_down(world: World, outcome: Callable[[EmrRun], str] = _b_fails_at_first) -> None:
    """Time passes until all active work has ended, in spite of kills."""
    for _ in range(5):
        for run in world.targets.emr.runs.values():
            run.state = outcome(run) if run.state in ("SUBMITTED", "RUNNING") else run.state
        passes(world, "1m", "11m")


def _run_again_from_a_node(world: World) -> None:
    people(world, lambda: dags.put(world, CHAIN))
    upload(world, 1)
    _settle_down(world)
    people(world, lambda: dags.rerun(world, "from", "b"))
    _settle_down(world)
    people(world, lambda: dags.rerun(world, "only", "a", "r2"))


def _replaced_while_it_runs(world: World) -> None:
    people(world, lambda: dags.put(world, CHAIN))
    upload(world, 1)
    people(world, lambda: dags.put(world, FAN))
    upload(world, 2)
    _settle_down(world)
    people(world, lambda: _deleted(world))
    upload(world, 3)


OF_DAYS = dags.dag(
    "a -> b",
    nodes={name: NODES[name] for name in "ab"},
    trigger={"type": "partition", "dataset": "halves", "of": "period"},
    by=[],
    per="day",
    incomplete={"after": "5m"},
    late="again",
)


def _late_half(world: World) -> None:
    """The first of March is over, and its job has five minutes to become complete."""
    people(world, lambda: dags.put(world, OF_DAYS))
    half(world, "2026-03-01T00")
    passes(world, "4m30s", "31s")
    _settle_down(world, lambda run: "SUCCESS")
    half(world, "2026-03-01T12")
    _settle_down(world, lambda run: "SUCCESS")


def _has_its_days(world: World) -> bool:
    """The last DAG run has both halves, and all nodes their day."""
    starts = sorted(world.runs("daily~"), key=lambda run: run.claimed_at)
    runs = [run.request for run in world.targets.emr.runs.values()]
    assert {context["period"]["label"] for context in runs} == {"2026-03-01"}
    assert dags.states(world) == [dict.fromkeys("ab", "SUCCEEDED")] * len(starts)
    return len(world.given(starts[-1])) == 2


def _joined(world: World) -> None:
    """The job of b is aborted, c fails: alarm runs, then tidy, which has one end without a run before it."""
    people(world, lambda: dags.put(world, RULED))
    upload(world, 1)
    _settle_down(world, _c_fails)
    people(world, lambda: dags.rerun(world, "from", "c"))


EACH = dags.dag(
    "a -> b",
    "b -> c",
    nodes=NODES | {"b": {"workflow": "join", "each": {"of": "a", "path": "files", "concurrency": 2}}},
)
ONE_BY_ONE = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
IN_A_QUEUE = dags.dag(
    "a -> b",
    "b -> c",
    nodes=NODES | {"b": {"workflow": "join", "each": {"of": "a"}, "constraints": [ONE_BY_ONE]}},
)


def _element_fails_at_first(run: EmrRun) -> str:
    """Of the elements, the second one fails in the first round."""
    answer = run.request
    is_first = (answer.get("each", {}).get("index"), answer["dag"]["round"]) == (1, 1)
    return "FAILED" if is_first else "SUCCESS"


def _for_each_element(world: World) -> None:
    """Three elements, two of them at once. The second fails, and runs again alone."""
    _write_results(world, lambda round_: {"files": ["x", "y", "z"]})
    people(world, lambda: dags.put(world, EACH))
    upload(world, 1)
    _settle_down(world, _element_fails_at_first)
    people(world, lambda: dags.rerun(world, "from", "b", elements="failed"))


def _cancelled_elements(world: World) -> None:
    """One of three elements runs, two are in a queue. A person cancels the job of one, and then the node."""
    _write_results(world, lambda round_: ["x", "y", "z"])
    people(world, lambda: dags.put(world, IN_A_QUEUE))
    upload(world, 1)
    for _ in range(5):
        for run in world.targets.emr.runs.values():
            run.state = "SUCCESS" if run.request["dag"]["node"] == "a" else run.state
        passes(world, "1m", "11m")
    waiting = [job for job in world.jobs(_schedule(world, "b")) if job.element is not None]
    if waiting:
        people(world, lambda: _withdrawn(world, waiting[0].job_id))
    whole = dags.views(world)[0]["nodes"]["b"]["run_id"]
    people(world, lambda: run_actions.cancel(world.ports, whole, "tester"))


def _withdrawn(world: World, job_id: str) -> None:
    """Cancel a job unless it is gone: a request that was killed in its last write is not repeated."""
    with suppress(SluiceError):
        job_actions.withdraw(world.ports, job_id, "tester")


def _schedule(world: World, node: str) -> str:
    names = flow.dag_view(world.ports, DAILY)["schedules"]
    return next(name for name in names if name.endswith(f"~{node}"))


def _has_its_elements(world: World) -> bool:
    """Each element ran once in each round in which it had to, with its value, and c after them."""
    runs = [run.request for run in world.targets.emr.runs.values() if "each" in run.request]
    ran = sorted((run["each"]["index"], run["dag"]["round"], run["each"]["value"]) for run in runs)
    assert ran == [(0, 1, "x"), (1, 1, "y"), (1, 2, "y"), (2, 1, "z")], ran
    return dags.states(world) == [dict.fromkeys("abc", "SUCCEEDED")]


def _has_no_elements_left(world: World) -> bool:
    return dags.states(world) == [{"a": "SUCCEEDED", "b": "CANCELLED", "c": "BLOCKED"}]


BRANCHED = dags.dag(
    dags.edge("a -> b", **{"if": {"mode": ["full"]}}),
    dags.edge("a -> c", **{"if": {"mode": ["delta"]}}),
    "b -> tidy",
    "c -> tidy",
    nodes=NODES | {"tidy": {"workflow": "join", "when": "none_failed"}},
)


def _branched(world: World) -> None:
    """The result of a chooses b, and in a re-run c."""
    _write_results(world, lambda round_: {"mode": "full" if round_ == 1 else "delta"})
    people(world, lambda: dags.put(world, BRANCHED))
    upload(world, 1)
    _settle_down(world, lambda run: "SUCCESS")
    people(world, lambda: dags.rerun(world, "from", "a"))
    _settle_down(world, lambda run: "SUCCESS")


def _write_results(world: World, value: Callable[[int], Any]) -> None:
    """The job of a has written its result by the time it ends, however late it was started: a ``value`` for each
    round."""

    def result(run_id: str, attempt: int, most: int) -> bytes | None:
        requests = [run.request for run in world.targets.emr.runs.values()]
        [own] = [each["dag"] for each in requests if (each["run_id"], each["attempt"]) == (run_id, attempt)]
        return json.dumps(value(own["round"])).encode() if own["node"] == "a" else None

    world.payloads.result = result  # type: ignore[method-assign]


def _is_chosen_twice(world: World) -> bool:
    """Each node ran once in a round, and only where it was chosen."""
    ran = sorted((run.request["dag"]["round"], run.request["dag"]["node"]) for run in world.targets.emr.runs.values())
    ends = {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED", "tidy": "SUCCEEDED"}
    chosen = [(1, "a"), (1, "b"), (1, "tidy"), (2, "a"), (2, "c"), (2, "tidy")]
    return dags.states(world) == [ends] and ran == chosen


ONE = CHAIN | {"concurrency": {"max": 1, "on_unmet": "wait"}}
BRIEF = FAN | {"run_timeout": "30m", "concurrency": {"max": 1, "on_unmet": "wait"}}


def _one_at_a_time(world: World) -> None:
    people(world, lambda: dags.put(world, ONE))
    upload(world, 1)
    upload(world, 2)
    for _ in range(2):
        _settle_down(world, lambda run: "SUCCESS")


def _never_together(world: World) -> bool:
    """Each run has begun after the one before it has ended, and nothing holds a place any more."""
    starts = sorted(world.runs("daily~"), key=lambda run: run.claimed_at)
    ends = [max(run.state_at or 0 for run in _of(world, start.run_id)) for start in starts]
    apart = all(start.claimed_at >= end for start, end in zip(starts[1:], ends, strict=False))
    free = world.limit_state("dag:demo.flights.daily").active == 0
    return apart and free and dags.states(world) == [dict.fromkeys("abc", "SUCCEEDED")] * 2


def _of(world: World, dag_run: str) -> list[Run]:
    nodes = [world.runs(name) for name in flow.owned(world.ports, DAILY) if name.count("~") == 2]
    return [run for runs in nodes for run in runs if str(run.partition).find(dag_run) >= 0]


def _b_hangs(run: EmrRun) -> str:
    return run.state if run.request["dag"]["node"] == "b" else "SUCCESS"


def _out_of_time(world: World) -> None:
    """b hangs: after half an hour the run ends, with b."""
    people(world, lambda: dags.put(world, BRIEF))
    upload(world, 1)
    _settle_down(world, _b_hangs)


def _has_timed_out(world: World) -> bool:
    [start] = world.runs("daily~")
    free = world.limit_state("dag:demo.flights.daily").active == 0
    [found] = dags.states(world)
    # After a kill, the first node may end so late that no other one begins.
    over = {*found.values()} <= {"SUCCEEDED", "CANCELLED", "ABORTED"} and found["b"] != "SUCCEEDED"
    return free and over and start.outcome == "timed_out"


TIDY = dags.dag("a -> b", "b -> tidy", nodes={name: NODES[name] for name in "ab"} | {"tidy": RULES["tidy"]})


def _cancelled_run(world: World) -> None:
    """A DAG without limits: its start is over, and b runs, when a person cancels the DAG run."""
    people(world, lambda: dags.put(world, TIDY))
    upload(world, 1)
    _settle_down(world, _b_hangs)
    [begun] = world.runs("daily~")
    people(world, lambda: cancel.cancel(world.ports, begun.run_id, "tester"))


def _is_cancelled_whole(world: World) -> bool:
    """After a kill, the first node may begin so late that it is cancelled, too."""
    [found] = dags.states(world)
    return found["tidy"] == "ABORTED" and {*found.values()} <= {"SUCCEEDED", "CANCELLED", "ABORTED"}


def _deleted(world: World) -> None:
    """Delete the DAG unless it is gone: a delete that was killed in its last write is not repeated."""
    if world.ports.rows.get(Definition, "dag", DAILY) is not None:
        flow.delete(world.ports, DAILY, "tester")


def _is_well(world: World) -> bool:
    return dags.states(world) == [dict.fromkeys("abc", "SUCCEEDED")]


def _keeps_its_graphs(world: World) -> bool:
    """The first run had the chain, whose b fails. The second had the fan, whose c does not wait for b."""
    chain = {"a": "SUCCEEDED", "b": "FAILED", "c": "BLOCKED"}
    fan = {"a": "SUCCEEDED", "b": "FAILED", "c": "SUCCEEDED"}
    found = dags.states(world)
    # A kill may delay the first run until the fan is deployed. Then that run has the fan, too.
    ends = (sorted([chain, fan], key=str), [fan, fan])
    return sorted(found, key=str) in ends and flow.owned(world.ports, DAILY) == []


def _ends_by_its_rules(world: World) -> bool:
    ends = {"a": "SUCCEEDED", "b": "ABORTED", "c": "FAILED", "alarm": "SUCCEEDED", "tidy": "SUCCEEDED"}
    return dags.states(world) == [ends]


DAGS = {
    "a DAG whose nodes are joined by rules, and joined again": Scenario(
        {}, _joined, [({}, 7)], outcome=_c_fails, holds=_ends_by_its_rules
    ),
    "a DAG with a node for each element of a list, one of which runs again": Scenario(
        {}, _for_each_element, [({}, 6)], outcome=_element_fails_at_first, holds=_has_its_elements
    ),
    "a DAG with a node whose elements are cancelled": Scenario(
        {},
        _cancelled_elements,
        [({}, 2), ({}, 1)],
        outcome=lambda run: "SUCCESS" if run.request["dag"]["node"] == "a" else "CANCELLED",
        holds=_has_no_elements_left,
    ),
    "a DAG whose result chooses a node, and then another one": Scenario(
        {}, _branched, [({}, 6)], outcome=lambda run: "SUCCESS", holds=_is_chosen_twice
    ),
    "a run of a DAG that goes on from the node that failed": Scenario(
        {}, _run_again_from_a_node, [({}, 5)], outcome=_b_fails_at_first, holds=_is_well
    ),
    "a DAG of a day, of which a half comes late": Scenario(
        {},
        _late_half,
        # The late half joins a job that has not started, because a Lambda died.
        [({}, 4), ({}, 2)],
        holds=_has_its_days,
        datasets=HALVES,
    ),
    "a DAG that runs once at a time": Scenario({}, _one_at_a_time, [({}, 6)], holds=_never_together),
    "a run of a DAG that takes too long": Scenario(
        {}, _out_of_time, [({}, 3), ({}, 2), ({}, 1)], outcome=_b_hangs, holds=_has_timed_out
    ),
    "a run of a DAG that is cancelled before its clean-up": Scenario(
        {}, _cancelled_run, [({}, 2), ({}, 1), ({}, 0)], outcome=_b_hangs, holds=_is_cancelled_whole
    ),
    "a DAG that is replaced while it runs, and deleted": Scenario(
        {}, _replaced_while_it_runs, [({}, 5), ({}, 6)], outcome=_b_fails_at_first, holds=_keeps_its_graphs
    ),
}
