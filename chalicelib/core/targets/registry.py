"""The types of targets: those that a document may name, and the class for the target of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chalicelib.core.documents import tagged, types_of
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.athena import AthenaTarget
from chalicelib.core.targets.aws_api import AwsApiTarget
from chalicelib.core.targets.batch import BatchTarget
from chalicelib.core.targets.dag_start import DagStart
from chalicelib.core.targets.each import EachElement
from chalicelib.core.targets.ecs import EcsTarget
from chalicelib.core.targets.emr_eks import EmrEksTarget
from chalicelib.core.targets.emr_serverless import EmrServerlessTarget
from chalicelib.core.targets.event_bus import EventBusTarget
from chalicelib.core.targets.glue import GlueTarget
from chalicelib.core.targets.http import HttpTarget
from chalicelib.core.targets.lambda_function import LambdaTarget
from chalicelib.core.targets.sns import SnsTarget
from chalicelib.core.targets.sqs import SqsTarget
from chalicelib.core.targets.step_functions import StepFunctionsTarget
from chalicelib.core.targets.target import Target
from chalicelib.core.targets.worker import WorkerTarget

# The targets that a document may name, in the order of the JSON schema. Errors list pulled targets last.
TARGETS: tuple[type[Target], ...] = (
    EmrServerlessTarget,
    WorkerTarget,
    SqsTarget,
    SnsTarget,
    HttpTarget,
    LambdaTarget,
    EventBusTarget,
    StepFunctionsTarget,
    EcsTarget,
    BatchTarget,
    GlueTarget,
    AthenaTarget,
    EmrEksTarget,
    AwsApiTarget,
)
_ALL: tuple[type[Target], ...] = (*TARGETS, DagStart, EachElement)
_BY_TYPE: Mapping[str, type[Target]] = {kind: target for target in _ALL for kind in types_of(target)}
_BY_SOURCE: Mapping[str, type[Target]] = {
    target.event_source: target for target in _ALL if target.event_source is not None
}

if TYPE_CHECKING:
    AnyTarget = Target
else:
    AnyTarget = tagged(TARGETS, sorted(TARGETS, key=lambda target: target.pulled))


def of_type(kind: str) -> type[Target]:
    """The class of a type of target. A type that is unknown here comes from a newer release. It gets the defaults of
    `Target`, because a run that may have a lifecycle must keep its permits until its end is known."""
    return _BY_TYPE.get(kind, Target)


def of_event(event: Mapping[str, Any]) -> type[Target]:
    """The type of target whose runs an EventBridge event is about. Raises KeyError for a source of no target."""
    return _BY_SOURCE[event["source"]]


def of_run(run: Run) -> type[Target]:
    """The class of the target of a run."""
    return of_type(run.target_kind)
