"""How long an attempt ran and by how much it was late: one definition for all views (H1)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.history import durations, lines
from chalicelib.core.targets.bills import LIST
from tests.core.history.test_lines import ended
from tests.support.clock import NOON as NOW

SECOND = 1_000


def times(**instants: int) -> dict[str, Any]:
    """Instants in seconds after the claim."""
    return {name: NOW + seconds * SECOND for name, seconds in instants.items()}


@pytest.mark.parametrize(
    ("instants", "took"),
    [
        pytest.param(times(start_requested_at=1, started_at=30, ended_at=55), 25, id="a start that the target told"),
        pytest.param(times(start_requested_at=1, started_at=2, ended_at=2), 1, id="a delivery tells only its end"),
        pytest.param(times(start_requested_at=1, ended_at=3) | {"started_at": None}, 2, id="no start is known"),
        pytest.param(times(ended_at=4) | {"started_at": None, "start_requested_at": None}, 4, id="never requested"),
    ],
)
def test_h1_a_duration_counts_from_the_start(instants: dict[str, Any], took: int) -> None:
    run = ended(claimed_at=NOW, **instants)
    assert durations.took(run) == took * SECOND


def test_h1_an_attempt_that_goes_on_has_no_duration() -> None:
    run = ended(claimed_at=NOW, state="RUNNING", ended_at=None, **times(start_requested_at=1, started_at=2))
    assert durations.took(run) is None


@pytest.mark.parametrize(
    ("fields", "late"),
    [
        pytest.param({"start_by": NOW + 5 * SECOND}, 15, id="a missed start"),
        pytest.param({"end_by": NOW + 30 * SECOND}, 10, id="a missed end"),
        pytest.param({"start_by": NOW + 5 * SECOND, "end_by": NOW + 39 * SECOND}, 15, id="the worse of both"),
        pytest.param({"end_by": NOW + 90 * SECOND}, 0, id="in time"),
        pytest.param({}, None, id="nothing says when"),
    ],
)
def test_h1_lateness_is_the_most_of_instant_and_deadlines(fields: dict[str, Any], late: int | None) -> None:
    run = ended(kind="detached", claimed_at=NOW, **times(start_requested_at=20, started_at=25, ended_at=40), **fields)
    assert durations.late_by(run) == (None if late is None else late * SECOND)
    missed = lines.line_of(run, LIST)
    assert bool(late) == bool(missed.get("missed_start") or missed.get("missed_end"))
    assert durations.is_late(run, NOW) == bool(late)


def test_h1_a_run_is_late_while_its_deadline_is_over() -> None:
    run = ended(claimed_at=NOW, state="RUNNING", ended_at=None, end_by=NOW + SECOND, **times(start_requested_at=0))
    assert durations.late_by(run) is None
    assert [durations.is_late(run, NOW + at) for at in (0, 2 * SECOND)] == [False, True]
