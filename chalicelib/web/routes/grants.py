"""Routes of the grants document of a namespace: what the documents of other namespaces may use of it (O9)."""

from __future__ import annotations

from chalice.app import Request, Response

from chalicelib.core.access.grants import Grants
from chalicelib.flow.definitions.grants import get, put
from chalicelib.flow.views.views import grants_view
from chalicelib.web.http import caller, changed, document, if_match, parse
from chalicelib.wiring import ports


def get_grants(request: Request, ns: str) -> Response:
    """Read what a namespace grants to others."""
    return document(grants_view(get(ports(), ns)))


def put_grants(request: Request, ns: str) -> Response:
    """Replace what a namespace grants to others. What loses its grant is held; what waits for a new one goes on."""
    change = put(ports(), ns, parse(Grants, request), caller(request), if_match(request))
    return changed("grants", ns, change)
