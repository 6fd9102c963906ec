"""Requests as API Gateway passes them on after IAM has identified their signer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from app import app
from chalicelib import wiring

ACCOUNT = "123456789012"


def role(name: str, session: str = "ada", account: str = ACCOUNT) -> str:
    """The ARN of a session of a role."""
    return f"arn:aws:sts::{account}:assumed-role/{name}/{session}"


def member(name: str, account: str = ACCOUNT) -> str:
    """The ARN of a role, as an access document names it."""
    return f"arn:aws:iam::{account}:role/{name}"


@dataclass(frozen=True)
class Signer:
    """Sends requests in the name of one principal."""

    arn: str | None

    def send(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        resource, parameters = resource_of(method, path)
        pairs = parse_qsl(query)
        event = {
            "httpMethod": method,
            "path": path,
            "headers": {name.replace("_", "-"): value for name, value in headers.items()},
            "multiValueHeaders": {},
            "multiValueQueryStringParameters": {name: [value] for name, value in pairs} or None,
            "pathParameters": parameters,
            "stageVariables": None,
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
            "requestContext": {
                "httpMethod": method,
                "path": path,
                "resourcePath": resource,
                "requestId": "r1",
                "identity": {"userArn": self.arn, "user": "AROAEXAMPLE:ada", "sourceIp": "192.0.2.7"},
            },
        }
        answer = app(event, SimpleNamespace(aws_request_id="r1", function_name="api", memory_limit_in_mb="512"))
        return answer["statusCode"], json.loads(answer["body"]) if answer["body"] else None

    def status(self, method: str, target: str, body: Any = None) -> int:
        return self.send(method, target, body)[0]

    def error(self, method: str, target: str, body: Any = None, **headers: str) -> dict[str, Any]:
        status, content = self.send(method, target, body, **headers)
        assert status >= 400, content
        found: dict[str, Any] = content["error"]
        return found


def authorizing(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """From now on, the API checks signers in this mode."""
    current = wiring.ports()
    settings = replace(current.settings, authorization=mode, administrators=(member("platform"),))
    checked = replace(current, settings=settings)
    for module in ("access", "routes.definitions", "routes.access", "routes.apps"):
        monkeypatch.setattr(f"chalicelib.web.{module}.ports", lambda: checked)


def resource_of(method: str, path: str) -> tuple[str, dict[str, str]]:
    for resource, methods in app.routes.items():
        pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", resource)
        found = re.fullmatch(pattern, path)
        if found and method in methods:
            return resource, found.groupdict()
    raise AssertionError(f"expected a route, got {method} {path}")


def enforcing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, the whole service enforces roles and grants, as it does on AWS."""
    monkeypatch.setenv("SLUICE_AUTHORIZATION", "enforce")
    monkeypatch.setenv("SLUICE_ADMINISTRATORS", member("platform"))
    wiring.ports.cache_clear()
