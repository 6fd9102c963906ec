"""Requests to the API in virtual time: the real routes on the services of the model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from chalice.app import Chalice

from benchmarks.aws_model import checks
from benchmarks.aws_model.cpu import DEPLOYS
from benchmarks.aws_model.region import Region
from chalicelib.core.instants import MINUTE
from chalicelib.web import access, audit, quotas
from chalicelib.web.routes import actions, apps, schedules

APP = {"ns": "demo", "app": "flights"}
APP_PATH = "/v1/namespaces/{ns}/apps/{app}"


class _Own:
    """An attribute with a value for each thread. Chalice has one request at a time; here several are under way, each in
    a thread of its own."""

    def __init__(self) -> None:
        self._values = threading.local()

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return getattr(self._values, "value", None)

    def __set__(self, owner: Any, value: Any) -> None:
        self._values.value = value


@contextmanager
def served(region: Region) -> Iterator[None]:
    """The routes of the API use the ports of the running invocation, and remember nothing of an earlier region."""
    quotas.memory.cache_clear()
    audit.refusals.cache_clear()
    with ExitStack() as stack:
        for module in (actions, apps, schedules, access):
            stack.enter_context(patch.object(module, "ports", lambda: region.present))
        stack.enter_context(patch.object(Chalice, "current_request", _Own(), create=True))
        yield
    quotas.memory.cache_clear()
    audit.refusals.cache_clear()


class Sent:
    """A request: the work of an invocation. ``answers`` gets its answer."""

    def __init__(
        self,
        method: str,
        path: str,
        names: Mapping[str, str],
        body: Mapping[str, Any],
        status: int,
        query: Mapping[str, str] | None = None,
    ) -> None:
        self._event, self._status = _event(method, path, names, body, query), status
        self.answers: list[dict[str, Any]] = []

    def __call__(self) -> None:
        from app import app as chalice_app

        answer = chalice_app(self._event, None)
        if answer["statusCode"] != self._status:
            raise checks.Broken(f"expected {self._status} from the API, got {answer}")
        self.answers.append(answer)


def put_app(region: Region, app: Mapping[str, Any], most: int = 20) -> tuple[float, int]:
    """The seconds and the number of requests of a deployment by one client."""
    timeline, assumed = region.timeline, region.setup.assumed
    begun, sent = timeline.now, Sent("PUT", APP_PATH, APP, app, 200)
    for requests in range(1, most + 1):
        ended: list[bool] = []
        region.invoke("api", sent, ended.append, DEPLOYS)
        timeline.run(timeline.now + assumed.api_timeout_ms + MINUTE, partial(bool, ended))
        if sent.answers:
            return (timeline.now - begun + assumed.api_overhead_ms) / 1000, requests
    raise checks.Broken(f"expected an answer within {most} requests, got none: {region.raised}")


def put_upload(region: Region, app: Mapping[str, Any], upload: str) -> float:
    """The seconds until the request that deploys an uploaded document is answered. The upload itself takes no time."""
    timeline, assumed = region.timeline, region.setup.assumed
    region.s3.objects[f"uploads/{APP['ns']}.{APP['app']}/{upload}.json"] = json.dumps(app).encode()
    begun, sent = timeline.now, Sent("PUT", APP_PATH, APP, {}, 202, {"upload": upload})
    ended: list[bool] = []
    region.invoke("api", sent, ended.append, DEPLOYS)
    timeline.run(timeline.now + assumed.api_timeout_ms + MINUTE, partial(bool, ended))
    if not sent.answers:
        raise checks.Broken(f"expected an answer for upload {upload}, got none: {region.raised}")
    return (timeline.now - begun + assumed.api_overhead_ms) / 1000


def put_each(
    region: Region, document: Mapping[str, Any], names: Sequence[str], took: list[tuple[float, float]]
) -> None:  # fmt: skip
    """Put schedules one after the other, each when the one before it is answered. ``took`` gets their begin and end."""
    sent = Sent("PUT", APP_PATH + "/schedules/{name}", {**APP, "name": names[0]}, document, 201)
    begun = region.timeline.local

    def ended(whole: bool) -> None:
        if not sent.answers:
            raise checks.Broken(f"expected an answer for schedule {names[0]}, got none: {region.raised}")
        end = region.timeline.local + region.setup.assumed.api_overhead_ms
        took.append((begun, end))
        if names[1:]:
            region.timeline.at(end, lambda: put_each(region, document, names[1:], took))

    region.invoke("api", sent, ended)


def _event(
    method: str, path: str, names: Mapping[str, str], body: Mapping[str, Any], query: Mapping[str, str] | None = None
) -> dict[str, Any]:  # fmt: skip
    """The event of an API Gateway request.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html"""
    return {
        "requestContext": {
            "httpMethod": method,
            "resourcePath": path,
            "path": path.format(**names),
            "identity": {"sourceIp": "10.0.0.1", "userArn": "arn:aws:iam::123456789012:user/bench"},
            "requestId": "r",
        },
        "headers": {"content-type": "application/json"},
        "multiValueHeaders": {"content-type": ["application/json"]},
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} if query else None,
        "pathParameters": dict(names),
        "stageVariables": None,
        "body": json.dumps(body) if body else "",
        "isBase64Encoded": False,
    }
