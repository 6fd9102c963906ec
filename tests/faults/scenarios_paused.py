"""Pauses, resumes and updates that keep progress, for `test_crash_points.py` (L4, L6, L10, L19)."""

from __future__ import annotations

from itertools import permutations
from typing import Any
from unittest.mock import patch

from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import wake
from chalicelib.flow.schedules import pauses, stops
from tests.faults.dying import Scenario, finish, passes, people, tick, upload
from tests.faults.scenarios_basic import CLEAN, ONCE, ONE_AT_A_TIME
from tests.support.crash import lost
from tests.support.fakes import EmrRun
from tests.support.schedules import at, partitions
from tests.support.world import World, full

TWO: dict[str, Any] = partitions(2, constraints=ONE_AT_A_TIME)
FAILING = partitions(by=["day"], pause_after_failures=2)


def _hold_and_resume(world: World) -> None:
    """One job runs, one queues, one comes while the schedule is held. The resume wakes them one by one."""
    upload(world, 1)
    upload(world, 2)
    people(world, lambda: world.pause("clean", stop_timeouts=True))
    upload(world, 3)
    finish(world)
    passes(world, "1m")
    with patch.object(wake, "BATCH_SIZE", 1):
        people(world, lambda: world.resume("clean"))
    finish(world)


def _stop_and_start(world: World) -> None:
    """One job runs, one queues, one comes during the stop. A schedule that is put meanwhile is stopped, too."""
    upload(world, 1)
    upload(world, 2)
    people(world, lambda: world.stop("demo", reason="first"))
    people(world, lambda: world.stop("demo", reason="repair"))
    claimed = {run.run_id for run in world.runs("clean")}
    people(world, lambda: world.put("late", {**CLEAN, "workflow": "join"}))
    upload(world, 3)
    finish(world)
    passes(world, "1m")
    assert {run.run_id for name in ("clean", "late") for run in world.runs(name)} == claimed
    people(world, lambda: world.start("demo"))
    finish(world)


def _stop_and_start_once(world: World) -> None:
    """If a request dies, the tick goes on with what it has begun."""
    upload(world, 1)
    lost(lambda: world.stop("demo"))
    upload(world, 2)
    passes(world, "3m", "1m", "1m")
    lost(lambda: world.start("demo"))
    passes(world, "3m", "1m", "1m")
    begun = stops.of_namespace(world.ports, "demo")
    assert all(each.state == "stopped" for each in begun)
    if begun:  # the start died before its first write
        people(world, lambda: world.start("demo"))
    finish(world)


def _is_started(world: World) -> bool:
    """Whether no schedule has a mark, and nothing is stopped."""
    states = (world.ports.rows.get(ScheduleState, full(name)) for name in ("clean", "late"))
    return not stops.of_namespace(world.ports, "demo") and all(state and not state.stops for state in states)


def _backlog_of_matches(world: World) -> None:
    people(world, lambda: world.pause("pairs", "backlog"))
    for number in (1, 2, 3, 4, 5):
        upload(world, number)
    people(world, lambda: world.resume("pairs"))
    finish(world)
    upload(world, 6)


def _backlog_of_fires(world: World) -> None:
    """The last fire is prepared, and the repeats are used up, while the schedule is paused."""
    for name in ("beat", "daily"):
        people(world, lambda name=name: world.pause(name, "backlog"))
    passes(world, "121s", "120s", "120s", "61s")
    for name in ("beat", "daily"):
        people(world, lambda name=name: world.resume(name))
    finish(world)


def _drain_and_resume(world: World) -> None:
    """A met job keeps its position in the queue, and an unmet one goes on record. Events during the drain
    do not count.
    """
    upload(world, 1)
    upload(world, 2)
    people(world, lambda: world.pause("met", "drain"))
    people(world, lambda: world.pause("unmet", "drain"))
    upload(world, 3)
    finish(world)
    people(world, lambda: world.resume("met"))
    people(world, lambda: world.resume("unmet"))
    upload(world, 4)
    finish(world)


def _drain_then_hold(world: World) -> None:
    people(world, lambda: world.pause("pairs", "drain"))
    upload(world, 1)
    people(world, lambda: world.pause("pairs", "hold"))
    upload(world, 2)
    upload(world, 3)
    people(world, lambda: world.resume("pairs"))


def _carry(world: World) -> None:
    """The update comes while one job runs and one waits for its slot."""
    for number in (1, 2, 3, 4, 5):
        upload(world, number)  # the fifth joins the job that waits for the slot
    new = {**TWO, "properties": {"new": True}, "on_update": "carry"}
    people(world, lambda: world.put("pairs", new))
    finish(world)
    upload(world, 6)
    upload(world, 7)
    finish(world)


def _inherit_priority(world: World) -> None:
    """A job waits for its hour, and the update removes the delay."""
    upload(world, 1)
    people(world, lambda: world.put("late", {**partitions(), "on_update": "carry"}))
    finish(world)


def _soon(world: World) -> bool:
    [run] = world.runs("late")
    return run.claimed_at - run.created_at <= 5 * MINUTE


def _fail_twice(world: World) -> None:
    upload(world, 1)
    upload(world, 2)
    finish(world, _two_fail)
    upload(world, 3)
    tick(world)


def _two_fail(run: EmrRun) -> str:
    return "FAILED" if run.id <= "jr00002" else "SUCCESS"


def _used_up(world: World) -> None:
    people(world, lambda: world.put("beat", at("R4/PT3S")))
    for _ in range(5):
        world.clock.pass_by("3s")
        world.settle(lost)
    finish(world)


def _skip_one(world: World) -> None:
    noon = world.clock.now()
    people(world, lambda: pauses.skip(world.ports, full("nightly"), noon + MINUTE, "tester"))
    passes(world, "20s", "45s")


def _new_properties_last(world: World) -> bool:
    return world.runs("pairs")[-1].request.properties == {"new": True}


PAUSED = {
    "a stop and a start of a namespace, and a put between them": Scenario(
        {"clean": CLEAN}, _stop_and_start, [({"clean": ["SUCCEEDED"] * 3, "late": ["SUCCEEDED"]}, 4)], holds=_is_started
    ),
    "a stop and a start that nobody repeats": Scenario(
        {"clean": CLEAN, "late": {**CLEAN, "workflow": "join"}},
        _stop_and_start_once,
        [({"clean": ["SUCCEEDED"] * 2, "late": ["SUCCEEDED"] * 2}, 4)],
        holds=_is_started,
    ),
    "a hold and a resume around jobs that run, queue and come": Scenario(
        {"clean": CLEAN}, _hold_and_resume, [({"clean": ["SUCCEEDED"] * 3}, 3)]
    ),
    "a backlog of two matches and a half": Scenario(
        {"pairs": TWO}, _backlog_of_matches, [({"pairs": ["SUCCEEDED"] * 3}, 3)]
    ),
    "a backlog of three fires each": Scenario(
        {
            "beat": at("R3/PT2M", constraints=ONE_AT_A_TIME),
            "daily": at("1-3 12 2 3 *", "join", constraints=ONE_AT_A_TIME),
        },
        _backlog_of_fires,
        [({"beat": ["SUCCEEDED"] * 3, "daily": ["SUCCEEDED"] * 3}, 6)],
    ),
    "a drain and a resume, with a job that is met and one that is not": Scenario(
        {"met": CLEAN, "unmet": partitions(5)},
        _drain_and_resume,
        [({"met": ["SUCCEEDED"] * 3, "unmet": []}, 3)],
        holds=lambda world: [record.kind for record in world.records("unmet")] == ["DROPPED"],
    ),
    "a drain that becomes a hold": Scenario({"pairs": TWO}, _drain_then_hold, [({"pairs": ["SUCCEEDED"]}, 1)]),
    "an update that carries what waits and what has gathered": Scenario(
        {"pairs": TWO},
        _carry,
        # Killed in between: the last pair may come while the one before still waits, and joins it.
        [({"pairs": ["SUCCEEDED"] * runs}, runs) for runs in (3, 2)],
        holds=_new_properties_last,
    ),
    "an update that lifts what a job waits for": Scenario(
        {"late": partitions(constraints=[{"type": "delay", "after": "1h"}])},
        _inherit_priority,
        [({"late": ["SUCCEEDED"]}, 1)],
        holds=_soon,
    ),
    "two failures, and the hold that they bring": Scenario(
        {"clean": FAILING},
        _fail_twice,
        # Killed in between: the third may have started before the second failed.
        [({"clean": list(states)}, 3) for states in sorted(set(permutations(["FAILED", "FAILED", "SUCCEEDED"])))],
        outcome=_two_fail,
        later=lambda world: world.resume("clean"),
    ),
    "four fires that are all there are": Scenario({}, _used_up, [({"beat": ["SUCCEEDED"] * 4}, 4)]),
    "an occurrence that is skipped": Scenario(
        {"nightly": {"workflow": "clean", "enabled": True, "trigger": ONCE}},
        _skip_one,
        [({"nightly": []}, 0), ({"nightly": ["SUCCEEDED"]}, 1)],
    ),
}
