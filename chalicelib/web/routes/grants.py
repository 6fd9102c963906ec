"""Routes of the grants document of a namespace: what the documents of other namespaces may use of it (O9)."""

from __future__ import annotations

from chalice.app import Blueprint, Response

from chalicelib.web.http import caller, document, if_match, parse
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "GET", NS + "/grants", needs="read")
def get_grants(ns: str) -> Response:
    """Read what a namespace grants to others."""
    from chalicelib.flow.definitions.grants import get
    from chalicelib.flow.views.views import grants_view

    return document(grants_view(get(ports(), ns)))


@route(routes, "PUT", NS + "/grants", needs="administer", body="Grants", headers=(IF_MATCH,), status=(200, 201))
def put_grants(ns: str) -> Response:
    """Replace what a namespace grants to others. What loses its grant is held; what waits for a new one goes on."""
    from chalicelib.core.access.grants import Grants
    from chalicelib.flow.definitions.grants import put

    request = routes.current_request
    change = put(ports(), ns, parse(Grants, request), caller(request), if_match(request))
    view = {"name": ns, "kind": "grants", "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)
