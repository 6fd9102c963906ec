"""Play and count many random worlds, by ranges of seeds: `python -m tests.faults.play_worlds FIRST LAST [moves]`.

With `moves`, they are those of two installations (`test_two_installations.py`), else those of one.
Each seed determines twenty worlds, so ranges can be played in parallel and in any order. A broken rule is printed with
its seed, and the next seed is played. The exit code is nonzero if a rule was broken.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase

from tests.faults import test_random_worlds, test_two_installations

WORLDS = 20  # worlds per seed


def play_seed(number: int, count: Callable[[], None], kind: Any = test_random_worlds) -> None:
    """Play and count the worlds of one seed. Raises the error of the first world that breaks a rule."""
    played = 0

    def world(documents: dict[str, Any], steps: list[Any], seed: int) -> None:
        nonlocal played
        played += 1
        count()
        try:
            kind.play(documents, steps, seed)
        except BaseException:
            print(f"seed {number}, world {played}: play({documents!r}, {steps!r}, {seed})", flush=True)
            raise

    quick = hypothesis.settings(
        max_examples=WORLDS,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    hypothesis.seed(number)(quick(kind.everything(world)))()


def main(first: int, last: int, *kind: str) -> int:
    """Play these seeds, the last one included, in worlds of this ``kind``. Returns how many broke a rule."""
    began, worlds, broken = time.monotonic(), 0, 0

    def count() -> None:
        nonlocal worlds
        worlds += 1

    for number in range(first, last + 1):
        try:
            play_seed(number, count, test_two_installations if kind == ("moves",) else test_random_worlds)
        except Exception:
            broken += 1
            traceback.print_exc()
        spent = time.monotonic() - began
        print(f"seeds {first} to {number}: {worlds} worlds, {broken} seeds broke a rule, {spent:.0f} s", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]) else 0)
