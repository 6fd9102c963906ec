"""What a schedule costs of which thousands of periods wait, each for a customer of its own: a partition, a tick and a
list cost the same, however many there are (T25)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.cost.plant import Plant, fresh_tables
from benchmarks.cost.tally import Tally
from chalicelib.core.instants import MINUTE
from chalicelib.flow.views import explain, lists
from tests.support.permissions import watched

NAME = "demo.flights.all"
APP: dict[str, Any] = {
    "datasets": {
        "clicks": {"bucket": "lake", "prefix": "clicks/", "keys": ["customer", "dt", "hour"],
                   "period": {"each": "8h", "format": "dt=%Y-%m-%d/hour=%H"}},
    },
    "workflows": {"sum": {"target": {"type": "emr_serverless", "entry_point": "s3://code/sum.py"}}},
    "schedules": {"all": {"workflow": "sum", "enabled": True, "per": "day", "by": ["customer"],
                          "trigger": {"type": "partition", "dataset": "clicks", "of": "period"}}},
}  # fmt: skip


class Customers:
    """So many customers, each of whose days waits for two of its three partitions."""

    def __init__(self, count: int) -> None:
        self.plant = Plant(*fresh_tables())
        self.plant.deploy(APP)
        for number in range(count):
            self.upload(number, "00")

    def upload(self, customer: int, hour: str) -> None:
        self.plant.upload(f"clicks/customer=c{customer:06}/dt=2026-03-02/hour={hour}/a.parquet")

    def cost(self, act: Callable[[], object]) -> tuple[dict[str, int], float, float]:
        self.plant.restart_meter()
        act()
        tally: Tally = self.plant.tally
        return dict(tally.calls), tally.read_units, tally.write_units


ACTS: dict[str, Callable[[Customers], object]] = {
    "a partition that joins a day": lambda made: made.upload(1, "08"),
    "a partition that begins a day": lambda made: made.upload(999_999, "00"),
    "a partition that completes a day": lambda made: made.upload(1, "16"),
    "a partition that comes twice": lambda made: made.upload(2, "00"),
    "the jobs of the schedule": lambda made: lists.jobs_of_schedule(made.plant.ports, NAME, 100, None),
    "the jobs of the namespace": lambda made: lists.jobs_of_namespace(made.plant.ports, "demo", 100, None),
    "why the schedule waits": lambda made: explain.why_schedule(made.plant.ports, NAME),
}


def costs(count: int) -> dict[str, Any]:
    with watched():  # the meter reads rows that no Lambda reads
        made = Customers(count)
        found = {name: made.cost(lambda act=act: act(made)) for name, act in ACTS.items()}
        made.plant.pass_by(5 * MINUTE)  # the day that is complete runs
        return {**found, "five minutes": made.cost(lambda: made.plant.pass_by(5 * MINUTE))}


@pytest.mark.parametrize("many", [450, pytest.param(10_000, marks=pytest.mark.long)])
def test_t25_many_periods_that_wait_cost_as_few(many: int) -> None:
    few, found = costs(150), costs(many)  # both more than a page of a list
    assert {name for name in few if few[name] != found[name]} == set(), (few, found)
