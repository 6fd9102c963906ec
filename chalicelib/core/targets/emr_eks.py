"""EMR on EKS as a target: a Spark job in a virtual cluster (W22).

Example: ``{type: emr_eks, virtual_cluster: 0b1c2d3e, execution_role_arn: arn:aws:iam::123456789012:role/job, release:
emr-7.5.0-latest, entry_point: s3://code/clean.py}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.instants import Instant, parse_instant
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.targets import emr_reason
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.emr_serverless import named_by_program
from chalicelib.core.targets.target import ARN, REGION, Log, NoLog, PollInterval, Target, attempt_name

_ID = r"[0-9a-z]{1,64}"
VirtualCluster = Annotated[
    str, Field(pattern=rf"^({_ID}|{ARN[1:]}emr-containers:{REGION}:\d{{12}}:/virtualclusters/{_ID})$")
]
# EMR refuses an argument that is empty, blank or longer.
# https://docs.aws.amazon.com/emr-on-eks/latest/APIReference/API_SparkSubmitJobDriver.html
EksArgument = Annotated[str, Field(pattern=r"\S", max_length=10_280)]

# https://docs.aws.amazon.com/emr/latest/EMR-on-EKS-DevelopmentGuide/emr-eks-jobs-states.html. States that are not
# listed are those of a job run that has not begun, or whose end is near.
_STATES: Mapping[str, RunState] = {
    "RUNNING": "RUNNING",
    "COMPLETED": "SUCCEEDED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}
MAX_LABEL = 16  # characters; prefix, label and token together have at most 64, the limit of a name


class EmrEksTarget(Target):
    """A PySpark job of EMR on EKS, in a virtual cluster of the region of the stack. ``spark`` holds Spark properties.

    EMR reports the states of a run by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """

    listed: ClassVar[bool] = True
    stores_result: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.emr-containers"
    needs_role: ClassVar[bool] = True

    type: Literal["emr_eks"]
    virtual_cluster: VirtualCluster
    execution_role_arn: str = Field(pattern=rf"{ARN}iam::\d{{12}}:role/[\w+=,.@/-]+$", max_length=2048)
    release: str = Field(pattern=r"^[A-Za-z0-9._/-]+$", max_length=64)
    entry_point: str = Field(pattern=r"^s3://[^/\s]+/\S+$", max_length=256)
    arguments: tuple[EksArgument, ...] = Field(default=(), max_length=100)
    py_files: tuple[str, ...] = Field(default=(), max_length=50)
    spark: dict[str, str] = Field(default_factory=dict)
    poll_every: PollInterval | None = None

    @classmethod
    def with_lineage(cls, stored: Mapping[str, Any], properties: Mapping[str, str]) -> Mapping[str, Any]:
        return {**stored, "spark": {**properties, **stored["spark"]}}

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        """The virtual cluster, the role, the files of code, and the Spark properties."""
        cluster = str(stored["virtual_cluster"])
        arn = cluster if ":" in cluster else own_arn("emr-containers", f"/virtualclusters/{cluster}")
        yield Named("engines", arn, "virtual_cluster", cluster)
        yield Named("execution_roles", str(stored["execution_role_arn"]), "execution_role_arn")
        yield from named_by_program(stored)

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A state change of a job run. Its detail is a part of what DescribeJobRun returns. It has the name of the job
        run, which holds the token of the attempt, but not the name of the run.

        https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-emr-containers.html
        """
        detail, at = event["detail"], parse_instant(event["time"])
        target_id, state = id_of(detail["virtualClusterId"], detail["id"]), detail["state"]
        update = update_of(detail, at)
        return StateChange(
            "emr_eks", target_id, state, update, complete=state != "FAILED" or bool(detail.get("stateDetails"))
        )

    @classmethod
    def log_folder(cls, namespace: str) -> str:
        """One folder for each namespace, as for EMR Serverless."""
        return f"{namespace}/"

    @classmethod
    def log_of(cls, run: Run) -> Log:
        """EMR uploads the log into a folder whose name has an id of Spark, which no call returns.

        https://aws.github.io/aws-emr-containers-best-practices/troubleshooting/docs/where-to-look-for-spark-logs/
        """
        if run.target_id is None:
            return NoLog("it has no job run yet", "it never began there")
        cluster, job_run = cluster_and_run(run.target_id)
        folder = f"{log_address(run)}/{cluster}/jobs/{job_run}/containers/"
        return NoLog(
            f"EMR uploads the log of the job run to S3: aws s3 ls --recursive {folder} lists its files; that of the "
            "program is in the folder that ends with -driver"
        )


def log_address(run: Run) -> str:
    """The folder of the control bucket for the logs of a run, such as ``s3://control/logs/demo``."""
    bucket = run.request.context_uri.removeprefix("s3://").partition("/")[0]
    return f"s3://{bucket}/logs/{run.request.logs}".rstrip("/")


def job_name(run: Run) -> str:
    """The name of the job run of this attempt. It never changes, so a search finds what an unanswered call has
    started."""
    return attempt_name(run, MAX_LABEL)


def cluster_id(virtual_cluster: str) -> str:
    """The id of a virtual cluster, of which a document may have the ARN."""
    return virtual_cluster.rpartition("/")[2]


def id_of(cluster: str, job_run: str) -> str:
    return f"{cluster}/{job_run}"


def cluster_and_run(target_id: str) -> tuple[str, str]:
    cluster, _, job_run = target_id.partition("/")
    return cluster, job_run


def update_of(found: Mapping[str, Any], now: Instant) -> RunUpdate | None:
    """The update of a run from its job run, as DescribeJobRun or an event has it; None for one that has not begun. EMR
    does not say when it began: ``now`` counts, and also as the end of one that does not say when it ended."""
    target_id, state = id_of(found["virtualClusterId"], found["id"]), _STATES.get(found["state"])
    if state is None:
        return None
    finished = found.get("finishedAt")
    ended = round(finished.timestamp() * 1000) if isinstance(finished, datetime) else now
    if state != "FAILED":
        return RunUpdate(state, now if state == "RUNNING" else ended, target_id=target_id)
    kind = str(found.get("failureReason") or "")
    details = emr_reason.of_details(str(found.get("stateDetails") or ""))
    reason = f"{details} ({kind})" if details and kind else details or kind
    return RunUpdate(state, ended, reason, target_id, outcome="lost" if kind == "CLUSTER_UNAVAILABLE" else "failed")
