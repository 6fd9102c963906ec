"""Put the jobs that are due at one instant into the queue of their policy, many in one transaction (E3).

Each of them would join alone by a dozen calls, which takes longer than a policy of many starts a second takes to start
it. Once they wait, the queue is served in blocks (`flow/deliveries/appointments.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chalicelib.core import ids
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, Millis
from chalicelib.core.jobs import claim, plain
from chalicelib.core.jobs import priority as job_priority
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import blocks, names, permits
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import JoinQueue
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import Ref, block_ref, limit_ref
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs import metrics
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, ExpectDefinition, ExpectGrants, ExpectMode, Write
from chalicelib.flow import lookup, priority
from chalicelib.flow.limits import policies, queues
from chalicelib.log import logger
from chalicelib.ports import Ports

# A few jobs join one by one: the first of them may acquire a permit at once.
FEWEST = 4
MAX_WRITES = 100  # of a transaction
# Each transaction writes to the row of the limit and to the partition of its queue, and so do those that start jobs. If
# so many jobs wait, for longer than this time, others join later: after a part of the time that the queue lasts. So
# starts find these rows free. The sweep leaves those jobs alone (`Deferred`).
MANY, LONG_QUEUE = 500, 2 * SECOND
MAX_PAUSE: Millis = 5 * MINUTE
MAX_DEFERRED: Millis = HOUR  # then the sweep hints such a job all the same: its hint may be lost
AT_ONCE = 3  # blocks that are prepared, sent or recorded at a time
_SHARED = ExpectMode | ExpectDefinition | ExpectGrants


@dataclass(frozen=True, slots=True)
class Joining:
    """A job that needs a permit of its policy and nothing else, with the facts of that decision."""

    ref: Ref
    job: Job
    facts: Facts
    pace: Pace
    why: Why


def join(ports: Ports, joining: Sequence[Joining]) -> list[Ref]:
    """Let the jobs of each policy join its queue, if they are many. Returns the refs of those that did not join: they
    are few, or have changed."""
    left: list[Ref] = []
    by_limit: dict[str, list[Joining]] = {}
    for each in joining:
        by_limit.setdefault(each.pace.limit_name, []).append(each)
    for limit_name, jobs in by_limit.items():
        if sum(each.job.waiting for each in jobs) < FEWEST:
            left += [each.ref for each in jobs]
            continue
        left += _join(ports, limit_name, jobs)
    return left


def announce(ports: Ports, joining: Sequence[Joining]) -> None:
    """Prepare for the instant at which these jobs join the queues of their policies."""
    for pace in {each.pace for each in joining}:
        jobs = sum(each.pace == pace for each in joining)
        if jobs >= FEWEST and blocks.is_fast(pace):
            _warm_up(ports, pace)


def _warm_up(ports: Ports, pace: Pace) -> None:
    """Hint as many empty parts of blocks as this pace will have at a time. So Lambda starts environments before the
    jobs join: a cold start takes longer than a block is acquired ahead."""
    now, needed = ports.clock.now(), AT_ONCE * blocks.senders(pace) + 2
    ports.hints.send_all([(now, [block_ref(pace.limit_name, str(pace.tolerance))])] * needed, now)


def _join(ports: Ports, limit_name: str, joining: Sequence[Joining]) -> list[Ref]:
    now, left = ports.clock.now(), list[Ref]()
    inherited: dict[str, priority.Inherited] = {}
    plans: list[tuple[Joining, list[Write]]] = []
    for each in joining:
        schedule, workflow = each.facts.schedule, each.facts.workflow
        if schedule is None or workflow is None:
            continue
        known = inherited.setdefault(each.job.schedule, priority.Inherited(ports, each.job.schedule))
        job = priority.with_inherited(ports, each.job, schedule, workflow, known)
        plan = claim.queue(job, each.facts, Route((), each.pace), now)
        plans.append((each, [write for write in plan if not isinstance(write, JoinQueue)]))
    # The jobs of a transaction join one part of the queue. The most urgent ones join first.
    by_queue: dict[str, list[tuple[Joining, list[Write]]]] = {}
    for each_plan in sorted(plans, key=lambda plan: _waiter(plan[1]).rank):
        by_queue.setdefault(_waiter(each_plan[1]).limit_name, []).append(each_plan)
    groups = sorted((group for queue in by_queue.values() for group in _groups(queue)), key=_first_rank)
    for number, group in enumerate(groups):
        joined, refused = _commit(ports, limit_name, group, now)
        left += refused
        if joined:
            ports.metrics.add(metrics.WAITS_BEGUN, joined, metrics.wait_reason_of(limit_name))
            logger.info("joined", extra={"limit": limit_name, "size": joined})
        pace = group[0][0].pace
        if names.whole(_waiter(group[0][1]).limit_name) != _waiter(group[0][1]).limit_name:
            queues.wake(ports, pace, now)
        elif number == 0:
            ports.hints.send([limit_ref(limit_name)], now, now)
        later = [each for plans in groups[number + 1 :] for each in plans]
        if later and (pause := _pause(ports, later[0])):
            due = ports.clock.now() + pause
            ports.hints.send([each.ref for each, _ in later], due, due - pause)
            break
    return left


def _waiter(plan: Sequence[Write]) -> Waiter:
    """The waiter that a plan creates: each plan that lets a job join has one."""
    return next(write.row for write in plan if isinstance(write, Create) and isinstance(write.row, Waiter))


def _first_rank(group: Sequence[tuple[Joining, list[Write]]]) -> str:
    return _waiter(group[0][1]).rank


def _pause(ports: Ports, first: tuple[Joining, list[Write]]) -> Millis:
    """How long the next jobs may wait before they join, because enough others wait. 0 if they should join now."""
    joining, plan = first
    backlog = _crowd(ports, joining.pace, _waiter(plan).rank)
    share = 0.25 + 0.5 * int(ids.digest(joining.job.job_id, length=4), 16) / 0xFFFF
    return min(MAX_PAUSE, int(share * backlog))


def _crowd(ports: Ports, pace: Pace, rank: str) -> Millis:
    """How long the queue of a policy lasts, if a job of this rank may join later: its policy does not start it sooner
    if it joins now. 0 if few jobs wait, or if it is more urgent than those that do."""
    state = queues.state_of(ports, pace.limit_name)
    backlog = pace.after(state.waiters)
    if state.waiters < MANY or backlog < LONG_QUEUE:
        return 0
    head = queues.head_of(ports, state, 1)
    return 0 if head and permits.urgency(rank) < permits.urgency(head[0].rank) else backlog


class Deferred:
    """Which of the overdue jobs join the queue of their policy later, because enough others wait. Each has a hint of
    its own; with more hints they would all join at once.

    If its hint is lost, a job is no longer deferred once fewer jobs wait, or these are less urgent, or after an hour.
    Definitions and queues are read once for all jobs: a sweep asks for slices of jobs, which are often of one schedule.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._schedules: dict[str, tuple[Schedule, Workflow, Pace] | None] = {}
        self._paces: dict[str, Pace | None] = {}
        self._crowded: dict[tuple[str, str], bool] = {}

    def among(self, jobs: Sequence[Job]) -> list[Job]:
        """The deferred ones of these jobs, in the given order."""
        since = self._ports.clock.now() - MAX_DEFERRED
        fires = [job for job in jobs if job.traits.timed and not job.held and _is_since(job, since)]
        self._read(list(dict.fromkeys(job.schedule for job in fires if job.schedule not in self._schedules)))
        return [job for job in fires if self._is_deferred(job)]

    def _is_deferred(self, job: Job) -> bool:
        found = self._schedules[job.schedule]
        if found is None:
            return False
        schedule, workflow, pace = found
        rank = job_priority.rank_of(job, schedule, workflow, pace.aging)
        key = pace.limit_name, permits.urgency(rank)
        if key not in self._crowded:
            self._crowded[key] = _crowd(self._ports, pace, rank) > 0
        return self._crowded[key]

    def _read(self, names: Sequence[str]) -> None:
        seen = with_definitions(self._ports, names)
        self._schedules |= {name: self._paced(seen, name) for name in names}

    def _paced(self, seen: Ports, name: str) -> tuple[Schedule, Workflow, Pace] | None:
        """A schedule whose jobs need a permit of their policy and nothing else; None for any other."""
        schedule = lookup.definition_of(seen, seen.rows.get(ScheduleState, name))
        if schedule is None or schedule.policy is None or not needs_permit_alone(seen, name):
            return None
        if schedule.policy not in self._paces:
            policy = policies.policy_of(self._ports, schedule.policy)
            self._paces[schedule.policy] = policy.pace(schedule.policy) if policy is not None else None
        workflow, pace = lookup.workflow_of(seen, schedule.workflow), self._paces[schedule.policy]
        return None if workflow is None or pace is None else (schedule, workflow, pace)


def _is_since(job: Job, since: Instant) -> bool:
    return job.queued_in is None and job.wake_at is not None and job.wake_at > since


def with_definitions(ports: Ports, schedules: Sequence[str]) -> Ports:
    """Ports that have read these schedules with their workflows, a hundred rows to a call."""
    seen = ports.prefetch.read(ports, [kinds.key(ScheduleState, name) for name in schedules])
    states = [state for name in schedules if (state := seen.rows.get(ScheduleState, name)) is not None]
    seen = seen.prefetch.read(seen, [kinds.key(Version, state.schedule, state.version) for state in states])
    found = [lookup.definition_of(seen, state) for state in states]
    workflows = dict.fromkeys(schedule.workflow for schedule in found if schedule is not None)
    return seen.prefetch.read(seen, [kinds.key(Definition, "workflow", name) for name in workflows])


def needs_permit_alone(ports: Ports, name: str) -> bool:
    """Whether the jobs of a schedule need a permit of their policy and nothing else, as `is_paced` in
    `flow/deliveries/prepare.py` decides for a job."""
    schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, name))
    row = ports.rows.get(Definition, "workflow", schedule.workflow) if schedule is not None else None
    workflow = lookup.workflow_of(ports, schedule.workflow) if schedule is not None else None
    if schedule is None or workflow is None:
        return False
    return plain.needs_policy_alone(schedule, workflow, row is not None and row.counted)


def _commit(
    ports: Ports, limit_name: str, plans: list[tuple[Joining, list[Write]]], now: Instant
) -> tuple[int, list[Ref]]:  # fmt: skip
    """Let a group join in one transaction. Returns how many joined, and the refs of those whose rows have changed."""
    left: list[Ref] = []
    while plans:
        queue, pace = _waiter(plans[0][1]).limit_name, plans[0][0].pace
        whole = JoinQueue(pace, now, now, behind=True, count=len(plans))
        together = whole if queue == limit_name else claim.join_part(pace, queue, now, len(plans))
        conflict = ports.ledger.commit([*_once([write for _, plan in plans for write in plan]), together])
        if conflict is None:
            return len(plans), left
        refused = [write for write in conflict.writes if not isinstance(write, JoinQueue)]
        if not refused:
            break
        changed = [each for each, plan in plans if any(write in refused for write in plan)]
        left += [each.ref for each in changed]
        plans = [(each, plan) for each, plan in plans if each not in changed]
    return 0, [*left, *(each.ref for each, _ in plans)]


def _once(writes: Sequence[Write]) -> list[Write]:
    """The writes without the repeats of what several jobs expect alike: a schedule state, a definition, grants."""
    seen: list[Write] = []
    shared: list[Write] = []
    for write in writes:
        if not isinstance(write, _SHARED):
            seen.append(write)
        elif write not in shared:
            shared.append(write)
    return [*seen, *shared]


def _groups(plans: Sequence[tuple[Joining, list[Write]]]) -> Iterator[list[tuple[Joining, list[Write]]]]:
    """The plans in groups that fit into one transaction."""
    group: list[tuple[Joining, list[Write]]] = []
    shared: list[Write] = []
    own = 1  # the write that counts the waiters
    for each in plans:
        more = [write for write in each[1] if isinstance(write, _SHARED) and write not in shared]
        if group and own + len(each[1]) + len(shared) + len(more) > MAX_WRITES:
            yield group
            group, shared, own = [], [], 1
            more = [write for write in each[1] if isinstance(write, _SHARED)]
        group.append(each)
        shared += more
        own += sum(not isinstance(write, _SHARED) for write in each[1])
    if group:
        yield group
