"""Routes of the members of a namespace and their roles (O5), and of its allow-list (O10)."""

from __future__ import annotations

from functools import partial

from chalice.app import Request, Response

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.document import Access
from chalicelib.flow.definitions import access, allow_list
from chalicelib.flow.definitions.uses import of_namespace
from chalicelib.flow.views.views import access_view, allowed_view, proposal_view
from chalicelib.web.access import require_administrator, require_still_administrator
from chalicelib.web.http import caller, changed, document, if_match, parse
from chalicelib.wiring import ports


def get_access(request: Request, ns: str) -> Response:
    """Read the members of a namespace and their roles."""
    return document(access_view(access.get(ports(), ns)))


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
    return document(allowed_view(allow_list.get(ports(), ns)))


def propose_allowed(request: Request, ns: str) -> Response:
    """Propose an allow-list that covers what a namespace uses. The answer also says what the namespace may not use any
    more, without a list, once the installation has several namespaces."""
    return document(proposal_view(of_namespace(ports(), ns)))


def put_allowed(request: Request, ns: str) -> Response:
    """Replace the allow-list of a namespace. Definitions that are put from now on obey it, and so does each call of a
    target that begins more than five seconds later."""
    change = allow_list.put(ports(), ns, parse(Allowed, request), caller(request), if_match(request))
    return changed("allowed", ns, change)
