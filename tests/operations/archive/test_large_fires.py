"""A namespace moves to another installation in the middle of a large fire: each event is delivered, by one of them, and
those that had left their bundle are what they were (L14, E2)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.runs import dead_letters
from tests.acceptance.targets.test_policies import most_in, under
from tests.operations.archive.test_export import elsewhere
from tests.support import events
from tests.support.archives import exported, given_up
from tests.support.clock import NOON
from tests.support.crash import Crash, lost
from tests.support.deliveries_crossed import Interfering
from tests.support.schedules import at
from tests.support.world import World

FIRST = NOON + HOUR
COUNT = 60
NAME = "batch"


class _Source(World):
    """A world whose invocations end when its namespace moves."""

    def settle(self, invoke: Any = lost) -> None:
        super().settle(invoke)


def _stopped(calls: int, **fields: Any) -> _Source:
    """A source that stops before one of the calls of the fire, if not before the fire."""
    world = _Source(wake_shards=1, history_shards=1)
    world.deploy(under({"max_events": 20, "interval": "1s"}, {NAME: at("0 13 * * *", "notify", **fields)}))
    world.clock.wait_until(FIRST - 3 * MINUTE)
    world.pass_by("100s")
    withdraw(world.ports, events.waiting(world, NAME)[2], "tester")
    world.targets.queue.answers = [Never("no such queue"), NoAnswer("no answer")]
    left = [calls]

    def before() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Crash

    Interfering(world, before=before)
    if calls:
        world.pass_by("82s")
    world.targets.queue = world.targets.queue._inner
    return world


@pytest.mark.parametrize("calls", [0, 1, 3, 5])
@pytest.mark.parametrize(
    "fields",
    [
        {"spread": {"count": COUNT}},
        {"spread": {"count": COUNT, "over": "2s"}},
        {"spread": {"count": COUNT}, "policy": "calm"},
    ],
)
def test_l14_a_namespace_moves_in_the_middle_of_a_large_fire(calls: int, fields: dict[str, Any]) -> None:
    source = _stopped(calls, **fields)
    known = set(events.sent(source, NAME))
    archive = exported(source, "demo")
    given_up(source, archive)
    new = elsewhere(archive, source, World(wake_shards=1, history_shards=1))
    moved_at, new.targets.queue._clock = len(new.targets.queue.messages), new.clock
    new.pass_by("30m")
    source.clock.wait_until(new.clock.now())
    source.tick()

    for letter in dead_letters.listed(new.ports, "demo", None, 100, None).items:
        dead_letters.redrive(new.ports, "demo", letter.run_id)
    new.pass_by("5m")
    sent = Counter(run_id for run_id, _ in new.targets.queue.messages)
    assert len(sent) == COUNT - 1, "all but the one that was cancelled"
    assert {run_id for run_id, times in sent.items() if times > 1} & known == set()
    assert max(sent.values()) <= 2
    assert set(events.sent(new, NAME)) == set(sent)
    assert events.on_record(new, NAME) == 1
    assert new.jobs(NAME) == []
    assert "policy" not in fields or most_in(new.targets.queue.sent_at[moved_at:], SECOND) <= 20
    assert new.limit_state("policy:demo.calm").waiters == 0
