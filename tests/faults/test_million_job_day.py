"""A day of a platform, with everything that goes wrong in one: none lost, none doubled (W11)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.faults.day import Day, Load


@pytest.fixture(autouse=True)
def without_a_log() -> Iterator[None]:
    """A line for each look at a job would be a gigabyte."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def test_w11_ninety_minutes_of_everything_lose_and_double_nothing() -> None:
    """A piece of that day: an outage of half an hour in its middle, deaths of Lambdas and of workers."""
    day = Day(Load(delivered=7, spark=3, pulled=2, dags=2, dag_every=4, minutes=90), deaths=30, seed=11)
    day.play()
    day.check()
    assert day.died > 10, "Lambdas died"
    assert day.worker_deaths > 0


@pytest.mark.long
def test_million_job_day() -> None:
    """A million jobs: 43,200 Spark runs, 2,160 runs of DAGs, 11,520 jobs of pull workers, and messages."""
    load = Load(delivered=650, spark=30, pulled=8, dags=3, dag_every=2)
    assert load.jobs >= 1_000_000
    day = Day(load, deaths=500, seed=11)
    day.play()
    day.check()
    assert day.died > 300
    assert day.worker_deaths > 20
