"""The row of an audit record: who made a change, or was refused one (O5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow

# A change that was made; one that was refused; one that passed because the installation only observes roles; or one
# whose transaction had no room for its record, which was therefore written before it.
AuditOutcome = Literal["changed", "refused", "observed", "begun"]


@dataclass(frozen=True, slots=True)
class AuditRow(StoredRow):
    """One audit record. It never changes. ``id`` is its instant and a random part, so records sort by time.

    ``operation`` is that of the API, such as ``put_schedule``. ``kind`` and ``name`` say what has changed.
    ``document`` has ``before`` and ``after``. The signer is ``arn``, with its ``account``, ``session``, ``unique_id``,
    ``source`` address and ``request_id``; ``arn`` is empty if nothing checks who signs. A refusal has a ``reason``, and
    stands for ``count`` equal ones. ``namespace`` is empty if the request named one that does not exist.
    """

    namespace: str
    id: str
    recorded_at: Instant
    operation: str
    outcome: AuditOutcome
    kind: str
    name: str
    arn: str = ""
    account: str = ""
    session: str = ""
    unique_id: str = ""
    source: str = ""
    request_id: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    count: int = 1
    expires_at: Instant | None = None
