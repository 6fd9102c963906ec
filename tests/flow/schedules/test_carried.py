"""An update that carries also applies to queued jobs: their timeout, their rank, and their order through the limits
(L6).
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.instants import HOUR
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.jobs import actions
from tests.acceptance.words import doze, reasons
from tests.support.schedules import at_most, partitions
from tests.support.world import EMR, World, day, flights

ADA = "arn:aws:iam::123456789012:user/ada"
CARRY = {"on_update": "carry"}
LIMIT = "workflow:demo.flights.clean"
GROUP = {"type": "concurrency", "max": 1, "group": "g", "on_unmet": "wait"}


@pytest.fixture
def world() -> World:
    return World()


def waits(name: str, *uploads: int, **fields: Any) -> World:
    """A world in which one job of a schedule is active and others queue behind it."""
    world = World()
    world.deploy(flights({name: by_day(**fields)}, clean={"target": EMR, "timeout": "never"}))
    for number in uploads:
        world.upload(day(number))
        world.clock.pass_by("1s")
        world.settle()
    return world


def by_day(**fields: Any) -> dict[str, Any]:
    return partitions(**({"by": ["day"]} | at_most(1) | fields))


def go(number: int, **fields: Any) -> dict[str, Any]:
    """A schedule that waits for a custom event that no other schedule waits for."""
    trigger = {"type": "event", "event": f"go.{number}"}
    return {"workflow": "clean", "enabled": True, "trigger": trigger, **at_most(1)} | fields


def starts(world: World) -> list[str]:
    """The schedules whose runs were started, in order; each run ends before the next one starts."""
    for _ in range(6):
        world.clock.pass_by("1s")
        world.finish()
        world.settle()
    return [run.name.split(".")[2].partition("@")[0] for run in world.targets.emr.runs.values()]


def test_l6_carry_gives_queued_jobs_the_new_timeout() -> None:
    world = waits("daily", 1, 2)
    [queued] = world.jobs("daily")
    assert queued.wake_at == queued.created_at + 24 * HOUR

    world.put("daily", by_day(timeout={"after": "1h", "then": "abort"}, **CARRY))
    [queued] = world.jobs("daily")
    assert queued.wake_at == queued.created_at + HOUR
    doze(world, "1h2m")
    assert reasons(world, "daily")[0].startswith("ABORTED: not launched within its timeout of 1h")
    assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (1, 0)


def test_l6_carry_removes_the_timeout_of_queued_jobs() -> None:
    world = waits("daily", 1, 2, timeout={"after": "1h", "then": "abort"})
    world.put("daily", by_day(timeout="never", **CARRY))
    doze(world, "3h")
    world.finish()
    world.settle()
    assert (len(world.runs("daily")), world.records("daily")) == (2, [])


@pytest.mark.parametrize(("priority", "order"), [(9, ["first", "third", "second"]), (0, ["first", "second", "third"])])
def test_l6_carry_ranks_queued_jobs_again(world: World, priority: int, order: list[str]) -> None:
    names = {"first": 1, "second": 2, "third": 3}
    before = 9 - priority  # so that the update reverses the order
    world.deploy(flights({name: go(number, priority=before if number == 3 else 5) for name, number in names.items()}))
    for number in names.values():
        world.post(f"go.{number}")
        world.clock.pass_by("1s")
        world.settle()

    world.put("third", go(3, priority=priority, **CARRY))
    assert world.limit_state(LIMIT).waiters == 2
    assert starts(world) == order
    assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (0, 0)


def test_l6_carry_launches_queued_jobs_that_a_limit_releases(world: World) -> None:
    grouped = {"constraints": [GROUP]}
    others = {name: go(number, **grouped) for number, name in enumerate(["first", "second"], start=1)}
    world.deploy(flights({**others, "third": go(3, workflow="join", **grouped)}))
    for number in (1, 2, 3):
        world.post(f"go.{number}")
        world.clock.pass_by("1s")
        world.settle()
    assert world.limit_state("group:demo.g").waiters == 2

    world.put("third", go(3, workflow="join", constraints=[], **CARRY))
    world.settle()
    assert len(world.runs("third")) == 1
    assert world.runs("third")[0].permits == ("workflow:demo.flights.join", "emr:starts")
    assert (world.limit_state("group:demo.g").active, world.limit_state("group:demo.g").waiters) == (1, 1)
    assert sorted(starts(world)) == ["first", "second", "third"]


def test_l6_carry_of_a_new_limit_sends_queued_jobs_through_it(world: World) -> None:
    """It holds its slot of the workflow, and queues at the group. The new rate comes before both."""
    rate = {"type": "rate", "max": 1, "per": "1h", "on_unmet": "wait"}
    names = {"first": go(1, constraints=[GROUP]), "second": go(2, constraints=[GROUP])}
    world.deploy(flights(names))
    for number in (1, 2):
        world.post(f"go.{number}")
        world.clock.pass_by("1s")
        world.settle()

    world.put("second", go(2, constraints=[GROUP, rate], **CARRY))
    world.settle()
    [job] = world.jobs("second")
    assert (job.state, job.queued_in) == ("PENDING_LAUNCH", "group:demo.g")
    assert [line.partition(":")[0] for line in job.held] == ["rate", "workflow"]
    assert starts(world) == ["first", "second"]
    assert (world.limit_state("group:demo.g").active, world.limit_state("group:demo.g").waiters) == (0, 0)


def test_l6_a_resume_keeps_the_order_of_a_queue() -> None:
    world = waits("daily", 1, 2, 3)
    before = [job.rank for job in world.jobs("daily")]
    world.run_now("daily")
    world.settle()
    world.pause("daily")
    world.resume("daily")
    world.settle()
    after = [job.rank for job in world.jobs("daily")]
    assert before == [rank for rank in after if rank in before]


def test_l6_carry_ranks_a_claimed_run_again_that_queues_for_pace(world: World) -> None:
    """Both are claimed, and EMR throttles both calls. They queue for their next call, the older one first."""
    names = ("first", "second")
    world.deploy(flights({name: go(number, constraints=[]) for number, name in enumerate(names, start=1)}))
    start = world.targets.emr.start

    def busy(run: Run, context: Any) -> Any:
        """While EMR is slow to answer the first call, the second run is claimed and makes its own."""
        if run.schedule.endswith("first"):
            world.targets.emr.answers = [NotNow("throttled")]
            world.post("go.2")
            world.settle()
        world.targets.emr.answers = [NotNow("throttled")]
        return start(run, context)

    world.targets.emr.start = busy
    world.post("go.1")
    world.settle()
    world.targets.emr.start = start
    runs = [run for name in names for run in world.runs(name)]
    assert [run.queued_in for run in runs] == ["emr:starts", "emr:starts"]
    assert [waiter.job_schedule for waiter in world.ports.jobs.head_of("emr:starts", 2)] == [
        run.schedule for run in runs
    ]

    world.put("second", go(2, constraints=[], priority=9, properties={"new": True}, **CARRY))
    ranked = world.runs("second")[0]
    assert (ranked.priority, ranked.request.properties) == (9, {"new": True})
    world.pass_by("3s")
    assert [run.name.split(".")[2] for run in world.targets.emr.runs.values()] == ["second", "first"]
    assert world.limit_state("emr:starts").waiters == 0


@pytest.mark.parametrize("asks", ["before", "after"])
def test_c16_a_claimed_run_keeps_what_was_approved(world: World, asks: str) -> None:
    """It only waits for its next call when the update comes."""
    approval = {"type": "approval", "people": [ADA]}
    before, after = ([approval], []) if asks == "before" else ([], [approval])
    world.deploy(flights({"first": go(1, constraints=before, properties={"table": "one"})}))
    world.targets.emr.answers = [NotNow("throttled")]
    world.post("go.1")
    world.settle()
    for job in world.jobs("first"):
        actions.approve(world.ports, job.job_id, ADA)
    world.settle()
    [run] = world.runs("first")
    assert (run.state, run.target_id) == ("STARTING", None)
    world.put("first", go(1, constraints=after, properties={"table": "all"}))
    world.pass_by("1m")
    [run] = world.runs("first")
    assert (run.target_id is not None, run.request.properties) == (True, {"table": "one"})
