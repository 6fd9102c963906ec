"""The answers while a service of AWS is down: 503 with instructions, never a 500."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api
from tests.web.outage import answers_503, down, is_unreachable, tables_down

ONE = f"{APP}/schedules/nightly"


REQUESTS = [
    ("GET", ONE, None),
    ("POST", f"{ONE}/enable", None),
    ("POST", f"{ONE}/run", {}),
    ("POST", f"{NS}/events", {"events": [{"type": "order"}]}),
    ("GET", f"{APP}/schedules", None),
]


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_without_tables_each_request_is_answered_503_with_advice(
    api: Api, how: Any, method: str, path: str, body: Any
) -> None:
    api.schedule("nightly")
    with tables_down(how):
        answer = api.refused(503, method, path, body)
    assert answer["code"] == "unavailable"
    assert answer["message"].startswith("the tables ")
    assert answer["hint"] == "retry the request in a few seconds"


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
def test_without_the_hint_queue_a_request_is_carried_out(api: Api, how: Any) -> None:
    api.schedule("nightly")
    hints: Any = ports().hints
    with down(hints._client, how):
        api.post(f"{ONE}/enable")
        answer = api.post(f"{ONE}/run", {}, idempotency_key="once")
    assert api.get(ONE)["state"] == "enabled"
    assert api.get(f"/v1/jobs/{answer['job_id']}")["schedule"].endswith("nightly")


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
def test_without_s3_a_request_that_needs_it_is_answered_503(api: Api, how: Any) -> None:
    payloads: Any = ports().payloads
    with down(payloads._client, how):
        answer = api.refused(503, "PUT", APP, {"datasets": {}})
    assert answer["code"] == "unavailable"
    assert "retry" in (answer["hint"] or "")
