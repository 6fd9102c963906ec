"""The facts that the decision about a job depends on, read beforehand, and what a job asks of the lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chalicelib.core.constraints.constraint import Answer
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.policies import Policy, StartRate
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState

# Between a start and that of the job behind it lie a message and a look: a second or two.
NEXT_AT_PACE: Millis = 5 * SECOND


def _unhurried(ask: PermitRequest) -> PermitRequest:
    """What a backfill's job asks of a line: places and the pace of the target, but no rate and no gap, which measure
    how often the present is worked on. Its start is counted there all the same."""
    match ask:
        case Slots():
            return replace(ask, gap=None)
        case RateWindow():
            return replace(ask, binding=False)
        case _:
            return ask


def _admissions(asks: tuple[PermitRequest, ...], pace: Pace, policy: str) -> tuple[Slots, ...]:
    """Who waits for the pace of a policy keeps what it has of groups and pools, which others want as well. So only as
    many may as start within `NEXT_AT_PACE`, one at least; the backlog queues behind them, and keeps nothing."""
    shared = [
        ask for ask in asks if isinstance(ask, Slots) and ask.limit is not None and names.is_shared(ask.limit_name)
    ]
    return tuple(
        Slots(names.admission_limit(policy, ask.limit_name), math.ceil(NEXT_AT_PACE / pace.spacing))
        for ask in shared[:1]
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the decision about a job depends on, read strongly. ``successes``: when each workflow that a
    freshness constraint names last succeeded. ``policy`` is that which the schedule names, ``answers`` are those
    of the external constraints that were asked just now, by their keys, ``backfill`` is the one that the job is a part
    of, ``origin`` the run that it repeats (W15); ``pool`` is what it asks of its pool, by the definition ``pool_row``;
    ``workflow_version`` is that of the workflow's definition, 0 for the graph of a DAG."""

    schedule_state: ScheduleState | None
    schedule: Schedule | None
    workflow: Workflow | None
    start_rate: StartRate
    gathering: Job | None = None
    already: str | None = None
    limit_states: Mapping[str, LimitState] = field(default_factory=dict)
    successes: Mapping[str, Instant | None] = field(default_factory=dict)
    counted: bool = False
    backfill: Backfill | None = None
    policy: Policy | None = None
    pool: Slots | None = None
    pool_row: Definition | None = None
    origin: Run | None = None
    answers: Mapping[str, Answer] = field(default_factory=dict)
    workflow_version: int = 0

    def limit_state(self, name: str) -> LimitState:
        return self.limit_states.get(name) or LimitState(name)

    def asks(self, namespace: str) -> tuple[PermitRequest, ...]:
        """The lines that a job goes through, in their order; none if its schedule or workflow is gone."""
        if self.schedule is None or self.workflow is None:
            return ()
        rates = self.limit_state(names.workflow_limit(self.schedule.workflow)).rates
        asks = asks_of(self.schedule, self.workflow, self.start_rate, namespace, rates, self.counted)
        if self.pool is not None and self.workflow.target.has_lifecycle:
            asks = permits.in_order((*asks, self.pool))
        if self.backfill is not None:
            asks = tuple(_unhurried(ask) for ask in asks)
        if self.schedule.policy is None or self.policy is None:
            return asks
        pace = self.policy.pace(self.schedule.policy)
        return permits.in_order((*asks, pace, *_admissions(asks, pace, self.schedule.policy)))
