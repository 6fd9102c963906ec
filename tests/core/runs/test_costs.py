"""When Sluice asks again about a run that has ended, for its bill or its error: twice at most (H1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete, costs
from chalicelib.core.targets.answers import RunUpdate
from tests.support import rows
from tests.support.clock import NOON

KNOWN = (25, 100, 0)


def over(**fields: object) -> Run:
    return rows.run(**{"state": "SUCCEEDED", "state_at": NOON, "target_id": "a/1", "wake_at": None, **fields})


def test_h1_unknown_costs_are_asked_for_at_2_and_15_minutes_only() -> None:
    run, checks = over(), []
    while (at := costs.next_check(run, NOON)) is not None:
        assert (costs.is_due(run, at - 1), costs.is_due(run, at)) == (False, True)
        checks.append(at)
        run = costs.checked(run, (), at)
    assert checks == [NOON + 2 * MINUTE, NOON + 15 * MINUTE]
    assert (run.wake_at, run.billed, run.state, run.state_at) == (None, (), "SUCCEEDED", NOON)


def test_h1_known_costs_end_the_polls() -> None:
    run = costs.checked(over(rev=4, leases=3), KNOWN, NOON + 2 * MINUTE)
    assert (run.billed, run.wake_at, run.rev, run.leases) == (KNOWN, None, 5, 0)


def test_h1_after_an_outage_costs_are_asked_for_once() -> None:
    late = NOON + HOUR
    assert costs.next_check(over(), late) == late
    assert costs.checked(over(), (), late).wake_at is None


def test_h1_costs_of_all_zero_are_not_yet_known() -> None:
    assert costs.next_check(over(billed=(0, 0, 0)), NOON) == NOON + 2 * MINUTE
    assert costs.checked(over(billed=(0, 0, 0)), (0, 0, 0), NOON + HOUR).billed == (0, 0, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"billed": KNOWN},
        {"state": "RUNNING"},
        {"target_id": None},
        {"outcome": "lost"},
        {"request": replace(rows.run().request, target={"type": "sqs"})},
        {"request": replace(rows.run().request, target={"type": "worker", "pool": "p"})},
    ],
    ids=["is known", "still runs", "never started", "EMR knows it no more", "a delivery", "a worker's"],
)
def test_h1_a_run_without_costs_is_not_asked_about(fields: dict[str, object]) -> None:
    run = over(**fields)
    assert costs.next_check(run, NOON) is None
    assert not costs.is_due(run, NOON + HOUR)


def failed(reason: str = "exit code 1", **fields: object) -> Run:
    """A run that has failed with the reason that its target reported."""
    begun = over(**{"state": "RUNNING", "started_at": NOON, "billed": KNOWN, **fields})
    step = complete.advance(begun, RunUpdate("FAILED", NOON, reason), NOON, None)
    assert step is not None
    return replace(step.run, announce=())


def test_an_error_that_is_not_known_is_looked_up_twice_at_most() -> None:
    run = failed()
    assert costs.next_check(run, NOON) == NOON + 2 * MINUTE
    run = costs.checked(run, (), NOON + 2 * MINUTE)
    assert (run.billed, run.wake_at) == (KNOWN, NOON + 15 * MINUTE)
    assert costs.checked(run, (), NOON + 15 * MINUTE).wake_at is None


def test_an_error_that_was_found_ends_the_checks() -> None:
    run = failed("exit code 1: KeyError: 'flights'")
    assert costs.checked(run, (), NOON + 2 * MINUTE).wake_at is None


@pytest.mark.parametrize(
    "run",
    [
        failed("exit code 1: KeyError: 'flights'"),
        replace(failed(), state="SUCCEEDED"),
        failed(outcome="timed_out"),
        failed(request=replace(rows.run().request, target={"type": "worker", "pool": "p"})),
    ],
    ids=["names its error", "succeeded", "was ended by Sluice", "a worker's"],
)
def test_no_log_is_read_for_a_run_that_lacks_no_error(run: Run) -> None:
    assert costs.next_check(run, NOON) is None
