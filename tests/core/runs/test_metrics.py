"""The measurement of a start, and the class of a wait (O2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from chalicelib.core.constraints.registry import AnyConstraint
from chalicelib.core.limits import names
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import metrics
from chalicelib.core.runs.metrics import EVENT_TO_START, FIRE_LATENESS, QUEUES
from chalicelib.core.why import Why
from tests.support import rows
from tests.support.reasons import says

DUE = 1_000_000
FIRE = rows.run(kind="fire", due_at=DUE, calls=1, fired_by=Why.of("due", "due"))
MET = rows.run(
    kind="gathering", accepted_at=DUE, calls=1, fired_by=Why.of("trigger_met", "trigger met: 1 partition came")
)
CONSTRAINTS: TypeAdapter[AnyConstraint] = TypeAdapter(AnyConstraint)


def test_o2_a_fire_is_late_from_its_instant_on_and_never_early() -> None:
    assert metrics.start_of(FIRE, says(""), DUE + 3_000) == (FIRE_LATENESS, 3_000)
    assert metrics.start_of(FIRE, says(""), DUE) == (FIRE_LATENESS, 0)
    assert metrics.start_of(FIRE, says(""), DUE - 1) == (FIRE_LATENESS, 0)


def test_o2_a_job_with_only_its_cause_as_reason_was_not_delayed() -> None:
    assert metrics.start_of(MET, says(""), DUE + 7) == (EVENT_TO_START, 7)
    assert metrics.start_of(MET, Why.of("trigger_met", "trigger met: 1 part"), DUE + 7) == (EVENT_TO_START, 7)
    assert metrics.start_of(MET, says("waits for a slot"), DUE + 7) is None
    assert metrics.start_of(FIRE, says("within 22:00-06:00: not before"), DUE + 7) is None


@pytest.mark.parametrize(
    "run",
    [
        replace(FIRE, attempt=2),
        replace(FIRE, calls=2),
        replace(FIRE, kind="run_now"),
        replace(FIRE, due_at=None),
        replace(MET, accepted_at=None),
        replace(MET, kind="backfill"),
    ],
    ids=["another attempt", "another call", "asked for", "never due", "no event", "the past"],
)
def test_o2_only_first_starts_by_clock_or_event_are_measured(run: Run) -> None:
    assert metrics.start_of(run, says(""), DUE + 7) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (names.workflow_limit("a.b.c"), "slots"),
        (names.group_limit("a", "heavy"), "slots"),
        (names.pool_limit("a.big"), "pool"),
        (names.share_limit("a.big", "a.b.c"), "pool"),
        (names.rate_limit("a.b.c", "1/1000"), "rate"),
        (names.policy_limit("a.b.slow"), "rate"),
        (names.admission_limit("a.b.slow", "pool:a.big"), "rate"),
        (names.EMR_STARTS, "emr_start"),
    ],
)
def test_o2_a_queue_is_measured_by_the_class_of_its_limit(line: str, reason: str) -> None:
    assert metrics.wait_reason_of(line) == reason
    assert reason in QUEUES


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"type": "delay", "after": "1h"}, "time"),
        ({"type": "time_window", "start": "22:00", "end": "06:00"}, "time"),
        ({"type": "since_last_run", "at_least": "1h"}, "time"),
        ({"type": "calendar", "only": ["mon"]}, "time"),
        ({"type": "rate", "max": 1, "per": "1h"}, "rate"),
        ({"type": "fresh", "workflows": ["a.b.c"], "within": "1h", "on_unmet": "wait"}, "upstream"),
        ({"type": "probe", "target": {"type": "http", "url": "https://probe.example/ready"}}, "probe"),
        ({"type": "approval", "role": "DataOwner"}, "approval"),
        ({"type": "concurrency", "max": 1}, "slots"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
def test_o2_a_constraint_is_of_the_class_of_what_it_waits_for(document: dict[str, object], reason: str) -> None:
    assert CONSTRAINTS.validate_python(document).wait_reason == reason
