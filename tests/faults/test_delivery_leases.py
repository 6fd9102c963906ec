"""No invocation sends what another one is sending, even if that takes long, and a killed invocation leaves no work
behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND, duration
from chalicelib.core.rows import delivery_lease
from chalicelib.core.rows.delivery_lease import DeliveryLease
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.core.writes import Create, Put, TakeLease, Write
from chalicelib.flow.deliveries.leases import Leases
from chalicelib.flow.deliveries.prepare import prepare
from chalicelib.flow.deliveries.send import lease, send
from chalicelib.flow.system import dispatch, sweep
from chalicelib.flow.system.dispatch import dispatch_together
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support.crash import Crash, lost
from tests.support.deliveries_crossed import EACH, TARGETS, Interfering, deploy, due, fires, ids, many, once, spread
from tests.support.ledgers import LedgerBetween
from tests.support.world import World


def _tick_finds_it(world: World) -> None:
    """Another invocation: the sweep finds the overdue rows, and its hints arrive."""
    sweep.sweep_all(world.ports)
    for ref in world.hints.due(world.clock.now()):
        dispatch.dispatch(world.ports, ref)


def _rests(world: World) -> None:
    for span in ("1m", "1m", "3m", "11m", "61m"):
        world.clock.wait_until(world.clock.now() + duration(span))
        world.tick()
    invariants.check_rest(world)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("count", [1, 25])
def test_a_tick_during_a_slow_delivery_does_not_send_it_again(kind: str, count: int) -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)}, kind)
    refs, instant = fires(world), due(world)
    Interfering(world, after=lambda: _tick_finds_it(world), takes="9s")

    assert dispatch_together(world.ports, refs, instant) == []
    _rests(world)

    assert len(ids(world)) == len(set(ids(world))) == count
    assert {run.state for run in world.runs("daily")} == {"SUCCEEDED"}


@pytest.mark.parametrize("deployed", [many(3), {"s": spread(1_000)}])
def test_a_hint_for_the_end_of_a_lease_is_not_repeated_before(deployed: dict[str, Any]) -> None:
    """It arrives a little before. An invocation that repeats it at once starts the next one, until the lease ends."""
    world = World(**SMALL)
    deploy(world, deployed)
    refs, instant = fires(world), due(world)
    dispatch.begin(world.ports, refs, instant)  # killed
    world.clock.wait_until(instant)
    assert dispatch_together(world.ports, refs, instant) == []
    [ends_at] = {at for at, _ in world.hints.sent}
    world.hints.sent.clear()

    world.clock.wait_until(ends_at - SECOND)
    begun = dispatch.begin(world.ports, refs, ends_at)
    assert world.hints.sent == []
    dispatch.finish(world.ports, begun)
    assert {at for at, _ in world.hints.sent} == {ends_at}
    world.settle()

    assert set(world.targets.queue.sent_at) == {ends_at}
    assert len(ids(world)) == len(set(ids(world))) == (3 if len(deployed) == 3 else 1_000)


@pytest.mark.parametrize("count", [1, 25])
def test_a_repeated_hint_in_a_slow_delivery_does_not_send_again(count: int) -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)})
    refs, instant = fires(world), due(world)
    repeated: list[list[Any]] = []
    again = once(lambda: repeated.append(dispatch_together(world.ports, refs, instant)))
    Interfering(world, before=again, takes="2s")

    assert dispatch_together(world.ports, refs, instant) == []
    assert repeated == [[]]
    _rests(world)
    assert len(ids(world)) == len(set(ids(world))) == count


@pytest.mark.parametrize(("count", "leased", "slow"), [(30, 20, "1ms"), (30, 20, "5s"), (1, 1, "1ms"), (1, 1, "5s")])
def test_overlapping_batches_leased_at_once_send_no_job_twice(count: int, leased: int, slow: str) -> None:
    """Between the look at the leases of others and the own lease, another invocation leases some of the same jobs, in
    another batch. It dies later, so these jobs are delivered after its lease."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(count), "other": spread(2)}, delivery=EACH)
    refs = [ref for ref in fires(world) if "daily" in ref.parts[0]]
    instant = due(world)
    plain, jobs = world.ports, [*world.jobs("daily")[:leased], *world.jobs("other")[:1]]

    class Throttled(LedgerBetween):
        done = False

        def before(self, writes: Sequence[Write]) -> None:
            if not self.done and any(isinstance(write, TakeLease) for write in writes):
                self.done = True
                assert Leases(plain).take(jobs, 30 * SECOND, instant) == {}
                world.clock.pass_by(slow)

    assert dispatch_together(world.with_ports(ledger=Throttled(plain.ledger)), refs, instant) == []
    assert len(ids(world)) == count - leased
    _rests(world)
    assert len(ids(world)) == len(set(ids(world))) == count + 2


@pytest.mark.parametrize("when", ["while others send", "after others have sent"])
@pytest.mark.parametrize("others", [12, 30])
def test_a_batch_stalled_past_its_lease_sends_nothing_again(when: str, others: int) -> None:
    """A batch leases its jobs ahead of their instant and stalls. When its lease has ended, other invocations deliver
    some of them, in a batch of their own."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(30)})
    refs, instant = fires(world), due(world)
    world.pass_by("55s")
    prepared = prepare(world.ports, refs, instant)
    leased = lease(world.ports, prepared.ready, instant, prepared.counts)
    assert len(leased.ready) == 30 and leased.counts
    world.clock.pass_by("65s")

    stalled = once(lambda: send(world.ports, leased))
    if when == "while others send":
        Interfering(world, after=stalled)
    assert dispatch_together(world.ports, refs[:others], instant) == []
    stalled()

    assert len(ids(world)) == len(set(ids(world))) == 30
    _rests(world)
    assert len(ids(world)) == 30


def test_results_are_recorded_when_the_tables_are_busy_no_more() -> None:
    """Until then the lease is renewed, so a tick and a repeated message send nothing."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(60)})
    refs, instant = fires(world), due(world)
    plain = world.ports

    class Busy(LedgerBetween):
        tries = 0

        def before(self, writes: Sequence[Write]) -> None:
            if any(isinstance(write, Create) for write in writes) and self.tries < 8:
                self.tries += 1
                world.clock.pass_by("8s")
                _tick_finds_it(world)
                assert dispatch_together(plain, refs, instant) == []
                raise SluiceError("unavailable", "the tables were busy for 8 seconds", None, "")

    busy = Busy(plain.ledger)
    assert (
        dispatch_together(replace(world.with_ports(ledger=busy), ends_at=instant + 120 * SECOND), refs, instant) == []
    )
    assert busy.tries == 8
    _rests(world)
    assert len(ids(world)) == len(set(ids(world))) == 60


def test_retries_of_one_instant_read_no_leases_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(**SMALL)
    count, read = 60, 0
    plain = DynamoJobs.delivery_leases

    def counted(jobs: DynamoJobs, *of: Any) -> tuple[DeliveryLease, ...]:
        nonlocal read
        found = plain(jobs, *of)
        read += len(found)
        return found

    monkeypatch.setattr(DynamoJobs, "delivery_leases", counted)
    deploy(world, {"daily": spread(count)}, delivery=EACH)
    world.targets.queue.down = NoAnswer("no answer in time")
    assert dispatch_together(world.ports, fires(world), due(world)) == []
    world.targets.queue.down, read = None, 0
    world.pass_by("5m")

    assert len(set(ids(world))) == count
    assert read <= count + 1, f"each reads the lease of the first batch, and all of them once, got {read} rows"


@pytest.mark.parametrize(("one", "other"), [(1, 1), (1, 3), (3, 1), (3, 3)])
@pytest.mark.parametrize(
    ("first", "second"),
    [("take", "take"), ("take", "take_alone"), ("take_alone", "take"), ("take_alone", "take_alone")],
)
def test_one_of_two_invocations_has_a_job(one: int, other: int, first: str, second: str) -> None:
    """Each leases a single job or a batch. Both have one job of the same schedule."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(5)}, delivery=EACH)
    fires(world)
    jobs, instant = list(world.jobs("daily")), due(world)
    shared = delivery_lease.mark(jobs[2])
    holder, taker = Leases(world.ports), Leases(world.ports)

    assert not set(getattr(holder, first)(jobs[3 - one : 3], 30 * SECOND, instant))
    busy = set(getattr(taker, second)(jobs[2 : 2 + other], 30 * SECOND, instant))
    assert shared in busy

    world.clock.wait_until(instant + 36 * SECOND)
    later = Leases(world.ports)
    assert not set(getattr(later, second)(jobs[2 : 2 + other], 30 * SECOND, instant)), "the leases have ended"
    kept = holder.keep(jobs[3 - one : 3], 30 * SECOND)
    assert kept.lost == {shared}


def test_a_batch_longer_than_its_lease_renews_it() -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(100)})
    refs, instant = fires(world), due(world)
    Interfering(world, after=lambda: _tick_finds_it(world), takes="9s")

    assert dispatch_together(world.ports, refs, instant) == []
    assert world.clock.now() - instant == 90 * SECOND
    _rests(world)
    assert len(ids(world)) == len(set(ids(world))) == 100


def test_a_lease_of_a_dead_invocation_ends_within_tick_and_10s() -> None:
    for when in ("before", "after"):
        world = World(**SMALL)
        deploy(world, {"daily": spread(30)})
        refs, instant = fires(world), due(world)

        def dies() -> None:
            raise Crash("a Lambda")

        queue = world.targets.queue
        Interfering(world, **{when: dies})
        assert lost(lambda world=world, refs=refs, instant=instant: dispatch_together(world.ports, refs, instant))
        world.targets.queue = queue

        world.pass_by("70s")
        assert len(set(ids(world))) == 30
        assert {run.state for run in world.runs("daily")} == {"SUCCEEDED"}
        _rests(world)


def test_a_late_answer_changes_no_failed_run_and_no_dead_letter() -> None:
    """The lease expires while the first call hangs, and the second invocation gives the event up for good."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(1)})
    refs, instant = fires(world), due(world)

    queue = world.targets.queue

    def meanwhile() -> None:
        queue.down = Never("no such queue")
        world.clock.pass_by("2m")
        world.tick()
        queue.down = None

    Interfering(world, before=once(meanwhile))
    assert dispatch_together(world.ports, refs, instant) == []

    assert [run.state for run in world.runs("daily")] == ["FAILED"]
    assert world.ports.runs.dead_letter(world.runs("daily")[0].run_id) is not None


def test_a_late_answer_overwrites_no_run_recorded_meanwhile() -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(1)})
    refs, instant = fires(world), due(world)
    seen: list[Any] = []

    def meanwhile() -> None:
        world.clock.pass_by("2m")
        world.tick()
        seen.extend(world.runs("daily"))

    Interfering(world, before=once(meanwhile))
    assert dispatch_together(world.ports, refs, instant) == []

    assert len(seen) == 1
    assert world.runs("daily") == seen


def test_a_try_counts_even_if_the_sweep_read_the_job_meanwhile() -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(1)}, delivery={"tries": 2, "delay": "1s"})
    refs, instant = fires(world), due(world)
    world.targets.queue.down = NoAnswer("no answer in time")
    Interfering(world, after=lambda: sweep.sweep_all(world.ports), takes="9s")

    assert dispatch_together(world.ports, refs, instant) == []
    assert [job.tries for job in world.jobs("daily")] == [1]
    world.pass_by("3m")
    assert [(run.state, run.calls) for run in world.runs("daily")] == [("FAILED", 2)]


class _NoBooks(LedgerBetween):
    """A ledger that only takes leases until it is restored."""

    broken = True

    def before(self, writes: Sequence[Write]) -> None:
        if self.broken and len(writes) > 1:
            raise RuntimeError("the tables are away")

    def before_puts(self, writes: Sequence[Put]) -> None:
        if self.broken:
            raise RuntimeError("the tables are away")


@pytest.mark.parametrize("count", [1, 25])
def test_an_unrecorded_delivery_is_not_sent_again_at_once(count: int) -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    ledger = _NoBooks(world.ports.ledger)
    world.ports = replace(world.ports, ledger=ledger)

    failed = dispatch_together(world.ports, refs, instant)

    assert sorted(map(str, failed)) == sorted(map(str, refs)), "the message is not to be taken for done"
    assert len(ids(world)) == len(set(ids(world))) == count
    ledger.broken = False
    _rests(world)
    assert len(set(ids(world))) == count
    assert len(world.runs("daily")) == count


def test_a_job_that_cannot_be_sent_does_not_fail_the_others() -> None:
    """The target's own code fails for a batch. Each message is then tried separately, by its retry policy."""
    world = World(**SMALL)
    deploy(world, many(12))
    refs, instant = fires(world), due(world)

    def breaks() -> None:
        if target.sizes[-1] > 2:
            raise RuntimeError("cannot be built")

    target = Interfering(world, before=breaks)
    assert dispatch_together(world.ports, refs, instant) == []
    world.pass_by("2m")
    assert len(ids(world)) == len(set(ids(world))) == 12
