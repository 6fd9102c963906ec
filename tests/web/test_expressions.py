"""In the API an expression is text or an object (T1). It is stored as text, and an error names its wrong part."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import Api
from tests.web.test_bad_input import CRON
from tests.web.wrong import ONE, WORKFLOW, refused, time


@pytest.mark.parametrize(
    ("expression", "stored"),
    [
        ({"hour": 5, "DayOfWeek": "mon-fri"}, "0 5 * * mon-fri"),
        ({"minute": "*"}, "* * * * *"),
        ("0 0 5 ? * 1-5", "0 5 * * mon-fri"),
        ("@daily", "0 0 * * *"),
        ("R/PT90M", "@every 1h30m"),
    ],
)
def test_t1_an_expression_is_stored_in_its_normal_form(api: Api, expression: Any, stored: str) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": expression})
    assert api.get(ONE)["trigger"]["expression"] == stored


def test_t1_an_equivalent_expression_does_not_change_a_schedule(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": {"hour": 5}})
    first = api.get(ONE)["version"]
    api.schedule("nightly", trigger={"type": "time", "expression": "0 0 5 * * ?"})
    assert api.get(ONE)["version"] == first


@pytest.mark.parametrize(
    ("expression", "code", "field", "message"),
    [
        ({"minut": 1}, "unknown_field", "trigger.expression.minut", "unknown field 'minut'"),
        ({"hour": True}, "invalid", "trigger.expression.hour", "expected a number, text such as '*/15' or 'mon-fri'"),
        ({"hour": 24}, "invalid", "trigger.expression", CRON + "'0 0 24 * * *'"),
        ({}, "invalid", "trigger.expression", "expected an object with at least one field such as minute or hour"),
        (5, "invalid", "trigger.expression", "expected text, or an object with fields such as minute and hour, got 5"),
        ("0 */90 * * * *", "invalid", "trigger.expression", CRON + "'0 */90 * * * *'"),
    ],
)
def test_t1_invalid_expression_is_refused_and_nothing_is_stored(
    api: Api, expression: Any, code: str, field: str, message: str
) -> None:
    error = refused(api, 400, "PUT", ONE, time(expression))
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"].startswith(message)


@pytest.mark.parametrize(("expression", "rate"), [({"minute": "*"}, 1_440), ({"hour": 5}, 1), ("R4/PT3S", 4)])
def test_t1_the_answer_to_an_expression_has_its_fires_per_day(api: Api, expression: Any, rate: int) -> None:
    api.schedule("nightly", trigger={"type": "time", "expression": expression})
    assert api.get(f"{ONE}/preview")["fires_per_day"] == rate


QUARTZ = (
    "'0 0 5 ? * 2-6' fires on tue-sat, because days of the week count from 0, Sunday; "
    "if they count from 1, as those of Quartz do, write mon-fri"
)


def test_an_expression_that_looks_like_quartz_has_a_note(api: Api) -> None:
    """Quartz counts days from 1, Sunday, so its Monday to Friday is Tuesday to Saturday here."""
    answer = api.put(ONE, time("0 0 5 ? * 2-6"))
    assert (answer["trigger"]["expression"], answer["notes"]) == ("0 5 * * tue-sat", [f"trigger.expression: {QUARTZ}"])
    leaf = {"type": "time", "expression": "0 0 5 ? * 2-6"}
    both = {"workflow": "notify", "trigger": {"type": "any", "triggers": [leaf]}}
    app = {"workflows": {"notify": WORKFLOW}, "schedules": {"both": both}}
    for query in ("?dry_run=true", ""):
        notes = api.put(f"/v1/namespaces/demo/apps/flights{query}", app)["notes"]
        assert notes == [f"schedules.both.trigger.triggers.0.expression: {QUARTZ}"]


@pytest.mark.parametrize(
    "expression", ["0 0 5 ? * mon-fri", "0 0 5 * * 2-6", "0 5 ? * 2-6", "0 0 5 ? * 0-4", "0 0 5 ? * *", "0 0 5 1 * ?"]
)
def test_an_expression_with_one_reading_has_no_note(api: Api, expression: str) -> None:
    assert "notes" not in api.put(ONE, time(expression))


def test_t2_the_daylight_saving_rule_is_two_fields_of_trigger(api: Api) -> None:
    rule = {"gap": "skip", "overlap": "both"}
    api.schedule("nightly", trigger={"type": "time", "expression": "30 1 * * *", "zone": "Europe/Paris", **rule})
    assert {name: api.get(ONE)["trigger"][name] for name in rule} == rule
    wrong = {"type": "time", "expression": "30 1 * * *", "gap": "before"}
    error = refused(api, 400, "PUT", ONE, {"workflow": "notify", "trigger": wrong})
    assert (error["field"], error["message"]) == ("trigger.gap", "expected 'after' or 'skip', got 'before'")
