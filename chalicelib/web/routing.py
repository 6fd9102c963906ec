"""How a route is declared, so that one line says what it reads, and whatever it answers has our shape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalice.app import Blueprint, IAMAuthorizer, MultiDict, Request, Response

from chalicelib.core import errors, ids
from chalicelib.core.errors import SluiceError
from chalicelib.web.http import answer, body, failure, refusal

SIGNED = IAMAuthorizer()
IF_MATCH, IDEMPOTENCY_KEY = "If-Match", "Idempotency-Key"
NAMES = {"ns": "namespace", "app": "app", "name": "name"}  # path parameters that are names -> the field in an error
IDS = {"job_id": "job", "run_id": "run"}
SCHEDULE = "/v1/namespaces/{ns}/apps/{app}/schedules/{name}"
MAX_ID = 300  # a schedule's full name, a generation and a digest are shorter

# A part of the request may have been carried out by then. Whatever is repeated with its key, or is a PUT, counts once.
DOWN = "a service of AWS that this request needs does not answer"
AGAIN = "retry the request in a few seconds, with the same Idempotency-Key if it takes one"

View = Callable[..., Any]


def _check_pool(text: str) -> None:
    from chalicelib.core.documents import check_reference

    if check_reference(text, "pool").count(".") != 1:
        raise errors.invalid("pool", "a pool's full name, namespace.pool", text)


def _check_lease(text: str) -> None:
    from chalicelib.core.runs.workers import parse_lease_id

    if parse_lease_id(text) is None:
        raise errors.not_found("lease", text, "leases are named as a claim told them")


OWN = {"pool": _check_pool, "lease_id": _check_lease}


@dataclass(frozen=True, slots=True)
class Takes:
    """What a route reads besides its path, and how it answers when all is well. Anything else that comes is refused:
    a filter that is misspelt must not pass in silence. ``body`` names a model of `bodies.BODIES`."""

    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    body: str | None = None
    status: tuple[int, ...] = (200,)


def route(
    routes: Blueprint,
    method: str,
    path: str,
    *,
    query: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
    body: str | None = None,
    status: tuple[int, ...] = (200,),
) -> Callable[[View], View]:
    """Register a handler of signed requests. Its docstring is the summary in the OpenAPI document."""
    takes = Takes(query, headers, body, status)

    def register(handler: View) -> View:
        @functools.wraps(handler)
        def view(**segments: str) -> Response:
            def act() -> Any:
                _check(routes.current_request, takes, segments)
                return handler(**segments)

            return _answered(act)

        view.takes = takes  # type: ignore[attr-defined]
        # Any content type: a body is JSON or it is refused, and curl calls everything a form.
        routes.route(path, methods=[method], authorizer=SIGNED, content_types=["*/*"])(view)
        return handler

    return register


def own_shape(event: Any, get_response: Callable[[Any], Response]) -> Response:
    """Middleware: what Chalice itself refuses, in the shape of our errors."""
    response = _answered(lambda: get_response(event))
    told = response.body
    if response.status_code < 400 or not isinstance(told, dict):
        return response
    if response.status_code >= 500:
        return failure()
    allowed = str(response.headers.get("Allow", ""))
    if response.status_code == 405 and allowed:
        shaped = failure(405, "method_not_allowed", str(told["Message"]), f"this path takes {allowed}")
        shaped.headers["Allow"] = allowed
        return shaped
    # A path without any method is one that Chalice does not know.
    status = 404 if response.status_code == 405 else response.status_code
    return failure(
        status, "not_found" if status == 404 else "invalid", "no such route", "GET /v1/openapi.json lists them"
    )


def _answered(act: Callable[[], Any]) -> Response:
    """What an act returns as a response, a refusal in our shape, and never a traceback."""
    from chalicelib.log import logger
    from chalicelib.wiring import is_down

    try:
        result = act()
    except SluiceError as error:
        return refusal(error)
    except Exception as error:
        logger.exception("request failed")
        return failure(503, "unavailable", DOWN, AGAIN) if is_down(error) else failure()
    return result if isinstance(result, Response) else answer(result)


def _check_owned(request: Request, name: str) -> None:
    """A schedule that a DAG became is there to be seen. What becomes of it is decided by its DAG (W4); the past of its
    start can be run as that of any schedule."""
    if request.method == "GET" or (request.path.startswith(f"{SCHEDULE}/backfills") and name.endswith(ids.DAG)):
        return
    dag = ids.dag_of(f".{name}")[1:]
    hint = f"change the DAG: PUT .../dags/{dag}, or POST .../dags/{dag}/enable, disable or run"
    raise SluiceError("conflict", f"schedule {name} belongs to the DAG {dag} and cannot be changed alone", "name", hint)


def _check(request: Request, takes: Takes, segments: dict[str, str]) -> None:
    from chalicelib.core.documents import check_name
    from chalicelib.core.ids import is_of_dag

    for segment, text in segments.items():
        if segment == "name" and request.path.startswith(SCHEDULE) and is_of_dag(f".{text}"):
            _check_owned(request, text)
        elif segment in NAMES:
            check_name(text, NAMES[segment])
        elif segment in IDS and (len(text) > MAX_ID or ids.parse_job_id(text) is None):
            hint = "ids are as this API tells them, such as demo.flights.clean.mf3k0p2q.0a1b2c3d4e5f60718293"
            raise errors.not_found(IDS[segment], text[:MAX_ID], hint)
        elif segment in OWN:
            OWN[segment](text[:MAX_ID])
    parameters = request.query_params or MultiDict({})
    for name in parameters:
        if name not in takes.query:
            hint = f"it takes {', '.join(takes.query)}" if takes.query else "leave it out"
            raise SluiceError("unknown_field", f"this route takes no query parameter {name!r}", name, hint)
        if len(values := parameters.getlist(name)) > 1:
            raise errors.invalid(name, "each query parameter once", values, "ask once for each value")
    if request.method == "GET":
        return
    if IF_MATCH not in takes.headers and request.headers.get(IF_MATCH) is not None:
        hint = "leave it out: a condition that nobody checks protects nothing"
        raise SluiceError("invalid", "this route cannot be made conditional", IF_MATCH, hint)
    if takes.body is None and body(request):
        field = min(body(request))
        raise SluiceError("unknown_field", f"unknown field {field!r}", field, "this route takes no body")
