"""Checks every request of a boto3 client in the process of the tests against AWS's own rules, and every call of the
tables in memory. Tests that are marked `long` are not checked.

moto and ministack accept much that AWS refuses. The rules are in `infra/local/service_model.py`. Lambdas of the local
cloud run in other processes and are not checked here; the emulator of EMR Serverless checks its own requests. A test
that sends an invalid request on purpose is marked `breaks_aws_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.client import BaseClient

from infra.local import service_model
from sluice.testing.memory_tables import MemoryTables

TABLE_CALLS = {
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "batch_write_item": "BatchWriteItem",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "transact_write_items": "TransactWriteItems",
    "query": "Query",
}


@pytest.fixture(autouse=True)
def requests_are_valid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that sends a request which AWS would refuse, even if the code under test catches the error."""
    if request.node.get_closest_marker("breaks_aws_rules"):
        yield
        return
    answer: list[str] = []
    # Private, but each call of each client passes here, also of clients that were made before.
    call = BaseClient._make_api_call

    def checked(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        answer.extend(
            f"{service} {operation}: {each}" for each in service_model.problems(service, operation, parameters)
        )
        return call(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", checked)
    if not request.node.get_closest_marker("long"):
        _check_tables_in_memory(monkeypatch, answer)
    yield
    refused = list(dict.fromkeys(answer))
    assert not refused, "AWS would refuse what was sent:\n" + "\n".join(refused)


def _check_tables_in_memory(monkeypatch: pytest.MonkeyPatch, reported: list[str]) -> None:
    for name, operation in TABLE_CALLS.items():
        call = getattr(MemoryTables, name)

        def checked(tables: MemoryTables, *, call: Any = call, operation: str = operation, **parameters: Any) -> Any:
            form = operation, form_of(parameters)
            if form not in _valid:
                found = service_model.problems("dynamodb", operation, parameters)
                reported.extend(f"tables in memory, {operation}: {each}" for each in found)
                if not found:
                    _valid.add(form)
            return call(tables, **parameters)

        monkeypatch.setattr(MemoryTables, name, checked)


# Requests that are valid, without the values of attributes, which no rule reads: a test sends few forms many times.
_valid: set[Any] = set()
_ATTRIBUTES = ("Key", "Item", "ExpressionAttributeValues", "ExclusiveStartKey", "Keys")


def form_of(content: Any) -> Any:
    """What the rules read of a request: its members, expressions and names, and how many items it has."""
    if isinstance(content, dict):
        return tuple([(name, _names(name, part)) for name, part in content.items()])
    return tuple(map(form_of, content)) if isinstance(content, list) else content


def _names(name: str, part: Any) -> Any:
    if name in _ATTRIBUTES:
        return tuple(part) if isinstance(part, dict) else tuple(map(tuple, part))
    return len(part) if name == "ClientRequestToken" else form_of(part)
