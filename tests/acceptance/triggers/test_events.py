"""Statuses of other workflows (T10) and custom events (T11) start work."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.ingest import outbox
from chalicelib.flow.ingest.outbox import Envelope
from tests.acceptance.words import day, doze, event, on, status, why
from tests.support.schedules import after, partitions
from tests.support.world import EMR, World, flights

FRAGILE = {"target": EMR, "retries": {"attempts": 3}}


def test_t10_a_leaf_counts_how_often_a_workflow_reached_a_status(world: World) -> None:
    world.deploy(flights({"a": partitions(), "third": on(status("clean", count=3), "join")}))
    for number, state in enumerate(("SUCCESS", "FAILED", "SUCCESS", "SUCCESS", "SUCCESS"), 1):
        _run(world, number, state)
        assert len(world.runs("third")) == (1 if number >= 4 else 0)

    [run] = world.runs("third")
    answer = [event["run_id"] for event in world.context(run)["events"]]
    assert answer == [world.runs("a")[place].run_id for place in (0, 2, 3)]
    assert why(world, "third")["missing"] == ["demo.flights.clean to reach COMPLETED 2 times"]


def test_t10_a_failure_is_announced_only_after_the_last_attempt(world: World) -> None:
    world.deploy(
        flights({"a": partitions(workflow="fragile"), "alarm": after("fragile", "join", "FAILED")}, fragile=FRAGILE)
    )
    world.upload(day(1))
    world.settle()
    for _ in range(2):
        world.finish("FAILED", "disk full")
        world.pass_by("1m")
        assert (world.runs("alarm"), world.jobs("alarm")) == ([], [])

    world.finish("FAILED", "disk full")
    world.settle()
    [run] = world.runs("alarm")
    assert [event["status"] for event in world.context(run)["events"]] == ["FAILED"]


def test_t10_started_completed_and_killed_are_distinct(world: World) -> None:
    names = ("started", "completed", "failed", "killed")
    world.deploy(flights({"a": partitions()} | {name: after("clean", "join", name.upper()) for name in names}))
    world.upload(day(1))
    world.settle()
    [job_run] = world.targets.emr.runs
    world.emr_says(job_run, "RUNNING")
    world.settle()
    assert [len(world.runs(name)) for name in names] == [1, 0, 0, 0]
    world.emr_says(job_run, "CANCELLED")
    world.settle()
    assert [len(world.runs(name)) for name in names] == [1, 0, 0, 1]


def test_t10_a_workflow_of_another_namespace_can_be_waited_for(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    _deploy_elsewhere(world)
    _run(world, 1, "SUCCESS")

    [run] = world.runs("other.reports.report")
    assert run.workflow == "other.reports.join"
    assert world.context(run)["upstream"]["workflow"] == "demo.flights.clean"


def test_t10_a_cycle_of_schedules_is_refused_across_namespaces(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    _deploy_elsewhere(world)
    with pytest.raises(
        SluiceError, match="got demo.flights.clean -> other.reports.join -> demo.flights.clean"
    ) as refused:
        world.put("back", after("other.reports.join", "clean"))
    assert refused.value.code == "cycle"


def test_t11_a_posted_event_starts_a_run_if_its_payload_matches(world: World) -> None:
    big = event("order.closed", pattern={"amount": [{"numeric": [">=", 100]}], "region": ["eu", "us"]})
    world.deploy(flights({"audit": on(big)}))
    world.post("order.closed", amount=99, region="eu")
    world.post("order.closed", amount=100, region="cn")
    world.post("order.opened", amount=100, region="eu")
    world.settle()
    assert (world.runs("audit"), world.jobs("audit")) == ([], [])

    world.post("order.closed", amount=100, region="us", customer={"id": 7})
    world.settle()
    assert len(world.runs("audit")) == 1


def test_t11_the_same_id_posted_twice_is_one_event(world: World) -> None:
    world.deploy(flights({"audit": on(event("order.closed", count=2))}))
    world.post("order.closed", source="order-1")
    doze(world, "1h")
    world.post("order.closed", source="order-1")
    world.settle()
    assert world.jobs("audit")[0].leaves["0"].count == 1

    world.post("order.closed", source="order-2")
    world.settle()
    assert len(world.runs("audit")) == 1
    world.post("order.closed", source="order-2")
    world.settle()
    assert world.jobs("audit") == []


def test_t11_n_events_count_in_one_request_or_several(world: World) -> None:
    world.deploy(flights({"audit": on(event("order.closed", count=5))}))
    posted = [Envelope("order.closed", f"order-{number}", {"number": number}) for number in range(4)]
    answer = outbox.post(world.ports, "demo", posted)
    assert len({each.id for each in answer}) == 4
    world.settle()
    assert why(world, "audit")["missing"] == ["1 event order.closed"]

    world.post("order.closed")
    world.settle()
    [run] = world.runs("audit")
    assert len(world.context(run)["events"]) == 5


def test_t11_an_event_belongs_to_the_namespace_it_was_posted_to(world: World) -> None:
    world.deploy(flights({"own": on(event("order.closed")), "far": on(event("order.closed", namespace="other"))}))
    world.post("order.closed")
    world.settle()
    assert (len(world.runs("own")), len(world.runs("far"))) == (1, 0)
    world.post("order.closed", namespace="other")
    world.settle()
    assert (len(world.runs("own")), len(world.runs("far"))) == (1, 1)


def _deploy_elsewhere(world: World) -> None:
    """A report in another namespace follows the workflow of this one."""
    document = {"workflows": {"join": {"target": EMR}}, "schedules": {"report": after("demo.flights.clean", "join")}}
    world.deploy(document, namespace="other", app="reports")


def _run(world: World, number: int, state: str) -> None:
    world.clock.pass_by("1s")
    world.upload(day(number))
    world.settle()
    [live] = [run.id for run in world.targets.emr.runs.values() if run.state == "SUBMITTED" and "flights.a" in run.name]
    world.emr_says(live, "RUNNING")
    world.emr_says(live, state)
    world.settle()
