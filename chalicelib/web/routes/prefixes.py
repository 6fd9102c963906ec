"""Routes of the owners of prefixes, for administrators of the installation (O14)."""

from __future__ import annotations

import re
from functools import partial

from chalice.app import Request, Response

from chalicelib.core.definitions.dataset import BUCKET
from chalicelib.core.errors import invalid
from chalicelib.flow.definitions.buckets import real_name
from chalicelib.flow.definitions.prefixes import Place, give, take
from chalicelib.flow.views.views import prefix_view
from chalicelib.web.access import require_installation_administrator
from chalicelib.web.bodies import GivenPrefix
from chalicelib.web.http import Json, document, gone, parse, query, validated
from chalicelib.web.paging import listing
from chalicelib.wiring import ports


def list_prefixes(request: Request) -> Json:
    """List the prefixes of a bucket with their owners, as an administrator of the installation. Without ``bucket``,
    those of the lake."""
    require_installation_administrator(request)
    bucket = query(request, "bucket") or "lake"
    if not re.fullmatch(BUCKET, bucket):
        raise invalid("bucket", "the name of a bucket", bucket, "write lake, or a bucket of WatchedBuckets")
    read = partial(ports().catalog.prefixes_in, real_name(ports(), bucket), "")
    return listing(request, read, prefix_view)


def give_prefix(request: Request, ns: str) -> Response:
    """Give a prefix of a bucket to a namespace, so that it may have datasets there. ``nested``: also if the prefix lies
    in one of another namespace, or around one. Each of the two then gets the objects of its own prefix alone."""
    given = parse(GivenPrefix, request)
    row, is_new = give(ports(), ns, _place(given), given.nested)
    return document(prefix_view(row), 201 if is_new else 200)


def take_prefix(request: Request, ns: str) -> Response:
    """Take back a prefix that was given to a namespace. Datasets that are there stay."""
    sent = {name: text for name in ("bucket", "prefix") if (text := query(request, name)) is not None}
    given = validated(GivenPrefix, sent)
    take(ports(), ns, _place(given))
    return gone()


def _place(given: GivenPrefix) -> Place:
    return Place(real_name(ports(), given.bucket), given.prefix)
