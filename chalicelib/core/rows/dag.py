"""What is stored of a DAG's run besides the runs of its nodes: that people had parts of it run again (W4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class DagRun(StoredRow):
    """The re-runs of a DAG's run, in order: each with the ``request`` that asked for it, ``what`` of it (``from``,
    ``only`` or ``all``), the ``node``, and who asked when (``by``, ``at``). A run that went as it was has no such row.

    ``wake_at`` makes it an outbox: the last of them is still to be begun.
    """

    dag_run: str
    reruns: tuple[Mapping[str, Any], ...] = ()
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
