"""The API accepts the documents of the examples, and the documents define what the examples verify."""

from __future__ import annotations

import importlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.triggers.time import TimeTrigger
from chalicelib.flow.jobs.actions import approve
from chalicelib.flow.schedules import pauses
from chalicelib.flow.views.lists import jobs_of_namespace
from chalicelib.flow.views.queues import Queues
from examples.backups.logs import busiest
from examples.backups.run import URGENT, Scale, schedule_name, schedule_of
from examples.features import build
from examples.flights.demo import approver_of
from examples.retraining import retrain
from examples.stage import Stage
from sluice import documents
from tests.support.world import World

ROOT = Path(__file__).parents[2]
FOUND = sorted(path.parent.name for path in (ROOT / "examples").glob("*/app.yaml"))
VALUES = {
    "namespace": "demo", "prefix": "demo/", "lake": "lake", "code": "s3://control/code/", "nights": "28",
    "app": "fleet-1", "queue": "https://sqs.us-east-1.amazonaws.com/1/sluice-target-x",
    "most": "120", "interval": "10s",
}  # fmt: skip


def load(example: str) -> dict[str, Any]:
    return documents.load(str(ROOT / "examples" / example / "app.yaml"), VALUES)


@pytest.mark.parametrize("example", FOUND)
def test_h4_the_document_of_an_example_is_an_app(example: str) -> None:
    app = App.model_validate(load(example))
    names = {name.rpartition(".")[2] for name in app.workflows}
    scheduled = [schedule.workflow for schedule in app.schedules.values()]
    nodes = [node.workflow for dag in app.dags.values() for node in dag.nodes.values()]
    assert {*scheduled, *nodes} <= names


@pytest.mark.parametrize("example", FOUND)
def test_h4_every_job_of_a_document_exists_with_its_imports(example: str) -> None:
    for workflow in load(example)["workflows"].values():
        target = workflow["target"]
        if target["type"] != "emr_serverless":
            continue
        job, *beside = (uri.removeprefix(VALUES["code"]) for uri in (target["entry_point"], *target["py_files"]))
        ours = {path.stem: path for folder in ("jobs", "job_library") for path in (ROOT / folder).glob("*.py")}
        wanted, found = {Path(job).stem}, set[str]()
        while wanted - found:
            text = "".join(ours[name].read_text() for name in wanted - found)
            found |= wanted
            wanted |= {name for name in re.findall(r"^from (\w+) import", text, flags=re.M) if name in ours}
        assert found == {Path(job).stem, *(Path(name).stem for name in beside)}


def test_h4_the_demo_leaves_work_for_a_person(world: World) -> None:
    """After its joins, one job waits for an approval, and one for the resume of its schedule; both report once."""
    me = approver_of("arn:aws:iam::123456789012:user/ada")
    assert me.endswith(":user/ada")
    assert approver_of("unknown").endswith(":role/lead")
    world.deploy(load("flights"))
    review = documents.load(str(ROOT / "examples" / "flights" / "review.yaml"), {**VALUES, "approver": me})
    world.deploy(review, app="review")
    pauses.pause(world.ports, "demo.review.paused", "hold", "tester", False)
    for day in (1, 2):
        for kind in ("flights", "weather"):
            world.upload(f"demo/raw/{kind}/year=2013/month=1/day={day}/_SUCCESS")
        world.settle()
    while world.finish():
        world.settle()

    jobs = jobs_of_namespace(world.ports, "demo", 50, None).items
    waiting = {job["schedule"]: job for job in map(Queues(world.ports).job, jobs)}
    kinds = {name: waiting[f"demo.review.{name}"]["waits_for"][0]["kind"] for name in ("approved", "paused")}
    assert kinds == {"approved": "approval", "paused": "pause"}

    approve(world.ports, waiting["demo.review.approved"]["job_id"], me)
    pauses.resume(world.ports, "demo.review.paused", "tester")
    world.settle()
    while world.finish():
        world.settle()
    assert [run.state for name in ("approved", "paused") for run in world.runs(f"demo.review.{name}")] == [
        "SUCCEEDED"
    ] * 2


class Uploads:
    """A client of S3 that keeps the names of what it gets."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        assert Body
        self.names.add(Key.rpartition("/")[2])


@pytest.mark.parametrize("example", ["features.build", "retraining.retrain"])
def test_h4_an_example_uploads_its_jobs_and_their_library(example: str) -> None:
    stage, uploads = object.__new__(Stage), Uploads()
    stage.name, stage.control, stage.s3 = "demo-1", "control", uploads
    folder = stage.upload_jobs(*importlib.import_module(f"examples.{example}").JOBS)
    assert folder == "s3://control/code/demo-1/"
    for workflow in load(example.partition(".")[0])["workflows"].values():
        target = workflow["target"]
        files = [target.get("entry_point"), *target.get("py_files", ())]
        assert {file.removeprefix(VALUES["code"]) for file in files if file} <= uploads.names


def test_h4_a_night_of_the_example_is_a_fire_of_its_schedule() -> None:
    nightly = App.model_validate(load("features")).schedules["nightly"]
    assert isinstance(nightly.trigger, TimeTrigger)
    assert str(nightly.trigger.expression) == f"0 {build.NIGHT} * * *"
    assert nightly.zone == build.ZONE.key
    assert [constraint.max for constraint in nightly.constraints] == [build.BATCH_SIZE]


def test_h4_the_verified_priorities_are_those_of_the_document() -> None:
    app = App.model_validate(load("retraining"))
    nodes = {name: node.priority for name, node in app.dags["retrain"].nodes.items() if node.priority is not None}
    experiment = app.workflows[app.schedules["experiment"].workflow].priority
    assert {**nodes, "experiment": experiment} == retrain.PRIORITIES
    assert app.pools["training"].size == 1
    assert {name for name, workflow in app.workflows.items() if workflow.pool == "training"} == {"train", "explore"}


def test_h4_the_schedules_of_logs_are_valid_and_distinct() -> None:
    due = datetime(2026, 11, 22, 2, tzinfo=UTC)
    first, *_ = logs = busiest(Scale().logs)
    schedules = {schedule_name(log): schedule_of(log, log is first, due, 60) for log in logs}
    assert len(schedules) == Scale().logs == 1_000
    app = App.model_validate({**load("backups"), "schedules": schedules})
    assert [app.schedules[name].priority for name in ("n725mq", "n722mq")] == [URGENT, None]
