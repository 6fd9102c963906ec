"""Which requests of the page go to the API."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sluice.console.access import Refused
from sluice.console.forwarding import Forward, forward

ROOT = Path(__file__).parents[2]
NS = "/v1/namespaces/demo"
SCHEDULE = f"{NS}/apps/flights/schedules/clean"


def sent(method: str, target: str, body: Any = None, read_only: bool = False) -> Forward | Refused:
    content = None if body is None else json.dumps(body).encode()
    return forward(method, target, {"accept": "application/json"}, content, read_only)


def test_path_and_query_are_encoded_as_they_are_signed() -> None:
    request = sent("GET", f"{NS}/datasets/flights/partitions/a%2Fb~(1)?q=one+two%20three&empty=&q='")
    assert isinstance(request, Forward)
    assert request.target == f"{NS}/datasets/flights/partitions/a%2Fb~%281%29?q=one%20two%20three&empty=&q=%27"


@pytest.mark.parametrize(
    "target",
    [
        "/v1/",
        "/v1",
        "/v1//workers/pool/claim",
        "/v1/./workers/pool/claim",
        "/v1/namespaces/../workers/pool/claim",
        "/v1/namespaces/%2e%2e/workers/pool/claim",
        "/v1/namespaces/demo/..",
        "//evil.example/v1/health",
        "http://evil.example/v1/health",
        "/metadata",
    ],
)
def test_a_path_that_is_not_plainly_of_the_api_is_refused(target: str) -> None:
    refused = sent("GET", target)
    assert isinstance(refused, Refused)
    assert refused.status == 400


@pytest.mark.parametrize("path", ["/v1/workers/pool/claim", "/v1/leases/ab/report", "/v1/%77orkers/pool/claim"])
def test_what_belongs_to_workers_is_not_forwarded(path: str) -> None:
    refused = sent("POST", path, {})
    assert isinstance(refused, Refused)
    assert refused.code == "not_for_pages"


def test_only_headers_that_the_api_reads_are_forwarded() -> None:
    headers = {"cookie": "session=1", "if-match": '"3"', "x-sluice-token": "secret", "authorization": "Basic x"}
    request = forward("DELETE", SCHEDULE, headers, None, read_only=False)
    assert isinstance(request, Forward)
    assert request.headers == {"if-match": '"3"'}


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", f"{NS}/now", None),
        ("POST", f"{SCHEDULE}/dry-run", {"events": []}),
        ("POST", f"{NS}/glance", {"schedules": ["demo.flights.clean"]}),
        ("POST", f"{SCHEDULE}/backfills", {"dry_run": True}),
        ("POST", f"{NS}/reprocess", {"dry_run": True}),
        ("POST", f"{NS}/apps/flights/bulk", {"dry_run": True}),
        ("POST", f"{NS}/stop", {"reason": "table is repaired", "dry_run": True}),
        ("PUT", f"{NS}/apps/flights?dry_run=true", {"workflows": []}),
    ],
)
def test_read_only_forwards_reads_and_dry_runs(method: str, target: str, body: Any) -> None:
    assert isinstance(sent(method, target, body, read_only=True), Forward)


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", f"{SCHEDULE}/run", {}),
        ("POST", f"{SCHEDULE}/run", {"dry_run": True}),
        ("POST", f"{SCHEDULE}/backfills", {"dry_run": False}),
        ("POST", f"{NS}/stop", {"reason": "table is repaired"}),
        ("POST", f"{SCHEDULE}/backfills", {"dry_run": "true"}),
        ("POST", f"{SCHEDULE}/backfills", None),
        ("POST", f"{SCHEDULE}/backfills", ["dry_run"]),
        ("PUT", f"{NS}/apps/flights?dry_run=false", {}),
        ("PUT", f"{NS}/apps/flights?dry_run=true&dry_run=false", {}),
        ("PUT", f"{SCHEDULE}?dry_run=true", {}),
        ("DELETE", f"{SCHEDULE}?dry_run=true", None),
    ],
)
def test_read_only_refuses_every_change(method: str, target: str, body: Any) -> None:
    refused = sent(method, target, body, read_only=True)
    assert isinstance(refused, Refused)
    assert refused.code == "read_only"


OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].items()
    for method, operation in methods.items()
    if method != "get" and not path.startswith(("/v1/workers", "/v1/leases"))
]


@pytest.mark.parametrize("name", ["clean", "glance", "dry-run", "bulk", "backfills", "reprocess", "stop"])
def test_read_only_refuses_each_operation_that_changes(name: str) -> None:
    for method, path, operation in OPERATIONS:
        reads = method == "POST" and path.endswith(("/glance", "/dry-run"))
        for body in ({}, {"dry_run": False}, None):
            answer = sent(method, re.sub(r"{\w+}", name, path), body, read_only=True)
            assert isinstance(answer, Forward) == reads, f"{method} {path}: {operation['operationId']}"


def test_read_only_forwards_each_dry_run_of_the_api() -> None:
    bodies = json.loads((ROOT / "docs" / "openapi.json").read_text())["components"]["schemas"]
    dry = []
    for method, path, operation in OPERATIONS:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        model = bodies.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {})
        if "dry_run" in model.get("properties", {}):
            dry.append(path)
            answer = sent(method, re.sub(r"{\w+}", "clean", path), {"dry_run": True}, read_only=True)
            assert isinstance(answer, Forward), path
    assert len(dry) == 7


def test_a_read_only_body_means_the_same_to_the_api() -> None:
    content = b'{"dry_run": false, "dry_run": true}'
    request = forward("POST", f"{SCHEDULE}/backfills", {}, content, read_only=True)
    assert isinstance(request, Forward)
    assert request.content == b'{"dry_run": true}'


def test_a_read_only_body_that_is_no_json_is_refused() -> None:
    assert isinstance(forward("POST", f"{SCHEDULE}/backfills", {}, b"{", read_only=True), Refused)
