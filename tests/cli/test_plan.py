"""`apply` as a plan: the effect of a deployment on each part of an app, in colours (L8)."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import ARN, CLEAN, SCHEDULES, app, namespace, past

NS = "/v1/namespaces/demo"
APP = f"{NS}/apps/flights"
DOCUMENT = "namespace: demo\napp: flights\n"
PLAN = {
    "name": "demo.flights",
    "created": [f"schedule {CLEAN}"],
    "replaced": ["workflow demo.flights.clean_flights"],
    "kept": ["app demo.flights"],
    "deleted": ["schedule demo.flights.old", "workflow demo.flights.old"],
    "untouched": [],
}


@pytest.fixture(autouse=True)
def answers(api: PlayedApi) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, PLAN)


@pytest.mark.parametrize(
    ("args", "query"),
    [
        ((), {}),
        (("--dry-run",), {"dry_run": "true"}),
        (("--update-schedules",), {"update_schedules": "true"}),
        (("--no-update-schedules", "--dry-run"), {"update_schedules": "false", "dry_run": "true"}),
    ],
)
def test_l8_installation_decides_on_schedule_updates_by_default(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], query: dict[str, str]
) -> None:
    assert sluice("apply", "-", *args, input=DOCUMENT).exit_code == 0
    assert [request.query for request in api.sent("PUT", APP)] == [query]


def test_l8_a_plan_shows_changes_first_and_then_what_stays(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("apply", "-", "--dry-run", input=DOCUMENT)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["CHANGE", "KIND", "NAME"],
        ["created", "schedule", CLEAN],
        ["replaced", "workflow", "demo.flights.clean_flights"],
        ["deleted", "schedule", "demo.flights.old"],
        ["deleted", "workflow", "demo.flights.old"],
        ["kept", "app", "demo.flights"],
        [],
        "demo.flights: 1 created, 1 replaced, 2 deleted, 1 kept (dry run: nothing was stored)".split(),
    ]
    assert json.loads(sluice("apply", "-", "--dry-run", "--json", input=DOCUMENT).stdout) == PLAN


def test_the_notes_of_a_deployment_are_shown(api: PlayedApi, sluice: Sluice) -> None:
    api.play("PUT", APP, {**PLAN, "notes": ["schedules.x.trigger.expression: '0 0 5 ? * 2-6' fires on tue-sat"]})
    done = sluice("apply", "-", "--dry-run", input=DOCUMENT)
    assert "check schedules.x.trigger.expression: '0 0 5 ? * 2-6' fires on tue-sat" in done.stderr


def test_l8_schedules_not_updated_are_named(api: PlayedApi, sluice: Sluice) -> None:
    api.play("PUT", APP, {**PLAN, "created": [], "deleted": [], "untouched": [f"schedule {CLEAN}"]})
    done = sluice("apply", "-", "--no-update-schedules", input=DOCUMENT)
    assert f"untouched  schedule  {CLEAN}" in done.stdout
    assert "demo.flights: 1 replaced, 1 untouched, 1 kept\n" in done.stdout


def test_l8_a_deletion_is_red_on_a_terminal(api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    text = sluice("apply", "-", "--dry-run", input=DOCUMENT).stdout
    assert text.count("\x1b[1;31mdeleted\x1b[0m") == 3
    assert "\x1b[32mcreated\x1b[0m" in text


def test_l8_a_described_app_shows_its_last_deployment(api: PlayedApi, sluice: Sluice) -> None:
    uri = "s3://control/deployments/demo.flights/0123456789abcdef.json"
    api.play("GET", APP, app() | {"deployed": {"at": past(hours=2.5), "by": ARN, "uri": uri}})
    api.lists |= {f"{APP}/workflows": [], SCHEDULES: []}
    lines = [line.split(maxsplit=1) for line in sluice("describe", "app", "demo.flights").stdout.splitlines()]
    deployed = dict(line for line in lines if len(line) == 2)
    assert deployed["deployed"].endswith(f"UTC (2 h ago) by {ARN}")
    assert deployed["document"] == uri


def test_an_app_never_deployed_shows_no_deployment(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", APP, app())
    api.lists |= {f"{APP}/workflows": [], SCHEDULES: []}
    assert "deployed" not in sluice("describe", "app", "demo.flights").stdout
