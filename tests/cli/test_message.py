"""`message put | get | list | delete`, messages among the definitions, and `run --at`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES, app, message, run, schedule_why

MESSAGES = "/v1/namespaces/demo/apps/flights/messages"
BACKUP = "demo.flights.backup"
QUEUE = {"type": "sqs", "queue_url": "https://sqs.example/q"}


def sent(api: PlayedApi) -> Any:
    [request] = api.sent("PUT", f"{MESSAGES}/backup")
    return request.body


@pytest.fixture
def taken(api: PlayedApi) -> PlayedApi:
    api.play("PUT", f"{MESSAGES}/backup", message())
    return api


def test_l16_put_sends_its_arguments_and_prints_when_it_is_sent(taken: PlayedApi, sluice: Sluice) -> None:
    done = sluice("message", "put", BACKUP, "--schedule", "@every 10s", "--due", "10s", "--repeats", "4", "--ttl",
                  "1h", "--zone", "Europe/Paris", "-d", "all of it", "-t", json.dumps(QUEUE))  # fmt: skip
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{BACKUP} is sent at ")
    assert done.stdout.rstrip().endswith(", then @every 10s, 4 times")
    assert sent(taken) == {
        "schedule": "@every 10s",
        "due_time": "10s",
        "repeats": 4,
        "ttl": "1h",
        "zone": "Europe/Paris",
        "data": "all of it",
        "target": QUEUE,
    }


@pytest.mark.parametrize(
    ("options", "carried"),
    [
        (["-d", '{"a": 1}'], {"data": {"a": 1}}),
        (["-d", "[1]"], {"data": [1]}),
        (["-d", "7"], {"data": "7"}),
        (["-d", "7", "--content-type", "application/json"], {"data": 7, "content_type": "application/json"}),
        (["-d", "{a}", "--content-type", "text/plain"], {"data": "{a}", "content_type": "text/plain"}),
    ],
)
def test_l13_text_is_text_and_json_is_json(
    taken: PlayedApi, sluice: Sluice, options: list[str], carried: dict[str, Any]
) -> None:
    assert sluice("message", "put", BACKUP, "--due", "1h", *options).exit_code == 0
    assert sent(taken) == {"due_time": "1h", **carried}


def test_l13_a_file_is_sent_as_text_or_as_bytes(taken: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    file = tmp_path / "data"
    for content, carried in (
        (b"day;1\n", {"data": "day;1\n"}),
        (b"\xff\x00", {"data_base64": base64.b64encode(b"\xff\x00").decode()}),
    ):
        file.write_bytes(content)
        sluice("message", "put", BACKUP, "--due", "1h", "-d", f"@{file}", "--content-type", "text/csv")
        assert taken.requests.pop().body == {"due_time": "1h", "content_type": "text/csv", **carried}


def test_l16_options_override_the_file(taken: PlayedApi, sluice: Sluice, tmp_path: Path) -> None:
    file = tmp_path / "backup.yaml"
    file.write_text(yaml.safe_dump({"schedule": "@daily", "data": "$old", "workflow": "clean", "tags": {"a": "b"}}))
    sluice("message", "put", BACKUP, "-f", str(file), "-t", json.dumps(QUEUE), "--due", "1h")
    assert sent(taken) == {"schedule": "@daily", "data": "$old", "tags": {"a": "b"}, "target": QUEUE, "due_time": "1h"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "expected a schedule, a due time, or both, got neither"),
        (["--due", "1h", "--content-type", "a/b"], "expected --data with --content-type"),
        (["--due", "1h", "-t", "sqs"], "expected JSON, got an error: expecting value"),
        (["--due", "1h", "-t", "{}"], "expected a JSON object with a type"),
        (["--due", "1h", "-d", "{a: 1}"], "hint: or add --content-type text/plain"),
        (["--due", "1h", "-d", "@missing"], "expected a readable file, got missing"),
        (["-f", "missing.yaml"], "expected a readable file, got missing.yaml"),
    ],
)
def test_l16_wrong_usage_sends_nothing(api: PlayedApi, sluice: Sluice, options: list[str], words: str) -> None:
    done = sluice("message", "put", BACKUP, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not api.requests


def test_l16_messages_are_read_listed_and_deleted(api: PlayedApi, sluice: Sluice) -> None:
    view = message()
    api.play("GET", f"{MESSAGES}/backup", view)
    api.play("DELETE", f"{MESSAGES}/backup", Played(204))
    api.lists[MESSAGES] = [view]
    api.lists["/v1/namespaces/demo/apps"] = [app()]
    assert yaml.safe_load(sluice("message", "get", BACKUP).stdout) == view
    assert json.loads(sluice("message", "get", "backup", "-a", "demo.flights", "--json").stdout) == view
    for command in (["message", "list", "-a", "demo.flights"], ["get", "messages", "-n", "demo"]):
        head, row = sluice(*command).stdout.splitlines()[:2]
        assert head.split() == ["NAME", "NEXT", "REPEATS", "GOES", "TO", "CHANGED"]
        assert row.startswith(BACKUP)
        assert "@every 10s, 4 times" in row
    assert sluice("message", "delete", BACKUP).stdout == f"{BACKUP} is deleted\n"
    assert sluice("message", "list", "-n", "demo").stdout.splitlines()[1].startswith(BACKUP), "of all apps"
    assert "expected a namespace" in sluice("message", "list").stderr
    api.lists[MESSAGES] = []
    assert "no messages here" in sluice("message", "list", "-a", "demo.flights").stderr


def test_l16_describe_shows_when_where_and_with_what_result(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{MESSAGES}/backup", message())
    api.play("GET", f"{MESSAGES}/backup/why", schedule_why())
    api.lists[f"{MESSAGES}/backup/runs"] = [run()]
    page = sluice("describe", "message", BACKUP).stdout
    assert page.startswith(f"message {BACKUP}")
    for words in ("sent", "@every 10s, 4 times", "the default target of its app", "Last runs"):
        assert words in page


def test_w8_run_at_asks_for_a_later_time(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    assert sluice("run", CLEAN, "--at", "2h", "-p", "day=1").stdout == f"{JOB}\n"
    [request] = api.sent("POST", f"{SCHEDULES}/clean/run")
    assert request.body == {"at": "2h", "properties": {"day": "1"}}
