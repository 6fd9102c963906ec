"""The rows of notices (W9): pending notices, notice windows, and watches of deadlines and of datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.instants import Instant, Millis
from chalicelib.core.rows.stored import StoredRow


@dataclass(frozen=True, slots=True)
class PendingNotice(StoredRow):
    """A failure, an abort or a missed deadline that a notice has to report. The transaction that records the failure,
    abort or deadline creates it; the notice window that takes it in deletes it.

    ``id`` is that of the job or run, and ``element`` the index of the element for which it runs (W19), which is one
    ``of`` this run of its node. ``channels`` are the ids of those of the rules when it was written: it goes there, also
    if the rules change while it waits. Rows of older code have none.
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
    element: int | None = None
    of: str | None = None
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoticeWindow(StoredRow):
    """The last notice of a workflow to one target, over a ``channel``. The target gets no other before ``until``. Then
    one notice reports all events that came meanwhile: ``count`` of them, the first ones in ``events``. Without any,
    Sluice deletes the row. ``form``, ``console``, ``group`` and quiet ``hours`` are those of the rule.

    ``incident`` is the key of an incident of PagerDuty. It is open since ``opened_at``, when its last message was
    written. ``trouble_at`` and ``trouble_id`` are the latest event that no success has ended since, and its run; of an
    element that of its node. While nothing is to
    be sent, the row of an open incident is at rest until ``forgotten_at``."""

    workflow: str
    channel: str
    target: Mapping[str, Any]
    since: Instant
    until: Instant
    count: int = 0
    events: tuple[Mapping[str, Any], ...] = ()
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
    form: str | None = None
    console: str | None = None
    group: Millis | None = None
    hours: Mapping[str, Any] | None = None
    incident: str | None = None
    opened_at: Instant | None = None
    trouble_at: Instant | None = None
    trouble_id: str | None = None
    forgotten_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class DeadlineWatch(StoredRow):
    """When a job must have started (``start_by``) and its run must have ended (``end_by``); None once checked (H5).

    ``wake_at`` is the next of the two. Once both are checked the row expires, some weeks later, so that no deadline is
    reported twice.
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


@dataclass(frozen=True, slots=True)
class FreshnessWatch(StoredRow):
    """Whether a dataset with ``fresh`` is late (T29). ``since`` is when the watch began: the age counts from then while
    no partition has come. ``late_since`` is when the newest partition became too old; None while it is fresh.

    ``telling`` is what the subscribers are being told, `LATE` or `FRESH`; None if all know. ``lapse`` is the
    ``late_since`` that it is about. ``cursor`` is the page of subscriptions that comes next, and ``told`` the last
    schedule that has its notice."""

    dataset: str
    since: Instant
    late_since: Instant | None = None
    lapse: Instant | None = None
    telling: str | None = None
    cursor: str | None = None
    told: str | None = None
    rev: int = 1
    leases: int = 0
    wake_at: Instant | None = None
