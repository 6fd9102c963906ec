"""Many fires that are due together: delivered in batches, each under its own id, with the same rows as a
single fire.
"""

from __future__ import annotations

from typing import Any

from chalicelib.core.instants import MINUTE
from chalicelib.core.writes import Put
from chalicelib.flow.deliveries import prepare, send
from chalicelib.flow.system.dispatch import dispatch_together
from tests.acceptance.words import window
from tests.support.clock import NOON
from tests.support.deliveries_crossed import EACH
from tests.support.schedules import at, partitions
from tests.support.world import SQS, World, day, flights

AT_ONE = "1 12 * * *"


def many(count: int, **fields: Any) -> dict[str, Any]:
    return {f"s{number:03d}": at(AT_ONE, "notify", **fields) for number in range(count)}


def prepared(world: World, names: list[str]) -> list[Any]:
    return [ref for due, ref in world.hints.sent if ref.kind == "job" and ref.parts[0].rpartition(".")[2] in names]


def counted(world: World) -> list[None]:
    """A list that grows by one with each call to the tables."""
    calls: list[None] = []
    world.tables.before_call = lambda: calls.append(None)
    return calls


def test_many_deliveries_need_only_a_tenth_of_the_calls() -> None:
    world = World()
    world.deploy(flights(many(200)))
    world.clock.pass_by("60s")
    calls = counted(world)
    world.settle()

    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 200
    assert len(calls) < 200, "one by one it would be two thousand"
    assert [run.state for run in world.runs("s007")] == ["SUCCEEDED"]
    assert world.jobs("s007") == []


def test_nothing_of_a_batch_is_sent_before_its_instant() -> None:
    world = World()
    world.deploy(flights(many(20)))
    names = list(many(20))
    due = world.clock.now() + MINUTE
    ready = prepare.prepare(world.ports, prepared(world, names), due)
    assert len(ready.ready) == 20
    assert world.targets.queue.messages == []

    assert dispatch_together(world.ports, prepared(world, names), due) == []
    assert set(world.targets.queue.sent_at) == {due}


def test_c13_a_schedule_disabled_after_preparation_is_not_sent() -> None:
    world = World()
    world.deploy(flights(many(20)))
    due = world.clock.now() + MINUTE
    ready = prepare.prepare(world.ports, prepared(world, list(many(20))), due)
    world.disable("s003")
    world.clock.wait_until(due)

    sent = send.send(world.ports, send.lease(world.ports, ready.ready, due))

    assert [ref.parts[0] for ref in sent.changed] == ["demo.flights.s003"]
    assert len(world.targets.queue.messages) == 19
    assert world.runs("s003") == []


def test_interleaving_25_a_batch_does_not_resend_what_has_run() -> None:
    world = World()
    world.deploy(flights(many(20)))
    refs = prepared(world, list(many(20)))
    stalled = [job for number in range(20) for job in world.jobs(f"s{number:03d}")]
    world.clock.pass_by("60s")
    world.settle()

    world.ports.ledger.put_all([Put(job) for job in stalled])
    assert dispatch_together(world.ports, refs, world.clock.now()) == []
    world.clock.pass_by("60s")  # the lease of the invocation that has sent them ends
    world.settle()

    assert len(world.targets.queue.messages) == 20
    assert world.jobs("s000") == []


def test_a_refusal_in_a_batch_affects_one_delivery_only() -> None:
    world = World()
    world.deploy(flights(many(20)))
    world.targets.queue.refuse = 1
    world.clock.pass_by("60s")
    world.settle()
    assert len(world.targets.queue.messages) == 19
    world.pass_by("1m")
    assert len({run_id for run_id, _ in world.targets.queue.messages}) == len(world.targets.queue.messages) == 20


def test_a_job_with_limits_or_lifecycle_is_checked_singly() -> None:
    world = World()
    limited = at(AT_ONE, "counted", constraints=[{"type": "rate", "max": 5, "per": "hour"}])
    schedules = {**many(3), "limited": limited, "emr": at(AT_ONE)}
    world.deploy(flights(schedules, counted={"target": SQS}))
    ready = prepare.prepare(world.ports, prepared(world, list(schedules)), world.clock.now() + MINUTE)
    assert len(ready.ready) == 3
    assert sorted(ref.parts[0].rpartition(".")[2] for ref in ready.others) == ["emr", "limited"]
    world.clock.pass_by("60s")
    world.settle()
    assert len(world.targets.queue.messages) == 4
    assert len(world.targets.emr.runs) == 1


def held(count: int = 200, **fields: Any) -> World:
    """A world with so many fires of one schedule, each a job of its own, that wait for its resume."""
    world = World()
    spread = {"count": count, "over": "1ms"}
    each = {"target": SQS, "delivery": EACH}
    world.deploy(flights({"a": at(AT_ONE, "notify", spread=spread, coalesce=False, **fields)}, notify=each))
    world.pause("a")
    world.pass_by("2m")
    assert len(world.jobs("a")) == count
    assert world.targets.queue.messages == []
    return world


def test_l4_fires_woken_together_are_delivered_in_batches() -> None:
    world = held()
    calls = counted(world)
    world.resume("a")
    world.settle()
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 200
    assert len(calls) < 200, "one by one it would be two thousand"
    assert [run.state for run in world.runs("a")] == ["SUCCEEDED"] * 200
    assert world.jobs("a") == []


def test_l3_a_woken_fire_of_a_disabled_schedule_is_not_sent() -> None:
    world = held(20)
    world.resume("a")
    refs = prepared(world, ["a"])
    ready = prepare.prepare(world.ports, refs, world.clock.now())
    assert len(ready.ready) == 20
    world.disable("a")
    sent = send.send(world.ports, send.lease(world.ports, ready.ready, world.clock.now()))
    assert len(sent.changed) == 20
    assert world.targets.queue.messages == []


def test_l4_woken_fires_hinted_twice_are_sent_once() -> None:
    world = held(20)
    world.resume("a")
    refs, now = prepared(world, ["a"]), world.clock.now()
    first = send.lease(world.ports, prepare.prepare(world.ports, refs, now).ready, now)
    again = send.lease(world.ports, prepare.prepare(world.ports, refs[5:], now).ready, now)
    assert (len(first.ready), len(again.ready)) == (20, 0)
    send.send(world.ports, first)
    send.send(world.ports, again)
    assert len(world.targets.queue.messages) == 20
    assert dispatch_together(world.ports, refs, now) == []
    assert len(world.targets.queue.messages) == 20


def test_e3_woken_fires_of_a_policy_join_together() -> None:
    world = World()
    spread = {"count": 60, "over": "1ms"}
    schedules = {"a": at(AT_ONE, "notify", spread=spread, coalesce=False, policy="calm")}
    each = {"target": SQS, "delivery": EACH}
    world.deploy({**flights(schedules, notify=each), "policies": {"calm": {"max_events": 20, "interval": "1s"}}})
    world.pause("a")
    world.pass_by("2m")
    world.resume("a")
    ready = prepare.prepare(world.ports, prepared(world, ["a"]), world.clock.now())
    assert (len(ready.joining), ready.others) == (60, ())
    world.pass_by("2m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 60


def test_e3_woken_matches_of_a_policy_join_together() -> None:
    world = World()
    matches = partitions(workflow="notify", by=["day"], policy="calm", coalesce=False)
    world.deploy({**flights({"a": matches}), "policies": {"calm": {"max_events": 20, "interval": "1s"}}})
    world.pause("a")
    for number in range(1, 21):
        world.upload(day(number))
    world.settle()
    world.resume("a")
    ready = prepare.prepare(world.ports, prepared(world, ["a"]), world.clock.now())
    assert (len(ready.joining), ready.others) == (20, ())
    world.pass_by("2m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 20
    assert [len(context["events"]) for _, context in world.targets.queue.messages] == [1] * 20


def test_c3_fires_wait_for_a_window_and_are_sent_together() -> None:
    world = World()
    spread = {"count": 200, "over": "1ms"}
    opens = {"constraints": [window("12:05", "13:00")]}
    each = {"target": SQS, "delivery": EACH}
    world.deploy(flights({"a": at(AT_ONE, "notify", spread=spread, coalesce=False, **opens)}, notify=each))
    world.pass_by("4m")
    assert (len(world.jobs("a")), world.targets.queue.messages) == (200, [])
    calls = counted(world)
    world.pass_by("2m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 200
    assert len(calls) < 250, "that of two minutes with their ticks; one by one it would be two thousand"
    assert set(world.targets.queue.sent_at) == {NOON + 5 * MINUTE}
