"""A ledger that writes audit records into each transaction with which a request changes something (O5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

from chalicelib.core.audit import author as authors
from chalicelib.core.audit.author import Author
from chalicelib.core.audit.changes import Change, changes_of
from chalicelib.core.rows.audit import AuditOutcome
from chalicelib.core.writes import MAX_WRITES, Conflict, Put, Write
from chalicelib.ports import Clock, Ledger, Over


class AuditedLedger(Over):
    """Implements `ports.Ledger` on another ledger. ``author`` returns that of the request in progress; without one, as
    in all Lambdas but `api`, every plan is committed as it is."""

    def __init__(self, ledger: Ledger, author: Callable[[], Author | None], clock: Clock, days: int) -> None:
        super().__init__(ledger)
        self._ledger, self._author, self._clock, self._days = ledger, author, clock, days

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        author = self._author()
        changes = changes_of(writes, author.target) if author is not None else []
        if author is None or not changes:
            return self._ledger.commit(writes)
        if len(writes) + len(changes) <= MAX_WRITES:
            return self._ledger.commit([*writes, *(self._record(author, change, "changed") for change in changes)])
        # No room in the transaction: a record before it is better than none, also if the change then fails.
        self._ledger.commit([self._record(author, change, "begun") for change in changes])
        return self._ledger.commit(writes)

    def _record(self, author: Author, change: Change, outcome: AuditOutcome) -> Put:
        unique = uuid4().hex[:12]
        return Put(authors.record(author, change, outcome, self._clock.now(), unique, self._days))
