"""The cost of registering a message: calls of the tables, and rows that are written (docs/internals/messages.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from chalicelib.core.schedules.closings import closed_by
from chalicelib.core.writes import ExpectMode, ExpectStops, Put, Write
from chalicelib.flow.schedules import messages
from tests.support.ledgers import LedgerBetween
from tests.support.world import SQS, World, flights

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "messages.md"


class Cost(NamedTuple):
    calls: int
    rows: int


class CountingLedger(LedgerBetween):
    rows = 0

    def before(self, writes: Sequence[Write]) -> None:
        self.rows += len([write for write in writes if not isinstance(write, ExpectMode | ExpectStops)]) + len(
            closed_by(writes)
        )

    def before_puts(self, writes: Sequence[Put]) -> None:
        self.rows += len(writes)


def cost(act: Callable[[World], None], *before: Callable[[World], None]) -> Cost:
    world = World(wake_shards=1, history_shards=1)
    world.deploy(flights({}) | {"default_target": SQS})
    for each in before:
        each(world)
    world.clock.pass_by("1s")
    ledger, calls = CountingLedger(world.ports.ledger), 0

    def count() -> None:
        nonlocal calls
        calls += 1

    world.ports, world.tables.before_call = world.with_ports(ledger=ledger), count
    act(world)
    return Cost(calls, ledger.rows)


def plain(world: World) -> None:
    world.message("ping", due_time="1h")


def own(world: World) -> None:
    world.message("ping", due_time="1h", target=SQS)


def workflow(world: World) -> None:
    world.message("ping", due_time="1h", workflow="notify")


def soon(world: World) -> None:
    world.message("ping", due_time="30s")


def gone(world: World) -> None:
    messages.delete(world.ports, "demo.flights", "ping", "ada")


COSTS: dict[str, tuple[Cost, tuple[Callable[[World], None], ...]]] = {
    "a new one to the app's default target": (Cost(3, 4), (plain,)),
    "a new one to a target of its own": (Cost(4, 5), (own,)),
    "a new one to a workflow": (Cost(4, 4), (workflow,)),
    "the same again, or another over it": (Cost(6, 6), (plain, plain)),
    "a delete": (Cost(7, 4), (gone, plain)),
}


@pytest.mark.parametrize("what", COSTS)
def test_l16_a_registration_costs_what_the_documentation_says(what: str) -> None:
    expected, acts = COSTS[what]
    assert cost(*acts) == expected
    row = re.search(rf"^\| {re.escape(what)} \| (\d+) \| (\d+) \|$", PAGE.read_text(), flags=re.M)
    assert row is not None, f"docs/internals/messages.md says nothing of {what}"
    assert (int(row[1]), int(row[2])) == expected


def test_l16_a_message_due_soon_also_pays_for_its_fire() -> None:
    """The tick that would have prepared it is over. So its fire is written, and its timer moved on, at once."""
    extra = cost(soon).rows - cost(plain).rows
    assert extra >= 2
