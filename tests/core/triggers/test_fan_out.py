"""To which jobs a partition belongs, compared with lists of days that are written down one by one (T27)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.jobs import of_period
from chalicelib.core.jobs.gather import Joined
from chalicelib.core.rows.event import Event
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import parts

ZONES = ["America/New_York", "America/St_Johns", "Europe/Paris", "Pacific/Apia", "UTC"]
FORMATS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "quarter": "%Y-Q%q", "year": "%Y"}
SIZES = ["day", "week", "month", "quarter", "year"]
# The name of the period that has a date.
NAMES: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{day}",
    "week": lambda day: f"{day:%G-W%V}",
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day:%Y}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day:%Y}",
}
DAYS = [date(1990, 1, 1) + timedelta(days=number) for number in range(50 * 365)]


@lru_cache
def written(each: str) -> dict[str, list[date]]:
    """The names of periods in their order, each with its days."""
    return {name: list(days) for name, days in groupby(DAYS, NAMES[each])}


@lru_cache
def order_of(each: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(written(each))}


def waited_for(each: str, per: str, label: str, count: int, ending: str) -> list[str]:
    """The names of the partitions for which the job of a period waits, by the dates that the period has."""
    own, order = written(per)[label], order_of(each)
    names = list(dict.fromkeys(map(NAMES[each], own)))
    begun = [name for name in names if written(each)[name][0] in own]
    belonging = begun or names[:1]
    last = {"period": order[belonging[-1]], "before": order[belonging[0]] - 1, "after": order[belonging[-1]] + 1}
    return list(order)[last[ending] - count + 1 : last[ending] + 1]


def dataset(each: str, zone: str) -> Dataset:
    period = {"each": each, "format": f"at={FORMATS[each]}", "zone": zone}
    return Dataset.model_validate({"bucket": "lake-bucket", "prefix": "a/", "keys": ["at"], "period": period})


def schedule(of: Any, per: str, zone: str) -> Schedule:
    trigger = {"type": "partition", "dataset": "demo.a", "of": of}
    return Schedule.model_validate({"workflow": "demo.x.w", "trigger": trigger, "per": per, "zone": zone})


def named(a: Dataset, name: str) -> Period:
    assert a.period is not None and a.period.names is not None
    return a.period.names.read({"at": name})


@settings(deadline=None, max_examples=20)
@given(
    zone=st.sampled_from(ZONES),
    sizes=st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)),
    day=st.dates(date(2000, 1, 1), date(2007, 12, 1)),
    count=st.integers(1, 3),
    ending=st.sampled_from(["period", "before", "after"]),
)
@example(zone="Europe/Paris", sizes=("week", "day"), day=date(2026, 3, 29), count=1, ending="before")
@example(zone="Europe/Paris", sizes=("month", "week"), day=date(2026, 3, 31), count=1, ending="period")
@example(zone="Europe/Paris", sizes=("year", "day"), day=date(2028, 2, 29), count=1, ending="after")
@example(zone="UTC", sizes=("week", "month"), day=date(2026, 3, 1), count=2, ending="before")
def test_t27_a_partition_belongs_to_the_jobs_that_wait_for_it(
    zone: str, sizes: tuple[str, str], day: date, count: int, ending: str
) -> None:
    each, per = sizes
    a, plan = dataset(each, zone), schedule({"periods": count, "ending": ending}, per, zone)
    name = NAMES[each](day)
    around = (day + timedelta(days=number) for number in range(-5 * 366, 5 * 366))
    labels = dict.fromkeys(map(NAMES[per], around))
    expected = [label for label in labels if name in waited_for(each, per, label, count, ending)]
    places = of_period.places_of(plan, a, named(a, name), [Joined({})], ("0",))
    assert [place.period.label for place in places] == expected[: parts.MAX_JOBS + 1]
    for place in places[:3]:
        found = of_period.parts_by_leaf(plan, place, {"demo.a": a})["0"]
        values = [parts.values_of(found, part)["at"] for part in parts.every(found)]
        assert values == waited_for(each, per, place.period.label, count, ending)
        assert found.need == count
        event = Event("e", "partition", "partition:demo.a", 0, 0, {"at": name})
        assert of_period.numbers(place, event, {"0": found})["0"] in {part.number for part in parts.every(found)}


@pytest.mark.parametrize(("each", "per", "count"), [("month", "hour", 744), ("week", "15m", 672), ("year", "day", 365)])
def test_t27_the_jobs_of_one_partition(each: str, per: str, count: int) -> None:
    a, plan = dataset(each, "UTC"), schedule("period", per, "UTC")
    places = of_period.places_of(plan, a, named(a, NAMES[each](date(2026, 3, 2))), [Joined({})], ("0",))
    assert len(places) == len({place.period.label for place in places}) == count
    assert [place.name for place in places] == ["", *(place.period.label for place in places[1:])]


def test_t27_more_than_a_thousand_jobs_are_not_computed() -> None:
    a, plan = dataset("year", "UTC"), schedule("period", "hour", "UTC")
    assert len(of_period.places_of(plan, a, named(a, "2026"), [Joined({})], ("0",))) == parts.MAX_JOBS + 1
