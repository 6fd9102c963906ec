"""Ten thousand rows with the real sizes of pages: woken from a cursor on, through deaths, and swept within two ticks.

`test_wake_many.py` and `system/test_sweep_parts.py` try each death with pages of a few rows. Here the pages are those
of the product, and some of them die.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import MarkWoken, Put, Replace, Write
from chalicelib.flow import shards, wake
from chalicelib.flow.fires import emit
from chalicelib.flow.runs import complete
from chalicelib.flow.system import dispatch, sweep
from tests.acceptance.words import fresh
from tests.support.crash import Crash, lost
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at, partitions
from tests.support.world import World, day, flights, full

MANY = 10_000
FRESH = {"constraints": [fresh("other", "1h")]}
pytestmark = pytest.mark.long


class Dies(LedgerBetween):
    """Kills the invocation after some of its commits that wake jobs, or that move the cursor, by their numbers."""

    def __init__(self, world: World, wakes: Sequence[int], marks: Sequence[int]) -> None:
        super().__init__(world.ports.ledger)
        self.wakes, self.marks = set(wakes), set(marks)
        self.woken, self.transactions, self.pages, self.deaths = 0, 0, 0, 0

    def after(self, writes: Sequence[Write], conflict: object) -> None:
        jobs = sum(isinstance(one, Replace) and isinstance(one.row, Job) for one in writes)
        marked = any(isinstance(one, MarkWoken) for one in writes)
        self.woken, self.transactions, self.pages = (
            self.woken + jobs,
            self.transactions + bool(jobs),
            self.pages + marked,
        )
        if (jobs and self.transactions in self.wakes) or (marked and self.pages in self.marks):
            self.deaths += 1
            raise Crash


def waiting(constraints: dict[str, object]) -> World:
    """Ten thousand jobs of one schedule that wait, copied from one."""
    world = World(wake_shards=4, history_shards=1)
    world.deploy(
        flights(
            {"a": partitions(by=["day"], **constraints), "other": at("0 0 1 1 *", "other")},
            other={"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}},
        )
    )
    if not constraints:
        world.pause("a")
    world.upload(day(1))
    world.settle()
    copies(world, "a", MANY)
    return world


def copies(world: World, name: str, count: int) -> None:
    """Store so many jobs like the one job of a schedule, which becomes one of them."""
    [job] = world.jobs(name)
    made = [
        Put(replace(job, sort_key=f"{job.sort_key}{number:05d}", job_id=ids.job_id(name, number, "copy")))
        for number in range(count - 1)
    ]
    world.ports.ledger.put_all(made)
    world.hints.sent = []


def all_hinted(world: World) -> Counter[Ref]:
    return Counter(ref for _, ref in world.hints.sent if ref.kind == "job")


def woken(world: World, begin: Callable[[World], None], wakes: Sequence[int], marks: Sequence[int]) -> None:
    """Begin to wake the jobs; then the hint of the schedule comes, or the sweep finds it, until all are woken."""
    dies = Dies(world, wakes, marks)
    world.ports = world.with_ports(ledger=dies)
    lost(lambda: begin(world))
    invocations = 0
    while (state := world.ports.rows.get(ScheduleState, full("a"))) is not None and state.wake_at is not None:
        lost(lambda: wake.rest_of(world.ports, full("a")))
        invocations += 1
        assert invocations <= len(wakes) + len(marks) + 1, "each death costs one invocation more, and no other"
    assert dies.deaths == len(wakes) + len(marks)
    assert len(all_hinted(world)) == MANY, "each job was hinted"
    assert dies.woken <= MANY + wake.BATCH_SIZE * (dies.deaths + 1), "a death repeats at most its page"


DEATHS = [([], []), ([2, 150, 398], []), ([], [1, 37, 99]), ([3, 201], [50, 51, 98])]


@pytest.mark.parametrize(("wakes", "marks"), DEATHS)
def test_l4_a_resume_of_10000_jobs_goes_on_from_its_cursor(wakes: list[int], marks: list[int]) -> None:
    woken(waiting({}), lambda world: world.resume("a"), wakes, marks)


@pytest.mark.parametrize(("wakes", "marks"), DEATHS)
def test_c7_a_success_that_10000_jobs_wait_for_reaches_all(wakes: list[int], marks: list[int]) -> None:
    def succeeds(world: World) -> None:
        """The event of EMR comes; after a death the sweep finds what the run has to announce."""
        [job_run] = world.targets.emr.runs
        lost(lambda: world.emr_says(job_run, "SUCCESS"))
        while (run := world.runs("other")[0]).announce:
            lost(lambda run_id=run.run_id, attempt=run.attempt: complete.announce(world.ports, run_id, attempt))

    world = waiting(FRESH)
    world.run_now("other")
    world.settle()
    world.hints.sent = []
    woken(world, succeeds, wakes, marks)


def test_o3_10000_overdue_jobs_are_looked_at_within_two_ticks() -> None:
    world = World(wake_shards=4, history_shards=1)
    names = [f"s{number:02d}" for number in range(20)]
    world.deploy(flights({name: partitions() for name in names}))
    world.upload(day(1))
    for name in names:
        copies(world, name, MANY // len(names))
    world.hints.sent = []
    world.clock.pass_by("61s")
    ticks = 0
    while len(all_hinted(world)) < MANY:
        ticks += 1
        assert ticks <= 2
        ports = shards.read_once(world.ports)
        emit.emit_due(ports)
        sweep.sweep_all(ports)
        _work(world)
        world.clock.pass_by("61s")
    assert set(all_hinted(world).values()) == {1}, "a lease keeps the next tick from hinting a row again"
    now = world.clock.now()
    rows = [job for name in names for job in _jobs(world, name)]
    assert len(rows) == MANY
    assert {job.leases for job in rows} == {1}
    assert all(job.wake_at is not None and job.wake_at > now - 2 * MINUTE - SECOND for job in rows)


def _work(world: World) -> None:
    """Handle the parts of shards that were handed on, and no other hint."""
    while ready := [ref for _, ref in world.hints.sent if ref.kind == "shard"]:
        world.hints.sent = [hint for hint in world.hints.sent if hint[1].kind != "shard"]
        for ref in ready:
            dispatch.dispatch(world.ports, ref)


def _jobs(world: World, name: str) -> Sequence[Job]:
    state = world.ports.rows.get(ScheduleState, full(name))
    assert state is not None
    return world.ports.jobs.jobs(full(name), state.generation, MANY, None).items
