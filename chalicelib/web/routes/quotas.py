"""Routes of the quotas of a namespace (O9)."""

from __future__ import annotations

from chalice.app import Request, Response

from chalicelib.core.quotas.document import MAX_WAITING, Quotas
from chalicelib.flow.definitions.quotas import put, view
from chalicelib.flow.views.lists import count
from chalicelib.web import quotas
from chalicelib.web.access import require_installation_administrator
from chalicelib.web.http import caller, changed, document, if_match, parse
from chalicelib.wiring import ports


def get_quotas(request: Request, ns: str) -> Response:
    """Read the quotas of a namespace: its own, those that hold, and what is used."""
    found = view(ports(), ns)
    found["used"]["waiting_jobs"] = count(ports(), ns, MAX_WAITING + 1)
    return document(found)


def put_quotas(request: Request, ns: str) -> Response:
    """Replace the quotas of a namespace, as an administrator of the installation. A quota that is left out is that of
    the installation. Each process of the API uses the new ones within 30 seconds."""
    require_installation_administrator(request)
    change = put(ports(), ns, parse(Quotas, request), caller(request), if_match(request))
    quotas.memory().quotas.pop(ns, None)
    return changed("quotas", ns, change)
