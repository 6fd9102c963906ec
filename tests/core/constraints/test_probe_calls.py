"""A probe as a part of a schedule: its document, its words, the call that Sluice makes, and what a job keeps (C15)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.constraints.constraint import CallQuestion, Use
from chalicelib.core.constraints.probe import MAX_WHY, Probe, ProbeResult, failed, question, read, remembered
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.targets.answers import Never, NoAnswer
from tests.core.builders import NAME, NOON, job, met, schedule

ARN = "arn:aws:lambda:us-east-1:123456789012:function:ready"
LAMBDA: dict[str, Any] = {"type": "lambda", "function": ARN}
HTTP: dict[str, Any] = {"type": "http", "url": "https://checks.example/ready"}
FAILED = "the probe failed: "


def probe(target: dict[str, Any] = LAMBDA, **fields: Any) -> Any:
    [made] = schedule(constraints=[{"type": "probe", "target": target, **fields}]).constraints
    return made


def refused(*documents: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        schedule(constraints=[{"type": "probe", "target": LAMBDA, **document} for document in documents])
    return errors.from_validation(caught.value)


# -- documents and words -------------------------------------------------------------------------------------------


def test_c15_a_probe_waits_and_is_called_each_minute_by_default() -> None:
    made = probe(HTTP)
    assert (made.on_unmet, made.span) == ("wait", MINUTE)
    assert (made.target.timeout, made.target.headers, made.target.secret) == ("10s", {}, None)


@pytest.mark.parametrize(("retry", "span"), [("10s", 10 * SECOND), ("1d", DAY), ("PT5M", 5 * MINUTE)])
def test_c15_the_pause_between_two_calls_is_from_10s_to_1d(retry: str, span: int) -> None:
    assert probe(retry=retry).span == span


@pytest.mark.parametrize("retry", ["9999ms", "86401s"])
def test_c15_another_pause_between_two_calls_is_refused(retry: str) -> None:
    error = refused({"retry": retry})
    assert (error.code, error.field) == ("invalid", "constraints.0.retry")
    assert error.message == f"expected a pause between two calls from 10s to 1d, got '{retry}'"


def test_c15_a_second_probe_is_refused_with_what_to_do() -> None:
    error = refused({}, {"target": HTTP})
    assert (error.code, error.field) == ("invalid", "constraints")
    assert error.message == "expected at most one probe, got 'several'"
    assert error.hint == "combine their checks in one probe"


SECRET = {"type": "http", "url": {"ssm": "/sluice-target/demo/ready", "host": "checks.example"}}


@pytest.mark.parametrize(
    ("target", "name"), [(LAMBDA, ARN), (HTTP, "https://checks.example/***"), (SECRET, "at checks.example")]
)
def test_c14_a_probe_is_described_by_what_sluice_calls(target: dict[str, Any], name: str) -> None:
    assert probe(target, on_unmet="abort").rule == f"the probe {name} allows the launch, else abort"


# -- the call ------------------------------------------------------------------------------------------------------


def test_c15_a_put_checks_the_target_of_a_probe() -> None:
    assert list(probe().references()) == [Use("target", LAMBDA, "target")]
    [use] = probe(HTTP).references()
    assert (use.kind, use.of["url"], use.field) == ("target", HTTP["url"], "target")


def test_c15_a_probe_is_told_about_the_job_and_its_attempt() -> None:
    again = job("retry", attempt=3, created_at=NOON - HOUR, correlation={"day": "1"})
    told = question(again, "demo.flights.load", {"level": 2}, NOON)
    assert told == {
        "job_id": f"{NAME}.7.first",
        "attempt": 3,
        "schedule": NAME,
        "workflow": "demo.flights.load",
        "correlation": {"day": "1"},
        "properties": {"level": 2},
        "created_at": "2026-03-02T11:00:00.000Z",
        "asked_at": "2026-03-02T12:00:00.000Z",
    }
    assert question(met(), NAME, {}, NOON)["correlation"] is None
    assert question(met(correlation={}), NAME, {}, NOON)["correlation"] is None


def test_c15_the_call_goes_to_the_probe_as_it_was_written() -> None:
    target = HTTP | {"headers": {"x-team": "flights"}, "timeout": "5s", "secret": "/sluice/probe"}
    asked = probe(target).question(met(), NAME, {"level": 2}, NOON)
    assert asked == CallQuestion(target, question(met(), NAME, {"level": 2}, NOON))
    assert probe().question(met(), NAME, {}, NOON) == CallQuestion(LAMBDA, question(met(), NAME, {}, NOON))


# -- replies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "the answer is not JSON"),
        (b"yes", "the answer is not JSON"),
        (b"\xff\xfe", "the answer is not JSON"),
        (b"[true]", "the answer is not a JSON object"),
        (b"true", "the answer is not a JSON object"),
        (b"{}", "the answer has none of met, retry_after and abort"),
        (b'{"met": "true"}', "the answer has none of met, retry_after and abort"),
        (b'{"met": 1, "abort": 1}', "the answer has none of met, retry_after and abort"),
        (b'{"abort": false}', "the answer has none of met, retry_after and abort"),
    ],
)
def test_c15_an_answer_without_a_verdict_is_a_failure(text: bytes, why: str) -> None:
    before = failed("no answer", MINUTE, None, NOON - MINUTE)
    assert read(text, MINUTE, None, NOON) == ProbeResult("failed", NOON, NOON + MINUTE, FAILED + why, 1)
    assert read(text, MINUTE, before, NOON) == ProbeResult("failed", NOON, NOON + 2 * MINUTE, FAILED + why, 2)


def test_c15_a_wrong_retry_after_is_a_failure_that_says_so() -> None:
    before = failed("no answer", MINUTE, None, NOON)
    found = read(b'{"retry_after": "soon", "why": "later"}', MINUTE, before, NOON)
    assert (found.verdict, found.until, found.failures) == ("failed", NOON + 2 * MINUTE, 2)
    assert found.why.startswith(f"{FAILED}retry_after in the answer is invalid: expected a duration")
    assert found.why.endswith("got 'soon'")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [({"met": True, "retry_after": "5m"}, "met"), ({"abort": True, "retry_after": "5m"}, "abort")],
)
def test_c15_a_plain_verdict_goes_before_a_later_call(answer: dict[str, Any], verdict: str) -> None:
    assert read(json.dumps(answer).encode(), MINUTE, None, NOON).verdict == verdict


@pytest.mark.parametrize(
    ("asked", "pause"), [("9s", 10 * SECOND), ("11s", 11 * SECOND), ("23h", 23 * HOUR), ("25h", DAY)]
)
def test_c15_a_later_call_is_after_10s_at_least_and_1d_at_most(asked: str, pause: int) -> None:
    said = read(json.dumps({"retry_after": asked, "why": "later"}).encode(), MINUTE, None, NOON)
    assert said == ProbeResult("unmet", NOON, NOON + pause, "later")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"met": False, "why": None}, "the probe answered that the condition is not met"),
        ({"met": False, "why": 7}, "7"),
        ({"met": False, "why": "x" * 501}, "x" * 500),
        ({"abort": True, "why": "x" * 501}, "x" * 500),
        ({"abort": True, "why": ""}, "without a reason"),
        ({"retry_after": "1m", "why": ""}, "the probe asks for a later call"),
    ],
)
def test_c15_the_reason_of_an_answer_is_text_of_500_characters(answer: dict[str, Any], why: str) -> None:
    assert read(json.dumps(answer).encode(), MINUTE, None, NOON).why == why


def test_c15_the_reason_of_a_failure_is_cut_with_its_beginning() -> None:
    assert failed("x" * 600, MINUTE, None, NOON).why == (FAILED + "x" * 600)[:MAX_WHY]
    assert MAX_WHY == 500


@pytest.mark.parametrize("refusal", [NoAnswer("timed out"), Never("timed out")])
def test_c15_no_answer_is_a_failure_with_the_targets_reason(refusal: Any) -> None:
    made = probe(retry="2m")
    first = made.read(refusal, None, NOON)
    assert first == ProbeResult("failed", NOON, NOON + 2 * MINUTE, f"{FAILED}timed out", 1)
    assert made.read(refusal, first, NOON) == replace(first, until=NOON + 4 * MINUTE, failures=2)


def test_c15_an_answer_is_valid_for_the_pause_of_the_probe() -> None:
    made, before = probe(retry="2m"), failed("no answer", MINUTE, None, NOON)
    assert made.read(b'{"met": false, "why": "no stock"}', None, NOON) == ProbeResult(
        "unmet", NOON, NOON + 2 * MINUTE, "no stock"
    )
    assert made.read(b'{"met": true}', before, NOON) == ProbeResult("met", NOON, NOON)
    assert made.read(b"{}", before, NOON).failures == 2
    assert made.read(1.5, before, NOON).why == f"{FAILED}the answer is not a JSON object"


def test_c15_an_assumed_answer_meets_the_probe_or_does_not() -> None:
    """Sluice calls a probe only where these two answers lead to different decisions."""
    assert probe().assume(True, NOON) == ProbeResult("met", NOON, NOON)
    assert probe().assume(False, NOON) == ProbeResult("unmet", NOON, NOON)


# -- what a job keeps ----------------------------------------------------------------------------------------------


def test_c15_a_job_keeps_the_last_answer_of_its_probe() -> None:
    said = failed("no answer", MINUTE, None, NOON)
    kept = Probe.with_answers(met(), {"0": said})
    assert kept == replace(met(), probed=said.kept())
    assert Probe.last_answer(kept, "0") == remembered(kept.probed) == said
    assert Probe.last_answer(met(), "0") is None
    why = f"{FAILED}no answer"
    assert said.kept() == {"verdict": "failed", "at": NOON, "until": NOON + MINUTE, "why": why, "failures": 1}


def test_c15_the_log_has_the_verdict_of_a_probe_and_why() -> None:
    said = ProbeResult("unmet", NOON, NOON + MINUTE, "no stock")
    assert Probe.logged({"0": said}) == ("probed", {"verdict": "unmet", "why": "no stock"})
