"""Audit records of requests: the author that each transaction of a change names, and the records of refusals (O5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from chalice.app import Request

from chalicelib.core.audit.author import Author, record
from chalicelib.core.audit.changes import Change
from chalicelib.core.audit.refusals import Refusals
from chalicelib.core.errors import SluiceError
from chalicelib.core.runs.workers import parse_lease_id
from chalicelib.core.writes import Put
from chalicelib.log import logger
from chalicelib.web import access
from chalicelib.wiring import acting

if TYPE_CHECKING:
    from chalicelib.core.rows.audit import AuditOutcome

# The last of these words in the path of a route names the kind of what the request is about.
_KINDS = {
    **{f"{kind}s": kind for kind in ("app", "backfill", "calendar", "dag", "dataset", "deployment", "event", "job")},
    **{f"{kind}s": kind for kind in ("lease", "message", "namespace", "partition", "pool", "run", "schedule")},
    **{kind: kind for kind in ("access", "allowed", "grants", "quotas", "reprocess")},
    "dead-letters": "dead_letter",
    "policies": "policy",
    "prefixes": "prefix",
    "uploads": "app",
    "workers": "pool",
    "workflows": "workflow",
}


@contextmanager
def authored(request: Request, operation: str, segments: Mapping[str, str]) -> Iterator[None]:
    """Every transaction in the block that changes something gets an audit record in the name of the signer."""
    if request.method == "GET":
        yield  # a read changes nothing
        return
    with acting(_author(request, operation, segments)):
        yield


@contextmanager
def refusals_recorded(request: Request, operation: str, segments: Mapping[str, str]) -> Iterator[None]:
    """Record if the block refuses the request for want of a right, or because of a quota, or would refuse it if roles
    were enforced."""
    try:
        yield
    except SluiceError as error:
        if error.code in ("forbidden", "over_quota") or access.refusal_of(request) is not None:
            _record(request, operation, segments, error, "refused")
        raise
    found = access.refusal_of(request)
    if found is not None:
        _record(request, operation, segments, found, "observed")


@cache
def refusals() -> Refusals:
    """The refusals that this process has seen lately."""
    return Refusals()


def _author(request: Request, operation: str, segments: Mapping[str, str]) -> Author:
    try:
        principal = access.signer(request)
    except SluiceError:
        principal = None  # the installation does not enforce roles; otherwise the request was refused
    return Author(principal, operation, segments.get("job_id") or segments.get("run_id") or "")


def _record(
    request: Request, operation: str, segments: Mapping[str, str], error: SluiceError, outcome: AuditOutcome
) -> None:
    """Write the record of a refusal, unless enough of the kind were recorded lately. A failure is only logged: the
    refusal itself must be answered."""
    author, now = _author(request, operation, segments), access.installed().clock.now()
    name = _name(segments) if access.is_known(request, segments) else ""
    count = refusals().count((author.member, operation, name.partition(".")[0], outcome), now)
    if count == 0:
        return
    change = Change(next((_KINDS[word] for word in reversed(request.path.split("/")) if word in _KINDS), ""), name)
    days = access.installed().settings.audit_days
    row = record(author, change, outcome, now, uuid4().hex[:12], days, error.message, count)
    try:
        access.installed().ledger.commit([Put(row)])
    except Exception:
        logger.exception("refusal not recorded", extra={"by": author.arn, "operation": operation})


def _name(segments: Mapping[str, str]) -> str:
    """The full name, or the id, of what the path of a request names."""
    if "lease_id" in segments:
        return str(parse_lease_id(segments["lease_id"]))  # without its token, which is a secret
    for segment in ("job_id", "run_id", "pool"):
        if segment in segments:
            return segments[segment]
    return access.full_name(segments)
