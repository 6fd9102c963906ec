"""How each route of the table is served: checks come first, and every answer has the format of this API."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from chalice.app import Chalice, IAMAuthorizer, MultiDict, Request, Response

from chalicelib.core import errors, ids
from chalicelib.core.documents import check_name, check_reference
from chalicelib.core.errors import SluiceError
from chalicelib.core.ids import is_of_dag
from chalicelib.core.runs.workers import parse_lease_id
from chalicelib.core.why import everyone
from chalicelib.log import logger
from chalicelib.web import access, audit, quotas
from chalicelib.web.access import SIGNED
from chalicelib.web.http import answer, body, failure, refusal, written
from chalicelib.web.table import IF_MATCH, ROUTES, SCHEDULE, Route
from chalicelib.wiring import is_down

AUTHORIZER = IAMAuthorizer()
NAMES = {"ns": "namespace", "app": "app", "name": "name"}  # path parameter -> the field that an error names
IDS = {"job_id": "job", "run_id": "run", "fire_id": "fire"}
MAX_ID = 300  # a schedule's full name, a generation and a digest are shorter

# AWS may have carried out a part of the request. A repeat with the same key, or of a PUT, counts once.
DOWN = "an AWS service that this request needs does not answer"
AGAIN = "retry the request in a few seconds, with the same Idempotency-Key if it takes one"


def _check_pool(text: str) -> None:
    if check_reference(text, "pool").count(".") != 1:
        raise errors.invalid("pool", "a pool's full name, namespace.pool", text, "such as demo.spark")


def _check_lease(text: str) -> None:
    if parse_lease_id(text) is None:
        raise errors.not_found("lease", text, "use a lease id that the answer to a claim contains")


def check_upload(text: str) -> str:
    """The id of an upload. Raises ``not_found`` for any other text."""
    if not re.fullmatch(r"[0-9a-f]{32}", text):
        raise errors.not_found("upload", text[:MAX_ID], "use the id that the answer to POST .../uploads contains")
    return text


OWN: dict[str, Callable[[str], object]] = {"pool": _check_pool, "lease_id": _check_lease}


class Served:
    """The function that Chalice calls for a route. Its docstring is that of the route's own function, whose module is
    imported when it is first called, or described."""

    def __init__(self, app: Chalice, route: Route) -> None:
        self.__name__, self.route, self._app = route.name, route, app

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.route.description

    def __call__(self, **segments: str) -> Response:
        return written(_answered(partial(self._serve, segments)))

    def _serve(self, segments: dict[str, str]) -> Response:
        request, name = cast("Request", self._app.current_request), self.route.name
        with audit.refusals_recorded(request, name, segments):
            _check(request, self.route, segments)
            try:
                with audit.authored(request, name, segments):
                    result = self._result(request, segments)
                    may_hide = self.route.needs != SIGNED and access.may_hide(request)
                    return written(_response(result), access.sees(request) if may_hide else everyone)
            except SluiceError as error:
                raise error.concealing(access.sees(request)) from None

    def _result(self, request: Request, segments: dict[str, str]) -> Any:
        others = {segment: text for segment, text in segments.items() if segment not in NAMES}
        named = [access.full_name(segments)] if len(others) < len(segments) else []
        return self.route.handler()(request, *named, **others)


def register(app: Chalice) -> None:
    """Register the handler of each route of the table, for signed requests."""
    app.register_middleware(own_shape, "http")
    for route in ROUTES:
        # Accept any content type: curl sends every body as a form, and a body that is no JSON is refused.
        options = {"methods": [route.method], "authorizer": AUTHORIZER, "content_types": ["*/*"]}
        app.route(route.path, **options)(Served(app, route))


def own_shape(event: Any, get_response: Callable[[Any], Response]) -> Response:
    """Middleware: give the errors that Chalice itself answers the format of this API."""
    response = _answered(lambda: get_response(event))
    content = response.body
    if response.status_code < 400 or not isinstance(content, dict):
        return response
    if response.status_code >= 500:
        return failure()
    allowed = str(response.headers.get("Allow", ""))
    if response.status_code == 405 and allowed:
        shaped = failure(405, "method_not_allowed", str(content["Message"]), f"this path takes {allowed}")
        shaped.headers["Allow"] = allowed
        return shaped
    # Chalice answers 405 without any allowed method to a path that does not exist.
    status = 404 if response.status_code == 405 else response.status_code
    return failure(
        status, "not_found" if status == 404 else "invalid", "no such route", "GET /v1/openapi.json lists them"
    )


def _answered(act: Callable[[], Any]) -> Response:
    """The response to a call: its result, or an error in the format of this API; never a traceback."""
    try:
        result = act()
    except SluiceError as error:
        return refusal(error)
    except Exception as error:
        logger.exception("request failed")
        return failure(503, "unavailable", DOWN, AGAIN) if is_down(error) else failure()
    return _response(result)


def _response(result: Any) -> Response:
    return result if isinstance(result, Response) else answer(result)


def _check_owned(request: Request, name: str) -> None:
    """Raise ``conflict`` for a change of a schedule that a DAG owns: only the DAG changes it (W4). Reads are allowed,
    dry runs of the trigger, and backfills of the DAG's start."""
    reads = request.method == "GET" or request.path == f"{SCHEDULE}/dry-run"
    if reads or (request.path.startswith(f"{SCHEDULE}/backfills") and name.endswith(ids.DAG)):
        return
    raise errors.owned_by_dag(ids.plain(f".{name}")[1:], ids.dag_of(f".{name}")[1:])


def _check(request: Request, route: Route, segments: dict[str, str]) -> None:
    name = segments.get("name", "")
    owned = request.path.startswith(SCHEDULE) and is_of_dag(f".{name}")
    _check_path(segments, owned)
    access.check(request, route.needs, segments)
    if owned:
        _check_owned(request, name)
    if route.needs != SIGNED:
        quotas.check_rate(request, access.namespace_of(segments))
    _check_query(request, route)
    if request.method == "GET":
        return
    if IF_MATCH not in route.headers and request.headers.get(IF_MATCH) is not None:
        hint = "remove the header; Sluice does not check it on this route"
        raise SluiceError("invalid", "this route does not support If-Match", IF_MATCH, hint)
    if route.body is None and body(request):
        field = min(body(request))
        raise SluiceError("unknown_field", f"unknown field {field!r}", field, "this route takes no body")


def _check_path(segments: dict[str, str], owned: bool) -> None:
    """Raise SluiceError for a name or an id in the path that nothing can have. ``owned``: the name is that of a part
    of a DAG."""
    for segment, text in segments.items():
        if segment in NAMES and not (owned and segment == "name"):
            check_name(text, NAMES[segment])
        elif segment in IDS and (len(text) > MAX_ID or ids.parse_job_id(text) is None):
            hint = "use an id that this API returned, such as demo.flights.clean.mf3k0p2q.0a1b2c3d4e5f60718293"
            if text.count(".") == 2:
                command = "sluice jobs" if IDS[segment] == "job" else "sluice runs list"
                hint = f"a schedule has such a name: {command} -s {text[:MAX_ID]} lists its ids"
            raise errors.not_found(IDS[segment], text[:MAX_ID], hint)
        elif segment in OWN:
            OWN[segment](text[:MAX_ID])


def _check_query(request: Request, route: Route) -> None:
    """Raise SluiceError for a parameter that the route does not take, or that comes twice."""
    parameters = request.query_params or MultiDict({})
    for name in parameters:
        if name not in route.query:
            hint = f"use one of {', '.join(route.query)}" if route.query else "remove the parameter"
            raise SluiceError("unknown_field", f"unknown query parameter {name!r}", name, hint)
        if len(values := parameters.getlist(name)) > 1:
            raise errors.invalid(name, "each query parameter once", values, "send one request for each value")
