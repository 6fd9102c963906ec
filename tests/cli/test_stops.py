"""``sluice stop`` and ``sluice start``: what is sent, what is printed, exit codes (L24)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN

NS = "/v1/namespaces/demo"
APP = f"{NS}/apps/flights"
STOP = {
    "namespace": "demo",
    "app": None,
    "tag": None,
    "reason": "repair",
    "by": "data/ann",
    "since": "2026-03-02T02:14:00.000Z",
    "state": "stopped",
}
SAID = "demo has been stopped since 2026-03-02 02:14:00.000 UTC by data/ann: repair"
EMPTY: dict[str, Any] = {
    **{change: [] for change in ("changed", "unchanged", "failed", "stops")},
    "complete": True,
    "dry_run": False,
}


def test_l24_a_stop_says_what_it_held(api: PlayedApi, sluice: Sluice) -> None:
    report = {**EMPTY, "changed": [CLEAN], "unchanged": ["demo.flights.report"], "stops": [STOP]}
    api.play("POST", f"{NS}/stop", report)
    done = sluice("stop", "demo", "--reason", "repair")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()][:3] == [
        ["CHANGE", "NAME"],
        ["changed", CLEAN],
        ["unchanged", "demo.flights.report"],
    ]
    assert done.stdout.splitlines()[-2:] == ["demo: 1 changed, 1 unchanged", SAID]
    assert [request.body for request in api.requests] == [{"reason": "repair"}]
    assert json.loads(sluice("stop", "demo", "-r", "repair", "--json").stdout) == report


def test_l24_timeouts_are_stopped_if_it_is_said(api: PlayedApi, sluice: Sluice) -> None:
    report = {**EMPTY, "changed": [CLEAN], "stops": [{**STOP, "timeouts": "stop"}]}
    api.play("POST", f"{NS}/stop", report)
    done = sluice("stop", "demo", "--reason", "repair", "--stop-timeouts")
    assert done.stdout.splitlines()[-1] == f"{SAID}; timeouts stand still"
    assert [request.body for request in api.requests] == [{"reason": "repair", "timeouts": "stop"}]


@pytest.mark.parametrize(
    ("args", "path", "body"),
    [
        (("demo",), NS, {}),
        (("demo.flights",), APP, {}),
        (("flights", "-n", "demo"), APP, {}),
        (("-n", "demo"), NS, {}),
        (("-n", "demo", "--tag", "team=a", "--dry-run"), NS, {"tag": "team=a", "dry_run": True}),
    ],
)
def test_l24_the_place_and_the_tag_are_sent(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], path: str, body: dict[str, Any]
) -> None:
    api.play("POST", f"{path}/start", {**EMPTY, "changed": [CLEAN]})
    assert sluice("start", *args).exit_code == 0
    assert [request.body for request in api.requests] == [body]


def test_l24_a_stop_that_takes_long_is_repeated(api: PlayedApi, sluice: Sluice) -> None:
    first = {**EMPTY, "changed": ["demo.flights.a"], "complete": False}
    api.play("POST", f"{NS}/stop", first, {**EMPTY, "changed": [CLEAN], "unchanged": ["demo.flights.a"]})
    done = sluice("stop", "demo", "--reason", "repair")
    assert "demo: 2 changed\n" in done.stdout
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("stop", "demo"), "expected a reason, got none"),
        (("stop", "demo.flights.clean", "-r", "x"), "expected a namespace or an app, got 'demo.flights.clean'"),
        (("start", "demo.", "--tag", "a"), "expected a namespace or an app, got 'demo.'"),
        (("start", "demo", "--tag", "=a"), "expected a tag as key or key=value, got '=a'"),
    ],
)
def test_l24_wrong_commands_are_refused(sluice: Sluice, args: tuple[str, ...], message: str) -> None:
    done = sluice(*args)
    assert done.exit_code == 2
    assert message in done.stderr


def test_l24_a_tag_that_fits_nothing_is_an_error(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("POST", f"{NS}/stop", 400, "invalid", "expected a tag that a schedule has", hint="look")
    assert sluice("stop", "demo", "--tag", "team=z", "-r", "x").exit_code == 1
