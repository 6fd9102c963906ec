"""Rows as tests need them: the fields that matter are given, the rest is plain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.rows import Event, Gate, Job, Marker, Run, StartRequest
from tests.support.clock import NOON

SCHEDULE = "demo.flights.clean"
GENERATION = NOON


def gate(**fields: Any) -> Gate:
    return replace(Gate(SCHEDULE, GENERATION, 1, "enabled", NOON), **fields)


def job(job_id: str = "j1", **fields: Any) -> Job:
    plain = Job(SCHEDULE, GENERATION, "PENDING", job_id, "gathering", "PENDING_CONSTRAINTS", NOON, wake_at=NOON)
    return replace(plain, **fields)


def event(event_id: str = "e1", **fields: Any) -> Event:
    plain = Event(
        event_id, "partition", "partition:demo.flights", NOON, NOON, {"day": "1"}, "demo.flights", "s3://l/p/"
    )
    return replace(plain, **fields)


def marker(event_id: str = "e1", job_id: str = "j1") -> Marker:
    return Marker(SCHEDULE, GENERATION, event(event_id), job_id, NOON)


def run(run_id: str = "r1", **fields: Any) -> Run:
    request = StartRequest(
        {"type": "emr_serverless", "rate": 0.1}, {"deep": {"list": [1, 2.5, None]}}, "s3://c", "t", "n"
    )
    plain = Run(
        run_id, 1, SCHEDULE, GENERATION, "demo.flights.w", "STARTING", request, ("workflow:demo.flights.w",),
        "a test", NOON, NOON, 5, 1, "gathering", wake_at=NOON,
    )  # fmt: skip
    return replace(plain, **fields)
