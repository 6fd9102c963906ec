"""AWS Glue as a target: start, poll, find and stop job runs.

StartJobRun has no client token. A call without an answer is repeated only after a search has not found what it started:
GetJobRuns returns the runs of a job newest first, each with its arguments, of which one is the name of the attempt.
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, is_no_answer
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.engine import CALL, Engine, instant
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NotNow, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.glue import arguments_of, id_of, is_of, job_and_run, name_of, update_of
from chalicelib.core.targets.target import first_call
from chalicelib.settings import Settings

CLOCKS = 2 * MINUTE  # the largest expected difference between Glue's clock and Sluice's
LISTED, MAX_PAGES = 200, 20  # 4,000 runs of one job since the first call
MAX_TIMEOUT = 10_080  # minutes, of a job run
MISSING = "EntityNotFoundException"
_ENDED = ("STOPPED", "SUCCEEDED", "FAILED", "TIMEOUT", "ERROR", "EXPIRED", "STOPPING")


class GlueTarget(Engine):
    """Glue keeps job runs for a year, so later one is missing only if a user has deleted its job."""

    name, start_call, one = "Glue", "StartJobRun", "job run"
    never: ClassVar = {"AccessDeniedException", MISSING, "InvalidInputException", "ValidationException"}
    no_answer: ClassVar = (*Engine.no_answer, "InternalServiceException", "OperationTimeoutException")

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            request = request_of(run, context)
        except SluiceError as error:
            return Never(f"{error.field}: {error.message}; {error.hint}")
        if (refused := self._refused_job(run, request["JobName"])) is not None:
            return refused
        try:
            answer = self._client.start_job_run(**request)
        except ClientError as error:
            if code_of(error) != "ConcurrentRunsExceededException":
                raise
            # The limit is that of this job alone.
            return NotNow("the job has as many runs as its maximum concurrency allows", alone=True)
        return Started(id_of(request["JobName"], answer["JobRunId"]))

    def _refused_job(self, run: Run, name: str) -> Answer | None:
        """Why this job is not started. A job that Glue itself retries would run its script again beside the retries of
        the workflow, after its run has ended here. Nothing has started yet, so a call without an answer is repeated."""
        region, wanted = self._client.meta.region_name, str(run.request.target["job"]).split(":")
        if len(wanted) > 3 and wanted[3] != region:
            return Never(f"expected a job in the region of the stack, {region}, got {run.request.target['job']}")
        try:
            job = self.twice(self._client.get_job, JobName=name)["Job"]
        except ClientError as error:
            if is_no_answer(error, self.no_answer):
                return NotNow(f"GetJob gave no answer: {code_of(error)}")
            raise
        except BotoCoreError as error:
            return NotNow(f"GetJob gave no answer: {error}")
        if retries := job.get("MaxRetries"):
            return Never(
                f"expected a job without retries of its own, got MaxRetries {retries} of {name}: Glue would run the "
                "script again after the run has ended; set it to 0, and give the workflow retries"
            )
        return None

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        [target_id] = target_ids
        found = self._described(target_id)
        return {} if found is None else {target_id: update_of(target_id, found)}

    def find(self, run: Run) -> str | None:
        """The first job run of this attempt. The search ends at the job runs that are older than the first call. Raises
        `SearchLimit` if there are too many since then, and TimeoutError if a start call becomes too late meanwhile."""
        calls = run.lease_until is not None and run.lease_until > self._now()
        job = name_of(str(run.request.target["job"]))
        first = first_call(run)
        found: str | None = None
        request: dict[str, Any] = {"JobName": job, "MaxResults": LISTED}
        for _ in range(MAX_PAGES):
            try:
                page = self.twice(self._client.get_job_runs, **request)
            except ClientError as error:
                if code_of(error) != MISSING:
                    raise
                return found  # the job is deleted, and its runs with it
            for each in page["JobRuns"]:
                if is_of(run, each):
                    found = id_of(job, each["Id"])
            if not page.get("NextToken") or any(_is_before(each, first) for each in page["JobRuns"]):
                return found
            if calls and found is None and self.is_late(run):
                raise TimeoutError(f"the job runs of {job} since the first call were not all read within 20s")
            request["NextToken"] = page["NextToken"]
        if found is not None:
            return found
        most = LISTED * MAX_PAGES
        raise SearchLimit(f"expected run {run.request.name} among {most} runs of job {job} since its call, got more")

    def stop(self, target_id: str, why: str) -> None:
        job, job_run = job_and_run(target_id)
        answer = self.twice(self._client.batch_stop_job_run, JobName=job, JobRunIds=[job_run])
        refused = next((each["ErrorDetail"] for each in answer.get("Errors", ())), None)
        if refused is None:
            return
        found = self._described(target_id)
        if found is not None and found["JobRunState"] not in _ENDED:
            code, message = str(refused.get("ErrorCode")), str(refused.get("ErrorMessage"))
            raise ClientError({"Error": {"Code": code, "Message": message}}, "BatchStopJobRun")

    def _described(self, target_id: str) -> Mapping[str, Any] | None:
        job, job_run = job_and_run(target_id)
        try:
            found: Mapping[str, Any] = self.twice(self._client.get_job_run, JobName=job, RunId=job_run)["JobRun"]
        except ClientError as error:
            if code_of(error) == MISSING:
                return None
            raise
        return found


def request_of(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The StartJobRun request of a run. Raises ``invalid`` for an argument whose value the context lacks."""
    target = run.request.target
    fields = {
        "WorkerType": target.get("worker_type"),
        "NumberOfWorkers": target.get("workers"),
        "ExecutionClass": target.get("execution_class"),
        "Timeout": _limit(run.run_timeout) if run.run_timeout else None,
    }
    return {
        "JobName": name_of(str(target["job"])),
        "Arguments": arguments_of(run, context),
        **{name: value for name, value in fields.items() if value is not None},
    }


def _limit(timeout: Millis) -> int:
    """Glue's own timeout in minutes: slightly longer than Sluice's, which reports the reason."""
    return min(-(-timeout // MINUTE) + 5, MAX_TIMEOUT)


def _is_before(found: Mapping[str, Any], first: int) -> bool:
    """Whether a job run was started before the first call. One that waits has no start yet."""
    return "StartedOn" in found and instant(found["StartedOn"]) < first - CLOCKS


def build(clients: Clients, settings: Settings) -> GlueTarget:
    del settings
    return GlueTarget(clients.make("glue", **CALL), clients.now)
