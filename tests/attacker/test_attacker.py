"""Attackers with roles in two namespaces draw requests against the app; no rule of `oracle.py` breaks (O14).

Planted defects show that the play finds what breaks a rule. The numbers of answers are printed (`pytest -s`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacker import cast, draw
from tests.attacker.play import play
from tests.attacker.stage import Stage, installed
from tests.fuzz.requests import OPERATIONS


@pytest.fixture(scope="module")
def stages() -> Iterator[list[Stage]]:
    with pytest.MonkeyPatch.context() as patch:
        installed(patch)
        yield [Stage(spaces) for spaces in cast.CASTS]


def test_o14_no_attacker_breaks_a_rule(stages: list[Stage]) -> None:
    tally = play(stages, 1, 3_000)
    print(tally)
    assert tally.answers["2xx"] > tally.requests / 5, str(tally)
    assert tally.twins > 50 and tally.started > 50, str(tally)
    left = {f"{method} {path}" for method, path, _ in OPERATIONS} - tally.operations.keys()
    assert not left, f"operations that were not drawn: {sorted(left)}"


@pytest.mark.long
def test_o14_no_attacker_of_many_breaks_a_rule(stages: list[Stage]) -> None:
    tally = play(stages, 2, 100_000)
    print(tally)
    assert tally.answers["2xx"] > tally.requests / 5, str(tally)


def test_the_two_long_names_are_as_long_as_said() -> None:
    assert len(cast.LONG) == 60


def test_only_the_simplest_bodies_are_examples_of_the_document() -> None:
    """A new kind of body is drawn from its example; a body with names deserves a maker."""
    assert draw.bodies_without_a_maker() <= {"Heartbeat", "Occurrence", "Pause", "Release", "Verdict"}
