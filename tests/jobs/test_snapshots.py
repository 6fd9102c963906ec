"""The snapshots of an Iceberg table in a run's context (T21): the schema accepts them, and the reader returns the span
to read.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from sluice_job import ContextError, Increment, RunContext

ROOT = Path(__file__).parents[2]
jsonschema = importlib.import_module("jsonschema")  # the package has no types
SCHEMA = json.loads((ROOT / "docs" / "run-context.schema.json").read_text())


def commit(number: int, parent: int | None, kind: str = "partition", dataset: str = "demo.orders") -> dict[str, Any]:
    counted = {"added_data_files": 1, "added_records": 2, "added_files_size": 3, "deleted_data_files": 0}
    answer = {
        "id": str(number),
        "parent_id": None if parent is None else str(parent),
        "sequence_number": number % 100,
        "committed_at": 5,
        "operation": "append",
        "total_records": None,
        **counted,
    }
    event = {"kind": kind, "id": f"{kind}-{number}", "instant": 5, "dataset": dataset, "path": "s3://lake/orders/"}
    more = {"bytes": 3} if kind == "size" else {}
    return {**event, **more, "partition": {"snapshot": str(number)}, "snapshot": answer}


def parse(document: dict[str, Any]) -> RunContext:
    return RunContext.parse(document, lambda uri: "")


def test_t21_the_schema_accepts_complete_snapshots_only(document: Any) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    whole = document(events=[commit(101, None), commit(102, 101, "size")], correlation=None)
    assert [fault.message for fault in validator.iter_errors(whole)] == []
    for field in ("id", "parent_id", "operation", "added_records"):
        broken = commit(101, None)
        del broken["snapshot"][field]
        assert not validator.is_valid(document(events=[broken]))
    assert not validator.is_valid(document(events=[{**commit(101, None), "snapshot": {"id": 101}}]))


def test_t21_an_increment_starts_before_first_and_ends_with_last(document: Any) -> None:
    # Ids are in no order, and one snapshot may be listed a second time, for its bytes.
    events = [commit(903, 401), commit(702, 101), commit(101 + 300, 702), commit(903, 401, "size")]
    context = parse(document(events=events, correlation=None))
    assert [event.snapshot["id"] for event in context.snapshots("orders") if event.snapshot] == ["401", "702", "903"]
    assert context.increment("orders") == Increment("702", "903")
    assert context.increment("demo.orders") == context.increment()


def test_t21_from_the_first_snapshot_the_span_has_no_start(document: Any) -> None:
    assert parse(document(events=[commit(101, None)], correlation=None)).increment() == Increment(None, "101")


def test_t21_a_job_without_snapshots_or_with_two_tables_says_so(document: Any) -> None:
    with pytest.raises(ContextError, match="expected snapshots of one table orders among its events, got none"):
        parse(document()).increment("orders")
    both = [commit(101, None), commit(102, 101, dataset="demo.returns")]
    with pytest.raises(ContextError, match="got demo.orders, demo.returns; name the dataset"):
        parse(document(events=both, correlation=None)).increment()


def test_t21_a_malformed_snapshot_says_what_was_expected(document: Any) -> None:
    broken = commit(101, None)
    broken["snapshot"]["id"] = 101
    with pytest.raises(ContextError, match=r"events\[0\].snapshot: expected id to be a text, got 101"):
        parse(document(events=[broken]))
