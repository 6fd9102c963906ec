"""A constraint that is meaningless, or impossible for its target, is refused with the name of its field."""

from typing import Any

import pytest

from tests.support.kinds import CONSTRAINT_TYPES
from tests.web.conftest import Api
from tests.web.wrong import ONE, refused, schedule

DURATION = "expected a duration such as 90s, 1h30m, 2d or PT5M, from 1ms to 10 years, got "
CLOCK = "expected a time of day from 00:00 to 23:59, written HH:MM, got "
ABORT_OR_WAIT = "expected 'abort' or 'wait', got "
NOTHING = "expected a value, got nothing"


def slots(**more: Any) -> dict[str, Any]:
    return {"type": "concurrency", "max": 1, **more}


def delay(**more: Any) -> dict[str, Any]:
    return {"type": "delay", "after": "5m", **more}


def window(**more: Any) -> dict[str, Any]:
    return {"type": "time_window", "start": "22:00", "end": "06:00", **more}


def gap(**more: Any) -> dict[str, Any]:
    return {"type": "since_last_run", "at_least": "1h", **more}


def rate(**more: Any) -> dict[str, Any]:
    return {"type": "rate", "max": 1, "per": "hour", **more}


def fresh(**more: Any) -> dict[str, Any]:
    return {"type": "fresh", "workflows": ["refine"], "within": "1d", "on_unmet": "wait", **more}


def calendar(**more: Any) -> dict[str, Any]:
    return {"type": "calendar", **more}


def without(constraint: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in constraint.items() if key != name}


@pytest.mark.parametrize(
    ("constraint", "field", "message"),
    [
        (without(slots(), "max"), "max", NOTHING),
        (slots(max=0), "max", "expected greater than or equal to 1, got 0"),
        (slots(max=100_001), "max", "expected less than or equal to 100000, got 100001"),
        (slots(group="No"), "group", "expected a name, got 'No'"),
        (slots(on_unmet="panic"), "on_unmet", "expected 'abort', 'wait' or 'cancel_other', got 'panic'"),
        (slots(limit=2), "limit", "unknown field 'limit'"),
        (without(delay(), "after"), "after", NOTHING),
        (delay(after="soon"), "after", DURATION + "'soon'"),
        (delay(after=300), "after", "expected a duration such as 90s, 1h30m, 2d or PT5M, got 300"),
        (delay(since="then"), "since", "expected 'created' or 'met', got 'then'"),
        (delay(on_unmet="cancel_other"), "on_unmet", ABORT_OR_WAIT + "'cancel_other'"),
        (without(window(), "end"), "end", NOTHING),
        (window(end="22:00"), "end", "expected an end that differs from the start, got '22:00'"),
        (window(start="24:00"), "start", CLOCK + "'24:00'"),
        (window(start="22"), "start", CLOCK + "'22'"),
        (window(end="25:00"), "end", "expected a time of day from 00:00 to 24:00, written HH:MM, got '25:00'"),
        (window(zone="Mars"), "zone", "expected a time zone such as Europe/Paris or UTC, got 'Mars'"),
        (
            window(days=["sat", "Sun"]),
            "days.1",
            "expected 'mon', 'tue', 'wed', 'thu', 'fri', 'sat' or 'sun', got 'Sun'",
        ),
        (window(days="sat"), "days", "expected a list, got 'sat'"),
        (window(on_unmet="later"), "on_unmet", ABORT_OR_WAIT + "'later'"),
        (without(gap(), "at_least"), "at_least", NOTHING),
        (gap(at_least="soon"), "at_least", DURATION + "'soon'"),
        (gap(of="failure"), "of", "expected 'success' or 'any', got 'failure'"),
        (gap(on_unmet="cancel_other"), "on_unmet", ABORT_OR_WAIT + "'cancel_other'"),
        (without(rate(), "per"), "per", NOTHING),
        (rate(per="week"), "per", DURATION + "'week'"),
        (rate(max=0), "max", "expected greater than or equal to 1, got 0"),
        (rate(max=501), "max", "expected less than or equal to 500, got 501"),
        (without(fresh(), "on_unmet"), "on_unmet", NOTHING),
        (without(fresh(), "within"), "within", NOTHING),
        (fresh(workflows=[]), "workflows", "expected at least 1 item, got []"),
        (fresh(workflows=["refine"] * 21), "workflows", "expected at most 20 items, got ["),
        (fresh(workflows=["refine", "No"]), "workflows.1", "expected a name, or a full name with dots such as "),
        (fresh(workflows="refine"), "workflows", "expected a list, got 'refine'"),
        (fresh(within="soon"), "within", DURATION + "'soon'"),
        (calendar(only=["mon"], zone="Mars"), "zone", "expected a time zone such as Europe/Paris or UTC, got 'Mars'"),
        (
            calendar(only=["mon", "moonday"]),
            "only.1",
            "expected a date such as 2026-12-25, a day of every year such as ",
        ),
        (calendar(excluding=["02-30"]), "excluding.0", "expected a date such as 2026-12-25"),
        (
            calendar(only=["sat"], excluding=["sat"]),
            "excluding",
            "expected at least one day that is not excluded",
        ),
        (calendar(only=["mon"], on_unmet="later"), "on_unmet", ABORT_OR_WAIT + "'later'"),
    ],
)
def test_a_wrong_constraint_is_named_by_its_number_and_field(
    standing: Api, constraint: dict[str, Any], field: str, message: str
) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", constraints=[delay(), constraint]))
    assert error["code"] in ("invalid", "unknown_field")
    assert error["field"] == f"constraints.1.{field}"
    assert error["message"].startswith(message)


@pytest.mark.parametrize("constraint", [{}, 7, "concurrency", {"type": "moon"}, {"max": 1}, None])
def test_an_unknown_constraint_is_refused_naming_the_types(standing: Api, constraint: Any) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", constraints=[constraint]))
    assert (error["code"], error["field"]) == ("invalid", "constraints.0")
    kinds = ", ".join(CONSTRAINT_TYPES)
    assert error["message"] == f"expected an object whose type is one of {kinds}, got {constraint!r}"


def test_there_are_at_most_twenty_constraints(standing: Api) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", constraints=[delay()] * 21))
    assert error["field"] == "constraints"
    assert error["message"].startswith("expected at most 20 items, got [")


@pytest.mark.parametrize("constraint", [slots(), slots(group="heavy"), gap(), gap(of="any", on_unmet="wait")])
def test_c1_and_c4_need_a_target_whose_runs_can_be_followed(standing: Api, constraint: dict[str, Any]) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="notify", constraints=[constraint]))
    kind = constraint["type"]
    assert (error["code"], error["field"]) == ("invalid", "constraints.0")
    assert error["message"].startswith(f"expected a {kind} constraint only for a target with a lifecycle, got ")
    assert error["hint"] == "remove the constraint, or give the workflow a target whose runs can be followed"


@pytest.mark.parametrize(
    ("upstream", "code", "message"),
    [
        ("refnie", "unknown_reference", "expected an existing workflow, got 'demo.flights.refnie'"),
        ("other.refine", "unknown_reference", "expected an existing workflow, got 'demo.other.refine'"),
        ("notify", "invalid", "expected a workflow whose target reports the status of its runs, got "),
    ],
)
def test_c7_an_upstream_must_exist_and_report_its_success(
    standing: Api, upstream: str, code: str, message: str
) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(constraints=[delay(), fresh(workflows=["refine", upstream])]))
    assert (error["code"], error["field"]) == (code, "constraints.1")
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"zone": "Mars"}, "zone", "expected a time zone such as Europe/Paris or UTC, got 'Mars'"),
        ({"zone": None}, "zone", "expected text, got None"),
        ({"coalesce": "often"}, "coalesce", "expected true or false, got 'often'"),
        ({"pause_after_failures": 0}, "pause_after_failures", "expected greater than or equal to 1, got 0"),
        ({"pause_after_failures": 1_001}, "pause_after_failures", "expected less than or equal to 1000, got 1001"),
        ({"pause_after_failures": 3, "workflow": "notify"}, "pause_after_failures",
         "expected a target that reports how its runs end, got "),
    ],
)  # fmt: skip
def test_the_other_rules_of_a_schedule_are_checked_too(
    standing: Api, changed: dict[str, Any], field: str, message: str
) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean") | changed)
    assert (error["code"], error["field"]) == ("invalid", field)
    assert error["message"].startswith(message)
