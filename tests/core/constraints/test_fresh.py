"""Freshness of upstreams: what a schedule refers to, which events wake its jobs, and which upstreams are named (C7)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.constraints.constraint import Situation, Use
from chalicelib.core.instants import DAY, Instant, iso
from chalicelib.core.names import Names
from tests.core.builders import NAME, NOON, met, schedule


def fresh(*workflows: str, **fields: Any) -> Any:
    document = {"type": "fresh", "workflows": list(workflows), "within": "1d", "on_unmet": "wait", **fields}
    [made] = schedule(constraints=[document]).constraints
    return made


def situation(**successes: Instant | None) -> Situation:
    known = {f"demo.flights.{name}": at for name, at in successes.items()}
    return Situation(job=met(), workflow=NAME, namespace="demo", limit_states={}, successes=known, now=NOON)


def test_c7_a_put_checks_that_each_upstream_exists() -> None:
    made = fresh("demo.flights.raw", "demo.flights.clean")
    assert list(made.references()) == [Use("workflow", "demo.flights.raw"), Use("workflow", "demo.flights.clean")]
    assert made.upstreams() == ("demo.flights.raw", "demo.flights.clean")


def test_c7_a_success_of_any_upstream_wakes_a_job_that_waits() -> None:
    made = fresh("raw", "other.clean").resolve(Names("demo", "flights", "UTC", NOON))
    assert made.wake_keys(NAME) == ("status:demo.flights.raw:COMPLETED", "status:demo.other.clean:COMPLETED")


@pytest.mark.parametrize(
    ("successes", "stale"),
    [
        ({"raw": NOON, "clean": NOON - DAY}, []),
        ({"raw": NOON, "clean": NOON - DAY - 1}, [f"clean last succeeded at {iso(NOON - DAY - 1)}"]),
        ({"raw": None, "clean": NOON}, ["raw has not succeeded yet"]),
        ({}, ["raw has not succeeded yet", "clean has not succeeded yet"]),
        ({"raw": 0, "clean": None}, [f"raw last succeeded at {iso(0)}", "clean has not succeeded yet"]),
    ],
)
def test_c7_each_upstream_that_is_not_fresh_is_named(successes: dict[str, Any], stale: list[str]) -> None:
    made = fresh("demo.flights.raw", "demo.flights.clean")
    found = made.evaluate(situation(**successes))
    assert found.met is (stale == [])
    why = "; ".join(f"demo.flights.{each}" for each in stale) or "met"
    assert found.why.text == f"demo.flights.raw, demo.flights.clean succeeded within 1d, else wait: {why}"
