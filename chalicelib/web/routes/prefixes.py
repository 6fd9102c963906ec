"""Routes of the owners of prefixes, for administrators of the installation (O14)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, Response

from chalicelib.core.errors import invalid
from chalicelib.web.access import SIGNED, require_installation_administrator
from chalicelib.web.http import document, gone, parse, query, validated
from chalicelib.web.paging import PAGING, listing
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.flow.definitions.prefixes import Place
    from chalicelib.web.bodies import GivenPrefix

routes = Blueprint(__name__)


@route(routes, "GET", "/v1/prefixes", needs=SIGNED, query=("bucket", *PAGING))
def list_prefixes() -> dict[str, Any]:
    """List the prefixes of a bucket with their owners, as an administrator of the installation. Without ``bucket``,
    those of the lake."""
    from chalicelib.core.definitions.dataset import BUCKET
    from chalicelib.flow.definitions.buckets import real_name
    from chalicelib.flow.views.views import prefix_view

    request = routes.current_request
    require_installation_administrator(request)
    bucket = query(request, "bucket") or "lake"
    if not re.fullmatch(BUCKET, bucket):
        raise invalid("bucket", "the name of a bucket", bucket, "write lake, or a bucket of WatchedBuckets")
    read = partial(ports().catalog.prefixes_in, real_name(ports(), bucket), "")
    return listing(request, read, prefix_view)


@route(routes, "PUT", NS + "/prefixes", needs="limit", body="GivenPrefix", status=(200, 201))
def give_prefix(ns: str) -> Response:
    """Give a prefix of a bucket to a namespace, so that it may have datasets there. ``nested``: also if the prefix lies
    in one of another namespace, or around one. Each of the two then gets the objects of its own prefix alone."""
    from chalicelib.flow.definitions.prefixes import give
    from chalicelib.flow.views.views import prefix_view
    from chalicelib.web.bodies import GivenPrefix

    given = parse(GivenPrefix, routes.current_request)
    row, is_new = give(ports(), ns, _place(given), given.nested)
    return document(prefix_view(row), 201 if is_new else 200)


@route(routes, "DELETE", NS + "/prefixes", needs="limit", query=("bucket", "prefix"), status=(204,))
def take_prefix(ns: str) -> Response:
    """Take back a prefix that was given to a namespace. Datasets that are there stay."""
    from chalicelib.flow.definitions.prefixes import take
    from chalicelib.web.bodies import GivenPrefix

    request = routes.current_request
    sent = {name: text for name in ("bucket", "prefix") if (text := query(request, name)) is not None}
    given = validated(GivenPrefix, sent)
    take(ports(), ns, _place(given))
    return gone()


def _place(given: GivenPrefix) -> Place:
    from chalicelib.flow.definitions.buckets import real_name
    from chalicelib.flow.definitions.prefixes import Place

    return Place(real_name(ports(), given.bucket), given.prefix)
