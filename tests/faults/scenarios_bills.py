"""A bill that EMR computes after the end of a run, for `test_crash_points.py`. Sluice polls until the bill is available
(H1).
"""

from __future__ import annotations

from typing import Any

from tests.faults.dying import Scenario, finish, passes, upload
from tests.faults.scenarios_basic import CLEAN
from tests.support.fakes import EmrRun
from tests.support.world import World

# Available at the last of the two polls that follow the first.
KNOWN_AFTER = 14 * 60_000
TWICE: dict[str, Any] = {**CLEAN, "workflow": "twice"}


def _ends(world: World) -> None:
    world.targets.emr.reckons_after = KNOWN_AFTER
    upload(world, 1)
    finish(world, _first_fails)
    passes(world, "40s", "1m")
    finish(world, _first_fails)
    passes(world, "2m", "1m", "13m")


def _first_fails(run: EmrRun) -> str:
    return "FAILED" if run.name.endswith("-1") else "SUCCESS"


def _paid(world: World) -> bool:
    """Each attempt has its bill, and no row wakes any more. EMR was polled at most three times per attempt, and once
    more for a killed poll.
    """
    runs = world.runs("clean")
    asked = [world.targets.emr.asked_about.count(run.request.name) for run in runs]
    return all(run.billed and run.wake_at is None for run in runs) and max(asked) <= 4


BILLS = {
    "runs whose bills come later": Scenario(
        {"clean": TWICE},
        _ends,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 2)],
        outcome=_first_fails,
        holds=_paid,
    ),
}
