"""Deploy a document that was uploaded to S3: check it, answer, and work it off in slices (L8).

The request checks the whole document and stores all its parts but schedules and DAGs. These are put by `check`, hint by
hint, in the order of an ordinary deployment. Each slice plans anew, so it goes on where the one before has ended or
died. A repeated hint changes nothing: one invocation at a time holds the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from chalicelib.core import errors, ids
from chalicelib.core.access.principal import Principal
from chalicelib.core.audit.author import Author
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, MINUTE, SECOND, Instant, Millis, iso, iso_or_none
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.ref import deployment_ref
from chalicelib.core.writes import Create, Replace
from chalicelib.flow.deploy import deploy
from chalicelib.flow.deploy.plan import Plan
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports

MAX_UPLOAD = 20_000_000  # bytes
OPERATION = "deploy_app"  # in the audit records, as for a document in the body
LEASE: Millis = 3 * MINUTE  # longer than an invocation of `check`: a row whose lease has ended has no worker
NEEDED: Millis = 25 * SECOND  # what is left of an invocation when its slice ends
KEPT: Millis = 30 * DAY
MAX_SLICES = 200  # a deployment that needs more makes no progress
LATER = ("unavailable", "throttled", "changed_meanwhile", "internal")  # errors that a later slice may not have


def content(ports: Ports, app: str, upload: str) -> bytes:
    """The bytes of an uploaded document. Raises ``not_found`` (404) if there is none, and ``too_large``."""
    found = ports.payloads.upload(app, upload, MAX_UPLOAD)
    if found is None:
        raise errors.not_found("upload", upload, f"begin one: POST /v1/namespaces/NS/apps/APP/uploads for {app}")
    if len(found) > MAX_UPLOAD:
        hint = "divide it into several apps"
        message = f"expected a document of at most {MAX_UPLOAD} bytes, got more"
        raise SluiceError("too_large", message, "upload", hint)
    return found


def begin(ports: Ports, plan: Plan, upload: str, sent: bytes, by: str) -> Deployment:
    """Begin the deployment of a checked plan, from the bytes that were uploaded, and return its row. A repeat returns
    the same one. Raises ``conflict`` if the upload was replaced since."""
    now, digest = ports.clock.now(), digest_of(sent)
    known = ports.jobs.deployment(plan.app, upload)
    if known is None:
        deploy.carry_out_definitions(ports, plan, by)
        counts = {action: len(names) for action, names in plan.report().items()}
        author = ports.author()
        signer = asdict(author.principal) if author is not None and author.principal is not None else {}
        row = Deployment(
            plan.app, upload, "RUNNING", digest, now, by, plan.update_schedules, counts, signer, wake_at=now
        )
        # A conflict means that another request has begun the same one.
        known = row if ports.ledger.commit([Create(row)]) is None else existing(ports, plan.app, upload)
    if known.digest != digest:
        hint = "upload it under another id"
        raise SluiceError("conflict", f"expected the document that upload {upload} had, got another", "upload", hint)
    if known.state == "RUNNING":
        ports.hints.send([deployment_ref(plan.app, upload)], now, now)
    return known


def existing(ports: Ports, app: str, upload: str) -> Deployment:
    """A stored deployment. Raises ``not_found`` (404) if there is none."""
    row = ports.jobs.deployment(app, upload)
    if row is None:
        raise errors.not_found("deployment", upload, "a deployment is known for 30 days by the id of its upload")
    return row


def advance(ports: Ports, app: str, upload: str) -> None:
    """Work off one slice of a deployment, unless it has ended or another invocation works on it."""
    row, now = ports.jobs.deployment(app, upload), ports.clock.now()
    if row is None or row.wake_at is None or row.busy_until > now:
        return
    held = _next(row, busy_until=now + LEASE, wake_at=now + LEASE, slices=row.slices + 1, leases=0)
    if ports.ledger.commit([Replace(held)]) is not None:
        return  # another invocation has taken it
    try:
        with ports.acting(_author(held)):
            whole = _slice(ports, held)
    except SluiceError as error:
        if error.code in LATER and held.slices < MAX_SLICES:
            _release(ports, held, ports.clock.now() + MINUTE)
            raise
        # Who reads the answer is not known here, so it names nothing of other namespaces.
        own = held.app.partition(".")[0]
        shown = error.concealing(lambda name: name.partition(".")[0] == own)
        _end(ports, held, "FAILED", shown.to_dict()["error"])
        return
    if whole:
        _end(ports, held, "DONE")
        return
    _release(ports, held, ports.clock.now())
    ports.hints.send([deployment_ref(app, upload)], ports.clock.now(), ports.clock.now())


def view(row: Deployment) -> dict[str, Any]:
    """A deployment as the API returns it."""
    return {
        "name": row.app,
        "deployment": row.id,
        "state": row.state,
        "counts": dict(row.counts),
        "error": dict(row.error) or None,
        "created_at": iso(row.created_at),
        "created_by": row.by,
        "ended_at": iso_or_none(row.ended_at),
    }


def digest_of(sent: bytes) -> str:
    return ids.digest(sent.hex(), length=40)


def parsed(sent: bytes, read: Callable[[bytes], Mapping[str, Any]]) -> App:
    """The document of an upload. ``read`` checks the bytes as those of a request."""
    return App.model_validate(read(sent))


def _slice(ports: Ports, row: Deployment) -> bool:
    """Carry out as much of the plan as there is time for. Returns whether all is done."""
    sent = content(ports, row.app, row.id)
    if digest_of(sent) != row.digest:
        raise SluiceError("conflict", "expected the document that was checked, got another", "upload", "deploy again")
    namespace, _, app = row.app.partition(".")
    plan = deploy.checked(ports, namespace, app, App.model_validate_json(sent), row.update_schedules)
    return deploy.carry_out(ports, plan, row.by, lambda: ports.has_time(NEEDED))


def _author(row: Deployment) -> Author:
    return Author(Principal(**row.author) if row.author else None, OPERATION)


def _next(row: Deployment, **changes: Any) -> Deployment:
    return replace(row, rev=row.rev + 1, **changes)


def _release(ports: Ports, held: Deployment, at: Instant) -> None:
    """Let another invocation go on at an instant."""
    ports.ledger.commit([Replace(_next(held, busy_until=0, wake_at=at))])


def _end(ports: Ports, held: Deployment, state: Any, error: Mapping[str, Any] | None = None) -> None:
    now = ports.clock.now()
    after = _next(held, state=state, error=error or {}, busy_until=0, wake_at=None, ended_at=now, expires_at=now + KEPT)
    for _ in range(MAX_CONFLICTS):
        if ports.ledger.commit([Replace(after)]) is None:
            break
        # The sweep has leased the row, because this invocation was slow. A worker after it finds nothing to do.
        current = ports.jobs.deployment(held.app, held.id)
        if current is None or current.slices != held.slices:
            return
        after = replace(after, rev=current.rev + 1)
    logger.info("deployment ended", extra={"app": held.app, "deployment": held.id, "state": state, "error": error})
