"""Glue jobs as a target: the document, the arguments of a job run, and the meaning of events (W22)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import costs
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.bills import LIST, Usage
from chalicelib.core.targets.glue import arguments_of, billed_of, is_of, update_of
from chalicelib.core.targets.registry import of_event, of_run, of_type
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER
from tests.support import rows
from tests.support.clock import NOON
from tests.support.glue import JOB, TARGET, JobRun, event_of

ARN = f"arn:aws:glue:eu-west-1:123456789012:job/{JOB}"
CONTEXT: dict[str, Any] = {"correlation": {"day": "2026-03-01"}, "properties": {"days": [1, 2]}, "upstream": None}
ID = f"{JOB}/jr_1"


def run(target: dict[str, Any] = TARGET, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=2, **fields)
    return replace(plain, request=replace(plain.request, target=target))


def refusal(**changed: Any) -> tuple[str | None, str]:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python({**TARGET, **changed})
    error = from_validation(caught.value)
    return error.field, f"{error.message}; {error.hint}"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"job": "Orders by day (new), v2.1"},
        {"job": ARN.replace("aws:glue", "aws-cn:glue")},
        {"worker_type": "G.2X", "workers": 10, "execution_class": "FLEX", "poll_every": "5m"},
        {"arguments": {"--day": "{{correlation.day}}", "--enable-metrics": "", "--TempDir": "s3://b/t/"}},
        {"arguments": {"--conf": "spark.a=1 --conf spark.b=x=y"}},
    ],
)
def test_w22_a_glue_job_is_accepted(more: dict[str, Any]) -> None:
    made = ADAPTER.validate_python({**TARGET, **more})
    assert (made.type, made.has_lifecycle, made.needs_role) == ("glue", True, True)
    assert ADAPTER.validate_python(made.model_dump(mode="json")) == made


@pytest.mark.parametrize("job", ["", "a/b", "a*", "a:b", "{{run_id}}", ARN.replace("job/", "crawler/"), ARN + "*"])
def test_w22_an_invalid_job_is_refused(job: str) -> None:
    where, reported = refusal(job=job)
    assert (where, "expected text that matches" in reported) == ("job", True), reported


@pytest.mark.parametrize(
    ("changed", "field", "expected"),
    [
        ({"worker_type": "G.1X"}, "workers", "worker_type and workers together, got 'worker_type alone'"),
        ({"workers": 2}, "workers", "worker_type and workers together, got 'workers alone'"),
        ({"execution_class": "SPOT"}, "execution_class", "STANDARD"),
        ({"poll_every": "30s"}, "poll_every", "an interval from 1m to 1d"),
        ({"arguments": {"day": "1"}}, "arguments.day", "a name such as --day"),
        ({"arguments": {"--a b": "1"}}, "arguments.--a b", "a name such as --day"),
        ({"arguments": {"--sluice-run": "x"}}, "arguments.--sluice-run", "which Sluice sets"),
        ({"arguments": {"--JOB_NAME": "x"}}, "arguments.--JOB_NAME", "which Glue sets"),
        ({"arguments": {"--day": "{{day}}"}}, "arguments.--day", "begin with a field of the run context"),
        ({"arguments": {"--scriptLocation": "s3://b/{{run_id}}.py"}}, "arguments.--scriptLocation", "without placeh"),
        ({"arguments": {"--conf": "{{properties.conf}}"}}, "arguments.--conf", "without placeholders"),
        ({"arguments": {"--conf": "spark.a"}}, "arguments.--conf", "Spark properties such as"),
        ({"arguments": {"--conf": "spark.a=1 --jars s3://b/x.jar"}}, "arguments.--conf", "Spark properties such as"),
        ({"arguments": {f"--a{number}": "" for number in range(101)}}, "arguments", "at most 100"),
    ],
)
def test_w22_what_glue_could_not_start_is_refused(changed: dict[str, Any], field: str, expected: str) -> None:
    where, reported = refusal(**changed)
    assert (where, expected in reported) == (field, True), (where, reported)


def test_w22_a_document_names_its_job_and_its_code() -> None:
    """An argument that loads code is checked as the entry point of a Spark job is."""
    given = {
        "--scriptLocation": "s3://code/a.py",
        "--extra-py-files": "s3://code/b.zip, s3://code/c.zip",
        "--additional-python-modules": "pandas==2.2",
        "--s3-py-modules": "s3://code/e.zip",
        "--working-dir": "s3://code/f.zip",
        "--conf": "spark.a=1 --conf spark.jars=s3://code/d.jar",
        "--day": "s3://code/no.py",
    }
    named = list(of_type("glue").named({**TARGET, "arguments": given}))
    assert named == [
        Named("engines", f"arn:*:glue:*:*:job/{JOB}", "job", JOB),
        Named("entry_points", "s3://code/a.py", "arguments.--scriptLocation"),
        Named("entry_points", "s3://code/b.zip", "arguments.--extra-py-files"),
        Named("entry_points", "s3://code/c.zip", "arguments.--extra-py-files"),
        Named("entry_points", "pandas==2.2", "arguments.--additional-python-modules"),
        Named("entry_points", "s3://code/e.zip", "arguments.--s3-py-modules"),
        Named("entry_points", "s3://code/f.zip", "arguments.--working-dir"),
        Named("spark", "spark.a", "arguments.--conf"),
        Named("entry_points", "s3://code/d.jar", "arguments.--conf"),
        Named("spark", "spark.jars", "arguments.--conf"),
    ]
    assert next(iter(of_type("glue").named({"type": "glue", "job": ARN}))).value == ARN
    with pytest.raises(SluiceError, match="without whitespace and quotes"):
        list(of_type("glue").named({**TARGET, "arguments": {"--conf": "spark.a='1'"}}))


def test_w22_a_job_run_gets_filled_arguments_and_its_identity() -> None:
    given = {"--day": "day={{correlation.day}}", "--days": "{{properties.days}}", "--conf": "spark.a=1"}
    assert arguments_of(run({**TARGET, "arguments": given}), CONTEXT) == {
        "--day": "day=2026-03-01",
        "--days": "[1, 2]",
        "--conf": "spark.a=1",
        "--sluice-context": run().request.context_uri,
        "--sluice-run": run().request.name,
    }
    with pytest.raises(SluiceError) as missing:
        arguments_of(run({**TARGET, "arguments": {"--up": "{{upstream.run_id}}"}}), CONTEXT)
    assert missing.value.field == "arguments.--up"


def test_w22_a_job_run_is_of_the_attempt_that_its_arguments_name() -> None:
    own = arguments_of(run(), CONTEXT)
    assert is_of(run(), {"Arguments": own, "Attempt": 0})
    assert not is_of(run(), {"Arguments": own, "PreviousRunId": "jr_1", "Attempt": 1}), "a retry by Glue itself"
    assert not is_of(run(), {"Arguments": {**own, "--sluice-run": "demo.flights.clean.1.a-1"}})
    assert not is_of(run(), {"Arguments": {**own, "--sluice-context": "s3://of-another-stack/context/a.json"}})
    assert not is_of(run(), {})


@pytest.mark.parametrize(
    ("state", "expected", "outcome", "reason"),
    [
        ("SUCCEEDED", "SUCCEEDED", "failed", ""),
        ("FAILED", "FAILED", "failed", "Error: no disk"),
        ("ERROR", "FAILED", "failed", "Error: no disk"),
        ("TIMEOUT", "FAILED", "timed_out", "Error: no disk"),
        ("STOPPED", "CANCELLED", "failed", "Error: no disk"),
        ("EXPIRED", "FAILED", "failed", "Error: no disk"),
    ],
)
def test_w22_each_end_of_a_job_run_has_its_meaning(state: str, expected: Any, outcome: Any, reason: str) -> None:
    found = described(state, ErrorMessage="Error: no disk\n")
    answer = update_of(ID, found)
    assert answer is not None
    assert (answer.state, answer.outcome, answer.reason) == (expected, outcome, reason)
    assert (answer.started_at, answer.at, answer.target_id) == (NOON, NOON + 90 * SECOND, ID)
    assert answer.billed == Usage(dpu_hours=0.25).stored()


def test_w22_a_job_run_that_waits_has_not_begun() -> None:
    for state in ("STARTING", "WAITING", "STOPPING", "SLEEPING"):
        assert update_of(ID, described(state)) is None
    assert update_of(ID, described("RUNNING")) == RunUpdate("RUNNING", NOON, target_id=ID)


def test_w22_a_timeout_without_a_message_is_explained() -> None:
    late = update_of(ID, described("TIMEOUT"))
    assert late is not None and late.reason == "the job run took longer than its timeout at Glue"
    expired = update_of(ID, described("EXPIRED"))
    assert expired is not None and expired.reason == "the job run waited too long in the queue of Glue"
    long = update_of(ID, described("FAILED", ErrorMessage="x" * 9_000))
    assert long is not None and len(long.reason) == 4_000


@pytest.mark.parametrize(
    ("found", "hours"),
    [
        ({"ExecutionTime": 3_600, "MaxCapacity": 10.0}, 10.0),
        ({"ExecutionTime": 5, "MaxCapacity": 6.0}, 0.1),
        ({"ExecutionTime": 5, "MaxCapacity": 0.0625}, 0.001),
        ({"ExecutionTime": 600, "MaxCapacity": 10.0, "DPUSeconds": 1_800.0}, 0.5),
    ],
)
def test_h1_a_job_run_is_billed_by_its_dpu_hours(found: dict[str, Any], hours: float) -> None:
    assert Usage.of(billed_of(found)) == Usage(dpu_hours=hours)


@pytest.mark.parametrize("found", [{}, {"ExecutionTime": 0, "MaxCapacity": 10.0}, {"ExecutionTime": 9}])
def test_h1_a_job_run_that_used_nothing_has_no_bill(found: dict[str, Any]) -> None:
    assert billed_of(found) == ()


def test_h1_a_flexible_job_run_costs_less() -> None:
    billed = Usage(dpu_hours=10).stored()
    assert costs.bill_of(run(billed=billed), LIST) == (Usage(dpu_hours=10), 4.4)
    assert costs.bill_of(run({**TARGET, "execution_class": "FLEX"}, billed=billed), LIST) == (Usage(dpu_hours=10), 2.9)


def test_w22_an_event_ends_a_run_and_a_poll_completes_it() -> None:
    ended = JobRun("jr_1", JOB, {}, NOON, {}, "FAILED", NOON + SECOND, "JobName:x failed to execute")
    event = event_of(ended, NOON + 2 * SECOND)
    change = of_event(event).read_event(event)
    assert (change.kind, change.target_id, change.state) == ("glue", ID, "FAILED")
    assert (change.run_name, change.complete) == (None, False)
    assert change.update == RunUpdate("FAILED", NOON + 2 * SECOND, "JobName:x failed to execute", ID)
    delayed = event_of(ended, NOON, state="STARTING")
    assert of_event(delayed).read_event(delayed).update is None
    with pytest.raises(KeyError):
        of_event(event).read_event({**event, "detail": {"crawlerName": "x", "state": "Succeeded"}})


def test_w15_the_log_of_a_job_run_is_in_cloudwatch() -> None:
    log = of_run(run()).log_of(run(target_id=ID))
    assert isinstance(log, NoLog)
    assert "--log-group-name /aws-glue/jobs/error --log-stream-name jr_1;" in log.why
    waiting = of_run(run()).log_of(run())
    assert isinstance(waiting, NoLog)
    assert (waiting.why, waiting.never) == ("it has no job run yet", "it never began there")


def described(state: str, **more: Any) -> dict[str, Any]:
    ended = {} if state in ("STARTING", "RUNNING", "WAITING") else {"CompletedOn": _date(NOON + 90 * SECOND)}
    began = {"StartedOn": _date(NOON), "LastModifiedOn": _date(NOON + 91 * SECOND)}
    return {"Id": "jr_1", "JobRunState": state, "ExecutionTime": 90, "MaxCapacity": 10.0, **began, **ended, **more}


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
