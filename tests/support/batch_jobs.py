"""A client of AWS Batch in memory, with the calls of `aws/targets/batch.py`. It checks each request against AWS's own
rules, and refuses as AWS does.

https://docs.aws.amazon.com/batch/latest/APIReference/API_SubmitJob.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ReadTimeoutError

from infra.local import service_model
from tests.support.state_machines import refused

ACCOUNT = "arn:aws:batch:us-east-1:000000000000"
QUEUE, DEFINITION = f"{ACCOUNT}:job-queue/sluice-target-q", f"{ACCOUNT}:job-definition/sluice-target-etl"
TARGET = {"type": "batch", "job_queue": QUEUE, "job_definition": "sluice-target-etl:3"}
ENDED = ("SUCCEEDED", "FAILED")
PAGE = 2  # jobs of a page of ListJobs


@dataclass
class BatchJob:
    id: str
    request: dict[str, Any]
    created: int
    status: str = "SUBMITTED"
    began: int | None = None
    ended: int | None = None
    why: str = ""  # its statusReason
    container: dict[str, Any] = field(default_factory=dict)  # exitCode and reason
    terminated: bool = False
    shown: bool = True  # by ListJobs and DescribeJobs, which are eventually consistent

    @property
    def name(self) -> str:
        return str(self.request["jobName"])

    def variable(self, name: str) -> str:
        """An environment variable of the container."""
        found = {each["name"]: each["value"] for each in self.request["containerOverrides"]["environment"]}
        return str(found[name])


@dataclass
class BatchJobs:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of
    jobs that are submitted without an answer. ``calls`` are the operations that were called. ``disabled`` are queues
    that take no jobs. ``platform`` is that of the compute environments.
    """

    clock: Any
    jobs: dict[str, BatchJob] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    calls: list[str] = field(default_factory=list)
    disabled: set[str] = field(default_factory=set)
    platform: str = "FARGATE"

    def submit_job(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("SubmitJob", asked)
        if asked["jobQueue"] in self.disabled:
            raise refused("ClientException", f"Job queue {asked['jobQueue']} is not in state ENABLED")
        number = len(self.jobs) + 1
        made = BatchJob(f"0000{number:04d}-77ce-4a2c-9d9d-6c1c31e2a1b5", asked, self.clock.now())
        self.jobs[made.id] = made
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://batch.example")
        return {"jobId": made.id, "jobName": made.name, "jobArn": f"{ACCOUNT}:job/{made.id}"}

    def describe_jobs(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("DescribeJobs", asked)
        found = [self.jobs[each] for each in asked["jobs"] if each in self.jobs]
        return {"jobs": [self.detail(job) for job in found if job.shown]}

    def list_jobs(self, **asked: Any) -> dict[str, Any]:
        """With a filter, jobs of any state, newest first; without one, those that run."""
        self._expect_valid("ListJobs", asked)
        found = [job for job in self.jobs.values() if job.shown and job.request["jobQueue"] == asked["jobQueue"]]
        if filters := asked.get("filters"):
            [wanted] = filters[0]["values"]
            assert filters[0]["name"] == "JOB_NAME"
            found = [job for job in found if job.name.lower() == wanted.lower()]
        else:
            found = [job for job in found if job.status == asked.get("jobStatus", "RUNNING")]
        found.sort(key=lambda job: -job.created)
        first = int(asked.get("nextToken", 0))
        page = [self._summary(job) for job in found[first : first + PAGE]]
        return {"jobSummaryList": page, **({"nextToken": str(first + PAGE)} if found[first + PAGE :] else {})}

    def terminate_job(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("TerminateJob", asked)
        job = self.jobs.get(asked["jobId"])
        if job is None:
            raise refused("ClientException", f"Job {asked['jobId']} does not exist")
        if job.status not in ENDED:
            self.end(job, "FAILED", asked["reason"])
            job.terminated = True
        return {}

    def begin(self, job: BatchJob) -> None:
        """The container of a job runs."""
        job.status, job.began = "RUNNING", self.clock.now()

    def end(self, job: BatchJob, status: str, why: str = "", **container: Any) -> None:
        """A job ends. ``container`` has its ``exitCode`` and ``reason``."""
        job.status, job.ended, job.why, job.container = status, self.clock.now(), why, container

    def end_all(self, status: Callable[[BatchJob], str]) -> None:
        """Every job that has not ended runs to its end."""
        for each in self.jobs.values():
            if each.status not in ENDED:
                self.begin(each)
                self.end(each, status(each))

    def detail(self, job: BatchJob) -> dict[str, Any]:
        """A job as DescribeJobs returns it."""
        overrides = job.request["containerOverrides"]
        needs = {"VCPU": "0.25", "MEMORY": "512"}
        needs |= {each["type"]: each["value"] for each in overrides.get("resourceRequirements", ())}
        container = {
            "command": overrides.get("command", []),
            "environment": overrides["environment"],
            "resourceRequirements": [{"type": kind, "value": value} for kind, value in needs.items()],
            **job.container,
        }
        said = {"statusReason": job.why} if job.why else {}
        times = {"startedAt": job.began, "stoppedAt": job.ended}
        return {
            **self._summary(job),
            **{name: at for name, at in times.items() if at is not None},
            **said,
            "jobQueue": job.request["jobQueue"],
            "jobDefinition": job.request["jobDefinition"],
            "attempts": [],
            "container": container,
            "platformCapabilities": [self.platform] if self.platform else [],
            **({"isTerminated": True} if job.terminated else {}),
        }

    def _summary(self, job: BatchJob) -> dict[str, Any]:
        return {"jobId": job.id, "jobName": job.name, "status": job.status, "createdAt": job.created}

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems = service_model.problems("batch", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def event_of(jobs: BatchJobs, job: BatchJob, **changed: Any) -> dict[str, Any]:
    """The event of a state change. https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html"""
    now = datetime.fromtimestamp(jobs.clock.now() / 1000, UTC)
    return {
        "version": "0",
        "id": "c8f9c4b5-76e5-d76a-f980-7011e206042b",
        "detail-type": "Batch Job State Change",
        "source": "aws.batch",
        "account": "000000000000",
        "time": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "region": "us-east-1",
        "resources": [f"{ACCOUNT}:job/{job.id}"],
        "detail": {**jobs.detail(job), **changed},
    }
