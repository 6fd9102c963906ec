"""`sluice logs`: the end of a log, and its new lines until the run has ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice.cli import logs
from sluice.client import Client
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, JOB, View, run

PATH = f"/v1/runs/{JOB}/logs"
LATER = "EMR has not uploaded the log yet"


def log(*lines: str, state: str = "RUNNING", attempt: int = 1, why: str | None = None) -> View:
    streams = {"stdout": list(lines)} if lines else {}
    return {"run_id": JOB, "attempt": attempt, "state": state, "streams": streams, "why": why}


def followed(api: PlayedApi, *answers: View, **options: Any) -> tuple[list[View], list[float]]:
    api.play("GET", PATH, *answers)
    pauses: list[float] = []
    pages = logs.followed(Client(api.url), JOB, options.get("attempt"), options.get("lines", 100), pauses.append)
    return list(pages), pauses


def test_logs_print_the_last_lines(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, log("one [x]", "two"))
    assert sluice("logs", JOB, "--lines", "2").stdout == "one [x]\ntwo\n"
    assert api.requests[0].query == {"lines": "2"}


def test_following_prints_each_line_once_until_the_end(api: PlayedApi) -> None:
    pages, pauses = followed(
        api,
        log("a"),
        log("a"),
        log("a", "b", "a"),
        log("a", "b", "a", "c", state="SUCCEEDED"),
    )
    assert [page["streams"] for page in pages] == [{"stdout": ["a"]}, {"stdout": ["b", "a"]}, {"stdout": ["c"]}]
    assert pauses == [logs.EVERY] * 4


def test_following_begins_with_as_many_lines_as_asked(api: PlayedApi) -> None:
    pages, _ = followed(api, log("a", "b", "c"), log("a", "b", "c", "d", "e", state="FAILED"), lines=1)
    assert [page["streams"]["stdout"] for page in pages] == [["c"], ["d", "e"]]


def test_following_goes_on_with_the_next_attempt(api: PlayedApi) -> None:
    pages, _ = followed(
        api, log("a"), log("a", state="RETRYING"), log("a", attempt=2), log("a", "b", attempt=2, state="FAILED")
    )
    assert [(page["why"], page["streams"]) for page in pages] == [
        (None, {"stdout": ["a"]}),
        ("attempt 2", {}),
        (None, {"stdout": ["a"]}),
        (None, {"stdout": ["b"]}),
    ]


def test_following_waits_for_a_log_uploaded_after_the_end(api: PlayedApi) -> None:
    pages, _ = followed(api, log(why=LATER), log(why=LATER, state="SUCCEEDED"), log("a", state="SUCCEEDED"))
    assert [(page["why"], page["streams"]) for page in pages] == [(LATER, {}), (None, {"stdout": ["a"]})]


def test_following_gives_up_on_a_log_that_never_comes(api: PlayedApi) -> None:
    pages, pauses = followed(api, log(why=LATER), log(why=LATER, state="SUCCEEDED"))
    assert [page["why"] for page in pages] == [LATER]
    assert sum(pauses) == pytest.approx(logs.PATIENCE, abs=2 * logs.EVERY)


@pytest.mark.parametrize("answer", [log("a", state="SUCCEEDED"), log(why="an HTTP call has no log", state="FAILED")])
def test_following_a_run_that_is_over_never_waits(api: PlayedApi, answer: View) -> None:
    pages, pauses = followed(api, answer)
    assert (len(pages), pauses) == (1, [])


def test_lines_that_left_the_window_are_not_repeated(api: PlayedApi) -> None:
    pages, _ = followed(api, log("a", "b", "c"), log("b", "c", "d", state="FAILED"))
    assert [page["streams"]["stdout"] for page in pages] == [["a", "b", "c"], ["d"]]


def test_with_json_each_line_of_a_followed_log_is_one(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, log("a", "b", state="SUCCEEDED"))
    rows = sluice("logs", JOB, "--follow", "--json").stdout.splitlines()
    assert [json.loads(row) for row in rows] == [
        {"attempt": 1, "stream": "stdout", "line": "a"},
        {"attempt": 1, "stream": "stdout", "line": "b"},
    ]


RUNS = "/v1/namespaces/demo/apps/flights/schedules/clean/runs"


@pytest.mark.parametrize("words", [[CLEAN], ["clean", "-n", "demo", "-a", "flights"]])
def test_logs_of_a_schedule_are_those_of_its_latest_run(api: PlayedApi, sluice: Sluice, words: list[str]) -> None:
    api.lists[RUNS] = [run(JOB, "FAILED"), run(f"{JOB}0")]
    api.play("GET", PATH, log("one", state="FAILED"))

    result = sluice("logs", *words)

    assert (result.exit_code, result.stdout) == (0, "one\n"), result.stderr
    assert result.stderr == f"the latest run of {CLEAN}, begun 5 m ago: {JOB}, FAILED\n"
    assert api.sent("GET", RUNS)[0].query == {"limit": "1"}


def test_logs_of_a_schedule_without_a_run_lead_to_why(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[RUNS] = []

    result = sluice("logs", CLEAN)

    assert result.exit_code == 2
    assert f"hint: sluice why schedule {CLEAN} says why it has not run" in result.stderr
