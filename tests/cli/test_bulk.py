"""Schedules selected by tag, workflow and state: listed, and changed all at once (L18)."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, app, schedule

APP = "/v1/namespaces/demo/apps/flights"
BULK = f"{APP}/bulk"
DONE = {"changed": [CLEAN, "demo.flights.join"], "unchanged": ["demo.flights.report"], "failed": []}


@pytest.mark.parametrize("action", ["enable", "disable", "pause", "resume"])
def test_l18_every_switch_takes_filters(api: PlayedApi, sluice: Sluice, action: str) -> None:
    api.play("POST", BULK, DONE)
    done = sluice(action, "--app", "demo.flights", "--tag", "team=a")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["CHANGE", "NAME"],
        ["changed", CLEAN],
        ["changed", "demo.flights.join"],
        ["unchanged", "demo.flights.report"],
        [],
        ["demo.flights:", "2", "changed,", "1", "unchanged"],
    ]
    assert [request.body for request in api.requests] == [{"action": action, "tag": "team=a"}]
    assert json.loads(sluice(action, "--app", "demo.flights", "--tag", "team=a", "--json").stdout) == DONE


@pytest.mark.parametrize(
    ("args", "body"),
    [
        (("--tag", "team"), {"tag": "team"}),
        (("--workflow", "clean_flights"), {"workflow": "demo.flights.clean_flights"}),
        (("--workflow", "other.app.load"), {"workflow": "other.app.load"}),
        (("--state", "Hold"), {"state": "hold"}),
        (("--all",), {"all": True}),
        (
            ("--tag", "team=a=b", "--workflow", "flights.clean_flights", "--state", "enabled"),
            {"tag": "team=a=b", "workflow": "demo.flights.clean_flights", "state": "enabled"},
        ),
    ],
)
def test_l18_filters_are_sent_in_the_form_of_the_api(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], body: dict[str, object]
) -> None:
    api.play("POST", BULK, DONE)
    assert sluice("disable", "-n", "demo", "-a", "flights", *args).exit_code == 0
    assert [request.body for request in api.requests] == [{"action": "disable", **body}]


def test_l18_a_failing_item_has_its_reason_and_sets_exit_code(api: PlayedApi, sluice: Sluice) -> None:
    error = {"code": "conflict", "message": "expected a living schedule", "field": None, "hint": "look again"}
    report = {**DONE, "failed": [{"name": "demo.flights.weekly", "error": error}]}
    api.play("POST", BULK, report)
    done = sluice("pause", "--app", "demo.flights", "--all")
    assert done.exit_code == 1
    assert "failed     demo.flights.weekly  expected a living schedule: look again" in done.stdout
    assert "demo.flights: 2 changed, 1 unchanged, 1 failed" in done.stdout
    as_json = sluice("pause", "--app", "demo.flights", "--all", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (1, report)


def test_l24_filters_that_match_nothing_are_an_error(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", BULK, {"changed": [], "unchanged": [], "failed": []})
    done = sluice("enable", "--app", "demo.flights", "--tag", "team=none")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "no schedule of demo.flights matches\n"


def test_l18_schedules_are_listed_by_the_filters_of_the_api(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[SCHEDULES] = [schedule()]
    filters = ("--tag", "team=a", "--workflow", "clean_flights", "--state", "enabled")
    assert CLEAN in sluice("get", "schedules", "--app", "demo.flights", *filters).stdout
    [request] = api.requests
    filters = {"tag": "team=a", "workflow": "demo.flights.clean_flights", "state": "enabled"}
    assert {key: request.query.get(key) for key in filters} == filters


def test_l18_a_short_workflow_name_means_that_of_each_app(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{APP.rpartition('/')[0]}"] = [app("demo.flights"), app("demo.weather")]
    api.lists |= {SCHEDULES: [], "/v1/namespaces/demo/apps/weather/schedules": []}
    done = sluice("get", "schedules", "-n", "demo", "--workflow", "load")
    assert (done.exit_code, done.stderr) == (0, "no schedules like that\n")
    asked = [request.query["workflow"] for request in api.requests if request.path.endswith("/schedules")]
    assert asked == ["demo.flights.load", "demo.weather.load"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("disable", "--tag", "team=a"), "expected the app of the filters, got none"),
        (("disable", "--all", "--app", "flights"), "expected an app as namespace.app, got 'flights'"),
        (("disable", "--app", "demo.flights"), "add --app NS.APP and --tag, --workflow, --state or --all"),
        (("disable", CLEAN, "--all", "-a", "demo.flights"), "expected names or filters, got both"),
        (("disable", CLEAN, "--tag", "team=a"), "expected names or filters, got both"),
        (("disable", "-a", "demo.flights", "--all", "--tag", "x"), "expected filters or --all, got both"),
        (("disable", "-a", "demo.flights", "--tag", "=a"), "expected a tag as key or key=value, got '=a'"),
        (("disable", "-a", "demo.flights", "--tag", "a", "--tag", "b"), "expected --tag once, got 2 of them"),
        (("disable", "-a", "demo.flights", "--workflow", "a..b"), "got 'a..b'"),
        (("disable", "-a", "demo.flights", "--state", "enabld"), "hint: did you mean enabled?"),
        (("disable", "-a", "demo.flights", "--state", "running"), "expected one of enabled, hold, drain, backlog"),
        (("get", "workflows", "-n", "demo", "--state", "hold"), "expected no --state with `get workflows`"),
        (("get", "schedule", CLEAN, "--state", "hold"), f"expected no --state with `get schedule {CLEAN}`"),
        (("get", "schedules", "-n", "demo", "--state", "drained"), "hint: did you mean drain?"),
    ],
)
def test_invalid_bulk_arguments_are_refused_before_sending(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], words: str
) -> None:
    done = sluice(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert not api.requests


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        (("--mode", "drain"), {"mode": "drain"}),
        (("--stop-timeouts",), {"timeouts": "stop"}),
        (("--dry-run",), {"dry_run": True}),
    ],
)
def test_l18_a_pause_by_filters_has_a_mode_and_a_dry_run(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], fields: dict[str, object]
) -> None:
    api.play("POST", BULK, DONE)
    assert sluice("pause", "-a", "demo.flights", "--tag", "team=a", *args).exit_code == 0
    assert [request.body for request in api.requests] == [{"action": "pause", "tag": "team=a", **fields}]


def test_l18_a_dry_run_of_names_asks_once_for_each_app(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", BULK, {**DONE, "dry_run": True})
    other = "/v1/namespaces/demo/apps/orders/bulk"
    error = {"code": "conflict", "message": "expected a living schedule", "field": None, "hint": "look again"}
    api.play("POST", other, {"changed": [], "unchanged": [], "failed": [{"name": "demo.orders.a", "error": error}]})
    done = sluice("disable", CLEAN, "demo.orders.a", "demo.flights.join", "--dry-run")
    assert done.exit_code == 1
    assert "demo.flights: 2 changed, 1 unchanged; nothing was changed: this was a dry run" in done.stdout
    assert "failed  demo.orders.a  expected a living schedule: look again" in done.stdout
    assert [(request.path, request.body) for request in api.requests] == [
        (BULK, {"action": "disable", "names": [CLEAN, "demo.flights.join"], "dry_run": True}),
        (other, {"action": "disable", "names": ["demo.orders.a"], "dry_run": True}),
    ]
