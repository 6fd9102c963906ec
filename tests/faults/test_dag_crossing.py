"""Two Lambdas act on a DAG at one moment, in the orders of their calls (W4, W17).

In every order, its runs end with a final state, and each expected node has run once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.ref import run_ref
from chalicelib.flow.dags import actions as flow
from chalicelib.flow.dags.cancel import cancel
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.system import dispatch
from tests.acceptance.words import on, partition
from tests.faults.meetings.entry import try_two
from tests.faults.meetings.situation import Played, two
from tests.faults.meetings.situations_queues import made
from tests.support import dags
from tests.support.crossings import at_each_call, cross
from tests.support.dags import dag
from tests.support.snapshot import Start
from tests.support.world import EMR, World, day, flights, full

CHAIN = dag("a -> b")
Act = Callable[[World], object]
Holds = Callable[[list[str], list[str]], bool]
"""Of the nodes that have run, in order, and the states of the runs of the DAG."""


def _a_is_failed(world: World) -> None:
    dags.ends(world, "a", "FAILED")


def _a_ends(world: World) -> None:
    world.emr_says(dags.living(world)["a"], "SUCCESS")


def _nothing(world: World) -> None:
    return None


def _again(request: str, what: str = "all") -> Act:
    def act(world: World) -> None:
        try:
            dags.rerun(world, what, "a" if what != "all" else None, request)
        except SluiceError as error:
            assert error.code in ("conflict", "not_found")

    return act


def _is_over(world: World) -> None:
    dags.ends(world, "a")
    dags.ends(world, "z")


def _deleted(world: World) -> None:
    flow.delete(world.ports, full("daily"), "tester")


def _replaced(world: World) -> None:
    dags.put(world, dag("a -> c"))


def _deleted_and_put(world: World) -> None:
    _deleted(world)
    world.clock.pass_by("1s")
    dags.put(world, CHAIN)


CROSSINGS: dict[str, tuple[Act, Act, Act, Holds]] = {
    "two requests to run it again": (
        _a_is_failed,
        _again("r1"),
        _again("r2"),
        lambda ran, states: ran == ["a", "a", "b"] and states == ["SUCCEEDED"],
    ),
    "one request, sent twice": (
        _a_is_failed,
        _again("r1", "from"),
        _again("r1", "from"),
        lambda ran, states: ran == ["a", "a", "b"] and states == ["SUCCEEDED"],
    ),
    "a node ends while its DAG is deleted": (
        _nothing,
        _a_ends,
        _deleted,
        lambda ran, states: (ran, states) in ((["a"], ["FAILED"]), (["a", "b"], ["SUCCEEDED"])),
    ),
    "a node ends while its DAG is deleted and comes again": (
        _nothing,
        _a_ends,
        _deleted_and_put,
        lambda ran, states: (ran, states) in ((["a"], ["FAILED"]), (["a", "b"], ["SUCCEEDED"])),
    ),
    "a node ends while its DAG gets another graph": (
        _nothing,
        _a_ends,
        _replaced,
        lambda ran, states: ran == ["a", "b"] and states == ["SUCCEEDED"],
    ),
    "it is run again while it is deleted": (
        _a_is_failed,
        _again("r1"),
        _deleted,
        lambda ran, states: ran[:1] == ["a"] and len(ran) <= 3 and states in (["FAILED"], ["SUCCEEDED"]),
    ),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_w4_two_requests_in_any_order_let_a_dag_end(name: str, record_property: Any) -> None:
    before, one, other, holds = CROSSINGS[name]

    def build() -> World:
        app = dags.app(CHAIN, w_c={"target": EMR})
        return made(app, lambda world: world.upload(day(1)), lambda world: world.settle(), before)

    def finally_(played: Played) -> None:
        assert [job for each in flow.owned(played.world.ports, full("daily")) for job in played.world.jobs(each)] == []
        found = [view["state"] for view in dags.views(played.world)]
        assert holds(dags.ran(played.world), found), f"{dags.ran(played.world)}, {found}"

    situation = two(build, one, other, rest=_rest, awake=False, check_rest=lambda world: None, finally_=finally_)
    try_two(situation, most=16, least=10, note=record_property)


NOT_NOW = {"type": "time_window", "start": "03:00", "end": "03:01", "on_unmet": "wait"}
# The rule of z, how a and b end, and the states of z and of the run. None: a person cancels the job of b.
JOINS: dict[str, tuple[str, str, str | None, str, str]] = {
    "all_done": ("all_done", "FAILED", "SUCCESS", "SUCCEEDED", "FAILED"),
    "none_failed": ("none_failed", "SUCCESS", "SUCCESS", "SUCCEEDED", "SUCCEEDED"),
    "one_succeeded": ("one_succeeded", "SUCCESS", "SUCCESS", "SUCCEEDED", "SUCCEEDED"),
    "one_failed": ("one_failed", "FAILED", "FAILED", "SUCCEEDED", "SUCCEEDED"),
    "a job is cancelled": ("all_done", "SUCCESS", None, "SUCCEEDED", "FAILED"),
    "one fails, a job is cancelled": ("one_failed", "FAILED", None, "SUCCEEDED", "SUCCEEDED"),
}


@pytest.mark.parametrize("name", JOINS)
def test_w17_two_nodes_that_end_at_once_start_a_join_once(name: str, record_property: Any) -> None:
    rule, one, other, of_z, of_run = JOINS[name]
    waits = {"b": {"workflow": "w_b", "constraints": [NOT_NOW]}} if other is None else {}
    document = dag("a -> z", "b -> z", nodes={"z": {"workflow": "w_z", "when": rule}} | waits)

    def build() -> World:
        return made(dags.app(document), lambda world: world.upload(day(1)), lambda world: world.settle())

    def ends(node: str, outcome: str | None) -> Act:
        if outcome is None:
            return _is_cancelled
        return lambda world: world.emr_says(dags.living(world)[node], outcome)

    def finally_(played: Played) -> None:
        [view] = dags.views(played.world)
        assert (view["nodes"]["z"]["state"], view["state"]) == (of_z, of_run), view
        assert dags.ran(played.world).count("z") == 1

    acts = (ends("a", one), ends("b", other))
    situation = two(build, *acts, rest=_rest, awake=False, check_rest=lambda world: None, finally_=finally_)
    try_two(situation, most=16, least=10, note=record_property)


@pytest.mark.parametrize(("rule", "outcome"), [("one_failed", "FAILED"), ("one_succeeded", "SUCCESS")])
def test_w17_a_join_that_has_run_is_not_started_again(rule: str, outcome: str) -> None:
    """Before any call of the invocation that decides by the end of b, z is started by the end of a."""
    document = dag("a -> z", "b -> z", nodes={"z": {"workflow": "w_z", "when": rule}})
    start = Start(lambda: made(dags.app(document), lambda world: world.upload(day(1)), lambda world: world.settle()))

    def play(before: int | None) -> int:
        world = start.again()
        a, b = (dags.living(world)[node] for node in "ab")

        def a_ends() -> None:
            world.emr_says(a, outcome)
            world.settle()

        calls = cross(world, before, a_ends, lambda: world.emr_says(b, outcome))
        _rest(world)
        assert dags.ran(world).count("z") == 1
        assert [job for each in flow.owned(world.ports, full("daily")) for job in world.jobs(each)] == []
        return calls

    assert all(play(before) for before in range(play(None)))


def _is_cancelled(world: World) -> None:
    [name] = [each for each in flow.owned(world.ports, full("daily")) if each.endswith("~b")]
    for job in world.jobs(name):
        withdraw(world.ports, job.job_id, "ann")


def _rest(world: World) -> None:
    for _ in range(4):
        world.settle()
        world.finish()
        world.clock.pass_by("11m")
        world.tick()


LIMITED = dag("a -> b", concurrency={"max": 1, "on_unmet": "wait"}, run_timeout="2h")


def _cancelled(world: World) -> None:
    for run in world.runs("daily~"):
        if run.state == "RUNNING":
            run_actions.cancel(world.ports, run.run_id, "ann")


def _another_day(world: World) -> None:
    world.upload(day(2))
    world.settle()


def _b_is_last(world: World) -> None:
    dags.ends(world, "a")


def _b_ends(outcome: str) -> Act:
    return lambda world: world.emr_says(dags.living(world)["b"], outcome)


# What was before, the two acts, and the states of the starts.
LIMITS: dict[str, tuple[Act, Act, Act, tuple[list[str], ...]]] = {
    "the last node ends while the run is cancelled": (
        _b_is_last, _b_ends("SUCCESS"), _cancelled, (["SUCCEEDED"], ["CANCELLED"]),
    ),
    "the last node fails while another run begins": (
        _b_is_last, _b_ends("FAILED"), _another_day, (["FAILED", "SUCCEEDED"],),
    ),
    "a node ends while the run is cancelled": (_nothing, _a_ends, _cancelled, (["CANCELLED"], ["SUCCEEDED"])),
    "it is deleted while the last node ends": (_b_is_last, _b_ends("SUCCESS"), _deleted, (["SUCCEEDED"],)),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_w20_a_run_ends_once_and_gives_its_place_back(name: str, record_property: Any) -> None:
    before, one, other, ends = LIMITS[name]

    def build() -> World:
        return made(dags.app(LIMITED), lambda world: world.upload(day(1)), lambda world: world.settle(), before)

    def finally_(played: Played) -> None:
        world = played.world
        assert sorted(run.state for run in world.runs("daily~")) in ends
        assert world.limit_state("dag:demo.flights.daily").active == 0
        assert len(dags.ran(world)) == len(set(_by_run(world))), "no node ran twice"

    situation = two(build, one, other, rest=_rest, awake=False, check_rest=lambda world: None, finally_=finally_)
    try_two(situation, most=16, least=10, note=record_property)


RULED = dag("a -> z", nodes={"z": {"workflow": "w_z", "when": "all_done"}})
# What was before, and what meets the cancel of the DAG run.
ENDED: dict[str, tuple[Act, Act]] = {
    "a node ends": (_nothing, _a_ends),
    "a node fails": (_nothing, lambda world: world.emr_says(dags.living(world)["a"], "FAILED")),
    "the last node starts": (_a_ends, lambda world: world.settle()),
    "it is run again": (_is_over, _again("r1", "from")),
}


@pytest.mark.parametrize("name", ENDED)
def test_w20_no_node_starts_after_a_cancel(name: str, record_property: Any) -> None:
    """Of a DAG without limits, whose start was over long ago."""
    before, one = ENDED[name]

    def build() -> World:
        return made(dags.app(RULED), lambda world: world.upload(day(1)), lambda world: world.settle(), before)

    def ended(world: World) -> None:
        with suppress(SluiceError):  # it was run again after the cancel was refused
            cancel(world.ports, world.runs("daily~")[0].run_id, "ann")

    def finally_(played: Played) -> None:
        [view] = dags.views(played.world)
        refused = all(node["code"] != "dag_cancelled" for node in view["nodes"].values())
        ends = ("SUCCEEDED",) if refused and name == "it is run again" else ("ABORTED", "CANCELLED")
        assert view["nodes"]["z"]["state"] in ends, view
        assert [job for each in flow.owned(played.world.ports, full("daily")) for job in played.world.jobs(each)] == []

    situation = two(build, one, ended, rest=_rest, awake=False, check_rest=lambda world: None, finally_=finally_)
    try_two(situation, most=8, least=8, note=record_property)


def _by_run(world: World) -> list[tuple[str, str]]:
    contexts = [run.request["dag"] for run in world.targets.emr.runs.values()]
    return [(context["run_id"], context["node"]) for context in contexts]


SLOW = {"clean": on(partition(), "brief")}


@pytest.mark.parametrize("event", ["RUNNING", "SUCCESS"])
def test_w21_a_start_and_the_end_of_its_time_meet(event: str) -> None:
    """Before each call of the invocation that finds the time over, the target says that the run begins, or has ended.
    It ends as the target says, or it was cancelled before."""
    document = flights(SLOW, brief={"target": EMR, "start_timeout": "5m"})
    start = Start(lambda: made(document, lambda world: world.upload(day(1)), lambda world: world.settle()))

    def play(before: int | None) -> int:
        world = start.again()
        world.clock.wait_until(world.clock.now() + 5 * MINUTE)
        [run] = world.runs("clean")
        ref = run_ref(run.run_id, run.attempt)

        said: list[str] = []

        def says() -> None:
            if world.targets.emr.runs["jr00001"].state == "SUBMITTED":
                said.append(event)
                world.emr_says("jr00001", "RUNNING")
                if event != "RUNNING":
                    world.emr_says("jr00001", event)

        calls = cross(world, before, says, lambda: dispatch.dispatch(world.ports, ref))
        _rest(world)
        [run] = world.runs("clean")
        cancelled = world.targets.emr.runs["jr00001"].state == "CANCELLED"
        succeeds = said == ["SUCCESS"] or not cancelled
        assert run.state == ("SUCCEEDED" if succeeds else "FAILED")
        assert world.limit_state("workflow:demo.flights.brief").active == 0
        return calls

    at_each_call(play, least=3)
