"""What callers are told while a service of AWS does not answer: 503 with what to do, never a fault of their own or ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError

from chalicelib.aws.tries import Patience
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api, installation, settle_in

ONE = f"{APP}/schedules/nightly"


class Raw:
    """The body of a response, as urllib3 hands it out."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b""


def answers_503(**_: Any) -> AWSResponse:
    return AWSResponse("https://aws.example", 503, {}, Raw())


def is_unreachable(**_: Any) -> None:
    raise EndpointConnectionError(endpoint_url="https://aws.example")


@contextmanager
def down(client: Any, how: Callable[..., Any]) -> Iterator[None]:
    """Every call of a client fails like this before it leaves the process."""
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-send.{service}", how, "outage")
    client.meta.events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")  # so none waits
    try:
        yield
    finally:
        client.meta.events.unregister(f"before-send.{service}", how, "outage")


@pytest.fixture
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        yield made


def impatient() -> Any:
    """The client of the tables, whose calls wait for no second try."""
    tables: Any = ports().ledger
    passed = iter(range(1_000_000))
    tables._patience = Patience(seconds=2, now=lambda: next(passed), sleep=lambda _: None)
    return tables._client


REQUESTS = [
    ("GET", ONE, None),
    ("POST", f"{ONE}/enable", None),
    ("POST", f"{ONE}/run", {}),
    ("POST", f"{NS}/events", {"events": [{"type": "order"}]}),
    ("GET", f"{APP}/schedules", None),
]


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_without_tables_each_request_is_answered_503_and_says_what_to_do(
    api: Api, how: Any, method: str, path: str, body: Any
) -> None:
    api.schedule("nightly")
    with down(impatient(), how):
        told = api.refused(503, method, path, body)
    assert told["code"] == "unavailable"
    assert told["message"].startswith("the tables ")
    assert told["hint"] == "retry the request in a few seconds"


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
def test_without_the_queue_of_hints_a_request_is_carried_out(api: Api, how: Any) -> None:
    api.schedule("nightly")
    hints: Any = ports().hints
    with down(hints._client, how):
        api.post(f"{ONE}/enable")
        told = api.post(f"{ONE}/run", {}, idempotency_key="once")
    assert api.get(ONE)["state"] == "enabled"
    assert api.get(f"/v1/jobs/{told['job_id']}")["schedule"].endswith("nightly")


@pytest.mark.parametrize("how", [answers_503, is_unreachable])
def test_without_s3_a_request_that_needs_it_is_answered_503_and_says_what_to_do(api: Api, how: Any) -> None:
    payloads: Any = ports().payloads
    with down(payloads._client, how):
        told = api.refused(503, "PUT", APP, {"datasets": {}})
    assert told["code"] == "unavailable"
    assert "retry" in (told["hint"] or "")
