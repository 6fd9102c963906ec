"""Versions that break the compatibility are detected, and they refuse the rows that they must refuse (O11).

Each of them is the baseline or the present code with a few words replaced. A replacement that finds nothing fails, so
these follow the code as it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chalicelib.aws.tables.items import FORMAT
from tests.upgrade import trees
from tests.upgrade.account import current
from tests.upgrade.agreement import rows_read_alike
from tests.upgrade.counted import nothing_is_lost_or_doubled
from tests.upgrade.lambdas import Version
from tests.upgrade.rolling_world import RollingWorld
from tests.upgrade.test_side_by_side import goes_forward
from tests.upgrade.trees import Changes

ROWS = "items.py"
FORGETS: Changes = {ROWS: {"dict(row.unknown)": "{}"}}
RENAMES: Changes = {"*.py": {"queued_in": "queues_at"}}
ADDS: Changes = {
    "core/rows/job.py": {
        "    prepared_at: Instant | None = None\n": '    prepared_at: Instant | None = None\n    hue: str = "green"\n',
    },
    "core/rows/run.py": {
        "    bill_checks: int = 0\n": '    bill_checks: int = 0\n    hue: str = "green"\n',
    },
}
LOWER_LAYOUT: Changes = {ROWS: {f"FORMAT = {FORMAT}": f"FORMAT = {FORMAT - 1}"}}


@contextmanager
def deployment(
    old: Version, new: Version, share: Callable[[int], float] = lambda minute: 0.5, seed: int = 1
) -> Iterator[RollingWorld]:
    for version in (old, new):
        version.cold()
    world = RollingWorld(current(), old, new, share, seed)
    with world.logged():
        yield world


def test_o11_jobs_and_runs_keep_what_newer_code_adds_to_them(old: Version) -> None:
    """A release that adds an attribute to jobs, and one to runs."""
    newer = Version(trees.present_source(), "adds", ADDS)

    with deployment(old, newer, lambda minute: 1.0 - goes_forward(3 * minute)) as world:
        world.rows.watches("hue")
        world.hour(20)
        rows_read_alike(world)
        world.rest()

    nothing_is_lost_or_doubled(world)
    assert world.errors.found == [] and world.rows.lost == []
    assert world.rows.taken_over["Job", old.name] > 0 and world.rows.taken_over["Run", old.name] > 0
    assert world.rows.has_kept("hue") >= {"Job", "Run"}


def test_an_older_writer_that_erases_attributes_is_detected(baseline_tree: Path, new: Version) -> None:
    forgetful = Version(baseline_tree, "forgets", FORGETS)

    with deployment(forgetful, new) as world, pytest.raises(AssertionError, match="newer code that older code erased"):
        world.hour()


def test_a_renamed_attribute_in_a_writer_is_detected(baseline_tree: Path, new: Version) -> None:
    renamed = Version(baseline_tree, "renames", RENAMES)

    with deployment(renamed, new) as world, pytest.raises(AssertionError, match="place in a queue|read in two ways"):
        world.hour(0)
        for minutes in range(5, 61, 5):
            world.goes_on(minutes)
            rows_read_alike(world)


def test_o11_older_code_refuses_rows_of_a_newer_layout_unchanged(baseline_tree: Path, new: Version) -> None:
    """As long as older Lambdas run, work that needs such a row fails and is retried. Then the newer code
    does it all.
    """
    older = Version(baseline_tree, "lower", LOWER_LAYOUT)

    with deployment(older, new, lambda minute: goes_forward(3 * minute)) as world:
        world.hour(20)
        world.rest()

    nothing_is_lost_or_doubled(world)
    refused = [error for player, error in world.errors.found if player == older.name]
    assert len(refused) == len(world.errors.found) > 20, "only the older code fails"
    assert {name for error in refused for name in causes(error)} == {"NewerLayout"}
    assert world.rows.taken_over["Run", new.name] > 0, "what the older code has written is read"
    assert (
        sum(world.rows.taken_over[kind, older.name] for kind in ("Job", "Run", "LimitState", "ScheduleState", "Timer"))
        == 0
    )
    assert sum(world.rows.lowered.values()) == 0


def test_o11_an_unknown_kind_of_event_is_read_and_passed_on(old: Version) -> None:
    """See `layout.OPEN`: in a deployment the older code meets the events of leaves that only newer code has."""
    rows, items = old.module("core.rows.event"), old.module("aws.tables.items")
    event = rows.Event("e1", "zz_newer", "key", 1, 2, payload={"hue": "green"})
    row = rows.Partition("demo.flights", ("1",), event, "key")

    read = items.from_item(rows.Partition, items.to_item(row, 1, 1))

    assert read == row
    assert old.module("flow.runs.context").describe_event(read.event) == {"kind": "zz_newer", "id": "e1", "instant": 1}


def causes(error: BaseException | str) -> set[str]:
    """The causes of a failed invocation, also of a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        return {name for each in error.exceptions for name in causes(each)}
    return {type(error).__name__}


def test_a_change_that_matches_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="nothing to change for .*no such words"):
        trees.copied(trees.present_source(), "unchanged", {ROWS: {"no such words": ""}})
