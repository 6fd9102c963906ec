"""EMR Serverless as a target."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from chalicelib.core.access.allowed import Named
from chalicelib.core.access.spark_keys import OF_FILES
from chalicelib.core.documents import Sparse
from chalicelib.core.errors import invalid
from chalicelib.core.instants import parse_instant
from chalicelib.core.limits import names
from chalicelib.core.limits.permits import Pace, PermitRequest, Slots
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.rows.run import Run
from chalicelib.core.states import EMR_STATE
from chalicelib.core.targets import emr_reason
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.resources import Resources
from chalicelib.core.targets.target import Log, NoLog, PollInterval, Target, Uploaded

# EMR splits the parameters of spark-submit at whitespace, so a value with a space could add ``--jars`` or ``--conf``.
_KEY = re.compile(r"spark\.[A-Za-z0-9_.-]+")
_VALUE = re.compile(r"[^\s\x00-\x1f\x7f\"'`\\]*")
_FILE = re.compile(r"[a-z0-9]+://[^\s,\"'`\\]+")
# A file of EMR's own image, such as the jar of Iceberg: whoever may use the application may use it.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-iceberg.html
_OF_IMAGE = re.compile(r"(local://)?/usr/share/aws/([A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*")
# Those that `resources` set: a namespace may always size its runs.
_SIZES = frozenset(
    {
        *("spark.driver.cores", "spark.driver.memory", "spark.emr-serverless.driver.disk"),
        *("spark.executor.cores", "spark.executor.memory", "spark.emr-serverless.executor.disk"),
        *("spark.executor.instances", "spark.dynamicAllocation.maxExecutors"),
    }
)
# Those that say to which run of OpenLineage a job belongs. Sluice sets them at the claim (H6); they reach nothing.
OF_LINEAGE = frozenset(
    {
        *("spark.openlineage.namespace", "spark.openlineage.appName"),
        *(f"spark.openlineage.{whose}{what}" for whose in ("parent", "rootParent")
          for what in ("JobNamespace", "JobName", "RunId")),
    }
)  # fmt: skip


class EmrServerlessTarget(Target, Sparse):
    """An EMR Serverless PySpark job. ``spark`` holds Spark properties; application and role default to the stack's.

    EMR reports the states of a run by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """

    listed: ClassVar[bool] = True
    stores_result: ClassVar[bool] = True
    bills: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.emr-serverless"
    omitted: ClassVar[Collection[str]] = ("poll_every",)

    type: Literal["emr_serverless"]
    entry_point: str = Field(pattern=r"^s3://[^/]+/.+", max_length=1024)
    arguments: tuple[str, ...] = Field(default=(), max_length=100)
    py_files: tuple[str, ...] = Field(default=(), max_length=50)
    spark: dict[str, str] = Field(default_factory=dict)
    application_id: str | None = None
    execution_role_arn: str | None = None
    poll_every: PollInterval | None = None

    @classmethod
    def pace(cls, stack: StartRate) -> Pace:
        """The pace of StartJobRun calls."""
        return Pace(names.EMR_STARTS, stack.spacing, stack.burst)

    def permits(self, stack: StartRate, resources: Resources | None) -> tuple[PermitRequest, ...]:
        """A slot of the application, if that has a limit, and a permit of the pace."""
        pace = self.pace(stack)
        application = self._application(stack, resources)
        if application not in stack.run_limits:
            return (pace,)
        return Slots(names.application_limit(application), stack.run_limits[application]), pace

    def queues(self, stack: StartRate, resources: Resources | None) -> tuple[str, ...]:
        return names.application_limit(self._application(stack, resources)), names.EMR_STARTS

    def with_resources(self, resources: Resources) -> Self:
        """The target with these resources. They override Spark properties, because a pool counts by resources."""
        application = resources.application or self.application_id
        return self.model_copy(update={"application_id": application, "spark": {**self.spark, **resources.spark}})

    def placed(self, stack: StartRate) -> Self:
        """The target with application and role filled in. A run keeps them from its claim on. After the defaults of the
        stack change, repeated calls, lookups and cancels go to the application of the first call."""
        application = self.application_id or stack.application_id
        role = self.execution_role_arn or stack.role_arn or None
        return self.model_copy(update={"application_id": application, "execution_role_arn": role})

    @classmethod
    def with_lineage(cls, stored: Mapping[str, Any], properties: Mapping[str, str]) -> Mapping[str, Any]:
        return {**stored, "spark": {**properties, **stored["spark"]}}

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        """The role, the application, the files of code, and the Spark properties. Raises ``invalid`` for properties and
        files that would become other parameters of spark-submit."""
        if stored.get("execution_role_arn"):
            yield Named("execution_roles", str(stored["execution_role_arn"]), "execution_role_arn")
        if stored.get("application_id"):
            yield Named("applications", str(stored["application_id"]), "application_id")
        yield from named_by_program(stored)

    def _application(self, stack: StartRate, resources: Resources | None) -> str:
        """The application on which a run with these resources starts."""
        return (resources.application if resources is not None else None) or self.application_id or stack.application_id

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A state change of a job run. It has neither the name, nor the reason of a failure, nor the bill.

        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
        """
        detail, at = event["detail"], parse_instant(event["time"])
        target_id = f"{detail['applicationId']}/{detail['jobRunId']}"
        state = EMR_STATE.get(detail["state"], "STARTING")
        update = RunUpdate(state, at, target_id=target_id) if state != "STARTING" else None
        return StateChange("emr_serverless", target_id, detail["state"], update, place=str(detail["applicationId"]))

    @classmethod
    def place_of(cls, stored: Mapping[str, Any]) -> str | None:
        application: str | None = stored.get("application_id")
        return application

    @classmethod
    def log_folder(cls, namespace: str) -> str:
        """One folder for each namespace, so that the job role of a namespace writes no log of another."""
        return f"{namespace}/"

    @classmethod
    def log_of(cls, run: Run) -> Log:
        """The streams of the driver. EMR uploads them about once a minute during a run, and after its end."""
        application_id, _, job_run_id = (run.target_id or "").partition("/")
        if not job_run_id:
            return NoLog("the target has no run yet", "the run never started at the target")
        folder = f"logs/{run.request.logs}applications/{application_id}/jobs/{job_run_id}/SPARK_DRIVER"
        return Uploaded(folder, ("stderr", "stdout"), "EMR has uploaded no log yet; it does so while the run is active")

    @classmethod
    def wants_log(cls, reason: str) -> bool:
        return not emr_reason.is_whole(reason)

    @classmethod
    def reason_with_log(cls, reason: str, streams: Mapping[str, str]) -> str:
        return emr_reason.with_error(reason, streams)


def named_by_program(stored: Mapping[str, Any]) -> Iterable[Named]:
    """The files of code and the Spark properties of a target. Raises ``invalid`` as `EmrServerlessTarget.named`."""
    yield Named("entry_points", str(stored["entry_point"]), "entry_point")
    for number, file in enumerate(stored.get("py_files") or ()):
        if not _FILE.fullmatch(file):
            hint = "upload the file to S3, and write its address without spaces and commas"
            raise invalid(f"py_files.{number}", "an address such as s3://bucket/lib.py", file, hint)
        yield Named("entry_points", str(file), f"py_files.{number}")
    for key, value in (stored.get("spark") or {}).items():
        yield from named_by_spark(str(key), str(value), f"spark.{key}")


def named_by_spark(key: str, value: str, field: str) -> Iterable[Named]:
    """The Spark property in a ``field``, and the files that it names. Raises ``invalid`` for one that would become
    other parameters of spark-submit."""
    if not _KEY.fullmatch(key):
        hint = "correct the key: letters, digits, '.', '-' and '_' after spark."
        raise invalid(field, "a Spark property such as spark.executor.cores", key, hint)
    if not _VALUE.fullmatch(value):
        hint = "leave out spaces, quotes and backslashes; EMR would read the rest as other parameters of spark-submit"
        raise invalid(field, "a value without whitespace and quotes", value, hint)
    if key in OF_FILES:
        for file in filter(None, value.split(",")):
            if not _OF_IMAGE.fullmatch(file):
                yield Named("entry_points", file.partition("#")[0], field)
    if key not in _SIZES | OF_LINEAGE:
        yield Named("spark", key, field)
