"""Deleting a document: refused while a schedule refers to it, and never of a document that was just put again (L17)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.ports import Kind
from tests.flow.stored import everything, living, send
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, flights

OTHER = {"workflows": {"other": {"target": EMR}}}
WORKFLOW, DATASET = "demo.flights.clean", "demo.flights"


def refused(world: World, kind: Kind, name: str) -> SluiceError:
    before = everything(world)
    with pytest.raises(SluiceError) as error:
        store.delete(world.ports, kind, name)
    assert everything(world) == before
    return error.value


@pytest.mark.parametrize("app", ["demo.flights", "demo.orders", "sales.orders"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    ("kind", "name", "schedule"),
    [
        ("workflow", WORKFLOW, at("0 5 * * *", WORKFLOW)),
        ("workflow", WORKFLOW, after(WORKFLOW, "other")),
        ("dataset", DATASET, partitions(1, "other", DATASET)),
        ("dataset", DATASET, {**partitions(1, "other", DATASET), "trigger": {"type": "any", "triggers": [
            {"type": "time", "expression": "0 5 * * *"},
            {"type": "all", "triggers": [{"type": "partition", "dataset": DATASET}]}]}}),
    ],
)  # fmt: skip
def test_l17_a_part_used_by_a_schedule_of_any_app_is_not_deleted(
    world: World, app: str, enabled: bool, kind: Kind, name: str, schedule: dict[str, Any]
) -> None:
    world.deploy(flights({}, **OTHER["workflows"]))
    document = flights({}, **OTHER["workflows"]) if app == "demo.flights" else OTHER
    send(world, document | {"schedules": {"needs": schedule | {"enabled": enabled}}}, app)

    error = refused(world, kind, name)

    assert error.code == "in_use"
    assert error.message == f"expected a {kind} that nothing refers to, got one used by schedule {app}.needs"


def test_l17_many_referrers_are_counted_and_some_are_named(world: World) -> None:
    world.deploy(flights({f"s{number}": at("0 5 * * *") for number in range(7)}))
    message = refused(world, "workflow", WORKFLOW).message
    assert message.endswith("schedule demo.flights.s3, schedule demo.flights.s4 and 2 more")


def test_l17_a_part_used_only_by_deleted_schedule_can_be_deleted(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    world.delete("a")
    store.delete(world.ports, "workflow", WORKFLOW)
    store.delete(world.ports, "dataset", DATASET)
    assert world.upload("raw/flights/year=2013/month=1/day=1/_SUCCESS").startswith("no dataset")


def test_l17_a_workflow_of_the_same_short_name_is_another(world: World) -> None:
    world.deploy(flights({}))
    send(world, {"workflows": {"clean": {"target": EMR}}, "schedules": {"a": at("0 5 * * *")}}, "demo.orders")
    store.delete(world.ports, "workflow", WORKFLOW)


def test_l17_with_too_many_schedules_the_index_finds_the_waiting(world: World) -> None:
    world.deploy(flights({}))
    send(world, OTHER | {"schedules": {"waits": after(WORKFLOW, "other", "FAILED")}}, "sales.orders")
    send(world, OTHER | {"schedules": {"gathers": partitions(1, "other", DATASET)}}, "sales.stock")
    found = store.referrers(world.ports, [WORKFLOW, DATASET], elsewhere=0)
    assert {name: [each.text for each in left] for name, left in found.items()} == {
        WORKFLOW: ["schedule sales.orders.waits"],
        DATASET: ["schedule sales.stock.gathers"],
    }


def test_l17_an_empty_namespace_can_be_deleted(world: World) -> None:
    world.deploy({"workflows": {"clean": {"target": EMR}}})
    assert "used by demo.flights" in refused(world, "namespace", "demo").message
    assert "an app that nothing refers to, got one used by demo.flights.clean" in refused(world, "app", DATASET).message
    deploy.delete_app(world.ports, "demo.flights", "tester")
    store.delete(world.ports, "namespace", "demo")


# -- two users at once -----------------------------------------------------------------------------------------------


def interrupted(world: World, meanwhile: Callable[[], Any]) -> Any:
    """A catalog that calls a function the first time that a flow reads the schedules of an app."""
    catalog: Any = copy(world.ports.catalog)
    pending = [meanwhile]

    def schedules(*args: Any, **kwargs: Any) -> Any:
        while pending:
            pending.pop()()
        return world.ports.catalog.schedules(*args, **kwargs)

    catalog.schedules = schedules
    return catalog


@pytest.mark.parametrize(("kind", "name"), [("workflow", WORKFLOW), ("dataset", DATASET)])
def test_l17_a_delete_does_not_remove_what_was_just_replaced(world: World, kind: Kind, name: str) -> None:
    world.deploy(flights({}))
    new = {**store.get(world.ports, kind, name).document, "owner": "somebody else"}
    put = interrupted(world, lambda: store.put(world.ports, kind, name, new, "somebody else"))

    with pytest.raises(SluiceError) as error:
        store.delete(world.with_ports(catalog=put), kind, name)

    assert error.value.code == "changed_meanwhile"
    assert store.get(world.ports, kind, name).document == new


def test_l17_a_delete_of_a_name_deleted_meanwhile_succeeds(world: World) -> None:
    world.deploy(flights({}))
    gone = interrupted(world, lambda: store.delete(world.ports, "workflow", WORKFLOW))
    store.delete(world.with_ports(catalog=gone), "workflow", WORKFLOW)
    assert world.ports.rows.get(Definition, "workflow", WORKFLOW) is None


def test_l8_an_app_that_is_deployed_while_it_is_deleted_stays(world: World) -> None:
    """The deletion has listed the app's schedules, and then the deployment comes. The app's row is no longer the one
    that was read.
    """
    document = flights({"a": at("0 5 * * *")})
    world.deploy(document)
    put = interrupted(world, lambda: world.deploy(document | {"owner": "somebody else"}))

    with pytest.raises(SluiceError) as error:
        deploy.delete_app(world.with_ports(catalog=put), "demo.flights", "tester")

    assert error.value.code == "changed_meanwhile"
    assert store.get(world.ports, "app", "demo.flights").document["owner"] == "somebody else"
    world.deploy(document)
    assert living(world) == {"a": "enabled"}


# -- what a schedule names -------------------------------------------------------------------------------------------


def test_l17_every_kind_of_leaf_and_constraint_is_searched() -> None:
    """The search uses the JSON of a document, so it covers later kinds as well."""
    quiet = {"type": "quiet", "of": {"type": "partition", "dataset": "demo.one"}, "after": "5m"}
    absent = {"type": "absent", "of": {"type": "program_status", "workflow": "demo.app.up"}, "within": "1h"}
    size = {"type": "size", "dataset": "demo.two", "bytes": 100}
    document = {
        "workflow": "demo.app.run",
        "trigger": {"type": "all", "triggers": [quiet, {"type": "any", "triggers": [absent, size]}]},
        "constraints": [{"type": "fresh", "workflows": ["demo.app.fresh"], "within": "1d", "on_unmet": "wait"}],
    }
    names = {"demo.one", "demo.two", "demo.app.up", "demo.app.run", "demo.app.fresh"}
    assert store.named(document) == names


def test_l17_text_of_the_user_refers_to_nothing() -> None:
    """Properties, tags and the pattern of an event may contain "workflow" with any meaning."""
    words = {"workflow": "demo.app.w", "dataset": "demo.d", "workflows": ["demo.app.v"]}
    pattern = {"type": "event", "event": "orders.closed", "pattern": {"detail": words, "workflow": ["x"]}}
    document = {"workflow": "demo.app.run", "properties": words, "tags": {"dataset": "d"}, "trigger": pattern}
    assert store.named(document) == {"demo.app.run"}


LEAVES = st.one_of(
    st.sampled_from("abc").map(lambda name: {"type": "partition", "dataset": f"demo.{name}"}),
    st.sampled_from("abc").map(lambda name: {"type": "program_status", "workflow": f"demo.app.{name}"}),
    st.just({"type": "time", "expression": "0 5 * * *"}),
)
TREES = st.recursive(
    LEAVES,
    lambda children: st.builds(
        lambda kind, parts: {"type": kind, "triggers": parts},
        st.sampled_from(["all", "any"]),
        st.lists(children, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@given(TREES)
def test_l17_a_schedule_refers_to_its_leaves_and_its_workflow(tree: dict[str, Any]) -> None:
    def leaves(node: dict[str, Any]) -> list[str]:
        if "triggers" in node:
            return [name for part in node["triggers"] for name in leaves(part)]
        return [node[key] for key in ("dataset", "workflow") if key in node]

    schedule = NewSchedule.model_validate({"workflow": "run", "trigger": tree}).definition().resolved("demo", "app")
    assert store.named(schedule.model_dump(mode="json")) == {"demo.app.run", *leaves(tree)}
