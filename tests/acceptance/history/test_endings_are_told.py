"""What ended without a run, or was cancelled, is shown with reason and instant by `why`, records and lists (C14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, iso
from chalicelib.flow.jobs import actions
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.schedules import pauses
from chalicelib.flow.views import lists
from chalicelib.flow.views.chosen import Chosen
from tests.acceptance.words import all_of, concurrency, day, doze, event, on, partition, time, why_schedule, window
from tests.support.answers import explain, views
from tests.support.clock import NOON
from tests.support.world import EMR, World, flights, full

T = TypeVar("T")
ADA = "arn:aws:iam::123456789012:user/ada"
TICK = time("*/10 * * * *")
HALF = all_of(partition(), event("go"))


def world_of(**schedule: object) -> World:
    world = World()
    world.deploy(flights({"a": {"workflow": "clean", "enabled": True, **schedule}}))
    return world


def aborted_by_its_timeout() -> World:
    world = world_of(trigger=HALF, timeout={"after": "1h", "then": "abort"})
    world.upload(day(1))
    doze(world, "61m")
    return world


def aborted_by_a_constraint() -> World:
    world = world_of(trigger=TICK, constraints=[concurrency(1, "abort")])
    doze(world, "21m")
    return world


def aborted_by_a_person() -> World:
    world = world_of(trigger=partition(), constraints=[{"type": "approval", "people": [ADA]}])
    world.upload(day(1))
    world.settle()
    actions.refuse(world.ports, world.jobs("a")[0].job_id, ADA, "not today")
    return world


def expired() -> World:
    world = world_of(trigger=HALF | {"within": "30m"})
    world.upload(day(1))
    doze(world, "31m")
    return world


def skipped_on_request() -> World:
    world = world_of(trigger=TICK)
    pauses.skip(world.ports, full("a"), NOON + 10 * MINUTE, "tester")
    doze(world, "11m")
    return world


def skipped_in_an_outage() -> World:
    world = world_of(trigger=TICK, catch_up="latest")
    world.clock.pass_by("1h5m")
    world.tick()
    world.settle()
    return world


def dropped_by_a_disable() -> World:
    world = world_of(trigger=HALF)
    world.upload(day(1))
    world.settle()
    world.disable("a")
    world.settle()
    return world


def dropped_by_a_delete() -> World:
    world = world_of(trigger=HALF)
    world.upload(day(1))
    world.settle()
    world.delete("a")
    world.settle()
    return world


def dropped_by_a_person() -> World:
    world = world_of(trigger=HALF)
    world.upload(day(1))
    world.settle()
    actions.withdraw(world.ports, world.jobs("a")[0].job_id, "ada")
    return world


def dropped_by_a_drain() -> World:
    world = world_of(trigger=HALF)
    world.upload(day(1))
    world.settle()
    world.pause("a", "drain")
    world.settle()
    return world


def coalesced() -> World:
    world = world_of(trigger=TICK, constraints=[window("22:00", "23:00")])
    doze(world, "21m")
    return world


ENDINGS: dict[Callable[[], World], tuple[str, str]] = {
    aborted_by_its_timeout: ("ABORTED", "1 event go"),
    aborted_by_a_constraint: ("ABORTED", "1 of 1"),
    aborted_by_a_person: ("ABORTED", f"refused by {ADA} at 2026-03-02T12:00:00.000Z: not today"),
    expired: ("EXPIRED", "not completed within 30m"),
    skipped_on_request: ("SKIPPED", "the occurrence of 2026-03-02T12:10:00.000Z was skipped on request"),
    skipped_in_an_outage: ("SKIPPED", "missed"),
    dropped_by_a_disable: ("DROPPED", "the schedule was disabled"),
    dropped_by_a_delete: ("DROPPED", "the schedule was deleted"),
    dropped_by_a_person: ("DROPPED", "cancelled by ada"),
    dropped_by_a_drain: ("DROPPED", "paused to drain"),
    coalesced: ("COALESCED", "which was still waiting"),
}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.__name__)
def test_c14_work_that_never_ran_is_shown_with_reason_and_time(ending: Callable[[], World]) -> None:
    world, (kind, words) = ending(), ENDINGS[ending]
    record = world.records("a")[0]
    assert (record.kind, words in record.reason.text) == (kind, True), record.reason.text
    shown = views.record_view(record)
    assert (shown["reason"], shown["at"]) == (record.reason.text, iso(record.recorded_at))

    answer = explain.why_work(world.ports, record.id)
    assert (answer["run_id"], answer["state"], answer["why"], answer["at"]) == (
        record.id,
        kind,
        record.reason.text,
        shown["at"],
    )
    for read in (lambda: explain.lookup.find_run(world.ports, record.id), lambda: _job(world, record.id)):
        with pytest.raises(SluiceError) as refused:
            read()
        assert refused.value.hint == f"it was {kind.lower()} at {shown['at']}: {record.reason.text}"
    listed = _listed(world, world.ports.runs.records)
    assert record in listed
    if ending is not dropped_by_a_delete:
        assert shown in why_schedule(world, "a")["ended"]


def _listed(world: World, read: lists.ReadOf[T]) -> tuple[T, ...]:
    """The newest rows of the namespace, as its lists have them."""
    return tuple(lists.of_namespace(read, "demo", Chosen().days(world.clock.now()), 50, None).items)


def _job(world: World, job_id: str) -> object:
    return explain.lookup.find_job(world.ports, job_id)


def test_c14_the_last_ending_is_in_the_sentence_of_a_schedule() -> None:
    world = aborted_by_its_timeout()
    [record] = world.records("a")
    why = why_schedule(world, "a")["why"]
    assert f"the last work was aborted at {iso(record.recorded_at)}: {record.reason.text}" in why
    world.upload(day(2))
    world.post("go")
    world.settle()
    assert len(world.runs("a")) == 1
    assert "the last work" not in why_schedule(world, "a")["why"], "what ran since is later"


def test_c14_an_ending_does_not_hide_what_a_job_waits_for() -> None:
    world = aborted_by_its_timeout()
    world.upload(day(2))
    world.settle()
    answer = why_schedule(world, "a")
    assert answer["why"].startswith("waits for 1 event go")
    assert [view["kind"] for view in answer["ended"]] == ["ABORTED"]


def test_c14_a_cancelled_run_is_shown_with_reason_and_time() -> None:
    world = World()
    world.deploy(flights({"a": on(partition(), "once")}, once={"target": EMR}))
    world.upload(day(1))
    world.settle()
    [run] = world.runs("a")
    run_actions.cancel(world.ports, run.run_id, "ada")
    world.settle()
    world.pass_by("2m")
    [run] = world.runs("a")
    assert (run.state, run.reason.text) == ("CANCELLED", "cancelled by ada")
    ended = views.run_view(run)["ended_at"]
    answer = explain.why_work(world.ports, run.run_id)
    assert (answer["state"], answer["why"], answer["at"]) == ("CANCELLED", run.reason.text, ended)
    about = why_schedule(world, "a")
    assert f"the last work was cancelled at {ended}: cancelled by ada" in about["why"]
    assert about["ended"] == [
        {
            "id": run.run_id,
            "kind": "CANCELLED",
            "schedule": full("a"),
            "reason": run.reason.text,
            "code": "cancelled",
            "at": ended,
            "count": 1,
        }
    ]
    listed = _listed(world, world.ports.runs.runs)
    assert [(each.state, each.reason.text) for each in listed] == [("CANCELLED", "cancelled by ada")]


def test_c14_the_last_five_endings_are_told_newest_first() -> None:
    world = aborted_by_a_constraint()
    doze(world, "1h10m")
    answer = why_schedule(world, "a")["ended"]
    assert len(world.records("a")) > 5
    assert [view["id"] for view in answer] == [record.id for record in reversed(world.records("a"))][:5]
