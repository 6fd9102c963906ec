"""`pause` and `resume`, `skip` and `unskip`: a paused schedule, and a skipped occurrence."""

from __future__ import annotations

import json

import pytest

from tests.cli import recorded_dags
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, past, schedule, schedule_why

ONE = f"{SCHEDULES}/clean"


def described(api: PlayedApi, view: dict[str, object], state: str = "enabled") -> None:
    api.play("GET", ONE, view)
    api.play("GET", f"{ONE}/why", {**schedule_why(state), "jobs": []})
    api.lists |= {f"{ONE}/runs": [], f"{ONE}/records": [], f"{ONE}/versions": []}


@pytest.mark.parametrize(
    ("args", "body"),
    [
        ((), {"mode": "hold", "timeouts": "count"}),
        (("--mode", "drain"), {"mode": "drain", "timeouts": "count"}),
        (("-m", "BACKLOG", "--stop-timeouts"), {"mode": "backlog", "timeouts": "stop"}),
    ],
)
def test_l4_a_pause_shows_its_mode_and_whether_timeouts_go_on(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], body: dict[str, str]
) -> None:
    view = schedule(state=body["mode"])
    api.play("POST", f"{ONE}/pause", view)
    done = sluice("pause", CLEAN, *args)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{CLEAN} is paused, mode {body['mode']}: ")
    assert [request.body for request in api.requests] == [body]
    assert json.loads(sluice("pause", CLEAN, *args, "--json").stdout) == view


def test_l4_resume_lets_a_schedule_go_on(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{ONE}/resume", schedule())
    done = sluice("resume", "clean", "-n", "demo", "-a", "flights")
    assert (done.exit_code, done.stdout) == (0, f"{CLEAN} is enabled, triggered by 1 partition of demo.flights\n")
    assert [request.body for request in api.requests] == [{}]


def test_an_app_may_be_named_with_its_namespace(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_NAMESPACE", "elsewhere")
    api.play("POST", f"{ONE}/resume", schedule())
    assert sluice("resume", "clean", "--app", "demo.flights").exit_code == 0


def test_l4_a_failed_pause_is_reported_and_the_others_are_paused(api: PlayedApi, sluice: Sluice) -> None:
    message = "expected an enabled schedule, got 'demo.flights.report', which is disabled"
    api.refuse("POST", f"{SCHEDULES}/report/pause", 409, "conflict", message, hint="enable it first")
    api.play("POST", f"{ONE}/pause", schedule(state="hold"))
    done = sluice("pause", "demo.flights.report", CLEAN)
    assert done.exit_code == 1
    assert f"{CLEAN} is paused" in done.stdout
    assert done.stderr.splitlines() == [f"error: {message}", "  hint: enable it first"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("hold", "paused: waiting jobs keep gathering, and launch on resume"),
        ("drain", "paused: waiting jobs go on; new events are not accepted"),
        ("backlog", "paused: new jobs are queued, and run on resume"),
        ("completed", "its last fire is over"),
    ],
)
def test_l4_a_described_schedule_explains_its_state(api: PlayedApi, sluice: Sluice, state: str, words: str) -> None:
    described(api, schedule(state=state), state)
    page = sluice("describe", "schedule", CLEAN).stdout
    assert page.startswith(f"schedule {CLEAN}  {state}  version 3")
    assert words in page


def test_l19_a_skip_is_sent_in_utc_and_all_skips_are_printed(api: PlayedApi, sluice: Sluice) -> None:
    view = schedule() | {"skips": ["2026-11-22T05:00:00.000Z", "2026-11-29T05:00:00.000Z"]}
    api.play("POST", f"{ONE}/skip", view)
    done = sluice("skip", CLEAN, "2026-11-22T00:00:00-05:00")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == f"{CLEAN} skips"
    assert [line[:29] for line in done.stdout.splitlines()[1:]] == [
        "  2026-11-22 05:00:00.000 UTC",
        "  2026-11-29 05:00:00.000 UTC",
    ]
    assert [request.body for request in api.requests] == [{"at": "2026-11-22T05:00:00Z"}]
    assert json.loads(sluice("skip", CLEAN, "2026-11-22T05:00:00Z", "--json").stdout) == view


def test_l19_after_the_last_unskip_nothing_is_skipped(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"{ONE}/unskip", schedule() | {"skips": []})
    assert sluice("unskip", CLEAN, "2026-11-22T05:00:00Z").stdout == f"{CLEAN} skips nothing\n"
    assert [request.body for request in api.requests] == [{"at": "2026-11-22T05:00:00Z"}]


def test_l19_a_described_schedule_lists_what_is_skipped(api: PlayedApi, sluice: Sluice) -> None:
    described(api, schedule() | {"skips": [past(hours=-3.5), past(hours=-27.5)]})
    lines = sluice("describe", "schedule", CLEAN).stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("  skips "))
    assert lines[first].endswith("UTC (in 3 h)")
    assert lines[first + 1].endswith("UTC (in 1 d)")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("pause", CLEAN, "--mode", "dran"), "expected one of hold, drain, backlog, got 'dran'"),
        (("pause", CLEAN, "--mode", "dran"), "  hint: did you mean drain?"),
        (("pause", CLEAN, "--mode", "dran"), "  field: --mode"),
        (("pause",), "expected schedules or filters, got neither"),
        (("pause", "clean"), "expected a schedule as namespace.app.schedule, got 'clean'"),
        (("resume", "clean", "-a", "demo..x"), "expected an app as namespace.app, got 'demo..x'"),
        (("skip", CLEAN), "expected the argument AT, got nothing"),
        (("skip", CLEAN, "tomorrow"), "such as 2026-11-22T05:00:00Z, got 'tomorrow'"),
        (("skip", CLEAN, "2026-11-22T05:00:00"), "hint: add the time zone, such as 2026-11-22T05:00:00Z for UTC"),
        (("unskip", CLEAN, "2026-11-22"), "hint: add the time zone, such as 2026-11-22T00:00:00Z for UTC"),
        (("unskip", CLEAN, "0001-01-01T00:00:00+14:00"), "expected an instant with a time zone"),
    ],
)
def test_invalid_pause_arguments_are_refused_before_sending(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], words: str
) -> None:
    done = sluice(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert not api.requests


@pytest.mark.parametrize(("action", "state"), [("pause", "hold"), ("resume", "enabled")])
def test_l24_a_name_may_be_that_of_a_dag(api: PlayedApi, sluice: Sluice, action: str, state: str) -> None:
    api.refuse("POST", f"{SCHEDULES}/daily/{action}", 404, "not_found", "no schedule named 'demo.flights.daily'")
    api.play("POST", f"/v1/namespaces/demo/apps/flights/dags/daily/{action}", {**recorded_dags.dag(), "state": state})
    done = sluice(action, "demo.flights.daily")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("demo.flights.daily is ")


def test_l24_a_name_of_neither_is_no_schedule(api: PlayedApi, sluice: Sluice) -> None:
    for kind in ("schedule", "dag"):
        path = f"/v1/namespaces/demo/apps/flights/{kind}s/nope/pause"
        api.refuse("POST", path, 404, "not_found", f"no {kind} named 'demo.flights.nope'")
    done = sluice("pause", "demo.flights.nope")
    assert (done.exit_code, done.stderr) == (1, "error: no schedule named 'demo.flights.nope'\n")
