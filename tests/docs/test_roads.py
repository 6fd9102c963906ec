"""The five roads of docs/architecture.md: short, and made of files that the real call enters."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from app import app
from chalicelib import wiring
from tests.web.conftest import APP, NS, Api, installation, settle_in
from tests.web.test_handlers import flag, reported, sqs
from tests.web.test_run_state import change

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MOST = 20
OBJECT = "From an object to a Spark run"
MINUTE = "From the minute to staggered messages"
END = "From the end of a run to the next waiter"
PUT = "From the PUT of a schedule to its rows"
WHY = "Why a job waits"
ROADS = (OBJECT, MINUTE, END, PUT, WHY)
DAILY = f"{APP}/schedules/daily"
SCHEDULE = {
    "workflow": "clean",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "constraints": [
        {"type": "concurrency", "max": 1, "on_unmet": "wait"},
        {"type": "calendar", "excluding": ["02-29"]},
    ],
}
BATCH = {
    "workflow": "notify",
    "enabled": True,
    "trigger": {"type": "time", "expression": "* * * * *"},
    "spread": {"count": 30, "over": "30s"},
    "policy": "calm",
}


def roads() -> dict[str, list[str]]:
    """The files of each road, as the page links to them."""
    page = PAGE.read_text()
    part = page[page.index("\n## Five roads\n") :]
    part = part[: part.index("\n## ", 4)]
    sections = dict(re.findall(r"^### (.+)\n((?:(?!### ).*\n)*)", part, flags=re.M))
    files = {
        name: re.findall(r"^\d+\. \[`[^`]+`\]\(\.\./([\w/]+\.py)\):", sections[name], flags=re.M) for name in ROADS
    }
    assert all(len(files[name]) == len(re.findall(r"^\d+\. ", sections[name], flags=re.M)) for name in ROADS)
    return files


class MovedClock(wiring.SystemClock):
    """The clock of the system, ahead by what the test moves it. It waits by moving itself."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead

    def wait_until(self, instant: int) -> None:
        self.ahead += max(0, instant - self.now())


def entered(call: Callable[[], object]) -> set[str]:
    """The files of the repository in which a function runs during a call."""
    codes: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {Path(code.co_filename) for code in codes if code.co_flags & inspect.CO_NEWLOCALS}
    return {str(file.relative_to(ROOT)) for file in files if file.is_relative_to(ROOT)}


@pytest.fixture(scope="module")
def traces() -> dict[str, set[str]]:
    """The files that the call of each road enters."""
    found = {}
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        clock = MovedClock()
        patch.setattr(wiring, "SystemClock", lambda: clock)
        patch.setattr("moto.sqs.models.unix_time_millis", clock.now)
        settle_in(api)
        api.get(NS)  # the first request of a process makes the ports
        found[PUT] = entered(lambda: api.put(DAILY, SCHEDULE))
        found[OBJECT] = entered(lambda: arrive(api, "1"))
        run = api.get(f"{DAILY}/runs")["items"][0]
        arrive(api, "2")
        job = api.get(f"{DAILY}/jobs")["items"][0]["job_id"]
        found[WHY] = entered(lambda: api.get(f"/v1/jobs/{job}/why"))
        found[END] = entered(lambda: end(api, run["target_id"].partition("/")[2]))
        assert api.get(f"/v1/runs/{job}")["state"] == "STARTING"
        api.put(f"{NS}/policies/calm", {"max_events": 20, "interval": "1m"})
        api.put(f"{APP}/schedules/batch", BATCH)
        found[MINUTE] = entered(lambda: minutes(api, clock))
        assert api.get(f"{APP}/schedules/batch/runs")["items"][0]["state"] == "SUCCEEDED"
    return found


def arrive(api: Api, day: str) -> None:
    """An object makes a partition ready, and its hints are delivered."""
    app.handler_map["objects"](sqs(reported(flag(day))), None)
    api.work()


def end(api: Api, job_run_id: str) -> None:
    api.client.lambda_.invoke("run_state", change(job_run_id, "SUCCESS"))
    api.work()


def minutes(api: Api, clock: MovedClock) -> None:
    """Two minutes, each with a tick, in which hints are delivered when they are due."""
    for _ in range(2):
        api.client.lambda_.invoke("tick", api.client.events.generate_cw_event("aws.events", "Scheduled Event", {}, []))
        for _ in range(12):
            api.work()
            clock.ahead += 5_000


@pytest.mark.parametrize("name", ROADS)
def test_a_road_has_at_most_twenty_files(name: str) -> None:
    files = roads()[name]
    assert 0 < len(files) <= MOST
    assert len(files) == len(set(files))
    assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("name", ROADS)
def test_the_call_of_a_road_enters_its_files(name: str, traces: dict[str, set[str]]) -> None:
    missed = [file for file in roads()[name] if file not in traces[name]]
    assert missed == [], "replace them by files that the call enters"


def test_the_page_counts_the_files_of_each_road(traces: dict[str, set[str]]) -> None:
    told = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|", PAGE.read_text(), flags=re.M)
    assert {name: int(count) for name, count, _ in told} == {name: len(files) for name, files in roads().items()}
    for name, _, most in told:
        assert sum(file.startswith(("app.py", "chalicelib/")) for file in traces[name]) <= int(most)
