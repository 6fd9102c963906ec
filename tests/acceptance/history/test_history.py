"""The kept facts of a run: its number, what it waited for, its billed resources and its cost (H1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from tests.acceptance.words import concurrency, day, event, on, partition, time
from tests.support.answers import views
from tests.support.fakes import FakeEmr
from tests.support.ledgers import LedgerBetween
from tests.support.world import EMR, World, flights

TWICE = {"target": EMR, "retries": {"attempts": 2, "delay": "1m"}}


def numbers(world: World, name: str) -> list[tuple[int, int]]:
    """Number and attempt of each run of a schedule, in the order of their claims."""
    return [(run.number, run.attempt) for run in world.runs(name)]


def test_h1_runs_of_a_workflow_have_growing_numbers(world: World) -> None:
    world.deploy(flights({"a": on(partition("flights"), "clean"), "b": on(partition("weather"), "clean")}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
        world.upload(day(number, "weather", "a.csv"))
        world.settle()
        world.pass_by("10s")
    assert (numbers(world, "a"), numbers(world, "b")) == ([(1, 1), (3, 1)], [(2, 1), (4, 1)])

    # An ended run keeps its number, and no later run gets it.
    world.finish()
    world.upload(day(3))
    world.settle()
    assert numbers(world, "a") == [(1, 1), (3, 1), (5, 1)]


def test_h1_each_workflow_counts_its_own_runs(world: World) -> None:
    world.deploy(flights({"a": on(partition("flights"), "clean"), "b": on(partition("weather"), "join")}))
    world.upload(day(1))
    world.settle()
    world.upload(day(1, "weather", "a.csv"))
    world.settle()
    assert (numbers(world, "a"), numbers(world, "b")) == ([(1, 1)], [(1, 1)])


def test_h1_attempts_of_a_run_share_its_number(world: World) -> None:
    world.deploy(flights({"a": on(partition("flights"), "clean")}, clean=TWICE))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "no space left")
    world.pass_by("2m")
    assert numbers(world, "a") == [(1, 1), (1, 2)]
    world.finish()
    world.upload(day(2))
    world.settle()
    assert numbers(world, "a")[2] == (2, 1)


def test_h1_a_queued_run_is_numbered_when_it_starts(world: World) -> None:
    world.deploy(flights({"a": on(partition("flights"), "clean", concurrency(1))}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert numbers(world, "a") == [(1, 1)]
    world.pass_by("1s")
    world.finish()
    world.settle()
    assert sorted(numbers(world, "a")) == [(1, 1), (2, 1)]


def test_h1_a_start_that_loses_its_number_tries_another_once(world: World) -> None:
    """Many starts of one workflow at the same moment: each takes its own number and continues with it."""
    claims = 0

    class OthersStart(LedgerBetween):
        def before(self, writes: Any) -> None:
            nonlocal claims
            if any(isinstance(write, AcquirePermit) and write.begins for write in writes):
                claims += 1
                self.inner.number("workflow:demo.flights.clean")  # another start, a moment before this one

    world.ports = replace(world.ports, ledger=OthersStart(world.ports.ledger))
    world.deploy(flights({"a": on(partition("flights"), "clean")}))
    world.upload(day(1))
    world.settle()
    assert (claims, numbers(world, "a")) == (2, [(2, 1)])


def test_h1_a_delivery_that_no_limit_counts_has_no_number(world: World) -> None:
    world.deploy(flights({"tell": on(time("@every 1m"), "notify")}))
    world.pass_by("2m")
    runs = world.runs("tell")
    assert runs and {run.number for run in runs} == {0}
    assert views.run_view(runs[0])["number"] is None


def test_h1_a_run_shows_what_it_waited_for(world: World) -> None:
    world.deploy(flights({"a": on(partition("flights"), "clean", concurrency(1))}))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    world.pass_by("20s")
    world.finish()
    world.settle()
    first, second = (views.run_view(run) for run in world.runs("a"))
    assert first["waited_for"] is None
    assert second["waited_for"].startswith("waits for a slot of workflow demo.flights.clean: 1 of 1 in use")


def test_h1_a_run_shows_what_emr_billed_and_what_that_costs(world: World) -> None:
    world.deploy(flights({"a": on(event("go"), "clean")}))
    world.post("go")
    world.settle()
    (emr,) = world.targets.emr.runs.values()
    emr.billed = (1_500, 6_000, 0)
    assert views.run_view(world.runs("a")[0])["billed"] is None
    world.finish()
    assert views.run_view(world.runs("a")[0])["billed"] == {
        "vcpu_hours": 1.5,
        "memory_gb_hours": 6.0,
        "storage_gb_hours": 0.0,
        "dpu_hours": 0.0,
        "scanned_gb": 0.0,
        "cost_usd": pytest.approx(1.5 * 0.052624 + 6 * 0.0057785, abs=1e-6),
    }


def test_h1_a_run_that_is_polled_shows_its_costs_too(world: World) -> None:
    world.deploy(flights({"a": on(event("go"), "clean")}))
    world.post("go")
    world.settle()
    (emr,) = world.targets.emr.runs.values()
    emr.state, emr.billed = "SUCCESS", (100, 400, 0)  # and its event never comes
    world.pass_by("30m")
    (run,) = world.runs("a")
    assert (run.state, run.billed) == ("SUCCEEDED", (100, 400, 0))


def test_h1_a_success_does_not_wait_for_its_costs(world: World) -> None:
    class Dumb(FakeEmr):
        def status(self, run: Run) -> RunUpdate | None:
            raise ConnectionError("throttled")

    world.deploy(flights({"a": on(event("go"), "clean")}))
    world.post("go")
    world.settle()
    dumb = Dumb(world.clock)
    dumb.runs = world.targets.emr.runs
    world.targets.emr = dumb
    world.finish()
    (run,) = world.runs("a")
    assert (run.state, run.billed) == ("SUCCEEDED", ())
    # No row waits for the bill, either: a target that only raises is polled twice more, and then no longer.
    world.pass_by("1h")
    (run,) = world.runs("a")
    assert (run.state, run.billed, run.wake_at, run.leases) == ("SUCCEEDED", (), None, 0)
