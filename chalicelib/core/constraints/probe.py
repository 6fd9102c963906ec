"""probe: the user's own check says that a job may run (C15). What it is asked, and what its answer means.

A probe answers one JSON object: ``{"met": true}``; ``{"met": false, "why": ...}`` or ``{"retry_after": "5m", "why":
...}``, which are asked again; ``{"abort": true, "why": ...}``. Anything else, and silence, counts as unmet: the probe
is at fault then, so it is asked again ever more slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag, field_validator

from chalicelib.core.constraints.constraint import (
    Answer,
    CallQuestion,
    Condition,
    Constraint,
    External,
    OnUnmet,
    Question,
    Reply,
    Situation,
    Use,
)
from chalicelib.core.documents import Document, Duration, by_type
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, HOUR, SECOND, Instant, Millis, duration, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.states import WaitReason
from chalicelib.core.targets import backoff
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.core.targets.http import CallTimeout, SecretName
from chalicelib.core.targets.lambda_function import FunctionArn
from chalicelib.core.targets.urls import Headers, Url

Verdict = Literal["met", "unmet", "abort", "failed"]

MAX_WHY = 500  # characters of a probe's reason that are kept with the job
SHORTEST: Millis = 10 * SECOND
LONGEST: Millis = DAY
MAX_FAILING: Millis = HOUR


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe said, and until when that holds: then it is asked again. ``failures``: how often in a row it could
    not be asked, or spoke in riddles."""

    verdict: Verdict
    at: Instant
    until: Instant
    why: str = ""
    failures: int = 0

    def kept(self) -> dict[str, Any]:
        """As it is stored with the job."""
        return asdict(self)


class LambdaProbe(Document):
    """A Lambda function that is asked."""

    type: Literal["lambda"]
    function: FunctionArn


class HttpProbe(Document):
    """A web address that is asked by POST, signed if there is a ``secret``."""

    type: Literal["http"]
    url: Url
    headers: Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: SecretName | None = None


class Probe(External):
    """The user's own check says whether to launch (C15). It is asked when all else is met, and again after ``retry``,
    or when it said so. Not met, it waits, or aborts; one that cannot be asked always waits."""

    wait_reason: ClassVar[WaitReason] = "probe"
    for_backfill: ClassVar[bool] = True

    type: Literal["probe"]
    target: Annotated[
        Annotated[LambdaProbe, Tag("@lambda")] | Annotated[HttpProbe, Tag("@http")], by_type(("lambda", "http"))
    ]
    retry: Duration = "1m"
    on_unmet: OnUnmet = "wait"

    @field_validator("retry")
    @classmethod
    def _is_bounded(cls, retry: str) -> str:
        if not 10 * SECOND <= duration(retry, "") <= DAY:
            raise invalid("", "a pause between two questions from 10s to 1d", retry)
        return retry

    @property
    def span(self) -> Millis:
        return duration(self.retry)

    def describe(self) -> str:
        whom = self.target.function if isinstance(self.target, LambdaProbe) else self.target.url
        return f"the probe {whom} says that it may"

    def evaluate(self, s: Situation) -> Condition:
        """What it said just now, else what it said last, for as long as that holds."""
        fresh = s.answer_to(self, ProbeResult)
        said = fresh or remembered(s.job.probed)
        if said is None or (fresh is None and said.until <= s.now):
            return self.unmet("it is asked when all else is met", open=True)
        if said.verdict == "met":
            return self.met()
        if said.verdict == "abort":
            return self.unmet(f"it says to abort: {said.why}", said.until, abort=True)
        condition = self.unmet(f"{said.why}; asked again at {iso(said.until)}", said.until)
        return condition if said.verdict == "unmet" else replace(condition, constraint=self.patient())

    def references(self) -> Iterable[Use]:
        return (Use("target", self.target.model_dump(), "target"),)

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        if len(same) > 1:
            raise invalid("constraints", "at most one probe", "several", "let one ask what the others would")

    def question(self, job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> Question:
        return CallQuestion(self.target.model_dump(mode="json"), question(job, workflow, properties, now))

    def read(self, reply: Reply, before: Answer | None, now: Instant) -> ProbeResult:
        if isinstance(reply, Never | NoAnswer):
            return failed(reply.why, self.span, before, now)
        return read(reply if isinstance(reply, bytes) else str(reply).encode(), self.span, before, now)

    def assume(self, met: bool, now: Instant) -> ProbeResult:
        return ProbeResult("met" if met else "unmet", now, now)

    @classmethod
    def last_answer(cls, job: Job, number: str) -> ProbeResult | None:
        return remembered(job.probed)

    @classmethod
    def with_answers(cls, job: Job, answers: Mapping[str, Answer]) -> Job:
        [said] = answers.values()
        return replace(job, probed=said.kept())

    @classmethod
    def logged(cls, answers: Mapping[str, Answer]) -> tuple[str, dict[str, Any]]:
        [said] = (each.kept() for each in answers.values())
        return "probed", {"verdict": said["verdict"], "why": said["why"]}


def remembered(probed: Mapping[str, Any]) -> ProbeResult | None:
    """What the probe said last, out of the job; None if it was never asked."""
    return ProbeResult(**probed) if probed else None


def question(job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> dict[str, Any]:
    """What a probe is told: which job wants to run, what it is about, and with which properties."""
    return {
        "job_id": job.job_id,
        "attempt": job.attempt,
        "schedule": job.schedule,
        "workflow": workflow,
        "correlation": dict(job.correlation) if job.correlation else None,
        "properties": dict(properties),
        "created_at": iso(job.created_at),
        "asked_at": iso(now),
    }


def read(text: bytes, retry: Millis, before: Answer | None, now: Instant) -> ProbeResult:
    """The meaning of what a probe answered at ``now``. ``retry`` is how long its schedule waits between questions."""
    try:
        answer = json.loads(text)
    except ValueError:
        return failed("it answered with something else than JSON", retry, before, now)
    if not isinstance(answer, dict):
        return failed("it answered with something else than a JSON object", retry, before, now)
    why = str(answer.get("why") or "")[:MAX_WHY]
    if answer.get("abort") is True:
        return ProbeResult("abort", now, now + retry, why or "it gave no reason")
    if answer.get("met") is True:
        return ProbeResult("met", now, now)
    if "retry_after" in answer:
        try:
            span = duration(str(answer["retry_after"]))
        except SluiceError as error:
            return failed(f"its retry_after cannot be read: {error.message}", retry, before, now)
        return ProbeResult("unmet", now, now + min(max(span, SHORTEST), LONGEST), why or "it asks for patience")
    if answer.get("met") is False:
        return ProbeResult("unmet", now, now + retry, why or "it says that it is not met")
    return failed("its answer holds none of met, retry_after and abort", retry, before, now)


def failed(why: str, retry: Millis, before: Answer | None, now: Instant) -> ProbeResult:
    """A question without a usable answer. Asked again after ``retry``, doubled with every failure up to an hour."""
    failures = before.failures + 1 if before else 1
    pause = max(retry, min(backoff.doubled(retry, failures), MAX_FAILING))
    return ProbeResult("failed", now, now + pause, f"it could not be asked: {why}"[:MAX_WHY], failures)
