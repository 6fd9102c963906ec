"""Send notices of failures, aborts and missed deadlines, in groups (W9, H5).

The transaction that ends a run or job also writes a pending notice. Another transaction deletes it, adds it to the
notice window of each channel of a rule, and writes the messages to send. So no notice is lost or counted twice. While
the windows of all its channels are open, a pending notice stays as it is. So very many failures do not contend for one
row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chalicelib.core import ids
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.notify import ENDS, RECOVERED, Notify
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.instants import Instant, iso
from chalicelib.core.notices import alerts as notice_alerts
from chalicelib.core.notices.alerts import AlertStep, Channel
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.schedules import messages
from chalicelib.core.why import Why, readers_of
from chalicelib.core.writes import MAX_WRITES, Create, DeleteNotice, Put, Replace, Write
from chalicelib.flow import lookup
from chalicelib.flow.fires import emit
from chalicelib.ports import MAX_CONFLICTS, MAX_DELAY, Ports, too_many_conflicts

MAX_REASON = 500  # characters


def rules_of(schedule: Schedule | None, workflow: Workflow | None) -> tuple[Notify, ...]:
    """The notice rules of the workflow and of the schedule."""
    return (*(workflow.notify if workflow else ()), *(schedule.notify if schedule else ()))


def of_run(ports: Ports, run: Run, what: str, now: Instant) -> list[Write]:
    """The pending notice to write together with the failure of a run, if a rule wants it. A repeat writes the same."""
    schedule_state = ports.rows.get(ScheduleState, run.schedule)
    schedule = lookup.definition_of(ports, replace(schedule_state, version=run.version)) if schedule_state else None
    rules = rules_of(schedule, lookup.workflow_of(ports, run.workflow))
    text = _short(run.reason, run.schedule)
    at = now if run.ended_at is None else run.ended_at
    return pending(rules, PendingNotice(run.workflow, what, run.run_id, run.schedule, text, at, wake_at=now))


def may_recover(ports: Ports, run: Run) -> bool:
    """Whether an incident may be open that the success of a run ends: its channel has a window, or a notice about its
    schedule has not been taken in yet. A trouble that comes later is one after the run began."""
    # The notices are read first: one that is taken in meanwhile has a window.
    waiting = ports.jobs.notices(run.workflow, MAX_WRITES)
    if len(waiting) == MAX_WRITES or any(each.schedule == run.schedule for each in waiting):
        return True
    channels = _channels(ports, _recovered(run, run.claimed_at))
    return any(ports.rows.get(NoticeWindow, run.workflow, channel) is not None for channel in channels)


def of_success(ports: Ports, run: Run, now: Instant) -> list[Write]:
    """The pending notice to write together with the announcement of a success that may end an incident."""
    notice = _recovered(run, now)
    return _written(notice, _channels(ports, notice))


def _recovered(run: Run, now: Instant) -> PendingNotice:
    """What a success says: that all is well since its run began."""
    return PendingNotice(run.workflow, RECOVERED, run.run_id, run.schedule, "", run.claimed_at, wake_at=now)


def of_job(ports: Ports, job: Job, what: str, reason: Why, now: Instant) -> list[Write]:
    """The pending notice to write together with the end of a job, if a rule wants it."""
    schedule_state = ports.rows.get(ScheduleState, job.schedule)
    schedule = lookup.definition_of(ports, schedule_state)
    if schedule is None:
        return []
    rules = rules_of(schedule, lookup.workflow_of(ports, schedule.workflow))
    text = _short(reason, job.schedule)
    notice = PendingNotice(schedule.workflow, what, job.job_id, job.schedule, text, now, wake_at=now)
    return pending(rules, about(notice, job.element))


def about(notice: PendingNotice, element: Mapping[str, Any] | None) -> PendingNotice:
    """A notice about the job or run of this element; None: of no element."""
    return notice if element is None else replace(notice, element=int(element["index"]), of=str(element["of"]))


def hint(ports: Ports, plan: Sequence[Write]) -> None:
    """Hint the pending notices of a plan that was carried out, so that they are handled at once."""
    refs = [ref_of(write.row) for write in plan if isinstance(write, Put) and isinstance(write.row, PendingNotice)]
    if refs:
        now = ports.clock.now()
        ports.hints.send(refs, now, now)


def ref_of(notice: PendingNotice) -> Ref:
    return kinds.ref(PendingNotice, notice.workflow, notice.what, notice.id)


def handle_notice(ports: Ports, workflow: str, what: str, notice_id: str) -> None:
    """Handle a pending notice: send it at once to a channel without an open window, or else when the window ends.

    Raises RuntimeError after ``MAX_CONFLICTS`` conflicts in a row.
    """
    for _ in range(MAX_CONFLICTS):
        notice, now = ports.rows.get(PendingNotice, workflow, what, notice_id), ports.clock.now()
        if notice is None:
            return
        windows: dict[str, NoticeWindow | None] = {}
        channels = _routes(ports, notice, windows)
        until = notice_alerts.rests_until([windows[channel] for channel in channels], now)
        if until is None:
            # What ends an incident comes after all troubles that still wait: they are taken in first.
            if _take_all(ports, workflow, now) if what in ENDS else _take(ports, [notice], now):
                return
        elif ports.ledger.commit([Replace(replace(notice, wake_at=until, leases=0, rev=notice.rev + 1))]) is None:
            return
    raise too_many_conflicts(f"notice {what} of {notice_id}", "the sweep will hint it again")


def close_window(ports: Ports, workflow: str, channel: str) -> None:
    """Close the notice window of a channel when it ends, and send the notices that it has collected."""
    for _ in range(MAX_CONFLICTS):
        window, now = ports.rows.get(NoticeWindow, workflow, channel), ports.clock.now()
        if window is None or _collects(window, now):
            return
        if not _take_all(ports, workflow, now):
            continue
        window = ports.rows.get(NoticeWindow, workflow, channel)
        if window is None or _collects(window, now):
            return
        step = notice_alerts.close(window, now)
        plan = _plan_of(ports, window, step, channel, window.until, now)
        if ports.ledger.commit(plan) is None:
            _emit(ports, plan)
            _hint_window(ports, step.window, now)
            return
    raise too_many_conflicts(f"notice window {channel} of {workflow}", "the sweep will hint it again")


def _take_all(ports: Ports, workflow: str, now: Instant) -> bool:
    """Add all pending notices of a workflow to their windows. Returns False after a conflict: then read them again."""
    while notices_due := ports.jobs.notices(workflow, MAX_WRITES):
        if not _take(ports, sorted(notices_due, key=lambda notice: notice.what in ENDS), now):
            return False
    return True


def _take(ports: Ports, notices_due: Sequence[PendingNotice], now: Instant) -> bool:
    """Move the first pending notices of one workflow, as many as fit, to the windows of their channels, in one
    transaction. Returns False after a conflict."""
    plan: list[Write] = []
    begun: list[NoticeWindow | None] = []
    windows: dict[str, NoticeWindow | None] = {}
    wanted: dict[str, tuple[Channel, list[PendingNotice]]] = {}
    writes = 0
    for notice in notices_due:
        channels = _routes(ports, notice, windows)
        writes += 1 + sum(notice_alerts.writes_of(windows[each]) for each in channels if each not in wanted)
        if plan and writes > MAX_WRITES:
            break
        plan.append(DeleteNotice(notice))
        for channel, to in channels.items():
            wanted.setdefault(channel, (to, []))[1].append(notice)
    for channel, (to, added) in wanted.items():
        window = windows[channel]
        step = notice_alerts.add_notices(added, to, window, now)
        plan += _plan_of(ports, window, step, channel, added[0].id, now)
        begun += [step.window] if notice_alerts.at_rest(window) else []
    if ports.ledger.commit(plan) is not None:
        return False
    _emit(ports, plan)
    for window in begun:
        _hint_window(ports, window, now)
    return True


def _collects(window: NoticeWindow, now: Instant) -> bool:
    """Whether a window is not to be closed now: it ends, or is forgotten, later."""
    return (window.until if window.forgotten_at is None else window.forgotten_at) > now


def _hint_window(ports: Ports, window: NoticeWindow | None, now: Instant) -> None:
    """Hint the end of a window, unless it is later than the maximum delay of a message: then the sweep finds it."""
    if window is not None and window.wake_at is not None and window.wake_at - now <= MAX_DELAY:
        ports.hints.send([kinds.ref(NoticeWindow, window.workflow, window.channel)], window.wake_at, now)


def _channels(ports: Ports, notice: PendingNotice) -> dict[str, Channel]:
    schedule = lookup.definition_of(ports, ports.rows.get(ScheduleState, notice.schedule))
    return notice_alerts.channels(rules_of(schedule, lookup.workflow_of(ports, notice.workflow)), notice)


def _routes(
    ports: Ports, notice: PendingNotice, windows: dict[str, NoticeWindow | None]
) -> dict[str, Channel]:  # fmt: skip
    """The channels to which a pending notice goes. Adds their windows to those that were read."""
    present = _channels(ports, notice)
    for channel in (*notice.channels, *present):
        if channel not in windows:
            windows[channel] = ports.rows.get(NoticeWindow, notice.workflow, channel)
    return notice_alerts.routes(notice, present, windows)


def pending(rules: tuple[Notify, ...], notice: PendingNotice) -> list[Write]:
    return _written(notice, notice_alerts.channels(rules, notice))


def _written(notice: PendingNotice, channels: Mapping[str, Channel]) -> list[Write]:
    return [Put(replace(notice, channels=tuple(channels)))] if channels else []


def _plan_of(
    ports: Ports, before: NoticeWindow | None, step: AlertStep, channel: str, source: object, now: Instant
) -> list[Write]:
    """The writes of a step: of the notice window, and of the message to send, if there is one."""
    if step.window is None:
        return [DeleteNotice(before)] if before is not None else []
    window = step.window
    after: Write = Replace(window) if before is not None else Create(window)
    if step.notice is None:
        return [after]
    app = window.workflow.rpartition(".")[0]
    data: Any = step.notice
    target = dict(window.target)
    if window.form is not None:
        from chalicelib.core.notices import forms  # few rules have a form

        target |= forms.addressed(window, step.notice)
        data = forms.written(window, step.notice)
    full = ids.message_schedule(app, notice_alerts.message_name(window.workflow, channel, source))
    message = Message.model_validate({"due_time": iso(now + 1), "target": target, "data": data})
    schedule_state: ScheduleState | None = ports.rows.get(ScheduleState, full)
    return [
        after,
        *messages.put(full, message.to_schedule(full, now), message.target, schedule_state, now, "sluice")[1],
    ]


def _emit(ports: Ports, plan: list[Write]) -> None:
    for write in plan:
        if isinstance(write, Put) and isinstance(write.row, Timer):
            emit.emit_soon(ports, write.row.schedule)


def _short(reason: Why, schedule: str) -> str:
    """A reason without names of other namespaces: who reads a channel is not known."""
    text = reason.seen(readers_of(schedule))
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 3]}..."
