"""A namespace that moves to another installation: the source gives it up, and starts nothing of it any more (L14)."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.runs import launch
from tests.operations.archive.test_export import busy, elsewhere, rows
from tests.support.archives import exported, given_up, imported
from tests.support.fakes import APPLICATION
from tests.support.repairs import mended
from tests.support.schedules import partitions
from tests.support.world import EMR, World, day, flights

APPLICATIONS = {"wake_shards": 1, "history_shards": 1, "emr_run_limits": ((APPLICATION, 2),)}


def test_l14_the_source_starts_nothing_after_it_gave_up() -> None:
    world = busy()
    archive = exported(world, "demo")
    assert given_up(world, archive).closed
    calls = len(world.targets.emr.calls)
    world.upload(day(4))
    world.finish()
    world.pass_by("30m")
    assert len(world.targets.emr.calls) == calls
    assert not [key for key in rows(world) if "demo" in key[1] and key[0] != "RunsTable"]
    assert world.ports.rows.get(Definition, "namespace", "other") is not None


def test_l14_a_moved_namespace_goes_on_once_and_in_one_place() -> None:
    world = busy()
    archive = exported(world, "demo")
    given_up(world, archive)
    new = elsewhere(archive, world, copy=False)
    for _ in range(3):
        world.pass_by("1m")
        new.pass_by("1m")
        new.finish()
        new.settle()
    assert [run.state for run in new.runs("daily")] == ["SUCCEEDED", "SUCCEEDED"]
    assert len(new.runs("every")) == 1
    names = [made.name for made in world.targets.emr.runs.values()]
    assert len(names) == len(set(names))
    assert {run.run_id for run in world.runs("every")} == set()


def test_l14_shared_slots_of_what_moves_are_free_in_the_source() -> None:
    """Two runs hold the slots of an EMR application, and a third job waits for one. Another namespace gets a slot."""
    world = World(**APPLICATIONS)
    world.deploy(flights({"daily": partitions(by=["day"])}))
    other = {"workflow": "clean", "trigger": {"type": "event", "event": "go"}, "enabled": True}
    world.deploy({"workflows": {"clean": {"target": EMR}}, "schedules": {"s": other}}, namespace="other")
    for number in (1, 2, 3):
        world.upload(day(number))
    world.settle()
    world.post("go", namespace="other")
    world.settle()
    name = f"application:{APPLICATION}"
    state = world.limit_state(name)
    assert (state.active, state.waiters) == (2, 2)
    archive = exported(world, "demo")
    given_up(world, archive)
    state = world.limit_state(name)
    assert (state.active, state.waiters) == (0, 1)
    world.pass_by("2m")
    assert len(world.runs("other.flights.s")) == 1
    assert (world.limit_state(name).active, world.limit_state(name).waiters) == (1, 0)
    new = elsewhere(archive, world, copy=False)
    new.tick()
    new.finish()
    new.pass_by("2m")
    new.finish()
    new.pass_by("2m")
    assert [run.state for run in new.runs("daily")] == ["SUCCEEDED"] * 3
    state = new.limit_state(name)
    assert (state.active, state.waiters) == (0, 0)


def test_l14_a_giving_up_that_breaks_off_anywhere_goes_on() -> None:
    expected = None
    for number in range(1, 60):
        world = World(**APPLICATIONS)
        world.deploy(flights({"daily": partitions(by=["day"])}))
        for each in (1, 2, 3):
            world.upload(day(each))
        world.settle()
        archive = exported(world, "demo")
        left = [number]

        def fails(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise InterruptedError

        world.tables.after_write = fails
        try:
            given_up(world, archive)
            world.tables.after_write = lambda: None
        except InterruptedError:
            world.tables.after_write = lambda: None
            given_up(world, archive)
        assert world.limit_state(f"application:{APPLICATION}").active == 0
        after = set(rows(world))
        expected = expected or after
        assert after == expected
        if left[0] > 0:
            break
    assert number > 3


def test_l14_a_source_that_went_on_gives_nothing_up() -> None:
    world = busy()
    archive = exported(world, "demo")
    world.upload(day(4))
    before = rows(world)
    with pytest.raises(SluiceError, match="they have changed since") as refused:
        given_up(world, archive)
    assert "freeze the installation" in str(refused.value.hint)
    assert rows(world) == before


def test_l14_a_call_in_flight_starts_nothing_after_the_giving_up() -> None:
    """A run that is claimed and not called yet moves too: the source does not call, the new installation does."""
    world = busy()
    world.targets.emr.answers = []
    made = [run for run in world.runs("daily") if run.state == "STARTING"]
    archive = exported(world, "demo")
    given_up(world, archive)
    calls = len(world.targets.emr.calls)
    for run in made:
        launch.start(world.ports, run.run_id, run.attempt)
    assert len(world.targets.emr.calls) == calls
    new = World(wake_shards=1, history_shards=1)
    imported(new, archive, copy=False)
    assert [run.run_id for run in new.runs("daily")] == [run.run_id for run in [*made]]


def test_l14_a_mended_the_source_repeats_no_attempt() -> None:
    """A run has failed, and its next attempt has moved. The row of the run stays in the source as history."""
    world = World(wake_shards=1, history_shards=1)
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "10m"}}
    world.deploy(flights({"daily": partitions()}, clean=retried))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    archive = exported(world, "demo")
    given_up(world, archive)
    since = world.clock.now() - HOUR
    mended(world, since)
    assert [key for key in rows(world) if key[2].startswith("RETRY#")] == []
    new = elsewhere(archive, world, copy=False)
    for each in (world, new):
        each.pass_by("11m")
    assert [run.state for run in new.runs("daily")] == ["RETRYING", "STARTING"]


def test_l14_a_mended_the_source_marks_no_event() -> None:
    """The runs of what has moved stay as history; their marks of events have moved."""
    world = busy()
    world.finish()
    world.settle()
    archive = exported(world, "demo")
    given_up(world, archive)
    before = set(rows(world))
    since = world.clock.now() - HOUR
    found = mended(world, since)
    assert set(rows(world)) == before
    assert all(each.done.startswith("left alone: its schedule is gone") for each in found)
