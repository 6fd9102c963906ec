"""`now`, `schedules list`, `whoami`, and the methods of the client that they use."""

from __future__ import annotations

import json
from typing import Any

from sluice.client import Client
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import job, past

NS = "/v1/namespaces/demo"
NONE: dict[str, Any] = {"count": 0, "at_least": False}
HELD = {
    "kind": "limit",
    "name": "workflow:demo.flights.clean",
    "of": "workflow demo.flights.clean",
    "why": "waits for a slot of workflow demo.flights.clean: 2 of 2 in use",
    "count": 9,
    "oldest": past(minutes=14),
    "changes_at": None,
    "jobs": [job("demo.flights.clean.m3k2j9x1.aaaa")],
}
ASKED = {
    "schedule": "demo.flights.report",
    "count": 9,
    "late": 4,
    "oldest": past(minutes=14),
    "jobs": [job("demo.flights.report.m3k2j9x1.bbbb")],
}
LATE = {
    "id": "r1",
    "kind": "run",
    "schedule": "demo.flights.join",
    "why": "not ended by 5",
    "by": past(),
    "count": 1,
    "goes_on_at": None,
}
NOW: dict[str, Any] = {
    "at": past(),
    "at_least": True,
    "waiting": {"count": 9, "at_least": True, "groups": [HELD], "groups_left_out": 3},
    "approvals": {**NONE, "count": 9, "schedules": [ASKED]},
    "running": {"count": 2, "at_least": False, "runs": []},
    "overdue": {
        "count": 1,
        "at_least": False,
        "going_on": 0,
        "items": [LATE],
    },
    "paused": {**NONE, "schedules": []},
}
ROW = {
    "name": "demo.flights.clean",
    "state": "enabled",
    "triggered_by": "1 partition of demo.flights",
    "workflow": "demo.flights.clean",
    "pause_reason": None,
    "dag": None,
}
ME = {"arn": "arn:aws:iam::1:user/ada", "account": "1", "region": None, "stage": "dev", "version": "0.1.0"}


def test_now_shows_groups_counts_and_what_was_left_out(api: PlayedApi, sluice: Sluice) -> None:
    held = {**HELD, "oldest": past(minutes=14)}  # when the test runs, not when the module was imported
    api.play("GET", f"{NS}/now", {**NOW, "waiting": {**NOW["waiting"], "groups": [held]}})

    done = sluice("now", "-n", "demo")

    text = " ".join(done.stdout.split())
    assert "waiting at least 9 approvals 9 running 2 overdue 1 paused 0" in text
    assert "workflow demo.flights.clean 9 14 m ago waits for a slot of workflow demo.flights.clean" in text
    assert "demo.flights.join 1 r1 not ended by 5" in text
    assert "demo.flights.report 9 4" in text
    assert "sluice jobs approve --schedule demo.flights.report" in done.stderr
    assert "3 smaller groups left out" in done.stderr


def test_now_prints_the_answer_as_it_is(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{NS}/now", NOW)
    assert json.loads(sluice("now", "-n", "demo", "--json").stdout) == NOW


def test_schedules_are_found_in_one_request(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/schedules"] = [ROW, {**ROW, "name": "demo.flights.d~n", "dag": "demo.flights.d"}]

    done = sluice("schedules", "list", "clean", "-n", "demo", "--tag", "team=a", "--state", "enabled")

    assert done.stdout.splitlines()[1].split()[:2] == ["demo.flights.clean", "enabled"]
    assert "d~n" not in done.stdout
    [request] = api.requests
    assert request.path == f"{NS}/schedules"
    assert {"q": "clean", "tag": "team=a", "state": "enabled"}.items() <= request.query.items()
    sluice("schedules", "list", "-a", "demo.flights", "--workflow", "clean")
    assert {"app": "flights", "workflow": "clean"}.items() <= api.requests[-1].query.items()


def test_a_short_workflow_needs_its_app(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("schedules", "list", "-n", "demo", "--workflow", "clean")
    assert (done.exit_code, api.requests) == (2, [])
    assert "name its app" in done.stderr


def test_whoami_shows_the_identity_and_the_api(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/whoami", ME)

    done = sluice("whoami")

    assert "arn:aws:iam::1:user/ada" in done.stdout
    assert "region" not in done.stdout
    assert json.loads(sluice("whoami", "--json").stdout) == ME


def test_a_glance_at_more_than_fifty_takes_more_requests(api: PlayedApi) -> None:
    for _ in range(2):
        api.play("POST", f"{NS}/glance", {"items": [{"schedule": "demo.a.b"}], "gone": []})

    found = Client.from_environment().glance("demo", [f"a.s{number}" for number in range(60)])

    assert len(found) == 2
    assert [len(request.body["schedules"]) for request in api.requests] == [50, 10]
