"""Routes of pools: slots and vCPUs that workflows share."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib.web import unseen
from chalicelib.web.access import sees
from chalicelib.web.http import caller, document, gone, if_match, parse
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.quotas import check_document
from chalicelib.web.routing import IF_MATCH, route
from chalicelib.wiring import ports

routes = Blueprint(__name__)

POOLS = "/v1/namespaces/{ns}/pools"


@route(routes, "GET", POOLS, needs="read", query=PAGING)
def list_pools(ns: str) -> dict[str, Any]:
    """List the pools of a namespace."""
    from chalicelib.flow.lookup import require
    from chalicelib.flow.views.views import definition_view

    require(ports(), "namespace", ns)
    return listing(routes.current_request, partial(ports().catalog.definitions, "pool", ns), definition_view)


@route(routes, "PUT", POOLS + "/{name}", needs="define", body="Pool", headers=(IF_MATCH,), status=(200, 201))
def put_pool(ns: str, name: str) -> Response:
    """Create or replace a pool. A larger pool starts waiting jobs at once; a smaller one lets active runs end first."""
    from chalicelib.core.limits.pools import Pool
    from chalicelib.flow.definitions.store import put
    from chalicelib.flow.lookup import require

    request, full = routes.current_request, f"{ns}.{name}"
    require(ports(), "namespace", ns)
    content = parse(Pool, request).model_dump(mode="json")
    check_document(ns, "pool", full)
    change = put(ports(), "pool", full, content, caller(request), if_match(request))
    view = {"name": full, "kind": "pool", "did": change.did, "version": change.version}
    return document(view, 201 if change.did == "created" else 200)


@route(routes, "GET", POOLS + "/{name}", needs="read")
def get_pool(ns: str, name: str) -> Response:
    """Read a pool, with its units in use, and the jobs that wait for them in order."""
    from chalicelib.flow.definitions.store import get
    from chalicelib.flow.views.queues import of_pool
    from chalicelib.flow.views.views import definition_view

    row = get(ports(), "pool", f"{ns}.{name}")
    use = unseen.parts(of_pool(ports(), row), sees(routes.current_request))
    return document({**definition_view(row), **use})


@route(routes, "DELETE", POOLS + "/{name}", needs="define", headers=(IF_MATCH,), status=(204,))
def delete_pool(ns: str, name: str) -> Response:
    """Delete a pool that no schedule and no workflow names."""
    from chalicelib.flow.definitions.store import delete

    delete(ports(), "pool", f"{ns}.{name}", if_match(routes.current_request))
    return gone()
