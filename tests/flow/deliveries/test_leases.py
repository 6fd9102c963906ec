"""The rows by which an invocation leases the jobs that it delivers, and what each read of the others costs (E2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows import delivery_lease as core
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.job import Job
from chalicelib.core.writes import Conflict, EndLease, TakeLease, Write
from chalicelib.flow.deliveries.leases import Kept, Leases
from chalicelib.ports import Ports
from tests.support import rows
from tests.support.clock import NOON
from tests.support.ledgers import Before, LedgerBetween
from tests.support.world import World

LONGEST: Millis = 30 * SECOND
FIRST, SECOND_DUE = NOON + MINUTE, NOON + 2 * MINUTE


def jobs(count: int, due: Instant = FIRST, name: str = "j") -> list[Job]:
    return [rows.job(f"{name}{number}", kind="fire", due_at=due) for number in range(count)]


def marks(*of: Job) -> list[str]:
    return list(map(core.mark, of))


class Read:
    """Reads of jobs. Keeps what was asked about leases."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: list[tuple[Instant, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def delivery_leases(self, due: Instant, singles: Collection[str] | None = None) -> tuple[DeliveryLease, ...]:
        self.asked.append((due, None if singles is None else sorted(singles)))
        found: tuple[DeliveryLease, ...] = self._inner.delivery_leases(due, singles)
        return found


class Refusing(LedgerBetween):
    """Refuses the transactions of these numbers, from 1 on, as if another invocation had been faster."""

    def __init__(self, inner: Any, *numbers: int) -> None:
        super().__init__(inner)
        self._numbers = numbers
        self.plans: list[list[Write]] = []

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        self.plans.append(list(writes))
        if len(self.plans) in self._numbers:
            return Conflict(tuple(writes))
        return super().commit(writes)


def stored(world: World, due: Instant = FIRST) -> list[DeliveryLease]:
    return sorted(world.ports.jobs.delivery_leases(due), key=lambda lease: lease.id)


def covered(world: World, due: Instant = FIRST) -> set[str]:
    """The marks of the jobs that are leased at present."""
    now = world.clock.now()
    return {mark for lease in stored(world, due) if lease.leased_until > now for mark in lease.covered}


def others_take(world: World, taken: Sequence[Job], longest: Millis = LONGEST) -> Leases:
    other = Leases(world.ports)
    assert other.take(taken, longest, 0) == {}
    return other


def meeting(world: World, act: Callable[[], object]) -> Ports:
    """The ports of an invocation right before whose first lease another one acts."""
    return world.with_ports(ledger=Before(world.ports.ledger, act))


# -- take --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["take", "take_alone"])
@pytest.mark.parametrize("begin", [NOON - MINUTE, NOON, NOON + MINUTE])
@pytest.mark.parametrize("count", [1, 3])
def test_e2_a_lease_lasts_six_seconds_longer_than_a_call(count: int, begin: Instant, how: str) -> None:
    world, own = World(), jobs(count)
    assert set(getattr(Leases(world.ports), how)(own, LONGEST, begin)) == set()
    [lease] = stored(world)
    until = max(NOON, begin) + LONGEST + 6 * SECOND
    assert (lease.due_at, lease.leased_until, lease.expires_at, lease.taken_at) == (FIRST, until, until + HOUR, NOON)
    assert lease.covered == set(marks(*own))
    assert len(lease.holder) == 12
    assert int(lease.holder, 16) >= 0
    assert lease.id == (f"~{core.mark(own[0])}" if count == 1 else core.lease_of(own, 0, "", 0).id)


@pytest.mark.parametrize("how", ["take", "take_alone"])
def test_e2_jobs_of_two_instants_have_a_lease_each(how: str) -> None:
    world, early, late = World(), jobs(2), jobs(1, SECOND_DUE, "k")
    leases = Leases(world.ports)
    assert set(getattr(leases, how)([early[0], *late, early[1]], LONGEST, NOON)) == set()
    assert covered(world) == set(marks(*early))
    assert covered(world, SECOND_DUE) == set(marks(*late))
    leases.end()
    assert (stored(world), stored(world, SECOND_DUE)) == ([], [])


def test_e2_two_invocations_have_different_holders() -> None:
    world = World()
    others_take(world, jobs(1))
    others_take(world, jobs(1, SECOND_DUE))
    assert stored(world)[0].holder != stored(world, SECOND_DUE)[0].holder


def test_e2_a_single_job_is_leased_with_one_read() -> None:
    """There may be thousands of leases on other single jobs."""
    world, own = World(), jobs(3)
    read = Read(world.ports.jobs)
    ports = world.with_ports(jobs=read)
    assert Leases(ports).take(own[:1], LONGEST, NOON) == {}
    assert read.asked == [(FIRST, [])]
    read.asked.clear()
    assert Leases(ports).take_alone(own[1:2], LONGEST, NOON) == frozenset()
    assert read.asked == [(FIRST, [])]


def test_e2_a_batch_looks_at_all_leases_before_and_after_its_own() -> None:
    world, own = World(), jobs(4)
    read = Read(world.ports.jobs)
    ports = world.with_ports(jobs=read)
    assert Leases(ports).take(own[:2], LONGEST, NOON) == {}
    assert read.asked == [(FIRST, None)] * 2
    read.asked.clear()
    assert Leases(ports).take_alone(own[2:], LONGEST, NOON) == frozenset()
    assert read.asked == [(FIRST, sorted(marks(*own[2:])))]


def test_e2_a_leased_single_job_is_tried_when_its_lease_ends() -> None:
    world, own = World(), jobs(1)
    others_take(world, own)
    [lease] = stored(world)
    world.clock.pass_by("3s")
    read, ledger = Read(world.ports.jobs), Refusing(world.ports.ledger)
    found = Leases(world.with_ports(jobs=read, ledger=ledger)).take(own, LONGEST, NOON)
    assert found == {core.mark(own[0]): lease.leased_until}
    assert read.asked == [(FIRST, marks(own[0]))]
    assert len(ledger.plans) == 1
    assert stored(world) == [lease]


def test_e2_a_batch_leases_what_others_have_left() -> None:
    world, own = World(), jobs(4)
    others_take(world, own[:2])
    [lease] = stored(world)
    world.clock.pass_by("3s")
    leases = Leases(world.ports)
    assert leases.take(own, LONGEST, NOON) == dict.fromkeys(marks(*own[:2]), lease.leased_until)
    assert leases.keep(own[2:], SECOND) == Kept(frozenset(), False)
    assert {each.covered for each in stored(world)} == {frozenset(marks(*own[:2])), frozenset(marks(*own[2:]))}


def test_e2_a_batch_that_others_have_whole_writes_no_lease() -> None:
    world, own = World(), jobs(3)
    others_take(world, own)
    ledger = Refusing(world.ports.ledger)
    found = Leases(world.with_ports(ledger=ledger)).take(own, LONGEST, NOON)
    assert set(found) == set(marks(*own))
    assert ledger.plans == []


def test_e2_a_lease_ends_at_its_instant() -> None:
    world, own = World(), jobs(2)
    others_take(world, own)
    [lease] = stored(world)
    world.clock.wait_until(lease.leased_until - 1)
    assert set(Leases(world.ports).take(own, LONGEST, NOON)) == set(marks(*own))
    world.clock.wait_until(lease.leased_until)
    assert Leases(world.ports).take(own, LONGEST, NOON) == {}


@pytest.mark.parametrize("count", [1, 3])
def test_e2_a_lease_is_tried_three_times(count: int) -> None:
    """Each time another invocation has just leased some of the jobs, and has given them up again."""
    world, own = World(), jobs(count)
    ledger = Refusing(world.ports.ledger, 1, 2, 3)
    found = Leases(world.with_ports(ledger=ledger)).take(own, LONGEST, NOON + MINUTE)
    assert len(ledger.plans) == 3
    assert found == dict.fromkeys(marks(*own), NOON + MINUTE + LONGEST + 6 * SECOND)
    assert stored(world) == []


@pytest.mark.parametrize("count", [1, 3])
def test_e2_a_lease_refused_twice_is_taken_then(count: int) -> None:
    world, own = World(), jobs(count)
    ledger = Refusing(world.ports.ledger, 1, 2)
    leases = Leases(world.with_ports(ledger=ledger))
    assert leases.take(own, LONGEST, NOON) == {}
    assert len(ledger.plans) == 3
    assert covered(world) == set(marks(*own))
    assert leases.keep(own, SECOND) == Kept(frozenset(), False)


def test_e2_jobs_of_the_next_instant_are_leased_after_a_refusal() -> None:
    world, early, late = World(), jobs(2), jobs(2, SECOND_DUE, "l")
    others_take(world, early)
    leases = Leases(world.ports)
    assert set(leases.take([*early, *late], LONGEST, NOON)) == set(marks(*early))
    assert covered(world, SECOND_DUE) == set(marks(*late))
    alone = Leases(world.with_ports(ledger=Refusing(world.ports.ledger, 1)))
    more, last = jobs(2, FIRST, "k"), jobs(2, SECOND_DUE, "m")
    assert alone.take_alone([*more, *last], LONGEST, NOON) == frozenset(marks(*more))
    assert covered(world, SECOND_DUE) == set(marks(*late, *last))


def test_e2_jobs_of_two_instants_may_both_be_refused() -> None:
    world, early, late = World(), jobs(2), jobs(2, SECOND_DUE, "k")
    leases = Leases(world.with_ports(ledger=Refusing(world.ports.ledger, 1, 2)))
    assert leases.take_alone([*early, *late], LONGEST, NOON) == frozenset(marks(*early, *late))
    assert leases.keep([*early, *late], SECOND).lost == set(marks(*early, *late))


@pytest.mark.parametrize("how", ["take", "take_alone"])
@pytest.mark.parametrize("count", [1, 3])
def test_e2_a_lease_that_has_ended_is_taken_over(count: int, how: str) -> None:
    world, own = World(), jobs(count)
    others_take(world, own)
    [before] = stored(world)
    world.clock.wait_until(before.leased_until)
    assert set(getattr(Leases(world.ports), how)(own, LONGEST, NOON)) == set()
    [after] = stored(world)
    assert (after.id, after.marks, after.taken_at) == (before.id, before.marks, world.clock.now())


# -- two at once -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "passes", "again"),
    [
        (NOON - MINUTE, "1ms", 2 * SECOND),
        (NOON - MINUTE, "1999ms", 2 * SECOND),
        (NOON - MINUTE, "2s", 40 * SECOND),  # the end of the other lease
        (NOON + 10 * SECOND, "1ms", 12 * SECOND),
    ],
)
def test_e2_a_job_leased_at_once_by_two_is_tried_soon(begin: Instant, passes: str, again: Millis) -> None:
    """The other invocation has it in another batch. It may give the job up, too, so it is tried two seconds later."""
    world, own = World(), jobs(3)

    def meanwhile() -> None:
        others_take(world, [own[0], *jobs(1, FIRST, "k")], 34 * SECOND)
        world.clock.pass_by(passes)

    leases = Leases(meeting(world, meanwhile))
    assert leases.take(own, LONGEST, begin) == {core.mark(own[0]): NOON + again}
    [kept] = [lease for lease in stored(world) if core.mark(own[1]) in lease.covered]
    assert kept.covered == set(marks(*own[1:]))
    assert kept.id == core.lease_of(own, 0, "", 0).id, "it stays the same row"
    assert leases.keep(own[1:], SECOND) == Kept(frozenset(), False)
    world.clock.wait_until(kept.leased_until - 5 * SECOND)
    assert leases.keep(own[1:], 10 * SECOND) == Kept(frozenset(), False)
    assert {lease.covered for lease in stored(world) if lease.id == kept.id} == {kept.covered}, "also when renewed"


def test_e2_a_job_that_others_free_meanwhile_is_tried_again() -> None:
    """It was leased at the first look, so this lease does not cover it."""
    world, own = World(), jobs(3)
    other = others_take(world, own[:1])
    [lease] = stored(world)
    leases = Leases(meeting(world, other.end))
    assert leases.take(own, LONGEST, NOON) == {core.mark(own[0]): lease.leased_until}
    assert covered(world) == set(marks(*own[1:]))


def test_e2_a_batch_given_up_whole_leaves_no_row() -> None:
    world, own = World(), jobs(2)
    leases = Leases(meeting(world, lambda: others_take(world, [*own, *jobs(1, FIRST, "k")])))
    assert set(leases.take(own, LONGEST, NOON)) == set(marks(*own))
    assert len(stored(world)) == 1
    assert leases.keep(own, SECOND).lost == set(marks(*own))


def test_e2_a_lease_that_cannot_be_made_smaller_stays() -> None:
    """The jobs that are given up are free when it ends."""
    world, own = World(), jobs(3)
    plain = world.ports.ledger

    class Crossed(Refusing):
        def before(self, writes: Sequence[Write]) -> None:
            if len(self.plans) == 1:
                others_take(world, [own[0], *jobs(1, FIRST, "k")])

    leases = Leases(world.with_ports(ledger=Crossed(plain, 2)))
    assert set(leases.take(own, LONGEST, NOON)) == set(marks(own[0]))
    world.clock.pass_by("31s")
    leases.keep(own, 10 * SECOND)
    assert frozenset(marks(*own)) in {lease.covered for lease in stored(world)}, "also when renewed"
    leases.end()
    assert len(stored(world)) == 1, "the own lease is ended"


def test_e2_a_job_that_two_leased_alone_is_sent_by_none() -> None:
    world, own = World(), jobs(3)
    leases = Leases(meeting(world, lambda: others_take(world, [own[0], *jobs(1, FIRST, "k")])))
    assert leases.take_alone(own, LONGEST, NOON) == frozenset(marks(own[0]))
    assert frozenset(marks(*own)) in {lease.covered for lease in stored(world)}
    single = Leases(meeting(world, lambda: others_take(world, [own[2], *jobs(1, FIRST, "l")])))
    world.clock.pass_by("2m")
    assert single.take_alone(own[2:], LONGEST, NOON) == frozenset(marks(own[2]))


# -- keep --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "renewed"), [(11 * SECOND, False), (11 * SECOND - 1, True)])
def test_e2_a_lease_is_renewed_if_a_call_may_outlast_it(left: Millis, renewed: bool) -> None:
    """By the clock of any invocation: clocks differ by up to a second."""
    world, own = World(), jobs(3)
    ledger = Refusing(world.ports.ledger)
    leases = Leases(world.with_ports(ledger=ledger))
    leases.take(own, LONGEST, NOON)
    [before] = stored(world)
    world.clock.wait_until(before.leased_until - left)
    now = world.clock.now()
    assert leases.keep(own[:1], 10 * SECOND) == Kept(frozenset(), False)
    until = now + 16 * SECOND
    assert stored(world) == [core.renewed(before, until) if renewed else before]
    ledger.plans.clear()
    assert leases.keep(own, 10 * SECOND) == Kept(frozenset(), False)
    assert ledger.plans == [], "a lease that was renewed is not renewed again"


@pytest.mark.parametrize("count", [1, 3])
def test_e2_a_lease_that_another_has_taken_is_lost_for_good(count: int) -> None:
    world, own = World(), jobs(count)
    leases, other = Leases(world.ports), jobs(2, SECOND_DUE, "k")
    leases.take([*own, *other], LONGEST, NOON)
    world.clock.pass_by("37s")
    taker = others_take(world, own, 2 * LONGEST)
    assert leases.keep([*own, *other], SECOND) == Kept(frozenset(marks(*own)), True)
    taker.end()
    assert leases.keep(own, SECOND).lost == set(marks(*own))
    assert covered(world) == set()
    assert covered(world, SECOND_DUE) == set(marks(*other))


def test_e2_a_lease_that_another_has_taken_and_ended_is_lost() -> None:
    """The other one has delivered the jobs."""
    world, own = World(), jobs(3)
    leases = Leases(world.ports)
    leases.take(own, LONGEST, NOON)
    world.clock.pass_by("37s")
    others_take(world, own).end()
    assert leases.keep(own, SECOND).lost == set(marks(*own))


@pytest.mark.parametrize(("before", "lapsed"), [(1_001, False), (1_000, True), (0, True), (-5_000, True)])
def test_e2_a_lease_renewed_in_its_last_second_has_lapsed(before: Millis, lapsed: bool) -> None:
    """By the clock of another invocation it may have ended."""
    world, own = World(), jobs(3)
    leases = Leases(world.ports)
    leases.take(own, LONGEST, NOON)
    world.clock.wait_until(stored(world)[0].leased_until - before)
    assert leases.keep(own, SECOND) == Kept(frozenset(), lapsed)


@pytest.mark.parametrize(("ended", "counts"), [(0, True), (999, True), (1_000, False)])
def test_e2_a_lease_that_ended_within_a_second_counts(ended: Millis, counts: bool) -> None:
    """The clock of the other invocation may be behind: then it is still sending."""
    world, own = World(), jobs(3)
    leases = Leases(world.ports)
    leases.take(own, LONGEST, NOON)
    world.clock.pass_by("1m")
    others_take(world, own[:1], MINUTE)
    [other] = [lease for lease in stored(world) if len(lease.covered) == 1]
    world.clock.wait_until(other.leased_until + ended)
    assert leases.keep(own, SECOND) == Kept(other.covered if counts else frozenset(), True)


def test_e2_a_job_without_a_lease_is_lost() -> None:
    world, own = World(), jobs(1)
    assert Leases(world.ports).keep(own, SECOND) == Kept(frozenset(marks(*own)), False)


def test_e2_a_lapsed_lease_reads_the_leases_of_its_jobs() -> None:
    world, own = World(), jobs(3)
    read = Read(world.ports.jobs)
    leases = Leases(world.with_ports(jobs=read))
    leases.take(own, LONGEST, NOON)
    world.clock.pass_by("2m")
    others_take(world, own[2:])
    read.asked.clear()
    assert leases.keep(own, SECOND) == Kept(frozenset(marks(own[2])), True)
    assert read.asked == [(FIRST, sorted(marks(*own)))]
    assert leases.keep(own[:1], SECOND) == Kept(frozenset(marks(own[2])), True), "the rest of the batch knows it"


# -- the end -----------------------------------------------------------------------------------------------------------


def test_e2_jobs_given_up_are_free_and_the_others_stay() -> None:
    world, early, late, last = World(), jobs(3), jobs(2, SECOND_DUE, "k"), jobs(2, SECOND_DUE + MINUTE, "l")
    ledger = Refusing(world.ports.ledger)
    leases = Leases(world.with_ports(ledger=ledger))
    leases.take([*early, *late, *last], LONGEST, NOON)
    [row] = stored(world)
    ledger.plans.clear()
    leases.give_up(frozenset(marks(early[0], *late, *jobs(1, FIRST, "unknown"))))
    assert stored(world) == [core.without(row, frozenset(marks(early[0])))]
    assert stored(world, SECOND_DUE) == []
    assert covered(world, SECOND_DUE + MINUTE) == set(marks(*last))
    smaller = stored(world)[0]
    [[taken], [ended]] = ledger.plans
    assert taken == TakeLease(smaller, NOON, over=row.leased_until)
    assert isinstance(ended, EndLease)
    assert leases.keep([*early, *last], SECOND) == Kept(frozenset(), False)
    assert leases.keep(late, SECOND).lost == set(marks(*late))


def test_e2_leases_end_once() -> None:
    world, own = World(), jobs(3)
    ledger = Refusing(world.ports.ledger)
    leases = Leases(world.with_ports(ledger=ledger))
    leases.take([*own, *jobs(1, SECOND_DUE)], LONGEST, NOON)
    ledger.plans.clear()
    leases.end()
    assert [type(write) for plan in ledger.plans for write in plan] == [EndLease, EndLease]
    assert (stored(world), stored(world, SECOND_DUE)) == ([], [])
    leases.end()
    assert len(ledger.plans) == 2
    assert leases.keep(own, SECOND).lost == set(marks(*own))
