"""The base class of all constraints, and the values that its methods take and return (C1-C17).

Each kind of constraint is one file of this package and one line in `registry.CONSTRAINTS`. Class variables and methods
hold the differences between the kinds; no other package tests the class of a constraint. An evaluation depends on a
`Situation` alone, and its result is a `Condition`. An `External` constraint needs an answer from outside, which
`flow/jobs/external.py` requests when the answer decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from chalicelib.core.access.allowed import Named
from chalicelib.core.documents import Document
from chalicelib.core.instants import HOUR, Instant, Millis, iso
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.names import Names
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.states import WaitReason
from chalicelib.core.targets import retries
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.core.why import Mention, Why

OnUnmet = Literal["abort", "wait"]

MAX_FAILING: Millis = HOUR  # between two requests that fail


class Constraint(Document):
    """A condition that a job must meet before its launch. ``on_unmet`` is the consequence if it does not (C8)."""

    if TYPE_CHECKING:
        # Each kind defines these fields with its own values and order, which its JSON Schema shows.
        @property
        def type(self) -> str: ...

        @property
        def on_unmet(self) -> Literal["abort", "wait", "cancel_other"]: ...

    # Whether a job queues for a limit while the constraint is unmet: always, only with ``on_unmet: wait``, or never.
    queues: ClassVar[Literal["no", "if_waiting", "always"]] = "no"
    wait_reason: ClassVar[WaitReason]  # the class of its waits in the metrics
    decidable_ahead: ClassVar[bool] = True  # it can be evaluated before the instant of a fire, in a batch
    by_person: ClassVar[bool] = False  # a user decides, possibly before the instant of a fire
    survives_timeout: ClassVar[bool] = False  # a job that runs in spite of its timeout must still meet it (C10)
    once: ClassVar[bool] = False  # a node with each meets it once, before its elements (W19)
    for_backfill: ClassVar[bool] = False  # it applies to a backfill's jobs; those that measure the present do not
    needs_lifecycle: ClassVar[bool] = False  # only for a target with a lifecycle

    def describe(self) -> str:
        """The condition as text for users."""
        raise NotImplementedError

    @property
    def rule(self) -> str:
        """The condition, and what happens if it is unmet, as text for users."""
        return f"{self.describe()}, else {self.on_unmet.replace('_', ' ')}"

    def mention(self, key: str) -> Mention:
        """The constraint as reasons name it; ``key`` is its key in its schedule."""
        return Mention(self.rule, "constraint", key)

    def evaluate(self, s: Situation) -> Condition:
        """Whether the constraint is met, why, and when it may be met."""
        raise NotImplementedError

    def resolve(self, names: Names) -> Self:
        """The same constraint with full names, and with a zone."""
        return self

    @property
    def wall_zone(self) -> str | None:
        """The zone whose rules decide when the constraint is met; None if no rules do."""
        return None

    def references(self) -> Iterable[Use]:
        """The references of the constraint. All of them must exist when a schedule is put."""
        return ()

    def permits(self, workflow: str, namespace: str) -> Iterable[PermitRequest]:
        """The permits that a job requests because of this constraint."""
        return ()

    def groups(self) -> tuple[str, ...]:
        """The groups to which the schedule's runs belong because of this constraint."""
        return ()

    def rates(self) -> tuple[str, ...]:
        """The rate rules, ``<limit>/<span in ms>``, which count all starts of the workflow."""
        return ()

    def upstreams(self) -> tuple[str, ...]:
        """The workflows on whose last success the constraint depends."""
        return ()

    def datasets(self) -> tuple[str, ...]:
        """The datasets on whose newest partition the constraint depends."""
        return ()

    def datasets_with_fresh(self) -> tuple[str, ...]:
        """The datasets on whose span ``fresh`` the constraint depends. They must have one when a schedule is put."""
        return ()

    def wake_keys(self, workflow: str) -> tuple[str, ...]:
        """The keys of the events that may meet the constraint while a job waits."""
        return ()

    def awaits(self) -> str:
        """These events as text for users, such as "a success of demo.flights.clean"; empty if nothing but time meets
        the constraint."""
        return ""

    def makes_room(self) -> bool:
        """Whether Sluice cancels the older runs that hold the permits which the job requests."""
        return False

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        """Raise `SluiceError` if the constraints of this kind in one schedule contradict each other."""

    def met(self, why: str = "met") -> Condition:
        """A met condition of this constraint."""
        return Condition(self, met=True, said=why)

    def unmet(self, why: str, until: Instant | None = None, *, abort: bool = False, open: bool = False) -> Condition:
        """An unmet condition of this constraint; `Condition` describes the arguments."""
        return Condition(self, met=False, said=why, until=until, abort=abort, open=open)

    def met_from(self, opens: Instant, now: Instant) -> Condition:
        """A condition that is met from the instant ``opens`` on."""
        return self.met() if now >= opens else self.unmet(f"not before {iso(opens)}", opens)

    def patient(self) -> Self:
        """The same constraint with ``on_unmet: wait``: no answer from outside is no refusal, so Sluice requests it
        again."""
        return self.model_copy(update={"on_unmet": "wait"})


@dataclass(frozen=True, slots=True)
class Condition:
    """The result of a constraint's evaluation. ``until`` is when time alone meets it, if it can, or when to request
    another answer. ``abort``: the job aborts; ``on_unmet`` does not apply. ``open``: no valid answer from outside is
    known, so the condition decides nothing yet. ``key`` names the constraint among those of its schedule."""

    constraint: Constraint
    met: bool
    said: str
    until: Instant | None = None
    abort: bool = False
    open: bool = False
    key: str = field(default="", compare=False)

    @property
    def why(self) -> Why:
        """The constraint with the state that the evaluation has found. The code is the type of the constraint."""
        return Why.of(self.constraint.type, self.constraint.mention(self.key), f": {self.said}")

    @property
    def waits(self) -> bool:
        """Whether the job waits for the clock or for facts if this is unmet. For a limit it queues instead."""
        if self.abort or self.open:
            return False
        return self.constraint.on_unmet == "wait" and self.constraint.queues == "no"

    @property
    def aborts(self) -> bool:
        """Whether the job aborts if this is unmet."""
        return not self.open and (self.abort or self.constraint.on_unmet == "abort")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from outside, valid until ``until``. ``failures`` counts the failed requests in a row."""

    if TYPE_CHECKING:
        # Each kind has these fields behind its own.
        @property
        def until(self) -> Instant: ...

        @property
        def failures(self) -> int: ...

    def kept(self) -> dict[str, Any]:
        """The answer in the form in which the job's row stores it."""
        return asdict(self)


def after_failure(span: Millis, before: Answer | None) -> tuple[int, Millis]:
    """The number of failed requests in a row with the present one, and the ms until the next request: ``span``, doubled
    with every failure up to an hour."""
    failures = before.failures + 1 if before is not None else 1
    return failures, max(span, min(retries.doubled(span, failures), MAX_FAILING))


A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Situation:
    """All that an evaluation depends on. ``workflow`` is the full name of the job's workflow, and ``content`` stands
    for what the job runs, for its approvals. ``successes`` maps each workflow that the constraints name to its last
    success, and ``newest`` each dataset that they name to the partition that came last. ``fresh`` has the span of each
    dataset whose own one they use. ``externals`` are the schedule's external constraints by their keys, and ``answers``
    the answers that this check has requested, by the same keys."""

    job: Job
    workflow: str
    namespace: str
    limit_states: Mapping[str, LimitState]
    successes: Mapping[str, Instant | None]
    now: Instant
    externals: Mapping[str, External] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    content: str = ""
    newest: Mapping[str, NewestPartition | None] = field(default_factory=dict)
    fresh: Mapping[str, Millis | None] = field(default_factory=dict)

    def limit_state(self, name: str) -> LimitState:
        """The state of a limit as read; an empty one if no row exists yet."""
        return self.limit_states.get(name) or LimitState(name)

    @property
    def met_at(self) -> Instant:
        """When the trigger was met. For a job without a trigger, such as a fire, when it was created."""
        if self.job.traits.of_events:
            return self.job.met_at if self.job.met_at is not None else self.now
        return self.job.created_at

    def key_of(self, external: External) -> str:
        """The key of an external constraint. Two equal constraints have the key of the first: one answer serves
        both."""
        return next(key for key, each in self.externals.items() if each is external or each == external)

    def answer_to(self, external: External, kind: type[A]) -> A | None:
        """The answer that this check has requested for a constraint; None if it has requested none."""
        found = self.answers.get(self.key_of(external))
        return found if isinstance(found, kind) else None


@dataclass(frozen=True, slots=True)
class Use:
    """A reference of a constraint, and its field. ``of`` is the document of a target, or else a name."""

    kind: Literal["pool", "application", "target", "workflow", "metric", "dataset"]
    of: Any
    field: str = ""


@dataclass(frozen=True, slots=True)
class PoolQuestion:
    """A question for the share of a pool that is in use."""

    pool: str


@dataclass(frozen=True, slots=True)
class MeterQuestion:
    """A question for the value of a measurement outside Sluice."""

    source: Mapping[str, Any]
    named: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A question for the answer of a Lambda function, or of an HTTP endpoint, to ``body``."""

    target: Mapping[str, Any]
    body: Mapping[str, Any]


Question = PoolQuestion | MeterQuestion | CallQuestion
Reply = float | bytes | Never | NoAnswer


class External(Constraint):
    """A constraint that needs an answer from outside. Sluice requests it when the answer decides, once the last answer
    is no longer valid. ``number`` distinguishes the constraints of one kind in a schedule."""

    decidable_ahead: ClassVar[bool] = False

    def question(self, job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> Question:
        """The question to which Sluice needs an answer."""
        raise NotImplementedError

    def read(self, reply: Reply, before: Answer | None, now: Instant) -> Answer:
        """The meaning of a reply; ``before`` is the last answer."""
        raise NotImplementedError

    def assume(self, met: bool, now: Instant) -> Answer:
        """A hypothetical answer that meets the constraint, or does not, to compute the decision that it would cause."""
        raise NotImplementedError

    @classmethod
    def last_answer(cls, job: Job, number: str) -> Answer | None:
        """The last answer that the job's row stores; None if there is none."""
        raise NotImplementedError

    @classmethod
    def with_answers(cls, job: Job, answers: Mapping[str, Answer]) -> Job:
        """The job with these answers stored, by their numbers."""
        raise NotImplementedError

    @classmethod
    def logged(cls, answers: Mapping[str, Answer]) -> tuple[str, dict[str, Any]]:
        """The log record for these answers: its message, and its fields."""
        raise NotImplementedError


def keyed(constraints: Iterable[Constraint]) -> dict[str, Constraint]:
    """The constraints of a schedule by their keys: the kind, and the number among those of the kind."""
    found: dict[str, Constraint] = {}
    for each in constraints:
        number = sum(key.partition(":")[0] == each.type for key in found)
        found[f"{each.type}:{number}"] = each
    return found


def externals_of(constraints: Iterable[Constraint]) -> dict[str, External]:
    """The external constraints of a schedule by their keys."""
    return {key: each for key, each in keyed(constraints).items() if isinstance(each, External)}


def number_of(key: str) -> str:
    """The number in the key of an external constraint."""
    return key.partition(":")[2]
