"""The states of a job run as one table, after the EMR Serverless user guide, "Job run states".

    SUBMITTED -> PENDING -> SCHEDULED -> RUNNING -> SUCCESS
                                            |----> FAILED
                                            '----> PENDING   (the next attempt of a retry policy)
    any of the first four -> CANCELLING -> CANCELLED          (cancelled, or timed out)
    any of the first three -> FAILED                          (can never be started)

In PENDING a run waits for capacity. In SCHEDULED its capacity is reserved, and its driver is starting.
"""

from __future__ import annotations

from collections.abc import Mapping

SUBMITTED = "SUBMITTED"
PENDING = "PENDING"
SCHEDULED = "SCHEDULED"
RUNNING = "RUNNING"
SUCCESS = "SUCCESS"
FAILED = "FAILED"
CANCELLING = "CANCELLING"
CANCELLED = "CANCELLED"

TERMINAL = frozenset({SUCCESS, FAILED, CANCELLED})

NEXT: Mapping[str, frozenset[str]] = {
    SUBMITTED: frozenset({PENDING, CANCELLING, FAILED}),
    PENDING: frozenset({SCHEDULED, CANCELLING, FAILED}),
    SCHEDULED: frozenset({RUNNING, CANCELLING, FAILED, PENDING}),
    RUNNING: frozenset({SUCCESS, FAILED, CANCELLING, PENDING}),
    CANCELLING: frozenset({CANCELLED}),
    SUCCESS: frozenset(),
    FAILED: frozenset(),
    CANCELLED: frozenset(),
}

_FORWARD = (SUBMITTED, PENDING, SCHEDULED, RUNNING)


class IllegalMove(Exception):
    """A state change outside the table, which is a bug of the emulator. Nothing was changed."""


def check_move(previous: str, state: str) -> None:
    """Raise IllegalMove unless the table allows `previous -> state`."""
    if state not in NEXT[previous]:
        allowed = ", ".join(sorted(NEXT[previous])) or "nothing, it is terminal"
        raise IllegalMove(f"expected one of [{allowed}] after {previous}, got {state}")


def reached(current: str, state: str) -> bool:
    """Whether `current` is at or past `state` on the way to RUNNING.

    A run that starts again after a restart of the emulator keeps the state that its callers have read. For them the run
    never stopped, and states never go backwards within an attempt.
    """
    return current not in _FORWARD or _FORWARD.index(current) >= _FORWARD.index(state)
