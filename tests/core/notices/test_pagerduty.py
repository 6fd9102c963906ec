"""Notices as incidents of PagerDuty: what opens one, what ends it, and what its Events API v2 accepts (W9)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from chalicelib.core.definitions.notify import Notify
from chalicelib.core.errors import from_validation
from chalicelib.core.instants import HOUR, MINUTE, Instant
from chalicelib.core.notices import alerts, forms
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice
from tests.core.builders import NOON

TO = {
    "type": "http",
    "url": "https://events.pagerduty.com/v2/enqueue",
    "body_secrets": {"routing_key": {"ssm": "/sluice-target/demo/pagerduty"}},
}
RULE = {"on": ["failed", "missed_end", "data_late"], "form": "pagerduty", "to": TO}
RUN = "demo.flights.nightly.mm94mtc0.750b144f2374384b9822"

# https://developer.pagerduty.com/docs/send-alert-event; a resolve needs its key, and a trigger its payload.
TEXT = {"type": "string", "minLength": 1}
LINK = {
    "type": "object",
    "required": ["href"],
    "properties": {"href": TEXT | {"pattern": "^https?://"}, "text": TEXT},
    "additionalProperties": False,
}
PAYLOAD = {
    "type": "object",
    "required": ["summary", "source", "severity"],
    "properties": {
        "summary": TEXT | {"maxLength": 1024},
        "source": TEXT,
        "severity": {"enum": ["critical", "error", "warning", "info"]},
        "timestamp": TEXT | {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$"},
        "component": TEXT,
        "group": TEXT,
        "class": TEXT,
        "custom_details": {"type": "object"},
    },
    "additionalProperties": False,
}
EVENTS_V2 = Draft202012Validator(
    {
        "type": "object",
        "required": ["routing_key", "event_action"],
        "properties": {
            "routing_key": {"type": "string", "minLength": 32, "maxLength": 32},
            "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
            "dedup_key": TEXT | {"maxLength": 255},
            "payload": PAYLOAD,
            "client": TEXT,
            "client_url": TEXT | {"pattern": "^https?://"},
            "links": {"type": "array", "items": LINK},
            "images": {"type": "array"},
        },
        "additionalProperties": False,
        "if": {"properties": {"event_action": {"const": "trigger"}}},
        "then": {"required": ["payload"]},
        "else": {"required": ["dedup_key"]},
    }
)


def rule(**changed: Any) -> Notify:
    return Notify.model_validate({**RULE, **changed})


def trouble(at: Instant, run: str = "r1", what: str = "failed", **fields: Any) -> PendingNotice:
    made = PendingNotice("demo.flights.clean", what, run, "demo.flights.nightly", "disk full", at)
    return replace(made, **fields)


def success(began: Instant, run: str = "r9") -> PendingNotice:
    return trouble(began, run, "recovered", reason="")


def channel(notice: PendingNotice, **changed: Any) -> alerts.Channel:
    [found] = alerts.channels([rule(**changed)], notice).values()
    return found


def added(window: NoticeWindow | None, now: Instant, *due: PendingNotice) -> alerts.AlertStep:
    of = channel(trouble(0))
    return alerts.add_notices(due, of, window, now)


def opened() -> NoticeWindow:
    """An incident that was opened at noon."""
    step = added(None, NOON, trouble(NOON))
    assert step.window is not None and step.notice is not None and step.window.opened_at == NOON
    return step.window


def at_rest() -> NoticeWindow:
    window = opened()
    rested = alerts.close(window, window.until)
    assert rested.notice is None and rested.window is not None and alerts.at_rest(rested.window)
    assert rested.window.wake_at == rested.window.forgotten_at == window.until + alerts.FORGOTTEN
    assert alerts.close(rested.window, window.until + alerts.FORGOTTEN) == alerts.AlertStep(None)
    return rested.window


def sent(step: alerts.AlertStep, console: str | None = None) -> dict[str, Any]:
    """The event as it is sent, which PagerDuty accepts."""
    assert step.window is not None and step.notice is not None
    event = forms.written(replace(step.window, console=console), step.notice)
    assert isinstance(event, dict)
    EVENTS_V2.validate({**event, "routing_key": "0" * 32})
    return event


def test_w9_an_incident_has_the_schedule_and_the_kind_as_key() -> None:
    event = sent(added(None, NOON, trouble(NOON, RUN)), "https://console.example/")
    assert (event["event_action"], event["dedup_key"]) == ("trigger", "sluice/demo.flights.nightly/failed")
    assert event["payload"]["summary"] == "demo.flights.nightly failed: disk full"
    assert (event["payload"]["severity"], event["payload"]["group"]) == ("error", "demo.flights")
    link = {"href": f"https://console.example/open/{RUN}", "text": "demo.flights.nightly"}
    assert (event["links"], event["client_url"]) == ([link], "https://console.example/")
    assert channel(trouble(0, what="missed_end")).incident == "sluice/demo.flights.nightly/missed_end"
    late = trouble(0, "demo.sales@2026@demo.flights.nightly", "data_late")
    assert channel(late).incident == "sluice/demo.flights.nightly/data_late/demo.sales"
    node = trouble(0, schedule="demo.flights.dag~8f9e268e~load")
    assert channel(node).incident == "sluice/demo.flights.dag/load/failed", "the same after a change of the DAG"


def test_w9_an_event_keeps_the_limits_of_pagerduty() -> None:
    name = ".".join(["n" * 63, "a" * 63, "s" * 63]) + "~8f9e268e~" + "x" * 63
    due = [trouble(NOON + n, "r" * 300, schedule=name, reason="é" * 5_000, element=7) for n in range(40)]
    of = channel(due[0])
    event = sent(alerts.add_notices(due, of, None, NOON), "https://c.example/" + "p" * 480)
    assert len(json.dumps(event).encode()) < 512_000
    assert len(event["links"]) == 10
    other = channel(replace(due[0], schedule=name + "y"))
    assert len(of.incident or "") == len(other.incident or "") == 255
    assert of.incident != other.incident
    single = sent(alerts.add_notices(due[:1], of, None, NOON))
    assert len(single["payload"]["summary"]) == 1_024


def test_w9_repeats_join_the_incident_and_a_success_ends_it() -> None:
    window = added(opened(), NOON + MINUTE, trouble(NOON + MINUTE, "r2")).window
    assert window is not None
    again = alerts.close(window, window.until)
    event = sent(again)
    assert (event["event_action"], event["payload"]["custom_details"]["count"]) == ("trigger", 1)
    assert again.window is not None
    recovered = added(again.window, NOON + 8 * MINUTE, success(NOON + 7 * MINUTE)).window
    assert recovered is not None
    over = alerts.close(recovered, recovered.until)
    assert sent(over) == {"event_action": "resolve", "dedup_key": "sluice/demo.flights.nightly/failed"}
    assert over.window is not None
    assert alerts.close(over.window, over.window.until) == alerts.AlertStep(None), "nothing is left of it"


def test_w9_an_incident_at_rest_is_ended_at_once() -> None:
    woken = added(at_rest(), NOON + HOUR, success(NOON + HOUR - MINUTE))
    assert woken.notice is None and woken.window is not None and woken.window.wake_at == NOON + HOUR
    assert sent(alerts.close(woken.window, NOON + HOUR))["event_action"] == "resolve"


def test_w9_an_incident_at_rest_hears_of_a_further_failure() -> None:
    step = added(at_rest(), NOON + HOUR, trouble(NOON + HOUR, "r2"))
    assert sent(step)["payload"]["custom_details"]["since"] == "2026-03-02T13:00:00.000Z"
    assert step.window is not None and not alerts.at_rest(step.window)
    assert alerts.writes_of(at_rest()) == alerts.writes_of(None)
    assert alerts.rests_until([at_rest(), opened()], NOON) is None


@pytest.mark.parametrize(
    ("ends", "is_over"),
    [
        (success(NOON - 1), False),  # it began before the failure, and so shows nothing
        (success(NOON), True),
        (success(NOON - HOUR, "r1"), True),  # the run that was late has ended well
    ],
)
def test_w9_a_success_ends_what_came_before_it(ends: PendingNotice, is_over: bool) -> None:
    window = added(opened(), NOON + MINUTE, ends).window
    assert window is not None
    assert (alerts.close(window, window.until).notice is not None) == is_over


def test_w9_what_is_over_before_it_was_told_opens_nothing() -> None:
    assert added(None, NOON, trouble(NOON - HOUR), success(NOON - MINUTE)) == alerts.AlertStep(None)
    assert added(None, NOON, success(NOON - MINUTE)) == alerts.AlertStep(None)
    still = added(None, NOON, success(NOON - HOUR), trouble(NOON - MINUTE))
    assert sent(still)["event_action"] == "trigger"


def test_w9_a_rule_for_pagerduty_hears_of_what_ends_its_kinds() -> None:
    only_failed = rule(on=["failed"])
    assert (only_failed.told_as("recovered"), only_failed.told_as("data_fresh")) == (("failed",), ())
    both = rule(on=["failed", "data_late"])
    assert (both.told_as("recovered"), both.told_as("data_fresh")) == (("failed",), ("data_late",))
    plain = Notify.model_validate({"on": ["failed", "data_fresh"], "to": TO})
    assert (plain.told_as("recovered"), plain.told_as("data_fresh")) == ((), ("data_fresh",))


@pytest.mark.parametrize(
    ("wrong", "field", "told"),
    [
        ({"to": {name: TO[name] for name in ("type", "url")}}, "to.body_secrets", "the secret routing_key"),
        ({"to": TO | {"body_secrets": {"key": {"ssm": "/a"}}}}, "to.body_secrets", "the secret routing_key"),
        ({"to": TO | {"body_secrets": {"routing_key": "0" * 32}}}, "to.body_secrets.routing_key", "by reference"),
        ({"to": TO | {"body_secrets": {}}}, "to.body_secrets", "at least 1"),
        ({"to": TO | {"format": "cloudevents"}}, "to.format", "either a format or body_secrets"),
        ({"to": TO | {"method": "DELETE"}}, "to.method", "POST, PUT or PATCH"),
        ({"on": ["data_fresh"]}, "on", "something that opens an incident"),
    ],
)
def test_w9_a_rule_that_pagerduty_cannot_take_is_refused(wrong: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(ValidationError) as raised:
        rule(**wrong)
    error = from_validation(raised.value, Notify)
    assert error.field == field
    assert told in str(error)
    assert "0" * 32 not in f"{error} {error.hint}", "it may be the secret itself"
