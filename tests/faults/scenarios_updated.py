"""Updates that carry, and events after a timeout, for `test_crash_points.py` (L6, C10, E1)."""

from __future__ import annotations

from typing import Any

from chalicelib.core.targets.answers import NoAnswer
from chalicelib.flow.jobs import actions
from tests.faults.dying import Scenario, finish, passes, people, upload
from tests.support.schedules import at, partitions
from tests.support.world import World

ADA = "arn:aws:iam::123456789012:user/ada"
CARRY = {"on_update": "carry"}
AN_HOUR = {"after": "1h", "then": "abort"}
ANYWAY = {"after": "1h", "then": "run"}
ONE = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
GROUP = [{"type": "concurrency", "max": 1, "group": "g", "on_unmet": "wait"}]


def burst(count: int, **fields: Any) -> dict[str, Any]:
    return at("2 12 2 3 *", "notify", spread={"count": count}, **fields)


def _late_events(world: World) -> None:
    """One pair is half complete, and a job of the other schedule queues. Both time out before Sluice checks them."""
    upload(world, 1)
    upload(world, 2)
    world.clock.pass_by("61m")
    world.hints.sent.clear()
    upload(world, 3)
    finish(world)
    finish(world)
    finish(world)


def _other_ranks(world: World) -> None:
    """Two jobs queue at the group behind a run. Then one gets another priority, and the other leaves the group."""
    for number in (1, 2, 3):
        upload(world, number)
    people(world, lambda: world.put("calm", by_day(GROUP, priority=9, timeout="never", **CARRY)))
    people(world, lambda: world.put("other", by_day([], workflow="join", **CARRY)))
    for _ in range(4):
        finish(world)


def by_day(constraints: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return partitions(by=["day"], constraints=constraints, **fields)


def _other_bursts(world: World) -> None:
    """The fires of three schedules are prepared, and the schedules are then updated."""
    people(world, lambda: world.put("more", burst(3, **CARRY)))
    people(world, lambda: world.put("fewer", burst(1, **CARRY)))
    people(world, lambda: world.put("over", burst(2, ttl="1m", **CARRY)))
    passes(world, "60s", "61s", "60s")


GOES_ON = {
    "some": at("1 12 2 3 *", "notify", spread={"count": 3, "over": "50s"}),
    "last": at("R2/PT50S", "notify"),
    "spark": at("2 12 2 3 *"),
}


def _goes_on(world: World) -> None:
    """The fires of three schedules are prepared, and other properties leave their triggers as they are."""
    for name, tick in GOES_ON.items():
        people(
            world,
            lambda name=name, tick=tick: world.put(name, tick | {"properties": {"number": 1}, "on_update": "drop"}),
        )
    passes(world, "60s", "61s", "60s")
    finish(world)


def _ended_in_the_middle(world: World) -> None:
    """Two of six events have been sent when the schedule is disabled. The timer has not prepared the rest."""
    passes(world, "60s", "61s", "10m", "60s", "60s", "3m")
    people(world, lambda: world.disable("ended"))
    passes(world, "60s", "60s")


def _approved_and_tried(world: World) -> None:
    """One fire is approved before it is due, and the target of another does not answer at first."""
    world.targets.queue.answers = [NoAnswer("the server is down")]
    [fire] = [job for job in world.jobs("executed") if job.kind == "fire"]
    people(world, lambda: actions.approve(world.ports, fire.job_id, ADA))
    passes(world, "60s", "61s", "60s")
    finish(world)


def _approved(world: World) -> bool:
    [run] = world.runs("executed")
    return f"approved by {ADA}" in run.fired_by.text


UPDATED = {
    "events that come after the timeouts of jobs": Scenario(
        {
            "threes": partitions(3, "join", timeout=AN_HOUR, by=["month"]),
            "daily": partitions(timeout=ANYWAY, constraints=ONE),
        },
        _late_events,
        # Killed in between: a job may be claimed with more events, or the sweep may check it before the event comes.
        [({"threes": [], "daily": ["SUCCEEDED"] * runs}, runs) for runs in (3, 2)],
        holds=lambda world: [record.kind for record in world.records("threes")] == ["ABORTED"] * 2,
    ),
    "updates that reach jobs in a queue": Scenario(
        {"calm": by_day(GROUP), "other": by_day(GROUP, workflow="join")},
        _other_ranks,
        [({"calm": ["SUCCEEDED"] * 3, "other": ["SUCCEEDED"] * 3}, 6)],
    ),
    "updates that reach prepared fires": Scenario(
        {"more": burst(2), "fewer": burst(2), "over": burst(2)},
        _other_bursts,
        [({"more": ["SUCCEEDED"] * 2, "fewer": ["SUCCEEDED"] * 2, "over": []}, 0)],
        messages=4,
    ),
    "updates that leave triggers as they are": Scenario(
        GOES_ON,
        _goes_on,
        [({"some": ["SUCCEEDED"] * 3, "last": ["SUCCEEDED"] * 2, "spark": ["SUCCEEDED"]}, 1)],
        messages=5,
        holds=lambda world: not any(world.records(name) for name in GOES_ON),
    ),
    "an end in the middle of a fire": Scenario(
        {"ended": at("1 12 2 3 *", "notify", spread={"count": 6, "over": "1h"})},
        _ended_in_the_middle,
        [({"ended": ["SUCCEEDED"] * 2}, 0)],
        messages=2,
        holds=lambda world: sum(record.count for record in world.records("ended")) == 4,
    ),
    "a fire that is approved early, and one that is tried twice": Scenario(
        {
            "executed": at("2 12 2 3 *", constraints=[{"type": "approval", "people": [ADA]}]),
            "delivered": at("1 12 2 3 *", "notify"),
        },
        _approved_and_tried,
        [({"executed": ["SUCCEEDED"], "delivered": ["SUCCEEDED"]}, 1)],
        messages=1,
        holds=_approved,
    ),
}  # fmt: skip
