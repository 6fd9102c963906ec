"""Messages, large data and runs for a later time, for `test_crash_points.py` (L13, L16, W8)."""

from __future__ import annotations

from chalicelib.core.definitions import data
from chalicelib.core.ids import message_schedule
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.deploy import deploy
from chalicelib.flow.jobs import actions
from chalicelib.flow.schedules import messages
from tests.faults.dying import Scenario, passes, people
from tests.support.crash import done_before
from tests.support.schedules import at
from tests.support.world import SQS, World, flights

APP = "demo.flights"
LARGE = "x" * (data.MAX_INLINE + 1)


def _put_replace_delete(world: World) -> None:
    """One message is sent, one is replaced before it is due, one is deleted, and one is kept."""
    people(world, lambda: world.message("plain", due_time="40s", target=SQS, data=LARGE))
    people(world, lambda: world.message("twice", due_time="30s", target=SQS, data="old"))
    people(world, lambda: world.message("gone", due_time="50s", workflow="notify"))
    people(world, lambda: world.message("twice", due_time="70s", workflow="notify", data="new"))
    people(world, lambda: _delete(world, "gone"))
    passes(world, "40s", "20s", "20s")


def _delete(world: World, name: str) -> None:
    with done_before():
        messages.delete(world.ports, APP, name, "tester")


def _delete_app(world: World) -> None:
    """Deleting an app deletes its default target and the messages for it, in spite of kills."""
    people(world, lambda: world.deploy(flights({}) | {"default_target": SQS}, app="other"))
    people(world, lambda: world.message("daily", app="demo.other", due_time="30s", data="never"))
    people(world, lambda: _gone(world))
    passes(world, "40s", "40s")


def _gone(world: World) -> None:
    with done_before():
        deploy.delete_app(world.ports, "demo.other", "tester")


def _run_later(world: World) -> None:
    """Two requests for a later time: one is carried out, one is withdrawn."""
    kept, dropped = (world.clock.now() + span * SECOND for span in (30, 40))
    people(world, lambda: world.run_now("beat", "kept", kept))
    people(world, lambda: _withdrawn(world, world.run_now("beat", "dropped", dropped)))
    passes(world, "30s", "20s", "40s")


def _withdrawn(world: World, job_id: str) -> None:
    with done_before():
        actions.withdraw(world.ports, job_id, "tester")


def _new_data_alone(world: World) -> bool:
    texts = [answer.get("text") for answer in world.targets.queue.data if answer]
    return set(texts) <= {"new", None} and set(world.payloads.data) == {_reference(world)}


def _reference(world: World) -> str | None:
    return next((str(answer["uri"]) for answer in world.targets.queue.data if answer and "uri" in answer), None)


def _no_app(world: World) -> bool:
    schedule_state = world.ports.rows.get(ScheduleState, message_schedule("demo.other", "daily"))
    left = world.ports.rows.get(Definition, "workflow", message_schedule("demo.other", ""))
    return schedule_state is not None and schedule_state.mode == "deleted" and left is None


MESSAGES = {
    "messages that are put, replaced and deleted": Scenario(
        {},
        _put_replace_delete,
        [({"~plain": ["SUCCEEDED"], "~twice": ["SUCCEEDED"], "~gone": []}, 0)],
        messages=2,
        holds=_new_data_alone,
    ),
    "an app that goes with its messages": Scenario({}, _delete_app, [({"demo.other.~daily": []}, 0)], holds=_no_app),
    "runs for a later time": Scenario(
        {"beat": at("0 0 1 1 *", workflow="join")}, _run_later, [({"beat": ["SUCCEEDED"]}, 1)]
    ),
}
