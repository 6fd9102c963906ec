"""W9: each subscriber gets notices of failures, at a limited rate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.aws.targets import formats
from tests.acceptance.words import concurrency, day, on, partition, window
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at, partitions
from tests.support.world import EMR, SQS, World, flights

TEAM = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
DUTY = {"type": "http", "url": "https://duty.example/hooks"}


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def tells(*whats: str, to: dict[str, Any] = TEAM) -> dict[str, Any]:
    return {"on": list(whats), "to": to}


def notices(world: World) -> list[Any]:
    """The notices that were sent, in order, each with its target."""
    found = []
    for (run_id, _), data in zip(world.targets.queue.messages, world.targets.queue.data, strict=True):
        if ".~notice-" in run_id:
            assert data is not None
            found.append(json.loads(str(data["text"])))
    return found


def whats(notice: Any) -> list[str]:
    return [event["what"] for event in notice["events"]]


def fail(world: World, number: int) -> None:
    world.upload(day(number))
    world.settle()
    world.finish("FAILED", "disk full")
    world.settle()


def test_w9_a_failure_sends_a_notice_at_once_with_its_reason(world: World) -> None:
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed")]}))
    fail(world, 1)
    world.pass_by("2s")

    [notice] = notices(world)
    [run] = world.runs("daily")
    assert (notice["workflow"], notice["count"]) == ("demo.flights.clean", 1)
    answer = {"what": "failed", "schedule": "demo.flights.daily", "id": run.run_id, "reason": "disk full"}
    assert notice["events"] == [{**answer, "at": "2026-03-02T12:00:00.000Z"}]


def test_w9_failures_within_five_minutes_are_one_notice(world: World) -> None:
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed")]}))
    for number in range(1, 14):
        fail(world, number)
        world.pass_by("2s")
    assert [notice["count"] for notice in notices(world)] == [1]

    world.pass_by("5m")
    assert [notice["count"] for notice in notices(world)] == [1, 12]
    assert len(notices(world)[1]["events"]) == 10, "some are listed, the others counted"

    world.pass_by("11m")
    assert len(notices(world)) == 2, "no further notice while nothing fails"
    fail(world, 20)
    world.pass_by("2s")
    assert [notice["count"] for notice in notices(world)] == [1, 12, 1], "after a quiet time at once again"


def test_w9_a_failure_sends_a_notice_after_the_last_attempt(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}, "notify": [tells("failed")]}
    world.deploy(flights({"daily": partitions()}, clean=retried))
    fail(world, 1)
    world.pass_by("20s")
    assert notices(world) == []
    world.pass_by("20s")
    world.finish("FAILED", "disk full")
    world.settle()
    world.pass_by("2s")
    assert len(notices(world)) == 1


def test_w9_a_job_aborted_for_a_constraint_sends_a_notice(world: World) -> None:
    rules = concurrency(1, on_unmet="abort")
    document = on(partition(), "clean", rules, notify=[tells("aborted")])
    world.deploy(flights({"daily": document}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    world.pass_by("2s")

    [notice] = notices(world)
    assert whats(notice) == ["aborted"]
    assert notice["events"][0]["reason"] == world.records("daily")[0].reason.text


def test_w9_a_requeued_job_waits_and_sends_no_notice(world: World) -> None:
    """Requeuing is the effect of ``on_unmet: wait``, which a user chooses in the constraint."""
    document = on(partition(), "clean", window("22:00", "23:00"), notify=[tells("aborted", "failed")])
    world.deploy(flights({"daily": document}))
    world.upload(day(1))
    world.pass_by("2m")
    assert (len(world.jobs("daily")), notices(world)) == (1, [])


def test_w9_schedule_and_workflow_may_notify_different_channels(world: World) -> None:
    own = on(partition(), "clean", notify=[tells("failed", to=DUTY), tells("failed", "aborted")])
    world.deploy(flights({"daily": own}, clean={"target": EMR, "notify": [tells("failed")]}))
    fail(world, 1)
    world.pass_by("2s")
    assert len(notices(world)) == 2, "each target once, however many rules name it"


BUS = {"type": "event_bus", "bus": "team"}
FUNCTION = {"type": "lambda", "function": "arn:aws:lambda:eu-west-1:123456789012:function:page"}


@pytest.mark.parametrize("to", [TEAM, DUTY, BUS, FUNCTION, SQS], ids=lambda to: to["type"])
def test_w9_a_notice_goes_to_the_target_of_its_rule(world: World, to: dict[str, Any]) -> None:
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed", to=to)]}))
    fail(world, 1)
    world.pass_by("2s")
    [(run_id, _)] = world.targets.queue.messages
    [run] = world.ports.runs.attempts(run_id)
    assert {name: run.request.target[name] for name in to} == to
    assert whats(notices(world)[0]) == ["failed"]


def test_w9_a_failed_delivery_sends_a_notice(world: World) -> None:
    from chalicelib.core.targets.answers import Never

    answer = {"target": SQS, "notify": [tells("failed")]}
    world.deploy(flights({"tick": at("1 12 2 3 *", "notify")}, notify=answer))
    world.targets.queue.answers = [Never("no such queue")]
    world.tick()
    world.pass_by("3m")
    [notice] = notices(world)
    assert (whats(notice), notice["workflow"]) == (["failed"], "demo.flights.notify")
    assert "no such queue" in notice["events"][0]["reason"]


def test_w9_a_refused_notice_is_retried_under_one_id_then_dead(world: World) -> None:
    from chalicelib.core.targets.answers import NoAnswer

    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed")]}))
    world.targets.queue.down = NoAnswer("nobody there")
    fail(world, 1)
    world.pass_by("1m")
    assert len({run_id for run_id, _, _ in world.targets.queue.tried}) == 1
    assert len(world.targets.queue.tried) == 3
    letters = world.ports.runs.dead_letters("namespace", "demo", 10, None).items
    assert [letter.reason.text for letter in letters if ".~notice-" in letter.schedule] != []


def test_w9_a_lost_hint_delays_a_notice_by_a_minute_at_most(world: World) -> None:
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed")]}))
    world.upload(day(1))
    world.settle()
    world.hints.lose = True
    world.finish("FAILED")
    world.hints.lose = False
    world.pass_by("2m")
    assert len(notices(world)) == 1


def test_w9_many_failures_hardly_write_the_row_that_counts_them(world: World) -> None:
    """When a hundred runs fail at once, a hundred Lambdas handle them. They must not all contend for one row."""
    written: list[str] = []

    class Watched(LedgerBetween):
        def after(self, writes: Any, conflict: Any) -> None:
            written.extend(type(getattr(write, "row", None)).__name__ for write in writes if conflict is None)

    document = on(partition(), "clean", concurrency(1, on_unmet="abort"), notify=[tells("aborted")])
    world.deploy(flights({"daily": document}))
    world.upload(day(0))
    world.settle()
    world.ports = world.with_ports(ledger=Watched(world.ports.ledger))
    for number in range(1, 101):
        world.upload(day(number))
        world.settle()
    world.pass_by("6m")
    assert [notice["count"] for notice in notices(world)] == [1, 99]
    answer = [event["at"] for event in notices(world)[1]["events"]]
    assert (len(answer), answer) == (10, sorted(answer))
    assert written.count("NoticeWindow") <= 1 + 2 + 2  # the first notice, two transactions, and the end of two windows
    assert written.count("PendingNotice") >= 100, "each is noted for itself"


@pytest.mark.parametrize(("schedules", "targets"), [(30, 3), (12, 5), (70, 1)])
def test_w9_notices_of_many_targets_are_sent_in_several_writes(world: World, schedules: int, targets: int) -> None:
    """Each schedule has targets of its own and fails twice: more rows than one transaction takes."""
    sizes: list[int] = []

    class Watched(LedgerBetween):
        def after(self, writes: Any, conflict: Any) -> None:
            sizes.append(len(writes))

    def mine(name: str) -> list[dict[str, Any]]:
        return [tells("aborted", to={**DUTY, "url": f"https://{name}-{number}.example/x"}) for number in range(targets)]

    limit = concurrency(1, on_unmet="abort")
    document = {f"s{number}": on(partition(), "clean", limit, notify=mine(f"s{number}")) for number in range(schedules)}
    world.deploy(flights({"first": partitions(), **document}))
    world.ports = world.with_ports(ledger=Watched(world.ports.ledger))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    world.pass_by("20m")

    sent = notices(world)
    ids = [event["id"] for notice in sent for event in notice["events"]]
    assert max(sizes) <= 100
    assert world.ports.jobs.notices("demo.flights.clean", 1000) == ()
    assert sum(notice["count"] for notice in sent) == len(ids) == targets * len(set(ids))
    assert len(set(ids)) >= schedules


def test_w9_each_notice_of_a_rule_has_its_form(world: World) -> None:
    rule = tells("failed", to=DUTY) | {"form": "slack", "console": "https://console.example"}
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [rule, tells("failed")]}))
    fail(world, 1)
    world.pass_by("2s")
    fail(world, 2)
    world.pass_by("5m")
    for_slack = [notice for notice in notices(world) if "blocks" in notice]
    assert [notice["text"] for notice in for_slack] == ["demo.flights.clean: 1 event"] * 2
    runs = [run.run_id for run in world.runs("daily")]
    told = [notice["blocks"][1]["text"]["text"] for notice in for_slack]
    assert all(f"https://console.example/open/{run}|" in text for run, text in zip(runs, told, strict=True))
    assert [notice["count"] for notice in notices(world) if notice not in for_slack] == [1, 1]


def test_e11_a_notice_keeps_the_format_of_its_target(world: World) -> None:
    to = TEAM | {"format": "cloudevents", "event_type": "com.example.alert"}
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [tells("failed", to=to)]}))
    fail(world, 1)
    world.pass_by("2s")
    [told] = [run_id for run_id, _ in world.targets.queue.messages if ".~notice-" in run_id]
    [sent] = world.ports.runs.attempts(told)
    event = formats.document(sent, {})
    assert (event["type"], event["source"]) == ("com.example.alert", "/v1/namespaces/demo/apps/flights")
    assert event["data"]["count"] == 1
