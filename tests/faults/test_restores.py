"""Tables that are restored to three instants, up to ten minutes apart, and repaired (O4).

EMR, the contexts in S3 and the objects of datasets outlive a restore. So after the repair, and some hours, all that was
due has run once: by the run that EMR had, or by another one if EMR had none. EMR forgets its client tokens here, so a
second start call would be a second run.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE
from sluice.operations.repair.repair import Finding
from tests.faults import invariants
from tests.faults.rests import come_to_an_end
from tests.support.repairs import mended
from tests.support.schedules import after, at_most, partitions
from tests.support.world import EMR, World, day, flights

RETRIED = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
EVERY = {"workflow": "join", "trigger": {"type": "time", "expression": "@every 2m"}, "enabled": True}
FOUR = {"workflow": "join", "trigger": {"type": "time", "expression": "R4/PT3M"}, "enabled": True}
SCHEDULES = {
    "daily": partitions(by=["day"], **at_most(2)),
    "pairs": partitions(dataset="weather", count=2),
    "next": after("clean", "join"),
    "every": {**EVERY, "coalesce": False, "constraints": [{"type": "concurrency", "max": 2, "on_unmet": "wait"}]},
    "four": {**FOUR, "coalesce": False},
}
TABLES = ("CatalogTable", "JobsTable", "RunsTable")


class Restored(World):
    """A world that keeps what its tables had at every step."""

    def __init__(self, seed: int) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self._begin_work(seed)
        self.deploy(flights(SCHEDULES, clean=RETRIED))

    def _begin_work(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kept: list[tuple[int, dict[str, Any]]] = []
        self.uploaded: set[tuple[str, int]] = set()

    def keep(self) -> None:
        self.kept.append((self.clock.now(), self.tables.saved()))

    def steps(self, minutes: int) -> None:
        """Minutes in which data comes, EMR's runs end, and time passes, in any order."""
        end = self.clock.now() + minutes * MINUTE
        while self.clock.now() < end:
            match self.chance.randrange(5):
                case 0 | 1:
                    dataset, number = self.chance.choice(["flights", "weather"]), self.chance.randint(1, 9)
                    self.uploaded.add((dataset, number))
                    self.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "a.csv"))
                case 2:
                    self.ends(self.chance.choice(["SUCCESS", "SUCCESS", "FAILED"]))
                case _:
                    pass
            if self.chance.random() < 0.8:
                self.keep()
                self.settle()
            self.keep()
            self.pass_by(self.chance.choice(["7s", "25s", "50s"]))
            self.keep()

    def ends(self, outcome: str) -> None:
        live = [made for made in self.targets.emr.runs.values() if made.state in ("SUBMITTED", "RUNNING")]
        if live:
            self.emr_says(self.chance.choice(live).id, outcome)

    def restore(self, minutes: int) -> int:
        """Restore each table to an instant within the last minutes. Returns an instant before all of them."""
        now = self.clock.now()
        lately = [kept for kept in self.kept if kept[0] >= now - minutes * MINUTE] or self.kept[-1:]
        chosen = [self.chance.choice(lately) for _ in TABLES]
        self.tables.restore({name: saved[name] for name, (_, saved) in zip(TABLES, chosen, strict=True)})
        self.hints.sent = []
        for made in self.targets.emr.runs.values():
            made.token = f"forgotten {made.token}"
        return min(at for at, _ in chosen) - MINUTE

    def repair(self, since: int, **how: Any) -> list[Finding]:
        return mended(self, since, **how)

    def rest(self) -> None:
        come_to_an_end(self, 28, ("every", "four"))


def check(world: Restored, began: int) -> None:
    """Nothing started twice, nothing that was due is missing, and limits are right."""
    names = Counter(made.name for made in world.targets.emr.runs.values())
    assert [name for name, count in names.items() if count > 1] == [], "an attempt was started twice"
    runs = {(run.run_id, run.attempt) for name in SCHEDULES for run in world.runs(name)}
    missing = [name for name in names if (name.rpartition("-")[0], int(name.rpartition("-")[2])) not in runs]
    assert missing == [], "runs of EMR that no table has"
    first = {name: [run for run in world.runs(name) if run.attempt == 1] for name in SCHEDULES}
    assert len(first["daily"]) == len({number for dataset, number in world.uploaded if dataset == "flights"})
    weather = len({number for dataset, number in world.uploaded if dataset == "weather"})
    assert len(first["pairs"]) == weather // 2
    assert len(first["four"]) == 4
    nominals = sorted(run.due_at for run in first["every"])
    gaps = [late - early for early, late in pairwise(nominals) if late - early != 2 * MINUTE]
    assert nominals[0] == began + 2 * MINUTE and gaps == [], "each fire ran once"
    stock = invariants.Stock(world)
    for state in stock.lines.values():
        assert (state.active, state.waiters) == (0, 0), state
    left = [job for job in stock.jobs if not job.closed and job.state != "PENDING_TRIGGER"]
    assert left == []


def play(seed: int, minutes: int) -> None:
    world = Restored(seed)
    began = world.clock.now()
    world.keep()
    world.steps(12)
    since = world.restore(minutes)
    world.clock.pass_by("20m")
    world.repair(since)
    invariants._slots_are_counted(invariants.Stock(world))
    invariants._queues_are_what_jobs_say(invariants.Stock(world))
    world.rest()
    check(world, began)


@pytest.mark.parametrize("minutes", [0, 1, 3, 10])
@pytest.mark.parametrize("seed", range(6))
def test_o4_three_instants_are_mended(seed: int, minutes: int) -> None:
    play(seed, minutes)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 2, 5, 10])
@pytest.mark.parametrize("seed", range(100, 200))
def test_o4_hundreds_of_restores_are_mended(seed: int, minutes: int) -> None:
    play(seed, minutes)


class Died(BaseException):
    """The command ended in the middle."""


def dies_before(world: Restored, since: int, call: int) -> None:
    """A repair that ends before this call of the tables, the first being 1."""
    left = [call]

    def before() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Died

    world.tables.before_call, kept = before, world.tables.before_call
    with suppress(Died):
        world.repair(since)
    world.tables.before_call = kept


def calls_of(world: Restored, since: int) -> list[int]:
    """The calls of a repair before which the tables have just been changed: a death before one is a death after a
    write."""
    found, number, last = [], [0], [world.tables.digest]

    def before() -> None:
        number[0] += 1
        now = world.tables.digest
        if now != last[0]:
            found.append(number[0])
            last[0] = now

    world.tables.before_call, kept = before, world.tables.before_call
    world.repair(since)
    world.tables.before_call = kept
    return found


def shown(world: Restored) -> dict[Any, Any]:
    """All rows, without the number of their writes."""
    return {
        (table, str(item["pk"]), str(item["sk"])): {name: value for name, value in item.items() if name != "rev"}
        for table, item in world.tables.rows()
    }


def repaired_after_deaths(world: Restored, since: int, at_most_deaths: int) -> None:
    """A repair that dies after any of its writes, and is repeated, has the same end; then nothing is left to do. What
    an open outbox applies, a second repair may apply already; so the ends are compared after it."""
    before, emr = world.tables.saved(), [(made.token, made.state) for made in world.targets.emr.runs.values()]
    writes = calls_of(world, since)
    assert world.repair(since) == [], "a second repair finds nothing to do"
    whole = shown(world)
    assert world.repair(since) == []
    assert shown(world) == whole
    for call in writes[:: max(1, len(writes) // at_most_deaths)]:
        world.tables.restore(before)
        dies_before(world, since, call)
        world.repair(since)
        assert world.repair(since) == [], f"a death before call {call}"
        assert shown(world) == whole, f"a death before call {call}"
    assert [(made.token, made.state) for made in world.targets.emr.runs.values()] == emr


def play_dying(seed: int, minutes: int, deaths: int) -> None:
    world = Restored(seed)
    began = world.clock.now()
    world.keep()
    world.steps(12)
    since = world.restore(minutes)
    world.clock.pass_by("20m")
    repaired_after_deaths(world, since, deaths)
    world.rest()
    check(world, began)


@pytest.mark.parametrize("minutes", [0, 10])
@pytest.mark.parametrize("seed", range(2))
def test_o4_a_repair_that_dies_is_repeated(seed: int, minutes: int) -> None:
    play_dying(seed, minutes, 5)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 3, 10])
@pytest.mark.parametrize("seed", range(100, 120))
def test_o4_a_repair_that_dies_after_any_write_is_repeated(seed: int, minutes: int) -> None:
    play_dying(seed, minutes, 1000)


def test_o4_an_object_in_a_bad_folder_does_not_stop_a_repair() -> None:
    world = Restored(0)
    key = day(1).replace("day=1", "day=*")
    world.lake.objects["lake-bucket", key], world.lake.put_at["lake-bucket", key] = "", world.clock.now()
    world.lake.sizes["lake-bucket", key] = 0
    found = world.repair(world.clock.now() - MINUTE)
    assert [(each.kind, each.name) for each in found] == [("object", f"s3://lake-bucket/{key}")]
    assert found[0].done.startswith("left alone: ")


def test_o4_a_repair_names_runs_whose_context_was_not_copied() -> None:
    world = Restored(0)
    world.upload(day(1))
    world.settle()
    [run] = world.runs("daily")
    world.payloads.contexts.clear()
    found = world.repair(world.clock.now() - MINUTE)
    assert [each.name for each in found if each.kind == "context"] == [run.run_id]
