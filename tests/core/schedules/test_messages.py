"""Messages as documents and as plans (L16): what may be sent, the schedule that a message becomes, and its writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import ids
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.instants import DAY, SECOND, iso
from chalicelib.core.rows.definition import Definition, Listing
from chalicelib.core.rows.schedule import HISTORY, ScheduleState, Timer, Version
from chalicelib.core.schedules import lifecycle, messages
from chalicelib.core.targets.sqs import SqsTarget
from chalicelib.core.writes import Delete, Put, PutState, Write
from tests.support.clock import NOON

NAME = "demo.flights.~ping"
QUEUE = SqsTarget(type="sqs", queue_url="https://sqs.example/q")


def schedule(**fields: Any) -> Schedule:
    return Message.model_validate(fields).to_schedule(NAME, NOON)


def planned(
    target: SqsTarget | None = None, schedule_state: ScheduleState | None = None, **fields: Any
) -> tuple[ScheduleState, list[Write]]:
    document = fields | ({"target": target.model_dump()} if target else {})
    return messages.put(NAME, schedule(**document), target, schedule_state, NOON, "ada")


def rows(plan: list[Write]) -> dict[str, Any]:
    return {type(write.row).__name__: write.row for write in plan if isinstance(write, Put)}


def refused(**fields: Any) -> SluiceError:
    try:
        Message.model_validate(fields)
    except ValidationError as error:
        return from_validation(error)
    with pytest.raises(SluiceError) as raised:
        planned(**fields)
    return raised.value


def test_l16_a_message_is_one_time_schedule_deleted_after_firing() -> None:
    made = schedule(schedule="@every 10s", due_time="10s", repeats=4, ttl="1h", zone="Europe/Paris", data={"a": 1})
    trigger = made.model_dump(mode="json")["trigger"]
    assert (trigger["due_time"], trigger["repeats"]) == (iso(NOON + 10 * SECOND), 4)
    assert trigger["zone"] == "Europe/Paris"
    assert (made.coalesce, made.when_done, made.constraints, made.data) == (False, "delete", (), {"a": 1})
    assert made.ends_at == NOON + 3600 * SECOND


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("@hourly", 3600),
        ("R2/PT3S", 3),
        ("30 0 12 * * *", 30),
        ({"minute": 5, "hour": 12}, 300),
        ({"Minute": "*/10"}, 600),
    ],
)
def test_l16_a_message_accepts_any_form_of_an_expression(expression: Any, first: int) -> None:
    [timer] = [row for name, row in rows(planned(schedule=expression)[1]).items() if name == "Timer"]
    assert min(timer.next.values()) == NOON + first * SECOND


@pytest.mark.parametrize(
    ("fields", "workflow"),
    [
        ({"target": QUEUE.model_dump()}, NAME),
        ({}, "demo.flights.~"),
        ({"workflow": "clean"}, "demo.flights.clean"),
        ({"workflow": "other.clean"}, "demo.other.clean"),
    ],
)
def test_l16_a_message_target_is_its_own_the_app_one_or_workflow(fields: dict[str, Any], workflow: str) -> None:
    assert schedule(due_time="1h", **fields).workflow == workflow


def test_l16_no_user_schedule_can_have_or_run_what_messages_have() -> None:
    for workflow in (NAME, "demo.flights.~", "~ping"):
        with pytest.raises(ValidationError):
            NewSchedule.model_validate({"workflow": workflow, "trigger": {"type": "time", "expression": "@hourly"}})
    assert ids.is_of_message(NAME)
    assert ids.is_of_message(ids.default_workflow("demo.flights"))
    assert not ids.is_of_message("demo.flights.clean")
    assert ids.message_schedule("demo.flights", "") == ids.default_workflow("demo.flights")  # and no name is empty


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({}, "schedule", "expected a schedule, a due_time, or both, got 'neither'"),
        ({"schedule": "every day"}, "schedule", "expected"),
        ({"schedule": "@daily", "zone": "Mars"}, "zone", "expected a time zone"),
        ({"due_time": "soon"}, "due_time", "expected an RFC 3339 instant"),
        ({"due_time": "1h", "ttl": "x"}, "ttl", "expected an RFC 3339 instant"),
        ({"due_time": "1h", "repeats": 2}, "repeats", "expected repeats only with"),
        ({"schedule": "@daily", "repeats": 0}, "repeats", "expected greater than or equal to 1"),
        ({"due_time": "1h", "workflow": "a", "target": QUEUE.model_dump()}, "workflow", "expected either a target"),
        ({"due_time": iso(NOON - SECOND)}, "due_time", "expected a message that is due at"),
        ({"due_time": "1h", "ttl": "10m"}, "due_time", "expected a message that is due at"),
        ({"due_time": "1h", "data_uri": "s3://b/k"}, "data_uri", "expected data, or a reference inside it"),
        ({"due_time": "1h", "content_type": "a/b"}, "content_type", "expected data for the content type"),
        ({"due_time": "1h", "trigger": {}}, "trigger", "unknown field 'trigger'"),
    ],
)
def test_l16_an_invalid_message_is_refused_with_a_message_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    error = refused(**fields)
    assert error.field == field
    assert error.message.startswith(message)


def test_l16_a_registration_writes_all_rows_of_a_message() -> None:
    schedule_state, plan = planned(QUEUE, schedule="@every 10s")
    assert len(plan) == 5
    written = rows(plan)
    assert written["Listing"] == Listing(NAME, NAME)
    assert written["Timer"].wake_at == NOON + 10 * SECOND
    assert written["Definition"].document["target"] == QUEUE.model_dump(mode="json")
    assert (schedule_state.mode, schedule_state.version, schedule_state.generation) == ("enabled", 1, NOON)
    assert len(planned(schedule="@every 10s")[1]) == 4  # the app's target exists already


def test_l16_a_replaced_message_closes_its_generation_by_state() -> None:
    schedule_state, _ = planned(QUEUE, schedule="@every 10s")
    after, plan = planned(schedule_state=schedule_state, schedule="@every 10s")
    assert after.generation > schedule_state.generation
    assert (after.version, after.rev) == (2, 2)
    assert isinstance(plan[0], PutState)
    assert plan[0].over == schedule_state
    gone = [write.row for write in plan if isinstance(write, Delete)]
    assert [(type(row), row.name) for row in gone if isinstance(row, Definition)] == [(Definition, NAME)]
    assert len(plan) == 5


def test_l16_a_finished_message_leaves_a_state_that_expires() -> None:
    schedule_state, _ = planned(QUEUE, due_time="1h")
    made = schedule(due_time="1h", target=QUEUE.model_dump())
    _, plan = lifecycle.delete(schedule_state, made, NOON, "ada")
    [put] = [write for write in plan if isinstance(write, PutState)]
    assert (put.schedule_state.mode, put.schedule_state.expires_at) == ("deleted", NOON + HISTORY)
    gone = {type(write.row) for write in plan if isinstance(write, Delete)}
    assert gone == {Listing, Timer, Definition}
    assert len(plan) == 4
    again, _ = messages.put(NAME, made, QUEUE, put.schedule_state, NOON + 1, "ada")
    assert again.expires_at is None


def test_l16_a_definition_with_a_known_end_is_kept_like_its_runs() -> None:
    def kept(**fields: Any) -> int | None:
        version: Version = rows(planned(**fields)[1])["Version"]
        return version.expires_at

    assert kept(due_time="1d") == NOON + DAY + HISTORY
    assert kept(schedule="@every 1h", ttl="2d") == NOON + 2 * DAY + HISTORY
    assert kept(schedule="@every 1h") is None


def test_l16_the_state_of_a_deleted_schedule_stays() -> None:
    made = schedule(due_time="1h").model_copy(update={"workflow": "demo.flights.ping"})
    schedule_state = replace(planned(due_time="1h")[0], schedule="demo.flights.ping")
    _, plan = lifecycle.delete(schedule_state, made, NOON, "ada")
    assert [write.schedule_state.expires_at for write in plan if isinstance(write, PutState)] == [None]
