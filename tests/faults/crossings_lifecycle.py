"""Pairs of invocations that meet at a timeout or at an update that carries, for `test_two_at_once.py`."""

from __future__ import annotations

from tests.faults.crossings import (
    Crossing,
    check,
    ends,
    passes,
    serving,
    settle,
    succeeded,
    then,
    uploads,
)  # fmt: skip
from tests.faults.roads import ONE_AT_A_TIME
from tests.support.schedules import partitions

AN_HOUR = {"after": "1h", "then": "abort"}
ANYWAY = {"after": "1h", "then": "run"}

LIFECYCLE_CROSS = {
    "a check of what has timed out, and one more event": Crossing(
        {"daily": partitions(2, timeout=AN_HOUR)},
        then(uploads(1), settle, passes("61m")),
        check("daily"),
        uploads(2),
        succeeded(daily=1),
        uploads(3),
    ),
    "a check of what runs anyway, and one more event": Crossing(
        {"daily": partitions(2, timeout=ANYWAY)},
        then(uploads(1), settle, passes("61m")),
        check("daily"),
        uploads(2),
        succeeded(daily=2),
        uploads(3),
    ),
    "two events after a timeout": Crossing(
        {"daily": partitions(2, timeout=AN_HOUR)},
        then(uploads(1), settle, passes("61m")),
        uploads(2),
        uploads(3),
        succeeded(daily=1),
    ),
    "a serving of what runs anyway, and one more event": Crossing(
        {"daily": partitions(timeout=ANYWAY, constraints=ONE_AT_A_TIME)},
        then(uploads(1), settle, uploads(2), settle, passes("61m"), ends(), passes("1s")),
        serving,
        uploads(3),
        succeeded(daily=3),
    ),
}
