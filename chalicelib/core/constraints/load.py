"""load: a measurement outside Sluice, such as the use of a pool, is within a bound (C6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named
from chalicelib.core.constraints.constraint import (
    Answer,
    Condition,
    External,
    MeterQuestion,
    PoolQuestion,
    Question,
    Reply,
    Situation,
    Use,
    after_failure,
    number_of,
)
from chalicelib.core.documents import ONE_LINE, Document, Duration, Line, Reference, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, SECOND, Instant, Millis, duration, iso
from chalicelib.core.names import Names
from chalicelib.core.rows.job import Job
from chalicelib.core.states import WaitReason
from chalicelib.core.targets.answers import Never, NoAnswer

MAX_WHY = 300


@dataclass(frozen=True, slots=True)
class LoadReading(Answer):
    """A measured value. It is text, so that the tables do not change it. None if the measurement failed, and
    ``why``."""

    value: str | None
    at: Instant
    until: Instant
    why: str = ""
    failures: int = 0


class Metric(Document):
    """A metric of CloudWatch: its newest value for a ``period`` in seconds, by a statistic."""

    namespace: str = Field(pattern=r"^[!-~]{1,255}$")
    metric: Annotated[str, Field(min_length=1, max_length=255), ONE_LINE]
    dimensions: dict[Line, Line] = Field(default_factory=dict, max_length=30)
    statistic: Literal["Average", "Sum", "Minimum", "Maximum", "SampleCount"] = "Average"
    period: Literal[10, 30, 60, 300, 900, 3600] = 60

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.metric}"


class Measured(Document):
    """One of four measurements: use of a ``pool``, vCPUs in use of an EMR Serverless application, a CloudWatch metric,
    or free addresses of a ``subnet``. Use is a share of the pool. The vCPUs are a share of the application's maximum
    capacity, if it has one."""

    pool: Reference | None = None
    emr_application: str | None = Field(default=None, pattern=r"^[0-9a-z]{1,64}$")
    cloudwatch: Metric | None = None
    subnet: str | None = Field(default=None, pattern=r"^subnet-[0-9a-f]{8,17}$")

    @model_validator(mode="after")
    def _is_one(self) -> Measured:
        given = self.model_dump(exclude_none=True)
        if len(given) != 1:
            raise invalid("", "one of pool, emr_application, cloudwatch and subnet", sorted(given) or "none")
        return self

    def describe(self) -> str:
        if self.cloudwatch is not None:
            return f"{self.cloudwatch.metric} of {self.cloudwatch.namespace}"
        if self.subnet is not None:
            return f"the free addresses of {self.subnet}"
        if self.pool is not None:
            return f"the share of pool {self.pool} in use"
        return f"the capacity in use of EMR application {self.emr_application}"


class Load(External):
    """The measurement ``of`` is ``below`` a bound, or ``at_least`` one (C6). Sluice measures once all other constraints
    but a probe are met, and again after ``recheck``. While a measurement fails, the job waits; ``on_unmet`` does
    not apply.
    """

    wait_reason: ClassVar[WaitReason] = "probe"

    type: Literal["load"]
    of: Measured
    below: float | None = None
    at_least: float | None = None
    recheck: Annotated[Duration, spanning(10 * SECOND, DAY, "a pause between two measurements from 10s to 1d")] = "1m"
    on_unmet: Literal["abort", "wait"] = "wait"

    @model_validator(mode="after")
    def _has_one_bound(self) -> Load:
        if (self.below is None) == (self.at_least is None):
            raise invalid("", "either below or at_least", "both" if self.below is not None else "neither")
        return self

    @property
    def span(self) -> Millis:
        return duration(self.recheck)

    def holds(self, value: float) -> bool:
        """Whether a value is within the bound."""
        if self.below is not None:
            return value < self.below
        return self.at_least is not None and value >= self.at_least

    def describe(self) -> str:
        bound = f"below {self.below:g}" if self.below is not None else f"at least {self.at_least or 0:g}"
        return f"{self.of.describe()} is {bound}"

    def evaluate(self, s: Situation) -> Condition:
        """The condition by the value that this check has measured, or else by the last value while it is valid."""
        fresh = s.answer_to(self, LoadReading)
        reading = fresh or self.last_answer(s.job, number_of(s.key_of(self)))
        if reading is None or (fresh is None and reading.until <= s.now):
            last = f"; the last value is {reading.value}" if reading is not None and reading.value is not None else ""
            return self.unmet(f"measured once all other constraints are met{last}", open=True)
        if reading.value is None:
            why = f"the measurement failed: {reading.why}; measured again at {iso(reading.until)}"
            return replace(self.unmet(why, reading.until), constraint=self.patient())
        if self.holds(float(reading.value)):
            return self.met(f"met, the value is {reading.value}")
        why = f"the value is {reading.value} at {iso(reading.at)}; measured again at {iso(reading.until)}"
        return self.unmet(why, reading.until)

    def resolve(self, names: Names) -> Self:
        if self.of.pool is None:
            return self
        return self.model_copy(update={"of": self.of.model_copy(update={"pool": names.in_namespace(self.of.pool)})})

    def references(self) -> Iterable[Use]:
        if self.of.pool is not None:
            yield Use("pool", self.of.pool, "of.pool")
        if self.of.emr_application is not None:
            yield Use("application", self.of.emr_application, "of.emr_application")
        if self.of.cloudwatch is not None:
            yield Use("metric", self.of.cloudwatch.full_name, "of.cloudwatch")

    def question(self, job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> Question:
        if self.of.pool is not None:
            return PoolQuestion(self.of.pool)
        return MeterQuestion(self.of.model_dump(mode="json", exclude_none=True), self._named())

    def _named(self) -> tuple[Named, ...]:
        """The metric or the application, as an allow-list names it."""
        if self.of.cloudwatch is not None:
            return (Named("metrics", self.of.cloudwatch.full_name, "of.cloudwatch"),)
        application = self.of.emr_application
        return () if application is None else (Named("applications", application, "of.emr_application"),)

    def read(self, reply: Reply, before: Answer | None, now: Instant) -> LoadReading:
        if isinstance(reply, Never | NoAnswer):
            failures, pause = after_failure(self.span, before)
            return LoadReading(None, now, now + pause, reply.why[:MAX_WHY], failures)
        return LoadReading(f"{float(reply):.6g}", now, now + self.span)

    def assume(self, met: bool, now: Instant) -> LoadReading:
        bound = self.below if self.below is not None else (self.at_least or 0)
        lower = math.nextafter(bound, -math.inf)  # of a large number, 1 less is the same number
        inside, outside = (lower, bound) if self.below is not None else (bound, lower)
        return LoadReading(repr(float(inside if met else outside)), now, now)

    @classmethod
    def last_answer(cls, job: Job, number: str) -> LoadReading | None:
        return LoadReading(**job.measured[number]) if number in job.measured else None

    @classmethod
    def with_answers(cls, job: Job, answers: Mapping[str, Answer]) -> Job:
        kept = {number: each.kept() for number, each in answers.items()}
        return replace(job, measured={**job.measured, **kept})

    @classmethod
    def logged(cls, answers: Mapping[str, Answer]) -> tuple[str, dict[str, Any]]:
        return "measured", {"values": {number: each.kept()["value"] for number, each in answers.items()}}
