"""Routes of audit records: who has changed what, and who was refused (O5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, Request

from chalicelib.web.access import SIGNED, require_installation_administrator
from chalicelib.web.http import query
from chalicelib.web.paging import DEFAULT_LIMIT, PAGING, listing
from chalicelib.web.routes.definitions import NS
from chalicelib.web.routing import route
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.flow.views.audit import Wanted

routes = Blueprint(__name__)

FILTERS = ("from", "to", "who", "name", "kind", "outcome")
OUTCOMES = ("changed", "refused", "observed", "begun")
MAX_LISTED = 200  # a record has up to 9 KB, and an answer at most 6 MB
MAX_DAYS = 31  # of a list over all namespaces, which reads one part of an index for each day


@route(routes, "GET", NS + "/audit", needs="administer", query=(*FILTERS, *PAGING))
def list_audit(ns: str) -> dict[str, Any]:
    """List the audit records of a namespace, newest first. There is one for each change, and one for each refusal.
    ``who`` is a part of the signer's ARN; ``name`` a full name or the beginning of one. A page may be short although
    more follow."""
    from chalicelib.flow.views.audit import audit_view, listed

    request = routes.current_request
    wanted = _wanted(request, 0)
    return listing(request, partial(listed, ports(), ns, wanted), audit_view, DEFAULT_LIMIT, MAX_LISTED)


@route(routes, "GET", "/v1/audit", needs=SIGNED, query=(*FILTERS, *PAGING))
def list_audit_of_all() -> dict[str, Any]:
    """List the audit records of all namespaces, newest first, for administrators of the installation. The span has at
    most 31 days; by default it ends now."""
    from chalicelib.core.errors import invalid
    from chalicelib.core.instants import DAY
    from chalicelib.flow.views.audit import audit_view, listed

    request = routes.current_request
    require_installation_administrator(request)
    wanted = _wanted(request, None)
    if wanted.until - wanted.since > MAX_DAYS * DAY:
        hint = "send one request for each part of the span"
        raise invalid("from", f"an instant at most {MAX_DAYS} days before to", query(request, "from"), hint)
    return listing(request, partial(listed, ports(), None, wanted), audit_view, DEFAULT_LIMIT, MAX_LISTED)


def _wanted(request: Request, since: int | None) -> Wanted:
    """The filters of a request. ``since`` is the default of ``from``; None: as early as the span allows."""
    from chalicelib.core.errors import invalid
    from chalicelib.core.instants import DAY
    from chalicelib.flow.views.audit import Wanted

    # Records of this very millisecond belong to the list.
    until = _instant(request, "to", ports().clock.now() + 1)
    first = _instant(request, "from", until - MAX_DAYS * DAY if since is None else since)
    if not first < until:
        raise invalid("from", "an instant before to", query(request, "from"), "leave out to for the present")
    outcome = query(request, "outcome")
    if outcome not in (None, *OUTCOMES):
        raise invalid("outcome", f"one of {', '.join(OUTCOMES)}", outcome, "leave it out for all records")
    return Wanted(first, until, query(request, "who"), query(request, "name"), query(request, "kind"), outcome)


def _instant(request: Request, name: str, default: int) -> int:
    from chalicelib.core.instants import of_our_age, parse_instant

    text = query(request, name)
    return default if text is None else of_our_age(parse_instant(text, name), name, text)
