"""probe: a check of the user's own decides whether a job may run (C15).

A probe answers with one JSON object: ``{"met": true}``; ``{"met": false, "why": ...}`` or ``{"retry_after": "5m",
"why": ...}``, after which Sluice calls it again; or ``{"abort": true, "why": ...}``. Any other answer, or none, counts
as unmet and as a failure of the probe: Sluice calls it again after ever longer pauses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from chalicelib.core import masks
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
    after_failure,
)
from chalicelib.core.documents import Document, Duration, by_type, spanning
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import DAY, SECOND, Instant, Millis, duration, iso
from chalicelib.core.rows.job import Job
from chalicelib.core.states import WaitReason
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.core.targets.http import CallTimeout
from chalicelib.core.targets.lambda_function import FunctionArn
from chalicelib.core.targets.secrets import Secret, SecretUrl
from chalicelib.core.targets.urls import Headers, Url

Verdict = Literal["met", "unmet", "abort", "failed"]

MAX_WHY = 500  # characters of a probe's reason that are kept with the job
MIN_PAUSE: Millis = 10 * SECOND
MAX_PAUSE: Millis = DAY


@dataclass(frozen=True, slots=True)
class ProbeResult(Answer):
    """The answer of a probe, valid until ``until``; then Sluice calls it again. ``failures`` counts the calls in a row
    without a usable answer."""

    verdict: Verdict
    at: Instant
    until: Instant
    why: str = ""
    failures: int = 0


class LambdaProbe(Document):
    """A Lambda function that Sluice invokes."""

    type: Literal["lambda"]
    function: FunctionArn

    @property
    def address(self) -> str:
        return self.function


class HttpProbe(Document):
    """An HTTP endpoint that Sluice calls by POST, signed if there is a ``secret``."""

    type: Literal["http"]
    url: Url
    headers: Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: Secret | None = None

    @property
    def address(self) -> str:
        """The address as reasons have it, which are kept for longer than documents."""
        return f"at {self.url.host}" if isinstance(self.url, SecretUrl) else masks.url(self.url)


class Probe(External):
    """The user's own check decides whether to launch (C15). Sluice calls it once all other constraints are met, and
    again after ``retry`` or at the time of its answer. If it fails, the job waits; ``on_unmet`` does not apply."""

    wait_reason: ClassVar[WaitReason] = "probe"
    for_backfill: ClassVar[bool] = True

    type: Literal["probe"]
    target: Annotated[
        Annotated[LambdaProbe, Tag("@lambda")] | Annotated[HttpProbe, Tag("@http")], by_type(("lambda", "http"))
    ]
    retry: Annotated[Duration, spanning(MIN_PAUSE, MAX_PAUSE, "a pause between two calls from 10s to 1d")] = "1m"
    on_unmet: OnUnmet = "wait"

    @property
    def span(self) -> Millis:
        return duration(self.retry)

    def describe(self) -> str:
        return f"the probe {self.target.address} allows the launch"

    def evaluate(self, s: Situation) -> Condition:
        """The condition by the answer that this check has requested, or else by the last answer while it is valid."""
        fresh = s.answer_to(self, ProbeResult)
        result = fresh or remembered(s.job.probed)
        if result is None or (fresh is None and result.until <= s.now):
            return self.unmet("called once all other constraints are met", open=True)
        if result.verdict == "met":
            return self.met()
        if result.verdict == "abort":
            return self.unmet(f"the probe aborts the job: {result.why}", result.until, abort=True)
        condition = self.unmet(f"{result.why}; called again at {iso(result.until)}", result.until)
        return condition if result.verdict == "unmet" else replace(condition, constraint=self.patient())

    def references(self) -> Iterable[Use]:
        return (Use("target", self.target.model_dump(), "target"),)

    @classmethod
    def check_together(cls, same: Sequence[Constraint]) -> None:
        if len(same) > 1:
            raise invalid("constraints", "at most one probe", "several", "combine their checks in one probe")

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
        [result] = answers.values()
        return replace(job, probed=result.kept())

    @classmethod
    def logged(cls, answers: Mapping[str, Answer]) -> tuple[str, dict[str, Any]]:
        [result] = (answer.kept() for answer in answers.values())
        return "probed", {"verdict": result["verdict"], "why": result["why"]}


def remembered(probed: Mapping[str, Any]) -> ProbeResult | None:
    """The last result that a job stores; None if the probe was never called."""
    return ProbeResult(**probed) if probed else None


def question(job: Job, workflow: str, properties: Mapping[str, Any], now: Instant) -> dict[str, Any]:
    """The body of a call to a probe: the job, its correlation and its properties."""
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
    """The result of the answer ``text``, received at ``now``. ``retry`` is the pause between calls, in ms."""
    try:
        answer = json.loads(text)
    except ValueError:
        return failed("the answer is not JSON", retry, before, now)
    if not isinstance(answer, dict):
        return failed("the answer is not a JSON object", retry, before, now)
    why = str(answer.get("why") or "")[:MAX_WHY]
    if answer.get("abort") is True:
        return ProbeResult("abort", now, now + retry, why or "without a reason")
    if answer.get("met") is True:
        return ProbeResult("met", now, now)
    if "retry_after" in answer:
        try:
            span = duration(str(answer["retry_after"]))
        except SluiceError as error:
            return failed(f"retry_after in the answer is invalid: {error.message}", retry, before, now)
        again = now + min(max(span, MIN_PAUSE), MAX_PAUSE)
        return ProbeResult("unmet", now, again, why or "the probe asks for a later call")
    if answer.get("met") is False:
        return ProbeResult("unmet", now, now + retry, why or "the probe answered that the condition is not met")
    return failed("the answer has none of met, retry_after and abort", retry, before, now)


def failed(why: str, retry: Millis, before: Answer | None, now: Instant) -> ProbeResult:
    """A call without a usable answer. The next follows after ``retry``, doubled with every failure up to an hour."""
    failures, pause = after_failure(retry, before)
    return ProbeResult("failed", now, now + pause, f"the probe failed: {why}"[:MAX_WHY], failures)
