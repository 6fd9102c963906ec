"""Shell completion: commands and kinds at once, names and ids from the API, and nothing at all without an answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, app, dataset, job, namespace, run, schedule

SCRIPT = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app(prog_name='sluice')"


def completed(words: str) -> list[str]:
    """What bash gets for a command; the last word is the one to complete, empty after a space."""
    count = len(words.split()) - (0 if words.endswith(" ") else 1)
    asked = {"_SLUICE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def catalog(api: PlayedApi) -> PlayedApi:
    api.lists["/v1/namespaces"] = [namespace(), namespace("other")]
    api.lists["/v1/namespaces/demo/apps"] = [app(), app("demo.weather")]
    api.lists[SCHEDULES] = [schedule(), schedule("demo.flights.join"), schedule("demo.flights.daily~clean")]
    api.lists["/v1/namespaces/demo/apps/weather/schedules"] = [schedule("demo.weather.load")]
    api.lists["/v1/namespaces/demo/datasets"] = [dataset()]
    api.lists["/v1/namespaces/demo/runs"] = [run()]
    api.lists["/v1/namespaces/demo/jobs"] = [job()]
    return api


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("sluice wh", ["why", "whoami"]),
        ("sluice why ", ["job", "run", "schedule"]),
        ("sluice get sche", ["schedule", "schedules"]),
        ("sluice pause x --mode ", ["backlog", "drain", "hold"]),
        ("sluice runs list --state F", ["FAILED"]),
        ("sluice get schedules --state h", ["hold"]),
        ("sluice convert cr", ["crontab"]),
        ("sluice run --wa", ["--wait"]),
    ],
)
def test_commands_kinds_and_values_need_no_api(words: str, offers: list[str]) -> None:
    assert completed(words) == offers


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("sluice run de", ["demo.flights.clean", "demo.flights.join", "demo.weather.load"]),
        ("sluice why schedule demo.flights.c", ["demo.flights.clean"]),
        ("sluice run -n demo -a flights c", ["clean"]),
        ("sluice describe dataset demo.", ["demo.flights"]),
        ("sluice delete apps demo.w", ["demo.weather"]),
        ("sluice jobs -n ", ["demo", "other"]),
        ("sluice jobs -n demo -s demo.flights.j", ["demo.flights.join"]),
    ],
)
def test_names_come_from_the_api(catalog: PlayedApi, words: str, offers: list[str]) -> None:
    assert completed(words) == offers


def test_ids_of_jobs_and_runs_need_the_namespace(catalog: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("sluice runs show demo") == []
    monkeypatch.setenv("SLUICE_NAMESPACE", "demo")
    assert completed("sluice runs show demo") == [run()["run_id"]]
    assert completed("sluice logs demo.flights.c") == [CLEAN, run()["run_id"]]
    assert completed("sluice why job demo") == [job()["job_id"]]


def test_a_complete_app_name_costs_two_requests(catalog: PlayedApi) -> None:
    assert completed("sluice run demo.flights.cl") == [CLEAN]
    assert [request.path for request in catalog.requests] == ["/v1/namespaces/demo/apps", SCHEDULES]


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9", "not an address"])
def test_without_an_api_nothing_is_offered_or_printed(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SLUICE_API_URL", url)
    assert completed("sluice run de") == []


def test_a_silent_api_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("SLUICE_API_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        assert completed("sluice run de") == []
    assert time.monotonic() - begun < 15, "expected a few seconds, even on a busy machine"
