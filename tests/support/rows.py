"""Rows for tests: the fields that matter are arguments, the rest have defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import AppliedEvent, CountedObject, Event, PostedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.rows.run import DeadLetter, Run, StartRequest
from chalicelib.core.rows.schedule import ScheduleState
from tests.support.clock import NOON
from tests.support.reasons import says, with_reasons

SCHEDULE = "demo.flights.clean"
GENERATION = NOON


def schedule_state(**fields: Any) -> ScheduleState:
    return replace(ScheduleState(SCHEDULE, GENERATION, 1, "enabled", NOON), **fields)


def job(job_id: str = "j1", **fields: Any) -> Job:
    plain = Job(SCHEDULE, GENERATION, "GATHERING", job_id, "gathering", "PENDING_CONSTRAINTS", NOON, wake_at=NOON)
    return replace(plain, **with_reasons(fields))


def event(event_id: str = "e1", **fields: Any) -> Event:
    plain = Event(
        event_id, "partition", "partition:demo.flights", NOON, NOON, {"day": "1"}, "demo.flights", "s3://l/p/"
    )
    return replace(plain, **fields)


def applied_event(event_id: str = "e1", job_id: str = "j1") -> AppliedEvent:
    return AppliedEvent(SCHEDULE, GENERATION, event(event_id), job_id, NOON)


def sized(object_key: str = "raw/a/day=1/x", **fields: Any) -> CountedObject:
    answer = event(object_key, kind="size", key="size:demo.flights", size=5 * 10**9)
    return replace(CountedObject("demo.flights", object_key, "etag", answer, wake_at=NOON), **fields)


def posted(event_id: str = "p1", **fields: Any) -> PostedEvent:
    payload = {"total": 1.5, "deep": {"list": [1, None, "ü"]}}
    answer = event(event_id, kind="event", key="event:demo:closed", partition=None, payload=payload)
    return replace(PostedEvent(answer, wake_at=NOON, expires_at=NOON), **fields)


def backfill(backfill_id: str = "b1", **fields: Any) -> Backfill:
    plain = Backfill(
        SCHEDULE, backfill_id, GENERATION, 1, "RUNNING", "p1", 5, "2026-01-01T02:00:00.000Z",
        "2026-01-05T02:00:00.000Z", "oldest", 2, NOON, since=NOON - 9, until=NOON, properties={"rate": 0.5},
        wake_at=NOON,
    )  # fmt: skip
    return replace(plain, **fields)


def notice(notice_id: str = "j1", **fields: Any) -> PendingNotice:
    plain = PendingNotice("demo.flights.w", "failed", notice_id, SCHEDULE, "disk full", NOON, wake_at=NOON)
    return replace(plain, **fields)


def dead_letter(run_id: str = "demo.flights.tell.1.e1", **fields: Any) -> DeadLetter:
    plain = DeadLetter(run_id, 1, "demo.flights.tell", "demo.flights.tell", "sqs", says("no such queue"), 3, NOON)
    return replace(plain, **with_reasons(fields))


def run(run_id: str = "r1", **fields: Any) -> Run:
    request = StartRequest(
        {"type": "emr_serverless", "rate": 0.1}, {"deep": {"list": [1, 2.5, None]}}, "s3://c", "t", "n"
    )
    plain = Run(
        run_id, 1, SCHEDULE, GENERATION, "demo.flights.w", "STARTING", request, ("workflow:demo.flights.w",),
        says("a test"), NOON, NOON, 5, 1, "gathering", wake_at=NOON,
    )  # fmt: skip
    return replace(plain, **with_reasons(fields))
