"""The partition that a run produces: which values name it, and which schedules can name them (L22)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.events import products
from tests.support.schedules import after, at, partitions

DAYS = {"each": "day", "format": "dt=%Y-%m-%d"}


def dataset(*keys: str, **fields: Any) -> Dataset:
    return Dataset.model_validate({"bucket": "lake", "prefix": "daily/", "keys": keys, **fields})


@pytest.mark.parametrize(
    ("keys", "correlation", "values"),
    [
        (("day",), {"day": "1"}, ("1",)),
        (("region", "day"), {"day": "1", "hour": "2", "region": "eu"}, ("eu", "1")),
        (("day", "hour"), {"day": "1"}, None),
        (("day",), {}, None),
    ],
)
def test_l22_a_run_names_the_partition_by_its_values(
    keys: tuple[str, ...], correlation: dict[str, str], values: tuple[str, ...] | None
) -> None:
    assert products.partition_of(dataset(*keys), correlation) == values


@pytest.mark.parametrize(("given", "written"), [("2026-3-1", "2026-03-01"), ("2026-03-01", "2026-03-01"), ("x", "x")])
def test_l22_a_period_is_written_as_its_format_says(given: str, written: str) -> None:
    assert products.partition_of(dataset("dt", period=DAYS), {"dt": given}) == (written,)


def test_l22_why_no_partition_is_named_lists_what_is_missing() -> None:
    why = products.why_none("demo.daily", dataset("day", "hour", "region"), {"day": "1"})
    assert why == "a run for day=1 names no hour, region, which a partition of demo.daily has"


@pytest.mark.parametrize(
    ("document", "missing"),
    [
        (partitions(by=["day", "hour"]), []),
        (partitions(by=["hour"]), ["day"]),
        (partitions(), []),
        (partitions(dataset="weather"), ["day"]),
        (after("clean", "join"), []),
        (after("clean", "join", by=["hour"]), ["day"]),
        (at("0 5 * * *"), ["day"]),
        (after("clean", "join", by=["~dag"]), []),
    ],
)
def test_l22_the_keys_that_no_run_of_a_schedule_can_name(document: dict[str, Any], missing: list[str]) -> None:
    given = {key: value for key, value in document.items() if key != "enabled"}
    schedule = Schedule.model_validate(given).resolved("demo", "flights")
    known = {"demo.flights": dataset("day", "hour"), "demo.weather": dataset("station")}
    counted = {name: own for name, own in known.items() if f"'{name}'" in str(schedule.trigger)}
    assert products.missing_keys(schedule, dataset("day"), counted) == missing
