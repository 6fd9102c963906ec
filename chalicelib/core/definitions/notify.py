"""The rules of a workflow, a schedule or a DAG for notices to people (W9, H5).

A notice is a message, so it has tries and dead letters as any delivery has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from chalicelib.core.documents import ONCE_EACH, Duration, Sparse, check_zone, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, Millis, duration
from chalicelib.core.targets.registry import AnyTarget
from chalicelib.core.targets.urls import check_url
from chalicelib.core.time.windows import DAYS, Day, parse_clock

ConsoleUrl = Annotated[str, Field(max_length=500), AfterValidator(check_url)]
What = Literal["failed", "aborted", "missed_start", "missed_end", "data_late", "data_fresh"]
Form = Literal["slack", "teams", "pagerduty", "mail"]

RECOVERED = "recovered"  # what a pending notice says of a run that succeeded; no rule names it
# What ends an incident of PagerDuty, and of which kinds. A rule with one of these kinds gets it without naming it.
ENDS: Final[Mapping[str, tuple[What, ...]]] = {
    RECOVERED: ("failed", "aborted", "missed_start", "missed_end"),
    "data_fresh": ("data_late",),
}
ROUTING_KEY = "routing_key"  # the field of the body in which PagerDuty expects its key

_DAY = 24 * 60  # minutes
LEAST_GAP = 15  # minutes between quiet hours; notices are sent within the first of them

GroupSpan = Annotated[Duration, spanning(MINUTE, DAY, "a group from 1m to 1d", "leave it out for 5m")]


class QuietHours(Sparse):
    """Hours in which a rule sends nothing: what comes in them is sent at their end, as one notice.

    They begin at ``from`` on each of ``days`` (none: every day) and may span midnight. Events of the kinds ``urgent``
    are sent at once all the same."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)
    omitted: ClassVar[Collection[str]] = ("days", "urgent")

    start: str = Field(alias="from")
    to: str
    zone: str = "UTC"
    days: Annotated[tuple[Day, ...], ONCE_EACH] = ()
    urgent: Annotated[tuple[What, ...], ONCE_EACH] = ()

    @model_validator(mode="after")
    def _ends(self, info: ValidationInfo) -> QuietHours:
        parse_clock(self.start, "from")
        parse_clock(self.to, "to", is_end=True)
        check_zone(self.zone, info)
        if self.start == self.to or self._longest_gap() < LEAST_GAP:
            hint = "to send nothing at all, remove the rule"
            expected = f"quiet hours that end, for at least {LEAST_GAP} minutes in a week"
            raise invalid("to", expected, f"{self.start} to {self.to}", hint)
        return self

    def _longest_gap(self) -> int:
        """The longest time between two quiet hours of a week, in minutes of wall time."""
        start, end = (
            hour * 60 + minute for hour, minute in (parse_clock(self.start, ""), parse_clock(self.to, "", is_end=True))
        )
        length = (end - start) % _DAY or _DAY
        begins = sorted(DAYS.index(day) * _DAY + start for day in self.days or DAYS)
        return max(later - earlier - length for earlier, later in pairwise([*begins, begins[0] + 7 * _DAY]))

    @property
    def hours(self) -> Mapping[str, Any]:
        """The fields that `core/notices/quiet.py` reads."""
        return {"from": self.start, "to": self.to, "zone": self.zone, "days": self.days}


class Notify(Sparse):
    """The kinds of events ``on`` which Sluice sends a notice to the target ``to``.

    ``failed``: a run failed after its last attempt, or a delivery failed. ``aborted``: a job was aborted.
    ``missed_start``, ``missed_end``: a start or an end missed its deadline. ``data_late``, ``data_fresh``: a dataset
    with ``fresh`` for which a schedule waits is late, and no longer is.

    ``form`` writes the notice for a webhook of Slack or of Microsoft Teams, as an event of PagerDuty, or as a mail.
    ``console`` is the address of a web console, to which its links lead. What follows a notice within ``group`` is sent
    as one, and nothing is sent in the ``quiet`` hours.
    """

    # Older code refuses a field that it does not know.
    omitted: ClassVar[Collection[str]] = ("form", "console", "group", "quiet")

    on: Annotated[tuple[What, ...], Field(min_length=1), ONCE_EACH]
    to: AnyTarget
    form: Form | None = None
    console: ConsoleUrl | None = None
    group: GroupSpan | None = None
    quiet: QuietHours | None = None

    @field_validator("to")
    @classmethod
    def _takes_messages(cls, to: AnyTarget) -> AnyTarget:
        if to.has_lifecycle:
            hint = "to run a workflow after a failure, use a schedule with a program_status trigger"
            raise invalid("", "a target that takes a message", f"one of type {to.type}", hint)
        return to

    @model_validator(mode="after")
    def _has_a_form_of_its_target(self) -> Notify:
        if self.form is None:
            if self.console is not None:
                raise invalid("console", "console with a form", "no form", "add a form, such as form: slack")
            return self
        if self.form == "mail" and not self.to.mails:
            hint = "name a topic to which the addresses have subscribed"
            raise invalid("to", "an sns target for form: mail", self.to.type, hint)
        if self.form != "mail" and not self.to.posts:
            hint = "name the webhook as {type: http, url: {ssm: NAME, host: HOST}}"
            raise invalid("to", f"an http target with the method POST for form: {self.form}", self.to.type, hint)
        if getattr(self.to, "format", None) is not None:
            hint = f"remove the format: form: {self.form} is no CloudEvent"
            raise invalid("to.format", "either a form or a format", "both", hint)
        return self

    @model_validator(mode="after")
    def _names_its_urgent_kinds(self) -> Notify:
        others = [kind for kind in (self.quiet.urgent if self.quiet is not None else ()) if kind not in self.on]
        if others:
            hint = "add it to on, or leave it out of urgent"
            raise invalid("quiet.urgent", f"kinds of on ({', '.join(self.on)})", ", ".join(others), hint)
        return self

    @model_validator(mode="after")
    def _opens_incidents(self) -> Notify:
        if self.form != "pagerduty":
            return self
        if ROUTING_KEY not in (getattr(self.to, "body_secrets", None) or {}):
            hint = f"add body_secrets: {{{ROUTING_KEY}: {{ssm: NAME}}}} with the integration key of the service"
            raise invalid("to.body_secrets", f"the secret {ROUTING_KEY} for form: pagerduty", "none", hint)
        if set(self.on) == {"data_fresh"}:
            hint = "write data_late: with form: pagerduty, data_fresh resolves its incident"
            raise invalid("on", "something that opens an incident", "data_fresh", hint)
        return self

    @property
    def span(self) -> Millis | None:
        return None if self.group is None else duration(self.group)

    def told_as(self, what: str) -> tuple[str, ...]:
        """The kinds of this rule that an event of the kind ``what`` is about: itself, or what it ends."""
        if self.form == "pagerduty" and what in ENDS:
            return tuple(kind for kind in ENDS[what] if kind in self.on)
        return (what,) if what in self.on else ()


def follows_ends(rules: Iterable[Notify]) -> bool:
    """Whether a success may end an incident that a failure has opened."""
    return any(rule.told_as(RECOVERED) for rule in rules if rule.form == "pagerduty")
