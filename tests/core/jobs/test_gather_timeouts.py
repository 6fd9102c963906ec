"""What happens to a waiting job when events come that were accepted after its timeout (C10, C11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Gathered, Touch
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from tests.core.builders import NAME, NOON, PARTITION, WEATHER, all_of, at, came, job, partition_event, schedule
from tests.support.reasons import says

ROW = Subscription("any", NAME, 7, 1, "0", NOON)
BOTH = all_of(PARTITION, WEATHER)
LATE = NOON + HOUR
CAME_LATE = "1 partition of demo.weather came at 2026-03-02T13:00:00.000Z"
BEGUN = Job(
    schedule=NAME,
    generation=7,
    sort_key=GATHERING,
    job_id=ids.job_id(NAME, 7, "w"),
    kind="gathering",
    state="PENDING_TRIGGER",
    created_at=LATE,
    rev=5,
    leaves={"1": came(1, LATE)},
    reason=says(f"waits for 1 partition of demo.flights ({CAME_LATE})"),
    wake_at=LATE + HOUR,
)
HALF = job(leaves={"0": came()}, reason="waits for 1 partition of demo.weather", rev=4, leases=3, wake_at=LATE)


def weather(instant: Instant = LATE) -> Event:
    return replace(at(partition_event("w"), instant), dataset="demo.weather")


def late(before: Job, then: str = "abort", correlation: dict[str, str] | None = None) -> Gathered:
    timeout: dict[str, Any] = {"after": "1h", "then": then}
    touches = [Touch(weather(), ("1",))]
    return gather.gather(before, touches, schedule(BOTH, timeout=timeout), ROW, correlation, LATE, timed_out=True)


def test_c10_a_timed_out_match_is_aborted_and_event_begins_next() -> None:
    reason = "not launched within its timeout of 1h: waits for 1 partition of demo.weather"
    record = Record(HALF.job_id, "ABORTED", NAME, 7, says(reason), LATE, NOON, expires_at=LATE + 180 * DAY)
    assert late(HALF) == Gathered(BEGUN, record)


def test_c10_a_job_met_in_time_is_detached_until_its_check() -> None:
    met = replace(HALF, leaves={"0": came(), "1": came()}, met_at=NOON, state="PENDING_CONSTRAINTS")
    apart = replace(met, sort_key="JOB#2026-03-02T12:00:00.000Z#first", kind="detached", rev=1, leases=0, wake_at=LATE)
    assert late(met) == Gathered(BEGUN, detached=apart)


def test_c10_a_partial_match_to_run_anyway_is_detached_as_it_is() -> None:
    apart = replace(HALF, sort_key="JOB#2026-03-02T12:00:00.000Z#first", kind="detached", rev=1, leases=0, wake_at=LATE)
    assert late(HALF, then="run") == Gathered(BEGUN, detached=apart)


def test_t19_the_next_job_waits_for_the_same_correlation() -> None:
    correlation = {"day": "1/2"}
    before = replace(HALF, sort_key="GATHERING#1%2F2", correlation=correlation)
    assert late(before, correlation=correlation).job == replace(
        BEGUN, sort_key="GATHERING#1%2F2", correlation=correlation
    )


def test_w4_a_dag_node_keeps_one_job_a_round_though_it_timed_out() -> None:
    """The next job would have the same id, so the events stay together, and the check ends the job."""
    correlation = {"~dag": "demo.flights.daily~.7.abc/1"}
    place = "GATHERING#demo.flights.daily%7E.7.abc%2F1"
    own = ids.job_id(NAME, 7, "demo.flights.daily~.7.abc/1")
    before = replace(HALF, job_id=own, sort_key=place, correlation=correlation)
    assert late(before, correlation=correlation) == Gathered(
        replace(
            before,
            leaves={"0": came(), "1": came(1, LATE)},
            rev=5,
            state="PENDING_CONSTRAINTS",
            met_at=LATE,
            accepted_at=LATE,
            reason=says(f"trigger met: 1 partition of demo.flights came at 2026-03-02T12:00:00.000Z; {CAME_LATE}"),
            wake_at=LATE,
        )
    )


def test_c10_without_an_event_timed_out_job_is_left_to_its_check() -> None:
    assert gather.gather(HALF, [Touch(weather(), ())], schedule(BOTH), ROW, None, LATE, timed_out=True) == Gathered(
        None
    )


def test_a_timed_out_job_is_due_at_once_under_its_own_sort_key() -> None:
    now = NOON + 5 * MINUTE
    assert gather.out_of_time(HALF, now) == replace(
        HALF, sort_key="JOB#2026-03-02T12:00:00.000Z#first", kind="detached", rev=1, leases=0, wake_at=now
    )
