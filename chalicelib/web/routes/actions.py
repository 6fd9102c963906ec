"""Routes of actions on schedules, such as enable, skip and run now, and of messages (L16)."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import too_costly
from chalicelib.core.instants import parse_instant, parse_when
from chalicelib.core.jobs.dry_run import dry_run as evaluated
from chalicelib.core.steps import OverBudget
from chalicelib.core.time import expressions
from chalicelib.flow import period_jobs
from chalicelib.flow.lookup import existing, require
from chalicelib.flow.requests import became, has_made
from chalicelib.flow.schedules import actions, messages, pauses
from chalicelib.flow.schedules.actions import Change
from chalicelib.flow.schedules.costs import Costs, EffectOfPutView
from chalicelib.flow.views.views import dry_run_view
from chalicelib.web.bodies import DryRun, Occurrence, Pause, RunNow
from chalicelib.web.http import (
    Json,
    answer,
    body,
    caller,
    document,
    flag,
    gone,
    if_match,
    parse,
    request_id,
    validated,
)
from chalicelib.web.paging import listing
from chalicelib.web.quotas import check_schedule, check_waiting
from chalicelib.web.routes.schedules import shown, view_of
from chalicelib.wiring import ports


def put_schedule(request: Request, name: str) -> Response:
    """Create or replace a schedule. A new schedule is disabled and a replaced one keeps its state, unless ``enabled``
    is given. ``effect`` says what becomes of the work in flight. A dry run stores nothing, and answers what the put
    would."""
    require(ports(), "app", name.rpartition(".")[0])
    given = body(request)
    sent = validated(NewSchedule, given)
    check_schedule(name, sent)
    effects: list[EffectOfPutView] = []  # one, if the put replaces a schedule

    def say(change: Change) -> None:
        if change.plan and change.before is not None:
            effects[:] = [Costs(ports()).of_put(change.found, sent.enabled, sent.on_update == "carry")]

    if flag(request, "dry_run"):
        change = actions.would_put(ports(), name, sent, caller(request), if_match(request))
        say(change)
        return document(view_of(change.after, change.schedule, expressions.notes(given), effects))
    _, new = actions.put(ports(), name, sent, caller(request), if_match(request), say=say)
    return shown(name, 201 if new else 200, expressions.notes(given), effects)


def delete_schedule(request: Request, name: str) -> Response:
    """Delete a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    actions.delete(ports(), name, caller(request), if_match(request))
    return gone()


def enable_schedule(request: Request, name: str) -> Response:
    """Enable a schedule. It counts the events that are accepted from now on. A paused schedule is resumed."""
    actions.enable(ports(), name, caller(request))
    return shown(name)


def disable_schedule(request: Request, name: str) -> Response:
    """Disable a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    actions.disable(ports(), name, caller(request))
    return shown(name)


def pause_schedule(request: Request, name: str) -> Response:
    """Pause a schedule until it is resumed. With ``hold``, its job waits and continues to gather events. With
    ``backlog``, each match is queued as a separate job. With ``drain``, jobs whose trigger is met may start, and the
    schedule accepts no new events. ``timeouts`` sets whether the timeouts of waiting jobs keep counting."""
    request_data = parse(Pause, request)
    pauses.pause(ports(), name, request_data.mode, caller(request), request_data.timeouts == "stop")
    return shown(name)


def resume_schedule(request: Request, name: str) -> Response:
    """Resume a paused schedule. Its waiting jobs continue."""
    pauses.resume(ports(), name, caller(request))
    return shown(name)


def skip_occurrence(request: Request, name: str) -> Response:
    """Skip one upcoming occurrence, identified by its nominal instant."""
    return _skip(request, name, wanted=True)


def unskip_occurrence(request: Request, name: str) -> Response:
    """Cancel the skip of an occurrence."""
    return _skip(request, name, wanted=False)


def run_now(request: Request, name: str) -> Response:
    """Run a schedule now or at an instant. The run skips the trigger, but not the constraints. Requests with the same
    Idempotency-Key create one job; a repeat returns that job and its current state."""
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    check_waiting(name, lambda: has_made(ports(), "run", name, request_id(request)))
    job_id = actions.run_now(ports(), name, request_data.properties, request_id(request), at, request_data.partition)
    return answer(became(ports(), job_id), 202)


def dry_run(request: Request, name: str) -> Json:
    """Show what the trigger would do with the given events, applied in order from an empty state. Nothing is stored;
    constraints are not checked."""
    now = ports().clock.now()
    _, schedule = existing(ports(), name)
    events = parse(DryRun, request).events
    try:
        datasets = period_jobs.datasets_of(ports(), schedule) if schedule.per is not None else None
        steps, left = evaluated(name, schedule, events, now, datasets)
    except OverBudget as error:
        hint = "send fewer events in a request, or events with smaller payloads"
        raise too_costly("events", "a dry run", error, hint) from None
    return dry_run_view(schedule, steps, left, now)


def _skip(request: Request, name: str, wanted: bool) -> Response:
    at = parse_instant(parse(Occurrence, request).at, "at")
    pauses.skip(ports(), name, at, caller(request), wanted)
    return shown(name)


def list_messages(request: Request, app: str) -> Json:
    """List the messages of an app that have something left to send."""
    return listing(request, partial(messages.of_app, ports(), app), messages.view)


def put_message(request: Request, name: str) -> Response:
    """Create or replace a message. It is active at once; nothing more of the replaced message is sent."""
    app, _, short = name.rpartition(".")
    stored, new = messages.put(ports(), app, short, parse(Message, request), caller(request), if_match(request))
    return document(messages.view(stored), 201 if new else 200)


def get_message(request: Request, name: str) -> Response:
    """Read a message. A message that has sent everything no longer exists."""
    app, _, short = name.rpartition(".")
    return document(messages.view(messages.get(ports(), app, short)))


def delete_message(request: Request, name: str) -> Response:
    """Delete a message. Nothing more of it is sent; its past sends stay in the history."""
    app, _, short = name.rpartition(".")
    messages.delete(ports(), app, short, caller(request), if_match(request))
    return gone()
