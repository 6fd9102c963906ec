"""Routes of audit records: who has changed what, and who was refused (O5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chalice.app import Request

from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows.audit import AuditRow
from chalicelib.flow.views.views import audit_view
from chalicelib.ports import Page
from chalicelib.web.access import require_installation_administrator
from chalicelib.web.http import Json, instant, query
from chalicelib.web.paging import DEFAULT_LIMIT, listing, only
from chalicelib.wiring import ports

OUTCOMES = ("changed", "refused", "observed", "begun")
MAX_LISTED = 200  # a record has up to 9 KB, and an answer at most 6 MB
MAX_DAYS = 31  # of a list over all namespaces, which reads one part of an index for each day


def list_audit(request: Request, ns: str) -> Json:
    """List the audit records of a namespace, newest first. There is one for each change, and one for each refusal.
    ``who`` is a part of the signer's ARN; ``name`` a full name or the beginning of one. A page may be short although
    more follow."""
    wanted = _wanted(request, 0)
    return _listed(request, wanted, partial(ports().runs.audit, ns))


def list_audit_of_all(request: Request) -> Json:
    """List the audit records of all namespaces, newest first, for administrators of the installation. The span has at
    most 31 days; by default it ends now."""
    require_installation_administrator(request)
    wanted = _wanted(request, None)
    if wanted.until - wanted.since > MAX_DAYS * DAY:
        hint = "send one request for each part of the span"
        raise invalid("from", f"an instant at most {MAX_DAYS} days before to", query(request, "from"), hint)
    return _listed(request, wanted, ports().runs.audit_of_all)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Records from ``[since, until)`` that match every given filter. ``who`` is a part of the signer's ARN. ``name`` is
    a full name or the beginning of one, up to a point."""

    since: Instant
    until: Instant
    who: str | None = None
    name: str | None = None
    kind: str | None = None
    outcome: str | None = None

    def fits(self, row: AuditRow) -> bool:
        named = self.name is None or row.name == self.name or row.name.startswith(f"{self.name}.")
        by = self.who is None or self.who in row.arn
        return named and by and self.kind in (None, row.kind) and self.outcome in (None, row.outcome)


def _listed(request: Request, wanted: Wanted, read: Callable[..., Page[AuditRow]]) -> Json:
    found = only(partial(read, wanted.since, wanted.until), wanted.fits)
    return listing(request, found, audit_view, DEFAULT_LIMIT, MAX_LISTED)


def _wanted(request: Request, since: int | None) -> Wanted:
    """The filters of a request. ``since`` is the default of ``from``; None: as early as the span allows."""
    # Records of this very millisecond belong to the list.
    until = instant(request, "to", ports().clock.now() + 1)
    first = instant(request, "from", until - MAX_DAYS * DAY if since is None else since)
    if not first < until:
        raise invalid("from", "an instant before to", query(request, "from"), "leave out to for the present")
    outcome = query(request, "outcome")
    if outcome not in (None, *OUTCOMES):
        raise invalid("outcome", f"one of {', '.join(OUTCOMES)}", outcome, "leave it out for all records")
    return Wanted(first, until, query(request, "who"), query(request, "name"), query(request, "kind"), outcome)
