"""Orders of events at a pace: stalls, many jobs at once, changed policies; the numbers are those of
docs/internals/interleavings.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.definitions import store
from tests.faults.invariants import check
from tests.faults.scenarios_paced import beyond_pace
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights

CALM = "policy:demo.calm"
AT_FIVE_PAST = "5 12 * * *"


def throttled(schedules: dict[str, Any], max_events: int = 20, interval: str = "1m") -> dict[str, Any]:
    policy = {"max_events": max_events, "interval": interval}
    return {**flights(schedules), "policies": {"calm": policy}}


def test_interleaving_11_overdue_work_leaves_at_its_policy_pace() -> None:
    world = World()
    world.deploy(throttled({"ping": at("@every 1s", "notify", policy="calm", coalesce=False)}))
    world.pass_by("1m")
    world.clock.pass_by("10m")  # no tick comes, no hint arrives

    world.pass_by("10m")

    sent = world.targets.queue.sent_at
    assert beyond_pace(sent, 20, MINUTE) == []
    after_the_stall = [at for at in sent if at > world.clock.now() - 5 * MINUTE]
    assert len(after_the_stall) >= 5 * 19, "and it is used as far as it goes"
    check(world)


def test_interleaving_12_many_jobs_a_halved_policy_urgent_event() -> None:
    world = World()
    waiting = {f"s{number:03d}": at(AT_FIVE_PAST, "notify", policy="calm") for number in range(300)}
    world.deploy(throttled({**waiting, "urgent": partitions(workflow="notify", policy="calm", priority=9)}))
    world.pass_by("6m")
    assert world.limit_state(CALM).waiters > 250
    assert max(len(str(row)) for _, row in world.tables.rows()) < 5_000, "no row holds the queue"

    halved = world.clock.now()
    policy = {"max_events": 10, "interval": "1m"}
    store.put(world.ports, "policy", "demo.calm", policy, "tester")
    world.pass_by("3m")
    sent = world.targets.queue.sent_at
    assert beyond_pace([at for at in sent if at > halved], 10, MINUTE) == []
    assert beyond_pace(sent, 20, MINUTE) == []

    before = len(sent)
    world.upload(day(1))
    world.pass_by("10s")
    assert len(sent) - before <= 2
    assert world.runs("urgent"), "the urgent one overtook everybody"
    check(world)


def test_interleaving_22_contended_slot_and_pace_keep_order() -> None:
    world = World()
    world.deploy(throttled({"daily": partitions(by=["day"], policy="calm", **at_most(2))}, max_events=6))
    for number in range(12):
        world.upload(day(number))
        world.clock.pass_by("1ms")
    world.settle()

    moves: list[tuple[str, str]] = []
    for second in range(180):
        world.pass_by("1s")
        moves += [(job.job_id, job.queued_in) for job in world.jobs("daily") if job.queued_in is not None]
        if second % 4 == 0:
            world.finish()
            world.settle()

    starts = world.targets.emr.called_at
    assert len(starts) == 12
    assert beyond_pace(starts, 6, MINUTE) == []
    assert [run.created_at for run in world.runs("daily")] == sorted(run.created_at for run in world.runs("daily"))
    for job in {job for job, _ in moves}:
        ways = [limit_name for mover, limit_name in moves if mover == job]
        assert ways == sorted(ways, key=lambda limit_name: limit_name == CALM), (
            "from the slot to the pace, and never back"
        )
    check(world)


def test_interleaving_23_unanswered_throttled_run_is_cancelled() -> None:
    world = World()
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1))}))
    world.targets.emr.lose_answers = 1
    world.upload(day(1))
    world.settle()
    world.targets.emr.answers = [NotNow("throttled")] * 50
    world.pass_by("20s")
    assert len(world.targets.emr.calls) > 2

    world.disable("daily")
    limit_name = "workflow:demo.flights.clean"
    assert world.limit_state(limit_name).active == 1, "the slot is not given away while that run may live"
    world.pass_by("5m")

    [made] = world.targets.emr.runs.values()
    assert made.state == "CANCELLED"
    assert [run.state for run in world.runs("daily")] == ["CANCELLED"]
    assert world.limit_state(limit_name).active == 0
    check(world)


@pytest.mark.parametrize("refusals", [1, 3])
def test_e8_a_throttled_start_slows_the_application_by_priority(refusals: int) -> None:
    world = World()
    world.deploy(
        flights(
            {
                "urgent": partitions(by=["day"], priority=9),
                "low": partitions(dataset="weather", by=["day"], workflow="join", priority=1),
            }
        )
    )
    world.targets.emr.answers = [NotNow("throttled")] * refusals
    world.upload(day(1))
    world.settle()
    for number in range(3):
        world.upload(day(number, "weather", "x.csv"))
    world.settle()
    world.pass_by("1m")

    order = [name.rpartition("-")[0] for name in world.targets.emr.calls]
    urgent = world.runs("urgent")[0].run_id
    assert order[: refusals + 1] == [urgent] * (refusals + 1), "nobody was asked for before the urgent one was taken"
    assert len(set(order)) == 4
    starts = world.targets.emr.called_at
    waits = [later - earlier for earlier, later in pairwise(starts[: refusals + 1])]
    assert all(wait >= SECOND for wait in waits)
    check(world)


def test_e8_a_start_whose_permit_expired_takes_another() -> None:
    world = World(start_burst=1, start_rate_per_second=0.2)
    world.deploy(flights({"daily": partitions(by=["day"])}))
    world.targets.emr.answers = [NotNow("throttled")]
    for number in range(4):
        world.upload(day(number))
    world.settle()
    world.pass_by("2m")

    starts = world.targets.emr.called_at
    assert len(starts) == 5
    assert beyond_pace(starts, 1, 5 * SECOND - 1) == []
    check(world)


def test_e8_a_run_whose_role_is_not_visible_yet_delays_no_other() -> None:
    """EMR refuses only this run. The other runs of the application start at once, and this one starts when its role is
    visible.
    """
    world = World()
    world.deploy(flights({"daily": partitions(), "other": partitions(dataset="weather", workflow="join")}))
    world.targets.emr.answers = [NotNow("the role is not visible", alone=True)]
    world.upload(day(1))
    world.settle()
    [waiting] = world.runs("daily")
    assert (waiting.state, waiting.target_id, waiting.calls) == ("STARTING", None, 1)
    assert waiting.reason.text == "the role is not visible"

    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert [run.target_id for run in world.runs("other")] == ["00app/jr00001"]

    world.pass_by("10s")
    assert [run.target_id for run in world.runs("daily")] == ["00app/jr00002"]
