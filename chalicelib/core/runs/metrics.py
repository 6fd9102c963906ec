"""The metrics of Sluice (O2): their names, their units, and the metric to which a start call belongs.

The alarms, the dashboard and `docs/operations.md` use these names; `tests/infra/test_operations.py` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits.names import is_pool, is_target_pace
from chalicelib.core.rows.run import Run
from chalicelib.core.states import WaitReason
from chalicelib.core.why import Why

NAMESPACE = "Sluice"
QUEUES: tuple[WaitReason, ...] = ("slots", "pool", "rate", "emr_start")
REASONS: tuple[WaitReason, ...] = (*QUEUES, "time", "upstream", "probe", "approval", "paused", "grant")


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric. Each has the dimension ``stage``; those with ``reasons`` also have the dimension ``reason``."""

    name: str
    unit: Literal["Milliseconds", "Count", "None"]
    what: str
    reasons: tuple[WaitReason, ...] = ()


FIRE_LATENESS = Measure("FireLateness", "Milliseconds", "from the instant of a fire to its send or start call")
EVENT_TO_START = Measure("EventToStart", "Milliseconds", "from the event that completes a trigger to the start call")
WAITS_BEGUN = Measure("WaitsBegun", "Count", "jobs that began to wait", REASONS)
QUEUE_LENGTH = Measure("QueueLength", "Count", "jobs that wait in a queue when it is served", QUEUES)
OVERDUE_AGE = Measure("OverdueAge", "Milliseconds", "how long the oldest row that a tick finds is overdue")
ROWS_PARKED = Measure("RowsParked", "Count", "rows that keep failing, which Sluice handles once an hour")
WRITE_CONFLICTS = Measure("WriteConflicts", "Count", "writes that were refused because another write came first")
THROTTLED_CALLS = Measure("ThrottledCalls", "Count", "table calls that DynamoDB throttled")
DEAD_LETTERS = Measure("DeadLetters", "Count", "deliveries that became dead letters")
RUN_COST = Measure("RunCost", "None", "cost of a run in dollars at list price, once its bill is known")
DATASETS_LATE = Measure("DatasetsLate", "Count", "datasets whose newest partition became older than their `fresh`")
ALL = (
    *(FIRE_LATENESS, EVENT_TO_START, WAITS_BEGUN, QUEUE_LENGTH, OVERDUE_AGE),
    *(ROWS_PARKED, WRITE_CONFLICTS, THROTTLED_CALLS, DEAD_LETTERS, RUN_COST, DATASETS_LATE),
)


def start_of(run: Run, waited_for: Why, at: Instant) -> tuple[Measure, Millis] | None:
    """How late, in ms, the first start call or send of a run is at ``at``. ``waited_for`` is the last reason to wait
    that its job had.

    None for later attempts, and for a run that neither a timer nor an event started. None also if a constraint, a limit
    or a pause held the job back: that wait is intended, and `WAITS_BEGUN` counts it."""
    if run.attempt != 1 or run.calls != 1 or (waited_for and run.fired_by.code != waited_for.code):
        return None
    if run.traits.timed and run.due_at is not None:
        return FIRE_LATENESS, max(0, at - run.due_at)
    if run.traits.gathers and run.accepted_at is not None:
        return EVENT_TO_START, max(0, at - run.accepted_at)
    return None


def wait_reason_of(limit_name: str) -> WaitReason:
    """The class of the waits in the queue of a limit."""
    if is_target_pace(limit_name):
        return "emr_start"
    if is_pool(limit_name):
        return "pool"
    return "slots" if limit_name.startswith(("workflow:", "group:", "dag:")) else "rate"
