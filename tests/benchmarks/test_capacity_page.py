"""The page about capacity shows what follows from the results."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import results
from benchmarks.capacity import CAPACITY, DAYS, PAGE, limits, load
from benchmarks.page import NOT_YET, page


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results.read()


def test_w11_the_page_has_the_tables_of_the_results(found: dict[str, Any]) -> None:
    text = PAGE.read_text()
    assert page(text, found, CAPACITY) == text, "run: python -m benchmarks.capacity"
    for name in CAPACITY:
        assert f"<!-- {name} -->" in text
    assert NOT_YET not in text


def test_w11_a_larger_day_takes_more_of_everything(found: dict[str, Any]) -> None:
    small, middle, large = (load(millions, found) for millions in DAYS)
    assert middle.mean == pytest.approx(10 * small.mean)
    assert large.writes["jobs"] == pytest.approx(100 * small.writes["jobs"])
    assert large.emr_starts == pytest.approx(100 * 80_000 / 86_400)
    assert small.wake_shards == small.history_shards == 4 < large.wake_shards
    assert small.warm == 0 < middle.warm < large.warm
    assert small.burst_concurrency == 100 < large.burst_concurrency


def test_w11_limits_are_in_the_order_in_which_a_load_meets_them(found: dict[str, Any]) -> None:
    met = limits(found)
    assert [each.millions for each in met] == sorted(each.millions for each in met)
    first = met[0]
    assert first.of_a_million * first.millions == pytest.approx(0.8 * first.quota)
