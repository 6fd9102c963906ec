"""Dispatch refs, from hints or the sweep, to the steps that handle them. Each step reads its row strongly first.

The steps of a kind of ref are imported at the first ref of this kind: most processes meet few kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from chalicelib.core import states
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, RefKind, by_instant, shard_part
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow
from chalicelib.core.targets import registry
from chalicelib.flow.deliveries.join import Joining, announce, join
from chalicelib.flow.deliveries.prepare import Batch, Busy, prepare
from chalicelib.flow.deliveries.send import Leased, lease, send
from chalicelib.flow.each import run_each
from chalicelib.flow.runs import follow as run_follow
from chalicelib.log import logger
from chalicelib.ports import Ports

HANDED_ON = 150  # refs per send: no burst, which one invocation would handle alone
# How long a job that joins an overdue queue serves it. The rest of its batch waits during this time.
IN_PASSING: Millis = 2 * SECOND
TIME_FOR_ONE = 10 * SECOND  # needed for one row that is not a delivery
ONE_BY_ONE = 500  # rows that one invocation handles one by one; more are handed on


@dataclass(frozen=True, slots=True)
class Begun:
    """Rows that are due at one instant, prepared and leased before it."""

    due: Instant
    batch: Batch
    leased: Leased


def dispatch_together(ports: Ports, refs: Sequence[Ref], due: Instant) -> list[Ref]:
    """Handle rows that are due at one instant, not before it: deliveries together, the others one by one.

    Returns the refs that failed. One failure does not stop the others.
    """
    timers = [ref for ref in refs if ref.kind == "fires"]
    unprepared = _prepared(ports, timers) if timers else []
    if timers and not (refs := [ref for ref in refs if ref.kind != "fires"]):
        return unprepared  # preparing does not wait for the instant
    left, failed = _delivered(ports, refs, due)
    failed += unprepared
    _hand_on(ports, left[ONE_BY_ONE:])
    asked = run_follow.among(ports, left[:ONE_BY_ONE])
    rest = [ref for ref in left[:ONE_BY_ONE] if ref not in asked]
    failed += _one_by_one(ports, rest)
    answered = run_follow.poll_together(ports, asked)  # last, because these calls take long
    return failed + _one_by_one(ports, [ref for ref in asked if ref not in answered])


def _prepared(ports: Ports, timers: Sequence[Ref]) -> list[Ref]:
    """Prepare the fires of timers together. Returns those that failed; those for which no time is left are handed
    on."""
    from chalicelib.flow.fires import emit

    failed, left = emit.emit_together(ports, timers)
    _hand_on(ports, left)
    return failed


def _delivered(ports: Ports, refs: Sequence[Ref], due: Instant) -> tuple[tuple[Ref, ...], list[Ref]]:
    """Deliver the ready jobs at their instant. Returns the refs to handle one by one, and those that failed.

    A failed delivery may have been sent, so this invocation must not send it again.
    """
    try:
        begun = begin(ports, refs, due)
    except Exception:  # nothing was sent; the rows are handled one by one, so only the one with the error fails
        logger.exception("batch not prepared", extra={"size": len(refs)})
        ports.clock.wait_until(due)
        return tuple(refs), []
    return finish(ports, begun)


def begin(ports: Ports, refs: Sequence[Ref], due: Instant) -> Begun:
    """Prepare and lease the deliveries among these rows, mostly before their instant. Sends nothing to a target."""
    batch = prepare(ports, refs, due)
    announce(ports, batch.joining)
    _hint_again(ports, batch.busy)
    return Begun(due, batch, lease(ports, batch.ready, due, batch.counts))


def _hint_again(ports: Ports, busy: Sequence[Busy]) -> None:
    """Hint what another invocation delivers for the end of its lease, in case it has crashed."""
    for until, refs in by_instant(busy):
        _hand_on(ports, refs, until)


def finish(ports: Ports, begun: Begun) -> tuple[tuple[Ref, ...], list[Ref]]:
    """Wait for the instant, and deliver. Returns the refs as `_delivered` does."""
    ports.clock.wait_until(begun.due)
    _hand_on(ports, begun.leased.again)
    sent = send(ports, begun.leased)
    left = (*begun.batch.others, *_not_joined(ports, begun.batch.joining), *sent.changed)
    return left, list(sent.failed)


def _not_joined(ports: Ports, joining: Sequence[Joining]) -> list[Ref]:
    """The refs of the jobs that have not joined the queues of their policies together."""
    try:
        return join(ports, joining)
    except Exception:  # those that have joined are waiting when they are checked one by one
        logger.exception("jobs did not join together", extra={"size": len(joining)})
        return [each.ref for each in joining]


def _one_by_one(ports: Ports, refs: Sequence[Ref]) -> list[Ref]:
    """Handle refs one by one. Returns those that failed.

    The rest is handed on when the time runs out. The first is handled in any case, so each invocation makes progress.
    """
    failed: list[Ref] = []
    for number, ref in enumerate(refs):
        if number and not ports.has_time(TIME_FOR_ONE):
            _hand_on(ports, refs[number:])
            break
        if not _dispatched(ports, ref):
            failed.append(ref)
    return failed


def _hand_on(ports: Ports, refs: Sequence[Ref], due: Instant = 0) -> None:
    now = ports.clock.now()
    for start in range(0, len(refs), HANDED_ON):
        ports.hints.send(refs[start : start + HANDED_ON], max(due, now), now)


def _dispatched(ports: Ports, ref: Ref) -> bool:
    """Whether the step that handles the ref succeeded."""
    try:
        dispatch(ports, ref)
    except Exception:
        logger.exception("hint failed", extra={"ref": str(ref)})
        return False
    return True


# Kinds of refs whose step takes the parts of a ref as they are: its module in `chalicelib.flow`, and its function.
STEPS: Mapping[RefKind, tuple[str, str]] = {
    "limit": ("jobs.queue", "serve"),
    "grants": ("definitions.grants", "wake_waiting"),
    "stops": ("schedules.stops", "carry_on"),
    "deployment": ("deploy.uploaded", "advance"),
    "reprocess": ("backfills.reprocess", "advance"),
    "backfill": ("backfills.backfill", "advance"),
    "notice": ("notices.notices", "handle_notice"),
    "notice_window": ("notices.notices", "close_window"),
    "deadline": ("notices.deadlines", "judge_deadline"),
    "freshness": ("notices.freshness", "check"),
    "dag_run": ("dags.runs", "advance"),
    "elements": ("runs.elements", "advance"),
}


def dispatch(ports: Ports, ref: Ref) -> None:
    """Run the step that handles the row of this ref."""
    match ref.kind:
        case "job":
            schedule, generation, key = ref.parts
            _job(ports, schedule, int(generation, 36), key)
        case "run":
            _run(ports, ref.parts[0], int(ref.parts[1]))
        case "queue":
            from chalicelib.flow.jobs.queue import serve

            serve(ports, ref.parts[0], sent=ref.parts[1:])
        case "block":
            from chalicelib.flow.jobs import queue

            queue.send_block(ports, ref)
        case "partition" | "object" | "event":
            from chalicelib.flow.ingest import objects

            objects.resume(ports, ports.rows.of(ref))
        case "shard":
            from chalicelib.flow.system import sweep

            sweep.handle_part(ports, shard_part(ref))
        case "timer" | "fires":
            from chalicelib.flow.fires import emit
            from chalicelib.flow.schedules import lifetime

            lifetime.end(ports, ref.parts[0])
            emit.emit_soon(ports, ref.parts[0])
        case "schedule":
            from chalicelib.flow.fires import emit
            from chalicelib.flow.schedules import carried

            emit.emit_soon(ports, ref.parts[0])
            carried.refresh_all(ports, ref.parts[0])
        case _:
            module, step = STEPS[ref.kind]
            getattr(import_module(f"chalicelib.flow.{module}"), step)(ports, *ref.parts)


def _job(ports: Ports, schedule: str, generation: int, key: str) -> None:
    from chalicelib.flow.jobs.check import check_job
    from chalicelib.flow.jobs.drop import drain
    from chalicelib.flow.jobs.queue import serve

    job = ports.rows.get(Job, schedule, generation, key)
    if job is not None and job.closed:
        drain(ports, schedule, generation)
    elif job is not None:
        overdue = check_job(ports, (schedule, generation, key)).overdue
        if overdue is not None:
            serve(ports, overdue, IN_PASSING)


def _run(ports: Ports, run_id: str, attempt: int) -> None:
    from chalicelib.flow.runs import complete

    run = ports.rows.get(Run, run_id, attempt)
    if run is None:
        return
    steps: list[Callable[[], object]] = []
    if run.announce:
        steps.append(lambda: complete.announce(ports, run_id, attempt))
    if not states.is_terminal(run.state):
        steps.append(lambda: _follow(ports, run))
    elif not run.announce:
        steps.append(lambda: complete.check_ended(ports, run))
    # An error while a status is announced does not stop Sluice from following the run.
    run_each(steps, lambda step: step())


def _follow(ports: Ports, run: Run) -> None:
    from chalicelib.flow.runs import launch

    if run.target_id is None:
        launch.start(ports, run.run_id, run.attempt)
    elif registry.of_run(run).of_elements:
        from chalicelib.flow.jobs import elements

        elements.follow(ports, run)
    elif follow.ends(run):
        if registry.of_run(run).inside:
            from chalicelib.flow.jobs import dag_cancel

            dag_cancel.cancel(ports, run, run.reason)
        run_follow.cancel(ports, run)
    elif follow.has_run_out(run, ports.clock.now()) or follow.has_not_begun(run, ports.clock.now()):
        run_follow.time_out(ports, run)
    else:
        run_follow.poll(ports, run)
