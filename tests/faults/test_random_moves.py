"""Random worlds that stop at a random call, are exported, and go on in an empty installation (L14).

The tables of the source are emptied before the import. So what an export lacks is lost. Both installations share the
target, which sees what starts twice. Up to 20 minutes pass between export and import, in which nothing runs: what is
due then is neither lost nor doubled.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.instants import MINUTE
from chalicelib.log import logger
from tests.faults import invariants
from tests.faults.granted_world import OWNER, GrantedWorld
from tests.faults.random_world import RandomWorld
from tests.faults.test_random_worlds import PEOPLE, patient, schedules, step
from tests.support.archives import emptied, exported, imported


@dataclass(frozen=True)
class Move:
    """A world that plays all steps but the last one, and of that one so many calls of the tables. Then it moves: the
    whole installation, or its namespaces."""

    documents: dict[str, Any]
    steps: list[Any]
    seed: int
    stopped_at: int
    everything: bool
    minutes: int
    granted: bool


def play(move: Move) -> None:
    level = logger.log_level
    logger.setLevel("CRITICAL")
    try:
        world = (GrantedWorld if move.granted else RandomWorld)(move.documents, move.seed)
        for kind, *arguments in move.steps[:-1]:
            _act(world, kind, arguments)
        _stopped(world, move.steps[-1], move.stopped_at)
        kind, *arguments = move.steps[-1]
        if kind == "repair":
            _act(world, kind, arguments)  # a repair that was stopped is run again
        world.weather.undisturbed(lambda: _moved(world, move.everything, move.minutes))
        world.weather.undisturbed(lambda: invariants.check(world))
        world.rest()
    finally:
        logger.setLevel(level)


class Stopped(BaseException):
    """All invocations end at once, in the middle of what they do."""


def _stopped(world: RandomWorld, step: Any, calls: int) -> None:
    """Play a step up to this call of the tables."""
    kind, *arguments = step
    before, left = world.tables.before_call, [calls]

    def stops() -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Stopped
        before()

    world.tables.before_call = stops
    with suppress(Stopped):
        _act(world, kind, arguments)
    world.tables.before_call = before
    world.points.die_after = None


def _act(world: RandomWorld, kind: str, arguments: list[Any]) -> None:
    act = getattr(world, kind)
    if kind in PEOPLE:
        world.people(lambda: act(*arguments))
    else:
        act(*arguments)


def _moved(world: RandomWorld, everything: bool, minutes: int) -> None:
    """Everything that is not in the tables is lost: hints, and what invocations had in their memory."""
    own = ["demo", OWNER] if isinstance(world, GrantedWorld) else ["demo"]
    archive = exported(world, *([] if everything else own))
    emptied(world.tables)
    world.forget_hints()
    world.old_refs = []
    world.stops_readers()
    world.clock.wait_until(world.clock.now() + minutes * MINUTE)
    imported(world, archive)


moves = given(
    st.builds(
        Move,
        documents=schedules(),
        steps=st.lists(step, min_size=8, max_size=30),
        seed=st.integers(0, 1000),
        stopped_at=st.integers(1, 40),
        everything=st.booleans(),
        minutes=st.integers(0, 20),
        granted=st.booleans(),
    )
)


@settings(max_examples=12, derandomize=True, **patient)
@moves
def test_l14_random_worlds_go_on_in_another_installation(move: Move) -> None:
    play(move)


@pytest.mark.long
@settings(max_examples=1000, **patient)
@moves
def test_l14_many_random_worlds_go_on_elsewhere(move: Move) -> None:
    play(move)
