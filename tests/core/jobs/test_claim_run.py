"""The run that a claim makes of a job: the whole row, field by field, and its start request (H1, W10, W15)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.check import Launch
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run, StartRequest
from chalicelib.core.why import NONE
from tests.core.builders import (
    EMR,
    EMR_LIMIT,
    LIMIT,
    NAME,
    NOON,
    SQS,
    facts,
    job,
    run,
    schedule,
    schedule_state,
    workflow,
)
from tests.core.builders import partition_event as event
from tests.support.reasons import says

JOB_ID = f"{NAME}.7.first"
PLAIN_TARGET = {
    "type": "emr_serverless",
    "entry_point": "s3://code/job.py",
    "arguments": [],
    "py_files": [],
    "spark": {},
    "application_id": "app-1",
    "execution_role_arn": None,
}
PACE = Pace(EMR_LIMIT, SECOND, 20)
DUE = NOON - MINUTE
FIRE_EVENT = replace(event(at=DUE - 1), kind="time")


def built(claimed: Job, known: Facts, **fields: Any) -> Run:
    return claim.build_run(claimed, known, (LIMIT, EMR_LIMIT), "s3://c/x.json", NOON + 5, **fields)


# -- whole rows ----------------------------------------------------------------------------------------------------


def test_h1_a_run_has_all_known_facts_of_its_job_and_workflow() -> None:
    fire = job(
        "fire",
        attempt=2,
        due_at=DUE,
        window_end=NOON + 5,
        accepted_at=NOON - 7,
        correlation={"year": "2013"},
        event=FIRE_EVENT,
        properties={"rate": 0.5},
        priority=8,
        reason="its time has come",
    )
    known = facts(
        schedule_state=schedule_state(version=4),
        schedule=schedule(pause_after_failures=3, data="hello", resources={"workers": 5}),
        workflow=workflow(
            properties={"mode": "full"},
            resources={"workers": 3, "vcpu": 2},
            retries={"attempts": 3},
            timeout="2h",
            deadline={"start_within": "10m", "end_within": "1h"},
            expected="55m",
        ),
        workflow_row=Definition("workflow", NAME, {}, 6, NOON),
        limit_states={LIMIT: LimitState(LIMIT, numbered=41)},
    )

    spark = {
        "spark.driver.cores": "2",
        "spark.executor.cores": "2",
        "spark.executor.instances": "5",
        "spark.dynamicAllocation.maxExecutors": "5",
    }
    assert built(fire, known, paces=(PACE,), units=12, appointment=NOON + 300) == Run(
        run_id=JOB_ID,
        attempt=2,
        schedule=NAME,
        generation=7,
        workflow=NAME,
        state="STARTING",
        request=StartRequest(
            target={**PLAIN_TARGET, "spark": spark},
            properties={"mode": "full", "rate": 0.5},
            context_uri="s3://c/x.json",
            client_token=ids.client_token(JOB_ID, 2),
            name=f"{JOB_ID}-2",
            data={"content_type": "text/plain; charset=utf-8", "text": "hello"},
            logs="demo/",
        ),
        permits=(LIMIT, EMR_LIMIT),
        units=12,
        fired_by=says("its time has come"),
        claimed_at=NOON + 5,
        created_at=NOON,
        priority=8,
        latest_start=DUE + 5 * MINUTE,  # an hour after it was due it is to end, and it takes 55 minutes
        attempts=3,
        approvals={},
        kind="fire",
        version=4,
        nominal_at=DUE - 1,
        due_at=DUE,
        late=True,
        accepted_at=NOON - 7,
        correlation={"year": "2013"},
        partition={"year": "2013"},
        event=FIRE_EVENT,
        pause_after=3,
        run_timeout=2 * HOUR,
        paced_from=NOON + 300,
        paced_until=NOON + 2_300,
        start_by=DUE + 10 * MINUTE,
        end_by=DUE + HOUR,
        workflow_version=6,
        number=42,
        wake_at=NOON + 5,
    )


def test_h1_a_run_of_a_plain_job_has_no_fields_it_does_not_need() -> None:
    assert claim.build_run(job(), facts(), (), "s3://c/x.json", NOON + 5) == Run(
        run_id=JOB_ID,
        attempt=1,
        schedule=NAME,
        generation=7,
        workflow=NAME,
        state="STARTING",
        request=StartRequest(
            PLAIN_TARGET, {}, "s3://c/x.json", ids.client_token(JOB_ID, 1), f"{JOB_ID}-1", logs="demo/"
        ),
        permits=(),
        fired_by=says("gathering"),
        claimed_at=NOON + 5,
        created_at=NOON,
        priority=5,
        attempts=1,
        kind="gathering",
        version=1,
        run_timeout=12 * HOUR,
        wake_at=NOON + 5,
    )


def test_l19_a_run_of_a_backfill_never_pauses_the_schedule() -> None:
    known = facts(schedule=schedule(pause_after_failures=3))
    made = built(job("backfill", backfill="b1"), known)
    assert (made.backfill, made.pause_after) == ("b1", None)


def test_e2_a_run_is_late_from_the_end_of_its_window() -> None:
    assert built(job("fire", window_end=NOON + 6), facts()).late is False
    assert built(job("fire"), facts()).late is False


# -- what runs again -----------------------------------------------------------------------------------------------


def test_w15_a_rerun_has_what_its_origin_had_and_nothing_newer() -> None:
    known = facts(
        schedule=schedule(data="new", properties={"rate": 2}),
        workflow=workflow(properties={"mode": "full"}),
        origin=run(request=StartRequest(EMR, {}, "s3://c/old.json", "token", "name", {"uri": "s3://data/old"})),
    )
    again = built(job("run_now", rerun_of="r0", properties={"rate": 1}), known)
    assert (again.rerun_of, again.request.properties, again.request.data) == (
        "r0",
        {"rate": 1},
        {"uri": "s3://data/old"},
    )
    # The origin matters only for a job that repeats a run.
    first = built(job("run_now", properties={"rate": 1}), known)
    assert (first.request.properties, first.request.data) == (
        {"mode": "full", "rate": 1},
        {"content_type": "text/plain; charset=utf-8", "text": "new"},
    )


def test_w15_a_rerun_without_its_origin_has_the_schedule_data() -> None:
    made = built(job("run_now", rerun_of="r0"), facts(schedule=schedule(data="new")))
    assert made.request.data == {"content_type": "text/plain; charset=utf-8", "text": "new"}


# -- the request ---------------------------------------------------------------------------------------------------


def test_w10_an_emr_run_name_is_truncated_at_its_beginning() -> None:
    made = built(job(job_id="a" * 10 + "b" * 300), facts())
    assert made.request.name == "b" * 254 + "-1"


STACK = StartRate("app-1", SECOND, 20, "arn:aws:iam::1:role/stack")
OWN = {"application_id": "app-own", "execution_role_arn": "arn:aws:iam::1:role/own"}


@pytest.mark.parametrize(
    ("target", "stack", "application", "role"),
    [
        (EMR | OWN, STACK, "app-own", "arn:aws:iam::1:role/own"),
        (EMR, STACK, "app-1", "arn:aws:iam::1:role/stack"),
        (EMR, StartRate("app-1", SECOND, 20), "app-1", None),
    ],
)
def test_w10_a_run_keeps_its_application_and_role(
    target: dict[str, Any], stack: StartRate, application: str, role: str | None
) -> None:
    made = built(job(), facts(workflow=workflow(target), start_rate=stack))
    assert made.request.target == {**PLAIN_TARGET, "application_id": application, "execution_role_arn": role}


def test_a_delivery_has_no_application_attempts_or_timeout() -> None:
    made = claim.build_run(job(), facts(workflow=workflow(SQS), start_rate=STACK), (), "", NOON)
    assert made.request.target == {"type": "sqs", "queue_url": "https://sqs.example/queue", "group": None}
    assert (made.run_timeout, made.attempts, made.number) == (None, 1, 0)


def test_w12_a_run_without_a_time_limit_says_so() -> None:
    assert built(job(), facts(workflow=workflow(timeout="never"))).run_timeout == 0


# -- permits of its paces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paces", "appointment", "since", "until"),
    [
        ((PACE,), NOON + 300, NOON + 300, NOON + 2_300),
        ((PACE,), None, None, NOON + 2_005),
        ((), NOON + 300, None, None),
    ],
)
def test_e3_a_run_may_be_started_from_its_permitted_instant_on(
    paces: tuple[Pace, ...], appointment: int | None, since: int | None, until: int | None
) -> None:
    made = built(job(), facts(), paces=paces, appointment=appointment)
    assert (made.paced_from, made.paced_until) == (since, until)


# -- its number ----------------------------------------------------------------------------------------------------


def test_h1_a_run_is_numbered_if_it_takes_permit_of_its_workflow() -> None:
    known = facts(limit_states={LIMIT: LimitState(LIMIT, numbered=41), EMR_LIMIT: LimitState(EMR_LIMIT, numbered=7)})
    assert claim.build_run(job(), known, (EMR_LIMIT, LIMIT), "", NOON).number == 42
    assert claim.build_run(job(), known, (EMR_LIMIT,), "", NOON).number == 0
    assert claim.build_run(job(number=9), known, (LIMIT,), "", NOON).number == 9
    assert claim.build_run(job(), facts(), (LIMIT,), "", NOON).number == 1


def test_h1_only_the_limit_of_a_workflow_numbers_a_run() -> None:
    asks = (RateWindow("rate:x:2/60000", 2, MINUTE), Slots("group:demo.spark", 3), Slots(LIMIT, 1), PACE)
    assert claim.wants_number(job(), Launch(asks, NONE)) == LIMIT
    assert claim.wants_number(job(), Launch((asks[0], asks[1], PACE), NONE)) is None
    assert claim.wants_number(job(held=("group:demo.spark", LIMIT)), Launch((PACE,), NONE)) == LIMIT


# -- the reason why it waited --------------------------------------------------------------------------------------

WAITED = job(accepted_at=NOON - 5 * SECOND, due_at=NOON, rev=3, reason="waits for a slot")


@pytest.mark.parametrize(
    ("waited", "reported"),
    [
        (WAITED, "waits for a slot"),
        (replace(WAITED, accepted_at=NOON - 5 * SECOND + 1), ""),
        (replace(WAITED, accepted_at=NOON, due_at=NOON - HOUR), ""),
        (replace(WAITED, accepted_at=None, due_at=NOON - 5 * SECOND), "waits for a slot"),
        (replace(WAITED, accepted_at=None, due_at=None), ""),
        # A retry's wait reason covers the time since the retry was due, not the wait of the first attempt.
        (replace(WAITED, kind="retry"), ""),
        (replace(WAITED, kind="retry", accepted_at=NOON, due_at=NOON - 5 * SECOND), "waits for a slot"),
        # A backfill's job is as old as the instant of the past that it runs. One that was launched as it was written
        # did not wait.
        (replace(WAITED, kind="backfill", rev=1), ""),
        (replace(WAITED, kind="backfill"), "waits for a slot"),
        (replace(WAITED, rev=1), "waits for a slot"),
        (replace(WAITED, reason=says("x" * 121)), "x" * 120),
    ],
)
def test_h1_a_run_records_its_wait_if_over_five_seconds(waited: Job, reported: str) -> None:
    assert claim.waited_for(waited, NOON).text == reported
