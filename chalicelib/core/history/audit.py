"""The JSON rows of exported audit records, and the objects that hold them (O5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chalicelib.core.history.lines import folder_of, object_name
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


@dataclass(frozen=True, slots=True)
class AuditPart:
    """Records of one hour, as one object: its key, its JSON Lines, and the sequence numbers of its records."""

    key: str
    text: str
    sequences: tuple[str, ...]


def parts(records: Iterable[NewRecord]) -> list[AuditPart]:
    """The records as one object for each hour. The name of an object follows from its records, so a repeated export
    writes the same object."""
    hours: dict[str, list[NewRecord]] = {}
    for record in records:
        hours.setdefault(folder_of(ROOT, record.row.recorded_at), []).append(record)
    return [_part(hour, found) for hour, found in sorted(hours.items())]


def line_of(row: AuditRow) -> dict[str, Any]:
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


def _part(hour: str, records: list[NewRecord]) -> AuditPart:
    sequences = tuple(record.sequence for record in records)
    text = "".join(f"{json.dumps(line_of(record.row), separators=(',', ':'))}\n" for record in records)
    return AuditPart(hour + object_name(sequences), text, sequences)
