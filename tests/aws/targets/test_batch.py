"""AWS Batch as a target: what is submitted, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from botocore.stub import Stubber

from chalicelib.aws.targets.batch import BatchTarget
from chalicelib.aws.targets.engine import FINAL_AFTER, SETTLED
from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.targets.batch import job_name
from chalicelib.core.targets.registry import of_type
from tests.support import rows
from tests.support.batch_jobs import QUEUE, TARGET, BatchJob, BatchJobs
from tests.support.clock import HandClock
from tests.support.reasons import says
from tests.support.state_machines import refused

CONTEXT = {"correlation": {"day": "2026-03-01"}, "properties": {"depth": 1, "files": ["a", "b"]}, "attempt": 1}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://batch.example")


def run(target: dict[str, Any] | None = None, attempt: int = 1, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=attempt, **fields)
    stored = of_type("batch").model_validate({**TARGET, **(target or {})}).model_dump(mode="json")
    token = ids.client_token(plain.run_id, attempt)
    return replace(plain, request=replace(plain.request, target=stored, client_token=token))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def jobs(clock: HandClock) -> BatchJobs:
    return BatchJobs(clock)


@pytest.fixture
def target(jobs: BatchJobs, clock: HandClock) -> BatchTarget:
    return BatchTarget(jobs, clock.now, pause=lambda seconds: None)


def begun(jobs: BatchJobs, target: BatchTarget, **fields: Any) -> tuple[Run, BatchJob]:
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, Started)
    started = run(target_id=answer.target_id, start_requested_at=jobs.clock.now(), **fields)
    return started, jobs.jobs[answer.target_id]


def test_w22_a_job_gets_its_run_and_its_context(jobs: BatchJobs, target: BatchTarget) -> None:
    target.start(run(), CONTEXT)
    [made] = jobs.jobs.values()
    uri = run().request.context_uri
    assert made.request == {
        "jobName": job_name(run()),
        "jobQueue": QUEUE,
        "jobDefinition": "sluice-target-etl:3",
        "containerOverrides": {
            "environment": [
                {"name": "SLUICE_CONTEXT", "value": uri},
                {"name": "SLUICE_RUN", "value": "demo.flights.clean.1.a-1"},
            ]
        },
        "retryStrategy": {"attempts": 1},
        "tags": {
            "sluice:namespace": "demo",
            "sluice:schedule": "demo.flights.clean",
            "sluice:workflow": run().workflow,
        },
    }


def test_w22_each_field_of_a_batch_target_is_submitted(jobs: BatchJobs, target: BatchTarget) -> None:
    given = {
        "command": ["load", "{{correlation.day}}", "{{properties.depth}}", "{{properties.files}}"],
        "environment": {"DAY": "day {{correlation.day}}"},
        "parameters": {"attempt": "{{attempt}}"},
        "vcpus": 0.25,
        "memory_mib": 30_720,
        "share_identifier": "nightly",
        "scheduling_priority": 9,
    }
    target.start(run(given), CONTEXT)
    [made] = jobs.jobs.values()
    overrides = made.request["containerOverrides"]
    assert overrides["command"] == ["load", "2026-03-01", "1", '["a", "b"]']
    assert made.variable("DAY") == "day 2026-03-01"
    needs = {each["type"]: each["value"] for each in overrides["resourceRequirements"]}
    assert needs == {"VCPU": "0.25", "MEMORY": "30720"}
    assert made.request["parameters"] == {"attempt": "1"}
    assert (made.request["shareIdentifier"], made.request["schedulingPriorityOverride"]) == ("nightly", 9)


@pytest.mark.parametrize(("timeout", "expected"), [(2 * HOUR, 7_500), (MINUTE, 360), (1, 301), (0, None), (None, None)])
def test_w12_batch_has_a_timeout_of_its_own_that_is_longer(
    jobs: BatchJobs, target: BatchTarget, timeout: int | None, expected: int | None
) -> None:
    target.start(run(run_timeout=timeout), CONTEXT)
    [made] = jobs.jobs.values()
    assert made.request.get("timeout") == (expected and {"attemptDurationSeconds": expected})


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"command": ["{{correlation.hour}}"]}, "command.0: expected a run whose context has correlation.hour"),
        ({"command": ["x", "{{properties.none}}"]}, "command.1: expected a run whose context has properties.none"),
        ({"environment": {"A": "x" * 8_200}}, "environment: expected command, environment and sizes of at most 8192"),
    ],
)
def test_w22_what_cannot_be_filled_in_is_not_submitted(
    jobs: BatchJobs, target: BatchTarget, given: dict[str, Any], reported: str
) -> None:
    answer = target.start(run(given), CONTEXT)
    assert isinstance(answer, Never)
    assert answer.why.startswith(reported), answer.why
    assert jobs.calls == []


def test_w22_an_empty_value_is_no_word_of_a_command(jobs: BatchJobs, target: BatchTarget) -> None:
    answer = target.start(run({"command": ["x", "{{correlation.day}}"]}), {"correlation": {"day": ""}})
    assert isinstance(answer, Never)
    assert answer.why.startswith("command.1: expected a word of the command, got ''"), answer.why


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("TooManyRequestsException", status=429), NotNow),
        (refused("ThrottlingException"), NotNow),
        (refused("ClientException", "JobQueue sluice-target-q is not in state ENABLED"), NotNow),
        (refused("ClientException", "Job queue sluice-target-q is DISABLED"), NotNow),
        (refused("ClientException", "JobQueue sluice-target-q not found."), Never),
        (refused("ClientException", "JobDefinition name etl does not exist or is not in ACTIVE status"), Never),
        (refused("ClientException", "Job name should match valid pattern"), Never),
        (refused("AccessDeniedException", status=403), Never),
        (refused("ServerException", status=500), NoAnswer),
        (refused("ServiceUnavailable", status=503), NoAnswer),
        (TIMEOUT, NoAnswer),
    ],
)
def test_c12_each_refusal_of_a_batch_job_has_its_meaning(
    jobs: BatchJobs, target: BatchTarget, error: Exception, kind: type[Answer]
) -> None:
    jobs.refusals = [error]
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, kind), answer
    assert not jobs.jobs
    if isinstance(answer, NoAnswer):
        assert answer.retry_after == SETTLED, "the next call searches first"


@pytest.mark.parametrize("status", ["SUBMITTED", "RUNNING", "SUCCEEDED", "FAILED"])
def test_w10_a_lost_batch_job_is_found_in_any_state(jobs: BatchJobs, target: BatchTarget, status: str) -> None:
    jobs.lose_answers = 1
    assert isinstance(target.start(run(), CONTEXT), NoAnswer)
    [made] = jobs.jobs.values()
    made.status = status
    assert target.start(run(unknown_answer=True), CONTEXT) == Started(made.id)
    assert jobs.calls == ["SubmitJob", "ListJobs"]


def test_w10_another_attempt_and_another_case_are_not_found(jobs: BatchJobs, target: BatchTarget) -> None:
    """The filter of Batch ignores upper and lower case, so a page has jobs with other names."""
    asked = {"jobQueue": QUEUE, "jobDefinition": "d", "containerOverrides": {"environment": []}}
    for _ in range(3):
        jobs.submit_job(jobName=job_name(run()).upper(), **asked)
    target.start(run(attempt=2), CONTEXT)
    assert target.find(run()) is None
    jobs.clock.pass_by("1s")
    first = target.start(run(), CONTEXT)
    jobs.clock.pass_by("1s")
    target.start(run(), CONTEXT)
    assert first == Started(target.find(run()) or ""), "the first of two, on any page"


@pytest.mark.parametrize("why", [f"JobQueue {QUEUE} not found.", f"Job queue {QUEUE} does not exist"])
def test_w10_no_job_is_found_in_a_deleted_queue(jobs: BatchJobs, target: BatchTarget, why: str) -> None:
    jobs.refusals = [refused("ClientException", why)]
    assert target.find(run()) is None
    jobs.refusals = [refused("ClientException", "Invalid nextToken")]
    with pytest.raises(ClientError, match="Invalid nextToken"):
        target.find(run())


def test_w10_without_a_search_no_call_is_repeated(jobs: BatchJobs, target: BatchTarget) -> None:
    jobs.refusals = [refused("TooManyRequestsException", status=429)]
    answer = target.start(run(unknown_answer=True), CONTEXT)
    assert isinstance(answer, NoAnswer)
    assert (answer.retry_after, jobs.calls) == (SETTLED, ["ListJobs"])


def test_w7_batch_is_asked_about_a_hundred_jobs_at_once(jobs: BatchJobs, clock: HandClock) -> None:
    pauses: list[float] = []
    target = BatchTarget(jobs, clock.now, pauses.append)
    started, made = begun(jobs, target)
    jobs.begin(made)
    found = target.status_many([started] * 150 + [run()])
    assert [update.state if update else None for update in found] == ["RUNNING"] * 150 + [None]
    assert jobs.calls.count("DescribeJobs") == 2
    assert len(pauses) == 1


def test_w7_a_throttled_poll_of_batch_is_repeated_later(jobs: BatchJobs, target: BatchTarget) -> None:
    started, _ = begun(jobs, target)
    jobs.refusals = [refused("TooManyRequestsException", status=429)]
    assert target.status(started) is None


def test_w1_a_job_that_batch_does_not_show_is_lost_later(jobs: BatchJobs, target: BatchTarget) -> None:
    started, made = begun(jobs, target)
    made.shown = False
    assert target.status(started) is None
    jobs.clock.pass_by(f"{FINAL_AFTER // MINUTE}m")
    found = target.status(started)
    assert found is not None
    assert (found.state, found.outcome) == ("FAILED", "lost")


def test_w1_a_job_accepted_after_long_refusals_is_not_lost(jobs: BatchJobs, target: BatchTarget) -> None:
    started, made = begun(jobs, target, state_at=jobs.clock.now())
    started, made.shown = replace(started, start_requested_at=jobs.clock.now() - HOUR), False
    assert target.status(started) is None
    jobs.clock.wait_until(jobs.clock.now() + FINAL_AFTER)
    found = target.status(started)
    assert found is not None and found.outcome == "lost"


def test_w6_a_cancelled_job_gets_the_reason(jobs: BatchJobs, target: BatchTarget) -> None:
    started, made = begun(jobs, target)
    jobs.begin(made)
    target.cancel(replace(started, reason=says("cancelled by ada")))
    assert made.why == "Sluice: cancelled by ada"
    found = target.status(started)
    assert found is not None
    assert (found.state, found.reason) == ("CANCELLED", "")
    target.cancel(replace(started, reason=says("x" * 2_000)))  # it has ended, and the reason is cut
    target.cancel(replace(started, target_id="gone"))
    with pytest.raises(Exception, match="AccessDenied"):
        jobs.refusals = [refused("AccessDeniedException")]
        target.cancel(started)


def test_w6_a_cancel_is_repeated_once_without_an_answer(jobs: BatchJobs, target: BatchTarget) -> None:
    started, made = begun(jobs, target)
    jobs.refusals = [TIMEOUT]
    target.cancel(started)
    assert made.status == "FAILED"


def test_w22_boto3_sends_and_reads_what_the_adapter_uses(clock: HandClock) -> None:
    client = boto3.client("batch", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    target = BatchTarget(client, clock.now, pause=lambda seconds: None)
    name = job_name(run())
    with Stubber(client) as stub:
        stub.add_response("submit_job", {"jobId": "j1", "jobName": name})
        stub.add_response("list_jobs", {"jobSummaryList": [{"jobId": "j1", "jobName": name}]})
        detail = {"jobId": "j1", "jobName": name, "jobQueue": "q", "jobDefinition": "d", "startedAt": clock.now()}
        stub.add_response("describe_jobs", {"jobs": [{**detail, "status": "RUNNING"}]})
        stub.add_response("terminate_job", {})
        assert target.start(run({"vcpus": 1, "memory_mib": 2_048}, run_timeout=HOUR), CONTEXT) == Started("j1")
        assert target.find(run()) == "j1"
        found = target.status(run(target_id="j1"))
        assert found is not None
        assert (found.state, found.at) == ("RUNNING", clock.now())
        target.cancel(run(target_id="j1"))
        stub.assert_no_pending_responses()
