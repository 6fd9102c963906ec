"""Grants between namespaces: what lacks one is refused when it is put, and held when it would be used (O9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from tests.support.schedules import at, partitions
from tests.support.world import EMR, SQS, World, flights

OWNER = "lake"  # the namespace whose things the namespace demo uses
CLEAN, SEND = f"{OWNER}.core.clean", f"{OWNER}.core.send"
SHORT = "1 12 2 3 *"
EVERYTHING = {kind: ["*"] for kind in ("run", "follow", "context", "datasets", "events", "pools", "policies")}


def owning(mode: str = "enforce", **tuned: Any) -> World:
    """A world in which namespace ``lake`` owns one thing of each kind, and ``demo`` has an app."""
    world = World(authorization=mode, **tuned)
    keys = ["year", "month", "day"]
    world.deploy(
        {
            "datasets": {"landed": {"bucket": "lake", "prefix": "landed/", "keys": keys}},
            "workflows": {"clean": {"target": EMR}, "send": {"target": SQS}},
            "schedules": {"nightly": {**at(SHORT, "clean"), "enabled": False}},
            "pools": {"spark": {"size": 4}},
            "policies": {"calm": {"max_events": 3, "interval": "1m"}},
        },
        OWNER,
        "core",
    )
    world.deploy(flights({}))
    return world


def grant(world: World, to: str = "demo", owner: str = OWNER, **what: Any) -> None:
    """Replace what the owner grants by one grant; without names, take everything back."""
    world.grant(owner, {"grants": [{"to": to, **what}] if what else []})


def fails_with(world: World, name: str, document: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(SluiceError) as raised:
        world.put(name, document)
    error: dict[str, Any] = raised.value.to_dict()["error"]
    return error


# Each use of a schedule, with the grant that it needs, and the name that it uses.
USES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "workflow": (at(SHORT, CLEAN), {"run": ["core.clean"]}, CLEAN),
    "policy": (partitions(policy=f"{OWNER}.calm"), {"policies": ["calm"]}, f"{OWNER}.calm"),
    "pool": (partitions(pool=f"{OWNER}.spark"), {"pools": ["spark"]}, f"{OWNER}.spark"),
    "upstream": (
        {"workflow": "clean", "trigger": {"type": "program_status", "workflow": CLEAN}},
        {"follow": ["core.clean"]},
        CLEAN,
    ),
    "upstream of a schedule": (
        {
            "workflow": "clean",
            "trigger": {"type": "program_status", "workflow": CLEAN, "schedule": f"{OWNER}.core.nightly"},
        },
        {"follow": ["core.nightly"]},
        f"{OWNER}.core.nightly",
    ),
    "dataset": (
        {"workflow": "clean", "trigger": {"type": "partition", "dataset": f"{OWNER}.landed"}},
        {"datasets": ["landed"]},
        f"{OWNER}.landed",
    ),
    "quiet dataset": (
        {
            "workflow": "clean",
            "trigger": {"type": "quiet", "after": "5m", "of": {"type": "partition", "dataset": f"{OWNER}.landed"}},
        },
        {"datasets": ["land*"]},
        f"{OWNER}.landed",
    ),
    "event": (
        {"workflow": "clean", "trigger": {"type": "event", "event": "sales.paid", "namespace": OWNER}},
        {"events": ["sales.*"]},
        f"{OWNER}.sales.paid",
    ),
    "freshness": (
        partitions(constraints=[{"type": "fresh", "workflows": [CLEAN], "within": "1d", "on_unmet": "wait"}]),
        {"follow": ["core.*"]},
        CLEAN,
    ),
    "load of a pool": (
        partitions(constraints=[{"type": "load", "of": {"pool": f"{OWNER}.spark"}, "below": 0.5, "on_unmet": "wait"}]),
        {"pools": ["*"]},
        f"{OWNER}.spark",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_o9_a_foreign_reference_needs_its_grant_to_be_put(use: str) -> None:
    document, needed, name = USES[use]
    world = owning()
    error = fails_with(world, "mine", document)
    assert (error["code"], name in error["message"]) == ("unknown_reference", True)
    assert f"sluice grants {OWNER}" in error["hint"]

    for kind in EVERYTHING:
        if kind not in needed:
            grant(world, **{kind: ["*"]})
            fails_with(world, "mine", document)
    grant(world, "other", **needed)
    fails_with(world, "mine", document)
    grant(world, **needed)
    world.put("mine", document)


@pytest.mark.parametrize("use", USES)
def test_o9_what_is_not_granted_reads_as_what_does_not_exist(use: str) -> None:
    document, _, name = USES[use]
    world, missing = owning(), f"{name[:-1]}x"
    text = json.dumps(document).replace(name, missing)
    text = text.replace("sales.paid", "sales.paix")  # an event is written without its namespace
    denied, absent = fails_with(world, "mine", document), fails_with(world, "mine", json.loads(text))
    assert absent == {**denied, "message": denied["message"].replace(name, missing)}


@pytest.mark.parametrize("use", USES)
def test_o9_without_enforcement_no_grant_is_needed(use: str) -> None:
    for mode in ("off", "observe"):
        owning(mode).put("mine", USES[use][0])


def test_o9_every_way_to_enable_a_schedule_needs_the_grant() -> None:
    world, mine = owning(), at(SHORT, CLEAN)
    grant(world, run=["core.clean"])
    world.put("mine", {**mine, "enabled": False})
    grant(world)
    graph = {"nodes": {"one": {"workflow": CLEAN}}, "trigger": {"type": "time", "expression": "@daily"}, "edges": []}
    for document in (flights({"other": mine}), {**flights({}), "dags": {"graph": graph}}):
        with pytest.raises(SluiceError, match=f"expected an existing workflow, got '{CLEAN}'"):
            deploy.deploy(world.ports, "demo", "flights", App.model_validate(document), "tester")
    with pytest.raises(SluiceError, match="expected an existing workflow"):
        world.enable("mine")
    grant(world, run=["core.*"])
    world.enable("mine")


def test_o9_a_workflow_needs_a_grant_for_a_foreign_pool() -> None:
    world = owning()
    document = {"target": EMR, "pool": f"{OWNER}.spark"}
    with pytest.raises(SluiceError, match=f"expected an existing pool, got '{OWNER}.spark'"):
        store.put(world.ports, "workflow", "demo.flights.own", document, "tester")
    grant(world, pools=["spark"])
    store.put(world.ports, "workflow", "demo.flights.own", document, "tester")


def test_o9_the_pool_of_a_granted_workflow_comes_with_it() -> None:
    world = owning()
    store.put(world.ports, "workflow", CLEAN, {"target": EMR, "pool": "spark"}, "tester")
    grant(world, run=["core.clean"])
    world.put("mine", {**at(SHORT, CLEAN), "enabled": True})
    fire(world)
    assert [run.workflow for run in world.runs("mine")] == [CLEAN]


def fire(world: World) -> None:
    world.tick()
    world.clock.pass_by("61s")
    world.tick()
    world.settle()


HELD = {
    "run": (at(SHORT, CLEAN), {"run": ["core.clean"]}, f"run {CLEAN}"),
    "send": (at(SHORT, SEND), {"run": ["core.send"]}, f"run {SEND}"),
    "pool": (at(SHORT, "clean", pool=f"{OWNER}.spark"), {"pools": ["spark"]}, f"use pool {OWNER}.spark"),
    "policy": (at(SHORT, "clean", policy=f"{OWNER}.calm"), {"policies": ["calm"]}, f"use policy {OWNER}.calm"),
}


@pytest.mark.parametrize("use", HELD)
def test_o9_a_revocation_holds_and_a_grant_lets_go_on(use: str) -> None:
    document, needed, what = HELD[use]
    world = owning()
    grant(world, **needed)
    world.put("mine", {**document, "enabled": True})
    grant(world)
    fire(world)
    [job] = world.jobs("mine")
    assert job.reason.startswith(f"waits for a grant of {OWNER} to {what} ")
    assert job.reason.endswith(f"sluice grants {OWNER})")
    assert (job.state, world.runs("mine")) == ("PENDING_CONSTRAINTS", [])
    now = world.clock.now()

    grant(world, "other", **needed)
    world.settle()
    assert [waiting.job_id for waiting in world.jobs("mine")] == [job.job_id]
    grant(world, **needed)
    world.settle()
    assert world.jobs("mine") == []
    assert [run.run_id for run in world.runs("mine")] == [job.job_id]
    assert world.clock.now() == now, "the grant wakes the job: no time passes"
