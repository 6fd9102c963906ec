"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.

How long a job may wait to be launched, and what becomes of it then (C10).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from chalicelib.core import instants
from chalicelib.core.constraints import registry
from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.definitions.data import Carried, is_sent
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.definitions.workflow import Deadline, check_pool
from chalicelib.core.documents import Described, Document, Duration, Properties, Reference, StoredReference, one_of
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, Instant, Millis, duration, iso, parse_when
from chalicelib.core.names import Names
from chalicelib.core.states import Mode
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Retries
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.tree import AnyTrigger


class Timeout(Document):
    """What becomes of a job that has not been launched ``after`` its creation (C10)."""

    after: Duration = "1d"
    then: Literal["abort", "run"] = "abort"

    @property
    def millis(self) -> Millis:
        return duration(self.after)


TimeoutOrNever = Annotated[
    Annotated[Timeout, Tag("@timeout")] | Annotated[Literal["never"], Tag("@never")],
    one_of(
        lambda value: "@never" if value == "never" else "@timeout" if isinstance(value, dict | Timeout) else "@other",
        "an object with after and then, or 'never'",
    ),
]


class CatchUp(Document):
    """Which fires are made up for that were missed in an outage: ``all`` of them, the ``latest`` alone, or ``none``;
    never any that is older than ``within``. The rest is skipped on record (T5). A word stands for its ``mode``."""

    mode: Literal["all", "latest", "none"] = "all"
    within: Duration = "1d"

    @model_validator(mode="before")
    @classmethod
    def _word(cls, given: Any) -> Any:
        return {"mode": given} if isinstance(given, str) else given

    @property
    def span(self) -> Millis:
        return duration(self.within)


MAX_EVENTS = 100_000  # of one fire (E2)


MAX_SPREAD: Millis = 31 * DAY


class Spread(Document):
    """``count`` events per fire, due evenly ``over`` a window that begins with the fire, or all at once (E2).

    An event that is not started within the window is started late, and marked so, or is dropped on record.
    """

    count: int = Field(ge=1, le=MAX_EVENTS)
    over: Duration | None = None
    overflow: Literal["late", "drop"] = "late"

    @model_validator(mode="after")
    def _has_a_window(self) -> Spread:
        if self.span > MAX_SPREAD:
            raise invalid("over", "a window of at most 31 days", self.over)
        if self.overflow == "drop" and self.over is None:
            raise invalid("over", "a window, which what is dropped does not fit into", None)
        return self

    @property
    def span(self) -> Millis:
        return duration(self.over) if self.over else 0


def _check_life(text: str) -> str:
    if parse_when(text, 0, "") == 0:
        raise invalid("", "an instant, or a duration longer than 0s", text)
    return text


Life = Annotated[str, AfterValidator(_check_life)]  # a ttl: a schedule lives for a while


class Schedule(Described, Carried):
    """A workflow, the trigger that starts it, the constraints its launch must meet, and its properties.

    ``zone`` is that of its times and windows unless they name one. ``coalesce`` False gives each fire and each match a
    job of its own instead of adding it to the one that waits (C11). ``pause_after_failures`` holds the schedule when
    so many of its runs have failed in a row (L19). ``policy`` throttles its starts, with those of all others that name
    it (E3). Its data reaches the target as the body (L13).

    ``catch_up`` says what is made up for after an outage (T5). ``ttl``, counted from the request that puts it, bounds
    nominal times inclusively; then the schedule is deleted. ``when_done`` says whether one that has fired for the last
    time is kept, as completed, or deleted (L10). ``spread`` makes several events of each fire (E2). ``notify`` says who
    is told when something goes wrong, besides those whom the workflow tells (W9). What is said of ``retries``,
    ``pool``, ``slots``, ``resources``, ``deadline`` and ``expected`` goes before the workflow's.
    """

    workflow: StoredReference
    trigger: AnyTrigger
    by: tuple[str, ...] = Field(default=(), max_length=10)
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    properties: Properties = Field(default_factory=dict)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Field(default_factory=Timeout)
    zone: str = "UTC"
    coalesce: bool = True
    pause_after_failures: int | None = Field(default=None, ge=1, le=1_000)
    policy: Reference | None = None
    retries: Retries | None = None
    pool: Reference | None = None
    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    resources: Resources | None = None
    deadline: Deadline | None = None
    expected: Duration | None = None
    catch_up: CatchUp = Field(default_factory=CatchUp)
    ttl: Life | None = None
    when_done: Literal["keep", "delete"] = "keep"
    spread: Spread | None = None
    notify: tuple[Notify, ...] = Field(default=(), max_length=5)

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str) -> str:
        instants.zone(zone, "")
        return zone

    @field_validator("pool")
    @classmethod
    def _is_of_a_namespace(cls, pool: str | None) -> str | None:
        return check_pool(pool)

    @model_validator(mode="before")
    @classmethod
    def _default_by(cls, data: Any) -> Any:
        """``by`` may be written in the trigger, where it reads best; it speaks of the whole job all the same."""
        if isinstance(data, dict) and isinstance(data.get("trigger"), dict) and "by" in data["trigger"]:
            if data.get("by"):
                raise invalid("by", "the correlation keys once", "them in the schedule and in its trigger")
            trigger = dict(data["trigger"])
            return {**data, "by": trigger.pop("by"), "trigger": trigger}
        return data

    @model_validator(mode="before")
    @classmethod
    def _spread_apart(cls, data: Any) -> Any:
        """Each of a fire's events is a job of its own, whether the document says so or not."""
        if isinstance(data, dict) and data.get("spread") is not None and "coalesce" not in data:
            return {**data, "coalesce": False}
        return data

    @model_validator(mode="after")
    def _fits_together(self) -> Schedule:
        tree.check_size(self.trigger, len(self.wake_keys))
        tree.check_windows(self.trigger)
        registry.check_together(self.constraints)
        if len(set(self.by)) < len(self.by):
            raise invalid("by", "distinct correlation keys", list(self.by))
        if self.by and tree.timed_leaves(self.trigger):
            hint = "a time belongs to no partition; use two schedules"
            raise invalid("by", "correlation keys only where every leaf is about partitions (T19)", list(self.by), hint)
        self._check_spread()
        return self

    def _check_spread(self) -> None:
        if self.spread is None:
            return
        if not tree.is_single_time(self.trigger):
            raise invalid("spread", "spread only with a trigger that is one time (E2)", tree.describe(self.trigger))
        if self.coalesce:
            hint = "leave coalesce out: each event of a spread fire is a job of its own"
            raise invalid("coalesce", "false, with a spread", True, hint)

    @property
    def fresh_upstreams(self) -> tuple[str, ...]:
        """The workflows whose success its freshness constraints wait for, each once."""
        return tuple(dict.fromkeys(name for each in self.constraints for name in each.upstreams()))

    @property
    def wake_keys(self) -> tuple[str, ...]:
        """The events that may meet a constraint for which its jobs wait, each once (C8)."""
        return tuple(dict.fromkeys(key for each in self.constraints for key in each.wake_keys(self.workflow)))

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else self.timeout.millis

    @property
    def ends_at(self) -> Instant | None:
        """The last instant of its life; relative forms must have been resolved."""
        return None if self.ttl is None else parse_when(self.ttl, 0, "ttl")

    def own_jobs(self, mode: Mode) -> bool:
        """Whether each match and each fire has a job of its own (C11): with ``coalesce: false``, and in a backlog."""
        return mode == "backlog" or not self.coalesce

    def resolved(self, namespace: str, app: str, now: Instant | None = None) -> Schedule:
        """The same schedule with full names and zones throughout and, where ``now`` is given, with instants instead
        of the spans that are counted from it."""
        names = Names(namespace, app, self.zone, now)
        return self.model_copy(
            update={
                "workflow": names.in_app(self.workflow),
                "policy": names.in_namespace(self.policy) if self.policy is not None else None,
                "pool": names.in_namespace(self.pool) if self.pool is not None else None,
                "trigger": tree.resolve(self.trigger, names),
                "constraints": tuple(each.resolve(names) for each in self.constraints),
                "ttl": self.ttl if self.ttl is None or now is None else iso(parse_when(self.ttl, now, "ttl")),
            }
        )


class NewSchedule(Schedule):
    """A schedule as it is sent: with the wish that it be enabled at once (L2; None keeps the state it has), and what
    an update does with progress already made: ``carry`` keeps it if the trigger is the same (L6)."""

    workflow: Reference
    enabled: bool | None = None
    on_update: Literal["drop", "carry"] = "drop"

    _sent = model_validator(mode="after")(is_sent)

    def definition(self) -> Schedule:
        return Schedule.model_validate(self.model_dump(exclude={"enabled", "on_update"}))
