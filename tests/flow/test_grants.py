"""Grants between namespaces: what lacks one is refused when it is put, and held when it would be used (O9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.backfills.request import Backfill
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.why import Mention
from chalicelib.flow.backfills import backfill
from chalicelib.flow.definitions import store, workflows
from chalicelib.flow.deploy import deploy
from tests.support.answers import explain, present
from tests.support.crossings import cross
from tests.support.schedules import at, at_most, partitions
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


def test_o9_a_workflow_reads_foreign_datasets_with_a_grant() -> None:
    world = owning()
    document = {"target": EMR, "reads": [f"{OWNER}.landed"]}
    with pytest.raises(SluiceError, match=f"expected an existing dataset, got '{OWNER}.landed'") as raised:
        workflows.put(world.ports, "demo.flights.own", document, "tester")
    assert raised.value.field == "reads.0"
    with pytest.raises(SluiceError, match=f"expected an existing dataset, got '{OWNER}.landed'"):
        world.deploy(flights({}, own=document))
    grant(world, datasets=["landed"])
    workflows.put(world.ports, "demo.flights.own", document, "tester")
    world.deploy(flights({}, own=document))


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
    assert job.reason.text.startswith(f"waits for a grant of {OWNER} to {what} ")
    assert job.reason.text.endswith(f"sluice grants {OWNER})")
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


def gathering(trigger: dict[str, Any]) -> World:
    """A world in which a schedule of ``demo`` gathers what belongs to ``lake``, by grants of everything."""
    world = owning()
    grant(world, **EVERYTHING)
    world.put("mine", {"workflow": "clean", "enabled": True, "trigger": trigger})
    return world


def _land(world: World, number: int) -> None:
    world.upload(f"landed/year=2013/month=1/day={number}/a.csv", size=5)


def _succeed(world: World, number: int) -> None:
    world.run_now(f"{OWNER}.core.nightly", request=f"r{number}")
    world.settle()
    world.finish()


# A trigger, the kind of its grant, and what makes an event of it.
GATHERED: dict[str, tuple[dict[str, Any], str, Callable[[World, int], Any]]] = {
    "partition": ({"type": "partition", "dataset": f"{OWNER}.landed"}, "datasets", _land),
    "size": ({"type": "size", "dataset": f"{OWNER}.landed", "bytes": 5}, "datasets", _land),
    "event": (
        {"type": "event", "event": "e", "namespace": OWNER},
        "events",
        lambda world, number: world.post("e", namespace=OWNER),
    ),
    "status": ({"type": "program_status", "workflow": CLEAN}, "follow", _succeed),
    "status of a schedule": (
        {"type": "program_status", "workflow": CLEAN, "schedule": f"{OWNER}.core.nightly"},
        "follow",
        _succeed,
    ),
}


@pytest.mark.parametrize("name", GATHERED)
def test_o9_an_event_without_a_grant_does_not_count(name: str) -> None:
    trigger, kind, make = GATHERED[name]
    world = gathering(trigger)
    make(world, 1)
    world.settle()
    assert len(world.runs("mine")) == 1
    grant(world, **{other: ["*"] for other in EVERYTHING if other != kind})
    make(world, 2)
    world.settle()
    assert (len(world.runs("mine")), world.jobs("mine")) == (1, [])
    missing = explain.why_schedule(world.ports, "demo.flights.mine")["why"]
    assert f"; waits for a grant of {OWNER} to " in missing
    grant(world, **EVERYTHING)
    make(world, 3)
    world.settle()
    world.finish()
    assert len(world.runs("mine")) == 2


def test_o9_runs_of_a_granted_workflow_count_for_their_starter() -> None:
    world = owning()
    grant(world, run=["core.clean"])
    world.put("mine", {**at("@yearly", CLEAN), "enabled": True})
    own = {"type": "program_status", "workflow": CLEAN, "schedule": "mine"}
    world.put("next", {"workflow": "clean", "enabled": True, "trigger": own})
    world.run_now("mine")
    world.settle()
    world.finish()
    world.settle()
    assert len(world.runs("next")) == 1


def test_o9_the_context_of_an_upstream_needs_a_grant() -> None:
    for granted in (False, True):
        world = owning()
        grant(world, follow=["core.*"], **({"context": ["core.clean"]} if granted else {}))
        world.put("mine", {"workflow": "clean", "enabled": True, "trigger": GATHERED["status"][0]})
        world.run_now(f"{OWNER}.core.nightly", secret="s")
        world.settle()
        world.finish()
        world.settle()
        [run] = world.runs("mine")
        context = world.context(run)
        assert [event["workflow"] for event in context["events"]] == [CLEAN]
        assert (context["upstream"] or {}).get("properties") == ({"secret": "s"} if granted else None)


def test_o9_a_context_does_not_pass_on_that_of_a_third_namespace() -> None:
    """``shop`` may read the context of ``demo``, and ``demo`` that of ``lake``; ``lake`` grants nothing to ``shop``."""
    world = owning()
    grant(world, follow=["*"], context=["*"])
    world.put("mine", {"workflow": "clean", "enabled": True, "trigger": GATHERED["status"][0]})
    grant(world, "shop", "demo", follow=["*"], context=["flights.*"])
    last = {"type": "program_status", "workflow": "demo.flights.clean"}
    theirs = {"last": {"workflow": "sell", "trigger": last, "enabled": True}}
    world.deploy({"workflows": {"sell": {"target": EMR}}, "schedules": theirs}, "shop", "app")
    world.run_now(f"{OWNER}.core.nightly", secret="s")
    for _ in range(3):
        world.settle()
        world.finish()
    [run] = world.runs("shop.app.last")
    context = world.context(run)
    assert context["upstream"]["workflow"] == "demo.flights.clean"
    assert context["upstream"]["upstream"] is None


@pytest.mark.parametrize("deployed", [False, True])
def test_o9_a_prefix_inside_a_foreign_dataset_is_refused(deployed: bool) -> None:
    world = owning()
    grant(world, **EVERYTHING)
    inside = {"bucket": "lake", "prefix": "landed/year=2013/", "keys": ["month"]}

    def put(namespace: str, document: dict[str, Any]) -> None:
        if deployed:
            app = App.model_validate({"datasets": {"own": document}})
            deploy.deploy(world.ports, namespace, "app", app, "tester")
        else:
            body = Dataset.model_validate(document).model_dump(mode="json")
            store.put(world.ports, "dataset", f"{namespace}.own", body, "tester")

    with pytest.raises(SluiceError, match="apart from those of other namespaces") as raised:
        put("demo", inside)
    landed = Mention(f"{OWNER}.landed (landed/)", "other", f"{OWNER}.landed")
    assert (raised.value.code, raised.value.said.names) == ("conflict", (landed,))
    assert raised.value.hint
    put(OWNER, inside)
    world.give("landed-too/")
    put("demo", {**inside, "prefix": "landed-too/"})


@pytest.mark.parametrize("mode", ["off", "enforce"])
def test_o9_making_room_cancels_no_foreign_run(mode: str) -> None:
    world = owning(mode)
    grant(world, run=["core.clean"])
    world.run_now(f"{OWNER}.core.nightly")
    world.settle()
    world.put("mine", {**at("@yearly", CLEAN, **at_most(1, "cancel_other")), "enabled": True})
    world.run_now("mine")
    world.settle()
    [foreign] = world.runs(f"{OWNER}.core.nightly")
    assert foreign.cancel is (mode == "off")
    if mode == "off":
        return
    [job] = world.jobs("mine")
    assert job.reason.text.startswith(f"waits for a slot of workflow {CLEAN}")
    world.finish()
    world.settle()
    world.run_now("mine", "r2")
    world.settle()
    first, *_ = world.runs("mine")
    assert (first.cancel, world.runs(f"{OWNER}.core.nightly")[0].state) == (True, "SUCCEEDED")


def test_o9_grants_cost_nothing_without_foreign_references() -> None:
    """The calls of a job, from its fire to its start, with and without checks of grants."""
    counted = []
    for mode in ("off", "enforce"):
        world = owning(mode)
        world.put("mine", {**at(SHORT, "clean"), "enabled": True})
        world.tick()
        world.clock.pass_by("61s")
        counted.append(cross(world, None, lambda: None, world.settle))
    assert counted[0] == counted[1] > 10


def test_o9_observing_logs_each_missing_grant_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, Any]] = []
    monkeypatch.setattr("chalicelib.log.logger.warning", lambda message, extra: logged.append((message, extra["why"])))
    world = owning("observe")
    world.put("mine", {**at(SHORT, CLEAN), "enabled": True})
    assert logged == [("grant would be missing", f"{OWNER} does not let demo run {CLEAN}")]
    fire(world)
    assert len(world.runs("mine")) == 1
    assert world.runs("mine")[0].uses == ()


def test_o9_a_backfill_needs_the_grants_of_its_schedule() -> None:
    world = owning()
    grant(world, run=["core.clean"])
    world.put("mine", {**at("0 3 * * *", CLEAN), "enabled": True})
    span = Backfill.model_validate({"from": "2026-02-01T00:00:00Z", "to": "2026-02-03T00:00:00Z"})
    grant(world)
    with pytest.raises(SluiceError, match="expected an existing workflow"):
        backfill.begin(world.ports, "demo.flights.mine", span, "tester", "b1")
    grant(world, run=["core.clean"])
    assert backfill.begin(world.ports, "demo.flights.mine", span, "tester", "b1").state == "RUNNING"


def test_o9_why_names_the_grant_that_a_job_waits_for() -> None:
    world = owning()
    grant(world, run=["core.clean"])
    world.put("mine", {**at(SHORT, CLEAN), "enabled": True})
    grant(world)
    fire(world)
    hint = f"an administrator of {OWNER} can give it: sluice grants {OWNER}"
    reason = f"waits for a grant of {OWNER} to run {CLEAN} ({hint})"
    [job] = world.jobs("mine")
    assert explain.why_job(world.ports, job)["why"] == reason
    assert explain.why_schedule(world.ports, "demo.flights.mine")["why"] == reason
    [group] = present.now_of(world.ports, "demo")["waiting"]["groups"]
    assert (group["kind"], group["count"]) == ("grant", 1)


def test_o9_grants_do_not_return_with_a_new_namespace() -> None:
    world = owning()
    store.put(world.ports, "namespace", "empty", {}, "tester")
    grant(world, owner="empty", run=["*"])
    store.delete(world.ports, "namespace", "empty")
    store.put(world.ports, "namespace", "empty", {}, "tester")
    assert world.ports.rows.get(GrantsRow, "empty") is None


def test_o9_a_job_that_times_out_while_held_is_on_record() -> None:
    world = owning()
    grant(world, run=["core.clean"])
    world.put("mine", {**at(SHORT, CLEAN, timeout={"after": "1h"}), "enabled": True})
    grant(world)
    fire(world)
    for _ in range(6):
        world.clock.pass_by("11m")
        world.tick()
        world.settle()
    [record] = world.records("mine")
    assert record.kind == "ABORTED"
    assert record.reason.text.startswith(
        f"not launched within its timeout of 1h: waits for a grant of {OWNER} to run {CLEAN}"
    )
