"""A deployment is checked as a whole, against the catalog after the deployment, before anything is stored (L8, L17)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import Version
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy, plan, validate
from tests.flow.stored import everything, living, send, workflows
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, day, flights

ELSEWHERE = {"workflows": {"other": {"target": EMR}}}
FULL = "demo.flights.join"


def refused(world: World, document: dict[str, Any], **how: Any) -> SluiceError:
    """The error of a deployment that must leave everything as it was."""
    before = everything(world)
    with pytest.raises(SluiceError) as error:
        send(world, document, **how)
    assert everything(world) == before
    return error.value


def only_clean(*names: str, **schedules: Any) -> dict[str, Any]:
    """The app without the workflow `join`."""
    document = flights(dict.fromkeys(names, partitions()) | schedules)
    return {**document, "workflows": {"clean": {"target": EMR}}}


def test_l8_the_catalog_is_checked_as_it_will_be(world: World) -> None:
    """The checked catalog contains each part that is put, also a disabled one. It lacks a removed part: its row, its
    list entries, and its index rows."""
    world.deploy(flights({"goes": after("join", "clean"), "stays": after("join", "clean"), "turns": partitions()}))
    document = only_clean(stays=after("clean", "clean"), new=after("clean", "clean"), off=after("clean", "clean"))
    document["schedules"]["off"]["enabled"] = False
    made = plan.make_plan(world.ports, "demo.flights", App.model_validate(document), True)
    seen = validate.PlannedCatalog(world.ports, made)

    assert seen.get(Definition, "workflow", FULL) is None
    assert [row.name for row in seen.definitions("workflow", "demo.flights", 10, None).items] == ["demo.flights.clean"]
    assert seen.subscriptions(status_key(FULL, "COMPLETED"), 10, None).items == ()
    assert seen.subscriptions(partition_key("demo.flights"), 10, None).items == ()
    rows = seen.subscriptions(status_key("demo.flights.clean", "COMPLETED"), 10, None).items
    assert [row.schedule for row in rows] == ["demo.flights.stays", "demo.flights.new", "demo.flights.off"]
    version = seen.get(Version, rows[0].schedule, rows[0].version)
    assert version is not None
    assert version.definition["workflow"] == "demo.flights.clean"


@pytest.mark.parametrize("app", ["demo.orders", "sales.orders"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("schedule", [at("0 5 * * *", FULL), after(FULL, "other")])
def test_l8_a_workflow_that_another_app_needs_is_not_removed(
    world: World, app: str, enabled: bool, schedule: dict[str, Any]
) -> None:
    world.deploy(flights({"a": partitions()}))
    send(world, ELSEWHERE | {"schedules": {"needs": schedule | {"enabled": enabled}}}, app)

    error = refused(world, only_clean("a", "new"))

    assert (error.code, error.hint) == ("in_use", "keep it in the document, or change these first")
    assert error.message == f"expected a workflow that nothing refers to, got {FULL} used by schedule {app}.needs"
    assert refused(world, only_clean("a"), update_schedules=False).message == error.message
    with pytest.raises(SluiceError, match=f"used by schedule {app}.needs"):
        deploy.delete_app(world.ports, "demo.flights", "tester")


def test_l8_a_schedule_deleted_by_the_same_request_needs_nothing(world: World) -> None:
    world.deploy(flights({"a": partitions(), "chained": after("join", "clean")}))
    world.deploy(only_clean("a"))
    assert (workflows(world), set(living(world))) == (["clean"], {"a"})


def test_l8_a_cycle_closed_only_by_a_deleted_schedule_is_none(world: World) -> None:
    world.deploy(flights({"there": after("join", "clean")}))
    world.deploy(flights({"back": after("clean", "join")}))
    assert living(world) == {"back": "enabled"}


def test_l8_without_update_schedules_only_live_ones_make_cycles(world: World) -> None:
    """The document reverses a chain. Its schedules are not stored, so old and new ones together are no cycle."""
    world.deploy(flights({"there": after("join", "clean"), "back": partitions()}))
    turned = flights({"there": partitions(), "back": after("clean", "join")})
    assert send(world, turned, update_schedules=False)["untouched"] == [
        "schedule demo.flights.there",
        "schedule demo.flights.back",
    ]


def test_l8_part_too_large_to_store_is_refused_before_any_write(world: World) -> None:
    """It fits as it is sent; with its defaults written out it does not."""
    world.deploy(flights({}))
    size = store.MAX_DOCUMENT - 200
    wide = {"target": EMR, "properties": {"text": "x" * size}}
    assert (error := refused(world, flights({}, wide=wide))).field == "workflows.wide"
    assert error.code == "too_large"
    error = refused(world, flights({"wide": partitions(properties={"text": "x" * size})}))
    assert (error.code, error.field) == ("too_large", "schedules.wide")
    assert (error := refused(world, flights({}) | {"tags": {"text": "x" * 2 * size}})).field is None
    assert error.code == "too_large"


# -- an app is deleted with what it holds ----------------------------------------------------------------------------


def test_l8_deleting_an_app_deletes_its_schedules_and_workflows(world: World) -> None:
    world.deploy(flights({"a": partitions(2), "b": after("clean", "join", enabled=False)}))
    world.upload(day(1))
    world.settle()

    deploy.delete_app(world.ports, "demo.flights", "tester")
    world.upload(day(2))
    world.settle()

    assert (living(world), workflows(world)) == ({}, [])
    assert world.ports.rows.get(Definition, "app", "demo.flights") is None
    assert world.runs("a") == []
    assert [record.kind for record in world.records("a")] == ["DROPPED"]
    assert store.get(world.ports, "dataset", "demo.weather")
    store.delete(world.ports, "dataset", "demo.weather")


def test_l8_a_deleted_app_that_is_deployed_again_starts_over(world: World) -> None:
    world.deploy(flights({"a": partitions(2)}))
    world.upload(day(1))
    deploy.delete_app(world.ports, "demo.flights", "tester")
    world.clock.pass_by("1m")
    world.deploy(flights({"a": partitions(2)}))
    world.upload(day(2))
    world.settle()

    [job] = world.jobs("a")
    assert job.leaves["0"].count == 1


def test_l8_delete_of_app_version_fails_if_it_changed_meanwhile(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    version = store.get(world.ports, "app", "demo.flights").version
    world.deploy(flights({"b": partitions()}))
    before = everything(world)

    with pytest.raises(SluiceError) as error:
        deploy.delete_app(world.ports, "demo.flights", "tester", version)

    assert error.value.code == "changed_meanwhile"
    assert everything(world) == before
    deploy.delete_app(world.ports, "demo.flights", "tester", version + 1)
    with pytest.raises(SluiceError, match="no app named"):
        deploy.delete_app(world.ports, "demo.flights", "tester")
