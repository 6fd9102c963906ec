"""Small documents and rows for tests of the core. Everything has a default; a test names only what matters for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import settings

from chalicelib.core.constraints.load import LoadReading
from chalicelib.core.constraints.probe import ProbeResult
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import NewSchedule, Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import SECOND, Instant, iso, parse_instant
from chalicelib.core.jobs.check import Decision, End, EndKind
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names
from chalicelib.core.limits.policies import StartRate
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.run import Run, StartRequest
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.triggers.tree import AnyTrigger, Composite
from tests.support.reasons import with_reasons

NOON = parse_instant("2026-03-02T12:00:00Z")
NAME = "demo.flights.clean"
LIMIT = f"workflow:{NAME}"
EMR_LIMIT = names.EMR_STARTS
RATE = StartRate("app-1", 1 * SECOND, 20)

# A test must not fail because the machine is busy, so no example has a deadline. `make test-long` draws more examples.
EXAMPLES = int(os.environ.get("SLUICE_TEST_EXAMPLES", "1"))
brief = settings(max_examples=30 * EXAMPLES, deadline=None)
thorough = settings(max_examples=100 * EXAMPLES, deadline=None)

PARTITION: dict[str, Any] = {"type": "partition", "dataset": "demo.flights"}
WEATHER: dict[str, Any] = {"type": "partition", "dataset": "demo.weather"}
CLEANED: dict[str, Any] = {"type": "program_status", "workflow": "demo.flights.clean"}
TICK: dict[str, Any] = {"type": "time", "expression": "@every 10s"}
SIZE: dict[str, Any] = {"type": "size", "dataset": "demo.flights", "bytes": "10GB"}
ORDERS: dict[str, Any] = {"type": "event", "event": "orders.closed", "namespace": "demo"}
QUIET: dict[str, Any] = {"type": "quiet", "of": PARTITION, "after": "10m"}
ELAPSED: dict[str, Any] = {"type": "elapsed", "after": "4h"}
ABSENT: dict[str, Any] = {"type": "absent", "of": PARTITION, "within": "1h"}
EMR: dict[str, Any] = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
SQS: dict[str, Any] = {"type": "sqs", "queue_url": "https://sqs.example/queue"}


def all_of(*children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "all", "triggers": list(children), **fields}


def any_of(*children: dict[str, Any]) -> dict[str, Any]:
    return {"type": "any", "triggers": list(children)}


def at_least(count: int, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "at_least", "count": count, "triggers": list(children), **fields}


def concurrency(most: int, on_unmet: str = "abort") -> dict[str, Any]:
    return {"type": "concurrency", "max": most, "on_unmet": on_unmet}


def schedule(trigger: dict[str, Any] | None = None, **fields: Any) -> Schedule:
    return Schedule.model_validate({"workflow": NAME, "trigger": trigger or PARTITION, **fields})


def sent(trigger: dict[str, Any] | None = None, **fields: Any) -> NewSchedule:
    """The same as a user sends it: its zones must exist."""
    return NewSchedule.model_validate({"workflow": NAME, "trigger": trigger or PARTITION, **fields})


def trigger(document: dict[str, Any]) -> AnyTrigger:
    return schedule(document).trigger


def workflow(target: dict[str, Any] | None = None, **fields: Any) -> Workflow:
    return Workflow.model_validate({"target": target or EMR, **fields})


def dataset(**fields: Any) -> Dataset:
    keys = ["year", "month", "day"]
    return Dataset.model_validate({"bucket": "lake", "prefix": "raw/flights/", "keys": keys, **fields})


def schedule_state(**fields: Any) -> ScheduleState:
    given = {"schedule": NAME, "generation": 7, "version": 1, "mode": "enabled", "updated_at": NOON, "mode_at": NOON}
    return ScheduleState(**{**given, **fields})


def job(kind: str = "gathering", **fields: Any) -> Job:
    places = {"gathering": GATHERING, "fire": f"FIRE#{iso(NOON)}#0#0", "retry": "RETRY#r#2", "run_now": "RUNNOW#1"}
    place = places.get(kind, "JOB#1")
    state = "PENDING_TRIGGER" if kind == "gathering" else "PENDING_CONSTRAINTS"
    given = {"schedule": NAME, "generation": 7, "sort_key": place, "job_id": f"{NAME}.7.first", "kind": kind}
    return Job(**with_reasons({**given, "state": state, "created_at": NOON, **fields}))


def met(**fields: Any) -> Job:
    """A gathering job whose one partition has arrived."""
    gathered = {"0": Progress(1, NOON, NOON)}
    return job(**{"leaves": gathered, "state": "PENDING_CONSTRAINTS", "met_at": NOON, **fields})


def facts(probe: ProbeResult | None = None, loads: Mapping[str, LoadReading] | None = None, **fields: Any) -> Facts:
    """Facts for a check. ``probe`` and ``loads`` are the answers of the external constraints."""
    answers = {f"load:{number}": reading for number, reading in (loads or {}).items()}
    fields = {"answers": answers | ({"probe:0": probe} if probe is not None else {}), **fields}
    return Facts(
        **{
            "schedule_state": schedule_state(),
            "schedule": schedule(),
            "workflow": workflow(),
            "start_rate": RATE,
            **fields,
        }
    )


def run(state: str = "STARTING", **fields: Any) -> Run:
    request = StartRequest(EMR, {"day": "1"}, "s3://control/context.json", "token", f"{NAME}.7.first-1")
    given = {"run_id": f"{NAME}.7.first", "attempt": 1, "schedule": NAME, "generation": 7, "workflow": NAME}
    answer = {"state": state, "request": request, "permits": (LIMIT, EMR_LIMIT), "fired_by": "trigger met"}
    counted = {"claimed_at": NOON, "created_at": NOON, "priority": 5, "attempts": 1, "kind": "gathering"}
    return Run(**with_reasons({**given, **answer, **counted, **fields}))


def end_of(decision: Decision) -> EndKind | None:
    """The kind of the record with which a decision ends the job; None if it does not end it."""
    return decision.kind if isinstance(decision, End) else None


def came(count: int = 1, first: Instant = NOON, last: Instant | None = None, amount: int = 0) -> Progress:
    """The progress of a leaf."""
    return Progress(count, first, first if last is None else last, amount)


def partition_event(name: str = "e1", at: Instant = NOON, **values: str) -> Event:
    return Event(name, "partition", "partition:demo.flights", at, at, partition=values or {"year": "2013"})


def at(event: Event, instant: Instant) -> Event:
    return replace(event, instant=instant, accepted_at=instant)


def only_leaves(tree: AnyTrigger) -> list[str]:
    """The ids of a tree's leaves, counted without the code under test."""
    count = sum(len(only_leaves(child)) for child in tree.triggers) if isinstance(tree, Composite) else 1
    return [str(number) for number in range(count)]
