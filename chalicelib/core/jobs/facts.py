"""The facts on which the decision about a job depends, read before, and the permits that the job requests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chalicelib.core.constraints.constraint import Answer
from chalicelib.core.definitions.foreign import NOTHING, UsedGrants
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs.permits import asks_of
from chalicelib.core.limits import names, permits
from chalicelib.core.limits.permits import Pace, PermitRequest, Slots
from chalicelib.core.limits.policies import Policy, StartRate
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import NewestPartition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.why import Why
from chalicelib.core.writes import Write

Plan = Sequence[Write]  # one transaction

# Between two starts at a pace lie a hint and a check of the next job, which take a second or two.
NEXT_AT_PACE: Millis = 5 * SECOND


def _admissions(asks: tuple[PermitRequest, ...], pace: Pace, policy: str) -> tuple[Slots, ...]:
    """The admission of a job to a policy, if it needs permits of a group or pool.

    A job keeps these permits, which other workflows need, while it waits for the policy's pace. So only as many jobs
    are admitted as start within `NEXT_AT_PACE`, at least one. The others queue for admission, and hold no such
    permits."""
    shared = [ask for ask in asks if names.is_shared(ask.limit_name) and not permits.is_unlimited(ask)]
    return tuple(
        Slots(names.admission_limit(policy, ask.limit_name), math.ceil(NEXT_AT_PACE / pace.spacing), aging=pace.aging)
        for ask in shared[:1]
    )


@dataclass(frozen=True, slots=True)
class OtherWork:
    """Other work for the period of a job (T25): ``why`` the job must not start now, None if it may; and what its claim
    expects, so that none begins meanwhile."""

    why: Why | None = None
    expected: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the decision about a job depends on, from strongly consistent reads.

    ``already`` names the run or record that the job has already. ``successes`` maps each workflow that a ``fresh``
    constraint names to its last success, and ``newest`` each dataset that a constraint names to the partition that came
    last. ``fresh`` is as in `Situation`. ``answers`` are those that external constraints gave just now, by their keys.
    ``policy`` is the schedule's, ``backfill`` the job's, and ``origin`` the run that it repeats (W15). ``pool`` is its
    request for units of its pool, by the definition ``pool_row``. ``counted``: the starts of the workflow are counted.
    ``workflow_row`` is the workflow's definition, None for the graph of a DAG. ``granted`` is how the grants
    stand for what the schedule uses of other namespaces. ``other`` is other work for the period of the job.
    ``lineage`` begins the namespaces of jobs in OpenLineage; empty if no events are sent (H6).

    ``repairs`` are transactions, in order, that a crash or a restore has left undone. The other facts are those after
    the repairs. A step that acts on the facts commits the repairs first, and reads the facts again."""

    schedule_state: ScheduleState | None
    schedule: Schedule | None
    workflow: Workflow | None
    start_rate: StartRate
    gathering: Job | None = None
    already: str | None = None
    limit_states: Mapping[str, LimitState] = field(default_factory=dict)
    successes: Mapping[str, Instant | None] = field(default_factory=dict)
    newest: Mapping[str, NewestPartition | None] = field(default_factory=dict)
    fresh: Mapping[str, Millis | None] = field(default_factory=dict)
    counted: bool = False
    backfill: Backfill | None = None
    policy: Policy | None = None
    pool: Slots | None = None
    pool_row: Definition | None = None
    origin: Run | None = None
    answers: Mapping[str, Answer] = field(default_factory=dict)
    workflow_row: Definition | None = None
    granted: UsedGrants = NOTHING
    other: OtherWork = OtherWork()
    lineage: str = ""
    repairs: tuple[Plan, ...] = ()

    @property
    def workflow_version(self) -> int:
        return self.workflow_row.version if self.workflow_row is not None else 0

    @property
    def relied_on(self) -> Definition | None:
        """The definition of a workflow without a lifecycle, or with elements, that a start relies on. The workflow asks
        for an approval, or it belongs to another namespace and may begin to ask for one. The limit of any other
        workflow has its edition."""
        if self.workflow is None or self.schedule_state is None:
            return None
        if self.workflow.target.has_lifecycle and not self.workflow.target.of_elements:
            return None
        row = self.workflow_row
        own = row is not None and row.name.partition(".")[0] == self.schedule_state.schedule.partition(".")[0]
        return None if own and self.workflow.approval is None else row

    def limit_state(self, name: str) -> LimitState:
        """The state of a limit as read; an empty one if no row exists yet."""
        return self.limit_states.get(name) or LimitState(name)

    def asks(self, namespace: str) -> tuple[PermitRequest, ...]:
        """The permits that a job requests, in the order of limits; none without a schedule or workflow, and none for
        the run of a node whose elements request them (W19)."""
        if self.schedule is None or self.workflow is None or self.workflow.target.of_elements:
            return ()
        rates = self.limit_state(names.workflow_limit(self.schedule.workflow)).rates
        asks = asks_of(self.schedule, self.workflow, self.start_rate, namespace, rates, self.counted)
        if self.pool is not None and self.workflow.target.has_lifecycle:
            asks = permits.in_order((*asks, self.pool))
        if self.backfill is not None:
            asks = tuple(ask.unhurried() for ask in asks)
        if self.schedule.policy is None or self.policy is None:
            return asks
        pace = self.policy.pace(self.schedule.policy)
        return permits.in_order((*asks, pace, *_admissions(asks, pace, self.schedule.policy)))
