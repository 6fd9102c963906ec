"""An invocation that stalls for longer than its lease sends nothing that another invocation delivers meanwhile.

Each test stalls an invocation at another place: before a sub-batch, in a call, in a read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows import delivery_lease
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.rows.ref import Ref
from chalicelib.core.writes import TakeLease
from chalicelib.flow.deliveries import send as sending
from chalicelib.flow.deliveries import unchanged
from chalicelib.flow.deliveries.ends import Ready
from chalicelib.flow.deliveries.leases import AGAIN, CLOCKS, Kept, Leases
from chalicelib.flow.deliveries.prepare import prepare
from chalicelib.flow.deliveries.send import Leased, lease, send
from chalicelib.flow.system.dispatch import dispatch_together
from chalicelib.ports import Ports
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.deliveries_crossed import EACH, Interfering, deploy, due, fires, ids, once, spread
from tests.support.world import World

STALL = "65s"


@pytest.mark.parametrize("first", [0, 50])
def test_jobs_lost_before_a_sub_batch_stay_lost(first: int) -> None:
    """The others are in the middle of their batch. Its jobs are in the first or in the second sub-batch of 50."""
    world, instant, leased = _leased_ahead(70)
    world.clock.pass_by(STALL)
    Interfering(world, after=once(lambda: send(world.ports, leased)))

    _others_deliver(world, _refs(leased)[first : first + 12], instant)

    _each_sent_once(world, 70)


def test_jobs_delivered_during_a_stalled_call_are_not_sent() -> None:
    """The record of the stalled call renews the lease. The invocation must not forget that it had ended."""
    world, instant, leased = _leased_ahead(70)
    world.clock.wait_until(instant)

    def stall() -> None:
        world.clock.pass_by(STALL)
        _others_deliver(world, _refs(leased)[10:], instant)

    Interfering(world, after=once(stall))
    send(world.ports, leased)

    _each_sent_once(world, 70)


def test_jobs_stay_lost_when_a_read_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    world, instant, leased = _leased_ahead(30)
    world.clock.pass_by(STALL)
    plain, slow, stalled = unchanged.as_read, once(lambda: world.clock.pass_by("1s")), []

    def as_read(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
        found = plain(ports, part)
        if stalled:
            slow()
        return found

    def go_on() -> None:
        stalled.append(True)
        send(world.ports, leased)
        stalled.clear()

    monkeypatch.setattr(unchanged, "as_read", as_read)
    Interfering(world, after=once(go_on))
    _others_deliver(world, _refs(leased)[:12], instant)

    _each_sent_once(world, 30)


def test_a_stall_in_the_read_of_the_allow_list_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    world, instant, leased = _leased_ahead(30)
    world.clock.wait_until(instant)
    plain = sending._refusals

    def stall() -> None:
        world.clock.pass_by(STALL)
        _others_deliver(world, _refs(leased)[:12], instant)

    stalls = once(stall)

    def refusals(*arguments: Any) -> Any:
        stalls()
        return plain(*arguments)

    monkeypatch.setattr(sending, "_refusals", refusals)
    send(world.ports, leased)

    _each_sent_once(world, 30)


def test_clocks_that_differ_by_0_9_s_send_no_job_twice() -> None:
    world, instant, leased = _leased_ahead(30)
    (held,) = world.ports.jobs.delivery_leases(instant)
    world.clock.wait_until(held.leased_until - 600)
    other = replace(world.ports, clock=_Ahead(world.clock, 900))
    Interfering(world, after=once(lambda: send(world.ports, leased)))

    dispatch_together(other, _refs(leased)[:12], instant)

    assert len(ids(world)) == len(set(ids(world))) == 30


@pytest.mark.parametrize("ahead", [100, 900, SECOND])
@pytest.mark.parametrize("records", ["each", "fire"])
def test_jobs_sent_and_handed_on_by_a_clock_ahead_stay_sent(ahead: Millis, records: str) -> None:
    """The other invocation has time for one call, which it makes before the instant by the clock of this one."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(120)}, delivery={"records": records})
    refs, instant = fires(world), due(world)
    world.pass_by("55s")
    prepared = prepare(world.ports, refs, instant)
    world.clock.wait_until(instant - ahead)
    Interfering(world, takes="1ms")
    other = replace(world.ports, clock=_Ahead(world.clock, ahead), ends_at=instant + 40 * SECOND)

    assert dispatch_together(other, refs, instant) == []
    assert (len(ids(world)), world.clock.now()) == (10, instant - ahead + 1)
    leased = lease(world.ports, prepared.ready, instant, prepared.counts)
    world.clock.wait_until(instant)
    send(world.ports, leased)

    _each_sent_once(world, 120)


@pytest.mark.parametrize("ahead", [0, 900, SECOND])
def test_the_longest_call_ends_in_its_lease_by_any_clock(ahead: Millis) -> None:
    """In the last moment of a call that is not renewed before, another invocation handles the same jobs."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(30)})
    refs, instant = fires(world), due(world)
    other = replace(world.ports, clock=_Ahead(world.clock, ahead))
    spans = ["4800ms", "29900ms"]

    def slow() -> None:
        if spans:
            world.clock.pass_by(spans.pop(0))
            dispatch_together(other, refs, instant)

    Interfering(world, after=slow)
    assert dispatch_together(world.ports, refs, instant) == []

    _each_sent_once(world, 30)


@pytest.mark.parametrize("ahead", [0, 900, SECOND])
def test_the_call_after_a_slow_read_ends_in_its_lease(ahead: Millis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease was long enough when it was looked at. Then the read takes two seconds, and the call as long as it may.
    In the last moment of the call, another invocation handles the same jobs."""
    world, instant, leased = _leased_ahead(30)
    (held,) = world.ports.jobs.delivery_leases(instant)
    longest = sending.longest_of(leased.ready)
    world.clock.wait_until(held.leased_until - longest - CLOCKS - 1_500)
    plain, slow = unchanged.relied_on, once(lambda: world.clock.pass_by("2s"))

    def relied_on(ports: Ports, part: Sequence[Ready]) -> list[Ready]:
        found = plain(ports, part)
        slow()
        return found

    def meet() -> None:
        world.clock.pass_by(f"{longest - 1}ms")
        dispatch_together(replace(world.ports, clock=_Ahead(world.clock, ahead)), _refs(leased), instant)

    monkeypatch.setattr(unchanged, "relied_on", relied_on)
    Interfering(world, after=once(meet))
    send(world.ports, leased)

    _each_sent_once(world, 30)


@pytest.mark.parametrize("ahead", [0, 900, SECOND])
def test_a_lease_that_lapses_during_a_slow_read_doubles_nothing(ahead: Millis) -> None:
    """Its renewal takes almost two seconds. Meanwhile it ends, and another invocation sends jobs of the first call."""
    world, instant, leased = _leased_ahead(30)
    (held,) = world.ports.jobs.delivery_leases(instant)
    world.clock.wait_until(held.leased_until - SECOND)
    other = replace(world.ports, clock=_Ahead(world.clock, ahead))

    def stall() -> None:
        assert world.ports.jobs.delivery_leases(instant) == (held,), "the call that follows is the renewal"
        world.clock.pass_by("1900ms")
        assert dispatch_together(other, _refs(leased)[:7], instant) == []
        assert len(ids(world)) == 7

    world.tables.before_call = once(stall)
    sent = send(world.ports, leased)

    assert sent.lost == frozenset(_refs(leased)[:7])
    assert len(sent.ends) == 23
    _each_sent_once(world, 30)


def test_jobs_that_two_lapsed_invocations_leave_are_hinted_soon() -> None:
    world, _, leased = _leased_ahead(12)
    world.clock.pass_by(STALL)
    now, jobs = world.clock.now(), [each.job for each in leased.ready]
    other = delivery_lease.lease_of(jobs[:3], now + 9 * SECOND, "other", now)
    assert world.ports.ledger.commit([TakeLease(other, now)]) is None
    world.hints.sent.clear()

    sent = send(world.ports, leased)

    lost = {each.ref for each in leased.ready if each.job in jobs[:3]}
    assert (sent.lost, len(ids(world))) == (lost, 9)
    assert {ref for _, ref in world.hints.sent} == lost


@pytest.mark.parametrize(("ended", "counts"), [(-1, True), (0, True), (CLOCKS - 1, True), (CLOCKS, False)])
def test_a_lease_that_ended_within_a_second_still_counts(ended: Millis, counts: bool) -> None:
    """The clock of the other invocation may be behind by a second. Then it is still sending."""
    world, _, leased = _leased_ahead(12)
    world.clock.pass_by(STALL)
    now, jobs = world.clock.now(), [each.job for each in leased.ready]
    other = delivery_lease.lease_of(jobs[:3], now - ended, "other", now - 9 * SECOND)
    assert world.ports.ledger.commit([TakeLease(other, now)]) is None

    kept = leased.leases.keep(jobs, SECOND)

    assert kept == Kept(other.covered if counts else frozenset(), lapsed=True)


@pytest.mark.parametrize(("before", "lapsed"), [(CLOCKS + 1, False), (CLOCKS, True), (0, True)])
def test_a_lease_renewed_in_its_last_second_counts_as_lapsed(before: Millis, lapsed: bool) -> None:
    world, instant, leased = _leased_ahead(12)
    (held,) = world.ports.jobs.delivery_leases(instant)
    world.clock.wait_until(held.leased_until - before)

    kept = leased.leases.keep([each.job for each in leased.ready], SECOND)

    assert kept == Kept(frozenset(), lapsed)


@pytest.mark.parametrize("count", [1, 12])
def test_of_two_invocations_with_one_batch_one_has_the_lease(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The put of the first one never arrives. Its repeat must not take the equal row of the second one for its own."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)})
    fires(world)
    instant, jobs, plain = due(world), list(world.jobs("daily")), world.tables.put_item
    second: list[dict[str, Instant]] = []

    def put_item(**arguments: Any) -> Any:
        if "DELIVERY#" in str(arguments["Item"]) and not second:
            second.append({})
            second[0] |= Leases(world.ports).take(jobs, 30 * SECOND, instant)
            raise ConnectTimeoutError(endpoint_url="https://dynamodb.example")
        return plain(**arguments)

    monkeypatch.setattr(world.tables, "put_item", put_item)
    first = Leases(world.ports).take(jobs, 30 * SECOND, instant)

    assert second == [{}]
    assert first.keys() == set(map(delivery_lease.mark, jobs))


def test_jobs_given_up_to_each_other_are_tried_after_two_seconds() -> None:
    """One invocation has three jobs and sends for up to 30 s, the other one has one of them and sends for 10 s."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(3)})
    fires(world)
    world.clock.wait_until(due(world))
    jobs, plain, now = list(world.jobs("daily")), world.ports.jobs, world.clock.now()
    short: list[dict[str, Instant]] = []

    def both_write(looks: int, found: tuple[DeliveryLease, ...]) -> tuple[DeliveryLease, ...]:
        if looks != 2:
            return found
        seen: list[tuple[DeliveryLease, ...]] = []

        def look(_: int, of_batches: tuple[DeliveryLease, ...]) -> tuple[DeliveryLease, ...]:
            seen.append(plain.delivery_leases(delivery_lease.due_of(jobs[0])))
            return of_batches

        ports = replace(world.ports, jobs=_Looked(plain, look))
        short.append(Leases(ports).take(jobs[:1], 10 * SECOND, 0))
        return seen[0]

    long = Leases(replace(world.ports, jobs=_Looked(plain, both_write))).take(jobs, 30 * SECOND, 0)

    mark = delivery_lease.mark(jobs[0])
    assert (long, short) == ({mark: now + AGAIN}, [{mark: now + AGAIN}])
    (left,) = plain.delivery_leases(delivery_lease.due_of(jobs[0]))
    assert left.covered == set(map(delivery_lease.mark, jobs[1:]))
    whole = delivery_lease.lease_of(jobs, now, "any", now)
    assert left.id == whole.id, "a reader between two rows would see neither, so the lease stays the same row"


def _leased_ahead(count: int) -> tuple[World, Instant, Leased]:
    """A batch that is leased five seconds before its instant, so it relies on the count of closings."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    world.pass_by("55s")
    prepared = prepare(world.ports, refs, instant)
    leased = lease(world.ports, prepared.ready, instant, prepared.counts)
    assert len(leased.ready) == count
    assert leased.counts
    return world, instant, leased


def _refs(leased: Leased) -> list[Ref]:
    return [each.ref for each in leased.ready]


def _others_deliver(world: World, refs: Sequence[Ref], instant: Instant) -> None:
    assert dispatch_together(world.ports, refs, instant) == []


def _each_sent_once(world: World, count: int) -> None:
    assert len(ids(world)) == len(set(ids(world)))
    for span in ("1m", "1m", "3m", "11m", "61m"):
        world.pass_by(span)
        world.tick()
    invariants.check_rest(world)
    assert len(ids(world)) == len(set(ids(world))) == count


class _Ahead:
    """A clock that is ahead of another one."""

    def __init__(self, clock: Any, by: Millis) -> None:
        self._clock, self._by = clock, by

    def now(self) -> Instant:
        return int(self._clock.now()) + self._by

    def wait_until(self, instant: Instant) -> None:
        self._clock.wait_until(instant - self._by)


class _Looked:
    """Reads of jobs. ``see`` gets the number of each look at the leases, with what is found, and may change that."""

    def __init__(self, jobs: Any, see: Any) -> None:
        self._jobs, self._see, self._looks = jobs, see, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    def delivery_leases(self, *of: Any) -> tuple[DeliveryLease, ...]:
        self._looks += 1
        found: tuple[DeliveryLease, ...] = self._see(self._looks, self._jobs.delivery_leases(*of))
        return found
