"""A day of a platform with all common failures: no job is lost, none is doubled (W11)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.tables import items
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer
from tests.faults.day import Day, DayEmr, DayQueue, Load


@pytest.fixture(autouse=True)
def without_a_log() -> Iterator[None]:
    """The log would have a line for each check of a job, a gigabyte in all."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def test_w11_ninety_minutes_of_full_load_lose_and_double_nothing() -> None:
    """A part of that day: an outage of half an hour in its middle, killed Lambdas and crashed workers."""
    day = Day(Load(delivered=7, spark=3, pulled=2, dags=2, dag_every=4, minutes=90), deaths=30, seed=11)
    day.play()
    day.check()
    assert day.died > 10, "Lambdas died"
    assert day.worker_deaths > 0


class DoubleQueue(DayQueue):
    """Accepts each message twice, although no Lambda was killed."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        super().start(run, context)
        return super().start(run, context)


class ForgetfulEmr(DayEmr):
    """Starts a second run for the first call, as an EMR that ignores tokens would at a repeated call."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        if not self.runs:
            super().start(replace(run, request=replace(run.request, client_token="another")), context)
        return super().start(run, context)


def small_day() -> Day:
    return Day(Load(delivered=2, spark=1, pulled=1, dags=1, dag_every=2, minutes=4), deaths=0, seed=11)


def fails(day: Day, why: str | None = None) -> None:
    with pytest.raises(AssertionError, match=why):
        day.check()


def test_w11_the_check_detects_a_doubled_message_and_run() -> None:
    for queue, emr, why in (
        (DoubleQueue, DayEmr, "came again, and nobody died over it"),
        (DayQueue, ForgetfulEmr, "a start too many, or too few"),
    ):
        day = small_day()
        day.targets.queue = day.queue = queue(day.clock)
        day.targets.emr = day.emr = emr(day.clock)
        day.play()
        fails(day, why)


def test_w11_the_check_reads_every_message_run_and_lease() -> None:
    """Falsify the rows of a correct day, one fact at a time. The check detects each."""
    day = small_day()
    day.play()
    day.check()
    table = day.tables._tables["RunsTable"]
    attempts = {key: item for key, item in table.items.items() if key[1].startswith("A#")}
    assert len(attempts) >= day.load.jobs
    for key, item in attempts.items():
        table.replace(key, None)
        fails(day)
        table.replace(key, item)
        run = items.from_item(Run, item)
        twin = items.to_item(replace(run, run_id=f"{run.run_id}0"), 1, 1)
        table.replace((twin["pk"]["S"], twin["sk"]["S"]), twin)
        fails(day)
        table.replace((twin["pk"]["S"], twin["sk"]["S"]), None)
    for run_id in list(day.queue.came):
        day.queue.came[run_id] *= 3
        fails(day, "came again, and nobody died over it")
        day.queue.came[run_id] = 1
    for lease in list(day.leased):
        day.leased[lease] += 1
        fails(day, "two workers at one attempt")
        day.leased[lease] = 1
    for run in day.emr.runs.values():
        ended, run.state = run.state, "CANCELLED"
        fails(day, "ended in another way at EMR")
        run.state = ended
    day.check()


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
