"""Routes of actions on schedules: enable, disable, pause, resume, skip, run now, dry run."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.http import answer, caller, parse, request_id
from chalicelib.web.quotas import check_waiting
from chalicelib.web.routes.schedules import ONE, shown
from chalicelib.web.routing import IDEMPOTENCY_KEY, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "POST", ONE + "/enable", needs="operate")
def enable_schedule(ns: str, app: str, name: str) -> Response:
    """Enable a schedule. It counts the events that are accepted from now on. A paused schedule is resumed."""
    from chalicelib.flow.schedules.actions import enable

    enable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return shown(ns, app, name)


@route(routes, "POST", ONE + "/disable", needs="operate")
def disable_schedule(ns: str, app: str, name: str) -> Response:
    """Disable a schedule. Its waiting jobs are dropped and recorded; its runs continue."""
    from chalicelib.flow.schedules.actions import disable

    disable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return shown(ns, app, name)


@route(routes, "POST", ONE + "/pause", needs="operate", body="Pause")
def pause_schedule(ns: str, app: str, name: str) -> Response:
    """Pause a schedule until it is resumed. With ``hold``, its job waits and continues to gather events. With
    ``backlog``, each match is queued as a separate job. With ``drain``, jobs whose trigger is met may start, and the
    schedule accepts no new events. ``timeouts`` sets whether the timeouts of waiting jobs keep counting."""
    from chalicelib.flow.schedules.pauses import pause
    from chalicelib.web.bodies import Pause

    request = routes.current_request
    request_data = parse(Pause, request)
    pause(ports(), f"{ns}.{app}.{name}", request_data.mode, caller(request), request_data.timeouts == "stop")
    return shown(ns, app, name)


@route(routes, "POST", ONE + "/resume", needs="operate")
def resume_schedule(ns: str, app: str, name: str) -> Response:
    """Resume a paused schedule. Its waiting jobs continue."""
    from chalicelib.flow.schedules.pauses import resume

    resume(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return shown(ns, app, name)


@route(routes, "POST", ONE + "/skip", needs="operate", body="Occurrence")
def skip_occurrence(ns: str, app: str, name: str) -> Response:
    """Skip one upcoming occurrence, identified by its nominal instant."""
    return _skip(ns, app, name, wanted=True)


@route(routes, "POST", ONE + "/unskip", needs="operate", body="Occurrence")
def unskip_occurrence(ns: str, app: str, name: str) -> Response:
    """Cancel the skip of an occurrence."""
    return _skip(ns, app, name, wanted=False)


@route(routes, "POST", ONE + "/run", needs="operate", body="RunNow", headers=(IDEMPOTENCY_KEY,), status=(202,))
def run_now(ns: str, app: str, name: str) -> Response:
    """Run a schedule now or at an instant. The run skips the trigger, but not the constraints. Requests with the same
    Idempotency-Key create one job; a repeat returns that job and its current state."""
    from chalicelib.core.instants import parse_when
    from chalicelib.flow.requests import became, has_made
    from chalicelib.flow.schedules.actions import run_now as start
    from chalicelib.web.bodies import RunNow

    request = routes.current_request
    request_data = parse(RunNow, request)
    at = None if request_data.at is None else parse_when(request_data.at, ports().clock.now(), "at")
    full = f"{ns}.{app}.{name}"
    check_waiting(ns, lambda: has_made(ports(), "run", full, request_id(request)))
    job_id = start(ports(), full, request_data.properties, request_id(request), at, request_data.partition)
    return answer(became(ports(), job_id), 202)


@route(routes, "POST", ONE + "/dry-run", needs="read", body="DryRun")
def dry_run(ns: str, app: str, name: str) -> dict[str, Any]:
    """Show what the trigger would do with the given events, applied in order from an empty state. Nothing is stored;
    constraints are not checked."""
    from chalicelib.core.errors import too_costly
    from chalicelib.core.jobs.dry_run import dry_run
    from chalicelib.core.steps import OverBudget
    from chalicelib.flow.lookup import existing
    from chalicelib.flow.views.views import dry_run_view
    from chalicelib.web.bodies import DryRun

    full, now = f"{ns}.{app}.{name}", ports().clock.now()
    _, schedule = existing(ports(), full)
    events = parse(DryRun, routes.current_request).events
    try:
        steps, left = dry_run(full, schedule, events, now)
    except OverBudget as error:
        hint = "send fewer events in a request, or events with smaller payloads"
        raise too_costly("events", "a dry run", error, hint) from None
    return dry_run_view(schedule, steps, left, now)


def _skip(ns: str, app: str, name: str, wanted: bool) -> Response:
    from chalicelib.core.instants import parse_instant
    from chalicelib.flow.schedules.pauses import skip
    from chalicelib.web.bodies import Occurrence

    request = routes.current_request
    at = parse_instant(parse(Occurrence, request).at, "at")
    skip(ports(), f"{ns}.{app}.{name}", at, caller(request), wanted)
    return shown(ns, app, name)
