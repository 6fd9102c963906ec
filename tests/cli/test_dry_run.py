"""`dry-run`: events from a file, played to a trigger, step by step (L11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.documents import types_of
from chalicelib.core.triggers.registry import GIVEN
from sluice import events
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES

DRY_RUN = f"{SCHEDULES}/clean/dry-run"
EVENTS = """\
- {type: partition, dataset: flights, partition: {year: 2013, month: 1, day: '01'}}
- {type: program_status, workflow: flights.load, status: completed, at: 2026-11-22T06:00:00+01:00}
- {type: event, event: orders.closed, payload: {total: $5}}
- {type: size, dataset: flights, bytes: 10GB}
- {type: time, at: 2026-11-22T05:00:00Z}
- {type: elapsed}
- {type: cloudwatch_alarm, alarm: disk full, state: OK}
"""
SENT = [
    {"type": "partition", "dataset": "flights", "partition": {"year": "2013", "month": "1", "day": "01"}},
    {"type": "program_status", "workflow": "flights.load", "status": "COMPLETED", "at": "2026-11-22T05:00:00Z"},
    {"type": "event", "event": "orders.closed", "payload": {"total": "$5"}},
    {"type": "size", "dataset": "flights", "bytes": "10GB"},
    {"type": "time", "at": "2026-11-22T05:00:00Z"},
    {"type": "elapsed"},
    {"type": "cloudwatch_alarm", "alarm": "disk full", "state": "OK"},
]


def step(event: Any, touched: bool, fires: bool, why: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    at = "2026-11-22T05:00:00.000Z"
    came = ["1 partition of demo.flights"] if touched else []
    result = {"touched": touched, "fires": fires, "why": why, "arrived": came, "missing": list(missing)}
    return {"at": at, "event": event, **result}


ANSWER = {
    "steps": [
        step("partition of demo.weather", False, False, "no leaf waits for it"),
        step("partition of demo.flights", True, False, "", ("1 partition of demo.flights",)),
        step({"type": "partition", "dataset": "flights", "partition": {"day": "2"}}, True, True, "2 partitions came"),
    ],
    "fires": 1,
    "left": [
        {"why": "waits for demo.load", "changes_at": None, "correlation": {"day": "1"}},
        {"why": "waits for demo.weather", "changes_at": None, "correlation": None},
    ],
    "why": "it fired once; 1 partition is left over",
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "events.yaml"
    path.write_text(EVENTS)
    return str(path)


def test_l11_events_of_a_file_are_sent_in_the_form_of_the_api(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("POST", DRY_RUN, ANSWER)
    assert sluice("dry-run", CLEAN, "-f", file).exit_code == 0
    assert [request.body for request in api.requests] == [{"events": SENT}]


@pytest.mark.parametrize("name", ["events.json", "events.yaml", "-"])
def test_l11_events_may_be_a_bare_or_named_list_in_json_or_stdin(
    api: PlayedApi, sluice: Sluice, tmp_path: Path, name: str
) -> None:
    api.play("POST", DRY_RUN, ANSWER)
    for document in (SENT, {"events": SENT}):
        (tmp_path / "events.json").write_text(json.dumps(document))
        (tmp_path / "events.yaml").write_text(json.dumps(document))
        path = name if name == "-" else str(tmp_path / name)
        assert sluice("dry-run", CLEAN, "--file", path, input=json.dumps(document)).exit_code == 0
    assert [request.body for request in api.requests] == [{"events": SENT}] * 2


def test_l11_each_step_says_whether_it_counted_and_fired_and_why(
    api: PlayedApi, sluice: Sluice, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    api.play("POST", DRY_RUN, ANSWER)
    page = sluice("dry-run", "clean", "-n", "demo", "-a", "flights", "-f", file).stdout
    assert page.startswith(f"schedule {CLEAN}  fires 1 time\n")
    assert page.splitlines()[2].split() == ["#", "AT", "EVENT", "RESULT", "WHY"]
    for words in (
        "2026-11-22 05:00:00.000 UTC  partition of demo.weather",
        "ignored  no leaf waits for it",
        "counts   waits for 1 partition of demo.flights",
        "partition flights day=2",
        "fires    2 partitions came",
        "why          it fired once; 1 partition is left over",
        "left: day=1  waits for demo.load",
        "left         waits for demo.weather",
    ):
        assert words in page
    assert json.loads(sluice("dry-run", CLEAN, "-f", file, "--json").stdout) == ANSWER


def test_l11_a_trigger_that_does_not_fire_is_no_failure(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("POST", DRY_RUN, {"steps": [], "fires": 0, "left": [], "why": "nothing came that it waits for"})
    done = sluice("dry-run", CLEAN, "-f", file)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"schedule {CLEAN}  does not fire",
        "",
        "  why  nothing came that it waits for",
    ]


def test_l11_a_dry_run_changes_nothing_and_may_be_sent_again(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("POST", DRY_RUN, Played(503, {"message": "later"}), ANSWER)
    assert sluice("dry-run", CLEAN, "-f", file).exit_code == 0
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    ("text", "words", "field"),
    [
        ("", "expected a list of events in -, got nothing", ""),
        ("[]", "expected a list of events in -, got an empty list", ""),
        ("type: time", "expected a list of events in -, got an object", ""),
        ("- time", "expected an object, got text", "-: events.0"),
        ("- {at: x}", "expected the type of the event, got nothing", "-: events.0.type"),
        ("- {type: partitoin}", "did you mean partition?", "-: events.0.type"),
        ("- {type: time}", "add at: an event of type time needs at", "-: events.0.at"),
        ("- {type: size, dataset: d}", "an event of type size needs dataset and bytes", "-: events.0.bytes"),
        ("- {type: time, at: noon}", "expected an instant with a time zone", "-: events.0.at"),
        ("- {type: partition, dataset: d, partition: today}", "expected partition keys", "-: events.0.partition"),
        (
            "- {type: partition, dataset: d, partition: {day: 1.5}}",
            "expected text or a whole number, got 1.5",
            "-: events.0.partition.day",
        ),
        (
            "- {type: time, at: '2026-11-22T05:00:00Z'}\n- {type: program_status, workflow: w, status: COMPLETD}",
            "hint: did you mean COMPLETED?",
            "-: events.1.status",
        ),
        ("- {type: event, event: e, payload: {d: !!binary aGk=}}", "got bytes", "-, line 1: 0.payload.d"),
        ("- {type: time, type: size}", "'type' a second time in one object", "-, line 1"),
    ],
)
def test_invalid_events_are_refused_with_their_position(
    api: PlayedApi, sluice: Sluice, text: str, words: str, field: str
) -> None:
    done = sluice("dry-run", CLEAN, "-f", "-", input=text)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert not field or f"  field: {field}\n" in done.stderr
    assert not api.requests


def test_l11_each_playable_type_of_event_can_be_sent() -> None:
    """The CLI shares no code with the service, so its table of types could become outdated."""
    needed = {
        kind: {name for name, field in given.model_fields.items() if field.is_required()} - {"type"}
        for given in GIVEN
        for kind in types_of(given)
    }
    assert events.NEEDED.keys() == needed.keys()
    assert all(needed[kind] <= set(fields) for kind, fields in events.NEEDED.items())


def test_a_dry_run_needs_events(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("dry-run", CLEAN)
    assert done.exit_code == 2
    assert "expected the option --file, got nothing" in done.stderr
