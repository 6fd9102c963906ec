"""Constraints as documents: the default effect of each when unmet, what is refused, and the texts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors, zones
from chalicelib.core.constraints.constraint import Situation
from chalicelib.core.constraints.rate import MAX_RATE
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.core.builders import NOON, PARTITION, met, schedule, sent

DELAY: dict[str, Any] = {"type": "delay", "after": "10m"}
WINDOW: dict[str, Any] = {"type": "time_window", "start": "22:00", "end": "06:00"}
GAP: dict[str, Any] = {"type": "since_last_run", "at_least": "5m"}
RATE: dict[str, Any] = {"type": "rate", "max": 3, "per": "hour"}
FRESH: dict[str, Any] = {"type": "fresh", "workflows": ["raw"], "within": "1d", "on_unmet": "wait"}
CALENDAR: dict[str, Any] = {"type": "calendar", "only": ["mon"]}
SLOTS: dict[str, Any] = {"type": "concurrency", "max": 2}


def made(document: dict[str, Any]) -> Any:
    [constraint] = schedule(constraints=[document]).constraints
    return constraint


def refused(document: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        sent(constraints=[document])
    return errors.from_validation(caught.value)


@pytest.mark.parametrize(
    ("document", "on_unmet"),
    [(SLOTS, "abort"), (DELAY, "wait"), (WINDOW, "wait"), (GAP, "abort"), (RATE, "wait"), (CALENDAR, "wait")],
)
def test_c8_each_constraint_has_a_default_for_when_it_is_unmet(document: dict[str, Any], on_unmet: str) -> None:
    assert made(document).on_unmet == on_unmet
    other = "wait" if on_unmet == "abort" else "abort"
    assert made(document | {"on_unmet": other}).on_unmet == other


def test_c7_freshness_needs_an_explicit_on_unmet() -> None:
    assert refused({key: value for key, value in FRESH.items() if key != "on_unmet"}).field == "constraints.0.on_unmet"


@pytest.mark.parametrize("document", [DELAY, WINDOW, GAP, RATE, FRESH, CALENDAR])
def test_c1_only_a_limit_of_runs_can_cancel_older_runs(document: dict[str, Any]) -> None:
    assert made(SLOTS | {"on_unmet": "cancel_other"}).on_unmet == "cancel_other"
    assert refused(document | {"on_unmet": "cancel_other"}).field == "constraints.0.on_unmet"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"type": "weather"}, ""),
        (SLOTS | {"max": 0}, "max"),
        (SLOTS | {"group": "No Name"}, "group"),
        (DELAY | {"after": "0s"}, "after"),
        (DELAY | {"since": "yesterday"}, "since"),
        (WINDOW | {"start": "22"}, "start"),
        (WINDOW | {"start": "24:00"}, "start"),
        (WINDOW | {"end": "25:00"}, "end"),
        (WINDOW | {"end": "22:00"}, "end"),
        (WINDOW | {"zone": "Mars/Base"}, "zone"),
        (WINDOW | {"days": ["someday"]}, "days.0"),
        (GAP | {"at_least": "soon"}, "at_least"),
        (GAP | {"of": "failure"}, "of"),
        (RATE | {"max": 0}, "max"),
        (RATE | {"max": MAX_RATE + 1}, "max"),
        (RATE | {"per": "fortnight"}, "per"),
        (FRESH | {"workflows": []}, "workflows"),
        (FRESH | {"workflows": ["a.b.c.d"]}, "workflows.0"),
        (FRESH | {"within": "0s"}, "within"),
    ],
)
def test_a_contradictory_constraint_is_refused_with_its_path(document: dict[str, Any], field: str) -> None:
    error = refused(document)
    assert error.field == f"constraints.0.{field}".removesuffix(".")
    assert error.code == "invalid"


def test_c3_a_window_may_end_with_the_day() -> None:
    assert made(WINDOW | {"end": "24:00"}).window.end == "24:00"


@pytest.mark.parametrize(("per", "span"), [("hour", HOUR), ("day", DAY), ("90m", 90 * MINUTE), ("PT1H", HOUR)])
def test_c5_a_rate_is_per_hour_per_day_or_per_any_span(per: str, span: int) -> None:
    assert made(RATE | {"per": per}).span == span


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (SLOTS, "at most 2 runs of the workflow at a time, else abort"),
        (SLOTS | {"group": "spark", "on_unmet": "cancel_other"},
         "at most 2 runs of group spark at a time, else cancel other"),
        (DELAY, "10m after the job was created, else wait"),
        (DELAY | {"since": "met", "on_unmet": "abort"}, "10m after its trigger was met, else abort"),
        (WINDOW | {"zone": "Asia/Kolkata", "days": ["sun", "sat"]},
         "between 22:00 and 06:00 in Asia/Kolkata, on sat and sun, else wait"),
        (GAP, "5m since the last successful run started, else abort"),
        (GAP | {"of": "any"}, "5m since the last run started, else abort"),
        (RATE, "at most 3 runs per hour, else wait"),
        (FRESH | {"workflows": ["raw", "x.y"]}, "raw, x.y succeeded within 1d, else wait"),
    ],
)  # fmt: skip
def test_c14_a_constraint_is_described_as_a_rule(document: dict[str, Any], words: str) -> None:
    assert made(document).rule == words


def test_constraint_names_and_zones_default_to_those_of_schedule() -> None:
    document = {
        "workflow": "clean",
        "trigger": PARTITION,
        "zone": "Europe/Paris",
        "constraints": [WINDOW, WINDOW | {"zone": "UTC"}, FRESH | {"workflows": ["raw", "other.raw", "a.b.c"]}],
    }
    inherited, own, fresh = Schedule.model_validate(document).resolved("demo", "flights").constraints
    assert (inherited.window.zone, own.window.zone) == ("Europe/Paris", "UTC")
    assert fresh.workflows == ("demo.flights.raw", "demo.other.raw", "a.b.c")


def test_c7_an_upstream_that_is_named_twice_wakes_once() -> None:
    both = schedule(constraints=[FRESH | {"workflows": ["a.b.c", "a.b.d"]}, FRESH | {"workflows": ["a.b.c"]}])
    assert both.wake_keys == ("status:a.b.c:COMPLETED", "status:a.b.d:COMPLETED")


def test_c8_failure_of_an_active_run_wakes_job_that_waits_for_it() -> None:
    ends = ("status:demo.flights.clean:FAILED", "status:demo.flights.clean:KILLED")
    assert schedule(constraints=[GAP | {"on_unmet": "wait"}]).wake_keys == ends
    assert schedule(constraints=[GAP]).wake_keys == ()


def test_a_schedule_has_at_most_twenty_constraints() -> None:
    assert len(schedule(constraints=[DELAY] * 20).constraints) == 20
    with pytest.raises(ValidationError):
        schedule(constraints=[DELAY] * 21)


@pytest.mark.parametrize("document", [WINDOW, CALENDAR | {"on_unmet": "abort"}])
def test_a_zone_without_rules_lets_the_job_wait_for_an_hour(document: dict[str, Any]) -> None:
    stored = made(document | {"zone": "Mars/Base"})
    condition = stored.evaluate(Situation(met(), "demo.flights.clean", "demo", {}, {}, NOON))
    assert (condition.met, condition.waits, condition.until) == (False, True, NOON + HOUR)
    assert condition.why.text.endswith(f": {zones.unknown('Mars/Base')}")
