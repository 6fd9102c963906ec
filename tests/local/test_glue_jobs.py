"""Job runs of Glue on the local cloud: their states, events, processes, and refusals (`infra/local/glue_jobs.py`)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import glue_jobs

ROLE = "arn:aws:iam::000000000000:role/etl"


class Cloud:
    """ministack's Glue in this process, with its events in the place of EventBridge."""

    def __init__(self, glue: Any, folder: Path) -> None:
        self.glue, self.folder, self.events = glue, folder, list[dict[str, Any]]()
        bus = SimpleNamespace(_put_events=lambda sent, allow_aws_source: self.events.extend(sent["Entries"]))
        glue_jobs.install(glue, bus, lambda role: {"AWS_ACCESS_KEY_ID": role}, "http://127.0.0.1:4566")

    def define(self, script: str, kind: str = "pythonshell", **more: Any) -> None:
        place = self.folder / "job.py"
        place.write_text(script)
        command = {"Name": kind, "ScriptLocation": str(place)}
        self.glue._create_job({"Name": "etl", "Role": ROLE, "Command": command, **more})

    def start(self, **asked: Any) -> Any:
        return answer(self.glue._start_job_run({"JobName": "etl", **asked}))

    def run(self, started: Any) -> dict[str, Any]:
        found: dict[str, Any] = answer(self.glue._get_job_run({"JobName": "etl", "RunId": started["JobRunId"]}))[
            "JobRun"
        ]
        return found

    def reaches(self, started: Any, *states: str) -> dict[str, Any]:
        end = time.monotonic() + 20
        while (found := self.run(started))["JobRunState"] not in states:
            assert time.monotonic() < end, found
            time.sleep(0.02)
        return found

    def told(self) -> dict[str, Any]:
        end = time.monotonic() + 5
        while not self.events:
            assert time.monotonic() < end
            time.sleep(0.02)
        [event] = self.events
        assert (event["Source"], event["DetailType"]) == ("aws.glue", "Glue Job State Change")
        detail: dict[str, Any] = json.loads(event["Detail"])
        return detail


def answer(response: Any) -> Any:
    status, _, body = response
    found = json.loads(body)
    return found if status == 200 else found["__type"]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    from ministack.services import glue

    for name in ("_create_job", "_start_job_run", "_get_job_run", "_get_job_runs", "_batch_stop_job_run"):
        monkeypatch.setattr(glue, name, getattr(glue, name))  # restored at the end
    yield Cloud(glue, tmp_path)
    for kept in (glue._jobs, glue._job_runs):
        kept.clear()


def test_a_script_gets_its_arguments_and_its_role(cloud: Cloud, tmp_path: Path) -> None:
    out, own = tmp_path / "out.json", tmp_path / "own.py"
    own.write_text("NAME = 'own'")
    cloud.define(
        "import json, os, sys, own\n"
        "json.dump([own.NAME, os.environ['AWS_ACCESS_KEY_ID'], sys.argv[1:]], open(sys.argv[-1], 'w'))",
        kind="glueetl",
        DefaultArguments={"--a": "1", "--b": "1", "--extra-py-files": str(own)},
    )
    started = cloud.start(Arguments={"--b": "2", "--out": str(out)}, WorkerType="G.1X", NumberOfWorkers=3)
    done = cloud.reaches(started, "SUCCEEDED", "FAILED")
    assert done["JobRunState"] == "SUCCEEDED", done
    name, role, arguments = json.loads(out.read_text())
    assert (name, role) == ("own", ROLE)
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert (given["--a"], given["--b"], given["--JOB_NAME"]) == ("1", "2", "etl")
    assert given["--JOB_RUN_ID"] == started["JobRunId"] and started["JobRunId"].startswith("jr_")
    assert (done["MaxCapacity"], done["Arguments"]["--b"]) == (3.0, "2")
    assert cloud.told()["state"] == "SUCCEEDED"


def test_a_failed_script_has_its_last_line_as_its_message(cloud: Cloud) -> None:
    cloud.define("raise ValueError('no such day')")
    found = cloud.reaches(cloud.start(), "FAILED")
    assert found["ErrorMessage"] == "ValueError: no such day"
    assert cloud.told()["message"] == "ValueError: no such day"


def test_a_stop_of_a_job_run_ends_its_process(cloud: Cloud, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    cloud.define(f"import time; open({str(mark)!r}, 'w'); time.sleep(600)")
    started = cloud.start()
    cloud.reaches(started, "RUNNING")
    named = {"JobName": "etl", "JobRunIds": [started["JobRunId"]]}
    assert answer(cloud.glue._batch_stop_job_run(named))["Errors"] == []
    assert cloud.run(started)["JobRunState"] == "STOPPED"
    assert cloud.told()["state"] == "STOPPED"
    [refused] = answer(cloud.glue._batch_stop_job_run(named))["Errors"]
    assert refused["JobRunId"] == started["JobRunId"]


def test_a_job_run_over_its_timeout_is_ended(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glue_jobs, "SECONDS", 0.005)  # of a minute
    cloud.define("import time; time.sleep(600)")
    cloud.reaches(cloud.start(Timeout=1), "TIMEOUT")
    assert cloud.told()["severity"] == "ERROR"


def test_a_job_has_its_maximum_concurrency_and_newest_runs_first(cloud: Cloud) -> None:
    cloud.define("import time; time.sleep(0.3)", ExecutionProperty={"MaxConcurrentRuns": 2})
    first, second = cloud.start(), cloud.start()
    assert cloud.start() == "ConcurrentRunsExceededException"
    page = answer(cloud.glue._get_job_runs({"JobName": "etl", "MaxResults": 1}))
    assert [run["Id"] for run in page["JobRuns"]] == [second["JobRunId"]]
    rest = answer(cloud.glue._get_job_runs({"JobName": "etl", "MaxResults": 1, "NextToken": page["NextToken"]}))
    assert [run["Id"] for run in rest["JobRuns"]] == [first["JobRunId"]] and "NextToken" not in rest
    for started in (first, second):
        cloud.reaches(started, "SUCCEEDED")


def test_a_start_that_glue_refuses_is_refused_here(cloud: Cloud) -> None:
    assert cloud.start() == "EntityNotFoundException"
    cloud.define("")
    assert cloud.start(NumberOfWorkers=2) == "InvalidInputException"
    assert cloud.start(Arguments={"day": "1"}) == "InvalidInputException"
    assert answer(cloud.glue._get_job_runs({"JobName": "other"})) == "EntityNotFoundException"
    cloud.glue._jobs["etl"]["Command"]["ScriptLocation"] = "s3://nowhere/a.py"
    assert "File Not Found" in cloud.reaches(cloud.start(), "FAILED")["ErrorMessage"]
