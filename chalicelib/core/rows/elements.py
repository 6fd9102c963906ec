"""The row of how far the elements of a node of a DAG are (W19). Their list is in the run of the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class Elements(StoredRow):
    """The elements of the node's run ``run_id``, by its ``attempt``: ``count`` of them. ``begun``, ``ended`` and
    ``failed`` are sets of their indexes, as hexadecimal numbers whose bit n is that of element n: 1,000 elements take
    250 characters each. Of those that have begun and not ended, there are at most ``at_once``; 0: as many as there are.

    ``kept`` are the elements that ran in an earlier round of the DAG run, and do not run again in this one: such a set
    for each round, by its text. ``stopped`` says why no further element begins: the node was cancelled, or its DAG was
    deleted.

    ``wake_at`` makes the row an outbox: elements have to begin, or the run of the node has to end.
    """

    run_id: str
    count: int
    begun: str = "0"
    ended: str = "0"
    failed: str = "0"
    at_once: int = 0
    attempt: int = 1
    kept: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
