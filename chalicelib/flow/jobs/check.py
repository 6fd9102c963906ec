"""Check one job: read its facts, decide, and act. Sluice claims, delivers or queues it, lets it wait, or drops it."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.core.constraints import approval
from chalicelib.core.fires import fire
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.jobs import check, claim, gather
from chalicelib.core.jobs.check import Coalesce, Decision, Duplicate, End, Launch, MakeRoom, Wait
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import names, returns
from chalicelib.core.limits import parts as core_parts
from chalicelib.core.limits import permits as limit_permits
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.route import Route
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.records import record_of
from chalicelib.core.rows.ref import limit_ref, ref_of
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import complete, metrics
from chalicelib.core.why import Why, joined, mention
from chalicelib.core.writes import DeleteJob, Put, Replace, Write
from chalicelib.flow import facts as facts_of
from chalicelib.flow import priority
from chalicelib.flow.check_result import CheckResult, committed
from chalicelib.flow.deliveries import bundles
from chalicelib.flow.deliveries.ends import ready_of
from chalicelib.flow.deliveries.send import deliver
from chalicelib.flow.ingest import fires
from chalicelib.flow.jobs import external
from chalicelib.flow.jobs.drop import drop_job, states_of_held, wake_queues
from chalicelib.flow.limits import counting, queues
from chalicelib.flow.notices import deadlines
from chalicelib.flow.runs import follow
from chalicelib.flow.runs import launch as launching
from chalicelib.flow.runs.context import with_named
from chalicelib.log import job_fields, logger
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports, too_many_conflicts

# The hint of a limit can be in SQS after the hints of many jobs that join its queue. So a job serves the queue that it
# joins, if the queue should have been served this long ago (E3).
OVERDUE: Millis = 200


def check_job(
    ports: Ports, key: tuple[str, int, str], serving: str | None = None, only: str | None = None
) -> CheckResult:  # fmt: skip
    """Check a job until one decision is carried out, and return the outcome.

    ``serving`` names the limit whose queue serves the job. ``only`` is the id of the job that is served: the outcome is
    ``gone`` if another job has its key by now. A conflict is ordinary: the job is read and decided again. Raises
    RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    number = 0
    for conflicts in range(MAX_CONFLICTS):
        now = ports.clock.now()
        job = ports.rows.get(Job, *key)
        if job is None or job.closed or only not in (None, job.job_id):
            return CheckResult("gone")  # the drain drops the job under a tombstone
        if conflicts or job.queued_in != serving:  # the step that serves the queue has just read the waiter
            job = queues.regained(ports, job)
        facts = _repaired(ports, job)
        if fires.is_event(job, facts, now):
            return CheckResult("applied", Why.of("applied", fires.apply(ports, job, facts, now)))
        if job.is_bundle and bundles.has_to_change(ports, job, facts):
            outcome = bundles.bring_up_to_date(ports, job, facts, now)
            if outcome is not None:
                _log(job, outcome)
                return outcome
            continue
        deadlines.begin(ports, job, facts, now)
        job, facts = external.ask(ports, job, facts, now, serving)
        decision = check.decide(job, facts, now, serving)
        if conflicts and (limit_name := claim.wants_number(job, decision)):
            # Many jobs start at once. With a number of its own, this start no longer conflicts with the others.
            number = number or ports.ledger.number(limit_name)
            job = replace(job, number=number)
        outcome = _act(ports, job, facts, decision, now, serving)
        if outcome is not None:
            _log(job, outcome)
            return outcome
    raise too_many_conflicts(f"the check of {key}", "the sweep will hint the job again")


def _repaired(ports: Ports, job: Job) -> Facts:
    """The facts about a job, after what is to be repaired was repaired. Until then, no job of its schedule may be
    claimed. Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row."""
    while (facts := facts_of.read(ports, job)).repairs:
        logger.info("facts repaired", extra={**job_fields(job), "repairs": len(facts.repairs)})
        counting.settle(ports, lambda: facts_of.read(ports, job).repairs)
    return facts


def _log(job: Job, outcome: CheckResult) -> None:
    """Log a decision that changed something at level info. The others are frequent and repeat the same ``why``."""
    fields = {**job_fields(job), "outcome": outcome.ended, "why": outcome.why.text}
    if outcome.ended in ("launched", "delivered"):
        fields["run"] = job.job_id
    (logger.debug if outcome.same else logger.info)("checked", extra=fields)


def _act(
    ports: Ports, job: Job, facts: Facts, decision: Decision, now: Instant, serving: str | None
) -> CheckResult | None:
    """Carry out a decision. Returns None after a conflict, and when the job has to be decided again."""
    match decision:
        case Launch():
            return _launch(ports, job, facts, decision, now, serving)
        case Wait():
            return _wait(ports, job, facts, decision, now)
        case Duplicate():
            return committed(ports, claim.delete_plan(job, states_of_held(ports, job), now), "gone", decision.why)
        case Coalesce():
            record = record_of(job, "COALESCED", decision.why, now)
            return committed(ports, [DeleteJob(job), Put(record)], "coalesced", decision.why)
        case MakeRoom():
            _expire_waiting(ports, decision.over, now)
            return None
        case End(kind, why):
            # An event that was applied since the job was read may have met the condition, or completed the match.
            return drop_job(ports, job, kind, why, now, exact=kind in ("ABORTED", "EXPIRED"))


def _expire_waiting(ports: Ports, over: Job, now: Instant) -> None:
    """Detach a job that has timed out from the sort key at which fires join it. The new fire is decided again."""
    detached = gather.out_of_time(over, now)
    if ports.ledger.commit([DeleteJob(over, exact=True), *claim.beside(over, detached)]) is None:
        ports.hints.send([ref_of(detached)], now, now)


def _launch(
    ports: Ports, job: Job, facts: Facts, decision: Launch, now: Instant, serving: str | None
) -> CheckResult | None:
    """Deliver the job, claim it with all its permits, or queue it at the limit that blocks it."""
    if job.traits.timed and not decision.asks and facts.workflow and not facts.workflow.target.has_lifecycle:
        ready = (
            bundles.ready(ports, job, facts, decision.why, now)
            if job.is_bundle
            else [ready_of(ports, job, facts, decision.why, now, serving)]
        )
        sent = deliver(ports, ready, decision.why, now)
        return CheckResult("delivered" if sent[0] else "waiting", sent[1]) if sent is not None else None
    if job.is_bundle:
        return _launch_bundle(ports, job, facts, decision, now)
    route = limit_route.route(decision.asks, job.held, facts.limit_states, now, serving)
    if route.blocked is None:
        return _claim(ports, job, facts, limit_route.prepared(route, ports.clock.now()), decision.why, now)
    why = claim.why_blocked(route, facts)
    if job.queued_in is not None and route.blocked.limit_name == names.whole(job.queued_in):
        _make_room(ports, job, facts, route.blocked)
        return CheckResult("waiting", why, same=True)
    return _queue(ports, job, facts, route, now, why)


def _launch_bundle(ports: Ports, bundle: Job, facts: Facts, decision: Launch, now: Instant) -> CheckResult | None:
    """Let a bundle join the queue of its policy, which is served in blocks. Divide it if it needs another permit."""
    paces = limit_route.paces_of(decision.asks)
    if len(decision.asks) != 1 or len(paces) != 1:
        return bundles.divide(ports, bundle, now)
    route = Route((), paces[0], behind=paces[0])  # it joins, too, if a permit is left: its events acquire theirs
    if bundle.queued_in is not None:
        return CheckResult("waiting", claim.why_blocked(route, facts), same=True)
    return _queue(ports, bundle, facts, route, now, claim.why_blocked(route, facts))


def _claim(ports: Ports, job: Job, facts: Facts, route: Route, why: Why, now: Instant) -> CheckResult | None:
    """Make a run of the job, in one transaction, and start it. Returns None after a conflict."""
    before = ports.rows.get(Run, job.job_id, job.attempt - 1) if job.traits.retries else None
    run = _run_of(ports, job, facts, route, why, before, now)
    last: list[Write] = [Replace(complete.superseded(before, now))] if before is not None else []
    if ports.ledger.commit([*claim.claim(job, run, facts, route, now), *last]) is not None:
        return None
    wake_queues(ports, {limit_name: facts.limit_state(limit_name) for limit_name in claim.admissions_of(job)}, now)
    launching.start(ports, run.run_id, run.attempt)
    return CheckResult("launched", why)


def _run_of(
    ports: Ports, job: Job, facts: Facts, route: Route, why: Why, before: Run | None, now: Instant
) -> Run:  # fmt: skip
    """The run that the job becomes. ``before`` is the attempt that a retry follows."""
    named = (*job.held, *(ask.limit_name for ask in route.take))
    taken = tuple(limit_name for limit_name in named if not names.is_admission(limit_name))
    ready = replace(job, reason=why.then(approval.words_of(job.approved)), event=fire.event_of(job))
    uri, units = ports.payloads.context_uri(job.job_id), returns.units_of(route.take, job.units)
    made = claim.build_run(
        ready, facts, taken, uri, now, limit_route.paces_of(route.take), units, route.appointment
    )  # fmt: skip
    again = approval.words_of(job.approved, before.approvals) if before is not None else ""
    run = replace(
        made,
        waited_for=claim.waited_for(job, now),
        fired_by=before.fired_by.then(again) if before is not None else made.fired_by,
        calls=job.tries,  # of a fire that was tried without a claim
        start_requested_at=job.first_try_at,
    )
    return with_named(ports, run, before or facts.origin)


def _queue(ports: Ports, job: Job, facts: Facts, route: Route, now: Instant, why: Why) -> CheckResult | None:
    """Join the queue of the limit that blocks. A released slot wakes that queue, or the instant of a pace's next
    permit. Returns None after a conflict."""
    if facts.schedule is not None and facts.workflow is not None:
        job = priority.with_inherited(ports, job, facts.schedule, facts.workflow)
    outcome = committed(ports, claim.queue(job, facts, route, now), "queued", joined([why, job.inherited]))
    if outcome is None or route.blocked is None:
        return outcome
    ports.metrics.add(metrics.WAITS_BEGUN, 1, metrics.wait_reason_of(route.blocked.limit_name))
    state = facts.limit_state(route.blocked.limit_name)
    late = _wake_queue(ports, route.blocked, state, limit_route.queue_served_at(route, facts.limit_states, now), now)
    _make_room(ports, job, facts, route.blocked)
    return replace(outcome, overdue=state.limit_name) if late else outcome


def _wake_queue(ports: Ports, blocked: PermitRequest, state: LimitState, served_at: Instant, now: Instant) -> bool:
    """Have a queue served that a job has joined. Returns whether it should have been served a while ago."""
    if core_parts.count(blocked, state):
        woken = queues.wake(ports, blocked, served_at)
        return woken is not None and now - woken >= OVERDUE
    # Only the first waiter sets the instant and sends a hint. A hint from each would cost one per waiter and permit.
    if state.waiters > 0 and state.wake_at is not None:
        return now - state.wake_at >= OVERDUE
    if limit_permits.is_timed(blocked):
        ports.hints.send([limit_ref(blocked.limit_name)], served_at, now)
    return False


def _make_room(ports: Ports, job: Job, facts: Facts, blocked: PermitRequest) -> None:
    """`cancel_other`: cancel the older runs that hold the slots; the job waits in its queue until they end (C1). Where
    roles are enforced, these are the runs of the own namespace alone (O9)."""
    schedule = facts.schedule
    if not job.traits.makes_room:
        return  # a retry must not cancel runs that are newer than its first attempt, nor a backfill current runs
    if schedule is None:
        return
    namespace = job.schedule.partition(".")[0]
    for constraint in (item for item in schedule.constraints if item.makes_room()):
        for ask in constraint.permits(schedule.workflow, namespace):
            maximum, _ = ask.maximum
            if maximum is not None and ask.limit_name == blocked.limit_name:
                why = Why.of("room_made", "cancelled to make room for job ", mention("run", job.job_id))
                own = namespace if ports.settings.authorization == "enforce" else None
                follow.cancel_oldest(ports, facts.limit_state(blocked.limit_name), maximum, why, own)


def _wait(ports: Ports, job: Job, facts: Facts, decision: Wait, now: Instant) -> CheckResult | None:
    """Keep the job until an instant, an event, a limit or a resume wakes it. Returns None after a conflict."""
    if claim.waits_already(job, decision):
        return CheckResult("waiting", decision.why, same=True)
    held = states_of_held(ports, job) if decision.yields else {}
    later, plan = claim.wait(job, facts, decision, held, now)
    outcome = committed(ports, plan, "queued" if decision.yields else "waiting", decision.why)
    if outcome is None:
        return None
    if decision.reason is not None:
        ports.metrics.add(metrics.WAITS_BEGUN, job.waiting, decision.reason)
    if decision.until is not None and decision.until - now <= MAX_DELAY:
        ports.hints.send([ref_of(later)], decision.until, now)
    wake_queues(ports, held, now)
    return outcome
