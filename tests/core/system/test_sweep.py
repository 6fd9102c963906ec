"""Which overdue rows are hinted, and for how long each is leased afterwards (O3)."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.system import sweep
from tests.core.builders import NOON, job, run


@pytest.mark.parametrize(
    ("wake_at", "overdue"),
    [(None, False), (NOON + 1, False), (NOON, False), (NOON - sweep.GRACE + 1, False), (NOON - sweep.GRACE, True)],
)
def test_o3_a_row_is_overdue_once_its_hint_had_time_to_arrive(wake_at: int | None, overdue: bool) -> None:
    assert sweep.overdue(wake_at, NOON) is overdue


def test_o3_a_failing_row_is_left_alone_longer_each_time_to_hour() -> None:
    spans = [(sweep.lease(job(leases=leases), NOON).until - NOON) // SECOND for leases in range(10)]
    assert spans == [30, 50, 110, 230, 470, 950, 1910, 3600, 3600, 3600]
    assert sweep.lease(run(leases=10**6), NOON).until == NOON + HOUR


def test_o3_a_row_that_failed_twelve_times_is_parked() -> None:
    assert not sweep.lease(job(leases=sweep.PARKED_AFTER - 1), NOON).parked
    assert sweep.lease(job(leases=sweep.PARKED_AFTER), NOON).parked
