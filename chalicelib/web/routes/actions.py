"""Routes of actions on schedules: enable, disable, pause, resume, skip, run now, dry run."""

from __future__ import annotations

from chalice.app import Request, Response

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import too_costly
from chalicelib.core.instants import parse_instant, parse_when
from chalicelib.core.jobs.dry_run import dry_run as evaluated
from chalicelib.core.steps import OverBudget
from chalicelib.core.time import expressions
from chalicelib.flow.lookup import existing, require
from chalicelib.flow.requests import became, has_made
from chalicelib.flow.schedules import actions, pauses
from chalicelib.flow.schedules.actions import delete, put
from chalicelib.flow.views.views import dry_run_view
from chalicelib.web.bodies import DryRun, Occurrence, Pause, RunNow
from chalicelib.web.http import (
    Json,
    answer,
    body,
    caller,
    gone,
    if_match,
    parse,
    request_id,
    validated,
)
from chalicelib.web.quotas import check_schedule, check_waiting
from chalicelib.web.routes.schedules import shown
from chalicelib.wiring import ports


def put_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Create or replace a schedule. A new schedule is disabled and a replaced one keeps its state, unless ``enabled``
    is given."""
    require(ports(), "app", f"{ns}.{app}")
    given = body(request)
    sent = validated(NewSchedule, given)
    check_schedule(ns, f"{ns}.{app}.{name}", sent)
    _, new = put(ports(), f"{ns}.{app}.{name}", sent, caller(request), if_match(request))
    return shown(ns, app, name, 201 if new else 200, expressions.notes(given))


def delete_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Delete a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


def enable_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Enable a schedule. It counts the events that are accepted from now on. A paused schedule is resumed."""
    actions.enable(ports(), f"{ns}.{app}.{name}", caller(request))
    return shown(ns, app, name)


def disable_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Disable a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    actions.disable(ports(), f"{ns}.{app}.{name}", caller(request))
    return shown(ns, app, name)


def pause_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Pause a schedule until it is resumed. With ``hold``, its job waits and continues to gather events. With
    ``backlog``, each match is queued as a separate job. With ``drain``, jobs whose trigger is met may start, and the
    schedule accepts no new events. ``timeouts`` sets whether the timeouts of waiting jobs keep counting."""
    request_data = parse(Pause, request)
    pauses.pause(ports(), f"{ns}.{app}.{name}", request_data.mode, caller(request), request_data.timeouts == "stop")
    return shown(ns, app, name)


def resume_schedule(request: Request, ns: str, app: str, name: str) -> Response:
    """Resume a paused schedule. Its waiting jobs continue."""
    pauses.resume(ports(), f"{ns}.{app}.{name}", caller(request))
    return shown(ns, app, name)


def skip_occurrence(request: Request, ns: str, app: str, name: str) -> Response:
    """Skip one upcoming occurrence, identified by its nominal instant."""
    return _skip(request, ns, app, name, wanted=True)


def unskip_occurrence(request: Request, ns: str, app: str, name: str) -> Response:
    """Cancel the skip of an occurrence."""
    return _skip(request, ns, app, name, wanted=False)


def run_now(request: Request, ns: str, app: str, name: str) -> Response:
    """Run a schedule now or at an instant. The run skips the trigger, but not the constraints. Requests with the same
    Idempotency-Key create one job; a repeat returns that job and its current state."""
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    full = f"{ns}.{app}.{name}"
    check_waiting(ns, lambda: has_made(ports(), "run", full, request_id(request)))
    job_id = actions.run_now(ports(), full, request_data.properties, request_id(request), at, request_data.partition)
    return answer(became(ports(), job_id), 202)


def dry_run(request: Request, ns: str, app: str, name: str) -> Json:
    """Show what the trigger would do with the given events, applied in order from an empty state. Nothing is stored;
    constraints are not checked."""
    full, now = f"{ns}.{app}.{name}", ports().clock.now()
    _, schedule = existing(ports(), full)
    events = parse(DryRun, request).events
    try:
        steps, left = evaluated(full, schedule, events, now)
    except OverBudget as error:
        hint = "send fewer events in a request, or events with smaller payloads"
        raise too_costly("events", "a dry run", error, hint) from None
    return dry_run_view(schedule, steps, left, now)


def _skip(request: Request, ns: str, app: str, name: str, wanted: bool) -> Response:
    at = parse_instant(parse(Occurrence, request).at, "at")
    pauses.skip(ports(), f"{ns}.{app}.{name}", at, caller(request), wanted)
    return shown(ns, app, name)
