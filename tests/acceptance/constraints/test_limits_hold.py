"""Limits that always hold: pools and policies when a timeout runs a job (C10), a policy at a redrive (E3)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.undelivered import NEVER, letters, redrive
from tests.acceptance.words import day, event, on
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import EMR, SQS, World, flights

AN_HOUR = {"after": "1h", "then": "run"}
CPU = {"cloudwatch": {"namespace": "AWS/RDS", "metric": "CPUUtilization"}}


def one_waits(schedules: dict[str, Any], **document: Any) -> World:
    """``first`` has started. ``late`` waits for its second partition; its timeout would run it without one."""
    world = World()
    pooled = {name: {"target": EMR, "pool": "p"} for name in ("one", "two")}
    world.deploy({**flights(schedules, **pooled), "pools": {"p": {"size": 1}}, **document})
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert len(world.runs("first")) == 1
    world.upload(day(1))
    world.settle()
    return world


def test_c10_a_timeout_with_run_never_exceeds_a_full_pool() -> None:
    late = partitions(2, workflow="two", timeout=AN_HOUR)
    world = one_waits({"first": partitions(workflow="one", dataset="weather"), "late": late})
    world.pass_by("3h")
    assert world.runs("late") == []
    [job] = world.jobs("late")
    assert job.state == "PENDING_LAUNCH"
    assert job.reason.text.startswith("waits for a slot of pool demo.p: 1 of 1 in use")

    world.finish()
    world.settle()
    [run] = world.runs("late")
    assert run.claimed_at == NOON + 3 * HOUR
    assert run.fired_by.text.startswith("run in spite of its timeout")


def test_c10_a_timeout_with_run_never_exceeds_a_policy() -> None:
    late = partitions(2, workflow="join", policy="calm", timeout=AN_HOUR)
    schedules = {"first": partitions(dataset="weather", policy="calm"), "late": late}
    world = one_waits(schedules, policies={"calm": {"max_events": 1, "interval": "3h"}})
    world.pass_by("2h59m")
    assert world.runs("late") == []
    [job] = world.jobs("late")
    assert job.state == "PENDING_LAUNCH"
    assert job.reason.text.startswith("waits for a permit of policy demo.calm: at most 1 starts in any 3h")
    world.pass_by("10m")
    first, second = world.targets.emr.called_at
    assert second - first >= 3 * HOUR
    assert world.runs("late")[0].fired_by.text.startswith("run in spite of its timeout")


@pytest.mark.parametrize("on_unmet", ["wait", "abort"])
def test_c10_a_timeout_overrides_a_load_that_is_too_high(on_unmet: str) -> None:
    """Nothing is measured once the timeout has ended, so no measurement can delay the job any more."""
    quiet = {"type": "load", "of": CPU, "below": 0.7, "on_unmet": on_unmet}
    world = World()
    world.targets.load = 0.9
    world.deploy(flights({"late": partitions(2 if on_unmet == "abort" else 1, constraints=[quiet], timeout=AN_HOUR)}))
    world.upload(day(1))
    world.settle()
    world.pass_by("59m59s")
    assert (world.runs("late"), len(world.jobs("late"))) == ([], 1)
    measured = len(world.targets.measured)

    world.pass_by("1s")
    [run] = world.runs("late")
    assert run.claimed_at == NOON + HOUR
    assert run.fired_by.text.startswith("run in spite of its timeout")
    assert len(world.targets.measured) == measured


def test_e3_redrives_take_permits_too() -> None:
    """Three events that could not be delivered are redriven together. The policy allows one start in half an hour."""
    world = World()
    answer = on(event("go"), "notify", policy="calm", coalesce=False)
    document = flights({"reported": answer}, notify={"target": SQS, "delivery": {"tries": 1}})
    world.deploy({**document, "policies": {"calm": {"max_events": 1, "interval": "30m"}}})
    world.targets.queue.answers = [NEVER] * 3
    for _ in range(3):
        world.post("go")
        world.settle()
        world.pass_by("31m")
    failed = world.clock.now()
    assert len(letters(world)) == 3

    for letter in letters(world):
        redrive(world, letter)
    world.settle()
    assert {job.kind for job in world.jobs("reported")} == {"redrive"}
    world.pass_by("2h")

    sent = [at for at in world.targets.queue.sent_at if at >= failed]
    assert len(sent) == 3
    assert letters(world) == []
    assert all(later - earlier >= 30 * MINUTE for earlier, later in pairwise(sent))
