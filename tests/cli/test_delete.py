"""`sluice delete`: its prompts, its requests, and its messages when the API refuses."""

from __future__ import annotations

import json

import pytest

from sluice import names
from tests.cli.conftest import Sluice
from tests.cli.played_api import Played, PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, schedule, workflow

NS = "/v1/namespaces/demo"
APP = f"{NS}/apps/flights"
GONE = Played(204, b"")
PATHS = [
    ("namespace", "demo", NS),
    ("app", "demo.flights", APP),
    ("workflow", "demo.flights.clean", f"{APP}/workflows/clean"),
    ("schedule", CLEAN, f"{APP}/schedules/clean"),
    ("dataset", "demo.flights", f"{NS}/datasets/flights"),
    ("policy", "demo.calm", f"{NS}/policies/calm"),
    ("pool", "demo.cluster", f"{NS}/pools/cluster"),
    ("calendar", "demo.france", f"{NS}/calendars/france"),
    ("message", "demo.flights.backup", f"{APP}/messages/backup"),
    ("dag", "demo.flights.daily", f"{APP}/dags/daily"),
]


@pytest.mark.parametrize(("kind", "name", "path"), PATHS)
def test_each_kind_is_deleted_by_its_own_path(api: PlayedApi, sluice: Sluice, kind: str, name: str, path: str) -> None:
    api.play("DELETE", path, GONE)
    done = sluice("delete", kind, name, "--yes")
    assert (done.exit_code, done.stdout) == (0, f"{kind} {name} is deleted\n")
    assert [(request.method, request.path) for request in api.requests] == [("DELETE", path)]


def test_the_paths_above_are_those_of_every_kind() -> None:
    assert [kind for kind, _, _ in PATHS] != []
    assert {kind for kind, _, _ in PATHS} == {kind.name for kind in names.KINDS}


def test_delete_asks_before_it_sends_anything(api: PlayedApi, sluice: Sluice) -> None:
    api.play("DELETE", f"{SCHEDULES}/clean", GONE)
    asked = sluice("delete", "schedule", CLEAN, input="n\n")
    assert (asked.exit_code, asked.stdout, api.requests) == (1, "", [])
    assert f"delete schedule {CLEAN} (waiting jobs are dropped" in asked.stderr
    assert "nothing was changed" in asked.stderr
    assert sluice("delete", "schedule", CLEAN, input="y\n").exit_code == 0
    assert len(api.requests) == 1


def test_delete_in_a_script_needs_yes(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("delete", "schedule", CLEAN, input="")
    assert (done.exit_code, api.requests) == (2, [])
    assert "expected an answer or --yes, got neither" in done.stderr
    assert "hint: add --yes to go ahead without asking" in done.stderr


def test_the_question_counts_the_parts_of_an_app(api: PlayedApi, sluice: Sluice) -> None:
    api.lists |= {f"{APP}/workflows": [workflow()], SCHEDULES: [schedule(), schedule()]}
    api.lists |= {f"{APP}/dags": [], f"{APP}/messages": []}
    asked = sluice("delete", "app", "demo.flights", input="no\n").stderr
    assert "delete app demo.flights (with 1 workflow, 2 schedules)? [y/N]" in asked
    assert not api.sent("DELETE", APP)


def test_one_refused_deletion_does_not_stop_the_others(api: PlayedApi, sluice: Sluice) -> None:
    error = "expected a workflow that nothing refers to, got one used by schedule demo.flights.clean"
    api.refuse("DELETE", f"{APP}/workflows/a", 409, "in_use", error, hint="delete or change these first")
    api.play("DELETE", f"{APP}/workflows/b", GONE)
    done = sluice("delete", "workflows", "a", "b", "-a", "demo.flights", "--yes", "--json")
    assert done.exit_code == 1
    assert error in done.stderr
    assert json.loads(done.stdout) == {"kind": "workflow", "name": "demo.flights.b", "did": "deleted"}
