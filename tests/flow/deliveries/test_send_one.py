"""What the check of a job learns from its delivery: that it is final, or why the job waits (E6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import sub_batches
from chalicelib.core.targets.answers import NotNow
from chalicelib.core.writes import Create, Replace, Write
from chalicelib.flow.deliveries import send
from chalicelib.flow.deliveries.ends import Ready
from chalicelib.flow.deliveries.leases import Kept, Leases
from chalicelib.flow.deliveries.prepare import prepare
from tests.support.deliveries_crossed import EACH, TARGETS, deploy, due, fires, ids, spread
from tests.support.ledgers import LedgerBetween
from tests.support.world import World


def one() -> tuple[World, Ready]:
    """A delivery at its instant."""
    world = World()
    deploy(world, {"daily": spread(5)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    ready = prepare(world.ports, refs, instant).ready[0]
    world.clock.wait_until(instant)
    world.hints.sent.clear()
    return world, ready


def test_e6_a_delivery_that_the_target_took_is_final() -> None:
    world, ready = one()
    why = ready.run.reason
    assert send.deliver(world.ports, [ready], why, world.clock.now()) == (True, why)
    assert ids(world) == [ready.job.job_id]


def test_e6_a_job_that_is_tried_again_waits_with_its_reason() -> None:
    world, ready = one()
    world.targets.queue.answers = [NotNow("the queue is throttled")]
    sent = send.deliver(world.ports, [ready], ready.run.reason, world.clock.now())
    assert sent is not None
    assert (sent[0], sent[1].code) == (False, "try_failed")


def test_e6_a_job_that_another_invocation_delivers_waits() -> None:
    world, ready = one()
    Leases(world.ports).take([ready.job], 30 * SECOND, world.clock.now())
    assert send.deliver(world.ports, [ready], ready.run.reason, world.clock.now()) == (False, send.BUSY)
    assert ids(world) == []


def test_e6_a_job_whose_lease_is_lost_waits_and_is_hinted(monkeypatch: pytest.MonkeyPatch) -> None:
    world, ready = one()
    monkeypatch.setattr(Leases, "keep", lambda *_: Kept(frozenset({ready.mark}), True))
    assert send.deliver(world.ports, [ready], ready.run.reason, world.clock.now()) == (False, send.BUSY)
    assert world.hints.sent == [(world.clock.now() + 2 * SECOND, ready.ref)]


@pytest.mark.parametrize("short", [0, 1])
def test_e6_a_job_for_which_no_time_is_left_is_handed_on(short: Millis) -> None:
    world, ready = one()
    now = world.clock.now()
    ends_at = now + sub_batches.longest_call(TARGETS["sqs"][0]) + send.BOOKS_TIME - short
    sent = send.deliver(replace(world.ports, ends_at=ends_at), [ready], ready.run.reason, now)
    assert sent == ((False, send.NO_TIME) if short else (True, ready.run.reason))
    assert world.hints.sent == [(now, ready.ref)] * short


def test_e6_a_job_that_has_changed_is_decided_again() -> None:
    world, ready = one()
    assert world.ports.ledger.commit([Replace(replace(ready.job, tries=1, rev=ready.job.rev + 1))]) is None
    assert send.deliver(world.ports, [ready], ready.run.reason, world.clock.now()) is None
    assert ids(world) == []


class _NoRuns(LedgerBetween):
    """Cannot write runs."""

    def before(self, writes: Sequence[Write]) -> None:
        if any(isinstance(write, Create) and isinstance(write.row, Run) for write in writes):
            raise ConnectionError("the table of runs is down")


def test_e6_a_delivery_that_was_not_recorded_raises_with_its_job() -> None:
    world, ready = one()
    ports = world.with_ports(ledger=_NoRuns(world.ports.ledger))
    with pytest.raises(RuntimeError) as failure:
        send.deliver(ports, [ready], ready.run.reason, world.clock.now())
    told = f"the delivery of {ready.job.job_id} could not be read or recorded; the sweep will hint it again"
    assert (str(failure.value), str(failure.value.__cause__)) == (told, "the table of runs is down")
    assert ids(world) == [ready.job.job_id]
