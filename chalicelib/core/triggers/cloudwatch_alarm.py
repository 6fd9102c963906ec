"""The leaf ``cloudwatch_alarm``: an alarm of the account that goes into a state (T23)."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field, field_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.documents import ONCE_EACH
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant
from chalicelib.core.names import Names
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers.leaf import Count, GatheringLeaf, Given, GivenType, since

MAX_NAME = 255  # characters; in UTF-8 at most 1,020 bytes, and the partition key of a table may have 2,048
NO_CONTROL = r"[^\x00-\x1f\x7f]+"  # UTF-8 without the control characters of ASCII
State = Literal["ALARM", "OK", "INSUFFICIENT_DATA"]

_ARN = re.compile(r"arn:[^:]*:cloudwatch:[^:]*:[^:]*:alarm:(.+)")


def alarm_key(alarm: str, state: str) -> str:
    """The event key. No state has a colon, so two alarms never share a key, even if their names have colons."""
    return f"alarm:{alarm}:{state}"


def is_alarm_name(name: str) -> bool:
    """Whether CloudWatch accepts the text as the name of an alarm.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"""
    return len(name) <= MAX_NAME and re.fullmatch(NO_CONTROL, name) is not None


def _is_no_arn(name: str) -> str:
    if (arn := _ARN.fullmatch(name)) is not None:
        raise invalid("", "the name of an alarm", name, f"write the name alone: {arn[1]}")
    return name


AlarmName = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, pattern=f"^{NO_CONTROL}$"), AfterValidator(_is_no_arn)
]


class GivenAlarm(Given):
    type: Literal["cloudwatch_alarm"]
    alarm: AlarmName
    state: State = "ALARM"

    def as_event(self, event_id: str, names: Names, at: Instant) -> Event:
        payload = {"alarm": self.alarm, "state": self.state}
        return Event(event_id, "cloudwatch_alarm", alarm_key(self.alarm, self.state), at, at, payload=payload)

    def describe(self) -> str:
        return f"alarm '{self.alarm}' went to {self.state}"


class CloudWatchAlarmTrigger(GatheringLeaf):
    """A CloudWatch alarm of the account and region of Sluice goes into ``state``, or into one of several, ``count``
    times (T23). An alarm belongs to the account, so schedules of every namespace may wait for it."""

    type: Literal["cloudwatch_alarm"]
    alarm: AlarmName
    state: Annotated[tuple[State, ...], Field(min_length=1), ONCE_EACH] = ("ALARM",)
    count: Count = 1

    given: ClassVar[GivenType | None] = GivenAlarm

    @field_validator("state", mode="before", json_schema_input_type=State | Annotated[list[State], Field(min_length=1)])
    @classmethod
    def _one_or_several(cls, state: Any) -> Any:
        if not isinstance(state, str):
            return state
        if state not in get_args(State):
            raise invalid("", f"{', '.join(get_args(State))}, or a list of these", state)
        return (state,)

    def event_keys(self) -> tuple[str, ...]:
        return tuple(alarm_key(self.alarm, state) for state in self.state)

    def named(self) -> tuple[Named, ...]:
        return (Named("alarms", self.alarm, "alarm"),)

    @classmethod
    def event_fields(cls, event: Event) -> dict[str, Any]:
        known = event.payload or {}
        return {name: known.get(name) for name in ("alarm", "arn", "state", "previous_state", "reason")}

    def describe(self) -> str:
        return self._rule("going", self.needed)

    def missing(self, progress: Progress | None) -> str:
        return self._rule("to go", self.lacking(progress))

    def arrived(self, progress: Progress) -> str:
        return f"{self._rule('went', progress.count)} {since(progress)}"

    @property
    def nothing(self) -> str:
        return "no change of the alarm has arrived"

    def noun(self) -> str:
        return f"change of alarm '{self.alarm}' to {self._either()}"

    def _rule(self, verb: str, count: int) -> str:
        times = "" if count == 1 else f" {count} times"
        return f"alarm '{self.alarm}' {verb} to {self._either()}{times}"

    def _either(self) -> str:
        return " or ".join(self.state)
