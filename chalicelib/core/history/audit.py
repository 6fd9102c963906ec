"""The JSON rows of exported audit records, and the objects that hold them (O5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chalicelib.core.history.lines import Line, Part, by_hour
from chalicelib.core.instants import iso
from chalicelib.core.rows.audit import AuditRow

# The version of the fields. Later versions add fields and change no meaning.
SCHEMA = 1
ROOT = "audit/"


@dataclass(frozen=True, slots=True)
class NewRecord:
    """An audit record as the stream of the runs table delivers it, with the sequence number of the change."""

    sequence: str
    row: AuditRow


def parts(records: Iterable[NewRecord]) -> list[Part]:
    """The records as one object for each hour. The name of an object follows from its records, so a repeated export
    writes the same object."""
    return by_hour(ROOT, ((each.row.recorded_at, each.sequence, line_of(each.row)) for each in records))


def line_of(row: AuditRow) -> Line:
    """The fields of a record in the export, without those that are empty."""
    fields = {
        "schema": SCHEMA,
        "at": iso(row.recorded_at),
        "id": row.id,
        "namespace": row.namespace,
        "operation": row.operation,
        "outcome": row.outcome,
        "kind": row.kind,
        "name": row.name,
        "by": row.arn,
        "account": row.account,
        "session": row.session,
        "unique_id": row.unique_id,
        "source": row.source,
        "request_id": row.request_id,
        "before": row.document.get("before"),
        "after": row.document.get("after"),
        "reason": row.reason,
        "count": row.count,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}
