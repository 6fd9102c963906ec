"""An invocation sends the jobs of a block at their appointments, or leaves them in their queue (E3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows import delivery_lease, kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.targets import sub_batches
from chalicelib.core.writes import Replace
from chalicelib.flow.definitions import store
from chalicelib.flow.deliveries import appointments
from chalicelib.flow.deliveries.appointments import Slot
from chalicelib.flow.deliveries.leases import Leases
from tests.flow.deliveries.test_leases import Read
from tests.support.schedules import at
from tests.support.world import SQS, World, flights

LIMIT = "policy:demo.calm"
READY: Millis = 350  # from the block until its first appointment
TOLERANCE: Millis = 20


def queued(jobs: int, **tuned: Any) -> World:
    """So many jobs wait in the queue of a policy, which has become fast."""
    world = World(**tuned)
    schedules = flights({"s": at("1 3 * * *", "notify", policy="calm")})
    world.deploy({**schedules, "policies": {"calm": {"max_events": 1, "interval": "1h"}}})
    for number in range(jobs + 1):
        world.run_now("s", request=f"r{number}")
    world.settle()
    store.put(world.ports, "policy", "demo.calm", {"max_events": 10, "interval": "1s"}, "tester")
    world.targets.queue.messages.clear()
    world.targets.queue.sent_at.clear()
    world.hints.sent.clear()
    return world


def slots(world: World, *after: Millis) -> list[Slot]:
    """Appointments so long after `READY`, for the waiters at the head."""
    begin = world.clock.now() + READY
    waiting = world.ports.jobs.head_of(LIMIT, len(after))
    assert len(waiting) == len(after)
    return [Slot(begin + each, waiter) for each, waiter in zip(after, waiting, strict=True)]


def sent_at(world: World, since: Instant) -> list[Millis]:
    return [instant - since for instant in world.targets.queue.sent_at]


def job_of(world: World, waiter: Waiter) -> Job:
    job = world.ports.rows.get(Job, waiter.job_schedule, waiter.job_generation, waiter.job_sort_key)
    assert job is not None
    return job


def leases(world: World, job: Job) -> list[Any]:
    found = world.ports.jobs.delivery_leases(delivery_lease.due_of(job))
    return [lease for lease in found if lease.leased_until > world.clock.now()]


class Slow:
    """Reads of stamps that take these spans, one after the other; then an instant. Keeps when each has begun."""

    def __init__(self, world: World, *takes: Millis, then: Callable[[], object] = lambda: None) -> None:
        self._world, self._inner, self._takes, self._then = world, world.ports.prefetch, list(takes), then
        self.at: list[Instant] = []
        self.sizes: list[int] = []
        self.whole = 0  # reads of whole rows

    def read(self, *of: Any) -> Any:
        self.whole += 1
        return self._inner.read(*of)

    def stamps(self, wanted: Sequence[Key]) -> Any:
        self.at.append(self._world.clock.now())
        self.sizes.append(sum(kinds.kind_of(key).row is Job for key in wanted))
        found = self._inner.stamps(wanted)
        if self._takes:
            self._world.clock.wait_until(self._world.clock.now() + self._takes.pop(0))
        self._then()
        return found


def test_e3_jobs_of_a_block_are_sent_at_their_appointments() -> None:
    world = queued(4)
    begin = world.clock.now() + READY
    assert appointments.send_part(world.ports, slots(world, 0, 100, 200, 300), TOLERANCE) == []
    assert sent_at(world, begin) == [0, 100, 200, 300]
    assert world.limit_state(LIMIT).waiters == 0
    assert [run.state for run in world.runs("s")] == ["SUCCEEDED"] * 5


def test_e3_appointments_close_together_share_a_call() -> None:
    """The call begins at the last of those that lie within half of the tolerance."""
    world = queued(4)
    begin = world.clock.now() + READY
    assert appointments.send_part(world.ports, slots(world, 0, 10, 11, 21), TOLERANCE) == []
    assert sent_at(world, begin) == [10, 10, 21, 21]


def test_e3_a_call_of_many_appointments_has_at_most_ten() -> None:
    world = queued(12)
    begin = world.clock.now() + READY
    assert appointments.send_part(world.ports, slots(world, *range(12)), 40) == []
    assert sent_at(world, begin) == [9] * 10 + [11] * 2


def test_e3_a_block_without_jobs_sends_nothing() -> None:
    world = queued(1)
    calls = [0]

    def count() -> None:
        calls[0] += 1

    world.tables.before_call = count
    assert appointments.send_part(world.ports, [], TOLERANCE) == []
    assert calls == [0], "a block that only warms up reads nothing"


@pytest.mark.parametrize(("late", "sent"), [(0, 2), (TOLERANCE - 1, 2), (TOLERANCE, 1), (TOLERANCE + 1, 1)])
def test_e3_a_job_that_missed_its_appointment_stays_in_queue(
    late: Millis, sent: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="sluice")
    world = queued(2)
    block = slots(world, 0, 100)
    world.clock.wait_until(block[0].at - 50)
    slow = Slow(world)
    ports = world.with_ports(prefetch=slow)
    world.tables.before_call = _once(lambda: world.clock.wait_until(block[0].at + late))

    assert appointments.send_part(ports, block, TOLERANCE) == []

    assert len(world.targets.queue.messages) == sent
    assert world.limit_state(LIMIT).waiters == 2 - sent
    missed = [vars(record) for record in caplog.records if record.message == "start not made"]
    assert [(line["job"], line["why"]) for line in missed] == [
        (slot.waiter.job_id, "the permit is too old") for slot in block[: 2 - sent]
    ]


def _once(act: Callable[[], object]) -> Callable[[], None]:
    left = [act]

    def first() -> None:
        if left:
            left.pop()()

    return first


@pytest.mark.parametrize(("short", "sent"), [(0, 1), (1, 0)])
def test_e3_a_block_is_sent_with_time_for_call_and_record(short: Millis, sent: int) -> None:
    """The invocation ends when the longest call and its record have ended, or a millisecond before."""
    world = queued(1)
    [slot] = slots(world, 0)
    ends_at = slot.at + sub_batches.longest_call(SQS) + 10 * SECOND - short
    assert appointments.send_part(replace(world.ports, ends_at=ends_at), [slot], TOLERANCE) == []
    assert len(world.targets.queue.messages) == sent
    assert world.limit_state(LIMIT).waiters == 1 - sent


@pytest.mark.parametrize(
    ("after", "reads", "sizes"),
    [
        ((0, 40, 81, 200), [-40, 41, 160], [2, 1, 1]),
        ((0, 41), [-40, 1], [2, 1]),
        ((0, 60), [-40, 20], [2, 1]),
        ((0, 61), [-40, 21], [1, 1]),
    ],
)
def test_e3_rows_of_a_block_are_read_shortly_before_a_call(
    after: Sequence[Millis], reads: list[Millis], sizes: list[int]
) -> None:
    """A read has the rows of a tenth of a second. It is old after 80 ms, since a call may come late."""
    world = queued(len(after))
    block = slots(world, *after)
    slow = Slow(world)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, TOLERANCE) == []
    assert [instant - block[0].at for instant in slow.at] == reads
    assert slow.sizes == sizes
    assert sent_at(world, block[0].at) == list(after)


def test_e3_a_row_that_the_sweep_has_leased_is_read_whole_once() -> None:
    """Two reads have the second job. The lease changes its stamp, and not the decision."""
    world = queued(2)
    block = slots(world, 0, 60)
    job = job_of(world, block[1].waiter)

    def lease() -> None:
        assert world.ports.ledger.commit([Replace(replace(job, leases=1, rev=job.rev + 1))]) is None

    world.tables.before_call = at_instant(world, block[0].at - 40, lease)
    slow = Slow(world)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, TOLERANCE) == []
    before = queued(2)
    plain = Slow(before)
    assert appointments.send_part(before.with_ports(prefetch=plain), slots(before, 0, 60), TOLERANCE) == []
    assert (slow.sizes, plain.sizes) == ([2, 1], [2, 1])
    assert slow.whole == plain.whole + 1
    assert len(world.targets.queue.messages) == 2


@pytest.mark.parametrize(("takes", "reads"), [(80, 1), (81, 1), (2_000, 1), (2_001, 2)])
def test_c13_rows_read_two_seconds_ago_are_read_again(takes: Millis, reads: int) -> None:
    """The permit would tolerate them. After so slow a read there is a pause of 20 ms."""
    world = queued(1)
    [slot] = slots(world, 0)
    slow = Slow(world, takes)
    assert appointments.send_part(world.with_ports(prefetch=slow), [slot], 2_000) == []
    assert len(slow.at) == reads
    assert sent_at(world, slot.at) == [takes - 40 + 20 * (reads - 1)]


@pytest.mark.parametrize(("takes", "sent"), [(300, 12), (1_239, 1), (1_240, 0)])
def test_e3_slow_reads_do_not_stop_a_policy_that_tolerates_them(takes: Millis, sent: int) -> None:
    """Each is followed by a call, which begins within the tolerance of its permits, as of 600 starts a minute."""
    world = queued(12)
    block = slots(world, *range(0, 1_200, 100))
    tolerance = 1_200
    assert appointments.send_part(world.with_ports(prefetch=Slow(world, *[takes] * 20)), block, tolerance) == []
    queue, due = world.targets.queue, {slot.waiter.job_id: slot.at for slot in block}
    late = [at - due[run_id] for at, (run_id, _) in zip(queue.sent_at, queue.messages, strict=True)]
    assert len(late) == sent
    assert all(0 <= each < tolerance for each in late)
    assert world.limit_state(LIMIT).waiters == 12 - sent


@pytest.mark.parametrize("where", [0, 1])
def test_e3_a_job_that_has_changed_is_checked_alone(where: int) -> None:
    """It changes before the read of its rows. The others are sent."""
    world = queued(3)
    block = slots(world, 0, 10, 200)
    gone = block[where].waiter
    job = job_of(world, gone)

    def change() -> None:
        assert world.ports.ledger.commit([Replace(replace(job, tries=job.tries + 1, rev=job.rev + 1))]) is None

    world.tables.before_call = at_instant(world, block[0].at - 40, change)
    assert appointments.send_part(world.ports, block, TOLERANCE) == [gone]
    assert len(world.targets.queue.messages) == 2


def at_instant(world: World, instant: Instant, act: Callable[[], object]) -> Callable[[], None]:
    left = [act]

    def when() -> None:
        if left and world.clock.now() >= instant:
            left.pop()()

    return when


def test_e3_a_job_that_another_invocation_sends_is_left_to_it() -> None:
    world = queued(2)
    block = slots(world, 0, 100)
    other = Leases(world.ports)
    assert other.take([job_of(world, block[0].waiter)], 30 * SECOND, block[0].at) == {}
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    assert sent_at(world, block[0].at) == [100]
    assert world.limit_state(LIMIT).waiters == 1


def test_e3_the_leases_of_a_block_end_with_it() -> None:
    world = queued(2)
    block = slots(world, 0, 100)
    job = job_of(world, block[0].waiter)
    seen: list[Any] = []
    world.tables.before_call = at_instant(world, block[0].at - 40, lambda: seen.extend(leases(world, job)))
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    [held] = seen
    longest = sub_batches.longest_call(SQS)
    assert held.leased_until == block[1].at + TOLERANCE + longest + delivery_lease.MARGIN
    assert leases(world, job) == []


# -- whether another invocation sends a job ----------------------------------------------------------------------------


def test_e3_a_job_is_leased_until_the_end_of_its_lease() -> None:
    world = queued(2)
    one, other = (slot.waiter for slot in slots(world, 0, 100))
    job = job_of(world, one)
    assert not appointments.is_leased(world.ports, one)
    Leases(world.ports).take([job], 30 * SECOND, world.clock.now())
    [lease] = leases(world, job)
    assert appointments.is_leased(world.ports, one)
    assert not appointments.is_leased(world.ports, other)
    world.clock.wait_until(lease.leased_until - 1)
    assert appointments.is_leased(world.ports, one)
    world.clock.wait_until(lease.leased_until)
    assert not appointments.is_leased(world.ports, one)


def test_e3_the_leases_of_other_single_jobs_are_not_read() -> None:
    """There may be thousands of them."""
    world = queued(1)
    [slot] = slots(world, 0)
    read = Read(world.ports.jobs)
    assert not appointments.is_leased(world.with_ports(jobs=read), slot.waiter)
    job = job_of(world, slot.waiter)
    assert read.asked == [(delivery_lease.due_of(job), [delivery_lease.mark(job)])]


def test_e3_a_run_in_a_queue_or_a_job_that_has_gone_has_no_lease() -> None:
    world = queued(1)
    [slot] = slots(world, 0)
    Leases(world.ports).take([job_of(world, slot.waiter)], 30 * SECOND, world.clock.now())
    assert not appointments.is_leased(world.ports, replace(slot.waiter, job_sort_key="RUNNOW#none"))
    assert not appointments.is_leased(world.ports, replace(slot.waiter, job_sort_key="A#1"))


def test_e3_waiters_that_need_a_claim_are_returned_unless_leased() -> None:
    """Of jobs that are no deliveries, the caller serves those that no other invocation sends."""
    world = queued(3)
    block = slots(world, 0, 100, 200)
    gone = [Slot(slot.at, replace(slot.waiter, rank="elsewhere")) for slot in block]
    Leases(world.ports).take([job_of(world, block[1].waiter)], 30 * SECOND, world.clock.now())
    left = [gone[0].waiter, gone[2].waiter]
    assert appointments.send_part(world.ports, gone, TOLERANCE) == left
    assert appointments.send_part(world.ports, [*gone[:2], block[2]], TOLERANCE) == left[:1]
    assert len(world.targets.queue.messages) == 1
