"""W9: an incident of PagerDuty is opened once, and ended when its schedule has recovered."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from chalicelib.core.targets.answers import Never
from chalicelib.flow.notices import deadlines
from tests.acceptance.words import day
from tests.acceptance.workflows.test_notices import notices, tells
from tests.core.notices.test_pagerduty import RULE, TO
from tests.support import dags
from tests.support.dags import dag
from tests.support.ledgers import Before
from tests.support.schedules import at, partitions
from tests.support.world import EMR, SQS, World, flights

KEY = "sluice/demo.flights.daily/failed"
OPENED, ENDED = ("trigger", KEY), ("resolve", KEY)


@pytest.fixture
def world() -> World:
    made = World(wake_shards=1, history_shards=1)
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [RULE]}))
    return made


def run(world: World, number: int, state: str) -> None:
    world.upload(day(number))
    world.settle()
    world.finish(state, "disk full" if state == "FAILED" else "")
    world.settle()
    world.pass_by("2s")


def incidents(world: World) -> list[tuple[str, str]]:
    return [(each["event_action"], each["dedup_key"]) for each in notices(world)]


def left(world: World) -> int:
    """How many rows of notices are left."""
    return sum(item["pk"]["S"].startswith(("WINDOW#", "NOTICE#")) for _, item in world.tables.rows())


def test_w9_a_failure_opens_an_incident_that_a_success_ends(world: World) -> None:
    run(world, 1, "FAILED")
    assert incidents(world) == [OPENED]
    world.pass_by("20m")
    run(world, 2, "FAILED")
    assert incidents(world) == [OPENED, OPENED], "a repeat joins the incident by its key"
    world.pass_by("20m")
    run(world, 3, "SUCCESS")
    assert incidents(world) == [OPENED, OPENED, ENDED]
    world.pass_by("20m")
    run(world, 4, "SUCCESS")
    world.pass_by("20m")
    assert incidents(world) == [OPENED, OPENED, ENDED], "a success without an incident says nothing"
    assert left(world) == 0


def test_w9_a_success_soon_after_waits_for_the_end_of_the_window(world: World) -> None:
    run(world, 1, "FAILED")
    run(world, 2, "SUCCESS")
    assert incidents(world) == [OPENED], "its message may still be on its way"
    world.pass_by("6m")
    assert incidents(world) == [OPENED, ENDED]
    world.pass_by("6m")
    assert left(world) == 0


def test_w9_a_run_that_began_before_a_failure_ends_nothing(world: World) -> None:
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
        world.pass_by("1s")
    first, second = (each.id for each in world.targets.emr.runs.values())
    world.emr_says(second, "FAILED", "disk full")
    world.settle()
    world.pass_by("10m")
    world.emr_says(first, "SUCCESS")
    world.settle()
    world.pass_by("10m")
    assert incidents(world) == [OPENED]
    run(world, 3, "SUCCESS")
    assert incidents(world) == [OPENED, ENDED]


def test_w9_a_success_without_such_a_rule_costs_nothing(world: World) -> None:
    plain = {"target": EMR, "notify": [tells("failed")]}
    world.deploy(flights({"daily": partitions()}, clean=plain))
    run(world, 1, "SUCCESS")
    [done] = world.runs("daily")
    assert (done.recovers, done.announce) == (None, ())


def test_w9_a_failed_delivery_waits_for_a_person(world: World) -> None:
    world.deploy(flights({"tick": at("1 12 2 3 *", "notify")}, notify={"target": SQS, "notify": [RULE]}))
    world.targets.queue.answers = [Never("no such queue")]
    world.tick()
    world.pass_by("3m")
    assert incidents(world) == [("trigger", "sluice/demo.flights.tick/failed")]


def test_w9_late_data_is_an_incident_until_it_comes() -> None:
    made = World(wake_shards=1, history_shards=1)
    fresh = {**flights({})["datasets"]["flights"], "fresh": "15m"}
    document = flights({"daily": {**partitions(), "notify": [{**RULE, "on": ["data_late"]}]}})
    made.deploy({**document, "datasets": {**document["datasets"], "flights": fresh}})
    made.pass_by("20m")
    key = "sluice/demo.flights.daily/data_late/demo.flights"
    assert incidents(made) == [("trigger", key)]
    made.upload(day(1))
    made.settle()
    made.pass_by("6m")
    assert incidents(made) == [("trigger", key), ("resolve", key)]


def test_w9_a_dag_and_its_node_have_incidents_of_their_own() -> None:
    made = World(wake_shards=1, history_shards=1)
    node = {"target": EMR, "notify": [RULE]}
    made.deploy(dags.app(dag("a -> b", notify=[RULE]), w_b=node))
    for number, end in ((1, "FAILED"), (2, "SUCCESS")):
        made.upload(day(number))
        made.settle()
        dags.ends(made, "a")
        dags.ends(made, "b", end)
        made.pass_by("12m")
    keys = "sluice/demo.flights.daily/failed", "sluice/demo.flights.daily/b/failed"
    assert sorted(incidents(made)) == sorted([(action, key) for action in ("trigger", "resolve") for key in keys])
    made.pass_by("6m")
    assert left(made) == 0


def test_w9_the_message_names_the_secret_and_never_holds_it(world: World) -> None:
    run(world, 1, "FAILED")
    [told] = [run_id for run_id, _ in world.targets.queue.messages if ".~notice-" in run_id]
    [sent] = world.ports.runs.attempts(told)
    assert sent.request.target["body_secrets"] == TO["body_secrets"]
    assert "routing_key" not in str((sent.request.data or {})["text"])


def test_w9_quiet_hours_keep_what_happens_in_them_for_their_end() -> None:
    made = World(wake_shards=1, history_shards=1)
    hours = {"from": "11:00", "to": "13:00", "urgent": ["aborted"]}
    rule: dict[str, Any] = {**tells("failed", "aborted"), "quiet": hours}
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [rule]}))
    run(made, 1, "FAILED")
    made.pass_by("20m")
    run(made, 2, "FAILED")
    made.pass_by("20m")
    assert notices(made) == []
    made.pass_by("21m")
    [told] = notices(made)
    assert (told["count"], told["until"]) == (2, "2026-03-02T13:01:00.000Z"), "at the next tick"
    made.pass_by("10m")
    run(made, 3, "FAILED")
    assert [each["count"] for each in notices(made)] == [2, 1], "after the quiet hours at once again"


@pytest.mark.parametrize("left_over", [[], [{**tells("failed"), "group": "10m"}]], ids=["removed", "changed"])
def test_w9_what_waits_is_sent_though_its_rule_has_gone(left_over: list[Any]) -> None:
    made = World(wake_shards=1, history_shards=1)
    rule: dict[str, Any] = {**tells("failed"), "quiet": {"from": "11:00", "to": "13:00"}}
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [rule]}))
    for number in (1, 2, 3):
        run(made, number, "FAILED")
        made.pass_by("5m")
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": left_over}))
    made.pass_by("50m")
    assert [(each["count"], each["until"][:15]) for each in notices(made)] == [(3, "2026-03-02T13:0")]
    made.pass_by("12m")
    assert (len(notices(made)), left(made)) == (1, 0)
    run(made, 4, "FAILED")
    assert len(notices(made)) == 1 + len(left_over), "what comes later goes by the present rules"


@pytest.mark.parametrize("beside", [False, True], ids=["before", "beside"])
def test_w9_a_miss_told_after_its_run_ended_well_is_over(beside: bool) -> None:
    """The run succeeds before its watch is judged, or after the watch has read it: the success saw no miss."""
    made = World(wake_shards=1, history_shards=1)
    late = {"target": EMR, "notify": [RULE], "deadline": {"end_within": "10m"}}
    made.deploy(flights({"daily": partitions()}, clean=late))
    made.upload(day(1))
    made.settle()
    made.clock.pass_by("11m")
    made.hints.sent = []
    [late_run] = made.runs("daily")
    if beside:
        between = Before(made.ports.ledger, partial(made.finish, "SUCCESS"))
        deadlines.judge_deadline(made.with_ports(ledger=between), late_run.run_id)
        assert between.acted
    else:
        made.finish("SUCCESS")
        deadlines.judge_deadline(made.ports, late_run.run_id)
    waiting = [(each.what, each.id) for each in made.ports.jobs.notices("demo.flights.clean", 10)]
    assert sorted(waiting) == [("missed_end", late_run.run_id), ("recovered", late_run.run_id)]
    made.pass_by("12m")
    assert [action for action, _ in incidents(made)] in ([], ["trigger", "resolve"])
    assert left(made) == 0


def test_w9_a_mail_is_a_text_with_a_subject_of_its_own() -> None:
    made = World(wake_shards=1, history_shards=1)
    rule = {**tells("failed"), "form": "mail", "console": "https://console.example"}
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [rule]}))
    run(made, 1, "FAILED")
    [told] = [run_id for run_id, _ in made.targets.queue.messages if ".~notice-" in run_id]
    [sent] = made.ports.runs.attempts(told)
    [done] = made.runs("daily")
    assert sent.request.target["subject"] == "demo.flights.daily failed"
    assert sent.request.data == {
        "content_type": "text/plain; charset=utf-8",
        "text": "demo.flights.clean: 1 event\n\ndemo.flights.daily failed at 2026-03-02T12:00:00.000Z\ndisk full\n"
        f"https://console.example/open/{done.run_id}\n",
    }
