"""The whole state machine of runs: every pair of states is either a transition of the table or refused."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from chalicelib.core import states
from chalicelib.core.states import RUN_MOVES, RunState

STATES: tuple[RunState, ...] = get_args(RunState)
MOVES = {(old, new) for old, moves in RUN_MOVES.items() for new in moves}


def test_the_table_names_every_state_and_no_other() -> None:
    assert set(RUN_MOVES) == set(STATES)
    assert {new for _, new in MOVES} <= set(STATES)
    assert set(states.PROGRAM_STATUS) <= set(STATES)
    assert set(states.EMR_STATE.values()) <= set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_a_finished_run_changes_only_from_retrying_to_failed(state: RunState) -> None:
    if states.is_terminal(state):
        assert RUN_MOVES[state] == (("FAILED",) if state == "RETRYING" else ())
    else:
        assert RUN_MOVES[state]


def test_every_state_is_reached_from_starting() -> None:
    reached: set[RunState] = {"STARTING"}
    for _ in STATES:
        reached |= {new for old, new in MOVES if old in reached}
    assert reached == set(STATES)


def test_no_transition_returns_to_an_earlier_state() -> None:
    """Without a cycle, the table alone tells an old update from a new one."""
    ahead = {state: set(RUN_MOVES[state]) for state in STATES}
    for _ in STATES:
        ahead = {state: after.union(*(ahead[each] for each in after)) for state, after in ahead.items()}
    assert all(state not in after for state, after in ahead.items())


def test_a_running_run_was_requested_and_cannot_be_withdrawn() -> None:
    assert states.may_move("STARTING", "ABORTED")
    assert not states.may_move("RUNNING", "ABORTED")


@pytest.mark.parametrize(("old", "new"), list(product(STATES, STATES)))
def test_a_run_makes_the_transitions_of_the_table_and_no_other(old: RunState, new: RunState) -> None:
    assert states.may_move(old, new) is ((old, new) in MOVES)


def test_t10_a_status_follows_the_state_but_for_failed_attempts() -> None:
    assert states.PROGRAM_STATUS == {
        "RUNNING": "STARTED",
        "SUCCEEDED": "COMPLETED",
        "FAILED": "FAILED",
        "CANCELLED": "KILLED",
    }


def test_w7_every_state_of_an_emr_job_run_is_known() -> None:
    assert set(states.EMR_STATE) == {
        *("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "RUNNING"),
        *("SUCCESS", "FAILED", "CANCELLING", "CANCELLED"),
    }
