"""Scenarios of deliveries, for `test_crash_points.py`: retried, given up, redriven, dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.instants import SECOND
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.flow.definitions import store
from chalicelib.flow.runs import dead_letters
from chalicelib.flow.system.dispatch import dispatch_together
from tests.faults.dying import Scenario, passes, people, tick
from tests.support.api_calls import TARGET as CALL
from tests.support.crash import lost, redelivered
from tests.support.world import SQS, World

# One fire within the time that the test lets pass: 2 March 2026, 12:01 is the only one of that day.
ONCE = {"type": "time", "expression": "1 12 2 3 *"}
SENT_ONCE: dict[str, Any] = {"workflow": "notify", "enabled": True, "trigger": ONCE}
COUNTED = {**SENT_ONCE, "constraints": [{"type": "rate", "max": 5, "per": "hour"}]}


def _fires(world: World) -> None:
    world.clock.pass_by("20s")
    tick(world)
    for _ in range(5):
        world.clock.pass_by("20s")
        world.settle(lost)


def _tried_again(world: World) -> None:
    world.targets.queue.down = NoAnswer("the queue is down")
    _fires(world)
    passes(world, "1m", "1m")
    people(world, lambda: _redrive(world))


def _given_up_and_redriven(world: World) -> None:
    world.targets.queue.down = Never("no such queue")
    _fires(world)
    passes(world, "1m", "1m")
    people(world, lambda: _redrive(world))


def _redriven_in_vain_and_replaced(world: World) -> None:
    """The redrive waits for a window that does not open in time, and the schedule is replaced while it waits."""
    world.targets.queue.down = Never("no such queue")
    _fires(world)
    passes(world, "1m", "1m")
    shut = {"type": "time_window", "start": "03:00", "end": "04:00"}
    redelivered(lambda: world.put("message", {**SENT_ONCE, "constraints": [shut], "on_update": "drop"}))
    people(world, lambda: _redrive(world))
    redelivered(lambda: world.put("message", {**SENT_ONCE, "properties": {"new": True}, "on_update": "drop"}))
    world.settle(lost)


def _outlasts_its_invocation(world: World) -> None:
    """The sends take so long that the lease is renewed, and the last fires are handed to another invocation."""
    world.targets.queue.takes = 12 * SECOND
    world.clock.pass_by("20s")
    tick(world)
    world.clock.pass_by("40s")
    plain, now = world.ports, world.clock.now()
    world.ports = replace(plain, ends_at=now + 62 * SECOND)
    lost(lambda: dispatch_together(world.ports, list(world.hints.due(now)), now))
    world.ports = plain
    world.settle(lost)


def _each_outlasts_its_invocation(world: World) -> None:
    each = {"target": SQS, "delivery": {"records": "each"}}
    people(world, lambda: store.put(world.ports, "workflow", "demo.flights.notify", each, "tester"))
    _outlasts_its_invocation(world)


def _calls(world: World) -> None:
    """A call of AWS's API takes effect without an answer, and is made again."""
    people(world, lambda: store.put(world.ports, "workflow", "demo.flights.notify", {"target": CALL}, "tester"))
    world.targets.calls.lose_answers = 1
    _fires(world)
    passes(world, "1m", "1m")


def _is_one_call(world: World) -> bool:
    """AWS takes all calls for one, by their token."""
    return len({request["clientToken"] for _, request in world.targets.calls.made}) == 1


def _redrive(world: World) -> None:
    """Redrive all dead letters. The queue exists now."""
    world.targets.queue.down = None
    for letter in dead_letters.listed(world.ports, "demo", None, 100, None).items:
        dead_letters.redrive(world.ports, "demo", letter.run_id)


def _none_is_left(world: World) -> bool:
    return dead_letters.listed(world.ports, "demo", None, 100, None).items == ()


# Killed between a message and its record, Sluice sends the message again under the same id. Killed between a refusal
# and its record, Sluice retries. If the queue exists by then, nothing was ever given up.
_ENDS = [({"message": states}, 0) for states in (["FAILED", "SUCCEEDED"], ["SUCCEEDED"])]

DELIVERED = {
    "a batch that outlasts its lease and its invocation": Scenario(
        {"message": {**SENT_ONCE, "spread": {"count": 21}}},
        _outlasts_its_invocation,
        [({"message": ["SUCCEEDED"] * 21}, 0)],
        messages=21,
    ),
    "a batch of jobs that outlasts its lease and its invocation": Scenario(
        {"message": {**SENT_ONCE, "spread": {"count": 21}}},
        _each_outlasts_its_invocation,
        [({"message": ["SUCCEEDED"] * 21}, 0)],
        messages=21,
    ),
    "a call of AWS's API that is made again under its token": Scenario(
        {"message": SENT_ONCE}, _calls, [({"message": ["SUCCEEDED"]}, 0)], holds=_is_one_call
    ),
    "a fire that could not be delivered in its tries, and is redriven": Scenario(
        {"message": SENT_ONCE}, _tried_again, _ENDS, messages=1, later=_redrive, holds=_none_is_left
    ),
    "a fire that could never be delivered, and is redriven": Scenario(
        {"message": SENT_ONCE}, _given_up_and_redriven, _ENDS, messages=1, later=_redrive, holds=_none_is_left
    ),
    "a counted run that could never be delivered, and is redriven": Scenario(
        {"message": COUNTED}, _given_up_and_redriven, _ENDS, messages=1, later=_redrive, holds=_none_is_left
    ),
    "a redrive that is dropped with its schedule's generation, and asked for again": Scenario(
        {"message": SENT_ONCE}, _redriven_in_vain_and_replaced, _ENDS, messages=1, later=_redrive, holds=_none_is_left
    ),
}
