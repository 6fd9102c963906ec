"""Routes of schedules: documents, and what people do to them."""

from __future__ import annotations

from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web.definitions import APP
from chalicelib.web.http import SIGNED, answers, body, caller, document, gone, if_match, listing, paging, parse, query
from chalicelib.wiring import ports

routes = Blueprint(__name__)

ONE = APP + "/schedules/{name}"


@routes.route(APP + "/schedules", methods=["GET"], authorizer=SIGNED)
@answers
def list_schedules(ns: str, app: str) -> dict[str, Any]:
    from chalicelib.flow.read import schedule_view
    from chalicelib.flow.schedules import existing

    page = ports().catalog.schedules(f"{ns}.{app}", *paging(routes.current_request))
    return listing(page, lambda name: schedule_view(*existing(ports(), name)))


@routes.route(ONE, methods=["PUT"], authorizer=SIGNED)
@answers
def put_schedule(ns: str, app: str, name: str) -> Response:
    from chalicelib.core.documents import check_name
    from chalicelib.core.model import NewSchedule
    from chalicelib.flow.definitions import require
    from chalicelib.flow.read import schedule_view
    from chalicelib.flow.schedules import existing, put

    request = routes.current_request
    check_name(name, "name")
    require(ports(), "app", f"{ns}.{app}")
    full = f"{ns}.{app}.{name}"
    _, new = put(ports(), full, parse(NewSchedule, request), caller(request), if_match(request))
    return document(schedule_view(*existing(ports(), full)), 201 if new else 200)


@routes.route(ONE, methods=["GET"], authorizer=SIGNED)
@answers
def get_schedule(ns: str, app: str, name: str) -> Response:
    from chalicelib.flow.read import schedule_view
    from chalicelib.flow.schedules import existing

    return document(schedule_view(*existing(ports(), f"{ns}.{app}.{name}")))


@routes.route(ONE, methods=["DELETE"], authorizer=SIGNED)
@answers
def delete_schedule(ns: str, app: str, name: str) -> Response:
    from chalicelib.flow.schedules import delete

    request = routes.current_request
    delete(ports(), f"{ns}.{app}.{name}", caller(request), if_match(request))
    return gone()


@routes.route(ONE + "/enable", methods=["POST"], authorizer=SIGNED)
@answers
def enable_schedule(ns: str, app: str, name: str) -> Response:
    from chalicelib.flow.schedules import enable

    enable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return get_schedule(ns, app, name)  # type: ignore[no-any-return]


@routes.route(ONE + "/disable", methods=["POST"], authorizer=SIGNED)
@answers
def disable_schedule(ns: str, app: str, name: str) -> Response:
    from chalicelib.flow.schedules import disable

    disable(ports(), f"{ns}.{app}.{name}", caller(routes.current_request))
    return get_schedule(ns, app, name)  # type: ignore[no-any-return]


@routes.route(ONE + "/run", methods=["POST"], authorizer=SIGNED)
@answers
def run_now(ns: str, app: str, name: str) -> Response:
    from chalicelib.core.errors import SluiceError, invalid
    from chalicelib.flow.schedules import run_now as start

    request = routes.current_request
    content = body(request)
    unknown = sorted(set(content) - {"properties"})
    if unknown:
        raise SluiceError("unknown_field", f"unknown field {unknown[0]!r}", unknown[0], "only properties can be given")
    properties = content.get("properties", {})
    if not isinstance(properties, dict):
        raise invalid("properties", "an object", properties)
    # A caller that repeats a request under one key gets one job; without a key each request is a wish of its own.
    request_id = request.headers.get("idempotency-key") or str(request.context.get("requestId"))
    return document({"job_id": start(ports(), f"{ns}.{app}.{name}", properties, request_id)}, 202)


@routes.route(ONE + "/jobs", methods=["GET"], authorizer=SIGNED)
@answers
def schedule_jobs(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.flow.lists import jobs_of_schedule
    from chalicelib.flow.read import job_view
    from chalicelib.flow.schedules import existing

    existing(ports(), f"{ns}.{app}.{name}")
    page = jobs_of_schedule(ports(), f"{ns}.{app}.{name}", *paging(routes.current_request))
    return listing(page, job_view)


@routes.route(ONE + "/runs", methods=["GET"], authorizer=SIGNED)
@answers
def schedule_runs(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.flow.read import run_view

    return listing(ports().runs.runs("schedule", f"{ns}.{app}.{name}", *paging(routes.current_request)), run_view)


@routes.route(ONE + "/records", methods=["GET"], authorizer=SIGNED)
@answers
def schedule_records(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.flow.read import record_view

    page = ports().runs.records("schedule", f"{ns}.{app}.{name}", *paging(routes.current_request))
    return listing(page, record_view)


@routes.route(ONE + "/why", methods=["GET"], authorizer=SIGNED)
@answers
def why_schedule(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.flow import read

    return read.why_schedule(ports(), f"{ns}.{app}.{name}")


@routes.route(ONE + "/versions", methods=["GET"], authorizer=SIGNED)
@answers
def schedule_versions(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.core.calendar import iso
    from chalicelib.ports import Page

    found = ports().catalog.versions(f"{ns}.{app}.{name}")
    return listing(
        Page(tuple(reversed(found))),
        lambda row: {
            "version": row.version,
            "created_at": iso(row.created_at),
            "created_by": row.by,
            "definition": dict(row.definition),
        },
    )


@routes.route(ONE + "/preview", methods=["GET"], authorizer=SIGNED)
@answers
def preview(ns: str, app: str, name: str) -> dict[str, Any]:
    from chalicelib.core import emit
    from chalicelib.core.calendar import iso
    from chalicelib.core.errors import invalid
    from chalicelib.flow.schedules import existing

    text = query(routes.current_request, "count") or "10"
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise invalid("count", "a number from 1 to 1000", text)
    _, schedule = existing(ports(), f"{ns}.{app}.{name}")
    fires = emit.preview(schedule, ports().clock.now(), int(text))
    return {"items": [iso(fire) for fire in fires], "next_cursor": None}
