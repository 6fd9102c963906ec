"""Load (C6): a job waits for a low load, of a pool or of an external measurement."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.targets.answers import NoAnswer
from chalicelib.flow.definitions import store
from tests.acceptance.words import day
from tests.support.answers import explain
from tests.support.clock import NOON
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

CPU = {"cloudwatch": {"namespace": "AWS/RDS", "metric": "CPUUtilization", "dimensions": {"DBInstance": "lake"}}}


def load(of: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "load", "of": of, **fields}


def waiting_for(*constraints: dict[str, Any], value: Any = 0.9, **schedules: Any) -> World:
    world = World()
    world.targets.load = value
    pooled = {"heavy": {"target": EMR, "pool": "p"}}
    document = flights({"a": partitions(by=["day"], constraints=list(constraints)), **schedules}, **pooled)
    world.deploy({**document, "pools": {"p": {"size": 4}}})
    world.upload(day(1))
    world.settle()
    return world


def test_c6_a_job_waits_for_a_metric_and_why_shows_last_reading() -> None:
    world = waiting_for(load(CPU, below=0.7, recheck="2m"))
    assert world.runs("a") == []
    [job] = world.jobs("a")
    rule = "CPUUtilization of AWS/RDS is below 0.7, else wait"
    assert (
        job.reason.text
        == f"{rule}: the value is 0.9 at 2026-03-02T12:00:00.000Z; measured again at 2026-03-02T12:02:00.000Z"
    )
    assert explain.why_job(world.ports, job)["why"] == job.reason.text
    assert world.targets.measured[0]["cloudwatch"]["dimensions"] == {"DBInstance": "lake"}

    world.targets.load = 0.2
    world.pass_by("1m59s")
    assert world.runs("a") == []
    world.pass_by("2s")
    assert [run.claimed_at for run in world.runs("a")] == [NOON + 2 * MINUTE]


@pytest.mark.parametrize("below", [0.7, 1e17, -1e-9])
def test_c6_a_load_is_measured_however_large_its_bound_is(below: float) -> None:
    """A metric of bytes may have a bound of which 1 less is the same number."""
    world = waiting_for(load(CPU, below=below), value=2 * below if below > 0 else 0)
    assert len(world.targets.measured) == 1
    world.targets.load = below / 2 if below > 0 else 2 * below
    world.pass_by("61s")
    assert len(world.runs("a")) == 1


def test_c6_between_two_readings_a_check_measures_nothing() -> None:
    world = waiting_for(load(CPU, below=0.7, recheck="10m"))
    for number in (2, 3):
        world.upload(day(number))
        world.tick()
    assert len(world.targets.measured) == 1 + 2, "each job of another day asks once"
    world.pass_by("10m")
    assert len(world.targets.measured) == 6


def test_c6_nothing_is_measured_while_another_condition_is_unmet() -> None:
    night = {"type": "time_window", "start": "22:00", "end": "06:00"}
    world = waiting_for(night, load({"subnet": "subnet-0a1b2c3d"}, at_least=50), value=60)
    world.pass_by("1h")
    assert world.targets.measured == []
    world.pass_by("9h1m")
    assert len(world.runs("a")) == 1
    assert world.targets.measured == [{"subnet": "subnet-0a1b2c3d"}]


def test_c6_a_pool_is_measured_from_its_limit_row() -> None:
    quiet = partitions(workflow="heavy", dataset="weather", by=["day"])
    world = World()
    low = partitions(by=["day"], constraints=[load({"pool": "p"}, below=0.5)])
    document = flights({"a": low, "heavy": quiet}, heavy={"target": EMR, "pool": "p"})
    world.deploy({**document, "pools": {"p": {"size": 4}}})
    for number in (1, 2):
        world.upload(day(number, "weather", "x.csv"))
    world.settle()
    world.upload(day(1))
    world.settle()
    [job] = world.jobs("a")
    assert job.reason.text.startswith("the share of pool demo.p in use is below 0.5, else wait: the value is 0.5 at")
    world.finish()
    world.pass_by("1m1s")
    assert len(world.runs("a")) == 1
    assert world.targets.measured == []
    with pytest.raises(SluiceError, match=r"used by schedule demo\.flights\.a"):
        store.delete(world.ports, "pool", "demo.p")


def test_c6_a_load_that_cannot_be_measured_waits_with_backoff() -> None:
    world = waiting_for(load(CPU, below=0.7, on_unmet="abort"), value=NoAnswer("throttled"))
    assert world.jobs("a")[0].reason.text.endswith(
        "the measurement failed: throttled; measured again at 2026-03-02T12:01:00.000Z"
    )
    world.pass_by("2h")
    assert 5 <= len(world.targets.measured) <= 9
    world.targets.load = 0.9
    world.pass_by("1h1m")
    assert world.jobs("a") == []
    assert [record.kind for record in world.records("a")] == ["ABORTED"]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (load(CPU), "either below or at_least, got 'neither'"),
        (load({}, below=1), "one of pool, emr_application, cloudwatch and subnet"),
        (load({"pool": "q"}, below=1), "expected an existing pool, got 'demo.q'"),
        (load(CPU, below=1, recheck="1s"), "from 10s to 1d"),
    ],
)
def test_c6_a_load_that_cannot_be_measured_is_refused_at_put(constraint: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        waiting_for(constraint)
