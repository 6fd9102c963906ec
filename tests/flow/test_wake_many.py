"""Many jobs of a schedule are woken page by page, from a stored cursor on, even after a crash (L4, C7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import MarkWoken, Replace, Write
from chalicelib.flow import wake
from tests.acceptance.words import fresh
from tests.support.crash import Crash, lost, redelivered, wrap
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at, partitions
from tests.support.world import World, day, flights, full

MANY = 23
PAGE = 6
FRESH = {"constraints": [fresh("other", "1h")]}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six jobs are a page."""
    monkeypatch.setattr(wake, "BATCH_SIZE", PAGE)


class Wakes(LedgerBetween):
    """Counts the jobs of each commit that wakes jobs."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.sizes: list[int] = []

    def before(self, writes: Sequence[Write]) -> None:
        woken = [one for one in writes if isinstance(one, Replace) and isinstance(one.row, Job) and one.row.leases == 0]
        if woken and len(woken) == len(writes):
            self.sizes.append(len(woken))


def held() -> World:
    """Jobs that wait for the resume of their schedule."""
    world = World(wake_shards=1, history_shards=1, start_burst=100)
    world.deploy(flights({"a": partitions(by=["day"])}))
    world.pause("a")
    for number in range(1, MANY + 1):
        world.upload(day(number))
    world.settle()
    assert len(world.jobs("a")) == MANY
    return world


def all_ran(world: World) -> bool:
    state = world.ports.rows.get(ScheduleState, full("a"))
    assert state is not None
    return (len(world.runs("a")), world.jobs("a"), state.wake_at) == (MANY, [], None)


def test_l4_a_resume_wakes_a_page_and_hints_the_rest() -> None:
    world = held()
    counted = Wakes(world.ports.ledger)
    world.ports = world.with_ports(ledger=counted)
    world.resume("a")
    assert counted.sizes == [PAGE], "the jobs of a page are woken in one transaction"
    hinted = [ref.kind for _, ref in world.hints.sent]
    assert hinted.count("job") == PAGE
    assert "schedule" in hinted
    world.settle()
    assert all_ran(world)


def test_l4_waking_goes_on_from_its_cursor_after_a_death() -> None:
    world = held()
    world.resume("a")
    world.hints.sent = []
    counted = Wakes(world.ports.ledger)

    class Dies(LedgerBetween):
        marks = 0

        def after(self, writes: Sequence[Write], conflict: object) -> None:
            self.marks += any(isinstance(one, MarkWoken) for one in writes)
            if self.marks == 2:
                raise Crash

    assert lost(lambda: wake.rest_of(world.with_ports(ledger=Dies(counted)), full("a")))
    assert counted.sizes == [PAGE, PAGE]
    wake.rest_of(world.with_ports(ledger=counted), full("a"))
    assert counted.sizes == [PAGE, PAGE, MANY - 3 * PAGE]


def test_l4_an_invocation_out_of_time_hints_the_schedule_again() -> None:
    world = held()
    world.resume("a")
    world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind == "job"]
    wake.rest_of(world.with_ports(ends_at=world.clock.now() + 5_000), full("a"))
    assert [ref.kind for _, ref in world.hints.sent].count("job") == 2 * PAGE
    assert [ref.parts for _, ref in world.hints.sent if ref.kind == "schedule"] == [(full("a"),)]
    world.settle()
    assert all_ran(world)


def test_l4_a_second_resume_wakes_all_jobs_from_the_first_on() -> None:
    """The cursor of the first resume does not count for the jobs that the pause has stopped again."""
    world = held()
    world.resume("a")
    world.pause("a")
    world.hints.sent = []
    world.resume("a")
    world.settle()
    assert all_ran(world)


def _resumed(world: World) -> None:
    redelivered(lambda: world.resume("a"))


def _passed(world: World) -> None:
    """Only time passes, and nothing dies any more."""
    world.pass_by("3m")


def test_l4_a_death_after_any_effect_of_a_resume_loses_no_job() -> None:
    assert _every_death(held, _resumed, all_ran) >= 10


def stale() -> World:
    """Jobs that wait for a success of another workflow."""
    world = World(wake_shards=1, history_shards=1, start_burst=100)
    world.deploy(
        flights(
            {"a": partitions(by=["day"], **FRESH), "other": at("0 0 1 1 *", "other")},
            other={"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}},
        )
    )
    for number in range(1, MANY + 1):
        world.upload(day(number))
    world.settle()
    assert len(world.jobs("a")) == MANY
    world.run_now("other")
    world.settle()
    return world


def _succeeded(world: World) -> None:
    [run] = world.targets.emr.runs
    lost(lambda: world.emr_says(run, "SUCCESS"))


def test_c7_a_success_wakes_all_of_many_jobs_that_wait_for_it() -> None:
    world = stale()
    counted = Wakes(world.ports.ledger)
    world.ports = world.with_ports(ledger=counted)
    _succeeded(world)
    assert counted.sizes == [PAGE], "the rest is left to the outbox of the schedule"
    world.settle()
    assert all_ran(world)


def test_c7_a_death_after_any_effect_of_a_success_loses_no_job() -> None:
    assert _every_death(stale, _succeeded, all_ran) >= 10


def test_c7_a_success_during_a_resume_begins_again() -> None:
    """Both events wake all jobs: the second one before the first has come to its end."""
    world = held()
    world.resume("a")
    before = world.ports.rows.get(ScheduleState, full("a"))
    assert before is not None
    assert before.woken_to is not None
    wake.constrained(world.ports, full("a"), before.generation)
    after = world.ports.rows.get(ScheduleState, full("a"))
    assert after is not None
    assert (after.rev, after.woken_to) == (before.rev + 1, None)
    world.settle()
    assert all_ran(world)


def _wake_rest(world: World) -> None:
    """Handle the hints of the schedule, and of nothing else."""
    if any(ref.kind == "schedule" for _, ref in world.hints.sent):
        world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind != "schedule"]
        lost(lambda: wake.rest_of(world.ports, full("a")))


def _every_death(start: Callable[[], World], act: Callable[[World], None], holds: Callable[[World], bool]) -> int:
    """Play with a death after each effect until all jobs are hinted. Returns the number of effects."""
    total = number = 0
    while number <= total:
        world = start()
        points = wrap(world)
        points.die_after, points.armed = number, True
        act(world)
        _wake_rest(world)
        points.armed = False
        total = points.count if number == 0 else total
        _passed(world)
        assert holds(world), f"after effect {number}: {points.names[-3:]}"
        number += 1
    return total
