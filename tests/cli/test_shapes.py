"""The recorded views have the fields of the service's answers, so the other tests use real shapes."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from chalicelib.core import documents
from chalicelib.core.definitions import dataset as definition_dataset
from chalicelib.core.definitions import schedule as definition_schedule
from chalicelib.core.definitions import workflow
from chalicelib.core.definitions.message import Message
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event, Partition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run, StartRequest
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs.fires import EventState
from chalicelib.core.targets.emr_serverless import EmrServerlessTarget
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import explain, fires, queues, views
from sluice import states
from tests.cli import recorded
from tests.support.reasons import says

TRIGGER = {"type": "partition", "dataset": "demo.flights"}
REQUEST = StartRequest({}, {}, "s3://control/context/x.json", "token", "name")
RUN = Run("r", 1, "s", 1, "w", "RUNNING", REQUEST, (), says("due"), 0, 0, 5, 1, "fire")


def document(made: documents.Described) -> dict[str, Any]:
    return made.model_dump(mode="json")


def definition(kind: Any, made: documents.Described) -> dict[str, Any]:
    return views.definition_view(Definition(kind, "demo", document(made), 1, 0))


def real() -> dict[str, dict[str, Any]]:
    entry = "s3://lake/code/clean_flights.py"
    target = EmrServerlessTarget(type="emr_serverless", entry_point=entry)
    dataset = definition_dataset.Dataset(bucket="lake", prefix="raw/flights/", keys=("year",))
    schedule = definition_schedule.Schedule.model_validate({"workflow": "clean_flights", "trigger": TRIGGER})
    sent = Message(due_time="1h", data={}).to_schedule("demo.flights.~m", 0)
    event = Event("e", "partition", "k", 0, 0, {"year": "2013"}, "demo.flights", "s3://lake/")
    return {
        "namespace": definition("namespace", workflow.Namespace()),
        "app": definition("app", workflow.Namespace()),
        "workflow": definition("workflow", workflow.Workflow(target=target)),
        "dataset": definition("dataset", dataset),
        "schedule": views.schedule_view(ScheduleState("demo.flights.clean", 1, 1, "enabled", 0), schedule),
        "job": queues.waiting_view(Job("s", 1, "GATHERING", "j", "gathering", "PENDING_TRIGGER", 0), None, ()),
        "run": views.run_view(RUN),
        "run_why": explain.why_run(RUN),
        "partition": views.partition_view(Partition("demo.flights", ("2013",), event, "o"), dataset),
        "message": messages.view(messages.Stored(ScheduleState("demo.flights.~m", 1, 1, "enabled", 0), sent, None, 0)),
        "version": views.version_view(Version("demo.flights.clean", 1, {}, 0), None),
    }


@pytest.mark.parametrize(
    "name", ["namespace", "app", "workflow", "dataset", "schedule", "job", "run", "run_why", "message"]
)
def test_recorded_views_have_the_fields_of_the_service(name: str) -> None:
    assert set(getattr(recorded, name)()) <= set(real()[name])


def test_recorded_partitions_have_the_fields_of_the_service() -> None:
    assert set(recorded.partition(1)) <= set(real()["partition"])


def test_recorded_fires_have_the_fields_of_the_service() -> None:
    assert set(recorded.fire()) == set(get_type_hints(fires.StateOfFireView))
    assert set(recorded.fire_event(1)) == set(get_type_hints(fires.EventInFireView))
    assert set(recorded.sends()) == set(get_type_hints(views.SendsView))
    assert set(recorded.fire_run()) <= set(real()["run"])
    assert set(states.OF_EVENTS) == set(get_args(EventState))


def test_recorded_versions_have_the_fields_of_the_service() -> None:
    assert set(recorded.version(1)) == set(real()["version"])
