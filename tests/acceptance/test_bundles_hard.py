"""Fires of many events that share rows, and what is hard on them: a count below what was sent, a target that refuses
every second event, a receiver that takes longer than its calls may (E2, E6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer
from chalicelib.flow.runs import dead_letters
from tests.acceptance.targets.test_policies import most_in
from tests.support import events
from tests.support.clock import NOON
from tests.support.deliveries_crossed import TARGETS
from tests.support.schedules import at
from tests.support.world import World, flights

ONE = "0 13 * * *"
FIRST = NOON + HOUR
PACE = {"max_events": 20, "interval": "1s"}
SUB_BATCH = 50


def _world(count: int, over: str | None = None, target: str = "sqs", **fields: Any) -> World:
    world = World(wake_shards=1, history_shards=1)
    document = flights({"batch": _batch(count, over, **fields)}, notify={"target": TARGETS[target][0]})
    world.deploy({**document, "policies": {"calm": PACE}})
    world.clock.wait_until(FIRST - MINUTE - 1)
    return world


def _batch(count: int, over: str | None = None, **fields: Any) -> dict[str, Any]:
    return at(ONE, "notify", spread={"count": count} | ({"over": over} if over else {}), **fields)


def _sent(world: World) -> Counter[str]:
    return Counter(run_id for run_id, _ in world.targets.queue.messages)


class RefusesSome:
    """A target that refuses every second event: the one with an odd number."""

    def __init__(self, world: World, answer: Answer) -> None:
        self._inner, self._answer = world.targets.queue, answer
        self.answer: Answer | None = answer
        world.targets.queue = self

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        refuses = self.answer is not None and context["spread"]["index"] % 2
        return self.answer if refuses and self.answer is not None else self._inner.start(run, context)

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(*call) for call in calls]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize(("fields", "seconds"), [({}, 3), ({"policy": "calm"}, 3), ({}, 5)])
@pytest.mark.parametrize("on_update", ["drop", "carry"])
def test_e2_a_count_below_what_was_sent(fields: dict[str, Any], seconds: int, on_update: str) -> None:
    """With ``drop`` the fire ends, and what it has not sent is on record. Else the next fire has the new count."""
    world = _world(60, "6s", **fields)
    world.pass_by(f"{60 + seconds}s")
    before = len(world.targets.queue.messages)
    assert 20 <= before < 60
    world.put("batch", _batch(10, "6s", on_update=on_update, **fields))
    world.pass_by("4m")
    sent = _sent(world)
    assert set(sent.values()) == {1}
    assert len(sent) == 60 if on_update == "carry" else before <= len(sent) <= before + SUB_BATCH
    assert sorted(events.sent(world, "batch")) == sorted(sent)
    assert len(sent) + events.on_record(world, "batch") == 60
    assert world.limit_state("policy:demo.calm").waiters == 0


@pytest.mark.parametrize("answer", [Never("not yours"), NoAnswer("no answer")])
@pytest.mark.parametrize("fields", [{}, {"policy": "calm"}])
def test_e6_a_target_that_refuses_every_second_event(answer: Answer, fields: dict[str, Any]) -> None:
    """The others are sent at their instants, and those that it refuses are redriven once it takes them."""
    world = _world(100, "4s", **fields)
    target = RefusesSome(world, answer)
    world.pass_by("15m")
    sent = _sent(world)
    assert (len(sent), set(sent.values())) == (50, {1})
    if not fields:
        assert max(world.targets.queue.sent_at) <= FIRST + 4 * SECOND
    states = Counter(run.state for run in world.runs("batch") for _ in events.of_run(run))
    assert states == {"SUCCEEDED": 50, "FAILED": 50}
    target.answer = None
    done = dead_letters.redrive_all(world.ports, "demo", "demo.flights.batch", 100)
    assert (len(done.run_ids), done.refused) == (50, ())
    world.pass_by("3m")
    sent = _sent(world)
    assert (len(sent), set(sent.values())) == (100, {1})
    assert not fields or most_in(sorted(world.targets.queue.sent_at), SECOND) <= PACE["max_events"]
    assert world.limit_state("policy:demo.calm").waiters == 0


@pytest.mark.parametrize(
    ("target", "fields"),
    [("sqs", {}), ("http", {}), ("lambda", {}), ("sqs", {"policy": "calm"}), ("http", {"policy": "calm"})],
)
def test_e6_a_receiver_that_takes_twenty_seconds(target: str, fields: dict[str, Any]) -> None:
    """Each call outlasts the lease of its invocation, while ticks come. At most one sub-batch is sent again."""
    world = _world(120, target=target, **fields)
    world.targets.queue.takes = 20 * SECOND
    world.pass_by("20m")
    sent = _sent(world)
    assert len(sent) == 120
    assert sum(sent.values()) - 120 <= SUB_BATCH
    assert sorted(set(events.sent(world, "batch"))) == sorted(sent)
    assert len(events.sent(world, "batch")) == 120
    assert (world.jobs("batch"), world.records("batch")) == ([], [])
    assert world.limit_state("policy:demo.calm").waiters == 0
