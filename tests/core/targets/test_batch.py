"""AWS Batch as a target: its document, the names of jobs, and the meaning of what Batch says of a job (W22)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.access.allowed import Named
from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.batch import STOPPED, BatchTarget, job_name, run_name_of, update_of
from chalicelib.core.targets.bills import FARGATE, Usage, cost_usd
from chalicelib.core.targets.registry import of_event, of_run
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER, refusal
from tests.support import rows
from tests.support.batch_jobs import QUEUE, TARGET
from tests.support.clock import NOON

TOKEN = ids.client_token("demo.flights.clean.1.a", 2)
NAME = f"sluice-clean-{TOKEN}"
SLUICE = {"name": "SLUICE_RUN", "value": "demo.flights.clean.1.a-2"}
ARN = "arn:aws:batch:eu-west-1:123456789012"


def run(schedule: str = "demo.flights.clean", **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=2, schedule=schedule, **fields)
    return replace(plain, request=replace(plain.request, target=TARGET, client_token=TOKEN))


def job(status: str, why: str = "", container: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A job that ran from noon on for five seconds, as DescribeJobs returns it."""
    return {
        "jobId": "j1",
        "jobQueue": QUEUE,
        "jobName": NAME,
        "status": status,
        "createdAt": NOON - SECOND,
        "startedAt": NOON,
        **({"stoppedAt": NOON + 5 * SECOND} if status in ("SUCCEEDED", "FAILED") else {}),
        **({"statusReason": why} if why else {}),
        "container": {"environment": [SLUICE], **(container or {})},
        **fields,
    }


@pytest.mark.parametrize("queue", ["etl", "Etl_1", f"{ARN}:job-queue/etl"])
@pytest.mark.parametrize("definition", ["load", "load:7", f"{ARN}:job-definition/load", f"{ARN}:job-definition/load:7"])
def test_w22_a_queue_and_a_definition_of_batch_are_accepted(queue: str, definition: str) -> None:
    given = {
        "type": "batch",
        "job_queue": queue,
        "job_definition": definition,
        "command": ["load", "--day", "{{correlation.day}}"],
        "environment": {"DAY": "{{correlation.day}}"},
        "parameters": {"in": "s3://lake/{{correlation.day}}/"},
        "vcpus": 0.25,
        "memory_mib": 512,
        "share_identifier": "nightly",
        "scheduling_priority": 9,
        "poll_every": "5m",
    }
    made = ADAPTER.validate_python(given)
    assert made.model_dump(mode="json") == given
    assert (made.has_lifecycle, made.needs_role, made.stores_result) == (True, True, True)


@pytest.mark.parametrize(
    ("change", "field", "reported"),
    [
        ({"job_queue": "a b"}, "job_queue", "expected text that matches"),
        ({"job_queue": f"{ARN}:job-definition/a"}, "job_queue", "expected text that matches"),
        ({"job_queue": "-a"}, "job_queue", "expected text that matches"),
        ({"job_definition": "a:b"}, "job_definition", "expected text that matches"),
        ({"job_definition": f"{ARN}:job-definition/*"}, "job_definition", "expected text that matches"),
        ({"job_definition": "arn:aws:ecs:eu-west-1:123456789012:task-definition/a:1"}, "job_definition", "matches"),
        ({"command": ["load", ""]}, "command.1", "expected a word of the command, got ''"),
        ({"command": ["{{day}}"]}, "command.0", "expected a path such as {{correlation.day}}"),
        ({"environment": {"DAY": "{{"}}, "environment.DAY", "expected placeholders such as"),
        ({"environment": {"AWS_BATCH_X": "1"}}, "environment.AWS_BATCH_X", "expected the name of a variable"),
        ({"environment": {"SLUICE_RUN": "1"}}, "environment.SLUICE_RUN", "expected the name of a variable"),
        ({"environment": {"a-b": "1"}}, "environment.a-b", "expected the name of a variable of your own"),
        ({"parameters": {"x": "{{nothing.a}}"}}, "parameters.x", "expected a path such as"),
        ({"vcpus": 0.1}, "vcpus", "0.25"),
        ({"memory_mib": 3}, "memory_mib", "4"),
        ({"scheduling_priority": 1}, "scheduling_priority", "expected a share_identifier with it, got None"),
        ({"poll_every": "30s"}, "poll_every", "expected an interval from 1m to 1d"),
        ({"array_properties": {"size": 3}}, "array_properties", "unknown field"),
        ({"depends_on": []}, "depends_on", "unknown field"),
    ],
)
def test_w22_a_wrong_batch_target_says_where(change: dict[str, Any], field: str, reported: str) -> None:
    where, message = refusal(**{**TARGET, **change})
    assert (where, reported in message) == (field, True), (where, message)


def test_w22_the_allow_list_sees_a_batch_definition_unversioned() -> None:
    own = "arn:*:batch:*:*"
    assert list(BatchTarget.named({"job_queue": "etl", "job_definition": "load:7"})) == [
        Named("engines", f"{own}:job-queue/etl", "job_queue", "etl"),
        Named("engines", f"{own}:job-definition/load", "job_definition", "load:7"),
    ]
    named = BatchTarget.named({"job_queue": f"{ARN}:job-queue/a", "job_definition": f"{ARN}:job-definition/b:1"})
    assert [each.value for each in named] == [f"{ARN}:job-queue/a", f"{ARN}:job-definition/b"]


@pytest.mark.parametrize(
    ("schedule", "label"),
    [
        ("demo.flights.clean", "clean"),
        ("demo.flights.etl~g1~load", "etl-g1-load"),
        ("demo.flights." + "a" * 90, "a" * 64),
    ],
)
def test_w22_the_name_of_a_job_fits_batch(schedule: str, label: str) -> None:
    name = job_name(run(schedule))
    assert name == f"sluice-{label}-{TOKEN}"
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}", name)


@pytest.mark.parametrize("status", ["SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "DREAMING"])
def test_w22_a_job_without_a_container_has_not_begun(status: str) -> None:
    assert update_of(job(status), NOON) is None


def test_w22_a_job_runs_since_its_container_does() -> None:
    assert update_of(job("RUNNING"), NOON + HOUR) == RunUpdate("RUNNING", NOON, target_id="j1")


def test_w22_a_job_ends_with_its_instants() -> None:
    expected = RunUpdate("SUCCEEDED", NOON + 5 * SECOND, target_id="j1", started_at=NOON)
    assert update_of(job("SUCCEEDED"), NOON + HOUR) == expected


PULL = "CannotPullContainerError: pull image manifest has been retried 1 time(s): repository does not exist"


@pytest.mark.parametrize(
    ("why", "container", "more", "state", "outcome", "reason"),
    [
        ("Essential container in task exited", {"exitCode": 3}, {}, "FAILED", "failed",
         "Essential container in task exited (exit code 3)"),
        ("Essential container in task exited",
         {"exitCode": 137, "reason": "OutOfMemoryError: Container killed due to memory usage"}, {}, "FAILED", "failed",
         "Essential container in task exited (exit code 137): OutOfMemoryError: Container killed due to memory usage"),
        ("Task failed to start", {"reason": PULL}, {}, "FAILED", "failed", f"Task failed to start: {PULL}"),
        (PULL, {"reason": PULL}, {}, "FAILED", "failed", PULL),
        ("", {"exitCode": 1}, {}, "FAILED", "failed", "the job failed (exit code 1)"),
        ("", {}, {}, "FAILED", "failed", ""),
        ("Job attempt duration exceeded timeout", {"exitCode": 137}, {}, "FAILED", "timed_out",
         "Job attempt duration exceeded timeout (exit code 137)"),
        ("Job attempt duration exceeded timeout", {}, {"isTerminated": True}, "FAILED", "timed_out",
         "Job attempt duration exceeded timeout"),
        ("Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", {},
         {"isCancelled": True}, "FAILED", "timed_out",
         "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"),
        ("Host EC2 (instance i-0a1b) terminated.", {}, {}, "FAILED", "lost", "Host EC2 (instance i-0a1b) terminated."),
        ("Your Spot Task was interrupted.", {}, {}, "FAILED", "lost", "Your Spot Task was interrupted."),
        ("wrong day", {}, {"isTerminated": True}, "CANCELLED", "failed", "wrong day"),
        ("wrong day", {}, {"isCancelled": True}, "CANCELLED", "failed", "wrong day"),
        (f"{STOPPED}cancelled by ada", {"exitCode": 143}, {}, "CANCELLED", "failed", ""),
    ],
)  # fmt: skip
def test_w22_batch_says_why_a_job_failed(
    why: str, container: dict[str, Any], more: dict[str, Any], state: str, outcome: Any, reason: str
) -> None:
    found = update_of(job("FAILED", why, container, **more), NOON)
    assert found is not None
    assert (found.state, found.outcome, found.reason) == (state, outcome, reason)


def test_w22_a_job_that_never_ran_ends_when_it_is_seen() -> None:
    never = {**job("FAILED", "Task failed to start"), "stoppedAt": None, "startedAt": 0}
    found = update_of(never, NOON + HOUR)
    assert found is not None
    assert (found.at, found.started_at, found.billed) == (NOON + HOUR, None, ())


def sized(platform: list[str], ended: int, **container: Any) -> RunUpdate:
    needs = [{"type": "VCPU", "value": "0.5"}, {"type": "MEMORY", "value": "2048"}]
    found = update_of(
        job("SUCCEEDED", "", {"resourceRequirements": needs, **container}, platformCapabilities=platform)
        | {"stoppedAt": ended},
        NOON,
    )
    assert found is not None
    return found


def test_h1_a_job_on_fargate_has_a_bill() -> None:
    assert Usage.of(sized(["FARGATE"], NOON + 2 * HOUR).billed) == Usage(1, 4)
    assert BatchTarget.prices is FARGATE
    assert cost_usd(Usage(1, 4), FARGATE) == pytest.approx(0.04048 + 4 * 0.004445)
    large = sized(["FARGATE"], NOON + 2 * HOUR, ephemeralStorage={"sizeInGiB": 50})
    assert Usage.of(large.billed) == Usage(1, 4, 60)
    assert sized(["FARGATE"], NOON + SECOND).billed == Usage(0.5 / 60, 2 / 60).stored(), "a minute at least"


@pytest.mark.parametrize("platform", [["EC2"], []])
def test_h1_a_job_on_ec2_has_no_bill(platform: list[str]) -> None:
    assert sized(platform, NOON + HOUR).billed == ()


def test_w22_an_event_of_batch_names_its_run() -> None:
    event = {"source": "aws.batch", "time": "2026-03-02T12:00:06Z", "detail": job("FAILED", "no", {"exitCode": 1})}
    change = of_event(event).read_event(event)
    assert (change.kind, change.target_id, change.state) == ("batch", "j1", "FAILED")
    assert (change.run_name, change.complete) == ("demo.flights.clean.1.a-2", True)
    assert change.update is not None
    assert change.update.reason == "no (exit code 1)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sluice-clean-by-hand", SLUICE["value"]),
        (TOKEN, SLUICE["value"]),
        (NAME, "demo.flights.clean.1.a-3"),
        (NAME, "demo.flights.clean.1.b-2"),
        (NAME, "x"),
        (NAME, ""),
        (NAME, "demo.flights.clean.1.a-x"),
    ],
)
def test_w22_a_foreign_job_of_batch_is_not_ours(name: str, value: str) -> None:
    copied = {**job("RUNNING"), "jobName": name, "container": {"environment": [{**SLUICE, "value": value}]}}
    assert run_name_of(copied) is None
    assert run_name_of(job("RUNNING")) == "demo.flights.clean.1.a-2"
    assert run_name_of({**job("RUNNING"), "container": {}}) is None


def test_w15_the_log_of_a_batch_job_is_in_cloudwatch() -> None:
    begun = run(target_id="j1")
    log = of_run(begun).log_of(begun)
    assert isinstance(log, NoLog)
    assert "aws logs get-log-events --log-group-name /aws/batch/job" in log.why
    assert "aws batch describe-jobs --jobs j1 " in log.why
    waiting = of_run(run()).log_of(run())
    assert isinstance(waiting, NoLog)
    assert waiting.why == "it has no job yet"


def test_w22_a_queue_of_batch_may_be_in_any_partition() -> None:
    for arn in (QUEUE, "arn:aws-cn:batch:cn-north-1:123456789012:job-queue/a"):
        assert ADAPTER.validate_python({**TARGET, "job_queue": arn}).job_queue == arn
