"""The row of a DAG run in addition to the runs of its nodes: the re-runs of its parts that users requested (W4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class DagRun(StoredRow):
    """The re-runs of a DAG run, in order. Each has the id of its ``request``, and ``what`` is run again (``from``,
    ``only`` or ``all``). It also has the ``node``, the ``elements`` of the node if the others keep their ends (W19),
    and the user and instant of the request (``by``, ``at``). That of a node alone has the nodes that were ``skipped``
    then, which stay so. A DAG run without a re-run has such a row only if a node before one with a join rule ended
    without a run.

    ``wake_at`` makes the row an outbox: the last re-run has not begun yet, or the nodes with join rules are to be
    decided (W17).
    """

    dag_run: str
    reruns: tuple[Mapping[str, Any], ...] = ()
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
