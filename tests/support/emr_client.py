"""A client of EMR Serverless with several applications, with the calls of `EmrServerlessTarget`: for tests of calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ReadTimeoutError


class ResourceNotFoundException(Exception):
    pass


class ValidationException(Exception):
    pass


class _Exceptions:
    ResourceNotFoundException = ResourceNotFoundException
    ValidationException = ValidationException


@dataclass
class JobRun:
    application: str
    id: str
    name: str
    token: str
    role: str
    state: str = "SUBMITTED"


class EmrClient:
    """A token starts one job run in each application. ``lose_answers``: the number of starts that succeed without an
    answer.
    """

    exceptions = _Exceptions

    def __init__(self) -> None:
        self.runs: list[JobRun] = []
        self.lose_answers = 0

    def start_job_run(self, **asked: Any) -> dict[str, str]:
        application, token = asked["applicationId"], asked["clientToken"]
        made = next((run for run in self.runs if (run.application, run.token) == (application, token)), None)
        if made is None:
            number = f"jr{len(self.runs) + 1:05d}"
            made = JobRun(application, number, asked["name"], token, asked["executionRoleArn"])
            self.runs.append(made)
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://emr-serverless.example")
        return {"applicationId": application, "jobRunId": made.id}

    def get_job_run(self, **asked: str) -> dict[str, Any]:
        return {"jobRun": self._answer(self._run(**asked))}

    def cancel_job_run(self, **asked: str) -> None:
        self._run(**asked).state = "CANCELLED"

    def list_job_runs(self, **asked: Any) -> dict[str, Any]:
        return {"jobRuns": [self._answer(run) for run in self.runs if run.application == asked["applicationId"]]}

    def _run(self, **asked: str) -> JobRun:
        for run in self.runs:
            if (run.application, run.id) == (asked["applicationId"], asked["jobRunId"]):
                return run
        raise ResourceNotFoundException

    @staticmethod
    def _answer(run: JobRun) -> dict[str, Any]:
        now = datetime(2026, 3, 2, 12, tzinfo=UTC)
        answer = {"id": run.id, "applicationId": run.application, "name": run.name, "state": run.state}
        return {**answer, "createdAt": now, "updatedAt": now, "startedAt": now, "endedAt": now}
