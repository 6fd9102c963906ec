"""What an audit record says of a change: kind, name, before and after, without secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.audit.changes import MAX_DOCUMENT, changes_of, shown
from chalicelib.core.limits.writes import LeaseQueue
from chalicelib.core.masks import MASK
from chalicelib.core.rows.access import AccessRow, AllowedRow, QuotasRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job, Requested
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Create, PutDefinition, PutState, RemoveDefinition, Replace
from tests.support.reasons import says

STATE = ScheduleState("demo.flights.clean", 7, 1, "disabled", 1000, "ada", since=1000, mode_at=1000)
ROW = Definition("workflow", "demo.flights.w", {"priority": 5}, 3, 1000, "ada")


def test_a_record_of_a_definition_has_both_documents() -> None:
    new = replace(ROW, document={"priority": 6}, version=4)
    [change] = changes_of([PutDefinition(new, 3, before=ROW)])
    assert change is not None
    assert (change.kind, change.name, change.namespace) == ("workflow", "demo.flights.w", "demo")
    assert change.before == {"version": 3, "document": {"priority": 5}}
    assert change.after == {"version": 4, "document": {"priority": 6}}


def test_a_deleted_definition_is_recorded_as_it_was() -> None:
    [change] = changes_of([RemoveDefinition(ROW)])
    assert change is not None and change.after is None
    assert change.before == {"version": 3, "document": {"priority": 5}}


def test_a_mode_of_a_schedule_is_recorded() -> None:
    [change] = changes_of([PutState(replace(STATE, mode="enabled", generation=8, rev=2), STATE)])
    assert change is not None and change.before is not None and change.after is not None
    assert (change.kind, change.before["state"], change.after["state"]) == ("schedule", "disabled", "enabled")


def test_a_write_that_follows_from_a_change_is_no_change() -> None:
    woken = Job("demo.flights.clean", 7, "RUNNOW#1", "demo.flights.clean.7.aa", "run_now", "PENDING_CONSTRAINTS", 1000)
    assert changes_of([LeaseQueue("pool:demo.spark", 1, 2)]) == []
    assert changes_of([Replace(woken)]) == []
    assert changes_of([PutState(replace(STATE, wake_at=5, rev=2), STATE)]) == []
    assert changes_of([PutDefinition(replace(ROW, uncounted=False), ROW.version)]) == []


def test_only_the_job_that_a_request_names_is_recorded() -> None:
    job = Job("demo.flights.clean", 7, "RUNNOW#1", "demo.flights.clean.7.aa", "run_now", "PENDING_CONSTRAINTS", 1000)
    approved = replace(job, approvals={"owner": {"by": "bob", "at": 1, "why": ""}}, rev=2)
    assert changes_of([Replace(approved)], target="demo.flights.clean.7.bb") == []
    [change] = changes_of([Replace(approved)], target=job.job_id)
    assert change is not None and change.after is not None
    assert change.after["approvals"] == ["owner"]


def test_a_requested_job_is_recorded_with_names_of_properties() -> None:
    job = Job(
        "demo.flights.clean", 7, "RUNNOW#1", "demo.flights.clean.7.aa", "run_now", "PENDING_CONSTRAINTS", 1000,
        properties={"password": "hunter2"},
    )  # fmt: skip
    [change] = changes_of([Create(job), Create(Requested("r", job.job_id, 9))])
    assert change is not None and change.name == job.job_id
    assert change.after == {"state": "PENDING_CONSTRAINTS", "kind": "run_now", "properties": ["password"]}


def test_no_secret_is_in_a_record() -> None:
    document = {
        "target": {"url": "https://x", "headers": {"X-Own": "hunter2"}, "secret": "arn:hunter2"},
        "properties": {"db": {"dsn": "hunter2"}, "list": ["hunter2"]},
        "data": "hunter2",
        "apiKey": "hunter2",
        "retries": {"attempts": 3},
    }
    text = json.dumps(shown(document))
    assert "hunter2" not in text
    assert shown(document)["target"]["headers"] == {"X-Own": MASK}
    assert shown(document)["retries"] == {"attempts": 3}


def test_arguments_and_webhooks_are_masked_on_both_sides() -> None:
    """Records lie under Object Lock, where nobody can take a secret back."""
    document = {
        "target": {"type": "worker", "pool": "p", "arguments": ["--password", "hunter2"]},
        "notify": [{"to": {"type": "http", "url": "https://hooks.slack.com/services/T0/B0/hunter2?sig=hunter2"}}],
        "description": "uses ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    }
    old, new = (replace(ROW, document=document | {"priority": number}, version=number) for number in (3, 4))
    [change] = changes_of([PutDefinition(new, 3, before=old)])
    recorded = json.dumps(change.document())
    assert "hunter2" not in recorded
    assert "ghp_" not in recorded
    assert recorded.count("https://hooks.slack.com/***") == 2
    assert recorded.count('"--password"') == 2


def test_the_reason_of_a_recorded_end_has_no_token() -> None:
    row = Record(
        "demo.flights.clean.7.aa", "DROPPED", "demo.flights.clean", 7, says("Bearer abc123def456ghi7 failed"), 9
    )
    [change] = changes_of([Create(row)], target=row.id)
    assert "abc123def456ghi7" not in json.dumps(change.document())
    assert "Bearer ***" in json.dumps(change.document())


def test_a_large_document_is_recorded_by_its_digest() -> None:
    large = {"description": "x" * MAX_DOCUMENT}
    found, other = shown(large), shown({"description": "y" * MAX_DOCUMENT})
    assert set(found) == {"digest", "size"}
    assert found["digest"] != other["digest"]


def test_a_large_definition_is_recorded_whole() -> None:
    large, larger = ({"description": letter * MAX_DOCUMENT} for letter in "xy")
    old, new = (
        Definition("workflow", "demo.a.w", document, number, 5) for number, document in ((1, large), (2, larger))
    )
    [found] = changes_of([PutDefinition(new, 1, before=old)])
    assert (found.before, found.after) == ({"version": 1, "document": large}, {"version": 2, "document": larger})


@pytest.mark.parametrize(
    ("kind", "row", "version"),
    [
        ("access", AccessRow, "rev"),
        ("allowed", AllowedRow, "rev"),
        ("quotas", QuotasRow, "rev"),
        ("grants", GrantsRow, "version"),
    ],
)
def test_a_namespace_document_is_recorded_with_the_former_one(kind: str, row: Any, version: str) -> None:
    wakes = {"wake_at": 5} if kind == "grants" else {}
    old, new = (row("demo", {"is": number}, number, 5, "ada", **wakes) for number in (1, 2))
    assert getattr(new, version) == 2
    [first] = changes_of([Create(old)])
    assert (first.kind, first.before, first.after) == (kind, None, {"version": 1, "document": {"is": 1}})
    [second] = changes_of([Replace(new, before=old)])
    assert second.before == {"version": 1, "document": {"is": 1}}
    assert second.after == {"version": 2, "document": {"is": 2}}
