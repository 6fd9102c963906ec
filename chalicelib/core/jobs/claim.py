"""The plans that claim a job, queue it, let it wait, detach it or delete it: one transaction each (C9, C13, W10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chalicelib.core import ids
from chalicelib.core.constraints import approval
from chalicelib.core.definitions import data
from chalicelib.core.definitions.notify import follows_ends
from chalicelib.core.definitions.overrides import (
    constraints_of,
    properties_of,
    resources_of,
    retries_of,
    run_timeout_of,
)
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.fires import fire
from chalicelib.core.ids import holder_of
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.jobs import check, gather, timeout
from chalicelib.core.jobs.check import Decision, Launch, Wait
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.jobs.priority import effective, rank_of
from chalicelib.core.jobs.timeout import due_by, latest_start
from chalicelib.core.limits import names, parts, returns
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import Pace, PermitRequest
from chalicelib.core.limits.route import Route
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue, NameShared, RecordStart
from chalicelib.core.rows.grants import waiters_key
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.run import Run, StartRequest, ready_at
from chalicelib.core.rows.schedule import WAKE, ScheduleState, Subscription
from chalicelib.core.rows.sort_keys import GATHERING
from chalicelib.core.runs import launch
from chalicelib.core.runs import queued as run_queued
from chalicelib.core.states import claimable
from chalicelib.core.targets import registry
from chalicelib.core.triggers import tree
from chalicelib.core.why import NONE, Why, joined
from chalicelib.core.writes import (
    Create,
    DeleteJob,
    ExpectBackfillRunning,
    ExpectDefinition,
    ExpectMode,
    ExpectNoneGathering,
    ExpectNoRun,
    ExpectOpen,
    Put,
    RemoveWaiter,
    Replace,
    Write,
)

# The sweep finds a fire whose hint was lost after this time. With a hint the fire is checked when it is due.
LATE_CHECK: Millis = 5 * SECOND


# A job that is claimed sooner has waited for nothing but the claim itself.
WAITED: Millis = 5 * SECOND


MAX_WAITED = 120  # characters: a run's row is billed by the KB


def spread_of(job: Job, schedule: Schedule) -> tuple[int, ...]:
    """The number of an event and how many its fire has; empty for any other job, and for a fire of one."""
    shape = fire.shape_of(job, schedule) if job.traits.timed else fire.ONE
    return (job.index, shape.events) if shape != fire.ONE else ()


def build_run(
    job: Job,
    facts: Facts,
    permits: tuple[str, ...],
    context_uri: str,
    now: Instant,
    paces: tuple[Pace, ...] = (),
    units: int = 0,
    appointment: Instant | None = None,
) -> Run:
    """The run that a job becomes: an outbox with the start request, which every start call carries unchanged."""
    schedule_state, schedule, workflow = _complete(facts)
    # A re-run carries the arguments of its first run, and no later additions (W15).
    again = facts.origin if job.rerun_of is not None else None
    properties = dict(job.properties) if job.rerun_of else properties_of(workflow, schedule, job.properties)
    start_by, end_by = due_by(job, schedule, workflow)
    watches_end = schedule.watches_end or job.backfill is not None
    target, resources = workflow.target.started_by(watches_end), resources_of(workflow, schedule)
    if resources is not None:
        target = target.with_resources(resources)
    attempts = retries_of(schedule, workflow).attempts if workflow.target.has_lifecycle else job.attempt
    request = StartRequest(
        target=target.placed(facts.start_rate).model_dump(mode="json"),
        properties=properties,
        context_uri=context_uri,
        client_token=ids.client_token(job.job_id, job.attempt),
        name=f"{job.job_id}-{job.attempt}"[-256:],
        data=again.request.data if again is not None else data.request_data(schedule),
        logs=target.log_folder(schedule.workflow.partition(".")[0]),
    )
    run = Run(
        run_id=job.job_id,
        attempt=job.attempt,
        schedule=schedule_state.schedule,
        generation=schedule_state.generation,
        workflow=schedule.workflow,
        state="STARTING",
        request=request,
        permits=permits,
        units=units,
        fired_by=job.reason or Why.of("started", job.kind),
        claimed_at=now,
        created_at=job.created_at,
        priority=effective(job, schedule, workflow),
        latest_start=latest_start(job, schedule, workflow),
        attempts=attempts,
        kind=job.kind,
        version=schedule_state.version,
        nominal_at=job.event.instant if job.event and job.event.kind == "time" else None,
        due_at=job.due_at,
        late=job.window_end is not None and now >= job.window_end,
        accepted_at=job.accepted_at,
        correlation=job.correlation,
        partition=job.correlation,
        event=job.event,
        # Failures of a backfill do not pause the schedule (L19).
        pause_after=schedule.pause_after_failures if job.backfill is None else None,
        recovers=_recovers(job, schedule, workflow),
        backfill=job.backfill,
        rerun_of=job.rerun_of,
        spread=spread_of(job, schedule),
        requested_by=job.requested_by or (job.event.by if job.event is not None else None),
        run_timeout=(run_timeout_of(schedule, workflow) or 0) if workflow.target.has_lifecycle else None,
        start_timeout=workflow.start_timeout_millis,
        paced_from=appointment if paces else None,
        paced_until=launch.paced_until(paces, now if appointment is None else appointment),
        start_by=start_by,
        end_by=end_by,
        workflow_version=facts.workflow_version,
        approvals=dict(job.approvals or {}) if attempts > job.attempt else None,
        uses=tuple(use.text for use in facts.granted.uses),
        # The data of a node is complete when its last element has ended: then the run of the node registers it.
        registers=() if job.element else workflow.datasets_registered(schedule.workflow.partition(".")[0]),
        element=job.element,
        number=_number(job, facts, names.workflow_limit(schedule.workflow), permits),
        period_parts={leaf: each.parts for leaf, each in job.leaves.items() if each.parts is not None} or None,
        wake_at=now,
    )
    return _with_lineage(run, facts.lineage) if facts.lineage else run


def _with_lineage(run: Run, prefix: str) -> Run:
    """The run with a target that reports what its program reads and writes below the run (H6)."""
    from chalicelib.core.openlineage import subjects  # only for installations that report lineage

    of_target = registry.of_type(run.target_kind)
    target = of_target.with_lineage(run.request.target, subjects.spark_properties(prefix, run))
    return replace(run, request=replace(run.request, target=target))


def _recovers(job: Job, schedule: Schedule, workflow: Workflow) -> bool | None:
    """Whether the success of the run may end an incident; None if not. An element is only a part of what recovers, and
    nothing follows a delivery: its dead letter waits for a person."""
    if job.element or not workflow.target.has_lifecycle:
        return None
    return follows_ends((*workflow.notify, *schedule.notify)) or None


def _number(job: Job, facts: Facts, own: str, permits: tuple[str, ...]) -> int:
    """The number of the run: one more than the last of its workflow as the limit was read, which the claim expects to
    be unchanged. A job that has a number already, such as a retry, keeps it. A run that needs no permit of the
    workflow, as a delivery, has number 0 (H1)."""
    return job.number or (facts.limit_state(own).numbered + 1 if own in permits else 0)


def _takes_number(job: Job, limit_name: str) -> bool:
    return not job.number and names.numbers(limit_name)


def wants_number(job: Job, decision: Decision) -> str | None:
    """The limit that numbers the run of a job that launches; None if none does, or the job has its number already."""
    named = (*job.held, *_limits_of(decision.asks)) if isinstance(decision, Launch) else ()
    return next((limit_name for limit_name in named if _takes_number(job, limit_name)), None)


def waited_for(job: Job, now: Instant) -> Why:
    """The last reason why a job waited; none if it waited less than `WAITED` (H1). A job of a backfill that was
    launched as it was written did not wait: its instant is past."""
    since = ready_at(job)
    waited = since is not None and now - since >= WAITED and not (job.traits.replays and job.rev == 1)
    return job.reason.cut(MAX_WAITED) if waited else NONE


def claim(job: Job, run: Run, facts: Facts, route: Route, now: Instant) -> list[Write]:
    """One transaction: delete the job, create the run, and acquire permits, if the schedule state still allows it."""
    schedule_state, schedule, _ = _complete(facts)
    # If an event may undo the match or end an approval, the claim expects the job as it was read. So does that of a
    # period, whose run has the parts that were read. Other claims do not, since a steady stream of events would make
    # all of them fail.
    revocable = job.queued_in is None and tree.is_revocable(schedule.trigger)
    exact = job.traits.gathers and (revocable or bool(job.approved) or schedule.per is not None)
    plan: list[Write] = [
        DeleteJob(job, exact),
        Create(run),
        ExpectMode(schedule_state, claimable(job.kind, job.backfill)),
    ]
    if job.backfill is not None:
        plan.append(ExpectBackfillRunning(job.schedule, job.backfill))
    plan += [*_as_defined(facts), *facts.other.expected]
    if check.is_prepared(job) and check.coalesces(job, schedule, schedule_state):
        plan.append(ExpectNoneGathering(job.schedule, job.generation))
    holder = holder_of(job.job_id, job.attempt)
    take = tuple(ask for ask in route.take if not names.is_admission(ask.limit_name))
    plan += _permits(take, job, facts, now, begins=holder, appointment=route.appointment)
    admissions = replace(job, held=admissions_of(job))
    return [
        *plan,
        *_begun(job, facts, now, holder),
        *run_queued.leave(job, _limits_of(take)),
        *returns.return_held(admissions, facts.limit_states, now),
    ]


def _as_defined(facts: Facts) -> list[Write]:
    """Expect the definitions on which a claim relies in addition to the schedule state, which names the schedule's
    version.

    The definition of its pool has the number of units, and of overdrawn units. The write to the workflow's limit
    expects the edition of the workflow anyway. The grants of other namespaces are those that let the schedule use what
    belongs to them. A delivery has no such limit. It expects the definition of a workflow that asks for an approval, or
    that belongs to another namespace and may begin to ask for one."""
    granted: list[Write] = [*facts.granted.expected]
    if facts.relied_on is not None:
        granted.append(ExpectDefinition(facts.relied_on))
    if facts.pool_row is None or facts.workflow is None or not facts.workflow.target.has_lifecycle:
        return granted
    return [ExpectDefinition(facts.pool_row), *granted]


def admissions_of(job: Job) -> tuple[str, ...]:
    """The admissions to policies that a job holds, and releases when it starts."""
    return tuple(limit_name for limit_name in job.held if names.is_admission(limit_name))


def queue(job: Job, facts: Facts, route: Route, now: Instant) -> list[Write]:
    """One transaction: acquire the permits before the limit that blocks the job, and queue the job there. Raises
    ValueError if no limit blocks the route."""
    schedule_state, schedule, workflow = _complete(facts)
    blocked = route.blocked
    if blocked is None:
        raise ValueError("expected a route that a limit blocks, got one without; claim the job instead")
    # A rate window that limits other schedules only counts the start of this job, and no request before it.
    taken = tuple(ask for ask in route.take if not (ask.records_claim and limit_permits.is_unlimited(ask)))
    state = facts.limit_state(blocked.limit_name)
    met_at = job.met_at if job.met_at is not None else now
    sort_key = rank_of(replace(job, met_at=met_at), schedule, workflow, blocked.aging)
    queue_name = parts.queue_of(blocked, state, job.job_id)
    queued = replace(
        job,
        sort_key=waiting_key(job, schedule, schedule_state),
        state="PENDING_LAUNCH",
        held=(*job.held, *(ask.limit_name for ask in taken)),
        units=returns.units_of(taken, job.units),
        queued_in=queue_name,
        rank=sort_key,
        met_at=met_at,
        reason=joined([why_blocked(route, facts), job.inherited]),
        rev=job.rev + 1,
        wake_at=timeout.deadline_of(job, schedule, schedule_state),
    )
    waiter = Waiter(queue_name, sort_key, queued.schedule, queued.generation, queued.sort_key, queued.job_id)
    return [
        *moved(job, queued),
        ExpectMode(schedule_state, claimable(job.kind, job.backfill)),
        *_as_defined(facts),
        *_permits(taken, job, facts, now),
        *run_queued.leave(job, _limits_of(taken)),
        _join(blocked, queue_name, route, facts, now),
        *_named(blocked.limit_name, job, facts),
        Create(waiter),
    ]


def _named(limit_name: str, job: Job, facts: Facts) -> list[NameShared]:
    """The write that adds the admission queue ``limit_name`` to its policy. The name contains the shared limit. Empty
    if the policy has the queue, or if the plan writes to the limit of the policy already."""
    if not names.is_admission(limit_name) or facts.schedule is None or facts.schedule.policy is None:
        return []
    own = names.policy_limit(facts.schedule.policy)
    shared = limit_name.removeprefix(names.admission_limit(facts.schedule.policy, ""))
    known = shared in facts.limit_state(own).admits or own == job.queued_in
    return [] if known else [NameShared(own, shared)]


def _join(blocked: PermitRequest, queue_name: str, route: Route, facts: Facts, now: Instant) -> JoinQueue:
    if queue_name != blocked.limit_name:
        return join_part(blocked, queue_name, now)
    rev = facts.limit_state(blocked.limit_name).rev
    served_at = limit_route.queue_served_at(route, facts.limit_states, now)
    return JoinQueue(blocked, limit_permits.horizon(blocked, now), served_at, rev, route.behind is not None)


def join_part(ask: PermitRequest, queue_name: str, now: Instant, count: int = 1) -> JoinQueue:
    """The write that counts jobs which join a part of a queue. They wake the queue after that."""
    return JoinQueue(replace(ask, limit_name=queue_name), now, now + parts.CHECKED, behind=True, count=count)


def asks_otherwise(job: Job, asks: tuple[PermitRequest, ...]) -> bool:
    """Whether a queued job would request other permits now. That is so if its queue no longer limits it, or if it holds
    a permit that it does not need. It is also so if it lacks a permit of a limit before its queue."""
    queue = names.whole(job.queued_in) if job.queued_in is not None else None
    here = next((ask for ask in asks if ask.limit_name == queue), None)
    if here is None or limit_permits.is_unlimited(here):
        return True
    if here.by_appointment and here.limit_name != limit_route.paces_of(asks)[-1].limit_name:
        return True
    asked = {ask.limit_name for ask in limit_permits.with_fallbacks(asks)}
    limits = (ask for ask in asks if not ask.by_appointment and not limit_permits.is_unlimited(ask))
    lacking = any(ask.order < here.order and not limit_permits.is_held(ask, job.held) for ask in limits)
    return (
        lacking
        or any(limit_name not in asked for limit_name in job.held)
        or limit_permits.holds_other_units(asks, job.held, job.units)
    )


def request_again(job: Job, states: Mapping[str, LimitState], now: Instant) -> tuple[Job, list[Write]]:
    """The job without its queue and permits, and the writes for this, because the limits of its schedule changed."""
    why = Why.of("limits_changed", "limits changed; requesting permits again from the first")
    later = replace(job, state="PENDING_CONSTRAINTS", reason=why, wake_at=now, leases=0, rev=job.rev + 1)
    return later, yield_queue(job, later, states, now)


def rank_again(job: Job, raised: Job, facts: Facts) -> list[Write]:
    """The writes that give a queued job the timeout and the rank of the current definition, and move its waiter.
    ``raised`` is the job with its present inherited priority."""
    schedule_state, schedule, workflow = _complete(facts)
    own = names.whole(job.queued_in) if job.queued_in is not None else None
    asks = facts.asks(job.schedule.partition(".")[0])
    aging = next((ask.aging for ask in limit_permits.with_fallbacks(asks) if ask.limit_name == own), 0)
    rank, wake_at = rank_of(raised, schedule, workflow, aging), timeout.deadline_of(job, schedule, schedule_state)
    later = Replace(replace(raised, rank=rank, wake_at=wake_at, leases=0, rev=job.rev + 1))
    before, after = run_queued.waiter_of(job), run_queued.waiter_of(replace(job, rank=rank))
    if before is None or after is None or before == after:
        return [later]
    return [later, RemoveWaiter(before), Create(after)]


def why_blocked(route: Route, facts: Facts) -> Why:
    """Why a job waits at the limit that blocks its route; empty if none does."""
    ask = route.behind or route.blocked
    return limit_permits.why(ask, facts.limit_state(ask.limit_name)) if ask is not None else NONE


def _limits_of(asks: tuple[PermitRequest, ...]) -> tuple[str, ...]:
    return tuple(ask.limit_name for ask in asks)


def waiting_key(job: Job, schedule: Schedule, schedule_state: ScheduleState) -> str:
    """The sort key under which a job waits. A fire leaves its own key, which a stalled emitter may write again. It
    becomes the gathering job, so that later fires coalesce with it, or, if the schedule does not coalesce, a detached
    job. A match that time completed is detached if each match is a job of its own. Other jobs keep their sort key: no
    emitter writes a bundle again."""
    if check.is_prepared(job) and not job.is_bundle:
        return GATHERING if check.coalesces(job, schedule, schedule_state) else gather.detached_key(job)
    detached = job.traits.gathers and job.queued_in is None and check.detaches(schedule, schedule_state)
    return gather.detached_key(job) if detached else job.sort_key


def keys_of_copy(
    job: Job, schedule: Schedule, schedule_state: ScheduleState, now: Instant, workflow: Workflow | None = None
) -> tuple[str, ...]:
    """The sort keys under which a prepared fire may exist already, if its emitter has written it twice.

    First the key under which it would wait. Then, if the fire is late or may have been approved, its detached key: a
    fire that was tried, approved or timed out is there. A late fire may also wait as the gathering job, since the mode
    of its schedule may have changed. A fire that is checked in time was not tried before, so it needs no such read."""
    waits, detached = waiting_key(job, schedule, schedule_state), gather.detached_key(job)
    late = job.due_at is not None and now - job.due_at >= LATE_CHECK
    by_person = any(constraint.by_person for constraint in constraints_of(schedule, workflow))
    may_be_detached = late or by_person
    others = [detached] if may_be_detached else []
    others += [GATHERING] if late and schedule.coalesce else []
    return (waits, *(sort_key for sort_key in others if sort_key != waits))


def detached_from_emitter(job: Job, later: Job) -> Job:
    """``later``, under another key if its present one is a key that the emitter may write again. Such a write would
    lose the job's tries and approvals."""
    return replace(later, sort_key=gather.detached_key(job)) if check.is_prepared(job) else later


def moved(job: Job, later: Job) -> list[Write]:
    """The writes that replace a job by ``later``, under the same sort key or another. The move expects the job as it
    was read. An event that was applied since may have undone the match, or belongs to it, and wakes the job itself."""
    if later.sort_key == job.sort_key:
        return [Replace(later)]
    if not job.traits.gathers:
        return [DeleteJob(job, exact=True), Create(replace(later, rev=1))]
    beside = [ExpectOpen(job.schedule, job.generation)] if job.sort_key != GATHERING else []
    return [DeleteJob(job, exact=True), Create(gather.detach(later)), *beside]


def beside(job: Job, detached: Job) -> list[Write]:
    """The writes that detach a job while another takes its sort key. If the job is queued, its waiter names the new
    key."""
    waiter = run_queued.waiter_of(job)
    return [Create(detached), *([Put(replace(waiter, job_sort_key=detached.sort_key))] if waiter is not None else [])]


def detached_in_queue(job: Job) -> list[Write]:
    """The writes that detach a gathering job in its queue, so that the next event begins another job. They expect the
    job as it was read."""
    open_still = [ExpectOpen(job.schedule, job.generation)] if job.sort_key != GATHERING else []
    return [DeleteJob(job, exact=True), *beside(job, gather.detach(job)), *open_still]


def waits_already(job: Job, decision: Wait) -> bool:
    """Whether the row of a job says already that it waits so. A prepared fire keeps its row unchanged until its
    instant: a second write would slow down the hottest path."""
    same = (job.wake_at, job.state, job.reason) == (decision.until, decision.state, decision.why)
    return (same and not decision.yields) or (job.due_at is not None and job.due_at == decision.until)


def wait(
    job: Job, facts: Facts, decision: Wait, held: Mapping[str, LimitState], now: Instant
) -> tuple[Job, list[Write]]:
    """The job while it waits, and the writes by which it does. ``held`` are the limits whose permits it releases if it
    yields its queue."""
    unmet = decision.state == "PENDING_TRIGGER"
    tried = decision.until is not None and decision.until == job.retry_at  # waits for its next try, same sort key
    met_at = None if unmet else job.met_at if job.met_at is not None else now
    later = replace(
        job, wake_at=decision.until, state=decision.state, reason=decision.why, rev=job.rev + 1, leases=0, met_at=met_at
    )
    if facts.schedule is not None and facts.schedule_state is not None and not unmet and not tried:
        free = replace(job, queued_in=None) if decision.yields else job
        later = replace(later, sort_key=waiting_key(free, facts.schedule, facts.schedule_state))
    plan = yield_queue(job, later, held, now) if decision.yields else moved(job, later)
    woken_by = _awaiting_grants(job, facts) if decision.reason == "grant" else []
    return later, [*plan, *woken_by, *_awaiting_workflow(facts, decision.why)]


def _awaiting_grants(job: Job, facts: Facts) -> list[Write]:
    """The writes because of which a change of the grants wakes a job that lacks one. They expect the grants that were
    read: those that change in this moment may not know of the job yet."""
    if facts.schedule_state is None:
        return []
    start = (job.schedule, job.generation, facts.schedule_state.version, WAKE)
    read = {use.owner: facts.granted.rows[use.owner] for use in facts.granted.missing}
    since = {owner: row.updated_at if row is not None else 0 for owner, row in read.items()}
    waiting = [Put(Subscription(waiters_key(owner), *start, since[owner])) for owner in read]
    return [*waiting, *facts.granted.expected]


def _awaiting_workflow(facts: Facts, why: Why) -> list[Write]:
    """The writes because of which a change of the workflow wakes a job that waits for its approval. They expect the
    definition that was read: a change in this moment may not know of the job yet. The row has its edition, so that only
    another definition wakes the job."""
    row, state, schedule = facts.workflow_row, facts.schedule_state, facts.schedule
    if row is None or state is None or schedule is None or schedule.workflow not in why.named("approval"):
        return []
    key = approval.waiters_key(row.name)
    waiting = Subscription(key, state.schedule, state.generation, state.version, WAKE, row.edition)
    return [Put(waiting), ExpectDefinition(row)]


def yield_queue(job: Job, later: Job, states: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The writes by which a job yields its queue and releases all permits, to wait for something else."""
    out = replace(later, held=(), units=0, queued_in=None, rank=None)
    return [*moved(job, out), *released(job, states, now)]


def drop_plan(
    job: Job, ending: Sequence[Write], held: Mapping[str, LimitState], now: Instant, exact: bool = False
) -> list[Write]:
    """One transaction: delete the job with its waiter, release its permits, and tell how it ended by ``ending``, such
    as its record. A prepared fire may have run already; then the transaction fails, so that no record is written."""
    unless_run = [ExpectNoRun(job)] if check.is_prepared(job) and not job.is_bundle else []
    return [DeleteJob(job, exact), *ending, *released(job, held, now), *unless_run]


def delete_plan(job: Job, held: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The same as `drop_plan` without a record, for a job that has one already, or has run."""
    return [DeleteJob(job), *released(job, held, now)]


def released(job: Job, held: Mapping[str, LimitState], now: Instant) -> list[Write]:
    """The writes by which a job leaves its queue and releases its permits."""
    return [*run_queued.leave(job), *returns.return_held(job, held, now)]


def _permits(
    take: tuple[PermitRequest, ...],
    job: Job,
    facts: Facts,
    now: Instant,
    begins: str | None = None,
    appointment: Instant | None = None,
) -> list[Write]:
    """The writes that acquire permits. A rate window gets its entry with the permit. A slot records a start only when
    the run starts. The permit of a pace is for the appointment. A pool or an EMR application records no starts, so its
    row is as short with a thousand runs as with one."""
    own = holder_of(job.job_id, job.attempt)
    return [
        AcquirePermit(
            ask,
            appointment if appointment is not None and ask.by_appointment else now,
            facts.limit_state(ask.limit_name),
            from_queue=ask.limit_name == job.queued_in,
            begins=own if ask.records_claim else begins if names.names_starts(ask.limit_name) else None,
            passing=limit_route.passes(ask, take) or _is_in_part(job, ask.limit_name),
            numbers=begins is not None and _takes_number(job, ask.limit_name),
        )
        for ask in take
    ]


def _is_in_part(job: Job, limit_name: str) -> bool:
    """Whether a job waits in a part of the queue of a limit. The part counts it, and not the row of the limit."""
    return job.queued_in is not None and job.queued_in != limit_name and names.whole(job.queued_in) == limit_name


def _begun(job: Job, facts: Facts, now: Instant, holder: str) -> list[Write]:
    """The writes that record the start of a run in the limits whose permits its job held while it queued."""
    asks = {ask.limit_name: ask for ask in limit_permits.with_fallbacks(facts.asks(job.schedule.partition(".")[0]))}
    held = [asks[limit_name] for limit_name in job.held if limit_name in asks and names.names_starts(limit_name)]
    return [
        RecordStart(ask, now, facts.limit_state(ask.limit_name), holder, _takes_number(job, ask.limit_name))
        for ask in limit_permits.without_appointments(held)
    ]


def _complete(facts: Facts) -> tuple[ScheduleState, Schedule, Workflow]:
    if facts.schedule_state is None or facts.schedule is None or facts.workflow is None:
        raise ValueError("expected a schedule state, a schedule and a workflow, got None for one; drop the job instead")
    return facts.schedule_state, facts.schedule, facts.workflow
