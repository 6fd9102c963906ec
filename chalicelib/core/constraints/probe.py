"""What a probe is asked, and what its answer means (C15).

A probe answers one JSON object: ``{"met": true}``; ``{"met": false, "why": ...}`` or ``{"retry_after": "5m", "why":
...}``, which are asked again; ``{"abort": true, "why": ...}``. Anything else, and silence, counts as unmet: the probe
is at fault then, so it is asked again ever more slowly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, SECOND, Instant, Millis, duration, iso
from chalicelib.core.rows.job import Job

Verdict = Literal["met", "unmet", "abort", "failed"]

MOST_WHY = 500  # characters of a probe's reason that are kept with the job
SHORTEST: Millis = 10 * SECOND
LONGEST: Millis = DAY
LONGEST_FAILING: Millis = HOUR


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


def read(text: bytes, retry: Millis, before: ProbeResult | None, now: Instant) -> ProbeResult:
    """The meaning of what a probe answered at ``now``. ``retry`` is how long its schedule waits between questions."""
    try:
        answer = json.loads(text)
    except ValueError:
        return failed("it answered with something else than JSON", retry, before, now)
    if not isinstance(answer, dict):
        return failed("it answered with something else than a JSON object", retry, before, now)
    why = str(answer.get("why") or "")[:MOST_WHY]
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


def failed(why: str, retry: Millis, before: ProbeResult | None, now: Instant) -> ProbeResult:
    """A question without a usable answer. Asked again after ``retry``, doubled with every failure up to an hour."""
    failures = before.failures + 1 if before else 1
    pause = max(retry, min(retry * 2 ** min(failures - 1, 20), LONGEST_FAILING))
    return ProbeResult("failed", now, now + pause, f"it could not be asked: {why}"[:MOST_WHY], failures)
