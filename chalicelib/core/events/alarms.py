"""Changes of CloudWatch alarms become events (T23)."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core import ids
from chalicelib.core.instants import Instant
from chalicelib.core.rows.event import Event
from chalicelib.core.triggers.cloudwatch_alarm import alarm_key


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """An alarm went into ``state`` at an instant. ``previous`` is None if CloudWatch names no earlier state."""

    alarm: str
    arn: str
    state: str
    previous: str | None
    reason: str
    at: Instant

    @property
    def is_new_state(self) -> bool:
        """Whether the state has changed. It has not in the event that ends the suppression of a composite alarm's
        actions."""
        return self.state != self.previous


def alarm_event(change: AlarmChange, now: Instant) -> Event:
    """The event that an alarm went into a state.

    Its id depends on the alarm, the state and the instant of the change, and not on the random id of EventBridge.
    """
    payload = {
        "alarm": change.alarm,
        "arn": change.arn,
        "state": change.state,
        "previous_state": change.previous,
        "reason": change.reason,
    }
    return Event(
        id=ids.event_id("cloudwatch_alarm", change.arn, change.state, change.at),
        kind="cloudwatch_alarm",
        key=alarm_key(change.alarm, change.state),
        instant=change.at,
        accepted_at=now,
        payload=payload,
    )
