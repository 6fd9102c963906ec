"""Each view of the console in a browser, with the answers of the product: the proxy in front of the API of this
checkout on tables in memory."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chalicelib.wiring import VERSION
from sluice.console.access import HEADER
from sluice.console.files import Page
from sluice.console.server import Console, Settings
from sluice.signing import Reply
from tests.console.test_commands_act import APP, Installation
from tests.console.test_page import BUILD, npm
from tests.docs.session import ADDRESS, USER, InProcess, session

TOKEN = "the-token-of-this-test"
POOL = {"pools": {"cluster": {"size": 8, "shares": {"flights.notify": {"reserved": 2}}}}}
GIVEN = {
    **APP,
    **POOL,
    "workflows": {**APP["workflows"], "clean": {**APP["workflows"]["clean"], "pool": "cluster"}},
}


class OneAtATime:
    """The API for a proxy of many threads. The tables in memory are for one."""

    def __init__(self) -> None:
        self._api, self._lock = InProcess(), threading.Lock()

    def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Reply:
        with self._lock:
            return self._api.send(method, url, headers, content)


@contextmanager
def console() -> Iterator[str]:
    """The address of a console in front of the product."""
    server = Console(0, TOKEN, Settings(ADDRESS, "demo", False), Page(BUILD), OneAtATime())  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"{server.address}/#token={TOKEN}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def views(at: Installation) -> list[dict[str, Any]]:
    """Each view, with texts that only the data of this installation bring."""
    letter = at.undelivered()
    backfill, reprocess = at.backfill(), at.reprocess()
    at.message()
    at.ended()
    ended = next(run.run_id for run in at.world.runs("clean") if run.state == "SUCCEEDED")
    waiting, dag_run = at.waiting(), at.world.runs("nightly~")[-1].run_id
    failed, late, not_begun = at.mapped()
    clean, nightly, files = "/schedules/flights/clean", "/dags/flights/nightly", "/dags/flights/files"
    found: dict[str, tuple[str, tuple[str, ...]]] = {
        "home": ("", ("Held up by", "approval", "dead letter", "flights.hourly")),
        "schedules": ("/schedules", ("flights.clean", "flights.ask", "flights.hourly")),
        "schedule": (clean, ("1 partition of flights", "SUCCEEDED")),
        "schedule by time": ("/schedules/flights/hourly", ("every hour", "Skip")),
        "waiting jobs": ("/schedules/flights/ask?tab=jobs", ("PENDING_CONSTRAINTS",)),
        "never ran": (f"{clean}?tab=records", ("Nothing was aborted",)),
        "backfills": (f"{clean}?tab=backfills", ("2013/4",)),
        "versions": (f"{clean}?tab=versions", ("created",)),
        "definition": (f"{clean}?tab=definition", ("demo.flights.clean",)),
        "backfill": (f"{clean}/backfill", ("1. Range", "registered partitions")),
        "timeline": ("/timeline?span=1440", ("flights.clean",)),
        "timeline as a table": ("/timeline?span=1440&tab=table", ("SUCCEEDED",)),
        "queue": ("/queue", ("flights.ask", "approval")),
        "job": (f"/jobs/{waiting}", ("it goes on with", "approval")),
        "runs": ("/runs", ("flights.clean", "SUCCEEDED")),
        "run": (f"/runs/{ended}", ("started because", "SUCCEEDED")),
        "lineage of a run": (f"/runs/{ended}?tab=lineage", ("Led to it",)),
        "undelivered": (f"/runs/{letter}", ("flights.hourly",)),
        "lineage": ("/graph", ("flights.clean",)),
        "dags": ("/dags", ("flights.nightly",)),
        "dag": (f"{nightly}?run={dag_run}&node=join", ("prepare", "join")),
        "limits of a dag": (files, ("at most 1 run at a time, others wait; a run is ended after 2d", "not begun, for")),
        "elements": (
            f"{files}?run={failed}&node=load",
            ("1 of 2 succeeded; 1 failed", "load[1]", "disk full"),
        ),
        "result": (f"{files}?run={failed}&node=scan", ("Result", '"files"', "if mode is full")),
        "branch": (f"{files}?run={failed}&node=delta", ("SKIPPED", "needs a result of scan where mode is")),
        "late dag run": (f"{files}?run={late}", ("RUNNING", "LATE", "to end by", "Cancel the run")),
        "waiting dag run": (f"{files}?run={not_begun}", ("Waits to begin", "1 of 1", "WAITING", "Cancel the job")),
        "workflows": ("/workflows", ("flights.clean", "emr_serverless", "cluster")),
        "messages": ("/messages", ("flights.beat",)),
        "message": ("/messages/flights/beat", ("flights.beat",)),
        "datasets": ("/datasets", ("flights", "/raw/", "2013/4")),
        "dataset": ("/datasets/flights?at=2013/4", ("2013/4", "flights.clean")),
        "limits": ("/limits?name=pool:demo.cluster", ("Shares", "flights.notify", "Quotas")),
        "reprocess": ("/reprocess", ("1. Begin with", "flights 2013/4")),
        "one re-processing": (f"/reprocess/{reprocess}", ("Re-processing of", "flights.clean")),
        "dead letters": ("/dead-letters", ("flights.hourly", "Redrive")),
    }
    assert backfill
    return [{"name": name, "path": path, "texts": texts} for name, (path, texts) in found.items()]


def test_the_page_learns_whose_console_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_STAGE", "prod")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with session(tmp_path), console() as address:
        origin, _, token = address.partition("/#token=")
        asked = urllib.request.Request(f"{origin}/console.json", headers={HEADER: token})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            about = json.load(answer)
    assert about == {
        "api": ADDRESS,
        "namespace": "demo",
        "arn": USER,
        "account": USER.split(":")[4],
        "region": "eu-west-1",
        "stage": "prod",
        "version": VERSION,
        "read_only": False,
    }


def test_o8_each_view_shows_the_answers_of_the_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(tmp_path) as reader:
        # The browser's clock is that of this machine.
        reader.world.clock.wait_until(int(time.time() * 1000) - 3 * 3_600_000)
        monkeypatch.setattr("tests.console.test_commands_act.APP", GIVEN)
        wanted = views(Installation(reader))
        runs = len(reader.world.runs("clean")) + len(reader.world.jobs("clean"))
        with console() as address:
            monkeypatch.setenv("CONSOLE_URL", address)
            monkeypatch.setenv("CONSOLE_NAMESPACE", "demo")
            monkeypatch.setenv("CONSOLE_VIEWS", json.dumps(wanted))
            npm("real")
        reader.world.settle()
        after = len(reader.world.runs("clean")) + len(reader.world.jobs("clean"))
        assert after == runs, "a page of another port has run the schedule"
