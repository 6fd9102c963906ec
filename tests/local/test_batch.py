"""Jobs of AWS Batch on the local cloud: their states, events, processes, and refusals (`infra/local/batch.py`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import batch as local_batch

SIZES = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]


class Cloud:
    """ministack's Batch in this process, with its events in the place of EventBridge."""

    def __init__(self, batch: Any, logs: Any) -> None:
        self.batch, self.logs, self.events = batch, logs, list[dict[str, Any]]()
        bus = SimpleNamespace(_put_events=lambda sent, allow_aws_source: self.events.extend(sent["Entries"]))
        roles = SimpleNamespace(execution_credentials=lambda config: {"AWS_ACCESS_KEY_ID": config["Role"]})
        local_batch.install(batch, logs, bus, roles, "http://127.0.0.1:4566")
        self.call("createcomputeenvironment", computeEnvironmentName="small", computeResources={"maxvCpus": 4})
        order = [{"order": 1, "computeEnvironment": "small"}]
        self.call("createjobqueue", jobQueueName="q", priority=1, computeEnvironmentOrder=order)

    def call(self, operation: str, **asked: Any) -> Any:
        _, _, body = self.batch._DISPATCH[f"/v1/{operation}"](asked)
        return json.loads(body)

    def define(self, name: str, *command: str, **container: Any) -> None:
        own = {"image": "etl:1", "resourceRequirements": SIZES, "command": list(command), **container}
        self.call("registerjobdefinition", jobDefinitionName=name, type="container", containerProperties=own,
                  parameters={"day": "1"}, platformCapabilities=["FARGATE"])  # fmt: skip

    def submit(self, definition: str, name: str = "sluice-etl", **more: Any) -> Any:
        return self.call("submitjob", jobName=name, jobQueue="q", jobDefinition=definition, **more)

    def reaches(self, job_id: str, met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + 20
        while True:
            [job] = self.call("describejobs", jobs=[job_id])["jobs"]
            if met(job):
                found: dict[str, Any] = job
                return found
            assert time.monotonic() < end, job
            time.sleep(0.02)

    def ends(self, submitted: Any) -> dict[str, Any]:
        return self.reaches(submitted["jobId"], lambda job: job["status"] in ("SUCCEEDED", "FAILED"))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    from ministack.services import batch, cloudwatch_logs

    monkeypatch.setattr(batch, "_restore_state", batch._restore_state)  # restored at the end
    monkeypatch.setattr(batch, "_DISPATCH", dict(batch._DISPATCH))
    made = Cloud(batch, cloudwatch_logs)
    yield made
    for job in list(batch._jobs.values()):
        with suppress(KeyError):
            made.call("terminatejob", jobId=job["jobId"], reason="the test has ended")
            made.ends(job)
    batch.reset()
    cloudwatch_logs._log_groups.clear()


def test_w22_a_job_runs_its_command_and_tells_each_state(cloud: Cloud) -> None:
    role = "arn:aws:iam::000000000000:role/r"
    given = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    script = 'echo "$A $B $0 $AWS_BATCH_JQ_NAME $AWS_ACCESS_KEY_ID"'
    cloud.define("etl", "sh", "-c", script, "Ref::day", environment=given, jobRoleArn=role)
    own = {"environment": [{"name": "B", "value": "3"}]}
    job = cloud.ends(cloud.submit("etl", containerOverrides=own, parameters={"day": "7"}))
    assert (job["status"], job["container"]["exitCode"]) == ("SUCCEEDED", 0)
    assert job["createdAt"] < job["startedAt"] <= job["stoppedAt"]
    told = [json.loads(event["Detail"]) for event in cloud.events]
    assert [each["status"] for each in told] == ["RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED"]
    assert {event["DetailType"] for event in cloud.events} == {"Batch Job State Change"}
    assert told[-1]["platformCapabilities"] == ["FARGATE"]
    [line] = cloud.logs._log_groups["/aws/batch/job"]["streams"][job["container"]["logStreamName"]]["events"]
    assert line["message"] == f"1 3 7 q {role}"


def test_w22_a_failed_program_of_a_job_has_its_exit_code(cloud: Cloud) -> None:
    cloud.define("etl", "sh", "-c", "exit 7")
    job = cloud.ends(cloud.submit("etl:1"))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Essential container in task exited")
    assert job["container"]["exitCode"] == 7


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((), "CannotPullContainerError: the local cloud pulls no image, and does not know the command of etl:1"),
        (("no-such-program",), 'CannotStartContainerError: exec: "no-such-program": executable file not'),
    ],
)
def test_w22_a_job_whose_image_is_not_here_fails(cloud: Cloud, command: tuple[str, ...], reason: str) -> None:
    cloud.define("etl", *command)
    job = cloud.ends(cloud.submit("etl"))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert job["container"]["reason"].startswith(reason)
    assert "startedAt" not in job


def test_w22_a_terminated_job_gets_the_reason(cloud: Cloud) -> None:
    cloud.define("etl", "sleep", "600")
    submitted = cloud.submit("etl")
    cloud.reaches(submitted["jobId"], lambda job: job["status"] == "RUNNING")
    cloud.call("canceljob", jobId=submitted["jobId"], reason="too late for a cancel")
    cloud.call("terminatejob", jobId=submitted["jobId"], reason="wrong day")
    job = cloud.ends(submitted)
    assert (job["status"], job["statusReason"], job["isTerminated"]) == ("FAILED", "wrong day", True)
    assert job["container"]["exitCode"] == 128 + 15


def test_w22_a_job_that_is_too_large_stays_runnable(cloud: Cloud) -> None:
    cloud.define("etl", "true")
    large = {"resourceRequirements": [{"type": "VCPU", "value": "8"}]}
    submitted = cloud.submit("etl", containerOverrides=large)
    job = cloud.reaches(submitted["jobId"], lambda job: job["status"] == "RUNNABLE")
    assert job["statusReason"].startswith("MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE")
    cloud.call("terminatejob", jobId=submitted["jobId"], reason="no room")
    job = cloud.ends(submitted)
    assert (job["status"], job["statusReason"], job["isCancelled"]) == ("FAILED", "no room", True)


def test_w22_a_job_has_a_timeout_of_its_own(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_batch.service_model, "problems", lambda *asked: [])
    cloud.define("etl", "sleep", "600")
    job = cloud.ends(cloud.submit("etl", timeout={"attemptDurationSeconds": 0.2}))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Job attempt duration exceeded timeout")


def test_w22_jobs_are_listed_by_their_name_in_any_state(cloud: Cloud) -> None:
    cloud.define("etl", "true")
    made = [cloud.submit("etl", name) for name in ("sluice-a", "SLUICE-A", "sluice-b")]
    for each in made:
        cloud.ends(each)
    named = [{"name": "JOB_NAME", "values": ["sluice-a"]}]
    assert {job["jobName"] for job in cloud.call("listjobs", jobQueue="q", filters=named)["jobSummaryList"]} == {
        "sluice-a",
        "SLUICE-A",
    }
    first = cloud.call("listjobs", jobQueue="q", filters=[{"name": "JOB_NAME", "values": ["sluice-*"]}], maxResults=2)
    assert len(first["jobSummaryList"]) == 2
    assert first["nextToken"]
    assert cloud.call("listjobs", jobQueue="q")["jobSummaryList"] == [], "by default those that run"


@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        ({"jobQueue": "other"}, "Job queue other not found."),
        ({"jobDefinition": "etl:2"}, "JobDefinition name etl:2 does not exist or is not in ACTIVE status"),
        ({"jobName": "a b"}, "jobName: expected 1 to 128 letters"),
        ({"jobQueue": "closed"}, "Job queue closed is not in state ENABLED"),
    ],
)
def test_w22_a_job_that_batch_refuses_is_refused_here(cloud: Cloud, changed: dict[str, Any], reported: str) -> None:
    cloud.define("etl", "true")
    cloud.call("createjobqueue", jobQueueName="closed", priority=1, computeEnvironmentOrder=[])
    cloud.call("updatejobqueue", jobQueue="closed", state="DISABLED")
    answer = cloud.call("submitjob", **{"jobName": "a", "jobQueue": "q", "jobDefinition": "etl", **changed})
    assert (answer["__type"], reported in answer["message"]) == ("ClientException", True), answer


def test_w22_a_job_that_the_local_cloud_cut_off_has_an_end(cloud: Cloud) -> None:
    job = {"jobId": "j", "jobArn": "a", "jobQueue": "q", "status": "RUNNING", "createdAt": 1}
    place = cloud.batch.get_account_id(), cloud.batch.get_region()
    cloud.batch._jobs.set_scoped(*place, "j", job)
    cloud.batch._restore_state({})
    cloud.batch._restore_state(cloud.batch.get_state())
    assert cloud.batch._jobs["j"]["status"] == "FAILED"
    assert cloud.batch._jobs["j"]["statusReason"].startswith("Host EC2")


def test_w22_permissions_of_batch_name_queue_and_job(cloud: Cloud) -> None:
    seen: list[Any] = []
    actions = SimpleNamespace(extract_resource_arn=lambda *asked: "known")
    evaluator = SimpleNamespace(enforce=lambda *asked, **more: seen.append(more))
    local_batch.check_permissions(actions, evaluator, cloud.batch)
    own = "arn:aws:batch:us-east-1:000000000000"
    submit = json.dumps({"jobQueue": "q"}).encode()
    assert actions.extract_resource_arn("batch", "POST", "/v1/submitjob", {}, submit) == f"{own}:job-queue/q"
    stop = json.dumps({"jobId": "j"}).encode()
    assert actions.extract_resource_arn("batch", "POST", "/v1/terminatejob", {}, stop) == f"{own}:job/j"
    assert actions.extract_resource_arn("batch", "POST", "/v1/listjobs", {}, submit) == "*"
    assert actions.extract_resource_arn("sqs", "POST", "/", {}, b"") == "known"
    cloud.batch._jobs["j"] = {"jobId": "j", "tags": {"sluice:namespace": "demo"}, "status": "FAILED"}
    evaluator.enforce("key", "batch:TerminateJob", "batch", "us-east-1", resource_arn=f"{own}:job/j")
    assert seen[-1]["service_context"] == {"aws:resourcetag/sluice:namespace": "demo"}
