"""Each version of a flag or manifest counts once in all reports of it, in any order (T22)."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.events.versions import ObjectVersion, is_later, is_same
from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.flow.ingest import objects
from tests.support.repairs import mended
from tests.support.schedules import partitions
from tests.support.world import World, flights

FLAG = "raw/flights/year=2026/month=09/day=01/_SUCCESS"
EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
BY = ["year", "month", "day"]


def made(bucket: str = "lake-bucket") -> World:
    world = World()
    document = flights({"daily": partitions(by=BY)})
    document["datasets"]["flights"] |= {"rewritten": "again", "bucket": bucket}
    world.deploy(document)
    world.clock.pass_by("1m")
    return world


class Puts:
    """An empty flag that is put at some instants after noon, and what reports each version. Instants are in ms."""

    def __init__(self, world: World, *after: int) -> None:
        self.world, self.noon = world, world.clock.now() - world.clock.now() % MINUTE
        self.at = [self.noon + each for each in after]

    def report(self, how: str, number: int = 0) -> None:
        if how == "repair":
            self.repair()
            return
        at, sequencer = self.at[number], f"0065F08299329D{number:02X}"
        if how == "bridge":  # whole seconds, often of a later second, and small letters
            at, sequencer = at - at % SECOND + SECOND, sequencer.lower()
        objects.match_object(self.world.ports, ObjectCreated("lake-bucket", FLAG, at, 0, EMPTY, sequencer))
        self.world.settle()

    def repair(self) -> None:
        """It lists the last version alone, with whole seconds and without a sequencer."""
        last = len(self.at) - 1
        lake = self.world.lake
        lake.objects["lake-bucket", FLAG], lake.etags["lake-bucket", FLAG] = b"", EMPTY
        lake.put_at["lake-bucket", FLAG] = self.at[last] - self.at[last] % SECOND
        since = self.noon - MINUTE
        mended(self.world, since)
        self.world.pass_by("1m")

    @property
    def runs(self) -> int:
        self.world.pass_by("5m")
        self.world.finish()
        self.world.pass_by("5m")
        return len(self.world.runs("daily"))


@pytest.mark.parametrize("order", [("s3", "bridge"), ("bridge", "s3"), ("s3", "s3", "bridge"), ("bridge", "bridge")])
def test_t22_one_put_that_s3_and_eventbridge_report_is_one(order: tuple[str, ...]) -> None:
    puts = Puts(made(), 923)
    for how in order:
        puts.report(how)
    assert puts.runs == 1


@pytest.mark.parametrize("order", sorted(set(permutations(["s3", "bridge", "repair", "repair"]))))
def test_t22_a_repair_finds_the_version_that_was_reported(order: tuple[str, ...]) -> None:
    """The first version, and below a later one."""
    puts = Puts(made(), 923)
    for how in order:
        puts.report(how)
    assert puts.runs == 1


@pytest.mark.parametrize("order", sorted(set(permutations(["s3", "bridge", "repair", "repair"]))))
def test_t22_a_repair_finds_a_rewrite_that_was_reported(order: tuple[str, ...]) -> None:
    puts = Puts(made(), 923, 20 * MINUTE + 923)
    puts.report("s3", 0)
    for how in order:
        puts.report(how, 1)
    assert puts.runs == 2


@pytest.mark.parametrize("gap", [1, 500, 1000, 1077, 2000])
@pytest.mark.parametrize("hows", list(product(["s3", "bridge"], repeat=4)))
def test_t22_two_puts_close_together_are_two(gap: int, hows: tuple[str, ...]) -> None:
    """Each is reported twice, in the order in which they were put, or crossed."""
    for numbers in ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)):
        puts = Puts(made(), 0, 923, 923 + gap)
        for number, how in zip(numbers, hows, strict=True):
            puts.report(how, number + 1)
        assert puts.runs == 2, numbers


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_t22_versions_after_the_first_seen_count_in_any_order(order: tuple[int, ...]) -> None:
    puts = Puts(made(), 923, 1923, 2 * HOUR)
    for number in (*order, *order):
        puts.report("s3", number)
        puts.report("bridge", number)
    assert puts.runs == 1 + sum(number > order[0] for number in order)


def test_t22_a_put_one_second_after_a_repaired_one_is_another() -> None:
    """The report of the first gives its row a sequencer, by which the second differs."""
    puts = Puts(made(), 923)
    puts.report("repair")
    puts.report("s3", 0)
    puts.at.append(puts.at[0] + SECOND)
    for how in ("s3", "bridge", "repair"):
        puts.report(how, 1)
    assert puts.runs == 2


def test_t22_other_content_in_a_near_second_is_another() -> None:
    one, other = ObjectVersion(5_000, "a"), ObjectVersion(5_900, "b")
    assert not is_same(one, other)
    assert is_later(other, one)


@pytest.mark.parametrize("restored", [("CatalogTable",), ("JobsTable",), ("CatalogTable", "JobsTable"), ("RunsTable",)])
def test_t22_a_repair_after_a_restore_starts_no_rewrite_again(restored: tuple[str, ...]) -> None:
    """A rewrite whose row is lost is known by the jobs that have counted it, or by the run's context."""
    world = made()
    puts = Puts(world, 923, 20 * MINUTE + 923)
    puts.report("s3", 0)
    world.pass_by("19m")
    before: dict[str, Any] = world.tables.saved()
    world.pass_by("1m")
    puts.report("s3", 1)
    after = world.tables.saved()
    world.tables.restore({name: (before if name in restored else after)[name] for name in after})
    world.hints.sent = []

    puts.noon = puts.at[1] - MINUTE
    puts.repair()
    puts.report("bridge", 1)

    assert puts.runs == 2
