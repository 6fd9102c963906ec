"""Random closings between the preparation of a batch and its instant, in the worlds of all tests (C13).

The engine of `sluice.testing` prepares and leases fires before their instant, as the handler of hints does. So what a
user closes meanwhile shows only in the count of closings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from chalicelib.flow.deliveries import send
from chalicelib.flow.jobs import actions
from chalicelib.flow.schedules import pauses
from tests.faults.dying import SMALL
from tests.support import events
from tests.support.deliveries_crossed import deploy, due, ids, spread
from tests.support.ledgers import LedgerBetween
from tests.support.samples import every
from tests.support.world import World, full

SIZES = (2, 3, 20, 60, 260)
CLOSINGS = ("nothing", "disable", "hold", "drop", "cancel", "cancel", "skip", "delete")
PASSED = ("30s", "57900ms", "59s", "59999ms")  # of the minute before the fires
SEEDS = range(60)


class Life:
    """One schedule whose fires are due at one instant, and what a user closes before that."""

    def __init__(self, seed: int, between: Callable[[Any], Any] | None = None) -> None:
        self.draws = Random(seed)
        self.world = World(**SMALL)
        if between is not None:
            self.world.ports = self.world.with_ports(ledger=between(self.world.ports.ledger))
        self.size, self.what = self.draws.choice(SIZES), self.draws.choice(CLOSINGS)
        self.records = self.draws.choice(("each", "fire"))
        deploy(self.world, {"daily": spread(self.size), "other": spread(2)}, delivery={"records": self.records})
        self.instant = due(self.world)
        self.world.pass_by(self.draws.choice(PASSED))
        self.leased = [begun.leased for begun in self.world.in_flight]
        self.closed = self.close()
        self.world.pass_by("3m")

    def close(self) -> set[str]:
        """Close something. Returns the jobs that may not be sent from now on."""
        world, jobs = self.world, events.waiting(self.world, "daily")
        everything = set(jobs)
        match self.what:
            case "nothing":
                return set()
            case "disable":
                world.disable("daily")
            case "hold":
                world.pause("daily", "hold")
                return everything
            case "drop":
                world.put("daily", spread(self.size, properties={"new": True}, on_update="drop"))
            case "delete":
                world.delete("daily")
            case "skip":
                pauses.skip(world.ports, full("daily"), self.instant, "tester")
            case _:
                chosen = self.draws.choice(jobs)
                actions.withdraw(world.ports, chosen, "tester")
                return {chosen}
        return everything

    def problems(self) -> list[str]:
        sent = ids(self.world)
        found = [f"sent after {self.what}: {job}" for job in sorted(self.closed & set(sent))]
        found += [f"sent twice: {job}" for job in sorted(set(sent)) if sent.count(job) > 1]
        others = events.sent(self.world, "other")
        return found + ([] if len(others) == 2 else [f"{len(others)} of 2 ran beside {self.what}"])


@pytest.mark.parametrize("seed", every(3, SEEDS))
def test_c13_nothing_is_sent_that_was_closed_once_prepared(seed: int) -> None:
    life = Life(seed)
    assert life.problems() == [], f"{life.size} fires, {life.what}"
    assert all(leased.counts == {"demo": 0} for leased in life.leased)


def test_a_burst_is_prepared_by_several_invocations() -> None:
    lives = (found for found in map(Life, SEEDS) if found.records == "each")
    life = next(found for found in lives if found.size == max(SIZES) and found.leased)
    assert len(life.leased) > 1


def _found(between: Callable[[Any], Any] | None = None) -> Iterator[str]:
    return (problem for seed in SEEDS for problem in Life(seed, between).problems())


class _NotCounted(LedgerBetween):
    """Counts no closing."""

    def count_closing(self, namespace: str) -> None:
        pass


def test_a_closing_that_is_not_counted_is_found() -> None:
    assert any("sent after" in problem for problem in _found(_NotCounted))


def test_a_batch_that_does_not_look_at_the_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send._Sender, "_nothing_closed", lambda batch, part: True)
    assert any("sent after" in problem for problem in _found())
