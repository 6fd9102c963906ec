"""Views as the API answers with them. `test_shapes` compares their fields with those of the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

View = dict[str, Any]

CLEAN = "demo.flights.clean"
SCHEDULES = "/v1/namespaces/demo/apps/flights/schedules"
JOB = f"{CLEAN}.m3k2j9x1.0123456789abcdef0123"
ARN = "arn:aws:iam::123456789012:user/ada"


def past(**ago: float) -> str:
    """An instant this long ago, as the API writes it."""
    moment = datetime.now(UTC) - timedelta(**ago)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def stamp(kind: str, name: str) -> View:
    return {
        "name": name,
        "kind": kind,
        "description": "",
        "tags": {},
        "owner": "",
        "version": 3,
        "updated_at": past(minutes=3.5),
        "updated_by": ARN,
    }


def namespace(name: str = "demo") -> View:
    return {**stamp("namespace", name), "description": "Flights out of New York", "owner": "data team"}


def app(name: str = "demo.flights") -> View:
    return {**stamp("app", name), "tags": {"stage": "dev"}}


def workflow(name: str = "demo.flights.clean_flights") -> View:
    target = {
        "type": "emr_serverless",
        "entry_point": "s3://lake/code/clean_flights.py",
        "arguments": ["--strict"],
        "py_files": [],
        "spark": {"spark.executor.cores": "2"},
        "application_id": None,
        "execution_role_arn": None,
    }
    retries = {"attempts": 2, "delay": "30s"}
    return {**stamp("workflow", name), "target": target, "properties": {}, "priority": 5, "retries": retries}


def dataset(name: str = "demo.flights") -> View:
    return {
        **stamp("dataset", name),
        "bucket": "lake",
        "prefix": "raw/flights/",
        "keys": ["year", "month", "day"],
        "ready": {"done_flag": "_SUCCESS"},
    }


def schedule(name: str = CLEAN, state: str = "enabled") -> View:
    return {
        **stamp("schedule", name),
        "description": "Cleans each day of flights",
        "workflow": "demo.flights.clean_flights",
        "trigger": {"type": "partition", "dataset": "demo.flights", "count": 1},
        "by": ["year", "month", "day"],
        "constraints": [{"type": "concurrency", "max": 2, "on_unmet": "wait"}],
        "properties": {"threshold": "0.5"},
        "priority": None,
        "timeout": {"after": "1d", "then": "abort"},
        "state": state,
        "enabled": state == "enabled",
        "triggered_by": "1 partition of demo.flights",
        "pause_reason": None,
        "stops": [],
        "skips": [],
        "generation": 1763673000000,
    }


def job(job_id: str = JOB, state: str = "PENDING_LAUNCH") -> View:
    return {
        "job_id": job_id,
        "schedule": CLEAN,
        "kind": "gathering",
        "state": state,
        "reason": "waits for a slot of workflow demo.flights.clean_flights: 2 of 2 in use; position 3 of 4",
        "created_at": past(minutes=2.2),
        "due_at": None,
        "met_at": past(minutes=2),
        "wake_at": None,
        "queued_in": "workflow:demo.flights.clean_flights",
        "holds": [],
        "correlation": {"year": "2013", "month": "1", "day": "1"},
        "attempt": 1,
        "progress": {"0": 1},
    }


def job_why(job_id: str = JOB, state: str = "PENDING_TRIGGER") -> View:
    return {
        "job_id": job_id,
        "schedule": CLEAN,
        "state": state,
        "decision": "wait",
        "why": "waits for 1 partition of demo.weather (1 partition of demo.flights came at 2026-11-20T11:00:00.000Z)",
        "arrived": ["1 partition of demo.flights came at 2026-11-20T11:00:00.000Z"],
        "missing": ["1 partition of demo.weather"],
        "since": past(minutes=2.2),
        "correlation": {"year": "2013", "month": "1", "day": "1"},
        "wakes": "the next event that its trigger waits for, or its timeout at 2026-11-21T11:00:00.000Z",
        "constraints": [],
    }


def schedule_why(state: str = "enabled") -> View:
    return {
        "schedule": CLEAN,
        "state": state,
        "why": job_why()["why"],
        "next_fire": past(minutes=-4.5),
        "jobs": [job_why()],
    }


def unmet() -> list[View]:
    """The constraints of a job in ``why``, when one of two is met."""
    return [
        {"type": "time_window", "met": False, "why": "opens at 22:00 in Europe/Paris", "until": past(hours=-3.5)},
        {"type": "since_last_run", "met": True, "why": "4 h have passed since the last run started", "until": None},
    ]


def version(number: int, *changes: str) -> View:
    made = schedule()
    definition = {field: made[field] for field in ("workflow", "trigger", "by", "constraints", "properties")}
    return {
        "version": number,
        "created_at": past(hours=10 - number),
        "created_by": ARN,
        "definition": definition,
        "changes": list(changes),
    }


def run(run_id: str = JOB, state: str = "SUCCEEDED", **more: Any) -> View:
    ended = state in ("SUCCEEDED", "FAILED", "RETRYING", "CANCELLED")
    return {
        "run_id": run_id,
        "attempt": 1,
        "attempts": 1,
        "schedule": CLEAN,
        "workflow": "demo.flights.clean_flights",
        "state": state,
        "reason": "exit code 1: the file is empty" if state in ("FAILED", "RETRYING") else "",
        "fired_by": "trigger met: 1 partition of demo.flights came at 2026-11-20T11:00:00.000Z",
        "kind": "gathering",
        "priority": 5,
        "correlation": None,
        "partition": {"year": "2013", "month": "1", "day": "1"},
        "properties": {"threshold": "0.5"},
        "target": {"type": "emr_serverless", "entry_point": "s3://lake/code/clean_flights.py"},
        "target_id": "00f1a2b3c4d5e6f7",
        "context": f"s3://control/context/{run_id}.json",
        "created_at": past(seconds=302),
        "nominal_at": None,
        "accepted_at": past(seconds=302),
        "claimed_at": past(seconds=300.4),
        "start_requested_at": past(seconds=300),
        "started_at": past(seconds=290),
        "ended_at": past(seconds=248) if ended else None,
        "start_calls": 1,
    } | more


FIRE = "demo.flights.batch.m3k2j9x1.0123456789abcdef0123"


def fire(**more: Any) -> View:
    """A fire of 2,000 events, three of which have failed."""
    return {
        "id": FIRE,
        "schedule": "demo.flights.batch",
        "workflow": "demo.flights.notify",
        "nominal_at": "2026-11-20T12:00:00.000Z",
        "events": 2_000,
        "state": "FAILED",
        "sent": 1_997,
        "failed": 3,
        "waiting": 0,
        "retrying": 0,
        "dropped": 0,
        "unknown": 0,
        "sends": sends(),
        "at_least": False,
    } | more


def sends() -> View:
    return {
        "first": "2026-11-20T12:00:00.020Z",
        "last": "2026-11-20T12:00:01.500Z",
        "late_p50": 500,
        "late_max": 1_500,
    }


def fire_event(index: int, state: str = "FAILED") -> View:
    return {
        "id": f"{FIRE}-{index}",
        "index": index,
        "due_at": "2026-11-20T12:00:00.000Z",
        "state": state,
        "reason": "the queue does not exist" if state == "FAILED" else "",
        "code": "not_delivered" if state == "FAILED" else None,
    }


def fire_run() -> View:
    """The run that stands for the sent events of a fire in a list."""
    own = {"schedule": "demo.flights.batch", "kind": "fire", "partition": None}
    spread = {"index": 0, "count": 2_000}
    return run(f"{FIRE}-0_6y", **own, count=1_997, fire=FIRE, spread=spread, sends=sends())


def run_page(*history: View) -> View:
    event = {
        "kind": "partition",
        "id": "partition-0123456789abcdef0123",
        "instant": 1763636400000,
        "dataset": "demo.flights",
        "path": "s3://lake/raw/flights/year=2013/month=1/day=1/",
        "partition": {"year": "2013", "month": "1", "day": "1"},
    }
    return {**history[-1], "history": list(history), "events": [event]}


def run_why(run_id: str = JOB) -> View:
    return {
        "run_id": run_id,
        "kind": "run",
        "schedule": CLEAN,
        "state": "RUNNING",
        "at": None,
        "why": "the target is running it",
        "fired_by": run()["fired_by"],
        "waited_ms": 2000,
    }


def partition(day: int) -> View:
    return {
        "dataset": "demo.flights",
        "partition": {"year": "2013", "month": "1", "day": str(day)},
        "path": f"s3://lake/raw/flights/year=2013/month=1/day={day}/",
        "ready_at": past(minutes=3.5),
        "put_at": past(minutes=3.5),
        "object": f"raw/flights/year=2013/month=1/day={day}/_SUCCESS",
    }


def message(name: str = "demo.flights.backup") -> View:
    return {
        **stamp("message", name),
        "schedule": "@every 10s",
        "due_time": past(seconds=-10.5),
        "repeats": 4,
        "ttl": None,
        "zone": "UTC",
        "target": None,
        "data": {"tables": ["flights"]},
        "next_fire": past(seconds=-10.5),
    }


FAILED_RUN = {"run_id": f"{CLEAN}.m3k2j9x1.0f", "partition": None, "reason": "exit code 1: KeyError: 'flights'"}


def backfill(state: str = "RUNNING", **changed: Any) -> View:
    return {
        "backfill_id": "0a1b2c3d4e5f6071",
        "schedule": CLEAN,
        "state": state,
        "reason": None,
        "from": "2026-01-01T00:00:00.000Z",
        "to": "2026-02-01T00:00:00.000Z",
        "dataset": None,
        "order": "newest",
        "only": "all",
        "left_alone": 0,
        "in_flight": [],
        "left_out": 0,
        "incomplete": [],
        "concurrency": 3,
        "properties": {"threshold": "0.7"},
        "first": "2026-01-31T02:00:00.000Z",
        "last": "2026-01-01T02:00:00.000Z",
        "position": "2026-01-20T02:00:00.000Z",
        "total": 31,
        "launched": 10,
        "waiting": 20,
        "running": 2,
        "succeeded": 8,
        "failed": 1,
        "cancelled": 0,
        "failures": [FAILED_RUN],
        "active": [{"job_id": JOB, "entry": "2026-01-22T02:00:00.000Z", "state": "running"}],
        "created_at": past(minutes=3.5),
        "created_by": ARN,
        "ended_at": None,
        **changed,
    }


def reprocess(state: str = "RUNNING", **changed: Any) -> View:
    def step(number: int, name: str, step_state: str, why: str) -> View:
        counts = {"waiting": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0} | {step_state: 1}
        return {
            "step": number,
            "schedule": f"demo.flights.{name}",
            "workflow": f"demo.flights.{name}",
            "state": step_state,
            "reason": None,
            "after": [number - 1] if number else [],
            "why": why,
            "registered": True,
            "backfill_id": f"326ca05653517d0b.{number}" if step_state != "waiting" else None,
            "total": 1,
            "failures": [],
            **counts,
        }

    day = {"year": "2013", "month": "1", "day": "1"}
    return {
        "reprocess_id": "326ca05653517d0b",
        "namespace": "demo",
        "state": state,
        "reason": None,
        "dataset": "demo.flights",
        "run": None,
        "fires": None,
        "first": day,
        "last": day,
        "concurrency": 1,
        "properties": {},
        "total": 3,
        "waiting": 1,
        "running": 1,
        "succeeded": 1,
        "failed": 0,
        "cancelled": 0,
        "steps": [
            step(0, "clean", "succeeded", "counts partitions of demo.flights"),
            step(1, "join", "running", "counts COMPLETED of demo.flights.clean, which demo.flights.clean runs"),
            step(2, "report", "waiting", "counts COMPLETED of demo.flights.join, which demo.flights.join runs"),
        ],
        "created_at": past(minutes=3.5),
        "created_by": ARN,
        "ended_at": None,
        **changed,
    }


def record(kind: str, end: str = "0123456789abcdef0123", **changed: Any) -> View:
    return {
        "id": f"{CLEAN}.m3k2j9x1.{end}",
        "kind": kind,
        "schedule": CLEAN,
        "reason": "its timeout of 1d ended: waits for 1 partition of demo.weather",
        "code": "timed_out",
        "at": past(minutes=3.5),
        "count": 1,
        **changed,
    }
