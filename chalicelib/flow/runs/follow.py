"""Poll, time out and cancel runs. Many silent runs are polled together, because one listing of EMR has many (W7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chalicelib.core import ids, states
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import Ref, run_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow, workers
from chalicelib.core.runs.target_roles import TargetRole, role_of
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import Why
from chalicelib.core.writes import Put, Replace
from chalicelib.flow.definitions.target_roles import adapter_of_begun
from chalicelib.flow.each import run_each
from chalicelib.flow.runs.complete import advance_run, ingest_status
from chalicelib.log import logger, run_fields
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

MIN_BATCH = 10  # fewer silent runs are polled one by one


def among(ports: Ports, refs: Sequence[Ref]) -> dict[Ref, Run]:
    """The silent runs among ``refs`` if there are at least ``MIN_BATCH``, else none.

    A run with a status to announce, a run to cancel and a run that has not started are not silent: each is handled
    alone.
    """
    runs = [ref for ref in refs if ref.kind == "run"]
    if len(runs) < MIN_BATCH:
        return {}
    found = {ref: ports.rows.get(Run, ref.parts[0], int(ref.parts[1])) for ref in runs}
    now = ports.clock.now()
    silent = {ref: run for ref, run in found.items() if run is not None and follow.is_silent(run, now)}
    return silent if len(silent) >= MIN_BATCH else {}


def poll_together(ports: Ports, silent: Mapping[Ref, Run]) -> frozenset[Ref]:
    """Poll silent runs, target by target. Returns the refs whose answer was applied; the others need a poll alone."""
    if not silent:
        return frozenset()
    handled: set[Ref] = set()

    def apply(answer: tuple[Ref, Run, RunUpdate | None]) -> None:
        ref, run, update = answer
        ingest_status(ports, run, update)
        handled.add(ref)

    for place in dict.fromkeys(map(_place, silent.values())):
        asked = {ref: run for ref, run in silent.items() if _place(run) == place}
        try:
            answers = adapter_of_begun(ports, next(iter(asked.values()))).status_many(list(asked.values()))
            run_each([(ref, run, update) for (ref, run), update in zip(asked.items(), answers, strict=True)], apply)
        except Exception:  # these runs are polled one by one then, so only the run that caused the error fails
            logger.exception("silent runs not polled together", extra={"size": len(asked)})
    return frozenset(handled)


def _place(run: Run) -> tuple[str, TargetRole | None]:
    """What the runs of one listing have in common."""
    return run.target_kind, role_of(run)


def poll(ports: Ports, run: Run) -> None:
    """Poll a run that has been silent, because events of targets are best effort and may be lost."""
    if workers.is_unbegun(run, ports.clock.now()):
        give_back(ports, run, workers.unbegun(run))
        return
    ingest_status(ports, run, _status(ports, run))


def _status(ports: Ports, run: Run) -> RunUpdate | None:
    """The state of a run at its target. That of a DAG run follows from its nodes."""
    if registry.of_run(run).inside:
        from chalicelib.flow.runs import dag_ends  # few runs are those of DAGs

        return dag_ends.status(ports, run)
    return adapter_of_begun(ports, run).status(run)


def give_back(ports: Ports, run: Run, why: Why) -> Run | None:
    """Offer a run again that its worker has not begun. Returns None if the run has changed since it was read."""
    now = ports.clock.now()
    free = workers.given_back(run, why, now)
    if ports.ledger.commit([Replace(free), Put(workers.offer_of(free))]) is not None:
        return None
    if follow.ends(run):
        ports.hints.send([run_ref(run.run_id, run.attempt)], now, now)
    return free


def time_out(ports: Ports, run: Run) -> None:
    """Cancel a run that has exceeded its timeout (W12), unless a poll shows that it has ended. The same for a run that
    is not RUNNING in time (W21), unless a poll shows that it is."""
    now = ports.clock.now()
    update = _status(ports, run)
    moves = update is not None and states.may_move(run.state, update.state)
    if update is not None and moves and advance_run(ports, run.run_id, run.attempt, update):
        return
    late = follow.timed_out(run, now)
    if ports.ledger.commit([Replace(late)]) is None:
        logger.info("run timed out", extra={**run_fields(run), "why": late.reason.text})
        if registry.of_run(run).inside:
            ports.hints.send([run_ref(run.run_id, run.attempt)], now, now)
        else:
            cancel(ports, late)


def cancel(ports: Ports, run: Run) -> None:
    """Cancel a run at its target, then poll it. The sweep repeats this until the run has ended."""
    adapter_of_begun(ports, run).cancel(run)
    poll(ports, run)


def cancel_oldest(ports: Ports, state: LimitState, limit: int, why: Why, within: str | None = None) -> int:
    """Cancel as many of the oldest runs of a limit as one more run needs; with ``within``, only those of this
    namespace. Returns how many cancels were requested."""
    own = [start for start in state.starts.items() if within is None or start[0].startswith(f"{within}.")]
    by_age = sorted(own, key=lambda start: (start[1], start[0]))
    too_many = state.active - limit + 1
    requested = 0
    for holder, _ in by_age[: max(too_many, 0)]:
        requested += request_cancel(ports, *ids.attempt_of(holder), why)
    return requested


def request_cancel(ports: Ports, run_id: str, attempt: int, why: Why) -> bool:
    """Store a cancel request on a run and hint the run. Returns False if the run has ended or has such a request.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        now = ports.clock.now()
        run = ports.rows.get(Run, run_id, attempt)
        if run is None or run.cancel or states.is_terminal(run.state):
            return False
        ends = replace(run, cancel=True, reason=why, wake_at=now, leases=0, rev=run.rev + 1)
        if ports.ledger.commit([Replace(ends)]) is None:
            ports.hints.send([run_ref(run_id, attempt)], now, now)
            return True
    raise too_many_conflicts(f"the request to cancel run {run_id}", "it will be repeated")
