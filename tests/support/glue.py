"""A client of AWS Glue in memory, with the calls of `aws/targets/glue.py`. It checks each request against AWS's own
rules, and refuses as AWS does.

https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from chalicelib.core.instants import SECOND
from infra.local import service_model
from tests.support.state_machines import refused

JOB = "sluice-target-etl"
TARGET: dict[str, Any] = {"type": "glue", "job": JOB}
GOING = ("STARTING", "RUNNING", "STOPPING", "WAITING")


@dataclass
class GlueJob:
    retries: int = 0
    concurrent: int = 100
    capacity: float = 10.0  # DPUs


@dataclass
class JobRun:
    id: str
    job: str
    arguments: dict[str, str]
    began: int
    asked: dict[str, Any]
    state: str = "STARTING"
    ended: int | None = None
    message: str = ""
    previous: str = ""  # the job run that Glue itself retries by this one
    shown: bool = True  # by GetJobRun and GetJobRuns, which are eventually consistent

    @property
    def target_id(self) -> str:
        return f"{self.job}/{self.id}"


@dataclass
class GlueJobs:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of
    starts that succeed without an answer, and ``hide_starts``: GetJobRuns does not show a new run for so many ms.
    ``calls`` are the operations that were called. ``page`` is the most of runs on a page.
    """

    clock: Any
    jobs: dict[str, GlueJob] = field(default_factory=lambda: {JOB: GlueJob()})
    runs: dict[str, JobRun] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    hide_starts: int = 0
    stop_errors: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    page: int = 200
    meta: Any = field(default_factory=lambda: SimpleNamespace(region_name="us-east-1"))

    def get_job(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("GetJob", asked)
        job = self._job(asked["JobName"])
        return {"Job": {"Name": asked["JobName"], "MaxRetries": job.retries}}

    def start_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StartJobRun", asked)
        job = self._job(asked["JobName"])
        going = [run for run in self.runs.values() if run.job == asked["JobName"] and run.state in GOING]
        if len(going) >= job.concurrent:
            raise refused("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {asked['JobName']}")
        made = self._add(asked["JobName"], asked["Arguments"], asked)
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://glue.example")
        return {"JobRunId": made.id}

    def get_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("GetJobRun", asked)
        found = self.runs.get(asked["RunId"])
        if found is None or found.job != asked["JobName"] or not found.shown:
            raise refused("EntityNotFoundException", f"JobRun {asked['RunId']} not found")
        return {"JobRun": self._described(found)}

    def get_job_runs(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("GetJobRuns", asked)
        self._job(asked["JobName"])
        now = self.clock.now()
        every = [run for run in reversed(self.runs.values()) if run.job == asked["JobName"] and run.shown]
        shown = [run for run in every if now - run.began >= self.hide_starts]
        start, size = int(asked.get("NextToken", "0")), min(asked["MaxResults"], self.page)
        more = {"NextToken": str(start + size)} if start + size < len(shown) else {}
        return {"JobRuns": [self._described(run) for run in shown[start : start + size]], **more}

    def batch_stop_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("BatchStopJobRun", asked)
        [run_id] = asked["JobRunIds"]
        named, found = {"JobName": asked["JobName"], "JobRunId": run_id}, self.runs.get(run_id)
        code = self.stop_errors.pop(0) if self.stop_errors else ""
        if not code and (found is None or found.state not in GOING):
            code = "EntityNotFoundException" if found is None else "InvalidInputException"
        if code or found is None:
            return {"SuccessfulSubmissions": [], "Errors": [{**named, "ErrorDetail": {"ErrorCode": code}}]}
        found.state, found.ended = "STOPPED", self.clock.now()
        return {"SuccessfulSubmissions": [named], "Errors": []}

    def end(self, run: JobRun, state: str, message: str = "") -> None:
        """A job run ends. Glue retries a failed one by a job run of its own."""
        run.state, run.ended, run.message = state, self.clock.now(), message
        done = int(run.id.partition("_attempt_")[2] or 0)
        if state == "FAILED" and done < self._job(run.job).retries:
            first = run.id.partition("_attempt_")[0]
            self._add(run.job, run.arguments, run.asked, f"{first}_attempt_{done + 1}").previous = run.id

    def end_all(self, state: Callable[[JobRun], str]) -> None:
        """Every job run that has not ended ends."""
        for each in list(self.runs.values()):
            if each.state in GOING:
                self.end(each, state(each))

    def _add(self, job: str, arguments: dict[str, str], asked: dict[str, Any], run_id: str = "") -> JobRun:
        run_id = run_id or f"jr_{len(self.runs) + 1:064x}"
        made = self.runs[run_id] = JobRun(run_id, job, arguments, self.clock.now(), asked)
        return made

    def _described(self, run: JobRun) -> dict[str, Any]:
        ended = {} if run.ended is None else {"CompletedOn": _date(run.ended)}
        seconds = 0 if run.ended is None else (run.ended - run.began) // SECOND
        previous = {"PreviousRunId": run.previous} if run.previous else {}
        return {
            "Id": run.id,
            "Attempt": int(run.id.partition("_attempt_")[2] or 0),
            "JobName": run.job,
            "StartedOn": _date(run.began),
            "LastModifiedOn": _date(run.ended or run.began),
            "JobRunState": run.state,
            "Arguments": run.arguments,
            "ExecutionTime": seconds,
            "MaxCapacity": self._job(run.job).capacity,
            **({"ErrorMessage": run.message} if run.message else {}),
            **previous,
            **ended,
        }

    def _job(self, name: str) -> GlueJob:
        if name not in self.jobs:
            raise refused("EntityNotFoundException", f"Failed to find job {name}")
        return self.jobs[name]

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems = service_model.problems("glue", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def event_of(run: JobRun, now: int, **changed: Any) -> dict[str, Any]:
    """The event of the end of a job run.
    https://docs.aws.amazon.com/glue/latest/dg/automating-awsglue-with-cloudwatch-events.html"""
    went_well = run.state == "SUCCEEDED"
    detail = {
        "jobName": run.job,
        "severity": "INFO" if run.state in ("SUCCEEDED", "STOPPED") else "ERROR",
        "state": run.state,
        "jobRunId": run.id,
        "message": "Job run succeeded" if went_well else run.message,
    }
    return {
        "version": "0",
        "id": "abcdef00-1234-5678-9abc-def012345678",
        "detail-type": "Glue Job State Change",
        "source": "aws.glue",
        "account": "000000000000",
        "time": _date(now).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "region": "us-east-1",
        "resources": [],
        "detail": {**detail, **changed},
    }


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
