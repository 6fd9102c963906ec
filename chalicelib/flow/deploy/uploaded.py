"""Deploy a document that was uploaded to S3: check it, answer, and work it off in slices (L8).

The request checks the whole document and stores all its parts but schedules and DAGs. These are put by `check`, hint by
hint, in the order of an ordinary deployment. Each slice plans anew, so it goes on where the one before has ended or
died. A repeated hint changes nothing: one invocation at a time holds the row. What users change after the answer stays,
and a later deployment of the app ends this one.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Literal

from chalicelib.core import errors, ids
from chalicelib.core.access.principal import Principal
from chalicelib.core.audit.author import Author
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Millis, iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.deployment import Deployment, DeploymentState
from chalicelib.core.runs import metrics
from chalicelib.core.targets import retries
from chalicelib.core.views import At, View, shown
from chalicelib.core.why import readers_of
from chalicelib.core.writes import Create, ExpectDefinition, Replace
from chalicelib.flow.deploy import deploy, seen, turns
from chalicelib.flow.deploy.plan import Plan, shell_of
from chalicelib.flow.deploy.seen import Seen
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports

MAX_UPLOAD = 20_000_000  # bytes
OPERATION = "deploy_app"  # in the audit records, as for a document in the body
LEASE: Millis = 3 * MINUTE  # longer than an invocation of `check`: a row whose lease has ended has no worker
NEEDED: Millis = 25 * SECOND  # what is left of an invocation when its slice ends
KEPT: Millis = 30 * DAY
MAX_TRIES = 12  # slices in a row that fail or die: as many as hints of a row before it is parked
MAX_LEFT = 100  # parts that the row names which were left alone
MAX_REASON = 300  # characters of an error that is no answer of Sluice
LATER = ("unavailable", "throttled", "changed_meanwhile", "internal")  # errors that a later slice may not have


class ErrorOfDeploymentView(View):
    """The error for which a deployment has failed, as a request would get it."""

    code: str
    message: str
    field: str | None
    hint: str | None


class LaterDeploymentView(View):
    """A deployment of an uploaded document. ``counts`` are the numbers of parts by what it does to them.
    ``superseded_by`` says who has taken over, ``left_alone`` names the first parts that were changed meanwhile."""

    name: str
    deployment: str
    state: Literal["RUNNING", "DONE", "FAILED", "SUPERSEDED"]
    counts: dict[str, int]
    error: ErrorOfDeploymentView | None
    superseded_by: str | None
    left_alone: list[str]
    created_at: At
    created_by: str
    ended_at: At | None


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
    the same one. Raises ``conflict`` if the upload was replaced since, and ``changed_meanwhile`` if another deployment
    of the app was accepted meanwhile."""
    now, digest = ports.clock.now(), digest_of(sent)
    known = ports.rows.get(Deployment, plan.app, upload) or _accepted(ports, plan, upload, digest, by)
    if known.digest != digest:
        hint = "upload it under another id"
        raise SluiceError("conflict", f"expected the document that upload {upload} had, got another", "upload", hint)
    if known.state == "RUNNING":
        ports.hints.send([kinds.ref(Deployment, plan.app, upload)], now, now)
    return known


def _accepted(ports: Ports, plan: Plan, upload: str, digest: str, by: str) -> Deployment:
    """Take the turn of the app, store the definitions, and create the row of a deployment."""
    turn = turns.take(ports, plan, by, turns.mark_of(plan.app, upload), shell_of(plan.document))
    if turn is None:
        raise turns.overtaken(plan.app)
    deploy.carry_out_definitions(ports, plan, by, turn)
    counts = {action: len(names) for action, names in plan.report().items()}
    author, now = ports.author(), ports.clock.now()
    signer = asdict(author.principal) if author is not None and author.principal is not None else {}
    row = Deployment(
        plan.app, upload, "RUNNING", digest, now, by, plan.update_schedules, plan.restart, counts, signer, wake_at=now,
        edition=turn.edition, seen=ports.payloads.put_seen(plan.app, upload, seen.stamps_of(ports, plan)),
    )  # fmt: skip
    if ports.ledger.commit([Create(row), ExpectDefinition(turn)]) is None:
        return row
    # Another request has begun the same one, or another deployment has the turn.
    known = ports.rows.get(Deployment, plan.app, upload)
    if known is None:
        raise turns.overtaken(plan.app)
    return known


def existing(ports: Ports, app: str, upload: str) -> Deployment:
    """A stored deployment. Raises ``not_found`` (404) if there is none."""
    row = ports.rows.get(Deployment, app, upload)
    if row is None:
        raise errors.not_found("deployment", upload, "a deployment is known for 30 days by the id of its upload")
    return row


def advance(ports: Ports, app: str, upload: str) -> None:
    """Work off one slice of a deployment, unless it has ended or another invocation works on it."""
    row, now = ports.rows.get(Deployment, app, upload), ports.clock.now()
    if row is None or row.wake_at is None or row.busy_until > now:
        return
    # A slice that dies leaves its number, so that the deployment fails if all of them die.
    held = _next(row, busy_until=now + LEASE, wake_at=now + LEASE, slices=row.slices + 1, tries=row.tries + 1, leases=0)
    if ports.ledger.commit([Replace(held)]) is not None:
        return  # another invocation has taken it
    if row.tries >= MAX_TRIES:
        _give_up(ports, held, "each slice ended before it was done, for want of time or memory")
        return
    accepted = Seen(ports.payloads.seen(held.app, held.id, held.seen) or {})
    try:
        principal = Principal(**held.author) if held.author else None
        with ports.acting(Author(principal, OPERATION)):
            whole = _slice(ports, held, accepted)
    except Exception as error:
        _failed(ports, held, error)
        return
    left = tuple(accepted.left[:MAX_LEFT])
    if whole:
        _store(ports, held, **_ended(ports, "DONE"), left=left)
        return
    now = ports.clock.now()
    _store(ports, held, busy_until=0, wake_at=now, tries=0, left=left)
    ports.hints.send([kinds.ref(Deployment, app, upload)], now, now)


def _failed(ports: Ports, held: Deployment, error: Exception) -> None:
    """End a deployment that has lost the turn, or whose document is wrong by now. After another error, which a later
    slice may not have, it rests for a while; after too many it has failed."""
    if (by := _taken_over(ports, held)) is not None:
        _store(ports, held, **_ended(ports, "FAILED"), superseded_by=by)
    elif isinstance(error, SluiceError) and error.code not in LATER:
        # Who reads the answer is not known here, so it names nothing of other namespaces.
        shown = error.concealing(readers_of(held.app))
        _store(ports, held, **_ended(ports, "FAILED"), error=shown.to_dict()["error"])
    elif held.tries >= MAX_TRIES:
        _give_up(ports, held, f"{type(error).__name__}: {error}"[:MAX_REASON])
    else:
        until = ports.clock.now() + min(retries.doubled(MINUTE, held.tries), HOUR)
        _store(ports, held, busy_until=until, wake_at=until)
        raise error


def _give_up(ports: Ports, held: Deployment, why: str) -> None:
    hint = "mend the cause, then deploy the document again"
    message = f"expected to put the rest of the deployment, got {MAX_TRIES} slices that failed; the last one: {why}"
    error = SluiceError("internal", message, None, hint).to_dict()["error"]
    logger.error("parked", extra={"ref": kinds.ref(Deployment, held.app, held.id), "why": why, "hint": hint})
    ports.metrics.add(metrics.ROWS_PARKED, 1)
    _store(ports, held, **_ended(ports, "FAILED"), error=error)


def _taken_over(ports: Ports, row: Deployment) -> str | None:
    """Who has the turn in place of a deployment; None if it still has it."""
    app = ports.rows.get(Definition, "app", row.app)
    if app is None:
        return "the deletion of the app"
    if app.edition == row.edition:
        return None
    return f"a request of {app.by or 'an unknown user'} at {iso(app.updated_at)}"


def state_of(row: Deployment) -> str:
    """The state of a deployment as users see it. The row of a superseded one is that of a failed one."""
    return "SUPERSEDED" if row.superseded_by else row.state


def view(row: Deployment) -> LaterDeploymentView:
    """A deployment as the API returns it."""
    return shown(
        LaterDeploymentView,
        row,
        name=row.app,
        deployment=row.id,
        state=state_of(row),
        error=dict(row.error) or None,
        left_alone=list(row.left),
        created_by=row.by,
    )


def digest_of(sent: bytes) -> str:
    return ids.digest(sent.hex(), length=40)


def _slice(ports: Ports, row: Deployment, accepted: Seen) -> bool:
    """Carry out as much of the plan as there is time for. Returns whether all is done."""
    turn = ports.rows.get(Definition, "app", row.app)
    if turn is None or turn.edition != row.edition:
        raise turns.overtaken(row.app)
    sent = content(ports, row.app, row.id)
    if digest_of(sent) != row.digest:
        raise SluiceError("conflict", "expected the document that was checked, got another", "upload", "deploy again")
    namespace, _, app = row.app.partition(".")
    document = App.model_validate_json(sent)
    plan = deploy.checked(ports, namespace, app, document, row.update_schedules, accepted=accepted, restart=row.restart)
    return deploy.carry_out(ports, plan, row.by, turn, lambda: ports.has_time(NEEDED), accepted, keeps_turn=True)


def _next(row: Deployment, **changes: Any) -> Deployment:
    return replace(row, rev=row.rev + 1, **changes)


def _ended(ports: Ports, state: DeploymentState) -> dict[str, Any]:
    now = ports.clock.now()
    return {"state": state, "busy_until": 0, "wake_at": None, "ended_at": now, "expires_at": now + KEPT}


def _store(ports: Ports, held: Deployment, **changes: Any) -> None:
    """Store what has become of a deployment, unless another invocation has taken it since."""
    after = _next(held, **changes)
    for _ in range(MAX_CONFLICTS):
        if ports.ledger.commit([Replace(after)]) is None:
            break
        # The sweep has leased the row, because this invocation was slow.
        current = ports.rows.get(Deployment, held.app, held.id)
        if current is None or current.slices != held.slices:
            return
        after = replace(after, rev=current.rev + 1)
    if after.ended_at is not None:
        turns.end(ports, held.app, held.edition)
        logger.info("deployment ended", extra={"app": held.app, "deployment": held.id, "state": after.state,
                                               "error": after.error, "left": after.left})  # fmt: skip
