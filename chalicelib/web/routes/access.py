"""Routes of who may do what: members and roles (O5), allow-lists (O10), grants and quotas (O9), owners of prefixes
(O14), and audit records of who has changed what, and who was refused (O5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NotRequired

from chalice.app import Request, Response

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.grants import Grants
from chalicelib.core.access.roles import Access
from chalicelib.core.definitions.dataset import BUCKET
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY
from chalicelib.core.quotas.document import MAX_WAITING, Quotas
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.views import stored
from chalicelib.flow.definitions import access, allow_list, grants, quotas
from chalicelib.flow.definitions.buckets import real_name
from chalicelib.flow.definitions.prefixes import Place, give, take
from chalicelib.flow.definitions.uses import of_namespace
from chalicelib.flow.views.lists import count
from chalicelib.flow.views.views import audit_view, prefix_view, proposal_view
from chalicelib.ports import Page
from chalicelib.web.access import require_administrator, require_installation_administrator, require_still_administrator
from chalicelib.web.bodies import GivenPrefix
from chalicelib.web.http import (
    ChangeView,
    Json,
    caller,
    changed,
    choice,
    document,
    gone,
    if_match,
    instant,
    parse,
    query,
    validated,
)
from chalicelib.web.paging import DEFAULT_LIMIT, listing, only
from chalicelib.web.quotas import memory
from chalicelib.wiring import ports

OUTCOMES = ("changed", "refused", "observed", "begun")
MAX_LISTED = 200  # a record has up to 9 KB, and an answer at most 6 MB
MAX_DAYS = 31  # of a list over all namespaces, which reads one part of an index for each day


class ChangeOfAccessView(ChangeView):
    """The same for an access document. ``warning``: API Gateway refuses the requests of some members."""

    warning: NotRequired[str | None]


def get_access(request: Request, ns: str) -> Response:
    """Read the members of a namespace and their roles."""
    row = access.get(ports(), ns)
    return document(stored(ns, "access", row.document, row.rev, row))


def put_access(request: Request, ns: str) -> Response:
    """Replace the members of a namespace and their roles. The next request of each signer is checked by them."""
    sent = parse(Access, request)
    require_still_administrator(request, sent)
    allowed = partial(require_administrator, request, ns)
    change = access.put(ports(), ns, sent, caller(request), if_match(request), allowed)
    settings, warned = ports().settings, {}
    if settings.account and (refused := sent.unreachable(settings.account, settings.caller_accounts)):
        warned["warning"] = (
            "API Gateway refuses members of other accounts until an administrator of the installation adds them to "
            f"CallerAccounts of the stack: {', '.join(refused)}"
        )
    return changed("access", ns, change, **warned)


def get_allowed(request: Request, ns: str) -> Response:
    """Read the allow-list of a namespace: what its definitions may name."""
    row = allow_list.get(ports(), ns)
    return document(stored(ns, "allowed", row.document, row.rev, row))


def propose_allowed(request: Request, ns: str) -> Response:
    """Propose an allow-list that covers what a namespace uses. The answer also says what the namespace may not use any
    more, without a list, once the installation has several namespaces."""
    return document(proposal_view(of_namespace(ports(), ns)))


def put_allowed(request: Request, ns: str) -> Response:
    """Replace the allow-list of a namespace. Definitions that are put from now on obey it, and so does each call of a
    target that begins more than five seconds later."""
    change = allow_list.put(ports(), ns, parse(Allowed, request), caller(request), if_match(request))
    return changed("allowed", ns, change)


def get_grants(request: Request, ns: str) -> Response:
    """Read what a namespace grants to others."""
    row = grants.get(ports(), ns)
    return document(stored(ns, "grants", row.document, row.version, row))


def put_grants(request: Request, ns: str) -> Response:
    """Replace what a namespace grants to others. What loses its grant is held; what waits for a new one goes on."""
    change = grants.put(ports(), ns, parse(Grants, request), caller(request), if_match(request))
    return changed("grants", ns, change)


def get_quotas(request: Request, ns: str) -> Response:
    """Read the quotas of a namespace: its own, those that hold, and what is used."""
    found = quotas.view(ports(), ns)
    found["used"]["waiting_jobs"] = count(ports(), ns, MAX_WAITING + 1)
    return document(found)


def put_quotas(request: Request, ns: str) -> Response:
    """Replace the quotas of a namespace, as an administrator of the installation. A quota that is left out is that of
    the installation. Each process of the API uses the new ones within 30 seconds."""
    require_installation_administrator(request)
    change = quotas.put(ports(), ns, parse(Quotas, request), caller(request), if_match(request))
    memory().quotas.pop(ns, None)
    return changed("quotas", ns, change)


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


def list_audit(request: Request, ns: str) -> Json:
    """List the audit records of a namespace, newest first. There is one for each change, and one for each refusal.
    ``who`` is a part of the signer's ARN; ``name`` a full name or the beginning of one. A page may be short although
    more follow."""
    return _listed(request, partial(ports().runs.audit, ns), None)


def list_audit_of_all(request: Request) -> Json:
    """List the audit records of all namespaces, newest first, for administrators of the installation. The span has at
    most 31 days; by default it ends now."""
    require_installation_administrator(request)
    return _listed(request, ports().runs.audit_of_all, MAX_DAYS)


def _listed(request: Request, read: Callable[..., Page[AuditRow]], most_days: int | None) -> Json:
    """The records that match every filter of a request. By default ``from`` is as early as the span allows."""
    # Records of this very millisecond belong to the list.
    until = instant(request, "to", ports().clock.now() + 1)
    since = instant(request, "from", until - most_days * DAY if most_days is not None else 0)
    if not since < until:
        raise invalid("from", "an instant before to", query(request, "from"), "leave out to for the present")
    if most_days is not None and until - since > most_days * DAY:
        hint = "send one request for each part of the span"
        raise invalid("from", f"an instant at most {most_days} days before to", query(request, "from"), hint)
    who, name, kind = (query(request, parameter) for parameter in ("who", "name", "kind"))
    outcome = choice(request, "outcome", OUTCOMES)

    def fits(row: AuditRow) -> bool:
        named = name is None or row.name == name or row.name.startswith(f"{name}.")
        by = who is None or who in row.arn
        return named and by and kind in (None, row.kind) and outcome in (None, row.outcome)

    return listing(request, only(partial(read, since, until), fits), audit_view, DEFAULT_LIMIT, MAX_LISTED)
