"""Shared by the scenarios of deliveries: an app that delivers, and one fire whose delivery failed."""

from __future__ import annotations

from typing import Any

from chalicelib.core.rows.run import DeadLetter
from chalicelib.core.targets.answers import Answer, Never, NoAnswer
from chalicelib.flow.runs import dead_letters
from tests.acceptance.words import on, time
from tests.support.world import SQS, World, flights

DOWN = NoAnswer("the server is down")
NEVER = Never("no such queue")
ONCE = time("1 12 2 3 *")  # one minute after the world begins


def app(*constraints: dict[str, Any], trigger: dict[str, Any] = ONCE, **delivery: Any) -> dict[str, Any]:
    return flights({"tick": on(trigger, "notify", *constraints)}, notify={"target": SQS, "delivery": delivery})


def letters(world: World) -> list[DeadLetter]:
    return list(dead_letters.listed(world.ports, "demo", None, 100, None).items)


def undelivered(world: World, *answers: Answer, **delivery: Any) -> DeadLetter:
    """One fire whose delivery failed."""
    world.deploy(app(**delivery))
    world.targets.queue.answers = list(answers or [NEVER])
    world.pass_by("2m")
    [letter] = letters(world)
    return letter


def redrive(world: World, letter: DeadLetter) -> int:
    return dead_letters.redrive(world.ports, "demo", letter.run_id)
