"""A document that a deployment accepts does not fail when its schedules are enabled: each check of enable is one of
the deployment too, and of its dry run."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.flow.deploy import deploy
from chalicelib.flow.schedules import actions
from tests.flow.stored import everything, living, send
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, flights

# Each check of `references.check` and `past.check`, which enable makes: a disabled schedule that fails it.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "workflow": (at("0 5 * * *", "nothing"), "unknown_reference"),
    "dataset": (partitions(dataset="nothing"), "unknown_reference"),
    "keys of the dataset": (partitions(by=["hour"]), "invalid"),
    "upstream": (after("nothing", "clean"), "unknown_reference"),
    "upstream without a lifecycle": (after("notify", "clean"), "invalid"),
    "starter": (
        after("clean", "join", trigger={"type": "program_status", "workflow": "clean", "schedule": "nothing"}),
        "unknown_reference",
    ),
    "snapshots of files": (partitions(trigger={"type": "snapshot", "dataset": "flights"}), "invalid"),
    "policy": (at("0 5 * * *", policy="nothing"), "unknown_reference"),
    "pool": (at("0 5 * * *", pool="nothing"), "unknown_reference"),
    "slots of the pool": (at("0 5 * * *", pool="small", slots=3), "invalid"),
    "pool of a target without an end": (at("0 5 * * *", "notify", pool="small"), "invalid"),
    "constraint": (at("0 5 * * *", "notify", constraints=[{"type": "concurrency", "max": 1}]), "invalid"),
    "fresh upstream": (
        at("0 5 * * *", constraints=[{"type": "fresh", "workflows": ["nothing"], "within": "1h", "on_unmet": "wait"}]),
        "unknown_reference",
    ),
    "failures": (at("0 5 * * *", "notify", pause_after_failures=1), "invalid"),
    "notices": (
        at("0 5 * * *", notify=[{"to": {"type": "http", "url": "http://example.com/hook"}, "on": ["failed"]}]),
        "invalid",
    ),
    "cycle of one": (after("clean", "clean"), "cycle"),
    "due time": (at("", trigger={"type": "time", "due_time": "2020-01-01T00:00:00Z"}), "invalid"),
    "end": (at("", trigger={"type": "time", "expression": "@daily", "end": "2020-01-01T00:00:00Z"}), "invalid"),
    "ttl": (at("0 5 * * *", ttl="2020-01-01T00:00:00Z"), "invalid"),
}


def document(schedules: dict[str, Any], **workflows: Any) -> dict[str, Any]:
    return flights(schedules, **workflows) | {"pools": {"small": {"size": 2}}}


def refused(world: World, wrong: dict[str, Any]) -> SluiceError:
    before = everything(world)
    errors = []
    for act in (deploy.deploy, deploy.dry_run):
        by = ("tester",) if act is deploy.deploy else ()
        with pytest.raises(SluiceError) as caught:
            act(world.ports, "demo", "flights", App.model_validate(wrong), *by)
        errors.append(caught.value)
    assert everything(world) == before
    assert errors[0].to_dict() == errors[1].to_dict()
    return errors[0]


@pytest.mark.parametrize(("schedule", "code"), WRONG.values(), ids=list(WRONG))
def test_apply_makes_each_check_of_enable_for_disabled_schedules(schedule: dict[str, Any], code: str) -> None:
    world = World()
    world.deploy(document({}))
    error = refused(world, document({"nightly": schedule | {"enabled": False}}))
    assert error.code == code
    assert str(error.field).startswith("schedules.nightly.")


@pytest.mark.parametrize("enabled", [False, None])
def test_a_cycle_of_disabled_schedules_is_refused_by_apply(enabled: bool | None) -> None:
    world = World()
    world.deploy(document({}))
    wrong = document({"there": after("join", "clean"), "back": after("clean", "join")})
    for schedule in wrong["schedules"].values():
        schedule["enabled"] = enabled
    error = refused(world, wrong)
    assert (error.code, error.field) == ("cycle", "schedules.there.trigger")
    assert [each.field for each in error.each] == ["schedules.there.trigger", "schedules.back.trigger"]


def test_a_put_closes_no_cycle_with_a_disabled_schedule() -> None:
    """Only one of the two could be enabled, so the second put is refused; a change that breaks the cycle is not."""
    world = World()
    world.deploy(document({}))
    world.put("there", after("join", "clean", enabled=False))
    with pytest.raises(SluiceError) as caught:
        world.put("back", after("clean", "join", enabled=False))
    assert (caught.value.code, caught.value.field) == ("cycle", "trigger")
    assert caught.value.hint == (
        "schedule demo.flights.back and the disabled demo.flights.there would wait for each other, so only one of them "
        "could be enabled: trigger one of the two by time or by its data, or delete one"
    )
    world.put("there", at("0 5 * * *", enabled=False))
    world.put("back", after("clean", "join", enabled=False))
    for name in ("there", "back"):
        world.enable(name)


def test_an_app_that_has_had_a_cycle_for_long_stays_deployable() -> None:
    """One that was stored before deployments and puts checked disabled schedules."""
    world = World()
    there, back = after("join", "clean", enabled=False), after("clean", "join", enabled=False)
    world.deploy(document({}))
    world.put("there", there, checked=True)
    world.put("back", back, checked=True)
    report = send(world, document({"there": there, "back": back}))
    assert "schedule demo.flights.back" in report["kept"]


NAMES = ("one", "two", "three", "four")
triggers = st.recursive(
    st.one_of(
        st.just({"type": "time", "expression": "@daily"}),
        st.builds(
            lambda workflow, starter: (
                {"type": "program_status", "workflow": workflow} | ({"schedule": starter} if starter else {})
            ),
            st.sampled_from(["clean", "join", "third"]),
            st.one_of(st.none(), st.sampled_from(NAMES)),
        ),
    ),
    lambda inner: st.builds(
        lambda kind, parts: {"type": kind, "triggers": parts},
        st.sampled_from(["all", "any"]),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=3,
)
schedules = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        lambda workflow, trigger, enabled: {"workflow": workflow, "trigger": trigger, "enabled": enabled},
        st.sampled_from(["clean", "join", "third"]),
        triggers,
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
)


@settings(max_examples=60, deadline=None)
@given(schedules, st.data())
def test_what_a_deployment_accepts_can_be_enabled_in_any_order(sent: dict[str, Any], data: st.DataObject) -> None:
    world = World()
    try:
        world.deploy(document(sent, third={"target": EMR}))
    except SluiceError as error:
        assert {each.code for each in error.each} <= {"cycle", "unknown_reference"}
        return
    order = data.draw(st.sampled_from(list(permutations(sorted(sent)))))
    for name in order:
        actions.enable(world.ports, f"demo.flights.{name}", "tester")
    assert set(living(world).values()) == {"enabled"}
