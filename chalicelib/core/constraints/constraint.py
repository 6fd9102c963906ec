"""What every constraint is: a condition to be met before a launch, and what it tells the rest of the service (C1-C17).

A constraint is one file of this package and one line in `registry.CONSTRAINTS`. What differs between the kinds is said
here, by class variables and methods; no other package asks for the class of one. `Situation` is all that an evaluation
depends on, `Condition` is its result. An `External` constraint asks something outside; `flow/jobs/external.py` does so
when the answer decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar

from chalicelib.core.documents import Document
from chalicelib.core.instants import Instant, iso
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.states import WaitReason
from chalicelib.core.targets.answers import Never, NoAnswer

OnUnmet = Literal["abort", "wait"]


class Constraint(Document):
    """A condition to be met before a launch. Each says by ``on_unmet`` what an unmet one does (C8)."""

    if TYPE_CHECKING:
        # Each kind has these fields, with its own values and in its own order, which its JSON Schema shows.
        @property
        def type(self) -> str: ...

        @property
        def on_unmet(self) -> Literal["abort", "wait", "cancel_other"]: ...

    # Whether an unmet one makes a job queue at a limit: whatever ``on_unmet`` says, if that says to wait, or never.
    queues: ClassVar[Literal["no", "if_waiting", "always"]] = "no"
    wait_reason: ClassVar[WaitReason]  # the class of its waits in the metrics
    decidable_ahead: ClassVar[bool] = True  # before the instant of a fire, together with others
    by_person: ClassVar[bool] = False  # somebody decides, who may do so before the instant of a fire
    survives_timeout: ClassVar[bool] = False  # still required of a job that its timeout runs anyway (C10)
    for_backfill: ClassVar[bool] = False  # asked of a backfill's jobs; what measures the present holds none of them up
    needs_lifecycle: ClassVar[bool] = False  # only for a target whose runs can be followed

    def describe(self) -> str:
        """The condition in words."""
        raise NotImplementedError

    @property
    def rule(self) -> str:
        """The condition, and what an unmet one does, in words."""
        return f"{self.describe()}, else {self.on_unmet.replace('_', ' ')}"

    def evaluate(self, s: Situation) -> Condition:
        """Whether it is met, why, and until when it is not."""
        raise NotImplementedError

    def resolve(self, names: Names) -> Self:
        """The same with full names, and with a zone."""
        return self

    def references(self) -> Iterable[Use]:
        """What it names that must be there when a schedule is put."""
        return ()

    def permits(self, workflow: str, namespace: str) -> Iterable[PermitRequest]:
        """What a job requests of limits because of it."""
        return ()

    def groups(self) -> tuple[str, ...]:
        """The groups of runs that it makes a schedule a member of."""
        return ()

    def rates(self) -> tuple[str, ...]:
        """The rules by which the starts of the workflow are to be counted, whatever causes them."""
        return ()

    def upstreams(self) -> tuple[str, ...]:
        """The workflows whose last success it depends on."""
        return ()

    def wake_keys(self, workflow: str) -> tuple[str, ...]:
        """The events that may meet it while a job waits."""
        return ()

    def makes_room(self) -> bool:
        """Whether older runs are cancelled that hold the permits which it requests."""
        return False

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        """Refuse the constraints of this kind that one schedule has, if they do not fit together."""

    def met(self, why: str = "met") -> Condition:
        return Condition(self, True, f"{self.rule}: {why}")

    def unmet(self, why: str, until: Instant | None = None, *, abort: bool = False, open: bool = False) -> Condition:
        return Condition(self, False, f"{self.rule}: {why}", until, abort, open)

    def met_from(self, opens: Instant, now: Instant) -> Condition:
        """A condition that holds from an instant on."""
        return self.met() if now >= opens else self.unmet(f"not before {iso(opens)}", opens)

    def patient(self) -> Self:
        """The same, but an unmet one waits. No answer from outside is no refusal: the question is asked again."""
        return self.model_copy(update={"on_unmet": "wait"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One constraint as it stands. ``until``: when the passing of time alone meets it, if it can, or when to ask again.
    ``abort``: it says by itself that waiting is in vain. ``open``: the answer from outside is not there yet; it decides
    nothing."""

    constraint: Constraint
    met: bool
    why: str
    until: Instant | None = None
    abort: bool = False
    open: bool = False

    @property
    def waits(self) -> bool:
        """Whether an unmet one makes the job wait on the clock or on facts; limits have queues of their own."""
        if self.abort or self.open:
            return False
        return self.constraint.on_unmet == "wait" and self.constraint.queues == "no"

    @property
    def aborts(self) -> bool:
        return not self.open and (self.abort or self.constraint.on_unmet == "abort")


class Answer(Protocol):
    """What something outside answered, and until when that holds. ``failures``: how often in a row it did not."""

    @property
    def until(self) -> Instant: ...

    @property
    def failures(self) -> int: ...

    def kept(self) -> dict[str, Any]:
        """As it is stored with the job."""


A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Situation:
    """All that an evaluation depends on. ``workflow`` is the full name of what the job starts. ``successes``: when each
    workflow that the schedule's constraints name last succeeded. ``externals`` are its external constraints by their
    keys, ``answers`` what they were answered at this very look."""

    job: Job
    workflow: str
    namespace: str
    limit_states: Mapping[str, LimitState]
    successes: Mapping[str, Instant | None]
    now: Instant
    externals: Mapping[str, External] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    def limit_state(self, name: str) -> LimitState:
        return self.limit_states.get(name) or LimitState(name)

    @property
    def met_at(self) -> Instant:
        """When the trigger was met: of a job that needs none, when it came into being."""
        if self.job.kind in ("gathering", "detached"):
            return self.job.met_at if self.job.met_at is not None else self.now
        return self.job.created_at

    def key_of(self, asked: External) -> str:
        """The key of an external constraint. Of two that are the same, the first: one answer serves both."""
        return next(key for key, each in self.externals.items() if each is asked or each == asked)

    def answer_to(self, asked: External, kind: type[A]) -> A | None:
        """What a constraint was answered at this look."""
        found = self.answers.get(self.key_of(asked))
        return found if isinstance(found, kind) else None


@dataclass(frozen=True, slots=True)
class Use:
    """Something that a constraint names, and the field that does. A target is its document; all else is a name."""

    kind: Literal["pool", "application", "target", "workflow"]
    of: Any
    field: str = ""


@dataclass(frozen=True, slots=True)
class PoolQuestion:
    """Which share of a pool is in use?"""

    pool: str


@dataclass(frozen=True, slots=True)
class MeterQuestion:
    """Which value does a measurement outside have?"""

    source: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """What does a function, or a web address, say to this body?"""

    target: Mapping[str, Any]
    body: Mapping[str, Any]


Question = PoolQuestion | MeterQuestion | CallQuestion
Reply = float | bytes | Never | NoAnswer


class External(Constraint):
    """A constraint whose answer comes from outside. It is asked when the answer decides, and not before the last answer
    has run out. ``number`` tells the constraints of one kind in a schedule apart."""

    decidable_ahead: ClassVar[bool] = False

    def question(self, job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> Question:
        raise NotImplementedError

    def read(self, reply: Reply, before: Answer | None, now: Instant) -> Answer:
        """The meaning of a reply; ``before`` is the last answer."""
        raise NotImplementedError

    def assume(self, met: bool, now: Instant) -> Answer:
        """An answer that meets it, or does not: what would become of the job then?"""
        raise NotImplementedError

    @classmethod
    def last_answer(cls, job: Job, number: str) -> Answer | None:
        """The answer that is kept with a job."""
        raise NotImplementedError

    @classmethod
    def with_answers(cls, job: Job, answers: Mapping[str, Answer]) -> Job:
        """The job that keeps these answers, by their numbers."""
        raise NotImplementedError

    @classmethod
    def logged(cls, answers: Mapping[str, Answer]) -> tuple[str, dict[str, Any]]:
        """The line of the log for these answers: its message, and its fields."""
        raise NotImplementedError


def externals_of(constraints: Iterable[Constraint]) -> dict[str, External]:
    """The external constraints of a schedule by their keys: the kind, and the number among those of the kind."""
    found: dict[str, External] = {}
    for each in constraints:
        if isinstance(each, External):
            number = sum(key.partition(":")[0] == each.type for key in found)
            found[f"{each.type}:{number}"] = each
    return found


def number_of(key: str) -> str:
    return key.partition(":")[2]
