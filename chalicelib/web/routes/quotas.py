"""Routes of the quotas of a namespace (O9)."""

from __future__ import annotations

from chalice.app import Blueprint, Response

from chalicelib.web import quotas as checks
from chalicelib.web.access import require_installation_administrator
from chalicelib.web.http import caller, document, if_match, parse
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "GET", NS + "/quotas", needs="read")
def get_quotas(ns: str) -> Response:
    """Read the quotas of a namespace: its own, those that hold, and what is used."""
    from chalicelib.core.quotas.document import MAX_WAITING
    from chalicelib.flow.definitions.quotas import view
    from chalicelib.flow.views.backlog import count

    found = view(ports(), ns)
    found["used"]["waiting_jobs"] = count(ports(), ns, MAX_WAITING + 1)
    return document(found)


@route(routes, "PUT", NS + "/quotas", needs="administer", body="Quotas", headers=(IF_MATCH,), status=(200, 201))
def put_quotas(ns: str) -> Response:
    """Replace the quotas of a namespace, as an administrator of the installation. A quota that is left out is that of
    the installation. Each process of the API uses the new ones within 30 seconds."""
    from chalicelib.core.quotas.document import Quotas
    from chalicelib.flow.definitions.quotas import put

    request = routes.current_request
    require_installation_administrator(request)
    change = put(ports(), ns, parse(Quotas, request), caller(request), if_match(request))
    checks.memory().quotas.pop(ns, None)
    view = {"name": ns, "kind": "quotas", "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)
