"""Shared by the tests in which an action meets a delivery: batches that are due, and a target that calls the action."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chalicelib.core.instants import MINUTE, Instant
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer
from tests.support.schedules import at
from tests.support.world import World, flights

# One fire within the time that a test lets pass: 2 March 2026, 12:01 is the only one of that day.
AT_ONE = "1 12 2 3 *"
Act = Callable[[], Any]
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:sluice-target-f"
# Every kind of target without a lifecycle, and the number of deliveries in one call, or in parallel calls.
TARGETS: dict[str, tuple[dict[str, Any], int]] = {
    "sqs": ({"type": "sqs", "queue_url": "https://sqs.example/sluice-target"}, 10),
    "sns": ({"type": "sns", "topic_arn": "arn:aws:sns:us-east-1:123456789012:sluice-target"}, 10),
    "event_bus": ({"type": "event_bus", "bus": "sluice-target"}, 10),
    "http": ({"type": "http", "url": "https://hooks.example.com/orders"}, 16),
    "lambda": ({"type": "lambda", "function": LAMBDA, "wait": True}, 16),
}

# The number of deliveries that one read of their rows covers.
SUB_BATCHES = {kind: 5 * size if size == 10 else size for kind, (_, size) in TARGETS.items()}


EACH = {"records": "each"}  # of a delivery: each event of a fire is a job of its own


def deploy(world: World, schedules: Mapping[str, Any], target: str = "sqs", **workflow: Any) -> None:
    world.deploy(flights(dict(schedules), notify={"target": TARGETS[target][0], **workflow}))


def spread(count: int, **fields: Any) -> dict[str, Any]:
    """One schedule whose one fire has this many events."""
    return at(AT_ONE, "notify", **({"spread": {"count": count}} if count > 1 else {}), **fields)


def many(count: int, **fields: Any) -> dict[str, Any]:
    return {f"s{number:03d}": at(AT_ONE, "notify", **fields) for number in range(count)}


def fires(world: World) -> list[Ref]:
    """The prepared fires of the hints, taken out of the queue of hints."""
    found = [ref for _, ref in world.hints.sent if ref.kind == "job"]
    world.hints.sent = [hint for hint in world.hints.sent if hint[1] not in found]
    return found


def due(world: World) -> Instant:
    return world.clock.now() + MINUTE


def ids(world: World) -> list[str]:
    """The event ids that the target accepted, repeats included."""
    return [run_id for run_id, _ in world.targets.queue.messages]


class Interfering:
    """A target in the place of the world's queue: each call takes this long, and an action runs before or after it."""

    def __init__(
        self, world: World, before: Act = lambda: None, after: Act = lambda: None, takes: str | None = None
    ) -> None:
        self._world, self._inner = world, world.targets.queue
        self._before, self._after, self._takes = before, after, takes
        self.sizes: list[int] = []
        world.targets.queue = self

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        return self.start_many([(run, context)])[0]

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        self.sizes.append(len(calls))
        self._before()
        answers = self._inner.start_many(calls)
        if self._takes is not None:
            self._world.clock.pass_by(self._takes)
        self._after()
        return answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def once(act: Act) -> Act:
    """An action that runs only at its first call."""
    done: list[None] = []

    def first() -> None:
        if not done:
            done.append(None)
            act()

    return first
