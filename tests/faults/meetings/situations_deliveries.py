"""Moments at which fires are delivered to a queue: one by one, as a batch, and again after a failure."""

from __future__ import annotations

from typing import Any

from chalicelib.core.targets.answers import Never, NoAnswer, Started
from chalicelib.flow.fires import emit
from tests.faults.meetings import closings
from tests.faults.meetings.acts import (
    TICK,
    batch,
    check_place,
    define,
    drop_letter,
    forget_hints,
    passes,
    redrive,
    settle,
    withdrawing,
)
from tests.faults.meetings.situation import Act, Do, Situation
from tests.faults.meetings.situations_queues import keep_job, made
from tests.support import events
from tests.support.schedules import at
from tests.support.world import EMR, SQS, World, flights

MESSAGE = at("1 12 2 3 *", "notify")  # 12:01, one minute after the clock of these worlds begins
TAKEN = Started("m1", done=True)
TO_EMR = Act(define("workflow", "flights.notify", {"target": EMR}), alone=True)


def emitting(world: World) -> None:
    emit.emit_due(world.ports)


def _fire(*steps: Do) -> World:
    return made(flights({"daily": MESSAGE}), emitting, keep_job(), passes("66s"), forget_hints, *steps)


def _answers(*answers: Any) -> Do:
    return lambda world: setattr(world.targets.queue, "answers", list(answers))


def _down(answer: Any) -> Do:
    return lambda world: setattr(world.targets.queue, "down", answer)


def _of_a_fire() -> dict[str, Act]:
    return {
        "check": check_place(),
        "withdraw": withdrawing(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "hold": closings.hold(),
        "carry": closings.carry(MESSAGE),
        "put": closings.put(MESSAGE),
        "to EMR": TO_EMR,
        "tick": TICK,
    }


FIRE = Situation(build=_fire, acts=_of_a_fire(), small=("check", "to EMR", "withdraw"))

# The queue accepts the message of the first call, and is deleted before the second.
FIRE_REFUSED = Situation(
    build=lambda: _fire(_answers(Started("m1", done=True), Never("no such queue"))),
    acts={name: _of_a_fire()[name] for name in ("check", "withdraw", "disable", "tick")},
)

# The first call gets no answer; the second is accepted.
FIRE_UNANSWERED = Situation(
    build=lambda: _fire(_answers(NoAnswer("the queue is down"))),
    acts={name: _of_a_fire()[name] for name in ("check", "withdraw", "disable", "carry", "tick")},
)

# -- several fires of one instant --------------------------------------------------------------------------------------

THREE = dict.fromkeys(("daily", "second", "third"), MESSAGE)


def _batched(app: dict[str, Any], *before: Do) -> World:
    return made(app, emitting, keep_job(), *before, _keep_fires, forget_hints)


def _keep_fires(world: World) -> None:
    """Keep what a Lambda has read together: all prepared fires, to be sent when the last of them is due."""
    fires = [(due, ref) for due, ref in world.hints.sent if ref.kind == "job"]
    world.outside.kept["fires"] = [ref for _, ref in fires], max(due for due, _ in fires)


BATCH = Situation(
    build=lambda: _batched(flights(THREE), passes("55s")),
    acts={"batch": batch(), **_of_a_fire()},
    small=("batch", "check", "withdraw"),
)

# More fires than one call of the queue accepts; they were due some seconds ago.
MANY = at("R12/PT1S", "notify")
OVERDUE = Situation(
    build=lambda: _batched(flights({"daily": MANY}), passes("30s")),
    acts={
        "batch": batch(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "hold": closings.hold(),
        "put": closings.put(MANY),
        "withdraw": withdrawing(),
    },
)

TWELVE = at("1 12 2 3 *", "notify", spread={"count": 12})
EACH = {"notify": {"target": SQS, "delivery": {"records": "each"}}}

# Twelve events of one fire, due some seconds ago. Messages that were repeated name all of them, five, or one.
OVERLAP = Situation(
    build=lambda: _batched(flights({"daily": TWELVE}, **EACH), passes("66s")),
    acts={"batch": batch(), "part": batch(5), "check": check_place()},
    small=("batch", "part", "check"),
    spans=(),
)

# -- a bundle ----------------------------------------------------------------------------------------------------------


def _bundled(*before: Do) -> World:
    return _batched(flights({"daily": TWELVE}), _keep_event, passes("66s"), *before)


def _keep_event(world: World) -> None:
    world.outside.kept["event_id"] = events.waiting(world, "daily")[10]


def _of_a_bundle() -> dict[str, Act]:
    return {
        "batch": batch(),
        **_of_a_fire(),
        "carry": closings.carry(TWELVE),
        "put": closings.put(TWELVE),
        "withdraw": withdrawing("event_id"),
    }


# Twelve events of one fire in one row, due some seconds ago.
BUNDLE = Situation(build=_bundled, acts=_of_a_bundle(), small=("batch", "check", "withdraw"))

# The queue refuses the third event, and does not answer for the fourth.
BUNDLE_REFUSED = Situation(
    build=lambda: _bundled(_answers(TAKEN, TAKEN, Never("too large"), NoAnswer("the queue is down"))),
    acts={name: _of_a_bundle()[name] for name in ("batch", "check", "withdraw", "disable", "tick")},
)

# -- a dead letter -----------------------------------------------------------------------------------------------------


def _keep_run(world: World) -> None:
    world.outside.kept["run_id"] = world.runs("daily")[0].run_id


def _dead(*steps: Do) -> World:
    return _fire(_down(Never("no such queue")), check_place().do, settle, _down(None), _keep_run, forget_hints, *steps)


DEAD_LETTER = Situation(
    build=_dead,
    acts={
        "redrive": redrive(),
        "drop": drop_letter(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "put": closings.put(MESSAGE),
        "to EMR": TO_EMR,
    },
    small=("redrive", "drop", "delete"),
)


def _redrive(world: World) -> None:
    redrive().do(world)
    keep_job()(world)


REDRIVEN = Situation(
    build=lambda: _dead(_redrive, forget_hints),
    acts={
        "check": check_place(),
        "redrive": redrive(),
        "drop": drop_letter(),
        "withdraw": withdrawing(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "put": closings.put(MESSAGE),
        "tick": TICK,
    },
)
