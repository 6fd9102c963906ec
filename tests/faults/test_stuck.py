"""One bad row, one slow writer or one changed document must not stop, block or starve other work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.targets.answers import NotNow
from chalicelib.core.writes import Create, Replace
from chalicelib.flow.definitions import store
from chalicelib.flow.fires import emit
from chalicelib.flow.system import dispatch
from sluice.testing.memory import MemoryHints
from tests.faults.invariants import Stock
from tests.support.ledgers import Before, LedgerBetween
from tests.support.schedules import after, at, at_most, partitions
from tests.support.world import EMR, SQS, World, day, flights, full

LIMIT = "workflow:demo.flights.clean"


class Failing(LedgerBetween):
    """A ledger that always fails for the writes that a test selects."""

    def __init__(self, world: World, picks: Any) -> None:
        super().__init__(world.ports.ledger)
        self._picks = picks
        world.ports = world.with_ports(ledger=self)

    def before(self, writes: Any) -> None:
        if any(self._picks(write) for write in writes):
            raise ConnectionError("this row cannot be written")


class PlainHints(MemoryHints):
    """Hints as SQS behaves: nothing is deduplicated."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        super().send(refs, due, now)
        self.total += len(refs)

    def deliver(self, world: World, until: Instant) -> None:
        while self.sent and (first := min(due for due, _ in self.sent)) <= until:
            world.clock.wait_until(first)
            ready = [ref for due, ref in self.sent if due <= world.clock.now()]
            self.sent = [(due, ref) for due, ref in self.sent if due > world.clock.now()]
            for ref in ready:
                dispatch.dispatch(world.ports, ref)
        world.clock.wait_until(until)


def test_a_stalled_emitter_does_not_overwrite_a_newer_timer(world: World) -> None:
    world.deploy(flights({"tick": at("@every 10m", "notify")}))
    world.pass_by("7m30s")
    world.clock.pass_by("25s")
    inner = world.ports.ledger

    def toggle() -> None:
        """Between the emitter's read and its write the schedule is disabled and enabled."""
        world.disable("tick")
        world.enable("tick")

    def moves_timer(writes: Any) -> bool:
        return isinstance(writes[0], Replace) and isinstance(writes[0].row, Timer)

    emit.emit_due(world.with_ports(ledger=Before(inner, toggle, moves_timer)))
    world.settle()
    world.pass_by("45m")

    assert len(world.runs("tick")) == 4


def test_e8_a_queue_at_a_pace_costs_a_few_hints_per_job(make_world: Any) -> None:
    world: World = make_world(start_burst=1)
    world.deploy(flights({"a": partitions()}))
    hints = PlainHints()
    world.ports = world.with_ports(hints=hints)
    for number in range(30):
        world.run_now("a", f"r{number}")
    hints.deliver(world, world.clock.now() + 40_000)

    assert len(world.runs("a")) == 30
    assert hints.total < 5 * 30


def test_t16_a_schedule_that_cannot_take_event_blocks_no_other(world: World) -> None:
    world.deploy(flights({name: partitions() for name in ("a", "b", "c")}))
    Failing(world, lambda write: isinstance(write, Create) and getattr(write.row, "schedule", "") == full("a"))
    with pytest.raises(ExceptionGroup):
        world.upload(day(1))
    world.settle()

    assert [len(world.runs(name)) for name in ("a", "b", "c")] == [0, 1, 1]
    partition = world.ports.rows.get(Partition, "demo.flights", ("2013", "1", "1"))
    assert partition is not None
    assert partition.wake_at is not None, "its outbox is still open, and it is hinted again"


def test_w2_a_waiter_whose_check_raises_blocks_no_later_one(make_world: Any) -> None:
    world: World = make_world(start_burst=1)
    world.deploy(
        flights(
            {"first": at("@every 10h"), "bad": partitions(), "good": partitions(dataset="weather", workflow="join")}
        )
    )
    world.run_now("first")
    world.settle()
    world.upload(day(1))
    world.settle()
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert [job.queued_in for job in (*world.jobs("bad"), *world.jobs("good"))] == ["emr:starts", "emr:starts"]

    Failing(world, lambda write: getattr(getattr(write, "row", None), "run_id", "").startswith(full("bad") + "."))
    for _ in range(3):
        world.clock.pass_by("2m")
        with suppress(ExceptionGroup):
            world.tick()

    assert len(world.runs("good")) == 1
    assert len(world.jobs("bad")) == 1, "and it is not lost"


def test_a_job_releases_its_slot_when_its_target_became_a_queue(make_world: Any) -> None:
    world: World = make_world(start_burst=1, start_rate_per_second=0.01)
    world.deploy(flights({"x": partitions(workflow="join"), "a": at("@every 10s", **at_most(2))}))
    world.upload(day(1))
    world.settle()
    world.pass_by("15s")
    assert [job.held for job in world.jobs("a") if job.sort_key == GATHERING] == [(LIMIT,)]

    plain = {"properties": {}, "priority": 5, "retries": {"attempts": 1, "delay": "30s"}}
    store.put(world.ports, "workflow", "demo.flights.clean", {"target": SQS, **plain}, "tester")
    world.pass_by("3m")

    assert world.limit_state(LIMIT).active == 0


def test_w7_a_run_unknown_to_its_target_fails_and_frees_its_slot(world: World) -> None:
    world.deploy(flights({"a": partitions(**at_most(1))}))
    world.upload(day(1))
    world.settle()
    world.targets.emr.runs.clear()  # the application was deleted and created again
    world.pass_by("5m")

    [run] = world.runs("a")
    assert (run.state, run.reason.text) == ("FAILED", "the target no longer knows this run")
    assert world.limit_state(LIMIT).active == 0


def test_t17_job_that_gathers_for_months_keeps_its_first_events(world: World) -> None:
    world.deploy(flights({"never": partitions(2, timeout="never"), "long": partitions(2, timeout={"after": "80d"})}))
    world.upload(day(1))
    ends = {marker.schedule: marker.expires_at for marker in Stock(world).applied}
    assert ends[full("never")] is None
    assert (ends[full("long")] or 0) >= world.clock.now() + 95 * DAY


def test_w1_a_withdrawn_second_attempt_announces_the_failure(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "1s"}}
    world.deploy(flights({"a": partitions(), "on_failure": after("clean", "join", "FAILED")}, clean=retried))
    world.upload(day(1))
    world.settle()
    world.targets.emr.answers = [NotNow("throttled")] * 50
    world.finish("FAILED", "broken")
    world.pass_by("10s")
    world.disable("a")
    world.pass_by("6m")
    world.targets.emr.answers = []
    world.pass_by("6m")

    assert [run.state for run in world.runs("a")] == ["RETRYING", "FAILED"]
    assert len(world.runs("on_failure")) == 1


def test_a_finished_tombstone_expires(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    schedule_state = world.ports.rows.get(ScheduleState, full("a"))
    assert schedule_state is not None
    world.disable("a")
    tombstone = world.ports.rows.get(Job, full("a"), schedule_state.generation, GATHERING)
    assert tombstone is not None
    assert tombstone.wake_at is None
    assert tombstone.expires_at is not None
