"""The costliest requests that validation allows: what each may cost in steps, and in the long tests in CPU time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core import steps
from chalicelib.core.jobs import dry_run
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers.event import MAX_PAYLOAD
from tests.fuzz.values import bounded, documents
from tests.support.schedules import BY_DAY
from tests.support.world import World, flights
from tests.web.many_schedules import Counting
from tests.web.signed import Signer, role

SEEDS = range(20)
ONE = "/v1/namespaces/demo/apps/flights/schedules/costly"
ADA = Signer(role("ada"))
OPERATORS: tuple[Callable[[int], Any], ...] = (
    lambda number: {"wildcard": f"*{number}*x*{number}"},
    lambda number: {"wildcard": "*a" * 40 + str(number)},
    lambda number: {"prefix": "a" * number},
    lambda number: {"suffix": f"{number}z"},
    lambda number: {"numeric": [">", number, "<", number + 0.5]},
    lambda number: {"equals-ignore-case": f"Straße{number}"},
    lambda number: {"anything-but": [f"a{each}" for each in range(number)] or "a"},
    lambda number: {"anything-but": {"prefix": f"{number}"}},
)


def costly_pattern(draw: random.Random) -> dict[str, Any]:
    """A pattern as large as validation allows: 100 leaves, on one key or on objects in lists, with 100 operators."""
    leaves, operators = 99, draw.choice((0, 30, 100))
    keys = ["a"] if draw.random() < 0.5 else [f"k{number}" for number in range(draw.choice((2, 20)))]
    listed: list[dict[str, Any]] = []
    for number in range(leaves):
        plain = [draw.choice((number, f"v{number}", None, True, 0.5)) for _ in range(draw.choice((1, 50, 99)))]
        own = min(operators, draw.choice((0, 1, 5)))
        operators -= own
        listed.append(
            {draw.choice(keys): [*plain[: 100 - own], *(draw.choice(OPERATORS)(each) for each in range(own))]}
        )
    rest = [draw.choice(OPERATORS)(number) for number in range(operators)]
    either = {"$or": [*listed, {keys[0]: rest or ["never"]}]}
    return {"list": either} if draw.random() < 0.5 else either


def costly_payload(draw: random.Random, size: int = MAX_PAYLOAD - 100) -> dict[str, Any]:
    """A payload as large as validation allows, of many values or of large ones."""
    one = draw.choice(
        (
            lambda number: number + 1_000,
            lambda number: f"{number:x}",
            lambda number: {"a": number},
            lambda number: {f"k{number % 20}": [number, str(number)]},
            lambda number: {},
            lambda number: [[number]],
            lambda number: "a" * 3_000,
            lambda number: number / 7,
        )
    )
    values: list[Any] = []
    while len(json.dumps(values)) < size:
        values += [one(len(values) + number) for number in range(20)]
    while len(json.dumps(values)) > size:
        values.pop()
    return {draw.choice(("a", "list", "k0")): values}


@pytest.mark.parametrize("seed", SEEDS)
def test_o14_no_pattern_takes_more_steps_than_its_budget(seed: int) -> None:
    draw = random.Random(seed)
    pattern, payload = costly_pattern(draw), costly_payload(draw)
    patterns.check_pattern(pattern, "pattern")
    flat = patterns.Flattened(payload)
    patterns.Matcher(pattern).matches(flat)
    assert flat.steps.spent <= patterns.MAX_STEPS // 2, "a trigger has two patterns of this size"


def costly_trigger(draw: random.Random) -> dict[str, Any]:
    one: dict[str, Any] = {"type": "event", "event": "go"}
    kind = draw.choice(("pattern", "leaves", "quiet", "by"))
    if kind == "pattern":
        return {**one, "pattern": costly_pattern(draw)}
    if kind == "quiet":
        return {"type": "quiet", "of": {**one, "pattern": costly_pattern(draw)}, "after": "5m"}
    leaves = [{"type": "partition", "dataset": "flights", "count": 1 + number} for number in range(44)]
    made = {
        "type": draw.choice(("all", "any")),
        "triggers": [*leaves, {"type": "size", "dataset": "flights", "bytes": 9}],
    }
    return made if kind == "leaves" else {**made, "by": BY_DAY}


def costly_events(draw: random.Random, trigger: dict[str, Any]) -> list[dict[str, Any]]:
    """Events for a dry run: as many, and as large, as its body allows."""
    if trigger["type"] in ("event", "quiet"):
        payload = costly_payload(draw, draw.choice((100, 900, MAX_PAYLOAD - 100)))
        count = min(1_000, 900_000 // len(json.dumps(payload)))
        return [{"type": "event", "event": "go", "payload": payload, "at": at(number)} for number in range(count)]
    return [
        {
            "type": "partition",
            "dataset": "flights",
            "partition": {"year": str(number % 997), "month": "1", "day": "1"},
            "at": at(number),
        }
        for number in range(1_000)
    ]


def at(number: int) -> str:
    return f"2026-03-02T{number // 60 % 24:02}:{number % 60:02}:00Z"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    made.deploy(flights({}))
    with pytest.MonkeyPatch.context() as patch:
        Counting(made, patch)
        yield made


@pytest.mark.parametrize("seed", range(4))
def test_o14_no_costly_request_takes_more_steps_than_its_budget(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    made: list[steps.Steps] = []

    class Counted(steps.Steps):
        def __init__(self, budget: int, whole: steps.Steps | None = None) -> None:
            super().__init__(budget, whole)
            made.append(self)

    monkeypatch.setattr(dry_run, "Steps", Counted)
    status, content = play(random.Random(seed))
    assert status in (200, 413), content
    [counted] = made
    assert (status == 413) == counted.is_over
    if status == 413:
        assert (
            content["error"]["message"]
            == f"expected a dry run that takes less computation, got one of more than {counted.budget} steps"
        )


def play(draw: random.Random) -> tuple[int, Any]:
    """Put a costly schedule, and play events to it."""
    trigger = costly_trigger(draw)
    status, content = ADA.send("PUT", ONE, {"workflow": "clean", "trigger": trigger})
    assert status < 300, content
    return ADA.send("POST", f"{ONE}/dry-run", {"events": costly_events(draw, trigger)})


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_o14_no_costly_request_takes_long(world: World, seed: int) -> None:
    draw = random.Random(seed)
    trigger = costly_trigger(draw)
    body = {"workflow": "clean", "trigger": trigger}
    with bounded(1):
        assert ADA.status("PUT", ONE, body) < 300
    events = {"events": costly_events(draw, trigger)}
    with bounded(documents(events)):
        assert ADA.status("POST", f"{ONE}/dry-run", events) in (200, 413)
    posted = {
        "events": [{"type": "go", "payload": each["payload"]} for each in events["events"][:90] if "payload" in each]
    }
    if posted["events"]:
        with bounded(documents(posted)):
            assert ADA.status("POST", "/v1/namespaces/demo/events", posted) == 202
