"""A probe: its answers, their meaning, and its order among the other constraints (C15)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.constraints.probe import ProbeResult, failed, question, read
from chalicelib.core.errors import from_validation
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.jobs.check import Decision, End, Launch, Wait, decide
from chalicelib.core.rows.job import Job
from tests.core.builders import NOON, end_of, facts, job, met, schedule
from tests.support.reasons import says

ARN = "arn:aws:lambda:us-east-1:123456789012:function:ready"
PROBE: dict[str, Any] = {"type": "probe", "target": {"type": "lambda", "function": ARN}}
RULE = f"the probe {ARN} allows the launch, else wait"


def answered(answer: Any) -> ProbeResult:
    return read(json.dumps(answer).encode(), MINUTE, None, NOON)


def decided(
    said: ProbeResult | None, what: Job | None = None, *constraints: dict[str, Any], now: int = NOON
) -> Decision:
    made = schedule(constraints=[*constraints, PROBE])
    return decide(what or met(), facts(schedule=made, probe=said), now)


@pytest.mark.parametrize(
    ("answer", "verdict", "pause", "why"),
    [
        ({"met": True}, "met", 0, ""),
        ({"met": False}, "unmet", MINUTE, "the probe answered that the condition is not met"),
        ({"met": False, "why": "no stock"}, "unmet", MINUTE, "no stock"),
        ({"retry_after": "5m", "why": "month end"}, "unmet", 5 * MINUTE, "month end"),
        ({"met": False, "retry_after": "5m"}, "unmet", 5 * MINUTE, "the probe asks for a later call"),
        ({"retry_after": "1ms"}, "unmet", 10 * SECOND, "the probe asks for a later call"),
        ({"retry_after": "52w"}, "unmet", DAY, "the probe asks for a later call"),
        ({"abort": True, "why": "holiday"}, "abort", MINUTE, "holiday"),
        ({"abort": True, "met": True}, "abort", MINUTE, "without a reason"),
    ],
)
def test_c15_a_probe_answer_is_read_as_met_unmet_or_abort(answer: Any, verdict: str, pause: int, why: str) -> None:
    assert answered(answer) == ProbeResult(verdict, NOON, NOON + pause, why)


@pytest.mark.parametrize(
    "text", [b"", b"yes", b"[]", b"{}", b'{"met": "true"}', b'{"retry_after": "soon"}', b"\xff\xfe"]
)
def test_c15_unclear_answers_count_as_unmet(text: bytes) -> None:
    said = read(text, MINUTE, None, NOON)
    assert (said.verdict, said.until, said.failures) == ("failed", NOON + MINUTE, 1)
    assert said.why.startswith("the probe failed: ")


def test_c15_a_failing_probe_backs_off_until_it_answers_again() -> None:
    said: ProbeResult | None = None
    found: list[int] = []
    for _ in range(9):
        said = failed("no answer", MINUTE, said, NOON)
        found.append(said.until - NOON)
    assert found == [MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 16 * MINUTE, 32 * MINUTE, HOUR, HOUR, HOUR]
    assert answered({"met": False}).failures == 0
    assert failed("no answer", 2 * HOUR, said, NOON).until == NOON + 2 * HOUR, "never sooner than its schedule says"


def test_c15_a_met_probe_launches_an_unmet_one_waits_for_next() -> None:
    assert isinstance(decided(answered({"met": True})), Launch)
    unmet = decided(answered({"retry_after": "5m", "why": "no stock"}))
    why = f"{RULE}: no stock; called again at 2026-03-02T12:05:00.000Z"
    assert unmet == Wait(NOON + 5 * MINUTE, "PENDING_CONSTRAINTS", says(why))


def test_c15_a_probe_answering_abort_aborts_under_any_on_unmet() -> None:
    assert decided(answered({"abort": True, "why": "holiday"})) == End(
        "ABORTED", says(f"{RULE}: the probe aborts the job: holiday")
    )
    retry = decided(answered({"abort": True, "why": "holiday"}), job("retry", attempt=2))
    assert isinstance(retry, Wait), "a retry never aborts at a constraint"
    assert retry.until == NOON + MINUTE


def test_c15_on_unmet_abort_applies_only_to_an_answer() -> None:
    strict = schedule(constraints=[{**PROBE, "on_unmet": "abort"}])
    known = facts(schedule=strict, probe=answered({"met": False, "why": "no"}))
    assert end_of(decide(met(), known, NOON)) == "ABORTED"
    silent = replace(known, answers={"probe:0": failed("no answer", MINUTE, None, NOON)})
    assert isinstance(decide(met(), silent, NOON), Wait)


def test_c15_the_last_probe_answer_holds_until_the_next_call() -> None:
    before = met(probed=answered({"retry_after": "5m", "why": "no stock"}).kept())
    assert isinstance(decided(None, before), Wait)
    assert isinstance(decided(None, before, now=NOON + 5 * MINUTE), Launch), "open again: the next check polls"


def test_c15_a_probe_not_yet_called_hides_no_abort() -> None:
    gap = {"type": "time_window", "start": "22:00", "end": "06:00", "on_unmet": "abort"}
    assert end_of(decided(None, None, gap)) == "ABORTED"


def test_c15_a_probe_receives_the_job_that_waits_to_run() -> None:
    asked = question(met(correlation={"day": "1"}), "demo.flights.clean", {"level": 2}, NOON)
    assert asked["correlation"] == {"day": "1"}
    assert asked["properties"] == {"level": 2}
    assert (asked["schedule"], asked["asked_at"]) == ("demo.flights.clean", "2026-03-02T12:00:00.000Z")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"target": {"type": "sqs", "queue_url": "https://q"}}, "constraints.0.target"),
        ({"target": {"type": "lambda", "function": "ready"}}, "constraints.0.target.function"),
        ({"target": {"type": "http", "url": "https://a:b@c/"}}, "constraints.0.target.url"),
        ({"retry": "1s"}, "constraints.0.retry"),
        ({"retry": "2d"}, "constraints.0.retry"),
        ({"on_unmet": "cancel_other"}, "constraints.0.on_unmet"),
    ],
)
def test_c15_an_invalid_probe_is_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        schedule(constraints=[{**PROBE, **fields}])
    assert from_validation(caught.value).field == field


def test_c15_a_schedule_has_one_probe() -> None:
    with pytest.raises(ValidationError) as caught:
        schedule(constraints=[PROBE, PROBE])
    assert "at most one probe" in str(caught.value)
