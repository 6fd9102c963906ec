"""The sweep finds the work that a lost hint, a killed Lambda or a lost event left behind (O3, W7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of, run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.system.sweep import GRACE
from chalicelib.core.writes import Replace
from chalicelib.flow.system import sweep
from chalicelib.ports import Page
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights


def test_o3_an_overdue_job_with_a_lost_hint_starts_at_next_tick(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.hints.lose = True
    world.upload(day(1))
    world.hints.lose = False
    assert world.runs("daily") == []

    world.pass_by("1m6s")

    assert len(world.runs("daily")) == 1


def test_o3_a_due_fire_with_a_lost_hint_is_late_but_not_lost(world: World) -> None:
    world.hints.lose = True
    world.deploy(flights({"tick": at("@every 5s", "notify")}))
    world.pass_by("55s")
    world.hints.lose = False
    assert world.runs("tick") == []

    world.pass_by("1m6s")

    nominal = [run.nominal_at for run in world.runs("tick")]
    assert len(nominal) == len(set(nominal)) >= 20


def test_w7_a_run_whose_events_never_came_is_polled(world: World) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.targets.emr.runs["jr00001"].state = "SUCCESS"  # and no event arrives

    world.pass_by("4m")

    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED"]
    assert world.limit_state("workflow:demo.flights.clean").active == 0


def test_w7_an_active_run_without_news_is_polled_ever_less_often(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    world.emr_says("jr00001", "RUNNING")
    asked: list[int] = []
    ask = world.targets.emr.status
    world.targets.emr.status = lambda run: (asked.append(world.clock.now()), ask(run))[1]

    world.pass_by("1h")

    assert 3 <= len(asked) <= 7
    assert [run.state for run in world.runs("daily")] == ["RUNNING"]


def test_w10_an_unlaunched_run_is_launched_once(world: World) -> None:
    world.deploy(flights({"daily": partitions()}))
    start = world.targets.emr.start
    died: list[str] = []

    def dies(run: object, context: object) -> object:
        died.append("here")
        world.targets.emr.start = start
        raise ConnectionError("the Lambda is gone before the call")

    world.targets.emr.start = dies
    world.upload(day(1))
    try:
        world.settle()
    except ConnectionError:
        died.append("and no message was sent")
    assert len(died) == 2

    world.pass_by("5m")

    assert len(world.targets.emr.runs) == 1
    assert len(world.runs("daily")) == 1


def test_o1_a_tick_with_nothing_due_reads_no_schedule(world: World) -> None:
    world.deploy(flights({f"s{number}": partitions() for number in range(10)}))
    reads: list[str] = []

    class Counting:
        def __init__(self, port: object) -> None:
            self._port = port

        def __getattr__(self, name: str) -> object:
            reads.append(name)
            return getattr(self._port, name)

    world.ports = world.with_ports(rows=Counting(world.ports.rows), catalog=Counting(world.ports.catalog))
    world.pass_by("3m")

    assert reads == []


class _Stale:
    """An index that is behind: it lists a row as overdue, whose `wake_at` has moved since."""

    def __init__(self, world: World, table: str, ref: Ref) -> None:
        self._table, self._page = table, Page(((ref, world.clock.now() - MINUTE),), None)

    def due(self, table: str, shard: int, until: Instant, limit: int, cursor: str | None) -> Page[tuple[Ref, Instant]]:
        return self._page if (table, shard) == (self._table, 0) else Page((), None)


@pytest.mark.parametrize(("age", "hinted"), [(GRACE, 1), (GRACE - 1, 0), (0, 0), (-MINUTE, 0)])
def test_o3_a_job_of_an_old_index_is_hinted_only_if_overdue(world: World, age: Millis, hinted: int) -> None:
    world.deploy(flights({"daily": partitions(count=2)}))
    world.upload(day(1))
    world.settle()
    (job,) = world.jobs("daily")
    moved = replace(job, wake_at=world.clock.now() - age, rev=job.rev + 1)

    assert _swept(world, "jobs", moved) == hinted
    assert world.jobs("daily")[0].leases == hinted


@pytest.mark.parametrize(("age", "hinted"), [(GRACE, 1), (GRACE - 1, 0), (0, 0), (-MINUTE, 0)])
def test_o3_a_run_of_an_old_index_is_hinted_only_if_overdue(world: World, age: Millis, hinted: int) -> None:
    world.deploy(flights({"daily": partitions()}))
    world.upload(day(1))
    world.settle()
    (run,) = world.runs("daily")

    assert _swept(world, "runs", replace(run, wake_at=world.clock.now() - age, rev=run.rev + 1)) == hinted


def _swept(world: World, table: str, moved: Job | Run) -> int:
    """How many rows a sweep hints to which an index lists this row, as it is written now."""
    assert world.ports.ledger.commit([Replace(moved)]) is None
    ref = ref_of(moved) if isinstance(moved, Job) else run_ref(moved.run_id, moved.attempt)
    world.hints.sent = []
    count = sweep.sweep_all(world.with_ports(wakes=_Stale(world, table, ref)))
    assert [sent for _, sent in world.hints.sent] == [ref] * count
    return count
