"""`top`: what runs, what waits and why, and how many runs a minute; live on a terminal, one frame elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sluice.cli.top import LATELY, Snapshot
from sluice.client import PAGE
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, FIRE, fire_run, job, past, run
from tests.cli.terminal import on_a_terminal

RUNS, JOBS = "/v1/namespaces/demo/runs", "/v1/namespaces/demo/jobs"
ONE, TWO = f"{CLEAN}.m3k2j9x1.aaaa", f"{CLEAN}.m3k2j9x1.bbbb"
NODE = "demo.flights.daily~clean"


@pytest.fixture
def busy(api: PlayedApi) -> PlayedApi:
    ended = [
        run(f"{CLEAN}.m3k2j9x1.{number:04d}", claimed_at=past(seconds=200), ended_at=past(seconds=20))
        for number in range(8)
    ]
    failed = run(f"{CLEAN}.m3k2j9x1.ffff", "FAILED", claimed_at=past(seconds=250), ended_at=past(seconds=30))
    old = run(f"{CLEAN}.m3k2j9x1.eeee", claimed_at=past(hours=2), ended_at=past(hours=1))
    live = run(ONE, "RUNNING", claimed_at=past(seconds=40))
    api.lists[RUNS] = [live, *ended, failed, old]
    api.lists[JOBS] = [
        job(TWO),
        {**job(f"{CLEAN}.m3k2j9x1.cccc"), "created_at": past(minutes=9), "reason": "waits for a slot: the oldest"},
        {
            **job("demo.flights.join.m3k2j9x1.dddd", "PENDING_TRIGGER"),
            "schedule": "demo.flights.join",
            "reason": "waits for weather",
        },
    ]
    return api


def test_a_frame_shows_runs_waiting_jobs_and_throughput(busy: PlayedApi, sluice: Sluice) -> None:
    done = sluice("top", "-n", "demo", "--once")
    assert (done.exit_code, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert "running 1 waiting 3 started 2.0 a minute ended 1.8 a minute, 1 failed in the last 5 m" in text
    assert ONE in done.stdout and "RUNNING" in done.stdout
    assert f"{CLEAN} PENDING_LAUNCH 2 9 m ago waits for a slot: the oldest" in text
    assert "demo.flights.join PENDING_TRIGGER 1 2 m ago waits for weather" in text


def test_a_frame_takes_two_requests(busy: PlayedApi, sluice: Sluice) -> None:
    sluice("top", "-n", "demo")  # no terminal: one frame
    assert [request.path for request in busy.requests] == [RUNS, JOBS]


def test_internal_work_is_shown_with_all_only(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[RUNS] = [run(f"{NODE}.m3k2j9x1.aaaa", "RUNNING") | {"schedule": NODE}]
    api.lists[JOBS] = []
    assert NODE not in sluice("top", "-n", "demo", "--once").stdout
    assert NODE in sluice("top", "-n", "demo", "--once", "--all").stdout


def test_a_frame_as_json_has_lists_and_numbers(busy: PlayedApi, sluice: Sluice) -> None:
    shown = json.loads(sluice("top", "-n", "demo", "--json").stdout)
    assert [run["run_id"] for run in shown["running"]] == [ONE]
    assert (len(shown["waiting"]), shown["more_waiting"]) == (3, False)
    assert shown["throughput"] == {"seconds": LATELY, "started": 10, "ended": 9, "failed": 1}


def test_a_full_page_counts_only_the_span_that_it_covers() -> None:
    now = datetime.now(UTC)
    runs = [run(f"r{number}", "RUNNING", claimed_at=past(seconds=number * 0.6)) for number in range(PAGE)]
    flow = Snapshot("demo", now, runs, [], more_jobs=False, more_runs=True).throughput
    assert flow.seconds == pytest.approx(0.6 * (PAGE - 1), abs=1)
    assert flow.a_minute(flow.started) == pytest.approx(100, rel=0.05)


def test_on_a_terminal_frames_follow_until_q(busy: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    code, output = on_a_terminal("top", "-n", "demo", answer="q", wait_for="q ends")
    assert code == 0
    assert "\x1b[?1049h" in output and "\x1b[?1049l" in output, "expected the screen to be left as it was"
    assert ONE in output


def test_on_a_terminal_ctrl_c_ends_it_without_an_error(busy: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    code, output = on_a_terminal("top", "-n", "demo", answer="\x03", wait_for="q ends")
    assert (code, "Traceback" in output) == (0, False)


def test_a_failed_request_leaves_the_last_frame(busy: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    busy.play(
        "GET",
        RUNS,
        {"items": busy.lists[RUNS], "next_cursor": None},
        Played(400, {"error": {"code": "invalid", "message": "no"}}),
    )
    code, output = on_a_terminal("top", "-n", "demo", answer="q", wait_for="the last request failed: no")
    assert code == 0
    assert output.count(ONE) == 2


def test_e2_each_event_of_a_large_fire_counts(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[RUNS] = [fire_run() | {"claimed_at": past(seconds=20), "ended_at": past(seconds=19)}]
    api.lists[JOBS] = [job(f"{FIRE}-6y_6y") | {"count": 250}, job(ONE)]
    text = " ".join(sluice("top", "-n", "demo", "--once").stdout.split())
    assert "waiting 251 started 399.4 a minute ended 399.4 a minute" in text
