"""A re-processing beside the actions of users (L21, C13), and a day that is written again (T22).

A re-processing is cut before one of its calls while its first step starts and ends and the next one begins. There, as
on another machine, a user cancels it, or deletes, replaces, disables or enables one of its schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import HOUR
from chalicelib.flow.backfills import reprocess, reprocess_view
from chalicelib.flow.ingest import objects
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.crossings import at_each_call, calls_on_record, cross, let_time_pass
from tests.support.schedules import BY_DAY, after, at_most, partitions
from tests.support.snapshot import Start
from tests.support.world import World, day, flights

CHAIN = {"clean": partitions(by=BY_DAY, **at_most(1)), "join": after("clean", "join", by=BY_DAY)}
ASKED = {"dataset": "flights", "partition": {"year": "2013", "month": "1", "day": "1"}}


@dataclass(frozen=True)
class UserAction:
    """What a user does. ``ends``: nothing of the re-processing starts once that is acknowledged."""

    act: Callable[[World], Any]
    ends: bool = False
    states: tuple[str, ...] = ("DONE",)


def _stop(runs: bool) -> Callable[[World], Any]:
    return lambda world: [
        reprocess.stop(world.ports, "demo", row.id, runs, "tester") for row in world.ports.jobs.reprocesses("demo")
    ]


ACTIONS = {
    "cancel": UserAction(_stop(runs=False), ends=True, states=("CANCELLED",)),
    "cancel with its runs": UserAction(_stop(runs=True), ends=True, states=("CANCELLED",)),
    "delete": UserAction(lambda world: world.delete("join"), states=("FAILED", "DONE")),
    "replace": UserAction(lambda world: world.put("join", CHAIN["join"] | {"by": []}), states=("FAILED", "DONE")),
    "disable": UserAction(lambda world: world.disable("clean")),
    "enable": UserAction(lambda world: world.enable("clean")),
}


STRIDE = 4  # `make test-long` tries each call


@pytest.mark.parametrize("action", ACTIONS)
def test_l21_c13_a_reprocessing_and_user_actions_cross(action: str) -> None:
    """Each action begins at another call, so that together they come before every call."""
    _at_each_call(action, first=1 + list(ACTIONS).index(action) % STRIDE, stride=STRIDE)


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_l21_c13_a_reprocessing_and_user_actions_at_each_call(action: str) -> None:
    _at_each_call(action)


def _at_each_call(action: str, first: int = 1, stride: int = 1) -> None:
    start = Start(_begun)
    calls = at_each_call(lambda before: _cross(start, before, ACTIONS[action]), 60, first, stride)
    print(f"{action} during a re-processing of {calls} calls, before every {stride}th of them")


def _begun() -> World:
    world = World(**SMALL)
    world.deploy(flights(CHAIN))
    world.upload(day(1))
    for _ in range(3):
        world.settle()
        world.finish()
    assert [len(world.runs(name)) for name in CHAIN] == [1, 1]
    reprocess.begin(world.ports, "demo", Reprocess.model_validate(ASKED), "tester", "r1")
    return world


def _cross(start: Start, before: int | None, action: UserAction) -> int:
    """Play one order. Returns the number of calls of the re-processing."""
    world = start.again()
    [row] = world.ports.jobs.reprocesses("demo")
    started: list[set[str]] = []

    def act() -> None:
        action.act(world)
        started.append(calls_on_record(world, *CHAIN))

    def process() -> None:
        world.settle()
        world.finish()  # the step ends, and the next one begins
        world.settle()

    calls = cross(world, before, act, process)
    for _ in range(3):
        let_time_pass(world, finishing=True)

    invariants.check_rest(world)
    view = reprocess_view.reprocess_view(world.ports, reprocess.existing(world.ports, "demo", row.id))
    runs = [run for name in CHAIN for run in world.runs(name) if run.backfill is not None]
    cancelled = [run for run in runs if run.state == "CANCELLED"]
    # A call that was in flight when a schedule closed may be found alive, and is then cancelled, on record.
    assert view["state"] in (action.states if not cancelled else (*action.states, "FAILED")), view
    assert sum(view[count] for count in ("succeeded", "failed", "cancelled")) == view["total"] == 2
    assert view["succeeded"] == sum(run.state == "SUCCEEDED" for run in runs)
    assert len({run.backfill for run in runs if run.state != "ABORTED"}) == len(
        [run for run in runs if run.state != "ABORTED"]
    ), "no step runs twice"
    assert [world.jobs(name) for name in CHAIN] == [[], []], "nothing is left waiting"
    if action.ends:
        assert set(world.targets.emr.calls) <= started[0], "only what was on record as called may pass"
    return calls


# -- rewritten: again --------------------------------------------------------------------------------------------------


def rewritten(schedules: dict[str, Any]) -> World:
    """A world in which the first day is ready, and may be written again."""
    world = World(**SMALL)
    document = flights(schedules)
    document["datasets"]["flights"]["rewritten"] = "again"
    world.deploy(document)
    return world


@pytest.mark.parametrize("later", [0, 1], ids=["one notification twice", "two of different hours"])
def test_t22_notifications_of_a_rewrite_side_by_side(later: int) -> None:
    """Each time at which the day was written counts once, in whichever order two Lambdas make their calls."""

    start = Start(lambda: rewritten({"daily": partitions(9)}))

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        world = start.again()
        first = world.clock.now()
        _notice(world, first)()
        world.clock.pass_by("3h")
        left = side_by_side(world, _notice(world, first + HOUR), _notice(world, first + (1 + later) * HOUR), calls)
        assert world.jobs("daily")[0].leaves["0"].count == 2 + later, calls
        return left

    played = list(every_order(play, 1))
    print(f"{len(played)} orders of two notifications")
    assert len(played) >= 20


def test_t22_a_rewrite_beside_the_first_notification_counts() -> None:
    """The rewrite may be handled before the first flag, whose notification is late: then it is the first to count."""

    start = Start(lambda: rewritten({"daily": partitions(9)}))

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        world = start.again()
        first = world.clock.now()
        world.clock.pass_by("3h")
        left = side_by_side(world, _notice(world, first), _notice(world, first + HOUR), calls)
        [job] = world.jobs("daily")
        applied = world.ports.jobs.events_of(job.job_id, job.schedule, job.generation)
        assert first + HOUR in {event.instant for event in applied}, "the last data is an event, in every order"
        assert len(applied) == job.leaves["0"].count <= 2, calls
        return left

    assert len(list(every_order(play, 1))) >= 20


def _notice(world: World, at: int) -> Callable[[], Any]:
    return lambda: objects.match_object(world.ports, ObjectCreated("lake-bucket", day(1), at))
