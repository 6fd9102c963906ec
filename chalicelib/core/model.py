"""The documents that users write: namespaces, apps, workflows, datasets, schedules. Stored as they were given.

Short names are those of the same app (workflows) or namespace (datasets); `Schedule.resolved` makes them full, so
that every stored row holds full names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from chalicelib.core import calendar, triggers
from chalicelib.core.calendar import Instant, Millis, iso, parse_when
from chalicelib.core.constraints import AnyConstraint, Approval, Fresh, Load, Probe, SinceLastRun, TimeWindow
from chalicelib.core.dags import NewDag
from chalicelib.core.data import Carried, is_sent
from chalicelib.core.documents import Duration, Name, Properties, Reference, StoredReference
from chalicelib.core.errors import invalid
from chalicelib.core.leaves import (
    AbsentTrigger,
    EventTrigger,
    LeafTrigger,
    PartitionTrigger,
    ProgramStatusTrigger,
    SizeTrigger,
    TimeTrigger,
    status_key,
)
from chalicelib.core.notify import Notify
from chalicelib.core.policies import Policy
from chalicelib.core.pools import Pool
from chalicelib.core.resources import Resources
from chalicelib.core.retries import Retries as Retries
from chalicelib.core.targets import AnyTarget
from chalicelib.core.timeouts import Timeout as Timeout
from chalicelib.core.timeouts import TimeoutOrNever as TimeoutOrNever
from chalicelib.core.times import CatchUp, Life, Spread
from chalicelib.core.triggers import AnyTrigger
from chalicelib.core.workflows import BUCKET, check_pool
from chalicelib.core.workflows import DEFAULT_PRIORITY as DEFAULT_PRIORITY
from chalicelib.core.workflows import MOST_PREFIX as MOST_PREFIX
from chalicelib.core.workflows import Dataset as Dataset
from chalicelib.core.workflows import Deadline as Deadline
from chalicelib.core.workflows import Described as Described
from chalicelib.core.workflows import Namespace as Namespace
from chalicelib.core.workflows import Readiness as Readiness
from chalicelib.core.workflows import Workflow as Workflow


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
        calendar.zone(zone, "")
        return zone

    @field_validator("pool")
    @classmethod
    def _is_of_a_namespace(cls, pool: str | None) -> str | None:
        return check_pool(pool)

    @model_validator(mode="before")
    @classmethod
    def _lift_by(cls, data: Any) -> Any:
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
        triggers.check_size(self.trigger, len(self.wake_keys))
        triggers.check_windows(self.trigger)
        if sum(isinstance(each, Probe) for each in self.constraints) > 1:
            raise invalid("constraints", "at most one probe", "several", "let one ask what the others would")
        approvals = [each.key for each in self.constraints if isinstance(each, Approval)]
        if len(set(approvals)) < len(approvals):
            raise invalid("constraints", "one approval for each role", approvals)
        if len(set(self.by)) < len(self.by):
            raise invalid("by", "distinct correlation keys", list(self.by))
        if self.by and triggers.timed_leaves(self.trigger):
            hint = "a time belongs to no partition; use two schedules"
            raise invalid("by", "correlation keys only where every leaf is about partitions (T19)", list(self.by), hint)
        self._check_spread()
        return self

    def _check_spread(self) -> None:
        if self.spread is None:
            return
        if not triggers.is_single_time(self.trigger):
            raise invalid("spread", "spread only with a trigger that is one time (E2)", triggers.describe(self.trigger))
        if self.coalesce:
            hint = "leave coalesce out: each event of a spread fire is a job of its own"
            raise invalid("coalesce", "false, with a spread", True, hint)

    @property
    def fresh_upstreams(self) -> tuple[str, ...]:
        """The workflows whose success its freshness constraints wait for, each once."""
        named = [name for each in self.constraints if isinstance(each, Fresh) for name in each.workflows]
        return tuple(dict.fromkeys(named))

    @property
    def wake_keys(self) -> tuple[str, ...]:
        """The events that may meet a constraint for which its jobs wait: an upstream's success, and, where a living run
        holds the next one up, its failure (C8)."""
        gaps = any(isinstance(each, SinceLastRun) and each.on_unmet == "wait" for each in self.constraints)
        ends = tuple(status_key(self.workflow, status) for status in ("FAILED", "KILLED")) if gaps else ()
        return (*(status_key(name, "COMPLETED") for name in self.fresh_upstreams), *ends)

    @property
    def timeout_millis(self) -> Millis | None:
        return None if self.timeout == "never" else self.timeout.millis

    @property
    def ends_at(self) -> Instant | None:
        """The last instant of its life; relative forms must have been resolved."""
        return None if self.ttl is None else parse_when(self.ttl, 0, "ttl")

    def resolved(self, namespace: str, app: str, now: Instant | None = None) -> Schedule:
        """The same schedule with full names and zones throughout and, where ``now`` is given, with instants instead
        of the spans that are counted from it."""

        def named(reference: str) -> str:
            return full_name(reference, namespace, app)

        def leaf(trigger: LeafTrigger) -> LeafTrigger:
            return _resolve(trigger, namespace, named, self.zone, now)

        return self.model_copy(
            update={
                "workflow": named(self.workflow),
                "policy": dataset_name(self.policy, namespace) if self.policy is not None else None,
                "pool": dataset_name(self.pool, namespace) if self.pool is not None else None,
                "trigger": triggers.rewrite(self.trigger, leaf),
                "constraints": tuple(_settle(each, namespace, named, self.zone) for each in self.constraints),
                "ttl": self.ttl if self.ttl is None or now is None else iso(parse_when(self.ttl, now, "ttl")),
            }
        )


class App(Described):
    """One deployment: an app's workflows, schedules and DAGs, and datasets of its namespace (L8).

    ``default_target`` serves the messages that name none (L16); ``data_bucket`` keeps data that is too large to stand
    with its schedule or message (L13), instead of the control bucket.
    """

    namespace: Name | None = None
    app: Name | None = None
    default_target: AnyTarget | None = None
    data_bucket: str | None = Field(default=None, pattern=BUCKET)
    datasets: dict[Name, Dataset] = Field(default_factory=dict)
    policies: dict[Name, Policy] = Field(default_factory=dict)
    pools: dict[Name, Pool] = Field(default_factory=dict)
    workflows: dict[Name, Workflow] = Field(default_factory=dict)
    schedules: dict[Name, NewSchedule] = Field(default_factory=dict)
    dags: dict[Name, NewDag] = Field(default_factory=dict)


class NewSchedule(Schedule):
    """A schedule as it is sent: with the wish that it be enabled at once (L2; None keeps the state it has), and what
    an update does with progress already made: ``carry`` keeps it if the trigger is the same (L6)."""

    workflow: Reference
    enabled: bool | None = None
    on_update: Literal["drop", "carry"] = "drop"

    _sent = model_validator(mode="after")(is_sent)

    def definition(self) -> Schedule:
        return Schedule.model_validate(self.model_dump(exclude={"enabled", "on_update"}))


def full_name(reference: str, namespace: str, app: str) -> str:
    """``name``, ``app.name`` or ``namespace.app.name`` as the last of these."""
    parts = reference.split(".")
    return ".".join([namespace, app][: 3 - len(parts)] + parts)


def dataset_name(reference: str, namespace: str) -> str:
    """``name`` or ``namespace.name`` as the latter."""
    return reference if "." in reference else f"{namespace}.{reference}"


def _resolve(
    leaf: LeafTrigger, namespace: str, named: Callable[[str], str], zone: str, now: Instant | None
) -> LeafTrigger:
    match leaf:
        case PartitionTrigger() | SizeTrigger():
            return leaf.model_copy(update={"dataset": dataset_name(leaf.dataset, namespace)})
        case ProgramStatusTrigger():
            schedule = named(leaf.schedule) if leaf.schedule is not None else None
            return leaf.model_copy(update={"workflow": named(leaf.workflow), "schedule": schedule})
        case EventTrigger():
            return leaf.model_copy(update={"namespace": leaf.namespace or namespace})
        case TimeTrigger():
            return leaf.resolved(zone, now)
        case AbsentTrigger():
            return leaf.model_copy(update={"zone": leaf.zone or zone})
        case _:
            return leaf


def _settle(constraint: AnyConstraint, namespace: str, named: Callable[[str], str], zone: str) -> AnyConstraint:
    if isinstance(constraint, Fresh):
        return constraint.model_copy(update={"workflows": tuple(named(name) for name in constraint.workflows)})
    if isinstance(constraint, Load) and constraint.of.pool is not None:
        of = constraint.of.model_copy(update={"pool": dataset_name(constraint.of.pool, namespace)})
        return constraint.model_copy(update={"of": of})
    if isinstance(constraint, TimeWindow):
        return constraint.model_copy(update={"zone": constraint.zone or zone})
    return constraint
