"""One action on many schedules: those with a tag, of a workflow, in a state (L18)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.schedules import actions, bulk
from chalicelib.flow.schedules.bulk import Filters, Tag
from chalicelib.ports import Ports
from chalicelib.web.bodies import Bulk
from tests.flow.stored import living, send
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, flights

APP = "demo.flights"
EVERY = Filters()


def deployed(world: World) -> None:
    world.deploy(
        flights(
            {
                "a": partitions(tags={"team": "a", "tier": "gold"}),
                "b": partitions(workflow="join", tags={"team": "b"}),
                "c": at("0 5 * * *", "notify", enabled=False, tags={"team": "a"}),
                "d": at("0 6 * * *", "notify", tags={"team": ""}),
                "e": at("0 7 * * *", "join"),
            }
        )
    )


def names(*short: str) -> list[str]:
    return [f"demo.flights.{name}" for name in short]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (EVERY, "abcde"),
        (Filters(tag=("team", "a")), "ac"),
        (Filters(tag=("team", None)), "abcd"),
        (Filters(tag=("team", "")), "d"),
        (Filters(tag=("squad", None)), ""),
        (Filters(workflow="demo.flights.join"), "be"),
        (Filters(workflow="demo.orders.join"), ""),
        (Filters(state="disabled"), "c"),
        (Filters(state="hold"), ""),
        (Filters(tag=("team", "a"), state="enabled"), "a"),
        (Filters(tag=("team", None), workflow="demo.flights.notify", state="enabled"), "d"),
    ],
)
def test_l18_schedules_are_selected_by_tag_workflow_and_state(world: World, wanted: Filters, expected: str) -> None:
    deployed(world)
    found = bulk.select(world.ports, APP, wanted)
    assert [schedule_state.schedule for schedule_state, _ in found] == names(*expected)
    assert all(schedule.workflow.startswith("demo.flights.") for _, schedule in found)


def test_l18_a_deleted_schedule_is_not_selected(world: World) -> None:
    deployed(world)
    world.delete("a")
    assert [
        schedule_state.schedule for schedule_state, _ in bulk.select(world.ports, APP, Filters(tag=("team", "a")))
    ] == names("c")


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("team=a", Tag("team", "a")),
        ("team", Tag("team", None)),
        ("team=", Tag("team", "")),
        ("a=b=c", Tag("a", "b=c")),
    ],
)
def test_l18_a_tag_may_have_a_value_or_none(text: str, tag: Tag) -> None:
    assert bulk.parse_tag(text) == tag


@pytest.mark.parametrize("text", ["", "=a"])
def test_l18_a_tag_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(SluiceError) as error:
        bulk.parse_tag(text)
    assert error.value.to_dict()["error"] == {
        "code": "invalid",
        "message": f"expected a tag such as team=a, or just team, got {text!r}",
        "field": "tag",
        "hint": "write key=value, or the key alone",
    }


def test_l18_selected_schedules_are_disabled_and_enabled_again(world: World) -> None:
    deployed(world)
    team = Filters(tag=("team", "a"))

    assert bulk.act(world.ports, APP, "disable", team, "ops") == {
        "changed": names("a"),
        "unchanged": names("c"),
        "failed": [],
        "dry_run": False,
    }
    assert living(world) == {"a": "disabled", "b": "enabled", "c": "disabled", "d": "enabled", "e": "enabled"}
    assert bulk.act(world.ports, APP, "enable", team, "ops")["changed"] == names("a", "c")
    assert bulk.act(world.ports, APP, "enable", team, "ops")["unchanged"] == names("a", "c")
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.a")
    assert schedule_state is not None
    assert schedule_state.by == "ops"


def test_l18_another_app_with_the_same_tag_is_unaffected(world: World) -> None:
    deployed(world)
    orders = {"workflows": {"ship": {"target": EMR}}, "schedules": {"a": at("0 5 * * *", "ship", tags={"team": "a"})}}
    send(world, orders, "demo.orders")
    bulk.act(world.ports, APP, "disable", Filters(tag=("team", "a")), "ops")
    assert living(world, "demo.orders") == {"a": "enabled"}


def test_l18_a_failing_schedule_affects_no_other(world: World) -> None:
    """Enabling the fourth would close a cycle; the two after it are enabled all the same."""
    world.deploy(flights({name: at("0 5 * * *", enabled=False) for name in ("a", "y", "z")}))
    circle = {"m": after("join", "clean", enabled=False), "n": after("clean", "join", enabled=False)}
    for name, document in circle.items():
        world.put(name, document, checked=True)  # as before puts checked disabled schedules

    outcome = bulk.act(world.ports, APP, "enable", EVERY, "ops")

    assert outcome["changed"] == names("a", "m", "y", "z")
    [failed] = outcome["failed"]
    assert (failed["name"], failed["error"]["code"]) == ("demo.flights.n", "cycle")
    assert set(failed["error"]) == {"code", "message", "field", "hint"}
    assert living(world)["n"] == "disabled"


def test_l18_an_internal_error_of_one_item_affects_no_other(world: World) -> None:
    deployed(world)

    def disable(ports: Ports, name: str, by: str) -> ScheduleState:
        if name.endswith(".b"):
            raise ConnectionError("a secret of the network")
        return actions.disable(ports, name, by)

    outcome = bulk.act(world.ports, APP, "disable", EVERY, "ops", {"disable": disable})

    assert outcome["changed"] == names("a", "d", "e")
    [failed] = outcome["failed"]
    assert (failed["name"], failed["error"]["code"]) == ("demo.flights.b", "internal")
    assert "secret" not in str(failed)


def test_l18_an_item_deleted_meanwhile_is_reported_as_failed(world: World) -> None:
    deployed(world)

    def delete_then_disable(ports: Ports, name: str, by: str) -> ScheduleState:
        if name.endswith(".a"):
            actions.delete(ports, name, "somebody else")
        return actions.disable(ports, name, by)

    outcome = bulk.act(world.ports, APP, "disable", EVERY, "ops", {"disable": delete_then_disable})
    assert [(each["name"], each["error"]["code"]) for each in outcome["failed"]] == [("demo.flights.a", "not_found")]


def test_l18_an_unknown_action_is_refused(world: World) -> None:
    with pytest.raises(SluiceError, match=r"expected one of enable, disable.*, got 'destroy'"):
        bulk.act(world.ports, APP, "destroy", EVERY, "ops")


def test_l18_the_api_accepts_exactly_the_known_actions() -> None:
    action: Any = Bulk.model_json_schema()["properties"]["action"]
    assert action["enum"] == list(bulk.ACTIONS)
