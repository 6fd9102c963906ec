"""AWS Batch as a target: submit, describe, find and terminate jobs.

SubmitJob has no token: each call makes a job, also one with the same name. The name of a job follows from the attempt.
So after a call without an answer, Sluice looks for the name in the queue before it calls again.
https://docs.aws.amazon.com/batch/latest/APIReference/API_SubmitJob.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.engine import CALL, Engine
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import templates
from chalicelib.core.targets.answers import Answer, Never, NotNow, RunUpdate, Started
from chalicelib.core.targets.batch import CONTEXT, RUN, STOPPED, job_name, update_of
from chalicelib.core.targets.target import tag_value
from chalicelib.settings import Settings

MAX_WHY = 1_024  # characters of a reason in TerminateJob
# Batch accepts a longer one, and then the job fails: `Container Overrides length must be at most 8192`.
MAX_OVERRIDES = 8_192  # characters of the overrides as JSON
LEAST_TIMEOUT, LONGER = 60, 300  # seconds: the shortest timeout of Batch; Batch's own one begins after Sluice's
# All that Batch refuses has one code. A queue or a compute environment that is switched off, or is being changed, may
# come back; what does not exist, or does not fit, does not.
_GONE = re.compile(r"not found|not exist", re.IGNORECASE)
_MAY_PASS = re.compile(r"\b(DISABLED|ENABLED|VALID|CREATING|UPDATING)\b")


class BatchTarget(Engine):
    """Batch keeps jobs for at least seven days after their end
    (https://docs.aws.amazon.com/batch/latest/userguide/job_states.html)."""

    name, start_call, one = "AWS Batch", "SubmitJob", "job"
    never: ClassVar = ("AccessDeniedException", "ClientException", "ValidationException")
    no_answer: ClassVar = (*Engine.no_answer, "ServerException")
    asked_at_once: ClassVar[int] = 100

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            request = request_of(run, context)
        except SluiceError as error:
            return Never(f"{error.field}: {error.message}; {error.hint}")
        try:
            return Started(self._client.submit_job(**request)["jobId"])
        except ClientError as error:
            if code_of(error) == "ClientException" and _MAY_PASS.search(message_of(error)):
                return NotNow(f"AWS Batch refused for now: {message_of(error)}")
            raise

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        found = self.twice(self._client.describe_jobs, jobs=list(target_ids))["jobs"]
        return {job["jobId"]: update_of(job, self._now()) for job in found}

    def find(self, run: Run) -> str | None:
        """The first job with the name of this attempt, in any state. The filter ignores the case of letters. A
        queue can be deleted only when its jobs have ended, so none is found in one that does not exist.

        https://docs.aws.amazon.com/batch/latest/APIReference/API_ListJobs.html
        """
        name = job_name(run)
        asked: dict[str, Any] = {
            "jobQueue": run.request.target["job_queue"],
            "filters": [{"name": "JOB_NAME", "values": [name]}],
        }
        found: list[Mapping[str, Any]] = []
        while True:
            try:
                page = self.twice(self._client.list_jobs, **asked)
            except ClientError as error:
                if code_of(error) == "ClientException" and _GONE.search(message_of(error)):
                    return None
                raise
            found += [job for job in page["jobSummaryList"] if job["jobName"] == name]
            if not page.get("nextToken"):
                break
            asked["nextToken"] = page["nextToken"]
        first = min(found, key=lambda job: (job.get("createdAt", 0), job["jobId"]), default=None)
        return None if first is None else str(first["jobId"])

    def stop(self, target_id: str, why: str) -> None:
        """Terminate a job; Batch cancels one that has not begun. The call does nothing to a job that has ended."""
        try:
            self.twice(self._client.terminate_job, jobId=target_id, reason=f"{STOPPED}{why}"[:MAX_WHY])
        except ClientError as error:
            if code_of(error) != "ClientException":  # Batch does not know the job any more
                raise


def request_of(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The SubmitJob request of a run. Raises `SluiceError` for a placeholder without a value, and for overrides that
    are too long."""
    target = run.request.target
    filled = {
        field: templates.fill(target[field], context, field) for field in ("command", "environment", "parameters")
    }
    variables = {name: templates.as_text(value) for name, value in filled["environment"].items()}
    variables |= {CONTEXT: run.request.context_uri, RUN: f"{run.run_id}-{run.attempt}"}
    overrides: dict[str, Any] = {
        "environment": [{"name": name, "value": variables[name]} for name in sorted(variables)]
    }
    if filled["command"]:
        overrides["command"] = [templates.as_text(word) for word in filled["command"]]
    if "" in overrides.get("command", ()):
        where = f"command.{overrides['command'].index('')}"
        raise invalid(where, "a word of the command", "", "Batch takes no empty text; give it in environment")
    sizes = {"VCPU": target["vcpus"], "MEMORY": target["memory_mib"]}
    if needs := [{"type": kind, "value": f"{size:.10g}"} for kind, size in sizes.items() if size is not None]:
        overrides["resourceRequirements"] = needs
    if (length := len(json.dumps(overrides))) > MAX_OVERRIDES:
        hint = f"let the program read its run context at {CONTEXT} instead"
        what = f"command, environment and sizes of at most {MAX_OVERRIDES} characters together, as JSON"
        raise invalid("environment", what, length, hint)
    request: dict[str, Any] = {
        "jobName": job_name(run),
        "jobQueue": target["job_queue"],
        "jobDefinition": target["job_definition"],
        "containerOverrides": overrides,
        "retryStrategy": {"attempts": 1},  # Sluice retries
        "tags": _tags(run),
    }
    if filled["parameters"]:
        request["parameters"] = {name: templates.as_text(value) for name, value in filled["parameters"].items()}
    if run.run_timeout:
        request["timeout"] = {"attemptDurationSeconds": _limit(run.run_timeout)}
    if target["share_identifier"] is not None:
        request["shareIdentifier"] = target["share_identifier"]
    if target["scheduling_priority"] is not None:
        request["schedulingPriorityOverride"] = target["scheduling_priority"]
    return request


def _tags(run: Run) -> dict[str, str]:
    """By the namespace, a role may terminate the jobs of its own namespace alone."""
    tags = {"namespace": run.workflow.partition(".")[0], "schedule": run.schedule, "workflow": run.workflow}
    return {f"sluice:{name}": tag_value(value) for name, value in tags.items()}


def _limit(timeout: Millis) -> int:
    """Batch's own timeout in seconds: slightly longer than Sluice's, which reports the reason."""
    return max(LEAST_TIMEOUT, -(-timeout // SECOND) + LONGER)


def build(clients: Clients, settings: Settings) -> BatchTarget:
    del settings
    return BatchTarget(clients.make("batch", **CALL), clients.now)
