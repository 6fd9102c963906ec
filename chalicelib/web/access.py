"""Whether the signer of a request may make it: the check that `routing.Served` makes before it calls a handler (O5).

The setting ``authorization`` decides what follows: ``enforce`` refuses what is not allowed, ``observe`` logs it and
lets it pass, ``off`` checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from chalice.app import Request

from chalicelib.core import errors
from chalicelib.core.access import roles
from chalicelib.core.access.principal import identified
from chalicelib.core.access.roles import ANY, Access, Resource, Right, is_administrator, refused_events
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.rows.access import AccessRow
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.workers import is_pulled, parse_lease_id, pool_of
from chalicelib.log import logger
from chalicelib.wiring import ports

if TYPE_CHECKING:
    from chalicelib.core.access.principal import Principal
    from chalicelib.ports import Ports

# A route that every signer may use; it answers only what that signer may see.
SIGNED: Final = "signed"
Needs = Right | Literal["signed"]

# Path parameters that begin with a namespace.
_PLACES = ("ns", "job_id", "run_id", "fire_id", "lease_id", "pool")
_PRINCIPAL = "sluice.principal"
_ACCESS = "sluice.access"
_LOGGED = "sluice.logged"
_REFUSED = "sluice.refused"


def check(request: Request, needs: Needs, segments: dict[str, str]) -> None:
    """Raise ``forbidden`` for a request whose signer lacks the right that its route needs. Raise ``not_found`` if the
    signer may not know that the namespace, job or run exists. The access document is read once for each request,
    strongly."""
    with _judged(request) as principal:
        if principal is not None and needs != SIGNED:
            _check(request, principal, needs, segments)


def require_events(request: Request, namespace: str, types: tuple[str, ...]) -> None:
    """Raise ``forbidden`` for event types that the signer may not post. The route has checked that it may post some."""
    with _judged(request) as principal:
        if principal is None:
            return
        wrong = [kind for kind in types if not _is_allowed(request, principal, namespace, "produce", Resource((kind,)))]
        if wrong:
            raise refused_events(principal, namespace, wrong)


def require_right(
    request: Request, names: Sequence[str], right: Right, refusal: Callable[[list[str]], SluiceError]
) -> None:
    """Raise the refusal for the full names, or ids, in whose namespaces the signer lacks a right."""
    with _judged(request) as principal:
        if principal is None:
            return
        spaces = {name.partition(".")[0] for name in names}
        allowed = {space for space in spaces if _is_allowed(request, principal, space, right, ANY)}
        wrong = [name for name in names if name.partition(".")[0] not in allowed]
        if wrong:
            raise refusal(wrong)


def require_administrator(request: Request, namespace: str, access: Access | None) -> None:
    """Raise ``forbidden`` if an access document, read again, does not let the signer change the members."""
    with _judged(request) as principal:
        if principal is not None and not _administers(principal, access):
            raise roles.refused(principal, namespace, "administer")


def require_installation_administrator(request: Request) -> None:
    """Raise ``forbidden`` unless the signer is an administrator of the installation."""
    with _judged(request) as principal:
        if principal is not None and not is_administrator(principal, ports().settings.administrators):
            raise roles.refused_installation(principal)


def require_still_administrator(request: Request, access: Access) -> None:
    """Raise ``invalid`` for an access document that takes the right to change it from the signer itself."""
    with _judged(request) as principal:
        if principal is not None and not _administers(principal, access):
            hint = "keep the role admin for yourself, and let another admin remove it"
            raise invalid("members", f"{principal.member} with the role admin", "a document without it", hint)


def _administers(principal: Principal, access: Access | None) -> bool:
    return roles.is_allowed(principal, ports().settings.administrators, access, "administer")


@contextmanager
def _judged(request: Request) -> Iterator[Principal | None]:
    """The signer whom the block has to check; None if the installation checks nobody. One that observes logs the first
    refusal of a request instead of raising it."""
    principal = None
    try:
        principal = signer(request) if ports().settings.authorization != "off" else None
    except SluiceError as refusal:
        _refuse(request, refusal)
    try:
        yield principal
    except SluiceError as refusal:
        _refuse(request, refusal)


def _refuse(request: Request, refusal: SluiceError) -> None:
    context = _context(request)
    context.setdefault(_REFUSED, refusal)
    if _enforces():
        raise refusal
    if not context.get(_LOGGED):
        context[_LOGGED] = True
        by = str((context.get("identity") or {}).get("userArn") or "unknown")
        logger.warning("request would be refused", extra={"by": by, "reason": refusal.message})


def _check(request: Request, principal: Principal, needs: Right, segments: dict[str, str]) -> None:
    pool = segments.get("pool") or _pool_of(segments.get("lease_id"))
    namespace = namespace_of(segments) if pool is None else pool.partition(".")[0]
    dataset = segments.get("name") if "/datasets/" in request.path else None
    resource = Resource(dataset=dataset, pool=None if pool is None else pool.partition(".")[2])
    if _is_allowed(request, principal, namespace, needs, resource):
        return
    if not _approves_workflow(request, principal, needs, segments):
        raise _refusal(request, principal, namespace, needs, segments)


def _approves_workflow(request: Request, principal: Principal, needs: Right, segments: Mapping[str, str]) -> bool:
    """Whether a request concerns a job that waits for the approval of its workflow. The signer must have the duty to
    approve in the namespace of that workflow (C16). Then it may read and decide this job, and nothing else there."""
    from chalicelib.flow.jobs.actions import workflow_to_approve

    if needs not in ("read", "approve") or "job_id" not in segments:
        return False
    workflow = workflow_to_approve(ports(), segments["job_id"])
    return workflow is not None and _is_allowed(request, principal, workflow.partition(".")[0], "approve", ANY)


def duty(request: Request) -> Callable[[str], bool]:
    """Whether the signer has the duty to approve in the namespace of a full name, or of an id."""
    return _may(request, "approve")


def sees(request: Request) -> Callable[[str], bool]:
    """Whether the signer may read the namespace of a full name, of an id, or of a namespace itself."""
    return _may(request, "read")


def _may(request: Request, right: Right) -> Callable[[str], bool]:
    """Whether the signer has a right in the namespace of a name. Each namespace's access document is read once for a
    request. All have it unless the installation enforces roles."""
    if not _enforces():
        return lambda name: True
    return lambda name: _is_allowed(request, signer(request), name.partition(".")[0], right, ANY)


def _enforces() -> bool:
    return ports().settings.authorization == "enforce"


def visibility(request: Request) -> Callable[[Access], bool] | None:
    """Whether the signer may know that the namespace with an access document exists. None: it may know all."""
    return (lambda access: bool(access.roles_of(signer(request)))) if may_hide(request) else None


def may_hide(request: Request) -> bool:
    """Whether there may be namespaces that the signer may not read."""
    return _enforces() and not is_administrator(signer(request), ports().settings.administrators)


def installed() -> Ports:
    """The ports with which the checks of a request read, so that tests replace them in one place."""
    return ports()


def refusal_of(request: Request) -> SluiceError | None:
    """The first refusal of a request for want of a right, also if the installation only observes roles."""
    found: SluiceError | None = _context(request).get(_REFUSED)
    return found


def is_known(request: Request, segments: Mapping[str, str]) -> bool:
    """Whether the namespace that the path of a request names has an access document. Names that a stranger has made up
    must not become keys of stored rows."""
    try:
        return any(segment in segments for segment in _PLACES) and _access(request, namespace_of(segments)) is not None
    except Exception:
        return False  # the tables do not answer


def signer(request: Request) -> Principal:
    """The signer of a request. Raises ``forbidden`` if IAM has identified none."""
    context = _context(request)
    if _PRINCIPAL not in context:
        context[_PRINCIPAL] = identified(context)
    found: Principal = context[_PRINCIPAL]
    return found


def _is_allowed(request: Request, principal: Principal, namespace: str, needs: Right, resource: Resource) -> bool:
    administrators = ports().settings.administrators
    if roles.is_allowed(principal, administrators, None, needs, resource):
        return True
    return roles.is_allowed(principal, administrators, _access(request, namespace), needs, resource)


def _access(request: Request, namespace: str) -> Access | None:
    known = _context(request).setdefault(_ACCESS, {})
    if namespace not in known:
        row = ports().rows.get(AccessRow, namespace)
        known[namespace] = None if row is None else Access.model_validate(row.document)
    found: Access | None = known[namespace]
    return found


def _refusal(
    request: Request, principal: Principal, namespace: str, needs: Right, segments: dict[str, str]
) -> SluiceError:
    """The error of a request that is not allowed. A signer without any role in the namespace gets the error of a name
    or id that does not exist. So signers cannot find names by trying them."""
    if roles.can_see(principal, ports().settings.administrators, _access(request, namespace)):
        return roles.refused(principal, namespace, needs)
    for segment, kind in (("job_id", "job"), ("run_id", "run"), ("fire_id", "fire"), ("lease_id", "lease")):
        if segment in segments:
            return errors.not_found(kind, segments[segment], roles.UNSEEN_HINT)
    return errors.not_found("namespace", namespace, roles.UNSEEN_HINT)


def _pool_of(lease_id: str | None) -> str | None:
    """The full name of the pool of a lease, which is in the namespace of the run's workflow; None without such a
    run."""
    lease = parse_lease_id(lease_id) if lease_id is not None else None
    run = ports().rows.get(Run, lease.run_id, lease.attempt) if lease is not None else None
    return pool_of(run) if run is not None and is_pulled(run) else None


def namespace_of(segments: Mapping[str, str]) -> str:
    """The namespace of a request: that of its path, or of the id or pool in it."""
    for segment in _PLACES:
        if segment in segments:
            return segments[segment].partition(".")[0]
    raise RuntimeError("expected a namespace, an id or a pool in the path of a route that needs a right")


def full_name(segments: Mapping[str, str]) -> str:
    """The full name of what the path of a request names, such as ``demo.flights.clean``; empty if it has an id only."""
    return ".".join(segments[part] for part in ("ns", "app", "name") if part in segments)


def _context(request: Request) -> dict[str, Any]:
    """The request context of API Gateway, which also keeps what one request has read."""
    context: dict[str, Any] = request.context
    return context
