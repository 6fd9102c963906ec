"""The facts that the decision about a job depends on, read beforehand, and what a job asks of the lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chalicelib.core import lines, triggers
from chalicelib.core.calendar import SECOND, Instant, Millis
from chalicelib.core.constraints import Concurrency, Rate, SinceLastRun
from chalicelib.core.leaves import ElapsedTrigger
from chalicelib.core.lines import Ask, LineState, Log, Pace, Slots
from chalicelib.core.loads import Reading
from chalicelib.core.model import Schedule, Workflow
from chalicelib.core.policies import Policy
from chalicelib.core.pool_asks import resources_of
from chalicelib.core.probes import Said
from chalicelib.core.resources import Resources
from chalicelib.core.rows import Backfill, Definition, Gate, Job, Run
from chalicelib.core.targets import EmrServerlessTarget

# Between a start and that of the job behind it lie a message and a look: a second or two.
NEXT_AT_PACE: Millis = 5 * SECOND


@dataclass(frozen=True, slots=True)
class StartRate:
    """The stack's EMR Serverless application, what it allows (a start every ``spacing`` ms, ``burst`` at once, E8), and
    the role of its jobs: what a workflow gets that names none. ``run_limits``: how many runs of an application may live
    at a time, for each application that has a limit."""

    application_id: str
    spacing: Millis
    burst: int
    role_arn: str = ""
    run_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the decision about a job depends on, read strongly. ``successes``: when each workflow that a
    freshness constraint names last succeeded. ``policy`` is that which the schedule names, ``probe`` what its probe
    has said just now, if it was asked, ``backfill`` the one that the job is a part of, ``origin`` the run that it
    repeats (W15); ``pool`` is what it asks of its pool, by the definition ``pool_row``, ``loads`` what was measured
    just now; ``workflow_version`` is that of the workflow's definition, 0 for the graph of a DAG."""

    gate: Gate | None
    schedule: Schedule | None
    workflow: Workflow | None
    start_rate: StartRate
    gathering: Job | None = None
    already: str | None = None
    lines: Mapping[str, LineState] = field(default_factory=dict)
    successes: Mapping[str, Instant | None] = field(default_factory=dict)
    counted: bool = False
    backfill: Backfill | None = None
    policy: Policy | None = None
    pool: Slots | None = None
    pool_row: Definition | None = None
    probe: Said | None = None
    origin: Run | None = None
    loads: Mapping[str, Reading] = field(default_factory=dict)
    workflow_version: int = 0

    def line(self, name: str) -> LineState:
        return self.lines.get(name) or LineState(name)

    def asks(self, namespace: str) -> tuple[Ask, ...]:
        """The lines that a job goes through, in their order; none if its schedule or workflow is gone."""
        if self.schedule is None or self.workflow is None:
            return ()
        rates = self.line(lines.workflow_line(self.schedule.workflow)).rates
        asks = asks_of(self.schedule, self.workflow, self.start_rate, namespace, rates, self.counted)
        if self.pool is not None and self.workflow.target.has_lifecycle:
            asks = lines.in_order((*asks, self.pool))
        if self.backfill is not None:
            asks = tuple(_unhurried(ask) for ask in asks)
        if self.schedule.policy is None or self.policy is None:
            return asks
        pace = self.policy.pace(self.schedule.policy)
        return lines.in_order((*asks, pace, *_turns(asks, pace, self.schedule.policy)))


def asks_of(
    schedule: Schedule,
    workflow: Workflow,
    rate: StartRate,
    namespace: str,
    rates: tuple[str, ...] = (),
    counted: bool = False,
) -> tuple[Ask, ...]:
    """The lines that a job of this schedule goes through, in their order. ``rates`` are the rules of the workflow that
    count every start. A target without a lifecycle needs no line unless a schedule asks when, or how often, it starts
    (``counted``)."""
    if not counted and not is_tracked(schedule, workflow):
        return ()
    asks: list[Ask] = [_own_slots(schedule)]
    for constraint in schedule.constraints:
        if isinstance(constraint, Concurrency) and constraint.group is not None:
            asks.append(Slots(lines.group_line(namespace, constraint.group), constraint.max))
    own = [rule_of(constraint) for constraint in schedule.constraints if isinstance(constraint, Rate)]
    asks += [lines.log_of(schedule.workflow, rule, rule in own) for rule in sorted({*rates, *own})]
    if isinstance(workflow.target, EmrServerlessTarget):
        application = application_of(workflow.target, resources_of(workflow, schedule), rate)
        if application in rate.run_limits:
            asks.append(Slots(lines.application_line(application), rate.run_limits[application]))
        asks.append(Pace(lines.EMR_STARTS, rate.spacing, rate.burst))
    return lines.in_order(_tightest(asks))


def application_of(target: EmrServerlessTarget, resources: Resources | None, stack: StartRate) -> str:
    """The EMR application on which a run with this target and these resources starts."""
    return (resources.application if resources is not None else None) or target.application_id or stack.application_id


def _turns(asks: tuple[Ask, ...], pace: Pace, policy: str) -> tuple[Slots, ...]:
    """Who waits for the pace of a policy keeps what it has of groups and pools, which others want as well. So only as
    many may as start within `NEXT_AT_PACE`, one at least; the backlog queues behind them, and keeps nothing."""
    shared = [ask for ask in asks if isinstance(ask, Slots) and ask.limit is not None and lines.is_shared(ask.line)]
    return tuple(Slots(lines.turn_line(policy, ask.line), math.ceil(NEXT_AT_PACE / pace.spacing)) for ask in shared[:1])


def _unhurried(ask: Ask) -> Ask:
    """What a backfill's job asks of a line: places and the pace of the target, but no rate and no gap, which measure
    how often the present is worked on. Its start is counted there all the same."""
    match ask:
        case Slots():
            return replace(ask, gap=None)
        case Log():
            return replace(ask, binding=False)
        case _:
            return ask


def is_tracked(schedule: Schedule, workflow: Workflow) -> bool:
    """Whether the starts of this schedule are counted: its target has runs to follow, or its rules ask for it."""
    return workflow.target.has_lifecycle or asks_for_starts(schedule)


def asks_for_starts(schedule: Schedule) -> bool:
    """Whether a schedule's rules depend on the starts of its workflow, whoever causes them (C5, T13)."""
    elapsed = any(isinstance(leaf.trigger, ElapsedTrigger) for leaf in triggers.leaves(schedule.trigger))
    return elapsed or any(isinstance(constraint, Rate) for constraint in schedule.constraints)


def rule_of(constraint: Rate) -> str:
    return lines.rate_rule(constraint.max, constraint.span)


def rates_of(schedule: Schedule) -> tuple[str, ...]:
    """The rules by which the starts of its workflow are to be counted."""
    return tuple(sorted({rule_of(each) for each in schedule.constraints if isinstance(each, Rate)}))


def _own_slots(schedule: Schedule) -> Slots:
    limits = [c.max for c in schedule.constraints if isinstance(c, Concurrency) and c.group is None]
    gaps = [c for c in schedule.constraints if isinstance(c, SinceLastRun)]
    widest = max(gaps, key=lambda gap: gap.span, default=None)
    # Of two gaps the wider is held by the claim; an `any` counts whatever the other does, and failed runs besides.
    line = lines.workflow_line(schedule.workflow)
    return Slots(line, min(limits, default=None), widest.span if widest else None, any(gap.of == "any" for gap in gaps))


def _tightest(asks: list[Ask]) -> tuple[Ask, ...]:
    """Two constraints on one group: the tighter limit holds, for a line is asked once."""
    found: dict[str, Ask] = {}
    for ask in asks:
        known = found.get(ask.line)
        if isinstance(known, Slots) and isinstance(ask, Slots) and known.limit is not None and ask.limit is not None:
            ask = known if known.limit <= ask.limit else ask
        found[ask.line] = ask
    return tuple(found.values())
