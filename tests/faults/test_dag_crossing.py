"""Two Lambdas act on a DAG at one moment, in the orders of their calls (W4).

In every order, its runs end with a final state, and each expected node has run once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags import actions as flow
from tests.faults.meetings.entry import try_two
from tests.faults.meetings.situation import Played, two
from tests.faults.meetings.situations_queues import made
from tests.support import dags
from tests.support.dags import dag
from tests.support.world import EMR, World, day, full

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


def _rest(world: World) -> None:
    for _ in range(4):
        world.settle()
        world.finish()
        world.clock.pass_by("11m")
        world.tick()
