"""A deployment makes an app equal to its document, and reports the result of each part (L8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutState
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy.plan import Report
from tests.flow.stored import everything, living, note, send, workflows
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, SQS, World, day, flights

NOTHING: Report = {"created": [], "replaced": [], "kept": [], "deleted": [], "untouched": []}
DATASETS = ["dataset demo.flights", "dataset demo.weather"]
BEFORE = flights({"a": partitions(), "b": partitions(2, "join"), "c": at("0 5 * * *", "notify")})
AFTER = flights({"a": partitions(), "b": partitions(3, "join"), "d": at("0 6 * * *", "notify")})


def schedules(*names: str) -> list[str]:
    return [f"schedule demo.flights.{name}" for name in names]


def without(workflow: str, document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "workflows": {name: each for name, each in document["workflows"].items() if name != workflow}}


# -- update_schedules: true ------------------------------------------------------------------------------------------


def test_l8_a_redeployment_replaces_changes_and_deletes_absent(world: World) -> None:
    world.deploy(BEFORE)
    a, b = (world.ports.rows.get(ScheduleState, f"demo.flights.{name}") for name in "ab")
    world.put("by-hand", partitions(workflow="join"))
    world.clock.pass_by("1m")

    report = world.deploy(without("extra", AFTER))

    assert report == NOTHING | {
        "created": schedules("d"),
        "replaced": schedules("b"),
        "kept": ["app demo.flights", *DATASETS]
        + [f"workflow demo.flights.{name}" for name in ("clean", "join", "notify")]
        + schedules("a"),
        "deleted": schedules("by-hand", "c"),
    }
    assert living(world) == {"a": "enabled", "b": "enabled", "d": "enabled"}
    assert world.ports.rows.get(ScheduleState, "demo.flights.a") == a
    assert world.ports.rows.get(ScheduleState, "demo.flights.b") != b


def test_l8_a_redeployment_keeps_gathered_events_or_records_drop(world: World) -> None:
    world.deploy(flights({"stays": partitions(2), "goes": partitions(2, "join")}))
    world.upload(day(1))
    world.deploy(flights({"stays": partitions(2)}))
    world.upload(day(2))
    world.settle()

    assert [run.schedule for run in world.runs("stays")] == ["demo.flights.stays"]
    assert [record.kind for record in world.records("goes")] == ["DROPPED"]
    assert (world.runs("goes"), world.jobs("goes")) == ([], [])


def test_l8_absent_workflows_are_deleted_and_datasets_are_kept(world: World) -> None:
    world.deploy(flights({"a": partitions()}, extra={"target": EMR}))

    report = world.deploy({"workflows": {"clean": {"target": SQS}}})

    gone = [f"workflow demo.flights.{name}" for name in ("extra", "join", "notify")]
    assert report["deleted"] == [*schedules("a"), *gone]
    assert (workflows(world), living(world)) == (["clean"], {})
    assert store.get(world.ports, "dataset", "demo.flights")


@pytest.mark.parametrize("mode", ["hold", "backlog", "drain", "completed"])
def test_l8_an_equal_document_keeps_paused_and_completed_modes(world: World, mode: Any) -> None:
    world.deploy(flights({"a": partitions()}))
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.a")
    assert schedule_state is not None
    world.ports.ledger.commit([PutState(replace(schedule_state, mode=mode), schedule_state)])

    assert schedules("a")[0] in world.deploy(flights({"a": partitions()}))["kept"]

    assert living(world) == {"a": mode}
    off = world.deploy(flights({"a": partitions(enabled=False)}))
    assert off["replaced"] == ([] if mode == "completed" else schedules("a"))


# -- update_schedules: false -----------------------------------------------------------------------------------------


def test_l8_with_update_schedules_false_no_schedule_is_touched(world: World) -> None:
    world.deploy(BEFORE)
    world.disable("c")
    world.put("by-hand", partitions(workflow="join"))
    before = {name: world.ports.rows.get(ScheduleState, f"demo.flights.{name}") for name in living(world)}
    world.clock.pass_by("1m")
    changed = AFTER | {"owner": "ops", "workflows": {**AFTER["workflows"], "clean": {"target": EMR, "priority": 9}}}

    report = send(world, changed, update_schedules=False)

    assert report["replaced"] == ["app demo.flights", "workflow demo.flights.clean"]
    assert report["untouched"] == schedules("b", "d", "by-hand", "c")
    assert report["kept"][-1:] == schedules("a")
    assert (report["created"], report["deleted"]) == ([], [])
    assert {name: world.ports.rows.get(ScheduleState, f"demo.flights.{name}") for name in living(world)} == before


def test_l8_without_update_schedules_only_orphaned_schedules_go(world: World) -> None:
    world.deploy(flights({"a": partitions(), "b": partitions(2, "join"), "c": partitions(3, "join")}))
    smaller = without("join", flights({"b": partitions(2, "clean")}))

    report = send(world, smaller, update_schedules=False)

    assert report["deleted"] == [*schedules("b", "c"), "workflow demo.flights.join"]
    assert report["untouched"] == schedules("a")
    assert living(world) == {"a": "enabled"}


def test_l8_a_workflow_that_a_kept_schedule_needs_is_not_removed(world: World) -> None:
    world.deploy(flights({"chained": after("join", "clean")}))
    before = everything(world)

    with pytest.raises(SluiceError) as refused:
        send(world, without("join", flights({})), update_schedules=False)

    assert refused.value.code == "in_use"
    assert "got demo.flights.join used by schedule demo.flights.chained" in refused.value.message
    assert everything(world) == before


def test_l8_the_first_deployment_of_an_app_creates_its_schedules(world: World) -> None:
    report = send(world, BEFORE, update_schedules=False)
    assert (report["untouched"], set(living(world))) == ([], {"a", "b", "c"})
    assert send(world, AFTER, update_schedules=False)["created"] == []


def test_l8_the_installation_default_applies_where_none_is_given(make_world: Any) -> None:
    world = make_world(update_schedules=False)
    send(world, BEFORE)
    assert send(world, AFTER)["untouched"] == schedules("b", "d", "c")
    assert send(world, AFTER, update_schedules=True)["deleted"] == schedules("c")


# -- the report ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("document", [BEFORE, AFTER, {}, without("join", flights({"a": partitions()}))])
def test_l8_a_dry_run_answers_the_same_and_stores_nothing(world: World, document: Any, update: bool) -> None:
    world.deploy(BEFORE)
    world.put("by-hand", at("0 7 * * *"))
    before = everything(world)

    previewed = send(world, document, update_schedules=update, dry_run=True)

    assert everything(world) == before
    assert send(world, document, update_schedules=update) == previewed
    answer = [name for names in previewed.values() for name in names]
    assert len(answer) == len(set(answer)), "a part has one action"


@pytest.mark.parametrize("update", [True, False])
def test_l8_the_same_request_again_changes_nothing(world: World, update: bool) -> None:
    world.deploy(BEFORE)
    send(world, AFTER, update_schedules=update)
    before = everything(world)
    world.clock.pass_by("1h")

    report = send(world, AFTER, update_schedules=update, by="somebody else")

    assert [report[action] for action in ("created", "replaced", "deleted")] == [[], [], []]
    assert everything(world) == before


# -- the deployed parts and the present ones ---------------------------------------------------------------------------


def test_l8_the_deployed_document_is_stored_beside_the_live_one(world: World) -> None:
    at_first = iso(world.clock.now())
    send(world, BEFORE | {"owner": "ops"}, by="alice")
    answer = note(world)
    assert {name: value for name, value in answer.items() if name != "uri"} == {
        "at": at_first,
        "by": "alice",
        "counts": {"datasets": 2, "workflows": 3, "schedules": 3},
        "update_schedules": True,
    }
    assert world.payloads.deployments == {answer["uri"]: BEFORE | {"owner": "ops"}}

    world.clock.pass_by("1h")
    world.put("a", partitions(7))
    world.delete("b")

    assert note(world) == answer
    assert world.payloads.deployments[answer["uri"]]["schedules"]["a"] == BEFORE["schedules"]["a"]


def test_l8_earlier_deployments_can_still_be_read(world: World) -> None:
    send(world, BEFORE)
    first = note(world)["uri"]
    send(world, AFTER)
    assert set(world.payloads.deployments) == {first, note(world)["uri"]}
    send(world, BEFORE)
    assert note(world)["uri"] == first


def test_l8_the_version_of_an_app_counts_changes_of_its_row(world: World) -> None:
    """One for its creation, one for the recorded document; then one for each deployment that changes something."""

    def version() -> int:
        return store.get(world.ports, "app", "demo.flights").version

    send(world, BEFORE)
    assert version() == 2
    send(world, BEFORE)
    assert version() == 2
    send(world, AFTER | {"owner": "ops"})
    assert version() == 3
