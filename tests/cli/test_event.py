"""`event`: custom events, raised one by one or from a file (T11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi

EVENTS = "/v1/namespaces/demo/events"
ACCEPTED = {"accepted": [{"id": "e7", "type": "orders.closed"}]}


def raised(api: PlayedApi) -> list[Any]:
    return [request.body["events"] for request in api.sent("POST", EVENTS)]


def test_t11_an_event_is_sent_with_its_payload_and_id(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", EVENTS, Played(202, ACCEPTED))
    done = sluice("event", "demo", "orders.closed", "--payload", '{"order": 7, "tags": ["a"]}', "--id", "e7")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()] == [["TYPE", "ID"], ["orders.closed", "e7"]]
    assert raised(api) == [[{"type": "orders.closed", "payload": {"order": 7, "tags": ["a"]}, "id": "e7"}]]
    assert json.loads(sluice("event", "demo", "orders.closed", "--json").stdout) == ACCEPTED


def test_t11_an_event_without_an_id_gets_a_new_one(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", EVENTS, Played(202, ACCEPTED))
    sluice("event", "demo", "orders.closed")
    sluice("event", "demo", "orders.closed")
    [first], [second] = raised(api)
    assert first.keys() == {"type", "id"}
    assert first["id"] != second["id"]


def test_t11_after_a_lost_answer_the_event_repeats_with_its_id(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", EVENTS, Played(hang_up=True), Played(503, {"message": "later"}), Played(202, ACCEPTED))
    assert sluice("event", "demo", "orders.closed").exit_code == 0
    assert len({events[0]["id"] for events in raised(api)}) == 1
    assert len(raised(api)) == 3


@pytest.mark.parametrize("key", [False, True])
def test_t11_many_events_from_a_file_are_one_request(api: PlayedApi, sluice: Sluice, tmp_path: Path, key: bool) -> None:
    file = tmp_path / "events.yaml"
    items = [
        {"type": "orders.closed", "id": "a", "timestamp": "2026-11-22T06:00:00+01:00", "payload": {"costs": "$5"}},
        {"type": "feed.done"},
    ]
    file.write_text(json.dumps({"events": items} if key else items))
    accepted = {"accepted": [{"id": "a", "type": "orders.closed"}, {"id": "b", "type": "feed.done"}]}
    api.play("POST", EVENTS, Played(202, accepted))
    done = sluice("event", "demo", "-f", str(file))
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [["orders.closed", "a"], ["feed.done", "b"]]
    [[first, second]] = raised(api)
    assert first == items[0] | {"timestamp": "2026-11-22T05:00:00Z"}
    assert second["type"] == "feed.done"
    assert second["id"]


def test_e11_cloudevents_of_a_file_are_one_batch(api: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    sent = [{"specversion": "1.0", "source": "/orders", "id": number, "type": "orders.closed"} for number in "78"]
    file.write_text(json.dumps(sent))
    accepted = [{"id": each["id"], "type": each["type"], "source": "/orders"} for each in sent]
    api.play("POST", EVENTS, Played(202, {"accepted": accepted}))
    done = sluice("event", "demo", "-f", str(file))
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [["orders.closed", "7"], ["orders.closed", "8"]]
    [request] = api.sent("POST", EVENTS)
    assert request.body == sent
    assert request.headers["content-type"] == "application/cloudevents-batch+json"

    file.write_text(json.dumps([*sent, {"type": "orders.closed"}]))
    done = sluice("event", "demo", "-f", str(file))
    assert done.exit_code == 2
    assert "expected only CloudEvents, or none, got both" in done.stderr
    assert "events.2" in done.stderr


def test_t11_an_api_refusal_is_exit_code_1(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("POST", EVENTS, 404, "not_found", "no namespace named 'demo'")
    done = sluice("event", "demo", "orders.closed")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "error: no namespace named 'demo'" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("demo",), "expected the type of the event, got none"),
        (("orders.closed",), "hint: the namespace comes first: sluice event NAMESPACE orders.closed"),
        (("demo.flights", "orders.closed"), "expected a namespace as namespace, got 'demo.flights'"),
        (("demo", ""), "expected the type of the event, got ''"),
        (("demo", "x", "--id", ""), "  field: --id"),
        (("demo", "x", "--payload", "{order: 7}"), "  field: --payload, column 2"),
        (("demo", "x", "--payload", "{order: 7}"), """--payload '{"order": 7}'"""),
        (("demo", "x", "--payload", "[1]"), "expected a JSON object, got [1]"),
        (("demo", "x", "-f", "-"), "expected no further argument with --file, got 'x'"),
        (("demo", "-f", "-", "--id", "e7"), "  field: --id"),
        (("demo", "-f", "-"), "expected the type of the event, got nothing"),
    ],
)
def test_invalid_event_arguments_are_refused_before_sending(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], words: str
) -> None:
    done = sluice("event", *args, input="- {payload: {}}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert not api.requests


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ("{type: x, payload: [1]}", "events.0.payload"),
        ("{type: x, id: 7}", "events.0.id"),
        ("{type: x, timestamp: 2026-11-22}", "events.0.timestamp"),
    ],
)
def test_an_invalid_event_of_a_file_is_refused_with_its_position(
    api: PlayedApi, sluice: Sluice, item: str, field: str
) -> None:
    done = sluice("event", "demo", "-f", "-", input=f"- {item}")
    assert done.exit_code == 2
    assert f"  field: -: {field}" in done.stderr
    assert not api.requests
