"""AWS Batch as a target: a job in a job queue (W22)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from chalicelib.core import ids
from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.errors import invalid
from chalicelib.core.instants import HOUR, MINUTE, Instant, parse_instant
from chalicelib.core.rows.run import Run
from chalicelib.core.states import FailureKind, RunState
from chalicelib.core.targets import templates
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.bills import FARGATE, Prices, Usage
from chalicelib.core.targets.target import ARN, PREFIX, REGION, Log, NoLog, PollInterval, Target, attempt_name

_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
_OWN = rf"{ARN}batch:{REGION}:\d{{12}}:"
JobQueue = Annotated[str, Field(pattern=rf"^{_NAME}$|{_OWN}job-queue/{_NAME}$")]
JobDefinition = Annotated[str, Field(pattern=rf"^{_NAME}(:\d+)?$|{_OWN}job-definition/{_NAME}(:\d+)?$")]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
RUN, CONTEXT = "SLUICE_RUN", "SLUICE_CONTEXT"  # environment variables that Sluice sets

STOPPED = "Sluice: "  # begins the reason with which Sluice terminates a job
MAX_LABEL = 64  # characters; prefix, label and token together have at most 128, the limit of a name
MAX_REASON = 4_000  # characters that a run row keeps
FREE_STORAGE_GB = 20  # of each task on Fargate
# What Batch says of a job that ran longer than its own timeout, and of one that waited longer than its queue allows.
# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
_TOO_LONG = ("Job attempt duration exceeded timeout", "JobStateTimeLimit action")
# The machine below a job has gone: an instance that EC2 took back or lost, and a task of Fargate Spot.
# https://docs.aws.amazon.com/batch/latest/userguide/best-practices.html
_HOST_GONE = ("Host EC2", "Your Spot Task was interrupted")


class BatchTarget(Target):
    """A job of AWS Batch, of a job definition with one container on Fargate or EC2, in the account and region of the
    stack.

    ``command``, and the values of ``environment`` and of ``parameters``, may have placeholders such as
    ``{{correlation.day}}``. Batch reports the states of a run by events. With ``poll_every``, Sluice also polls it at
    that interval (W6).
    """

    has_token: ClassVar[bool] = False
    listed: ClassVar[bool] = True
    stores_result: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.batch"
    needs_role: ClassVar[bool] = True
    prices: ClassVar[Prices | None] = FARGATE

    type: Literal["batch"]
    job_queue: JobQueue
    job_definition: JobDefinition
    command: tuple[str, ...] = Field(default=(), max_length=200)
    environment: dict[str, str] = Field(default_factory=dict, max_length=100)
    parameters: dict[str, str] = Field(default_factory=dict, max_length=100)
    vcpus: float | None = Field(default=None, ge=0.25, le=1_000)
    memory_mib: int | None = Field(default=None, ge=4, le=25_000_000)
    share_identifier: str | None = Field(default=None, pattern=r"^[A-Za-z0-9]{1,255}$")
    scheduling_priority: int | None = Field(default=None, ge=0, le=9_999)
    poll_every: PollInterval | None = None

    @field_validator("environment")
    @classmethod
    def _is_free(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not _VARIABLE.fullmatch(name) or name.startswith("AWS_BATCH") or name in (RUN, CONTEXT):
                hint = f"AWS_BATCH... belongs to Batch; Sluice sets {CONTEXT} and {RUN}"
                raise invalid(name, "the name of a variable of your own, such as DAY", name, hint)
        return environment

    @model_validator(mode="after")
    def _can_be_filled(self) -> Self:
        if "" in self.command:
            where = f"command.{self.command.index('')}"
            raise invalid(where, "a word of the command", "", "Batch takes no empty text; leave it out")
        for field in ("command", "environment", "parameters"):
            templates.check(getattr(self, field), field)
        if self.scheduling_priority is not None and self.share_identifier is None:
            hint = "only queues with a scheduling policy have priorities, and they need the share; add share_identifier"
            raise invalid("scheduling_priority", "a share_identifier with it", self.share_identifier, hint)
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        for field, kind in (("job_queue", "job-queue"), ("job_definition", "job-definition")):
            got = str(stored[field])
            arn = got if got.startswith("arn:") else own_arn("batch", f"{kind}/{got}")
            yield Named("engines", re.sub(r":\d+$", "", arn), field, got)

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A state change of a job. Its detail is what DescribeJobs returns.

        https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html
        """
        job, at = event["detail"], parse_instant(event["time"])
        update = update_of(job, at)
        name, queue = run_name_of(job), _name_of(job["jobQueue"])
        return StateChange("batch", job["jobId"], job["status"], update, name, complete=True, place=queue)

    @classmethod
    def place_of(cls, stored: Mapping[str, Any]) -> str | None:
        return _name_of(stored["job_queue"])

    @classmethod
    def log_of(cls, run: Run) -> Log:
        if run.target_id is None:
            return NoLog("it has no job yet", "it never began there")
        stream = f"aws batch describe-jobs --jobs {run.target_id} --query jobs[0].container.logStreamName --output text"
        log = f'aws logs get-log-events --log-group-name /aws/batch/job --log-stream-name "$({stream})"'
        return NoLog(f"CloudWatch Logs keeps the log of the job, unless its definition sends it elsewhere: {log}")


def update_of(job: Mapping[str, Any], now: Instant) -> RunUpdate | None:
    """The update of a run from its job, as DescribeJobs or an event has it; None before the container runs. ``now``
    counts as the end of a job that does not say when it ended: it has never run.

    https://docs.aws.amazon.com/batch/latest/APIReference/API_JobDetail.html
    """
    job_id, status = str(job["jobId"]), job["status"]
    began: Instant | None = job.get("startedAt") or None
    if status == "RUNNING":
        return RunUpdate("RUNNING", began or now, target_id=job_id)
    ended: Instant = job.get("stoppedAt") or now
    if status == "SUCCEEDED":
        return RunUpdate("SUCCEEDED", ended, target_id=job_id, started_at=began, billed=_billed(job, began, ended))
    if status != "FAILED":
        return None
    state, outcome, reason = _failure(job)
    billed = _billed(job, began, ended)
    return RunUpdate(state, ended, reason, job_id, outcome=outcome, started_at=began, billed=billed)


def _failure(job: Mapping[str, Any]) -> tuple[RunState, FailureKind, str]:
    """Batch has one state for a job that failed, was terminated, took too long, or lost its machine."""
    said = str(job.get("statusReason") or "")
    if said.startswith(STOPPED):
        return "CANCELLED", "failed", ""  # the run has the reason already
    reason = _reason(job, said)
    if any(words in said for words in _TOO_LONG):
        return "FAILED", "timed_out", reason
    if job.get("isTerminated") or job.get("isCancelled"):
        return "CANCELLED", "failed", reason
    return "FAILED", "lost" if said.startswith(_HOST_GONE) else "failed", reason


def _reason(job: Mapping[str, Any], said: str) -> str:
    """``Essential container in task exited (exit code 137): OutOfMemoryError: Container killed due to memory usage``"""
    container = job.get("container") or {}
    code, more = container.get("exitCode"), str(container.get("reason") or "")
    head = f"{said or 'the job failed'} (exit code {code})" if code is not None else said
    return ": ".join(part for part in (head, more if more not in said else "") if part)[:MAX_REASON]


def _billed(job: Mapping[str, Any], began: Instant | None, ended: Instant) -> tuple[int, ...]:
    """The bill of a job on Fargate, which bills at least one minute; none for EC2, whose instances are billed, not
    their jobs. https://aws.amazon.com/fargate/pricing/"""
    container = job.get("container") or {}
    needs = {each["type"]: float(each["value"]) for each in container.get("resourceRequirements") or ()}
    if (
        began is None
        or "FARGATE" not in (job.get("platformCapabilities") or ())
        or not {"VCPU", "MEMORY"} <= set(needs)
    ):
        return ()
    hours = max(ended - began, MINUTE) / HOUR
    storage = (container.get("ephemeralStorage") or {}).get("sizeInGiB", FREE_STORAGE_GB) - FREE_STORAGE_GB
    return Usage(needs["VCPU"] * hours, needs["MEMORY"] / 1024 * hours, storage * hours).stored()


def _name_of(queue: str) -> str:
    """The name of a queue, from its name or its ARN."""
    return queue.rpartition("/")[2]


def job_name(run: Run) -> str:
    """The name of the job of this attempt. It never changes, so a search finds what an unanswered call has started."""
    return attempt_name(run, MAX_LABEL)


def run_name_of(job: Mapping[str, Any]) -> str | None:
    """``<run id>-<attempt>`` from the environment of a job; None if Sluice did not start the job.

    The name of the job must match the attempt, because users may submit jobs with a copy of the environment.
    """
    environment = (job.get("container") or {}).get("environment") or ()
    name = next((str(each.get("value")) for each in environment if each.get("name") == RUN), "")
    found = ids.attempt_named(name)
    if found is None:
        return None
    is_ours = str(job["jobName"]).endswith(f"-{ids.client_token(*found)}")
    return name if is_ours and str(job["jobName"]).startswith(PREFIX) else None
