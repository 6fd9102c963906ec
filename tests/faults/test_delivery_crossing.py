"""User actions on a schedule or a job during its delivery: an acknowledged action is final, and each sent message is on
record.

Before each call of the delivery in turn, another machine changes the schedule or cancels the job. It disables, deletes,
replaces, updates or holds the schedule. All consequences follow. At most one sub-batch may still be sent, and it
becomes runs. Each fire that was not sent has a record; none has both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.history import lines
from chalicelib.core.history.lines import Change
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.core.targets.bills import Prices
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.system.dispatch import dispatch_together
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.support import events
from tests.support.clock import HandClock
from tests.support.crossings import at_each_call, cross, let_time_pass
from tests.support.deliveries_crossed import (
    SUB_BATCHES,
    TARGETS,
    Interfering,
    deploy,
    due,
    fires,
    ids,
    many,
    once,
    spread,
)
from tests.support.samples import parts
from tests.support.snapshot import Start
from tests.support.world import World

NEW = {"properties": {"new": True}}


@dataclass(frozen=True)
class Closing:
    """A user action, whether the jobs are kept, and the action that undoes it."""

    act: Callable[[World, dict[str, Any]], Any]
    keeps: bool = False
    reopen: Callable[[World], Any] = lambda world: None


CLOSINGS = {
    "disable": Closing(lambda world, _: world.disable("daily")),
    "delete": Closing(lambda world, _: world.delete("daily")),
    "replace": Closing(lambda world, schedule: world.put("daily", {**schedule, **NEW, "enabled": False})),
    "carry": Closing(lambda world, schedule: world.put("daily", {**schedule, **NEW, "on_update": "carry"}), keeps=True),
    "hold": Closing(lambda world, _: world.pause("daily"), keeps=True, reopen=lambda world: world.resume("daily")),
}


def _prepared(kind: str, count: int, records: str = "fire") -> World:
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)}, kind, delivery={"records": records})
    return world


def _cross(start: Start, before: int | None, closing: Closing, kind: str, count: int) -> int:
    """Play one order. Returns the number of calls of the delivery."""
    world, schedule = start.again(), spread(count)
    refs, instant = fires(world), due(world)
    sent_before: list[str] = []

    def close() -> None:
        closing.act(world, schedule)
        sent_before.extend(ids(world))
        world.settle()

    def deliver() -> None:
        assert dispatch_together(world.ports, refs, instant) == []

    calls = cross(world, before, close, deliver)
    if not closing.keeps:
        passed = len(ids(world)) - len(sent_before)
        assert passed <= SUB_BATCHES[kind], f"{passed} were sent after it was acknowledged"
    let_time_pass(world)
    closing.reopen(world)
    let_time_pass(world)

    invariants.check_rest(world)
    runs = world.runs("daily")
    assert {run.state for run in runs} <= {"SUCCEEDED"}
    assert sorted(events.sent(world, "daily")) == sorted(set(ids(world))), "what was sent is on record"
    assert len(ids(world)) == len(set(ids(world))), "and was sent once"
    if closing.keeps:
        assert len(events.sent(world, "daily")) == count, "nothing is lost"
    else:
        found = len(events.sent(world, "daily")) + events.on_record(world, "daily")
        assert found == count, "what was not sent has its record"
    return calls


def _at_every_call(
    closing: str, kind: str, count: int, first: int = 1, stride: int = 1, records: str = "fire"
) -> None:  # fmt: skip
    start = Start(lambda: _prepared(kind, count, records))
    play = partial(_cross, start, closing=CLOSINGS[closing], kind=kind, count=count)
    at_each_call(play, least=8, first=first, stride=stride)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("closing", CLOSINGS)
def test_c13_a_close_during_one_delivery_holds_once_acknowledged(closing: str, kind: str) -> None:
    _at_every_call(closing, kind, 1)


@pytest.mark.parametrize(
    ("kind", "closing", "count"),
    [("http", "disable", 17), *(("sqs", closing, 11) for closing in CLOSINGS)],
)
@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize("records", ["each", "fire"])
def test_c13_a_close_during_a_batch_holds_once_acknowledged(
    kind: str, closing: str, count: int, part: int, records: str
) -> None:  # fmt: skip
    _at_every_call(closing, kind, count, first=1 + part, stride=3, records=records)


@pytest.mark.parametrize("kind", TARGETS)
def test_c13_after_a_disable_at_most_one_sub_batch_is_sent(kind: str) -> None:
    size, calls_of_one = SUB_BATCHES[kind], SUB_BATCHES[kind] // TARGETS[kind][1]
    # Acknowledged after the first call, during the first call of the second sub-batch, or during its last call.
    for when, number, sent in (("after", 1, 1), ("before", calls_of_one + 1, 2), ("before", 2 * calls_of_one, 2)):
        world = _disabled_at(when, number, kind)
        assert len(ids(world)) == size * sent


@pytest.mark.parametrize(("takes", "sent"), [("1ms", 50), ("40ms", 30), ("51ms", 20), ("101ms", 10)])
def test_c13_a_call_begins_within_100_ms_of_its_read(takes: str, sent: int) -> None:
    assert len(ids(_disabled_at("after", 1, "sqs", takes))) == sent


def _disabled_at(when: str, number: int, kind: str, takes: str | None = None) -> World:
    """A batch of 200, whose schedule is disabled before or after the call with this number."""
    world = World(**SMALL)
    deploy(world, {"daily": spread(200)}, kind)
    refs, instant = fires(world), due(world)
    calls: list[None] = []

    def disable() -> None:
        calls.append(None)
        if len(calls) == number:
            world.disable("daily")

    Interfering(world, **{when: disable}, takes=takes)
    dispatch_together(world.ports, refs, instant)
    return world


class WhileWaiting(HandClock):
    """A clock that calls a function a given time before the instant that is waited for."""

    def __init__(self, before: int, act: Callable[[], Any]) -> None:
        super().__init__()
        self._before, self._act = before, once(act)

    def wait_until(self, instant: int) -> None:
        if instant - self._before > self.now():
            super().wait_until(instant - self._before)
            self._act()
        super().wait_until(instant)


@pytest.mark.parametrize("count", [1, 25])
def test_w8_a_job_cancelled_five_seconds_before_due_is_not_sent(count: int) -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)})
    refs, instant = fires(world), due(world)
    cancelled = events.waiting(world, "daily")[-1]
    clock = WhileWaiting(5 * SECOND, lambda: withdraw(world.ports, cancelled, "tester"))
    ports = world.with_ports(clock=clock)

    assert dispatch_together(ports, refs, instant) == []

    assert clock.now() == instant
    assert len(ids(world)) == count - 1
    assert cancelled not in ids(world)
    assert [record.id for record in world.records("daily")] == [cancelled]


def test_w8_a_skip_or_disable_in_a_batch_affects_only_its_own() -> None:
    world = World(**SMALL)
    deploy(world, many(60))
    refs, instant = fires(world), due(world)
    Interfering(world, before=once(lambda: world.disable("s055")))
    assert dispatch_together(world.ports, refs, instant) == []
    assert len(ids(world)) == 59
    assert world.runs("s055") == []
    assert [record.kind for record in world.records("s055")] == ["DROPPED"]


def in_lake(rows: list[Run | Record]) -> list[str]:
    """The ids of the jobs in the lake, by the rule of `docs/history.md`."""
    changes = [Change(str(number), row) for number, row in enumerate(rows)]
    found = [line for part in lines.parts(changes, Prices()) for line in part.lines]
    last = {(line["kind"], line["id"], line["attempt"]): line for line in sorted(found, key=lambda line: line["rev"])}
    return [line["id"] for line in last.values() if line["state"] != lines.WITHDRAWN]


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("closing", ["disable", "delete", "cancel", "hold"])
@pytest.mark.parametrize("records", ["each", "fire"])
def test_a_job_dropped_during_its_sending_is_recorded_as_sent(
    closing: str, when: str, count: int, records: str
) -> None:  # fmt: skip
    world = World(**SMALL)
    deploy(world, {"daily": spread(count)}, delivery={"records": records})
    refs, instant = fires(world), due(world)
    job_ids = events.waiting(world, "daily")

    def closes() -> None:
        if closing == "cancel":
            for job_id in job_ids[:10]:
                withdraw(world.ports, job_id, "tester")
        else:
            CLOSINGS[closing].act(world, spread(count))
        world.settle()

    def closes_on_record() -> None:
        closes()
        dropped.extend(world.records("daily"))

    dropped: list[Record] = []
    Interfering(world, **{when: once(closes_on_record)})
    assert dispatch_together(world.ports, refs, instant) == []
    let_time_pass(world)
    CLOSINGS["hold"].reopen(world) if closing == "hold" else None
    let_time_pass(world)

    invariants.check_rest(world)
    sent = set(ids(world))
    assert len(sent) >= min(count, 10)
    assert set(events.sent(world, "daily")) == sent
    assert events.on_record(world, "daily") == len(set(job_ids) - sent)
    if records == "fire" and count > 1:
        return  # one line for many events
    assert {record.id for record in world.records("daily")} == set(job_ids) - sent
    rows = [*dropped, *world.records("daily"), *world.runs("daily")]
    assert sorted(in_lake(rows)) == sorted(job_ids), "one line of each job"


@pytest.mark.parametrize("answer", [NoAnswer("no answer in time"), Never("no such queue")])
def test_a_job_dropped_during_its_refusal_stays_dropped(answer: Any) -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(1)})
    refs, instant = fires(world), due(world)
    world.targets.queue.down = answer
    Interfering(world, before=once(lambda: (world.disable("daily"), world.settle())))
    assert dispatch_together(world.ports, refs, instant) == []
    let_time_pass(world)
    invariants.check_rest(world)
    assert world.runs("daily") == []
    assert [record.kind for record in world.records("daily")] == ["DROPPED"]
    assert world.ports.runs.dead_letters("namespace", "demo", 10, None).items == ()


def test_a_refused_cancel_says_that_the_message_was_sent() -> None:
    world = World(**SMALL)
    deploy(world, {"daily": spread(1)})
    job_id = world.jobs("daily")[0].job_id
    world.pass_by("61s")
    with pytest.raises(SluiceError) as refused:
        withdraw(world.ports, job_id, "tester")
    assert "run" in str(refused.value.hint)
    assert ids(world) == [job_id]
