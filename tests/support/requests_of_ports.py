"""The requests that the real adapters would send to AWS, where `fakes.py` replaces them.

The adapter is called with the arguments of its fake, on a client that records the first request and ends the call. So
nothing here repeats what an adapter does. Buckets and applications of the tests are treated as those of the template
that they represent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from chalicelib.aws.hints import SqsHints
from chalicelib.aws.s3.lake import S3Lake
from chalicelib.aws.s3.payloads import S3Payloads
from chalicelib.aws.targets.assumed import AssumedRoles
from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.aws.targets.event_bus import EventBusTarget
from chalicelib.aws.targets.lambda_function import LambdaTarget
from chalicelib.aws.targets.meters import Meters
from chalicelib.aws.targets.sns import SnsTarget
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core.rows.run import Run
from chalicelib.core.system.bursts import BURST
from infra.local.permissions import Need, needs
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryPayloads
from tests.support import roles
from tests.support.clock import HandClock
from tests.support.fakes import APPLICATION, FakeEmr, FakeQueue, FakeTargets

TABLES = ("CatalogTable", "JobsTable", "RunsTable")
HINTS_URL, BURST_HINTS_URL = "https://sqs.example/HintsQueue", "https://sqs.example/BurstHintsQueue"
# A target of each kind as the parameters of an installation may allow it: its adapter, the service, and the name of the
# target.
TARGET = "sluice-target-x"
DELIVERED: dict[str, tuple[Callable[[Any], Any], str, dict[str, str]]] = {
    "sqs": (SqsTarget, "sqs", {"queue_url": f"https://sqs.example/{TARGET}"}),
    "sns": (SnsTarget, "sns", {"topic_arn": f"arn:aws:sns:us-east-1:000000000000:{TARGET}"}),
    "lambda": (LambdaTarget, "lambda", {"function": TARGET}),
    "event_bus": (EventBusTarget, "events", {"bus": TARGET}),
}


# The part of the lake that is read only after it was found in a list.
LISTED = "history_report/"


class Recorded(BaseException):
    """The adapter has sent its request. Not an Exception, so that no adapter catches it as a refusal."""


class RecordingClient:
    """A client that records each request. It ends the call, or returns an answer of ``answers``: a value, or a function
    of the parameters.
    """

    exceptions = SimpleNamespace(
        NoSuchKey=KeyError,
        ResourceNotFoundException=KeyError,
        ValidationException=KeyError,
        EntityNotFoundException=KeyError,
        ParameterNotFound=KeyError,
    )

    def __init__(self, service: str, answers: Mapping[str, Any] | None = None) -> None:
        self._service, self._answers = service, answers or {}
        self.needs: list[Need] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(part.capitalize() for part in name.split("_"))

        def call(**parameters: Any) -> Any:
            self.needs += needs(self._service, operation, parameters, roles.PLACE)
            if operation not in self._answers:
                raise Recorded
            answer = self._answers[operation]
            return answer(**parameters) if callable(answer) else answer

        return call

    def get_paginator(self, name: str) -> Any:
        return SimpleNamespace(paginate=getattr(self, name))


def stand_ins() -> Iterator[tuple[type, str]]:
    """Each fake with the calls that are requests to AWS."""
    yield from ((MemoryHints, name) for name in ("send", "send_all"))
    of_payloads = ["put_context", "context", "log", "result", "put_manifest", "manifest", "put_data", "upload"]
    of_deployments = ["put_deployment", "deployment", "put_seen", "seen"]
    yield from ((MemoryPayloads, name) for name in (*of_payloads, *of_deployments))
    yield from ((MemoryLake, name) for name in ("text", "content", "stored", "metadata_location", "names"))
    yield from ((FakeEmr, name) for name in ("start", "status", "status_many", "find", "cancel", "run_name"))
    yield from ((FakeQueue, name) for name in ("start",))
    yield from ((FakeTargets, name) for name in ("probe", "measure", "assume"))


def sketch(stand_in: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of a call that IAM's decision depends on: calls with the same sketch need the same."""
    match stand_in:
        case MemoryHints():
            return "hints", bool(args[0])  # an empty list sends nothing
        case MemoryPayloads() if name in ("log", "put_data"):
            return (name, args[0])
        case MemoryPayloads():
            return (name,)
        case FakeEmr() | FakeQueue() if args and isinstance(args[0], Run):
            target = args[0].request.target
            named = target.get("application_id"), target.get("execution_role_arn")
            return name, target["type"], *named, (args[0].target_id or "").partition("/")[0]
    return type(stand_in).__name__, name, repr(args)


def needs_of(stand_in: Any, name: str, args: tuple[Any, ...]) -> list[Need]:
    """The needs, in terms of IAM, of the request that the adapter would send for this call."""
    match stand_in:
        case MemoryHints():
            return [need for some in (args, _as_burst(name, args)) for need in _of_hints(name, some)]
        case MemoryPayloads():
            return _of_payloads(name, args)
        case MemoryLake():
            return _of_lake(name, args)
        case FakeEmr():
            return _of_emr(name, args)
        case FakeQueue():
            return _of_delivery(args[0], args[1])
        case FakeTargets() if name == "assume":
            sts = RecordingClient("sts")
            return _recorded(sts, AssumedRoles(lambda: sts, _no_client, HandClock().now, "test"), "renew", args[1:])
        case FakeTargets() if name == "probe":
            function = RecordingClient("lambda")
            asked = args[0].get("type") == "lambda"
            return (
                _recorded(function, LambdaTarget(function), "probe", ({"function": TARGET}, args[1])) if asked else []
            )
        case FakeTargets():
            return _of_measure(args[0])
    raise AssertionError(f"no stand-in of an adapter: {stand_in!r}")


def _recorded(client: RecordingClient, adapter: Any, name: str, args: tuple[Any, ...]) -> list[Need]:
    with contextlib.suppress(Recorded):
        getattr(adapter, name)(*args)
    return client.needs


def _of_hints(name: str, args: tuple[Any, ...]) -> list[Need]:
    hints = RecordingClient("sqs")
    return _recorded(hints, SqsHints(hints, HINTS_URL, HandClock(), BURST_HINTS_URL), name, args)


def _as_burst(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same hints for so many rows that they are a burst: how many rows a Lambda hints depends on its data."""
    if name == "send":
        return (list(args[0]) * BURST, *args[1:])
    return ([(due, list(refs) * BURST) for due, refs in args[0]], *args[1:])


def _of_payloads(name: str, args: tuple[Any, ...]) -> list[Need]:
    s3 = RecordingClient("s3")
    if name in ("context", "manifest", "deployment", "log", "result", "upload"):
        s3.needs.append(_tells_missing(roles.CONTROL))
    if name == "put_data":
        bucket = str(args[0]).removeprefix("s3://").partition("/")[0]
        if bucket != roles.CONTROL:
            return []  # an app's own bucket: the policy of that bucket allows the API to write
    return _recorded(s3, S3Payloads(s3, roles.CONTROL), name, args)


def _of_lake(name: str, args: tuple[Any, ...]) -> list[Need]:
    s3, glue = RecordingClient("s3"), RecordingClient("glue")
    if name == "metadata_location":
        return _recorded(glue, S3Lake(s3, lambda: glue), name, args)
    bucket = roles.LAKE if args[0] in ("lake", roles.LAKE) else roles.WATCHED
    if name != "names" and not str(args[1]).startswith(LISTED):
        s3.needs.append(_tells_missing(bucket))
    return _recorded(s3, S3Lake(s3), name, (bucket, *args[1:]))


def _tells_missing(bucket: str) -> Need:
    """S3 answers 404 for a missing object if the caller may list its bucket, and 403 otherwise.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
    """
    return Need("s3:ListBucket", roles.PLACE.bucket(bucket))


def _of_emr(name: str, args: tuple[Any, ...]) -> list[Need]:
    if name == "status_many":
        runs = list(args[0])
        return [*_of_emr("find", (runs[0],)), *_of_emr("status", (runs[0],))] if runs else []
    emr = RecordingClient("emr-serverless")
    target = EmrServerlessTarget(emr, APPLICATION, roles.JOB_ROLE, roles.CONTROL, pause=lambda seconds: None)
    known = tuple(_of_stack(each) if isinstance(each, Run) else each for each in args)
    return _recorded(emr, target, name, known)


def _of_delivery(run: Run, context: Mapping[str, Any]) -> list[Need]:
    kind = str(run.request.target["type"])
    if kind not in DELIVERED:
        return []  # a callback is no call of AWS
    adapter, service, named = DELIVERED[kind]
    client = RecordingClient(service)
    target = {**run.request.target, **named}
    allowed = replace(run, request=replace(run.request, target=target))
    return _recorded(client, adapter(client), "start", (allowed, context))


def _of_stack(run: Run) -> Run:
    """The same run in an application and with a role that the stack names."""
    named = dict(run.request.target)
    if named.get("application_id") not in (None, APPLICATION):
        named["application_id"] = roles.LISTED_APPLICATION
    if named.get("execution_role_arn") not in (None, roles.JOB_ROLE):
        named["execution_role_arn"] = roles.LISTED_ROLE
    application, _, job_run = (run.target_id or "").partition("/")
    own = APPLICATION if application == APPLICATION else roles.LISTED_APPLICATION
    return replace(run, target_id=f"{own}/{job_run or 'jr'}", request=replace(run.request, target=named))


def _of_measure(source: Mapping[str, Any]) -> list[Need]:
    if "emr_application" in source:
        own = source["emr_application"] == APPLICATION
        source = {"emr_application": APPLICATION if own else roles.LISTED_APPLICATION}
    asked = {
        "ec2": RecordingClient("ec2"),
        "cloudwatch": RecordingClient("cloudwatch"),
        "emr-serverless": RecordingClient("emr-serverless", {"GetApplication": {"application": {}}}),
    }
    with contextlib.suppress(Recorded):
        Meters(asked.__getitem__, lambda: 0).measure(source)
    return [need for client in asked.values() for need in client.needs]


def _no_client(credentials: Any, service: str, **options: Any) -> Any:
    raise AssertionError(f"expected no client of {service}")
