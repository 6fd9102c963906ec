"""What pull workers do (W5): claim runs of a pool, renew their leases by heartbeats, report results, release runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, NotRequired

from chalicelib.core import errors, results, states
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND, Instant, Millis, iso_or_none
from chalicelib.core.results import Result
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.run import Offer, Output, Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.runs import complete, follow, workers
from chalicelib.core.runs.workers import LeaseId
from chalicelib.core.states import RunState
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.views import At, Sentence, View, shown
from chalicelib.core.why import Why, plain
from chalicelib.core.writes import Delete, Put, Replace
from chalicelib.flow import grants, lookup
from chalicelib.flow.runs import complete as completing
from chalicelib.flow.runs import context, launch
from chalicelib.flow.runs import follow as following
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports

MAX_BATCH = 10  # runs per claim: each takes a transaction, and an API request has 29 s
READ_AHEAD = 15  # offers read beyond the capacity, because other workers may take the first ones
POLL_EVERY: Millis = 1 * SECOND  # interval between reads while a claim waits for an offer
MAX_WAIT: Millis = 20 * SECOND  # API Gateway gives up after 29 s
MIN_WAIT: Millis = 1 * SECOND  # if a claim may wait: a worker that ignores `retry_after` would claim again at once


class LeaseView(View):
    """A run that a worker has claimed, until ``expires_at`` unless it sends heartbeats."""

    lease: str
    run_id: str
    attempt: int
    schedule: str
    workflow: str
    arguments: list[str]
    properties: dict[str, Any]
    priority: int
    context: dict[str, Any]
    expires_at: At
    heartbeat_seconds: float


class LeasesView(View):
    leases: list[LeaseView]
    wait: float
    retry_after: float


class StateOfLeaseView(View):
    """The answer to a heartbeat. With ``cancel`` the worker ends its work."""

    lease: str
    state: RunState
    cancel: bool
    reason: Sentence | None
    expires_at: At


class ReportedEndView(View):
    run_id: str
    attempt: int
    state: RunState
    reason: NotRequired[Sentence | None]
    result_refused: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Report:
    """The end that a worker reports. ``output`` holds the last lines of its command, ``result`` what it hands on."""

    succeeded: bool
    exit_code: int | None = None
    message: str = ""
    output: str = ""
    metrics: Mapping[str, Any] | None = None
    result: Result = results.NONE


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to a claim: ``retry_after``, the ms until the next claim if there was no run, and ``wait``, the ms
    that a claim may wait in this installation."""

    leases: list[LeaseView]
    retry_after: Millis
    wait: Millis


def claim(ports: Ports, pool: str, worker: str, capacity: int, wait: Millis = 0, secret: str = "") -> Claimed:
    """Lease up to ``capacity`` runs of a pool to a worker, the most urgent first. The tokens of the leases follow from
    ``secret``, a random text.

    No two workers get the same run: a conditional write on the run's revision decides. If there is no run, wait for one
    as long as the installation lets a claim wait. Raises ``unavailable`` if every offer that was tried failed.
    """
    longest = min(round(ports.settings.worker_wait_seconds * SECOND), MAX_WAIT)
    end = ports.clock.now() + min(wait, max(longest, MIN_WAIT))
    while True:
        taken = _take(ports, pool, worker, min(capacity, MAX_BATCH), secret)
        now = ports.clock.now()
        if taken or now >= end:
            waited = 0 < longest <= wait
            retry_after = 0 if taken or waited else round(ports.settings.worker_retry_seconds * SECOND)
            return Claimed(taken, retry_after, longest)
        ports.clock.wait_until(min(now + POLL_EVERY, end))


def check_pool(ports: Ports, pool: str) -> None:
    """Raise ``not_found`` for a pool that no workflow names, so that a worker with a misspelt pool does not wait. This
    process remembers a pool that it has found."""
    if pool in _known_pools.get(ports.settings.catalog_table, ()):
        return
    namespace, _, name = pool.partition(".")
    for app in lookup.definitions_in(ports, "app", namespace):
        for workflow in lookup.definitions_in(ports, "workflow", app.name):
            target = workflow.document.get("target") or {}
            if registry.of_type(str(target.get("type"))).pulled and target.get("pool") == name:
                _known_pools.setdefault(ports.settings.catalog_table, set()).add(pool)
                return
    if not ports.jobs.offers(pool, 1):  # a deleted workflow may have left runs to claim
        raise errors.not_found("pool of workers", pool, "check the name; a workflow with this target.pool makes it")


# The pools that this process has found, by the name of the table.
_known_pools: dict[str, set[str]] = {}


def _take(ports: Ports, pool: str, worker: str, capacity: int, secret: str) -> list[LeaseView]:
    """The leases taken from the offers of a pool. After an error the leases taken so far are returned nevertheless,
    because no other answer contains them."""
    taken: list[LeaseView] = []
    failed = 0
    for offer in ports.jobs.offers(pool, capacity + READ_AHEAD):
        if len(taken) == capacity:
            break
        try:
            view = _hand_over(ports, offer, worker, secret)
        except Exception:
            logger.exception("offer failed", extra={"run": offer.run_id, "attempt": offer.attempt, "pool": pool})
            failed += 1
        else:
            taken += [view] if view is not None else []
    if failed and not taken:
        hint = "claim again in a minute; if this error persists, see the log of the api Lambda"
        raise SluiceError("unavailable", f"no run of pool {pool} could be leased; {failed} failed", None, hint)
    return taken


def _hand_over(ports: Ports, offer: Offer, worker: str, secret: str) -> LeaseView | None:
    """Lease the run of an offer. Returns the lease as the worker gets it; None if the run is not available.

    A run whose context cannot be read or written is released at once.
    """
    leased = _lease(ports, offer, worker, secret)
    if leased is None:
        return None
    run, carried = leased
    logger.info("run leased", extra={"run": run.run_id, "attempt": run.attempt, "worker": worker})
    try:
        return _lease_view(run, _context(ports, run, rebuild=carried), secret)
    except Exception:
        release(ports, _lease_id(run, secret), worker, "its context was not available")
        raise


def _context(ports: Ports, run: Run, rebuild: bool) -> Mapping[str, Any]:
    """The context of a run, which is stored when the run is offered.

    It is stored again if an update was carried since, or if it has expired in the bucket while the run was on offer.
    """
    stored = None if rebuild else ports.payloads.context(run.run_id)
    if stored is not None:
        return stored
    built = context.build(ports, run)
    ports.payloads.put_context(run.run_id, built)
    return built


def _lease(ports: Ports, offer: Offer, worker: str, secret: str) -> tuple[Run, bool] | None:
    """Delete the offer and lease the run, in one transaction that expects its schedule to be open.

    Returns the run and whether an update was carried; None if another worker has it, or if it may no longer start.
    """
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = ports.rows.get(Run, offer.run_id, offer.attempt)
        if run is None or not _is_of(offer, run):
            _delete_stale(ports, offer)
            return None
        known, granted = launch.current(ports, run), grants.of_run(ports, run)
        if known is None or granted.missing:
            launch.start(ports, run.run_id, run.attempt)  # withdraws or holds the run
            return None
        updated, schedule_state = known
        leased = workers.leased(updated, worker, now, ports.member, secret)
        still_open = [*workers.still_open(schedule_state, run), *granted.expected]
        if ports.ledger.commit([Replace(leased), Delete(offer), *still_open]) is None:
            return leased, updated != run
    return None


def _is_of(offer: Offer, run: Run) -> bool:
    return workers.is_offered(run) and workers.offer_of(run) == offer


def _delete_stale(ports: Ports, offer: Offer) -> None:
    """Delete an offer that a stalled invocation wrote after its run had been claimed.

    The run may have been released since it was read. Then this offer is valid again, so it is put back.
    """
    ports.ledger.commit([Delete(offer)])
    run = ports.rows.get(Run, offer.run_id, offer.attempt)
    if run is not None and _is_of(offer, run):
        ports.ledger.commit([Put(offer)])


def heartbeat(
    ports: Ports, lease: LeaseId, worker: str, message: str = "", metrics: Mapping[str, Any] | None = None
) -> StateOfLeaseView:
    """Renew a lease for another interval. The first heartbeat marks the run as RUNNING.

    Returns the lease, with ``cancel`` if the worker has to end its work. Raises ``lease_lost`` if the worker no longer
    holds the lease.
    """
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = _held(ports, lease, worker, "a heartbeat")
        if run.state == "STARTING":
            update = RunUpdate("RUNNING", now, lease=lease.number, metrics=metrics)
            if completing.advance_run(ports, lease.run_id, lease.attempt, update) is None:
                continue
            run = _held(ports, lease, worker, "a heartbeat")
            if not message and not follow.ends(run):
                return _kept(run, lease)
        later = _renewed(run, message, metrics, now)
        if ports.ledger.commit([Replace(later)]) is None:
            if later.outcome != run.outcome:
                logger.info(
                    "run timed out", extra={"run": run.run_id, "attempt": run.attempt, "why": later.reason.text}
                )
            return _kept(later, lease)
    raise _too_busy()


def report(ports: Ports, lease: LeaseId, worker: str, result: Report) -> ReportedEndView:
    """End an attempt with the result of its worker. Idempotent. Raises ``lease_lost``."""
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = ports.rows.get(Run, lease.run_id, lease.attempt)
        _check_bound(ports, run, lease)
        hold = workers.holder(run, lease, worker)
        if run is None or hold.state == "lost":
            _refuse(ports, lease, worker, "a report")
        if hold.state == "over":
            return _end(run)
        if result.output or result.exit_code is not None:
            output = Output(run.run_id, run.attempt, result.output, now, result.exit_code, now + HISTORY)
            ports.ledger.put_all([Put(output)])
        state: states.RunState = "SUCCEEDED" if result.succeeded else "FAILED"
        reason = "" if result.succeeded else _why_failed(result, worker)
        update = RunUpdate(state, now, reason, lease=lease.number, metrics=result.metrics, result=result.result)
        step = completing.advance_run(ports, lease.run_id, lease.attempt, update)
        if step is not None:
            return _end(step.run)
    raise _too_busy()


def release(ports: Ports, lease: LeaseId, worker: str, why: str = "") -> ReportedEndView:
    """Release a run that the worker has not begun; the next claim may take it. Raises ``lease_lost``, and ``conflict``
    for a run that has begun."""
    for _ in range(MAX_CONFLICTS):
        run = _held(ports, lease, worker, "a release")
        if run.state != "STARTING":
            hint = "end the work, and report that it failed"
            raise SluiceError("conflict", "expected a run that has not begun, got one that is RUNNING", None, hint)
        released = Why.of("worker_released", f"released by worker {worker}{f': {why}' if why else ''}")
        free = following.give_back(ports, run, released)
        if free is not None:
            return {"run_id": run.run_id, "attempt": run.attempt, "state": free.state}
    raise _too_busy()


def _held(ports: Ports, lease: LeaseId, worker: str, what: str) -> Run:
    """The run of a lease that the worker still holds. Raises ``lease_lost`` if it does not."""
    run = ports.rows.get(Run, lease.run_id, lease.attempt)
    _check_bound(ports, run, lease)
    if run is None or workers.holder(run, lease, worker).state != "held":
        _refuse(ports, lease, worker, what)
    return run


def _lease_id(run: Run, secret: str) -> LeaseId:
    return workers.lease_of(run, workers.token_of(run, secret))


def _check_bound(ports: Ports, run: Run | None, lease: LeaseId) -> None:
    """Raise ``forbidden`` for a report under a lease that another user or role has claimed, or with another token."""
    if run is not None and not workers.is_bound_to(run, lease, ports.member):
        hint = "use the whole id in the answer to your claim, and the credentials with which you claimed"
        raise SluiceError(
            "forbidden", f"expected the claimant of lease {lease}, got another signer or lease id", None, hint
        )


def _refuse(ports: Ports, lease: LeaseId, worker: str, what: str) -> NoReturn:
    """Raise ``lease_lost`` with the present holder of the run. A late report goes on record, because it shows that the
    work was done twice."""
    attempts = ports.runs.attempts(lease.run_id)
    run = next((attempt for attempt in attempts if attempt.attempt == lease.attempt), None)
    why = workers.holder(run, lease, worker, attempts[-1] if attempts else None).why
    if run is not None and what == "a report":
        now = ports.clock.now()
        lost = Why.of("lease_lost", f"{what} of worker {worker} came too late: ", why)
        late = new_record(str(lease), "LATE", run.schedule, run.generation, lost, now)
        ports.ledger.put_all([Put(late)])
    hint = "stop its work and claim again; the run may execute twice, so make it idempotent"
    message = plain("expected a lease that this worker holds, but it is lost: ", why)
    raise SluiceError("lease_lost", message, None, hint)


def _renewed(run: Run, message: str, metrics: Mapping[str, Any] | None, now: Instant) -> Run:
    """The run after a heartbeat. If it has exceeded its timeout, the answer to this heartbeat is a cancel."""
    alive = replace(run, lease_until=workers.lease_until(run, now), metrics=metrics or run.metrics, leases=0)
    if follow.has_run_out(run, now):
        alive = replace(follow.timed_out(alive, now), rev=run.rev)
    elif message and not follow.ends(run):
        alive = replace(alive, reason=Why.of("target_reported", message))
    return replace(alive, rev=run.rev + 1, wake_at=complete.wake_of(alive, now))


def _kept(run: Run, lease: LeaseId) -> StateOfLeaseView:
    return shown(
        StateOfLeaseView,
        run,
        lease=lease.secret,
        expires_at=iso_or_none(run.lease_until),
        cancel=follow.ends(run),
        reason=run.reason if follow.ends(run) else None,
    )


def _end(run: Run) -> ReportedEndView:
    refused = {"result_refused": run.result_refused} if run.result_refused else {}
    return shown(ReportedEndView, run, reason=run.reason or None, **refused)


def _lease_view(run: Run, run_context: Mapping[str, Any], secret: str) -> LeaseView:
    """A lease as the worker gets it, with everything that the work needs."""
    return shown(
        LeaseView,
        run,
        lease=_lease_id(run, secret).secret,
        arguments=list(run.request.target["arguments"]),
        properties=dict(run.request.properties),
        context=run_context,
        heartbeat_seconds=workers.heartbeat_of(run) / 1000,
        expires_at=iso_or_none(run.lease_until),
    )


def _why_failed(result: Report, worker: str) -> str:
    """The reason of a failure: the exit code, and the worker's message or else the last line of its output."""
    lines = [line for line in result.output.strip().splitlines() if line.strip()]
    code = "" if result.exit_code is None else f"exit code {result.exit_code}"
    parts = [code, result.message or (lines[-1].strip()[:500] if lines else "")]
    return ": ".join(part for part in parts if part) or f"worker {worker} gave no reason"


def _too_busy() -> SluiceError:
    hint = "retry the request; it is idempotent"
    return SluiceError("unavailable", f"the run changed {MAX_CONFLICTS} times during the request", None, hint)
