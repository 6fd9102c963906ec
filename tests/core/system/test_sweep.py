"""Which overdue rows are hinted, and for how long each is leased afterwards (O3)."""

from __future__ import annotations

import pytest

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.ref import Ref
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


def test_w7_polls_of_a_tick_are_in_slices_that_keep_the_rate() -> None:
    refs = [Ref("run", (f"r{number}", "1")) for number in range(sweep.POLL_BATCH + 10)]
    slices = sweep.in_slices(refs, NOON)
    assert [(at, len(part)) for at, part in slices] == [(NOON, sweep.POLL_BATCH), (NOON + sweep.POLL_EVERY, 10)]
    assert [ref for _, part in slices for ref in part] == refs
    later = sweep.in_slices(refs[:20], NOON, before=sweep.POLL_BATCH - 10)
    assert later == [(NOON, refs[:10]), (NOON + sweep.POLL_EVERY, refs[10:20])]


def test_w5_the_lease_of_a_worker_has_no_grace() -> None:
    leased = run(target_id="worker", wake_at=NOON, lease_until=NOON)
    assert sweep.grace_of(leased) == 0
    assert sweep.grace_of(run(target_id=None, wake_at=NOON, lease_until=NOON)) == sweep.GRACE
    assert sweep.grace_of(run(target_id="worker", wake_at=NOON, lease_until=NOON + 1)) == sweep.GRACE
    assert sweep.grace_of(job(wake_at=NOON)) == sweep.GRACE
