"""Tables that are restored to instants in the middle of a large fire, and repaired (E2, O4): each event has been
delivered, and only those come again, under the same ids, of which no restored run says that they were sent."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from chalicelib.core.instants import HOUR, MINUTE, Instant, duration
from chalicelib.core.rows.run import Fire
from chalicelib.flow.jobs import actions
from tests.acceptance.targets.test_policies import under
from tests.faults import invariants
from tests.support import events
from tests.support.clock import NOON
from tests.support.deliveries_crossed import Interfering
from tests.support.repairs import mended
from tests.support.samples import every
from tests.support.schedules import at
from tests.support.world import World

TABLES = ("CatalogTable", "JobsTable", "RunsTable")
FIRST = NOON + HOUR
NAME = "batch"
FIRES: tuple[tuple[int, dict[str, Any]], ...] = (
    (120, {"spread": {"count": 120}}),
    (120, {"spread": {"count": 120, "over": "4s"}}),
    (60, {"spread": {"count": 60}, "policy": "calm"}),
    (60, {"spread": {"count": 60, "over": "2s"}, "policy": "calm"}),
)


def _play(seed: int) -> None:
    chance = random.Random(seed)
    count, document = chance.choice(FIRES)
    world = World(wake_shards=1, history_shards=1)
    world.deploy(under({"max_events": 20, "interval": "1s"}, {NAME: at("0 13 * * *", "notify", **document)}))
    kept: list[tuple[Instant, dict[str, Any]]] = []

    def keep() -> None:
        kept.append((world.clock.now(), world.tables.saved()))

    world.clock.wait_until(FIRST - 3 * MINUTE)
    keep()
    world.pass_by("100s")
    keep()
    Interfering(world, before=keep, after=keep)
    world.pass_by(chance.choice(("81s", "83s", "90s")))
    keep()

    chosen = [chance.choice(kept) for _ in TABLES]
    world.tables.restore({name: saved[name] for name, (_, saved) in zip(TABLES, chosen, strict=True)})
    world.hints.sent = []
    world.in_flight.clear()
    known = set(events.sent(world, NAME))
    world.clock.pass_by("20m")
    mended(world, min(when for when, _ in chosen) - MINUTE)
    invariants._queues_are_what_jobs_say(invariants.Stock(world))
    world.pass_by("70m")

    sent = Counter(run_id for run_id, _ in world.targets.queue.messages)
    told = f"restored to {[when - FIRST for when, _ in chosen]} of {document}"
    assert len(sent) == count, told
    assert {run_id for run_id, times in sent.items() if times > 1} & known == set(), told
    assert max(sent.values()) <= 2, told
    assert sorted(events.sent(world, NAME)) == sorted(sent), told
    assert (world.jobs(NAME), world.records(NAME)) == ([], []), told
    assert world.limit_state("policy:demo.calm").waiters == 0, told


@pytest.mark.parametrize("seed", every(4, range(40)))
def test_o4_a_restore_in_the_middle_of_a_large_fire(seed: int) -> None:
    _play(seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(4))
def test_o4_hundreds_of_restores_in_the_middle_of_large_fires(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        _play(seed)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"count": 5}, {"count": 9}),
        ({"count": 9}, {"count": 4, "over": "5m"}),
        ({"count": 4, "over": "5m"}, {"count": 60}),
        (None, {"count": 6, "over": "3m"}),
        ({"count": 6, "over": "8m"}, None),
    ],
)
def test_o4_a_repair_knows_how_many_events_each_fire_had(before: Any, after: Any) -> None:
    """An update has changed the spread between these fires. Nothing was lost, so nothing is written again."""
    world = World(wake_shards=1, history_shards=1)

    def document(spread: Any) -> dict[str, Any]:
        return at("*/10 * * * *", "notify", **({"spread": spread} if spread else {"coalesce": False}))

    world.deploy(under({"max_events": 20, "interval": "1s"}, {NAME: document(before)}))
    world.pass_by("23m")
    world.put(NAME, {**document(after), "on_update": "carry"})
    world.pass_by("38m")
    sent = Counter(context["events"][0]["instant"] for _, context in world.targets.queue.messages)
    counts = [spread["count"] if spread else 1 for spread in (before, before, after, after, after)]
    assert [sent[NOON + number * 10 * MINUTE] for number in range(1, 6)] == counts
    known = len(world.targets.queue.messages)
    assert mended(world, NOON) == []
    world.settle()
    assert len(world.targets.queue.messages) == known


@pytest.mark.parametrize("seconds", [46, 55, 59, 70, 110])
@pytest.mark.parametrize(("before", "after"), [(9, 5), (4, 3), (9, None), (5, 9)])
@pytest.mark.parametrize("outage", ["0s", "35m"])
def test_o4_a_repair_knows_the_fires_around_an_update(
    before: int, after: int | None, seconds: int, outage: str
) -> None:  # fmt: skip
    """Fires are prepared 75 to 135 s ahead, and after an outage all at once."""
    world = World(wake_shards=1, history_shards=1)

    def document(count: int | None) -> dict[str, Any]:
        return at("* * * * *", "notify", **({"spread": {"count": count}} if count else {"coalesce": False}))

    world.deploy(under({"max_events": 20, "interval": "1s"}, {NAME: document(before)}))
    world.pass_by(f"{240 + seconds}s")
    world.clock.wait_until(world.clock.now() + duration(outage) if outage != "0s" else world.clock.now())
    world.put(NAME, {**document(after), "on_update": "carry"})
    world.pass_by("6m")
    known = len(world.targets.queue.messages)
    assert mended(world, NOON) == []
    world.settle()
    assert len(world.targets.queue.messages) == known


@pytest.mark.parametrize("tables", [("CatalogTable",), ("CatalogTable", "JobsTable")])
def test_o4_a_fire_that_a_restored_timer_prepares_again(tables: tuple[str, ...]) -> None:
    """The row of the fire is newer than the timer: a cancelled event stays out, and no bundle is named twice."""
    world = World(wake_shards=1, history_shards=1)
    world.deploy(under({"max_events": 20, "interval": "1s"}, {NAME: at("4 12 2 3 *", "notify", spread={"count": 600})}))
    world.pass_by("60s")
    saved = world.tables.saved()
    world.pass_by("90s")
    cancelled = events.of_job(world.jobs(NAME)[0])[3]
    actions.withdraw(world.ports, cancelled, "ann")
    world.tables.restore({name: saved[name] for name in tables})
    world.hints.sent = []
    world.in_flight.clear()
    mended(world, NOON)
    world.pass_by("6m")
    row = world.ports.rows.get(Fire, cancelled.rpartition("-")[0])
    assert row is not None and list(row.starts) == sorted(set(row.starts))
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert (len(sent), len(set(sent)), cancelled in sent) == (599, 599, False)
