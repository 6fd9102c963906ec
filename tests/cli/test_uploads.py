"""``sluice apply`` of a document that is too large for a body: it is uploaded, deployed and followed (L8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sluice import uploads
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.support.http_server import QuietHandler, QuietServer, served

APP = "/v1/namespaces/demo/apps/orders"
SMALL = {"namespace": "demo", "app": "orders", "workflows": {}, "schedules": {}}
LARGE = {**SMALL, "schedules": {f"s{number}": {"properties": {"text": "ä" * 45_000}} for number in range(12)}}
REPORT = {"name": "demo.orders", "created": ["schedule demo.orders.s0"], "replaced": [], "deleted": [], "kept": []}
REPORT = {**REPORT, "untouched": [], "changes": {}}
RUNNING = {"name": "demo.orders", "deployment": "u1", "state": "RUNNING", "counts": {"created": 1}, "error": None}


@dataclass
class Bucket:
    """An S3 that takes uploads without a signature in the headers."""

    url: str = ""
    status: int = 200
    taken: list[tuple[str, bytes, str | None]] = field(default_factory=list)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    found = Bucket()

    class Handler(QuietHandler):
        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            found.taken.append((self.path, content, self.headers.get("Authorization")))
            self.send_response(found.status)
            self.end_headers()

    with served(QuietServer(Handler)) as server:
        found.url = f"{server.url}/uploads/u1.json?X-Amz-Signature=1"
        yield found


@pytest.fixture
def app(api: PlayedApi, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> PlayedApi:
    monkeypatch.setattr(uploads, "FIRST_PAUSE", 0.0)
    api.play("GET", "/v1/namespaces/demo", {"name": "demo"})
    begun = {"upload": "u1", "url": bucket.url, "max_bytes": 20_000_000, "expires_at": "2026-03-02T12:00:00Z"}
    api.play("POST", f"{APP}/uploads", Played(201, begun))
    api.play("PUT", APP, REPORT, Played(202, RUNNING))
    api.play("GET", f"{APP}/deployments/u1", RUNNING, RUNNING, {**RUNNING, "state": "DONE"})
    return api


def written(tmp_path: Path, document: dict[str, Any]) -> str:
    file = tmp_path / "app.json"
    file.write_text(json.dumps(document, ensure_ascii=False))
    return str(file)


def test_l8_a_large_app_is_uploaded_and_followed_to_its_end(
    app: PlayedApi, bucket: Bucket, sluice: Sluice, tmp_path: Path
) -> None:
    result = sluice("apply", written(tmp_path, LARGE))
    assert result.exit_code == 0, result.output
    assert "demo.orders: 1 created" in result.stdout
    [(path, content, authorization)] = bucket.taken
    assert (path, json.loads(content), authorization) == ("/uploads/u1.json?X-Amz-Signature=1", LARGE, None)
    puts = app.sent("PUT", APP)
    assert [(put.query, put.body) for put in puts] == [
        ({"upload": "u1", "dry_run": "true"}, None),
        ({"upload": "u1"}, None),
    ]
    assert len(app.sent("GET", f"{APP}/deployments/u1")) == 3


def test_l8_a_dry_run_of_a_large_app_begins_no_deployment(app: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    assert sluice("apply", "--dry-run", written(tmp_path, LARGE)).exit_code == 0
    assert [put.query for put in app.sent("PUT", APP)] == [{"upload": "u1", "dry_run": "true"}]


def test_l8_a_small_app_is_sent_in_the_body(app: PlayedApi, bucket: Bucket, sluice: Sluice, tmp_path: Path) -> None:
    assert sluice("apply", written(tmp_path, SMALL)).exit_code == 0
    assert ([put.body for put in app.sent("PUT", APP)], bucket.taken) == ([SMALL], [])


def test_l8_the_error_of_a_failed_deployment_is_shown(app: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    error = {
        "code": "unknown_reference",
        "message": "expected a workflow",
        "field": "schedules.s1.workflow",
        "hint": "h",
    }
    app.play("GET", f"{APP}/deployments/u1", {**RUNNING, "state": "FAILED", "error": error})
    result = sluice("apply", written(tmp_path, LARGE))
    assert result.exit_code == 1
    assert "expected a workflow" in result.stderr


def test_l8_a_superseded_deployment_is_an_error(app: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    by = "a request of bob at 2026-03-02T12:00:00.000Z"
    app.play("GET", f"{APP}/deployments/u1", {**RUNNING, "state": "SUPERSEDED", "superseded_by": by})
    result = sluice("apply", written(tmp_path, LARGE))
    assert result.exit_code == 1
    assert f"got superseded by {by}" in " ".join(result.stderr.split())


def test_l8_what_a_deployment_left_alone_is_named(app: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    left = ["schedule demo.orders.s1"]
    app.play("GET", f"{APP}/deployments/u1", {**RUNNING, "state": "DONE", "left_alone": left})
    result = sluice("apply", written(tmp_path, LARGE))
    assert result.exit_code == 0, result.output
    assert "changed after this deployment was accepted: schedule demo.orders.s1" in " ".join(result.stderr.split())


def test_l8_an_upload_that_s3_refuses_is_an_error(
    app: PlayedApi, bucket: Bucket, sluice: Sluice, tmp_path: Path
) -> None:
    bucket.status = 403
    result = sluice("apply", written(tmp_path, LARGE))
    assert result.exit_code == 3
    assert "expected S3 to take the upload, got 403" in result.stderr
