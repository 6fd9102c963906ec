"""What pull workers do (W5): claim runs of a pool, keep them by heartbeats, report their ends, give them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from chalicelib.core import states
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND, Instant, Millis, iso
from chalicelib.core.rows.ref import run_ref
from chalicelib.core.rows.run import Offer, Output, Record, Run
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.runs import complete, follow, workers
from chalicelib.core.runs.workers import LeaseId
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Delete, Put, Replace
from chalicelib.flow.runs import complete as completing
from chalicelib.flow.runs import context, launch
from chalicelib.log import logger
from chalicelib.ports import MAX_RACES, Ports

MAX_BATCH = 10  # runs that one claim takes: each is a transaction, and the API has half a minute
READ_AHEAD = 15  # offers beyond those wanted: others may take the first ones meanwhile
LOOK_EVERY: Millis = 1 * SECOND  # while a claim waits for something to come
MAX_WAIT: Millis = 20 * SECOND  # API Gateway gives up after 29 s
MIN_WAIT: Millis = 1 * SECOND  # of who asks to wait: a worker that knows no hint would ask again at once


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says at the end. ``output`` are the last lines of its command."""

    succeeded: bool
    exit_code: int | None = None
    message: str = ""
    output: str = ""
    metrics: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim is answered with. ``retry_after``: when to ask again, if there was nothing; ``wait``: how long a
    claim may wait here."""

    leases: list[dict[str, Any]]
    retry_after: Millis
    wait: Millis


def claim(ports: Ports, pool: str, worker: str, capacity: int, wait: Millis = 0) -> Claimed:
    """Lease up to ``capacity`` runs of a pool, the most urgent first. No two workers ever get the same: the run's own
    revision decides. If there is none, wait for one as long as the installation lets a claim wait."""
    longest = min(round(ports.settings.worker_wait_seconds * SECOND), MAX_WAIT)
    end = ports.clock.now() + min(wait, max(longest, MIN_WAIT))
    while True:
        taken = _take(ports, pool, worker, min(capacity, MAX_BATCH))
        now = ports.clock.now()
        if taken or now >= end:
            waited = 0 < longest <= wait
            retry_after = 0 if taken or waited else round(ports.settings.worker_retry_seconds * SECOND)
            return Claimed(taken, retry_after, longest)
        ports.clock.wait_until(min(now + LOOK_EVERY, end))


def _take(ports: Ports, pool: str, worker: str, capacity: int) -> list[dict[str, Any]]:
    """What is taken already is answered with, whatever happens to the others: nobody else knows of these leases."""
    taken: list[dict[str, Any]] = []
    failed = 0
    for offer in ports.jobs.offers(pool, capacity + READ_AHEAD):
        if len(taken) == capacity:
            break
        try:
            handed = _hand_over(ports, offer, worker)
        except Exception:
            logger.exception("offer failed", extra={"run": offer.run_id, "attempt": offer.attempt, "pool": pool})
            failed += 1
        else:
            taken += [handed] if handed is not None else []
    if failed and not taken:
        hint = "claim again in a while; if it stays, the log of the api Lambda tells more"
        raise SluiceError("unavailable", f"no run of pool {pool} could be handed over, {failed} failed", None, hint)
    return taken


def _hand_over(ports: Ports, offer: Offer, worker: str) -> dict[str, Any] | None:
    """One run in a worker's hands, as the worker is told of it. Without its context it goes back at once."""
    leased = _lease(ports, offer, worker)
    if leased is None:
        return None
    run, carried = leased
    logger.info("run leased", extra={"run": run.run_id, "attempt": run.attempt, "worker": worker})
    try:
        return _lease_view(run, _context(ports, run, anew=carried))
    except Exception:
        release(ports, workers.lease_of(run), worker, "it could not be handed over")
        raise


def _context(ports: Ports, run: Run, anew: bool) -> Mapping[str, Any]:
    """What the run is told: written when it was offered, and again if an update was carried along since, or if it has
    lain in its pool for so long that its bucket has forgotten it."""
    known = None if anew else ports.payloads.context(run.run_id)
    if known is not None:
        return known
    made = context.build(ports, run)
    ports.payloads.put_context(run.run_id, made)
    return made


def _lease(ports: Ports, offer: Offer, worker: str) -> tuple[Run, bool] | None:
    """One transaction: the offer out, the run in the worker's hands, its schedule still open; and whether an update was
    carried along. None if it is another's by now, or may not start any more."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        run = ports.runs.run(offer.run_id, offer.attempt)
        if run is None or not _is_of(offer, run):
            _sweep_up(ports, offer)
            return None
        known = launch.current(ports, run)
        if known is None:
            launch.start(ports, run.run_id, run.attempt)  # which withdraws it
            return None
        updated, schedule_state = known
        leased = workers.leased(updated, worker, now)
        if ports.ledger.commit([Replace(leased), Delete(offer), *workers.still_open(schedule_state, run)]) is None:
            return leased, updated != run
    return None


def _is_of(offer: Offer, run: Run) -> bool:
    return workers.is_offered(run) and workers.offer_of(run) == offer


def _sweep_up(ports: Ports, offer: Offer) -> None:
    """Away with a ghost: it was put by somebody who had slept over a claim. Its run may have been given back since it
    was read, and is on offer again then."""
    ports.ledger.commit([Delete(offer)])
    run = ports.runs.run(offer.run_id, offer.attempt)
    if run is not None and _is_of(offer, run):
        ports.ledger.commit([Put(offer)])


def heartbeat(
    ports: Ports, lease: LeaseId, worker: str, message: str = "", metrics: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Keep a lease for another interval. The first one says that the work has begun. The answer tells whether it is to
    end. Raises ``lease_lost``."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        run = _held(ports, lease, worker, "a heartbeat")
        if run.state == "STARTING":
            update = RunUpdate("RUNNING", now, lease=lease.number, metrics=metrics)
            if completing.advance_run(ports, lease.run_id, lease.attempt, update) is None:
                continue
            run = _held(ports, lease, worker, "a heartbeat")
            if not message and not follow.ends(run):
                return _kept(run)
        later = _renewed(run, message, metrics, now)
        if ports.ledger.commit([Replace(later)]) is None:
            if later.outcome != run.outcome:
                logger.info("run timed out", extra={"run": run.run_id, "attempt": run.attempt, "why": later.reason})
            return _kept(later)
    raise _too_busy()


def report(ports: Ports, lease: LeaseId, worker: str, told: Report) -> dict[str, Any]:
    """End an attempt as its worker says. Twice is once. Raises ``lease_lost``."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        run = ports.runs.run(lease.run_id, lease.attempt)
        hold = workers.holder(run, lease, worker)
        if run is None or hold.state == "lost":
            _refuse(ports, lease, worker, "a report")
        if hold.state == "over":
            return _end(run)
        if told.output or told.exit_code is not None:
            output = Output(run.run_id, run.attempt, told.output, now, told.exit_code, now + HISTORY)
            ports.ledger.put_all([Put(output)])
        state: states.RunState = "SUCCEEDED" if told.succeeded else "FAILED"
        reason = "" if told.succeeded else _why_failed(told, worker)
        update = RunUpdate(state, now, reason, lease=lease.number, metrics=told.metrics)
        step = completing.advance_run(ports, lease.run_id, lease.attempt, update)
        if step is not None:
            return _end(step.run)
    raise _too_busy()


def release(ports: Ports, lease: LeaseId, worker: str, why: str = "") -> dict[str, Any]:
    """Give a run back that was not begun: it goes to whoever comes next. Raises ``lease_lost``, and ``conflict`` for
    one that has begun."""
    for _ in range(MAX_RACES):
        now = ports.clock.now()
        run = _held(ports, lease, worker, "a release")
        if run.state != "STARTING":
            hint = "end it, and report that it failed"
            raise SluiceError("conflict", "expected a run that has not begun, got one that is RUNNING", None, hint)
        reason = f"given back by worker {worker}{f': {why}' if why else ''}"
        free = workers.given_back(run, reason, now)
        if ports.ledger.commit([Replace(free), Put(workers.offer_of(free))]) is None:
            if run.cancel:
                ports.hints.send([run_ref(run.run_id, run.attempt)], now, now)
            return {"run_id": run.run_id, "attempt": run.attempt, "state": free.state}
    raise _too_busy()


def _held(ports: Ports, lease: LeaseId, worker: str, what: str) -> Run:
    """The run of a lease that its worker still has. Raises ``lease_lost``, and puts on record that it was used."""
    run = ports.runs.run(lease.run_id, lease.attempt)
    if run is None or workers.holder(run, lease, worker).state != "held":
        _refuse(ports, lease, worker, what)
    return run


def _refuse(ports: Ports, lease: LeaseId, worker: str, what: str) -> NoReturn:
    """Tell a worker that a run is not its own any more, and who has it now. A report is put on record: it says that
    work was done twice."""
    attempts = ports.runs.attempts(lease.run_id)
    run = next((each for each in attempts if each.attempt == lease.attempt), None)
    why = workers.holder(run, lease, worker, attempts[-1] if attempts else None).why
    if run is not None and what == "a report":
        now = ports.clock.now()
        reason = f"{what} of worker {worker} came too late: {why}"
        late = Record(str(lease), "LATE", run.schedule, run.generation, reason, now, expires_at=now + HISTORY)
        ports.ledger.put_all([Put(late)])
    hint = "end what you do for it, and claim anew; it may run a second time, so it must bear that"
    raise SluiceError("lease_lost", f"expected a lease that is yours, but it is lost: {why}", None, hint)


def _renewed(run: Run, message: str, metrics: Mapping[str, Any] | None, now: Instant) -> Run:
    """The run after a heartbeat. One that has run for too long hears so by the answer to this very one."""
    alive = replace(run, lease_until=workers.lease_until(run, now), metrics=metrics or run.metrics, leases=0)
    if follow.has_run_out(run, now):
        alive = replace(follow.timed_out(alive, now), rev=run.rev)
    elif message and not follow.ends(run):
        alive = replace(alive, reason=message)
    return replace(alive, rev=run.rev + 1, wake_at=complete.wake_of(alive, now))


def _kept(run: Run) -> dict[str, Any]:
    return {
        "lease": str(workers.lease_of(run)),
        "state": run.state,
        "expires_at": iso(run.lease_until) if run.lease_until is not None else None,
        "cancel": follow.ends(run),
        "reason": run.reason if follow.ends(run) else None,
    }


def _end(run: Run) -> dict[str, Any]:
    return {"run_id": run.run_id, "attempt": run.attempt, "state": run.state, "reason": run.reason or None}


def _lease_view(run: Run, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker is handed: everything that it needs to do the work."""
    return {
        "lease": str(workers.lease_of(run)),
        "run_id": run.run_id,
        "attempt": run.attempt,
        "schedule": run.schedule,
        "workflow": run.workflow,
        "priority": run.priority,
        "arguments": list(run.request.target["arguments"]),
        "properties": dict(run.request.properties),
        "context": told,
        "heartbeat_seconds": workers.heartbeat_of(run) / 1000,
        "expires_at": iso(run.lease_until) if run.lease_until is not None else None,
    }


def _why_failed(told: Report, worker: str) -> str:
    """The last line says most, in the worker's own words before the output's."""
    lines = [line for line in told.output.strip().splitlines() if line.strip()]
    code = "" if told.exit_code is None else f"exit code {told.exit_code}"
    words = [code, told.message or (lines[-1].strip()[:500] if lines else "")]
    return ": ".join(word for word in words if word) or f"worker {worker} gave no reason"


def _too_busy() -> SluiceError:
    hint = "say it again: twice is once"
    return SluiceError("unavailable", f"the run changed {MAX_RACES} times meanwhile", None, hint)
