"""A stop or a start meets each step of a put, of another stop and of another start (L24).

Whatever the order: after the acknowledgement of a stop, each schedule of its scope has the mark of it, also one that is
put at that moment. After the last start, none has one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.schedules import stops
from tests.faults.dying import SMALL
from tests.support import dags
from tests.support.crossings import at_each_call, cross
from tests.support.dags import dag
from tests.support.schedules import partitions
from tests.support.snapshot import Start
from tests.support.world import SQS, World, flights

Act = Callable[[World], object]
TAGGED = partitions(1, tags={"team": "a"})

PUTS: dict[str, Act] = {
    "a schedule": lambda world: world.put("late", TAGGED),
    "a message": lambda world: world.message("ping", due_time="1h", tags={"team": "a"}),
    "a DAG": lambda world: dags.put(
        world, dag("x -> y", nodes={name: {"workflow": "clean"} for name in "xy"}, tags={"team": "a"}), "late"
    ),
    "a deployment": lambda world: world.deploy(flights({"daily": TAGGED, "late": TAGGED}) | {"default_target": SQS}),
    "a tag": lambda world: world.put("plain", TAGGED),
}


def _begun() -> World:
    world = World(**SMALL)
    world.deploy(flights({"daily": TAGGED, "plain": partitions(1)}) | {"default_target": SQS})
    return world


def marks(world: World) -> dict[str, list[str]]:
    """The scopes of the marks of each schedule, by the end of its name."""
    names = [*world.ports.catalog.schedules("demo.flights", 100, None).items]
    names += [row.schedule for row in world.ports.catalog.messages("demo.flights", 100, None).items]
    states = [world.ports.rows.get(ScheduleState, name) for name in names]
    return {
        state.schedule.rpartition(".")[2]: [mark[0] for mark in state.stops]
        for state in states
        if state is not None and state.exists
    }


@pytest.mark.parametrize("tag", ["", "team=a"])
@pytest.mark.parametrize("put", PUTS)
def test_l24_a_stop_at_any_point_of_a_put_marks_it(put: str, tag: str) -> None:
    start = Start(_begun)
    scope = f"demo#{tag}" if tag else "demo"

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(world, before, lambda: world.stop("demo", tag), lambda: PUTS[put](world))
        covered = {name: held for name, held in marks(world).items() if not tag or name != "plain" or put == "a tag"}
        assert covered
        assert all(held == [scope] for held in covered.values()), covered
        world.start("demo", tag)
        assert not any(marks(world).values())
        return calls

    at_each_call(play, least=4)


@pytest.mark.parametrize("put", PUTS)
def test_l24_a_put_at_any_point_of_a_stop_and_a_start(put: str) -> None:
    start = Start(_begun)

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(world, before, lambda: PUTS[put](world), lambda: world.stop("demo"))
        assert all(held == ["demo"] for held in marks(world).values())
        return calls

    def play_start(before: int | None) -> int:
        world = start.again()
        world.stop("demo")
        calls = cross(world, before, lambda: PUTS[put](world), lambda: world.start("demo"))
        assert not any(marks(world).values())
        return calls

    at_each_call(play, least=8)
    at_each_call(play_start, least=8)


@pytest.mark.parametrize("other", ["stop", "start", "another reason", "another scope"])
def test_l24_two_requests_that_meet_leave_no_stray_mark(other: str) -> None:
    """One of them may be refused because the stop has changed. Then its repeat finds what is true."""
    acts: dict[str, Act] = {
        "stop": lambda world: world.stop("demo"),
        "start": lambda world: world.start("demo"),
        "another reason": lambda world: world.stop("demo", reason="longer"),
        "another scope": lambda world: world.stop("demo.flights"),
    }
    for flow in ("stop", "start"):
        start = Start(_begun)

        def play(before: int | None, flow: str = flow, start: Start = start) -> int:
            world = start.again()
            if flow == "start":
                world.stop("demo")
                world.clock.pass_by("1s")

            def act(name: str) -> None:
                with suppress(SluiceError):
                    acts[name](world)

            calls = cross(world, before, lambda: act(other), lambda: act(flow))
            world.pass_by("4m")  # the tick goes on with what a refused request has begun
            live = [stop.scope for stop in stops.of_namespace(world.ports, "demo")]
            assert all(stop.state == "stopped" for stop in stops.of_namespace(world.ports, "demo"))
            assert all(sorted(held) == sorted(live) for held in marks(world).values()), (live, marks(world))
            return calls

        at_each_call(play, least=6)
