"""notices: who wants to hear of a failure, an abort or a missed deadline is told, in groups (W9, H5).

What happened is noted in the write that makes it so. A note is taken into an alert for each target that wants it, in
one transaction with the message that may follow from it, and is gone. So none is lost, and none counts twice. What
comes while all of these have just been told something lies where it is until then: a storm contends for no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.notify import Notify
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant, iso
from chalicelib.core.notices import alerts as notice_alerts
from chalicelib.core.notices.alerts import AlertStep
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref, window_ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import messages
from chalicelib.core.writes import Create, DeleteNotice, Put, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.fires import emit
from chalicelib.ports import MAX_RACES, Ports

MAX_REASON = 500  # characters


def rules_of(schedule: Schedule | None, workflow: Workflow | None) -> tuple[Notify, ...]:
    """Who is to be told: by the workflow, and by the schedule besides."""
    return (*(workflow.notify if workflow else ()), *(schedule.notify if schedule else ()))


def of_run(ports: Ports, run: Run, what: str, now: Instant) -> list[Write]:
    """What is to be written along with the failure of a run. A note that is there already is the same."""
    schedule_state = ports.catalog.schedule_state(run.schedule)
    schedule = lookup.definition_of(ports, replace(schedule_state, version=run.version)) if schedule_state else None
    rules = rules_of(schedule, lookup.workflow_of(ports, run.workflow))
    return pending(
        rules, what, PendingNotice(run.workflow, what, run.run_id, run.schedule, _short(run.reason), now, wake_at=now)
    )


def of_job(ports: Ports, job: Job, what: str, reason: str, now: Instant) -> list[Write]:
    """What is to be written along with the end of a job."""
    schedule_state = ports.catalog.schedule_state(job.schedule)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule is None:
        return []
    rules = rules_of(schedule, lookup.workflow_of(ports, schedule.workflow))
    return pending(
        rules, what, PendingNotice(schedule.workflow, what, job.job_id, job.schedule, _short(reason), now, wake_at=now)
    )


def hint(ports: Ports, plan: list[Write]) -> None:
    """Let the notes of a plan that was carried out be taken in at once."""
    refs = [ref_of(write.row) for write in plan if isinstance(write, Put) and isinstance(write.row, PendingNotice)]
    if refs:
        now = ports.clock.now()
        ports.hints.send(refs, now, now)


def ref_of(notice: PendingNotice) -> Ref:
    return Ref("notice", (notice.workflow, notice.what, notice.id))


def take_in(ports: Ports, workflow: str, what: str, notice_id: str) -> None:
    """See to a note: whoever was told something lately hears of it when the window is over; anybody else at once."""
    for _ in range(MAX_RACES):
        notice, now = ports.jobs.notice(workflow, what, notice_id), ports.clock.now()
        if notice is None:
            return
        alerts = [ports.jobs.notice_window(workflow, channel) for channel in _channels(ports, notice)]
        rests = notice_alerts.rests_until(alerts, now)
        if rests is None:
            if _take(ports, [notice], now):
                return
        elif ports.ledger.commit([Replace(replace(notice, wake_at=rests, leases=0, rev=notice.rev + 1))]) is None:
            return
    raise RuntimeError(f"note {what} of {notice_id} lost {MAX_RACES} races; the sweep will find it again")


def close_window(ports: Ports, workflow: str, channel: str) -> None:
    """What has come in the window of an alert is taken in when that is over, and told."""
    for _ in range(MAX_RACES):
        window, now = ports.jobs.notice_window(workflow, channel), ports.clock.now()
        if window is None or window.until > now:
            return
        if not _take_all(ports, workflow, now):
            continue
        window = ports.jobs.notice_window(workflow, channel)
        if window is None or window.until > now:
            return
        told = notice_alerts.close(window, now)
        plan = _follows(ports, window, told, channel, window.until, now)
        if ports.ledger.commit(plan) is None:
            _emit(ports, plan)
            if told.window is not None:
                ports.hints.send([window_ref(workflow, channel)], told.window.until, now)
            return
    raise RuntimeError(f"alert {channel} of {workflow} lost {MAX_RACES} races; the sweep will find it again")


def _take_all(ports: Ports, workflow: str, now: Instant) -> bool:
    """Take in all notes that lie there. False if others did the same: what is left is read again."""
    while notices_due := ports.jobs.notices(workflow, notice_alerts.MAX_TAKEN):
        if not _take(ports, notices_due, now):
            return False
    return True


def _take(ports: Ports, notices_due: Sequence[PendingNotice], now: Instant) -> bool:
    """One transaction: these notes out, of one workflow, and into the alerts of all who want to hear of them."""
    workflow = notices_due[0].workflow
    plan: list[Write] = [DeleteNotice(notice) for notice in notices_due]
    hints_due: list[tuple[Ref, Instant]] = []
    wanted: dict[str, tuple[dict[str, Any], list[PendingNotice]]] = {}
    for notice in notices_due:
        for channel, target in _channels(ports, notice).items():
            wanted.setdefault(channel, (target, []))[1].append(notice)
    for channel, (target, those) in wanted.items():
        window = ports.jobs.notice_window(workflow, channel)
        told = notice_alerts.add_notices(those, channel, target, window, now)
        plan += _follows(ports, window, told, channel, those[0].id, now)
        if window is None and told.window is not None:
            hints_due.append((window_ref(workflow, channel), told.window.until))
    if ports.ledger.commit(plan) is not None:
        return False
    _emit(ports, plan)
    for ref, at in hints_due:
        ports.hints.send([ref], at, now)
    return True


def _channels(ports: Ports, notice: PendingNotice) -> dict[str, dict[str, Any]]:
    schedule = lookup.definition_of(ports, ports.catalog.schedule_state(notice.schedule))
    return notice_alerts.channels(rules_of(schedule, lookup.workflow_of(ports, notice.workflow)), notice.what)


def pending(rules: tuple[Notify, ...], what: str, notice: PendingNotice) -> list[Write]:
    return [Put(notice)] if notice_alerts.channels(rules, what) else []


def _follows(
    ports: Ports, before: NoticeWindow | None, told: AlertStep, channel: str, source: object, now: Instant
) -> list[Write]:
    """The alert as it stands then, and the message that is to be sent, if there is one."""
    after: Write
    if told.window is None and before is not None:
        after = DeleteNotice(before)
    elif told.window is not None:
        after = Replace(told.window) if before is not None else Create(told.window)
    else:
        raise ValueError("expected an alert before or after")
    whose = told.window or before
    if told.notice is None or whose is None:
        return [after]
    app = whose.workflow.rpartition(".")[0]
    full = ids.message_schedule(app, notice_alerts.message_name(whose.workflow, channel, source))
    message = Message.model_validate({"due_time": iso(now + 1), "target": dict(whose.target), "data": told.notice})
    schedule_state: ScheduleState | None = ports.catalog.schedule_state(full)
    return [
        after,
        *messages.put(full, message.to_schedule(full, now), message.target, schedule_state, now, "sluice")[1],
    ]


def _emit(ports: Ports, plan: list[Write]) -> None:
    for write in plan:
        if isinstance(write, Put) and isinstance(write.row, Timer):
            emit.emit_soon(ports, write.row.schedule)


def _short(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 3]}..."
