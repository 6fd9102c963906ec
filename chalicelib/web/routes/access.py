"""Routes of the members of a namespace and their roles (O5), and of its allow-list (O10)."""

from __future__ import annotations

from functools import partial

from chalice.app import Blueprint, Response

from chalicelib.web.access import require_administrator, require_still_administrator
from chalicelib.web.http import caller, document, if_match, parse
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)


@route(routes, "GET", NS + "/access", needs="read")
def get_access(ns: str) -> Response:
    """Read the members of a namespace and their roles."""
    from chalicelib.flow.definitions.access import get
    from chalicelib.flow.views.views import access_view

    return document(access_view(get(ports(), ns)))


@route(routes, "PUT", NS + "/access", needs="administer", body="Access", headers=(IF_MATCH,), status=(200, 201))
def put_access(ns: str) -> Response:
    """Replace the members of a namespace and their roles. The next request of each signer is checked by them."""
    from chalicelib.core.access.document import Access
    from chalicelib.flow.definitions.access import put

    request = routes.current_request
    access = parse(Access, request)
    require_still_administrator(request, access)
    allowed = partial(require_administrator, request, ns)
    change = put(ports(), ns, access, caller(request), if_match(request), allowed)
    view = {"name": ns, "kind": "access", "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)


@route(routes, "GET", NS + "/allowed", needs="administer")
def get_allowed(ns: str) -> Response:
    """Read the allow-list of a namespace: what its definitions may name."""
    from chalicelib.flow.definitions.allow_list import get
    from chalicelib.flow.views.views import allowed_view

    return document(allowed_view(get(ports(), ns)))


@route(routes, "GET", NS + "/allowed/proposal", needs="administer")
def propose_allowed(ns: str) -> Response:
    """Propose an allow-list that covers what a namespace uses. The answer also says what the namespace may not use any
    more, without a list, once the installation has several namespaces."""
    from chalicelib.flow.definitions.uses import of_namespace
    from chalicelib.flow.views.views import proposal_view

    return document(proposal_view(of_namespace(ports(), ns)))


@route(routes, "PUT", NS + "/allowed", needs="limit", body="Allowed", headers=(IF_MATCH,), status=(200, 201))
def put_allowed(ns: str) -> Response:
    """Replace the allow-list of a namespace. Definitions that are put from now on obey it, and so does each call of a
    target that begins more than five seconds later."""
    from chalicelib.core.access.allowed import Allowed
    from chalicelib.flow.definitions.allow_list import put

    request = routes.current_request
    change = put(ports(), ns, parse(Allowed, request), caller(request), if_match(request))
    view = {"name": ns, "kind": "allowed", "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)
