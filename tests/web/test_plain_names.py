"""W20: whatever people read calls a node of a DAG ``nightly/load``, and commands take that name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from typer.testing import CliRunner

from chalicelib.core.results import Result
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.web.table import ROUTES
from chalicelib.wiring import ports
from sluice.cli import app
from tests.cli.test_options import LEAVES
from tests.support.dags import dag
from tests.web.conftest import APP, NS
from tests.workers.served import Served, serving

DAG = f"{APP}/dags/nightly"
NODE = "demo.flights.nightly/load"
INTERNAL = re.compile(r"~[0-9a-f]{8}(?![0-9a-f])")
NAME = r"[\w-]+\.[\w-]+\.[\w-]+~[0-9a-f]{8}(?:~[\w-]+)?"
ID = re.compile(NAME + r"\.[0-9a-z]+\.[0-9a-f]{20}")
MACHINE = re.compile(rf"(?:\w+:)*(?:{NAME})(?:\.[0-9a-z]+\.[0-9a-f]{{20}})?(?:[:#].*)?")
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
    "COLUMNS": "250",
}


class Played:
    """A DAG with a failed element, a run that is late, and one that waits for it."""

    def __init__(self, served: Served) -> None:
        self.served, self.api = served, served.api
        boto3.client("s3").create_bucket(Bucket="lake-bucket")
        self.queue = self.api.sqs.create_queue(QueueName="team")["QueueUrl"]
        nodes = {
            "scan": {"workflow": "clean"},
            "load": {"workflow": "join", "each": {"of": "scan"}},
            "held": {"workflow": "join", "constraints": [{"type": "delay", "after": "5h", "on_unmet": "wait"}]},
            "publish": {"workflow": "clean"},
        }
        target = {"type": "sqs", "queue_url": self.queue}
        document = dag(
            *("scan -> load", "scan -> held", "load -> publish"),
            nodes=nodes,
            by=[],
            trigger={"type": "time", "expression": "0 5 1 1 *"},
            concurrency={"max": 1, "on_unmet": "wait"},
            deadline={"end_within": "1m"},
            notify=[{"on": ["failed", "missed_end", "aborted"], "to": target}],
        )
        with served.lock:
            emr = {"type": "emr_serverless", "entry_point": "s3://c/j.py"}
            self.api.put(f"{APP}/workflows/join", {"target": emr, "notify": [{"on": ["failed"], "to": target}]})
            self.api.put(DAG, document)
            waits = {"type": "program_status", "workflow": "join", "statuses": ["COMPLETED"]}
            self.api.put(f"{APP}/schedules/after", {"workflow": "clean", "trigger": waits, "enabled": True})
            self.run_id = self.api.post(f"{DAG}/run", idempotency_key="1")["run_id"]
            self.api.work()
            self.waiting = self.api.post(f"{DAG}/run", idempotency_key="2")["run_id"]
            self.api.work()
            self.scan = self.node("scan")["run_id"]
            self.ends(self.scan, RunUpdate("SUCCEEDED", ports().clock.now(), result=Result(["x.csv", 2])))
        elements = self.api.get(f"{DAG}/runs/{self.run_id}/nodes/load/elements")["items"]
        self.element = elements[0]["run_id"]
        for each, state in zip(elements, ("FAILED", "SUCCEEDED"), strict=True):
            with served.lock:
                self.ends(each["run_id"], RunUpdate(state, ports().clock.now(), "no space left"))
        served.passes(180)
        self.held = self.api.get(f"{NS}/jobs?q=held")["items"][0]["job_id"]

    def node(self, name: str) -> Any:
        return self.api.get(f"{DAG}/runs/{self.run_id}")["nodes"][name]

    def ends(self, run_id: str, update: RunUpdate) -> None:
        complete.advance_run(ports(), run_id, 1, update)
        self.api.work()

    def sluice(self, *args: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**ENVIRONMENT, "SLUICE_API_URL": self.served.url}.items():
                patch.setenv(name, value)
            return CliRunner().invoke(app, list(args), catch_exceptions=False)


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    with serving() as served:
        yield Played(served)


def is_machine(text: str) -> bool:
    """Whether a text is a name or an id as a whole, which a program compares."""
    return MACHINE.fullmatch(text) is not None


def texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Each text of an answer with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, where)
    elif isinstance(value, str):
        yield where, value


def internal(text: str) -> bool:
    return INTERNAL.search(ID.sub("", text)) is not None


def paths(played: Played) -> list[str]:
    """Each GET of the API, of the DAG, its schedules and its work."""
    schedule = played.api.get(f"{APP}/schedules/nightly~")["workflow"].rpartition(".")[2] + "~load"
    fixed = {"ns": "demo", "app": "flights", "node": "load", "job_id": played.held}
    found: list[str] = []
    for route in ROUTES:
        names = (schedule, "nightly~") if "/schedules/" in route.path else ("nightly", "join")
        for name in names if "{name}" in route.path else ("",):
            for run in (played.run_id, played.element, played.waiting) if "{run_id}" in route.path else ("",):
                path = route.path
                for key, value in {**fixed, "run_id": run, "name": name}.items():
                    path = path.replace("{" + key + "}", quote(value))
                if route.method == "GET" and "{" not in path and path != "/v1/openapi.json":
                    found.append(path)
    return found


def test_w20_each_text_of_the_api_has_the_plain_name(played: Played) -> None:
    wrong, said, answered = [], 0, 0
    for path in paths(played):
        got = played.api.send("GET", path)
        answered += got.status_code == 200
        for where, text in texts(json.loads(got.body)):
            wrong += [(path, where, text)] if internal(text) and not is_machine(text) else []
            said += "nightly/" in text
    assert wrong == []
    assert answered > 60
    assert said >= 3, "what is searched does name nodes"


def test_w20_each_notice_has_the_plain_name(played: Played) -> None:
    sent = [each["Body"] for each in played.api.messages(played.queue)]
    said = [json.loads(body) for body in sent]
    events = [event for each in said for event in each["events"]]
    assert {(event["what"], event["node"]) for event in events} == {("failed", "load")}
    read = [text for each in said for _, text in texts(each) if not is_machine(text)]
    assert [text for text in read if internal(text)] == []
    assert any(NODE in text for text in read)


COMMANDS = """
why demo.flights.nightly
why schedule {node}
why schedule demo.flights.nightly/held
why run {element}
why job {held}
runs list -n demo
runs list -n demo --all
runs list -s {node}
runs show {element}
runs show {run}
jobs -n demo --all
jobs -s demo.flights.nightly/held
records -n demo --all
records -s {node}
get schedules -n demo --all
get schedule {node}
get dags -n demo
get dag demo.flights.nightly
describe schedule {node}
describe dag demo.flights.nightly
describe workflow demo.flights.join
versions {node}
preview {node}
logs {node}
dags list -n demo
dags runs demo.flights.nightly
dags show demo.flights.nightly {run}
dags show demo.flights.nightly {waiting}
dags elements demo.flights.nightly {run} load
dead-letters list -n demo
dead-letters list -s {node}
now -n demo
stop demo --reason repair --dry-run
backfill list {node}
audit demo
buckets
dags why demo.flights.nightly
datasets list -n demo
datasets show flights year=2013 month=1 day=1 -n demo
jobs list -n demo --all
periods demo.flights.nightly
policies -n demo
pools -n demo
runs logs {node}
schedules list -n demo --all
top -n demo --once --all
"""


# These change what the others show: they are played last.
ACTS = """
run demo.flights.nightly
dags pause demo.flights.nightly
dags resume demo.flights.nightly
dags skip demo.flights.nightly 2027-01-01T05:00:00Z
dags unskip demo.flights.nightly 2027-01-01T05:00:00Z
dags run demo.flights.nightly
dags disable demo.flights.nightly
dags enable demo.flights.nightly
stop demo --reason repair --dry-run
runs ping {scan}
runs cancel {waiting}
jobs cancel {held}
dags cancel demo.flights.nightly {run}
dags rerun demo.flights.nightly {run} --all
datasets register flights year=2013 month=1 day=1 -n demo
dead-letters redrive --schedule {node}
"""


@pytest.mark.parametrize("command", COMMANDS.strip().splitlines())
def test_w20_each_command_prints_the_plain_name(played: Played, command: str) -> None:
    values = {"node": NODE, "run": played.run_id, "element": played.element, "held": played.held}
    done = played.sluice(*command.format(waiting=played.waiting, **values).split())
    printed = done.stdout + done.stderr
    assert [line for line in printed.splitlines() if internal(line)] == []
    assert done.exit_code == 0 or "logs" in command, printed
    if "/" in command or "{node}" in command:
        assert "not_found" not in printed


# Commands whose answers name no schedule of a DAG, or whose own tests play them: they define, send, serve or move.
OTHERS = """
access allowed apply console convert delete event export fires freeze grants import init local message open prefixes
quotas repair report reprocess unfreeze upload validate whoami worker start
"""


def test_w20_each_command_that_shows_work_is_played() -> None:
    played = [line.split() for line in (COMMANDS + REFUSED + ACTS).strip().splitlines()]
    wanted = [words for name in LEAVES if (words := name.split())[0] not in OTHERS.split()]
    assert [words for words in wanted if not any(each[: len(words)] == words for each in played)] == []


# A node is no schedule of its own, so these are refused.
REFUSED = """
pause {node}
resume {node}
enable {node}
disable {node}
skip {node} 2027-01-01T05:00:00Z
unskip {node} 2027-01-01T05:00:00Z
dry-run {node} --file none.yaml
backfill begin {node} --from 2026-01-01 --to 2026-01-02
backfill show {node} none
backfill cancel {node} none
dags elements demo.flights.nightly {run} publish
dags rerun demo.flights.nightly {run} --from none
jobs approve {held}
jobs refuse {held}
runs rerun {element} --downstream
dead-letters drop {element}
"""


@pytest.mark.parametrize("command", REFUSED.strip().splitlines())
def test_w20_a_refusal_has_the_plain_name(played: Played, command: str) -> None:
    values = {"node": NODE, "run": played.run_id, "element": played.element, "held": played.held}
    done = played.sluice(*command.format(**values).split())
    assert done.exit_code != 0
    assert [line for line in (done.stdout + done.stderr).splitlines() if internal(line)] == []


def test_w20_a_dag_is_taken_as_the_schedule_that_starts_it(played: Played) -> None:
    for command in ("runs list -s", "jobs -s", "records -s", "preview", "versions", "get schedule", "backfill list"):
        done = played.sluice(*command.split(), "demo.flights.nightly")
        assert (done.exit_code, internal(done.stdout)) == (0, False), (command, done.stderr)
    runs = played.sluice("runs", "list", "-s", "nightly", "-a", "demo.flights", "--json")
    assert played.run_id in {run["run_id"] for run in json.loads(runs.stdout)["items"]}
    unknown = played.sluice("preview", "demo.flights.nihgtly")
    assert "no schedule named 'demo.flights.nihgtly'" in unknown.stderr


def test_w20_an_unknown_node_is_named_as_written(played: Played) -> None:
    for command in ("why schedule", "runs list -s", "jobs -s", "get schedule", "logs"):
        done = played.sluice(*command.split(), "demo.flights.nightly/none")
        assert done.exit_code != 0
        assert not internal(done.stderr), done.stderr
        assert "demo.flights.nightly/none" in done.stderr
        other = played.sluice(*command.split(), "demo.flights.daily/load")
        assert other.exit_code != 0
        assert "demo.flights.daily" in other.stderr


def test_w20_a_short_name_of_a_node(played: Played) -> None:
    done = played.sluice("runs", "list", "-s", "nightly/load", "-n", "demo", "-a", "flights", "--json")
    names = {run["dag"]["node"] for run in json.loads(done.stdout)["items"]}
    assert names == {"load"}


def test_w20_each_act_prints_the_plain_name(played: Played) -> None:
    values = {"node": NODE, "run": played.run_id, "waiting": played.waiting, "held": played.held, "scan": played.scan}
    for command in ACTS.strip().splitlines():
        done = played.sluice(*command.format(**values).split())
        printed = done.stdout + done.stderr
        assert [line for line in printed.splitlines() if internal(line)] == [], command
        with played.served.lock:
            played.api.work()
