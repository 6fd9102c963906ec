"""A job of AWS Glue as a target: a Spark or a Python shell job (W22).

Example: ``{type: glue, job: sluice-target-orders, arguments: {"--day": "{{correlation.day}}"}}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Instant, parse_instant
from chalicelib.core.rows.run import Run
from chalicelib.core.states import FailureKind, RunState
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.bills import GLUE, GLUE_FLEX, Prices, Usage
from chalicelib.core.targets.emr_serverless import named_by_spark
from chalicelib.core.targets.target import ARN, REGION, Log, NoLog, PollInterval, Target

CONTEXT, RUN = "--sluice-context", "--sluice-run"  # the arguments by which a program knows its run
# Glue accepts more characters in a name; these are safe in an ARN, in a pattern and before a `/`.
_NAME = r"[A-Za-z0-9][A-Za-z0-9 _.()+=,@-]{0,254}"
JobName = Annotated[str, Field(pattern=rf"^({_NAME}|{ARN[1:]}glue:{REGION}:\d{{12}}:job/{_NAME})$")]
_KEY = re.compile(r"--[A-Za-z0-9_][A-Za-z0-9_.-]{0,126}")
MAX_ARGUMENTS = 100
# Those that Glue sets for each run itself, by which it would not be the run that Sluice knows.
_OF_GLUE = frozenset({"--JOB_NAME", "--JOB_ID", "--JOB_RUN_ID", "--debug", "--mode", "--endpoint"})
# Those whose values are files of code or Python packages, in lists. https://docs.aws.amazon.com/glue/latest/dg/
# aws-glue-programming-etl-glue-arguments.html
_OF_CODE = frozenset(
    {
        *("--scriptLocation", "--extra-py-files", "--extra-jars", "--extra-files"),
        *("--additional-python-modules", "--python-modules-installer-option", "--pip-install", "--library-set"),
        *("--s3-py-modules", "--working-dir"),  # of Ray jobs
    }
)
_CONF = "--conf"  # Spark properties: `spark.a=1 --conf spark.b=2`

# https://docs.aws.amazon.com/glue/latest/dg/job-run-statuses.html. States that are not listed are those of a job run
# that has not begun, or whose end is near.
_STATES: Mapping[str, tuple[RunState, FailureKind]] = {
    "RUNNING": ("RUNNING", "failed"),
    "SUCCEEDED": ("SUCCEEDED", "failed"),
    "FAILED": ("FAILED", "failed"),
    "ERROR": ("FAILED", "failed"),
    "EXPIRED": ("FAILED", "failed"),
    "TIMEOUT": ("FAILED", "timed_out"),
    "STOPPED": ("CANCELLED", "failed"),
}
MAX_REASON = 4_000  # characters of a message that a run row keeps
_LEAST_S = 60  # Glue bills at least a minute


class GlueTarget(Target):
    """A run of a Glue job, in the region of the stack. The job defines script, role and connections; the fields here
    replace what the job has as its defaults.

    Glue reports the end of a run by an event. With ``poll_every``, Sluice also polls it at that interval (W6).
    """

    has_token: ClassVar[bool] = False
    listed: ClassVar[bool] = True
    stores_result: ClassVar[bool] = True
    bills: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.glue"
    needs_role: ClassVar[bool] = True

    type: Literal["glue"]
    job: JobName
    arguments: dict[str, str] = Field(default_factory=dict, max_length=MAX_ARGUMENTS)
    worker_type: str | None = Field(default=None, pattern=r"^[A-Z][A-Za-z0-9.]{1,31}$")
    workers: int | None = Field(default=None, ge=1, le=10_000)
    execution_class: Literal["STANDARD", "FLEX"] | None = None
    poll_every: PollInterval | None = None

    @model_validator(mode="after")
    def _is_a_start(self) -> Self:
        if (self.worker_type is None) != (self.workers is None):
            got = "worker_type alone" if self.workers is None else "workers alone"
            raise invalid("workers", "worker_type and workers together", got, "leave out both to keep those of the job")
        for key, value in self.arguments.items():
            _check_argument(key, value)
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        """The job, the files of code, and the Spark properties."""
        job = str(stored["job"])
        yield Named("engines", job if ":" in job else own_arn("glue", f"job/{job}"), "job", job)
        for key, value in (stored.get("arguments") or {}).items():
            where = f"arguments.{key}"
            if key in _OF_CODE:
                for file in filter(None, (part.strip() for part in str(value).split(","))):
                    yield Named("entry_points", file, where)
            elif key == _CONF:
                for name, setting in _properties(str(value), where):
                    yield from named_by_spark(name, setting, where)

    @classmethod
    def prices_of(cls, run: Run) -> Prices | None:
        return GLUE_FLEX if run.request.target.get("execution_class") == "FLEX" else GLUE

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """The end of a job run. The event has neither the arguments, which name the run, nor the bill.

        https://docs.aws.amazon.com/glue/latest/dg/automating-awsglue-with-cloudwatch-events.html
        """
        detail, at = event["detail"], parse_instant(event["time"])
        target_id, state = id_of(detail["jobName"], detail["jobRunId"]), detail["state"]
        return StateChange("glue", target_id, state, _update(target_id, state, at, str(detail.get("message") or "")))

    @classmethod
    def log_of(cls, run: Run) -> Log:
        """CloudWatch has a log stream for each job run."""
        if run.target_id is None:
            return NoLog("it has no job run yet", "it never began there")
        events = "aws logs get-log-events --output text --query events[].message --log-group-name"
        stream = f"--log-stream-name {job_and_run(run.target_id)[1]}"
        return NoLog(
            f"CloudWatch keeps the log of the job run: {events} /aws-glue/jobs/error {stream}; what the script prints "
            "is in /aws-glue/jobs/output, and that of a Python shell job in /aws-glue/python-jobs/error and .../output"
        )


def _check_argument(key: str, value: str) -> None:
    where = f"arguments.{key}"
    if not _KEY.fullmatch(key):
        raise invalid(where, "a name such as --day", key, "begin it with --; then letters, digits, '_', '.' and '-'")
    if key.startswith("--sluice-") or key in _OF_GLUE:
        whose = "Sluice" if key.startswith("--sluice-") else "Glue"
        raise invalid(where, "an argument of your own", f"{key}, which {whose} sets", "rename it")
    if key in _OF_CODE or key == _CONF:
        if "{{" in value:
            hint = "write the value out: what loads code is checked when the document is put"
            raise invalid(where, "a value without placeholders", value, hint)
        if key == _CONF:
            list(_properties(value, where))
        return
    from chalicelib.core.targets import templates  # few invocations meet a document of a Glue job

    templates.check(value, where)


def _properties(text: str, where: str) -> list[tuple[str, str]]:
    """The Spark properties of ``--conf``, whose value Glue appends to the parameters of spark-submit."""
    parts = [each.strip().partition("=") for each in re.split(r"\s--conf\s", text.strip())]
    if any(not setting or any(char.isspace() for char in name + value) for name, setting, value in parts):
        hint = "write several as spark.a=1 --conf spark.b=2"
        raise invalid(where, "Spark properties such as spark.sql.shuffle.partitions=20", text, hint)
    return [(name, value) for name, _, value in parts]


def arguments_of(run: Run, context: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of the job run of an attempt. Raises ``invalid`` for a value that the context lacks."""
    from chalicelib.core.targets import templates  # as above

    own = {
        key: value if key in _OF_CODE or key == _CONF else templates.fill(value, context, f"arguments.{key}")
        for key, value in (run.request.target.get("arguments") or {}).items()
    }
    texts = {key: value if isinstance(value, str) else json.dumps(value, sort_keys=True) for key, value in own.items()}
    return {**texts, CONTEXT: run.request.context_uri, RUN: run.request.name}


def is_of(run: Run, found: Mapping[str, Any]) -> bool:
    """Whether Sluice has started a job run for this attempt. The context is in the control bucket of the installation,
    so a run of another installation differs. A retry by Glue itself has the same arguments, and a predecessor."""
    named = found.get("Arguments") or {}
    is_first = not found.get("PreviousRunId") and not found.get("Attempt")
    return is_first and (named.get(CONTEXT), named.get(RUN)) == (run.request.context_uri, run.request.name)


def name_of(job: str) -> str:
    """The name of a job, of which a document may have the ARN."""
    return job.rpartition(":job/")[2]


def id_of(job: str, job_run: str) -> str:
    return f"{job}/{job_run}"


def job_and_run(target_id: str) -> tuple[str, str]:
    job, _, job_run = target_id.rpartition("/")
    return job, job_run


def update_of(target_id: str, found: Mapping[str, Any]) -> RunUpdate | None:
    """The update of a run from its job run, as GetJobRun describes it; None for one that has not begun."""
    began, ended = _instant(found.get("StartedOn")), _instant(found.get("CompletedOn"))
    latest = _instant(found.get("LastModifiedOn"))
    state = found["JobRunState"]
    at = (began if state == "RUNNING" else ended) or latest or began or 0
    return _update(target_id, state, at, str(found.get("ErrorMessage") or ""), began, billed_of(found))


def _update(
    target_id: str,
    state: str,
    at: Instant,
    message: str,
    began: Instant | None = None,
    billed: tuple[int, ...] = (),
) -> RunUpdate | None:
    if state not in _STATES:
        return None
    reached, outcome = _STATES[state]
    if reached == "RUNNING":
        return RunUpdate(reached, at, target_id=target_id)
    reason = "" if reached == "SUCCEEDED" else message.strip()[:MAX_REASON]
    if state in ("TIMEOUT", "EXPIRED") and not reason:
        late = "the job run took longer than its timeout at Glue"
        reason = late if state == "TIMEOUT" else "the job run waited too long in the queue of Glue"
    return RunUpdate(reached, at, reason, target_id, outcome=outcome, started_at=began, billed=billed)


def billed_of(found: Mapping[str, Any]) -> tuple[int, ...]:
    """The DPU-hours of a job run: measured (FLEX, auto scaling), or its capacity for its time, a minute at least. Empty
    for one that has consumed nothing.

    https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html#aws-glue-api-jobs-runs-JobRun
    """
    seconds = float(found.get("ExecutionTime") or 0)
    used = found.get("DPUSeconds") or float(found.get("MaxCapacity") or 0) * max(seconds, _LEAST_S)
    return Usage(dpu_hours=used / 3_600).stored() if seconds and used else ()


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else round(moment.timestamp() * 1000)
