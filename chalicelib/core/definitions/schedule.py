"""The document of a schedule, with its timeout (C10), catch-up (T5) and spread (E2).

A short name means a workflow of the same app, or a policy, pool or dataset of the same namespace. `Schedule.resolved`
makes names full, so that every stored row holds full names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, Tag, ValidationInfo, model_validator

from chalicelib.core.constraints import registry
from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.definitions.calendar import calendar_key
from chalicelib.core.definitions.data import Carried, refuse_data_uri
from chalicelib.core.definitions.each import Each
from chalicelib.core.definitions.incomplete import Incomplete
from chalicelib.core.definitions.listed import Listed, check_listed
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.definitions.per import Per
from chalicelib.core.definitions.workflow import Deadline, PoolReference, RunTimeout
from chalicelib.core.documents import (
    STORED,
    Described,
    Document,
    Duration,
    Internal,
    Properties,
    Reference,
    StoredReference,
    Zone,
    one_of,
)
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, Instant, Millis, duration, format_duration, iso, parse_when
from chalicelib.core.names import Names
from chalicelib.core.states import Mode
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.retries import Retries
from chalicelib.core.time.periods import Period
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.tree import AnyTrigger


class Timeout(Document):
    """What happens to a job that is not launched within ``after`` of its creation: Sluice aborts or runs it (C10)."""

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
    """Which fires Sluice makes up for after an outage: ``all`` of them, the ``latest``, or ``none``; but none older
    than ``within``. It skips the others, with a record (T5). A text in place of the object is its ``mode``."""

    mode: Literal["all", "latest", "none"] = "all"
    within: Duration = "1d"

    @model_validator(mode="before")
    @classmethod
    def _from_mode(cls, given: Any) -> Any:
        return {"mode": given} if isinstance(given, str) else given

    @property
    def span(self) -> Millis:
        return duration(self.within)


MAX_EVENTS = 100_000  # of one fire (E2)


MAX_SPREAD: Millis = 31 * DAY


class Spread(Document):
    """``count`` events for each fire, due evenly ``over`` a window that begins with the fire, or all at once (E2).

    With ``overflow: late``, Sluice starts an event after the window and marks it as late; with ``drop``, it drops the
    event, with a record.
    """

    count: int = Field(ge=1, le=MAX_EVENTS)
    over: Duration | None = None
    overflow: Literal["late", "drop"] = "late"

    @model_validator(mode="after")
    def _has_a_window(self) -> Spread:
        if self.span > MAX_SPREAD:
            raise invalid("over", "a window of at most 31 days", self.over, "write a shorter window, such as 1h")
        if self.overflow == "drop" and self.over is None:
            hint = "add over, such as over: 10m, or remove overflow"
            raise invalid("over", "a window, because overflow: drop drops the events after it", None, hint)
        return self

    @property
    def span(self) -> Millis:
        return duration(self.over) if self.over else 0


def _check_life(text: str) -> str:
    if parse_when(text, 0, "") == 0:
        raise invalid("", "an instant, or a duration longer than 0s", text, "such as 2030-01-01T00:00:00Z, or 30d")
    return text


Life = Annotated[str, AfterValidator(_check_life)]  # a ttl: when a schedule ends, as an instant or a span


class Schedule(Described, Carried):
    """A workflow, the trigger that starts it, the constraints its launch must meet, and its properties.

    ``zone`` applies to times and windows that name none. With ``coalesce`` False, each fire and each match is a job of
    its own; else Sluice adds it to the job that waits (C11). ``pause_after_failures`` holds the schedule after so many
    failed runs in a row (L19). ``policy`` limits its starts, together with those of all schedules that name the policy
    (E3). The target gets the data of the schedule as the body (L13).

    ``catch_up`` says which fires Sluice makes up for after an outage (T5). ``ttl``, counted from the request that puts
    the schedule, is the last possible nominal time; then Sluice deletes the schedule. ``when_done`` says whether Sluice
    keeps a schedule after its last fire, as completed, or deletes it (L10). ``spread`` makes several events of each
    fire (E2). ``notify`` adds notices to those of the workflow (W9). ``retries``, ``pool``, ``slots``, ``resources``,
    ``deadline`` and ``expected`` override those of the workflow, and ``run_timeout`` its ``timeout`` (W12).

    ``per``: one job for each period of this length, which waits for the partitions of the period (T25). ``incomplete``
    says when it starts although some are missing. ``late`` says what one does that comes after the start: nothing, on
    record, or it starts another job of the period (T28).

    ``values``: the values of keys in ``by``. A partition without such a key belongs to the job of each of them (T27).
    """

    omitted: ClassVar[Collection[str]] = (
        *Carried.omitted,
        "values",
        "per",
        "incomplete",
        "late",
        "each",
        "run_timeout",
    )

    workflow: StoredReference
    trigger: AnyTrigger
    by: tuple[str, ...] = Field(default=(), max_length=10)
    values: dict[str, Listed] = Field(default={}, max_length=10)
    per: Per | None = None
    incomplete: Incomplete | None = None
    late: Literal["ignore", "again"] = "ignore"
    constraints: tuple[AnyConstraint, ...] = Field(default=(), max_length=20)
    properties: Properties = Field(default_factory=dict)
    priority: int | None = Field(default=None, ge=0, le=9)
    timeout: TimeoutOrNever = Field(default_factory=Timeout)
    zone: Zone = "UTC"
    coalesce: bool = True
    pause_after_failures: int | None = Field(default=None, ge=1, le=1_000)
    policy: Reference | None = None
    retries: Retries | None = None
    pool: PoolReference | None = None
    slots: int | None = Field(default=None, ge=1, le=1_000_000)
    resources: Resources | None = None
    deadline: Deadline | None = None
    expected: Duration | None = None
    run_timeout: RunTimeout | None = None
    catch_up: CatchUp = Field(default_factory=CatchUp)
    ttl: Life | None = None
    when_done: Literal["keep", "delete"] = "keep"
    spread: Spread | None = None
    notify: tuple[Notify, ...] = Field(default=(), max_length=5)
    each: Internal[Each | None] = None  # of the schedule of a node (W19)

    @model_validator(mode="before")
    @classmethod
    def _default_by(cls, data: Any) -> Any:
        """Moves ``by`` from the trigger, where users may write it, to the schedule: it applies to the whole job."""
        if isinstance(data, dict) and isinstance(data.get("trigger"), dict) and "by" in data["trigger"]:
            if data.get("by"):
                hint = "remove by from the trigger"
                raise invalid("by", "by either in the schedule or in its trigger", "both", hint)
            trigger = dict(data["trigger"])
            return {**data, "by": trigger.pop("by"), "trigger": trigger}
        return data

    @model_validator(mode="before")
    @classmethod
    def _spread_without_coalesce(cls, data: Any) -> Any:
        """Sets the default of ``coalesce`` for a spread: each event of a fire is a job of its own."""
        if isinstance(data, dict) and data.get("spread") is not None and "coalesce" not in data:
            return {**data, "coalesce": False}
        return data

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Schedule:
        """Checks the fields against each other: correlation keys need events in every leaf (T19)."""
        tree.check_size(self.trigger, len(self.wake_keys))
        if info.context != STORED:  # it was checked when it was put
            tree.check_work(self.trigger)
        tree.check_windows(self.trigger)
        registry.check_together(self.constraints)
        if len(set(self.by)) < len(self.by):
            raise invalid("by", "distinct correlation keys", list(self.by), "write each key once")
        if self.by and not all(leaf.trigger.correlates for leaf in tree.timed_leaves(self.trigger)):
            hint = "a time has no partition; use two schedules, or an absent with period or after"
            raise invalid("by", "correlation keys only where every leaf counts events", list(self.by), hint)
        self._check_spread()
        self._check_values(info)
        self._check_per(info)
        return self

    def _check_values(self, info: ValidationInfo) -> None:
        """Raises ``invalid`` unless the listed values are those of keys in ``by``, and each leaf counts partitions."""
        for key, values in self.values.items():
            if key not in self.by:
                hint = f"add by: [{key}], or list the values in the dataset: then each job waits for all of them"
                raise invalid(f"values.{key}", f"keys of by ({', '.join(self.by) or 'there are none'})", key, hint)
            check_listed(key, values, info)
        others = [leaf.trigger for leaf in tree.leaves(self.trigger) if not leaf.trigger.spreads]
        if self.values and others:
            hint = "remove values, or give the other leaves a schedule of their own"
            raise invalid("values", "values only where every leaf counts partitions", others[0].describe(), hint)

    def _check_per(self, info: ValidationInfo) -> None:
        """Raises ``invalid`` unless every leaf waits for the partitions of a period, if there is one job for each."""
        leaves = [leaf.trigger for leaf in tree.leaves(self.trigger)]
        if self.per is None:
            if any(leaf.by_period for leaf in leaves):
                hint = "add per, such as per: day: then there is one job for each day"
                raise invalid("per", "a length of periods, because the trigger has of: period", None, hint)
            for field in ("incomplete", "late"):
                if getattr(self, field) != type(self).model_fields[field].default:
                    hint = "add per, such as per: day, or remove the field"
                    raise invalid(field, f"{field} only with per", getattr(self, field), hint)
            return
        others = [leaf for leaf in leaves if not leaf.by_period]
        if others:
            hint = "add of: period to each partition leaf, and give other leaves a schedule of their own"
            expected = f"only partition leaves with of: period, because of per: {self.per.each}"
            raise invalid("trigger", expected, others[0].describe(), hint)
        if tree.window_of(self.trigger) is not None:
            raise invalid("trigger.within", "no within with per", self.per.each, "write a timeout for the job instead")
        if not self.coalesce:
            hint = "remove coalesce: each period has one job"
            raise invalid("coalesce", "true with per", got=False, hint=hint)
        if self.per.each in self.by:
            hint = "remove it: the job of a period has its label under this key"
            raise invalid("by", f"no key {self.per.each} beside per: {self.per.each}", list(self.by), hint)
        span = self.incomplete.span if self.incomplete is not None else None
        if (
            span is not None
            and self.timeout != "never"
            and self.timeout.then == "abort"
            and span >= self.timeout.millis
        ):
            hint = f"write a longer timeout, such as {{after: {format_duration(2 * span)}}}"
            expected = f"less than the timeout of {self.timeout.after}, which counts from the end of the period, too"
            raise invalid("incomplete.after", expected, format_duration(span), hint)
        self.per.check(self.zone, info)

    def _check_spread(self) -> None:
        """Raises ``invalid`` unless a spread has a trigger that is one time (E2)."""
        if self.spread is None:
            return
        if not tree.is_single_time(self.trigger):
            hint = "remove spread, or give the times a schedule of their own"
            raise invalid("spread", "spread only with a trigger that is one time", tree.describe(self.trigger), hint)
        if self.coalesce:
            hint = "leave coalesce out: each event of a spread fire is a job of its own"
            raise invalid("coalesce", "false with a spread", got=True, hint=hint)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """A stored document may name a zone that the present rules no longer have. One that is sent may not."""
        return super().model_validate(obj, **({"context": STORED} if cls is Schedule else {}) | options)

    @property
    def fresh_upstreams(self) -> tuple[str, ...]:
        """The workflows whose success the freshness constraints wait for, each once."""
        return tuple(dict.fromkeys(name for constraint in self.constraints for name in constraint.upstreams()))

    @property
    def constraint_datasets(self) -> tuple[str, ...]:
        """The datasets on whose newest partition the constraints depend, each once."""
        return tuple(dict.fromkeys(name for constraint in self.constraints for name in constraint.datasets()))

    @property
    def datasets_with_fresh(self) -> tuple[str, ...]:
        """The datasets on whose span ``fresh`` the constraints depend, each once."""
        found = (name for constraint in self.constraints for name in constraint.datasets_with_fresh())
        return tuple(dict.fromkeys(found))

    @property
    def awaits(self) -> tuple[str, ...]:
        """The events that may meet its constraints, as text for users."""
        return tuple(dict.fromkeys(filter(None, (constraint.awaits() for constraint in self.constraints))))

    @property
    def calendars(self) -> tuple[str, ...]:
        """The holiday calendars that its trigger names, each once."""
        return tree.calendars(self.trigger)

    @property
    def periodic(self) -> tuple[str, ...]:
        """The datasets whose periods its trigger has to know, each once."""
        return tree.periodic(self.trigger)

    @property
    def wake_keys(self) -> tuple[str, ...]:
        """The event keys of the events that may meet a constraint of its waiting jobs (C8), and of its calendars, each
        once."""
        of_constraints = (key for constraint in self.constraints for key in constraint.wake_keys(self.workflow))
        return tuple(dict.fromkeys([*of_constraints, *map(calendar_key, self.calendars)]))

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else self.timeout.millis

    @property
    def watches_end(self) -> bool:
        """Whether it matters to the schedule of a DAG's start when a DAG run ends (W20)."""
        return bool(self.constraints or self.deadline or self.run_timeout or self.notify)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the correlation of its jobs: that of their period, and ``by``."""
        return (*((self.per.each,) if self.per is not None else ()), *self.by)

    @property
    def gathering(self) -> tuple[Any, ...]:
        """What decides which events a job gathers. A change of it begins again."""
        per = (self.per, self.per.zone or self.zone) if self.per is not None else None
        return self.trigger, self.by, per, self.incomplete

    @property
    def ends_at(self) -> Instant | None:
        """The last instant of the schedule; None without a ``ttl``. The document must be resolved."""
        return None if self.ttl is None else parse_when(self.ttl, 0, "ttl")

    def own_jobs(self, mode: Mode) -> bool:
        """Whether each match and each fire has a job of its own (C11): with ``coalesce: false``, and in a backlog. The
        one job of a period is its own in every mode."""
        return self.per is None and (mode == "backlog" or not self.coalesce)

    def period_of(self, correlation: Mapping[str, str] | None) -> Period | None:
        """The period of the job, or run, with this correlation; None if it has none."""
        names = self.per.names(self.zone) if self.per is not None else None
        if names is None or not correlation or not correlation.keys() >= set(names.keys):
            return None
        try:
            return names.read(correlation)
        except SluiceError:
            return None

    def resolved(self, namespace: str, app: str, now: Instant | None = None) -> Schedule:
        """The same schedule with full names and zones and, if ``now`` is given, with instants in place of the spans
        that count from there."""
        names = Names(namespace, app, self.zone, now)
        return self.model_copy(
            update={
                "workflow": names.in_app(self.workflow),
                "policy": names.in_namespace(self.policy) if self.policy is not None else None,
                "pool": names.in_namespace(self.pool) if self.pool is not None else None,
                "trigger": tree.resolve(self.trigger, names),
                "constraints": tuple(constraint.resolve(names) for constraint in self.constraints),
                "ttl": self.ttl if self.ttl is None or now is None else iso(parse_when(self.ttl, now, "ttl")),
            }
        )


class NewSchedule(Schedule):
    """A schedule as a user sends it. ``enabled`` enables or disables it at once; None keeps its present mode (L2). With
    ``on_update: drop``, an update drops what has gathered and what waits; otherwise it keeps both if the trigger is the
    same (L25)."""

    workflow: Reference
    enabled: bool | None = None
    on_update: Literal["drop", "carry"] = "carry"

    _sent = model_validator(mode="after")(refuse_data_uri)

    def definition(self) -> Schedule:
        """The document without the fields of the request. Its fields are valid already, so nothing is parsed again."""
        return Schedule.model_construct(**{name: getattr(self, name) for name in Schedule.model_fields})
