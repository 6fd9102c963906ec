"""Changes of alarms as events: one event for each change, even if the change is delivered again (T23)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.events.alarms import AlarmChange, alarm_event
from chalicelib.core.jobs.gather import correlate
from chalicelib.core.rows.event import Event
from tests.core.builders import NOON

CHANGE = AlarmChange("cpu", "arn:aws:cloudwatch:us-east-1:1:alarm:cpu", "ALARM", "OK", "too hot", NOON)


def test_t23_a_change_becomes_an_event_of_its_alarm_and_state() -> None:
    assert alarm_event(CHANGE, NOON + 5) == Event(
        id=alarm_event(CHANGE, NOON).id,
        kind="cloudwatch_alarm",
        key="alarm:cpu:ALARM",
        instant=NOON,
        accepted_at=NOON + 5,
        payload={"alarm": "cpu", "arn": CHANGE.arn, "state": "ALARM", "previous_state": "OK", "reason": "too hot"},
    )


@pytest.mark.parametrize("other", [{"at": NOON + 1}, {"state": "OK"}, {"arn": f"{CHANGE.arn}2"}])
def test_t23_another_change_is_another_event(other: dict[str, Any]) -> None:
    assert alarm_event(replace(CHANGE, **other), NOON).id != alarm_event(CHANGE, NOON).id


@pytest.mark.parametrize("same", [{"reason": "it is 99"}, {"previous": None}])
def test_t23_other_text_about_a_change_makes_no_other_event(same: dict[str, Any]) -> None:
    assert alarm_event(replace(CHANGE, **same), NOON + 60_000).id == alarm_event(CHANGE, NOON).id


def test_t23_a_repeated_state_is_no_change() -> None:
    assert CHANGE.is_new_state
    assert replace(CHANGE, previous=None).is_new_state
    assert not replace(CHANGE, previous="ALARM").is_new_state


def test_t19_a_change_has_its_alarm_for_correlation() -> None:
    assert correlate(("alarm",), alarm_event(CHANGE, NOON)) == {"alarm": "cpu"}
