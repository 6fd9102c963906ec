"""Events of CloudWatch about alarms are read in the format that AWS documents; anything else is refused (T23)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.aws.alarm_events import MAX_REASON, change_of
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.alarms import AlarmChange
from tests.support import alarm_events


def test_t23_a_change_is_read_as_cloudwatch_writes_it() -> None:
    assert change_of(alarm_events.event()) == AlarmChange(
        alarm_events.NAME,
        alarm_events.ARN + alarm_events.NAME,
        "ALARM",
        "OK",
        alarm_events.REASON,
        alarm_events.AT_MILLIS,
    )


def test_t23_the_end_of_a_suppression_is_not_a_new_state() -> None:
    assert not change_of(alarm_events.suppression_ends()).is_new_state


def test_t23_a_change_without_a_previous_state_or_reason_is_read() -> None:
    event = alarm_events.event()
    del event["detail"]["previousState"], event["detail"]["state"]["reason"]
    change = change_of(event)
    assert (change.previous, change.reason, change.is_new_state) == (None, "", True)


def test_t23_a_reason_may_be_as_long_as_cloudwatch_allows() -> None:
    event = alarm_events.event()
    event["detail"]["state"]["reason"] = "x" * 5_000
    assert change_of(event).reason == "x" * MAX_REASON


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another source": lambda event: event.update({"source": "acme.cloudwatch"}),
    "another kind": lambda event: event.update({"detail-type": "CloudWatch Alarm Configuration Change"}),
    "no kind": lambda event: event.pop("detail-type"),
    "no resources": lambda event: event.pop("resources"),
    "an empty list of resources": lambda event: event.update(resources=[]),
    "no detail": lambda event: event.pop("detail"),
    "a detail that is none": lambda event: event.update(detail="ALARM"),
    "no name": lambda event: event["detail"].pop("alarmName"),
    "a name that is none": lambda event: event["detail"].update(alarmName=7),
    "an empty name": lambda event: event["detail"].update(alarmName=""),
    "a name that is too long": lambda event: event["detail"].update(alarmName="a" * 256),
    "a name that is no text of UTF-8": lambda event: event["detail"].update(alarmName="\ud800"),
    "no state": lambda event: event["detail"].pop("state"),
    "a state without a value": lambda event: event["detail"]["state"].pop("value"),
    "a state that is none": lambda event: event["detail"]["state"].update(value=None),
    "no timestamp": lambda event: event["detail"]["state"].pop("timestamp"),
    "a timestamp that is none": lambda event: event["detail"]["state"].update(timestamp="noon"),
    "a timestamp that is a number": lambda event: event["detail"]["state"].update(timestamp=7),
    "a state before that is none": lambda event: event["detail"].update(previousState="OK"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_t23_an_event_that_is_no_alarm_change_is_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    event = copy.deepcopy(alarm_events.event())
    change(event)
    with pytest.raises(SluiceError, match="expected an event CloudWatch Alarm State Change with"):
        change_of(event)
