"""What is stored of notices (W9): what happened, until it has been taken in, and what was told lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class PendingNotice(StoredRow):
    """Something of which somebody is to be told. Written along with what happened, and gone once it is taken in.

    ``id`` is that of the job or run.
    """

    workflow: str
    what: str
    id: str
    schedule: str
    reason: str
    at: Instant
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class NoticeWindow(StoredRow):
    """What one target was told of a workflow lately, by its ``road``: nothing more before ``until``, when those that
    have come meanwhile (``count``, the first of them in ``told``) are told together. Quiet, it goes."""

    workflow: str
    channel: str
    target: Mapping[str, Any]
    since: Instant
    until: Instant
    count: int = 0
    told: tuple[Mapping[str, str], ...] = ()
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class DeadlineWatch(StoredRow):
    """When a job is to be started (``start_by``) and its run to end (``end_by``); what has been judged is None (H5).

    ``wake_at`` is the next of the two. Judged, it has an end, some weeks ahead: nothing is told twice.
    """

    id: str
    workflow: str
    schedule: str
    start_by: Instant | None = None
    end_by: Instant | None = None
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    expires_at: Instant | None = None
