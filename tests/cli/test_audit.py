"""`sluice audit`: who has changed what, and who was refused (O5)."""

from __future__ import annotations

import json

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi

PATH = "/v1/namespaces/demo/audit"
ADA = "arn:aws:sts::123456789012:assumed-role/data/ada"
BASE = {
    "at": "2026-11-20T12:00:00.000Z", "namespace": "demo", "account": "123456789012", "session": "ada",
    "unique_id": "AROA:ada", "source": "192.0.2.7", "request_id": "r1", "reason": None, "count": 1, "by": ADA,
    "kind": "schedule", "name": "demo.flights.clean", "outcome": "changed",
}  # fmt: skip
ENABLED = BASE | {
    "operation": "enable_schedule",
    "before": {"version": 1, "state": "disabled"},
    "after": {"version": 1, "state": "enabled"},
}
CREATED = BASE | {"operation": "put_schedule", "before": None, "after": {"version": 1, "state": "disabled"}}
DELETED = BASE | {"operation": "delete_schedule", "before": {"version": 1}, "after": None}
REFUSED = BASE | {
    "operation": "delete_schedule", "outcome": "refused", "count": 3, "before": None, "after": None,
    "reason": "expected the role author",
}  # fmt: skip


def shown(result: str) -> list[str]:
    return [" ".join(line.split()) for line in result.splitlines()]


def test_records_are_shown_with_who_and_what(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, {"items": [REFUSED, DELETED, ENABLED, CREATED], "next_cursor": None})
    result = sluice("audit", "demo")
    assert result.exit_code == 0
    text = "\n".join(shown(result.output))
    assert "data/ada enable_schedule demo.flights.clean state disabled -> enabled" in text
    assert "put_schedule demo.flights.clean created: version 1, state disabled" in text
    assert "delete_schedule demo.flights.clean deleted: version 1" in text
    assert "refused (3 times): expected the role author" in " ".join(text.split())


def test_filters_of_records_are_sent(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, {"items": [], "next_cursor": None})
    options = ["--since", "2026-11-20", "--who", "ada", "--name", "demo.flights", "--kind", "schedule", "--refused"]
    result = sluice("audit", "demo", *options)
    assert result.exit_code == 0 and "no records match" in result.output
    [request] = api.sent("GET", PATH)
    sent = {name: value for name, value in request.query.items() if name != "limit"}
    assert sent == {
        "from": "2026-11-20T00:00:00Z", "who": "ada", "name": "demo.flights", "kind": "schedule", "outcome": "refused",
    }  # fmt: skip


def test_records_since_a_duration_begin_that_long_ago(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, {"items": [], "next_cursor": None})
    sluice("audit", "demo", "--since", "2h")
    [request] = api.sent("GET", PATH)
    assert request.query["from"].endswith("Z") and "T" in request.query["from"]
    assert sluice("audit", "demo", "--since", "soon").exit_code == 2


def test_records_of_all_namespaces_are_those_without_a_name(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/audit", {"items": [ENABLED], "next_cursor": None})
    result = sluice("audit", "--json")
    assert json.loads(result.output)["items"] == [ENABLED]
