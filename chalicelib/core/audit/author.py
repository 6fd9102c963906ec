"""The author of a request, and the audit records of what it does."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.core import masks
from chalicelib.core.access.principal import Principal
from chalicelib.core.audit.changes import Change
from chalicelib.core.instants import DAY, Instant, iso
from chalicelib.core.rows.audit import AuditOutcome, AuditRow

MAX_REASON = 500  # characters of the reason of a refusal


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a request, and its ``operation``, such as ``put_schedule``. ``principal`` is None if nothing checks who
    signs requests. ``target`` is the id of the job or run in the path of the request."""

    principal: Principal | None
    operation: str
    target: str = ""

    @property
    def arn(self) -> str:
        """The ARN of the signer; empty if nothing checks who signs."""
        return self.principal.arn if self.principal is not None else ""

    @property
    def member(self) -> str:
        """The ARN of the signer's user or role, without its session; empty if nothing checks who signs."""
        return self.principal.member if self.principal is not None else ""


def record(
    author: Author,
    change: Change,
    outcome: AuditOutcome,
    now: Instant,
    unique: str,
    days: int,
    reason: str = "",
    count: int = 1,
) -> AuditRow:
    """The audit record of a change, or of a refusal. ``unique`` is a random text; ``days`` is how long it is kept."""
    who = author.principal
    return AuditRow(
        namespace=change.namespace,
        id=f"{iso(now)}#{unique}",
        recorded_at=now,
        operation=author.operation,
        outcome=outcome,
        kind=change.kind,
        name=change.name,
        arn=author.arn,
        account=who.account if who is not None else "",
        session=who.session if who is not None else "",
        unique_id=who.unique_id if who is not None else "",
        source=who.source if who is not None else "",
        request_id=who.request_id if who is not None else "",
        document=change.document(),
        reason=masks.text(reason)[:MAX_REASON],
        count=count,
        expires_at=now + days * DAY,
    )
