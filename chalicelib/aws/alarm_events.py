"""Events of CloudWatch about its alarms, as EventBridge delivers them (T23).

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import invalid
from chalicelib.core.events.alarms import AlarmChange
from chalicelib.core.instants import parse_instant
from chalicelib.core.triggers.cloudwatch_alarm import is_alarm_name

SOURCE = "aws.cloudwatch"  # only AWS can put an event with a source that begins with `aws.`
DETAIL_TYPE = "CloudWatch Alarm State Change"
MAX_REASON = 1_023  # characters, as StateReason has at most


def change_of(event: Mapping[str, Any]) -> AlarmChange:
    """The change of an alarm in an event. Raises ``invalid`` for any other event."""
    try:
        if event["source"] != SOURCE or event["detail-type"] != DETAIL_TYPE:
            raise ValueError("another event")
        detail, arn = event["detail"], event["resources"][0]
        name, state = detail["alarmName"], detail["state"]
        previous = (detail.get("previousState") or {}).get("value")
        reason = str(state.get("reason") or "")[:MAX_REASON]
        texts = [name, arn, state["value"], *([] if previous is None else [previous])]
        if not all(isinstance(text, str) and text.encode() for text in texts) or not is_alarm_name(name):
            raise ValueError("no texts")
        return AlarmChange(name, arn, state["value"], previous, reason, parse_instant(state["timestamp"]))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        expected = (
            f"an event {DETAIL_TYPE} with resources[0], detail.alarmName, detail.state.value and detail.state.timestamp"
        )
        raise invalid("detail", expected, event) from error
