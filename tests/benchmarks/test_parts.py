"""What a partition costs that joins the job of a period: as much in a set of thousands as in one of 24 (T25)."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cost.plant import Plant, fresh_tables
from benchmarks.cost.tally import Tally
from tests.support.permissions import watched

PERIOD = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H"}


def app(per: str, of: Any = "period") -> dict[str, Any]:
    dataset = {"bucket": "lake", "prefix": "clicks/", "keys": ["dt", "hour"], "period": PERIOD}
    trigger = {"type": "partition", "dataset": "clicks", "of": of}
    return {
        "datasets": {"clicks": dataset},
        "workflows": {"sum": {"target": {"type": "emr_serverless", "entry_point": "s3://code/sum.py"}}},
        "schedules": {"all": {"workflow": "sum", "enabled": True, "per": per, "trigger": trigger}},
    }


def joining(document: dict[str, Any], before: int) -> Tally:
    """What the last of several partitions of a period costs."""
    plant = Plant(*fresh_tables())
    plant.deploy(document)
    with watched():  # the meter reads rows that no Lambda reads
        for number in range(before + 1):
            plant.restart_meter()
            plant.upload(f"clicks/dt=2026-03-02/hour={number:02}/a.parquet")
    return plant.tally


@pytest.mark.parametrize("before", [3, 20])
def test_t25_a_partition_costs_the_same_in_any_set(before: int) -> None:
    """A day has 24 hours, a year 8,760."""
    day, year = (joining(app(per), before) for per in ("day", "year"))
    assert dict(day.calls) == dict(year.calls)
    assert (day.read_units, day.write_units) == (year.read_units, year.write_units)


def test_t26_a_partition_costs_what_its_windows_do() -> None:
    one, seven = (joining(app("day", {"from": back, "to": "period"}), 3) for back in ("period", "-6d"))
    assert one.write_units < seven.write_units < 7 * one.write_units
    assert seven.calls["dynamodb:TransactWriteItems"] == 7


def of_values(count: int, per: str | None) -> Tally:
    """What a partition costs that joins the job of its value, one of ``count``."""
    plant, values = Plant(*fresh_tables()), [f"r{number:03}" for number in range(count)]
    document = app("day")
    document["datasets"]["clicks"]["keys"] = ["region", "dt", "hour"]
    schedule = document["schedules"]["all"] | {"by": ["region"], "values": {"region": values}}
    if per is None:
        schedule = {key: value for key, value in schedule.items() if key != "per"}
        schedule["trigger"] = {"type": "partition", "dataset": "clicks", "count": 24}
    document["schedules"]["all"] = schedule
    plant.deploy(document)
    with watched():
        for hour in range(4):
            plant.restart_meter()
            plant.upload(f"clicks/region=r007/dt=2026-03-02/hour={hour:02}/a.parquet")
    return plant.tally


def starting_values(count: int) -> Tally:
    """What a partition of no value costs that starts the jobs of so many."""
    plant, document = Plant(*fresh_tables()), app("day")
    schedule = document["schedules"]["all"] | {"by": ["region"]}
    document["schedules"]["all"] = schedule | {"values": {"region": [f"r{number}" for number in range(count)]}}
    plant.deploy(document)
    plant.restart_meter()
    plant.upload("clicks/dt=2026-03-02/hour=00/a.parquet")
    return plant.tally


def test_t27_a_partition_costs_what_the_jobs_of_its_values_do() -> None:
    one, two, twelve = map(starting_values, (1, 2, 12))
    for tally, jobs in ((one, 1), (two, 2), (twelve, 12)):
        assert tally.calls["dynamodb:TransactWriteItems"] == jobs
        assert tally.calls["dynamodb:GetItem"] == one.calls["dynamodb:GetItem"] + 3 * (jobs - 1)
        assert tally.calls["dynamodb:BatchGetItem"] == one.calls["dynamodb:BatchGetItem"] * jobs + (jobs > 1)


@pytest.mark.parametrize("keys", ["day/region", "region/day"])
def test_t25_what_a_job_costs_that_asks_for_the_period_before(keys: str) -> None:
    """A list of each day, if the region is the last key. Otherwise a read for each region, and one that finds no
    further one; and a call for the partitions of each day."""
    document = app("day")
    document["schedules"]["all"]["incomplete"] = {"after": "6h"}
    listed, seen = Plant(*fresh_tables()), Plant(*fresh_tables())
    found = list[Tally]()
    for plant, values in ((listed, [f"r{number}" for number in range(9)]), (seen, "seen_last")):
        dataset = document["datasets"]["clicks"] | {"keys": keys.split("/"), "values": {"region": values}}
        dataset["period"] = {"each": "day", "format": "day=%Y-%m-%d"}
        plant.deploy(document | {"datasets": {"clicks": dataset}})
        with watched():
            for day, number in ((1, 9), (2, 1)):
                for region in range(number):
                    plant.restart_meter()
                    values_of = {"region": f"r{region}", "day": f"2026-03-{day:02}"}
                    plant.upload(f"clicks/{'/'.join(f'{key}={values_of[key]}' for key in keys.split('/'))}/a.parquet")
        found.append(plant.tally)
    more = found[1].calls - found[0].calls
    queries, batches = more["dynamodb:Query"], more["dynamodb:BatchGetItem"]
    assert (queries, batches) == ((2, 0) if keys == "day/region" else (9 + 1, 2))


@pytest.mark.parametrize("per", ["day", None])
def test_t27_a_partition_costs_the_same_for_any_list(per: str | None) -> None:
    """Of the values that have a job each, there are 24 or 1,000."""
    few, many = (of_values(count, per) for count in (24, 1_000))
    assert dict(few.calls) == dict(many.calls)
    assert (few.read_units, few.write_units) == (many.read_units, many.write_units)


def of_listed(count: int) -> Tally:
    """What a partition costs that joins the job of a day with so many values."""
    document, values = app("day"), [f"r{number:03}" for number in range(count)]
    dataset = document["datasets"]["clicks"]
    dataset |= {"keys": ["region", "day"], "period": {"each": "day", "format": "day=%Y-%m-%d"}}
    dataset["values"] = {"region": values}
    plant = Plant(*fresh_tables())
    plant.deploy(document)
    with watched():
        for value in values[:4]:
            plant.restart_meter()
            plant.upload(f"clicks/region={value}/day=2026-03-02/a.parquet")
    return plant.tally


def test_t25_a_list_in_a_dataset_costs_its_kilobytes() -> None:
    """A job has the list of its dataset: that of 1,000 values has 7 KB."""
    few, many = (of_listed(count) for count in (24, 1_000))
    assert dict(few.calls) == dict(many.calls)
    assert 0 < many.write_units - few.write_units <= 2 * 7
    assert 0 < many.read_units - few.read_units <= 2 * 7 / 4 + 1


def starting(each: str) -> Tally:
    """What a partition of this length costs that starts the jobs of its hours."""
    plant, document = Plant(*fresh_tables()), app("hour")
    document["datasets"]["clicks"]["period"] = PERIOD | {"each": each}
    plant.deploy(document)
    plant.restart_meter()
    plant.upload("clicks/dt=2026-03-02/hour=00/a.parquet")
    return plant.tally


def test_t27_a_partition_costs_what_its_jobs_do() -> None:
    """Each job after the first has one transaction of 11 units, and six reads."""
    one, two, twelve = map(starting, ("hour", "2h", "12h"))
    for tally, jobs in ((one, 1), (two, 2), (twelve, 12)):
        assert tally.calls["dynamodb:TransactWriteItems"] == jobs
        assert tally.write_units == one.write_units + 11 * (jobs - 1)
        assert tally.calls["dynamodb:GetItem"] == one.calls["dynamodb:GetItem"] + 3 * (jobs - 1)
        # And one that asks to which of several jobs the event was applied before.
        assert tally.calls["dynamodb:BatchGetItem"] == one.calls["dynamodb:BatchGetItem"] * jobs + (jobs > 1)
