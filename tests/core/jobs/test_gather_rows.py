"""The whole rows that gathering makes: new jobs, met jobs, and the records of dropped events."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.instants import DAY, HOUR, MINUTE
from chalicelib.core.jobs import gather
from chalicelib.core.jobs.gather import Gathered, Touch
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from tests.core.builders import (
    ABSENT,
    CLEANED,
    NAME,
    NOON,
    ORDERS,
    PARTITION,
    QUIET,
    WEATHER,
    all_of,
    any_of,
    at,
    at_least,
    came,
    job,
    partition_event,
    schedule,
)
from tests.support.reasons import says

ROW = Subscription("any", NAME, 7, 1, "0", NOON)
AT_NOON = "came at 2026-03-02T12:00:00.000Z"
SHOP = {"shop": "a"}


def test_t7_the_first_event_of_a_correlation_begins_its_own_job() -> None:
    one = schedule(all_of(PARTITION, WEATHER), by=["shop"])
    made = gather.gather(None, [Touch(partition_event("p"), ("0",))], one, ROW, SHOP, NOON + 5)
    assert made == Gathered(
        Job(
            schedule=NAME,
            generation=7,
            sort_key="GATHERING#a",
            job_id=ids.job_id(NAME, 7, "p"),
            kind="gathering",
            state="PENDING_TRIGGER",
            created_at=NOON + 5,
            leaves={"0": came()},
            correlation=SHOP,
            reason=says(f"waits for 1 partition of demo.weather (1 partition of demo.flights {AT_NOON})"),
            wake_at=NOON + 5 + DAY,
        )
    )


def test_w4_a_dag_node_job_is_named_by_its_round_for_any_event() -> None:
    correlation = {"~dag": "demo.flights.daily~.7.abc/2"}
    made = gather.gather(None, [Touch(partition_event("p"), ("0",))], schedule(), ROW, correlation, NOON)
    assert made.job is not None
    assert made.job.job_id == ids.job_id(NAME, 7, "demo.flights.daily~.7.abc/2")


def test_t18_a_job_that_stays_met_keeps_its_met_instant() -> None:
    """An absent feed may still undo the match, so the match is evaluated again with each event."""
    either = schedule(any_of(ABSENT, WEATHER))
    then = NOON + MINUTE
    before = job(leaves={"0": came()}, state="PENDING_CONSTRAINTS", met_at=NOON, accepted_at=NOON, rev=3)
    more = gather.gather(before, [Touch(at(partition_event("w"), then), ("1",))], either, ROW, None, then)
    came_then = "1 partition of demo.weather came at 2026-03-02T12:01:00.000Z"
    absent = "no partition of demo.flights had come within 1h at 2026-03-02T12:00:00.000Z"
    assert more == Gathered(
        replace(
            before,
            leaves={"0": came(), "1": came(1, then)},
            rev=4,
            accepted_at=then,
            reason=says(f"trigger met: {absent}; {came_then}"),
            wake_at=then,
        )
    )


def test_t14_an_expired_match_is_recorded_with_its_events() -> None:
    three = schedule(at_least(3, PARTITION, WEATHER, CLEANED, within="1h"))
    waiting = job(leaves={"0": came(), "1": came(1, NOON + MINUTE)})
    reason = (
        "the partial match was not completed within 1h and is dropped: "
        f"1 partition of demo.flights {AT_NOON}; 1 partition of demo.weather came at 2026-03-02T12:01:00.000Z"
    )
    now = NOON + HOUR
    assert gather.expiry(waiting, three, now) == Record(
        waiting.job_id, "EXPIRED", NAME, 7, says(reason), now, NOON, expires_at=now + 180 * DAY
    )


def test_t14_t19_an_event_after_the_window_begins_correlated_job() -> None:
    silent = schedule(all_of(QUIET, WEATHER, within="1h"), by=["shop"])
    now = NOON + 2 * HOUR
    waiting = job(leaves={"0": came(), "1": came()}, sort_key="GATHERING#a", correlation=SHOP, rev=2)
    step = gather.gather(waiting, [Touch(at(partition_event("p"), now), ("0",))], silent, ROW, SHOP, now)
    assert step.dropped is not None
    assert step.dropped.kind == "EXPIRED"
    assert step.job is not None
    assert replace(step.job, reason=says("")) == Job(
        schedule=NAME,
        generation=7,
        sort_key="GATHERING#a",
        job_id=ids.job_id(NAME, 7, "p"),
        kind="gathering",
        state="PENDING_TRIGGER",
        created_at=now,
        rev=3,
        leaves={"0": came(1, now)},
        correlation=SHOP,
        wake_at=now + 10 * MINUTE,
    )


def test_t18_an_ended_absence_is_recorded_for_the_history_period() -> None:
    absent, now = job(leaves={"0": came()}), NOON + MINUTE
    reason = "the absent event arrived before the job was launched"
    record = Record(absent.job_id, "DROPPED", NAME, 7, says(reason), now, NOON, expires_at=now + 180 * DAY)
    assert gather.gather(absent, [], schedule(ABSENT), ROW, None, now, against=("0",)) == Gathered(None, record)


def test_c11_a_detached_job_is_a_row_named_by_begin_and_id_end() -> None:
    met = job(met_at=NOON, rev=6)
    assert met.job_id == "demo.flights.clean.7.first"
    assert gather.detach(met) == replace(met, sort_key="JOB#2026-03-02T12:00:00.000Z#first", kind="detached", rev=1)
    assert met.sort_key == GATHERING


# -- which leaves an event touches ---------------------------------------------------------------------------------


def test_t18_an_absence_counts_though_it_has_no_payload_to_match() -> None:
    big = ORDERS | {"pattern": {"total": [{"numeric": [">", 100]}]}}
    answer = replace(partition_event("late"), kind="absent", payload=None)
    assert gather.touched(schedule(ABSENT | {"of": big}), answer, [ROW]) == (("0",), ())


def test_t10_a_status_counts_for_the_schedule_that_started_run() -> None:
    nightly = schedule(CLEANED | {"schedule": "demo.flights.nightly"})
    status = replace(partition_event("s"), kind="program_status", schedule="demo.flights.nightly")
    assert gather.touched(nightly, status, [ROW]) == (("0",), ())
    assert gather.touched(nightly, replace(status, schedule="demo.flights.hourly"), [ROW]) == ((), ())
