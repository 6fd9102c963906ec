"""`enable`, `disable`, `run`, and following a run to its end."""

from __future__ import annotations

import json

import pytest

from sluice.cli import follow
from sluice.client import Client
from sluice.errors import ApiRefused
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES, job_why, run, run_page, schedule
from tests.cli.terminal import on_a_terminal, plain

NONE = Played(404, {"error": {"code": "not_found", "message": f"no run named '{JOB}'", "field": None, "hint": None}})


def gone(hint: str | None) -> Played:
    error = {"code": "not_found", "message": f"no job named '{JOB}'", "field": None, "hint": hint}
    return Played(404, {"error": error})


@pytest.mark.parametrize(("action", "state"), [("enable", "enabled"), ("disable", "disabled")])
def test_a_schedule_is_enabled_and_disabled(api: PlayedApi, sluice: Sluice, action: str, state: str) -> None:
    view = schedule(state=state)
    api.play("POST", f"{SCHEDULES}/clean/{action}", view)
    assert sluice(action, CLEAN).stdout.startswith(f"{CLEAN} is {state}")
    assert json.loads(sluice(action, "clean", "-n", "demo", "-a", "flights", "--json").stdout) == view


def test_a_refused_switch_does_not_stop_the_others(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("POST", f"{SCHEDULES}/nope/enable", 404, "not_found", "no schedule named 'demo.flights.nope'")
    api.play("POST", f"{SCHEDULES}/clean/enable", schedule())
    done = sluice("enable", "demo.flights.nope", CLEAN)
    assert done.exit_code == 1
    assert f"{CLEAN} is enabled" in done.stdout
    assert "error: no schedule named 'demo.flights.nope'" in done.stderr


def test_run_prints_the_job_id_and_nothing_else(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    done = sluice("run", CLEAN, "-p", "day=2013-01-01", "-p", "where=a=b")
    assert (done.exit_code, done.stdout) == (0, f"{JOB}\n")
    [request] = api.sent("POST", f"{SCHEDULES}/clean/run")
    assert request.body == {"properties": {"day": "2013-01-01", "where": "a=b"}}
    assert json.loads(sluice("run", CLEAN, "--json").stdout) == {"job_id": JOB}


def test_each_run_command_is_a_separate_request(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    sluice("run", CLEAN)
    sluice("run", CLEAN)
    first, second = (request.headers["idempotency-key"] for request in api.requests)
    assert first != second


def test_run_and_wait_follows_to_the_end(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    failed, done = run(state="RETRYING", attempts=2), run(state="SUCCEEDED", attempt=2, attempts=2)
    api.play("GET", f"/v1/runs/{JOB}", NONE, run_page(run(state="RUNNING")), run_page(failed), run_page(failed, done))
    api.play("GET", f"/v1/jobs/{JOB}/why", job_why(state="PENDING_LAUNCH"))
    followed = sluice("run", CLEAN, "--wait")
    assert followed.exit_code == 0
    assert followed.stdout.splitlines() == [JOB, "SUCCEEDED  waited 2.0 s, took 42 s"]
    states = [line.split()[2] for line in followed.stderr.splitlines()]
    assert states == ["PENDING_LAUNCH", "RUNNING", "RETRYING", "SUCCEEDED"]


def test_a_job_that_is_a_run_already_is_no_news(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    api.play("GET", f"/v1/runs/{JOB}", NONE, run_page(run(state="SUCCEEDED")))
    api.play(
        "GET",
        f"/v1/jobs/{JOB}/why",
        job_why() | {"decision": "duplicate", "why": "duplicate: this job already has a run"},
    )
    followed = sluice("run", CLEAN, "--wait")
    assert [line.split()[2] for line in followed.stderr.splitlines()] == ["SUCCEEDED"]


def test_run_and_wait_exits_with_1_when_the_run_failed(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    page = run_page(run(state="FAILED"))
    api.play("GET", f"/v1/runs/{JOB}", page)
    followed = sluice("run", CLEAN, "--wait")
    assert followed.exit_code == 1
    assert "exit code 1: the file is empty" in followed.stderr
    as_json = sluice("run", CLEAN, "--wait", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout), as_json.stderr) == (1, page, "")


def test_a_job_that_never_became_a_run_is_shown_by_its_record(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", {"job_id": JOB})
    api.play("GET", f"/v1/runs/{JOB}", NONE)
    api.play("GET", f"/v1/jobs/{JOB}/why", gone("it was aborted at 2026-11-20T11:00:00.000Z: concurrency is not met"))
    followed = sluice("run", CLEAN, "--wait")
    assert followed.exit_code == 1
    assert "hint: it was aborted at 2026-11-20T11:00:00.000Z: concurrency is not met" in followed.stderr


def test_a_job_not_visible_at_once_is_waited_for(api: PlayedApi) -> None:
    api.play("GET", f"/v1/runs/{JOB}", NONE, NONE, NONE, run_page(run()))
    api.play("GET", f"/v1/jobs/{JOB}/why", gone(None))
    pauses: list[float] = []
    view = follow.until_over(Client(api.url), JOB, quiet=True, pause=pauses.append)
    assert view["state"] == "SUCCEEDED"
    assert pauses == sorted(pauses)


def test_a_job_that_never_becomes_visible_is_given_up(api: PlayedApi) -> None:
    api.play("GET", f"/v1/runs/{JOB}", NONE)
    api.play("GET", f"/v1/jobs/{JOB}/why", gone(None))
    pauses: list[float] = []
    with pytest.raises(ApiRefused, match="no job named"):
        follow.until_over(Client(api.url), JOB, quiet=True, pause=pauses.append)
    assert len(pauses) == follow.MISSES - 1


def test_l11_the_partition_of_a_run_is_sent_by_its_keys(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{SCHEDULES}/clean/run", Played(202, {"job_id": JOB}))
    result = sluice("run", CLEAN, "--partition", "year=2013/day=5/")
    assert (result.exit_code, result.stdout) == (0, f"{JOB}\n"), result.stderr
    assert api.requests[0].body == {"properties": {}, "partition": {"year": "2013", "day": "5"}}
    assert sluice("run", CLEAN, "--partition", "2013").exit_code == 2


@pytest.mark.parametrize("keys", [["year", "day"], []])
def test_on_a_terminal_run_says_that_it_has_no_partition(api: PlayedApi, keys: list[str]) -> None:
    api.play("GET", f"{SCHEDULES}/clean", {**schedule(), "by": keys})
    api.play("POST", f"{SCHEDULES}/clean/run", Played(202, {"job_id": JOB}))
    code, output = on_a_terminal("run", CLEAN)
    said = "the run has no partition; --partition year=.../day=... gives it one" in " ".join(plain(output).split())
    assert (code, said) == (0, bool(keys))
