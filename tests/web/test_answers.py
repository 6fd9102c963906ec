"""The OpenAPI document describes each answer of the API: its form and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core.audit.author import Author
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.writes import Conflict, Put, Write
from chalicelib.web.table import ROUTES
from chalicelib.wiring import AUTHOR
from tests.web import answer_schemas, answers_tour
from tests.web.conftest import NS, Api, installation, settle_in

# Their fields depend on the kind of the event, and on what the job of the report counts.
OPEN = ("events[]", "items[].runs", "items[].cost_usd")


# Operation -> for each of its transactions in the tour, whether it holds an audit record beside a change.
# Whether each transaction of each request holds a record, by the operation. Every request has an author of its own.
COMMITTED: dict[str, list[tuple[Author, list[bool]]]] = {}
# A claim and what follows belong to each run, also to one made by the clock. The run's row keeps the worker.
OF_RUNS = {"claim_runs", "beat_heart", "report_end", "release_run"}
# They read or compute, or only send a message.
UNCHANGING = {"begin_upload", "dry_run", "glance_schedules", "ping_run"}


def _commit(self: Dynamo, writes: Sequence[Write]) -> Conflict | None:
    author, refused = AUTHOR.get(), COMMIT(self, writes)
    if author is not None and refused is None:
        recorded = any(isinstance(each, Put) and isinstance(each.row, AuditRow) for each in writes)
        requests = COMMITTED.setdefault(author.operation, [])
        if not requests or requests[-1][0] is not author:
            requests.append((author, []))
        requests[-1][1].append(recorded and len(writes) > 1)
    return refused


COMMIT = Dynamo.commit


@pytest.fixture(scope="module")
def seen() -> Iterator[list[tuple[str, str, int, Any]]]:
    """Every answer of a tour through the API. Each was compared with its schema when it came."""
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dynamo, "commit", _commit)
        found: list[tuple[str, str, int, Any]] = []
        plain = api.seen

        def keep(method: str, path: str, status: int, body: Any) -> None:
            found.append((method, path, status, body))
            plain(method, path, status, body)

        api.seen = keep
        settle_in(api)
        answers_tour.walk(api)
        yield found


def test_every_operation_has_a_typed_answer() -> None:
    answering = {
        each["operationId"]
        for methods in answer_schemas.document()["paths"].values()
        for each in methods.values()
        if set(each["responses"]) != {"204", "default"}
    }
    assert {route.name for route in ROUTES if route.answer is not None} == answering
    for methods in answer_schemas.document()["paths"].values():
        for each in methods.values():
            for status, answer in each["responses"].items():
                schema = answer.get("content", {}).get("application/json", {}).get("schema", {"$ref": ""})
                typed = "$ref" in schema or "properties" in schema
                assert typed, (each["operationId"], status)


def test_the_tour_calls_every_route(seen: list[tuple[str, str, int, Any]]) -> None:
    called = {(method, found[0]) for method, path, status, _ in seen
              if status < 300 and (found := answer_schemas.operation(method, path)) is not None}  # fmt: skip
    paths = answer_schemas.document()["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == called


def test_every_field_of_an_answer_is_described(seen: list[tuple[str, str, int, Any]]) -> None:
    unknown = {field for answer in seen for field in answer_schemas.undescribed(*answer)}
    left = {field for field in unknown if not any(part in field for part in OPEN)}
    assert left == set(), "describe them in the class of their view"


@pytest.mark.usefixtures("seen")
def test_each_changing_route_leaves_an_audit_record() -> None:
    """The tour calls every route. Each request that changes something commits its record in the same transaction.
    Every request of the tour counts: those that only repeat another one, or wake what waits, are listed."""
    changing = {route.name for route in ROUTES if route.method != "GET"}

    def leaves_records(operation: str) -> bool:
        requests = [recorded for _, recorded in COMMITTED.get(operation, [])]
        return bool(requests) and all(any(recorded) for recorded in requests)

    silent = {operation for operation in changing if not leaves_records(operation)}
    assert silent == OF_RUNS | UNCHANGING
    assert not set(COMMITTED) & UNCHANGING


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (NS, {"name": "demo"}),
        (f"{NS}/runs", {"items": [{"run_id": 7}], "next_cursor": None}),
        (f"{NS}/runs", {"items": []}),
        ("/v1/jobs/x/why", {"job_id": "x", "state": "SLEEPING"}),
    ],
)
def test_an_answer_of_another_form_is_noticed(path: str, body: Any) -> None:
    with pytest.raises(AssertionError, match="correct the class of its view"):
        answer_schemas.check("GET", path, 200, body)
    with pytest.raises(AssertionError, match="answers 299, which is not described"):
        answer_schemas.check("GET", path, 299, body)


def test_a_field_that_is_not_described_is_noticed() -> None:
    body = {"items": [{"run_id": "x", "dag": {"moon": 1}, "sun": 2}], "next_cursor": None}
    assert set(answer_schemas.undescribed("GET", f"{NS}/runs", 200, body)) == {
        "GET /v1/namespaces/{ns}/runs .items[].sun",
        "GET /v1/namespaces/{ns}/runs .items[].dag.moon",
    }


def test_an_api_under_test_compares_its_answers(seen: list[tuple[str, str, int, Any]]) -> None:
    """`tests/web/conftest.py` calls `seen` for each answer, so that all tests of the routes compare theirs."""
    assert len(seen) > 100
    with pytest.raises(AssertionError, match="correct the class of its view"):
        Api.seen(object(), "GET", NS, 200, {})
