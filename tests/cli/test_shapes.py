"""The recorded views have the fields that the service answers with, so that the other tests test what is real."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core import model
from chalicelib.core.messages import Message
from chalicelib.core.rows import Definition, Event, Gate, Job, Partition, Run, StartRequest, Version
from chalicelib.core.targets import EmrServerlessTarget
from chalicelib.flow import explain, messages, read
from tests.cli import recorded

TRIGGER = {"type": "partition", "dataset": "demo.flights"}
REQUEST = StartRequest({}, {}, "s3://control/context/x.json", "token", "name")
RUN = Run("r", 1, "s", 1, "w", "RUNNING", REQUEST, (), "due", 0, 0, 5, 1, "fire")


def document(made: model.Described) -> dict[str, Any]:
    return made.model_dump(mode="json")


def definition(kind: Any, made: model.Described) -> dict[str, Any]:
    return read.definition_view(Definition(kind, "demo", document(made), 1, 0))


def real() -> dict[str, dict[str, Any]]:
    entry = "s3://lake/code/clean_flights.py"
    target = EmrServerlessTarget(type="emr_serverless", entry_point=entry)
    dataset = model.Dataset(bucket="lake", prefix="raw/flights/", keys=("year",))
    schedule = model.Schedule.model_validate({"workflow": "clean_flights", "trigger": TRIGGER})
    sent = Message(due_time="1h", data={}).to_schedule("demo.flights.~m", 0)
    event = Event("e", "partition", "k", 0, 0, {"year": "2013"}, "demo.flights", "s3://lake/")
    return {
        "namespace": definition("namespace", model.Namespace()),
        "app": definition("app", model.Namespace()),
        "workflow": definition("workflow", model.Workflow(target=target)),
        "dataset": definition("dataset", dataset),
        "schedule": read.schedule_view(Gate("demo.flights.clean", 1, 1, "enabled", 0), schedule),
        "job": read.job_view(Job("s", 1, "PENDING", "j", "gathering", "PENDING_TRIGGER", 0)),
        "run": read.run_view(RUN),
        "run_why": explain.why_run(RUN),
        "partition": read.partition_view(Partition("demo.flights", ("2013",), event, "o")),
        "message": messages.view(messages.Stored(Gate("demo.flights.~m", 1, 1, "enabled", 0), sent, None, 0)),
        "version": read.version_view(Version("demo.flights.clean", 1, {}, 0), None),
    }


@pytest.mark.parametrize(
    "name", ["namespace", "app", "workflow", "dataset", "schedule", "job", "run", "run_why", "message"]
)
def test_recorded_views_have_the_fields_of_the_service(name: str) -> None:
    assert set(getattr(recorded, name)()) <= set(real()[name])


def test_recorded_partitions_have_the_fields_of_the_service() -> None:
    assert set(recorded.partition(1)) <= set(real()["partition"])


def test_recorded_versions_have_the_fields_of_the_service() -> None:
    assert set(recorded.version(1)) == set(real()["version"])
