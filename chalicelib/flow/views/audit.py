"""What a list of audit records shows, and which it has (O5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant, iso
from chalicelib.core.rows.audit import AuditOutcome, AuditRow
from chalicelib.core.views import At, View, shown


class AuditRecordView(View):
    """A change, or a refusal. ``by`` is the ARN of the signer. A document above 4,000 bytes is given by its digest."""

    at: At
    namespace: str
    operation: str
    outcome: AuditOutcome
    kind: str
    name: str
    by: str | None
    account: str | None
    session: str | None
    unique_id: str | None
    source: str | None
    request_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    reason: str | None
    count: int


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


def audit_view(row: AuditRow) -> AuditRecordView:
    document = row.document
    at, by = iso(row.recorded_at), row.arn or None
    return shown(AuditRecordView, row, at=at, by=by, before=document.get("before"), after=document.get("after"))
