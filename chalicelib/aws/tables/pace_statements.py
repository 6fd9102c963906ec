"""The writes of a pace as DynamoDB statements: acquire a permit, delay the next permit, advance it."""

from __future__ import annotations

from typing import Any

from chalicelib.aws.tables import items
from chalicelib.aws.tables.expressions import NO_WAITER, Built, Shards, update
from chalicelib.core.limits.permits import RateWindow, Slots
from chalicelib.core.limits.writes import AcquireBlock, AcquirePermit, AdvancePace, DelayPace
from chalicelib.core.rows import kinds
from chalicelib.core.rows.limit import LimitState


def take_pace(write: AcquirePermit) -> Built:
    request, head = write.ask, write.read.head
    if isinstance(request, Slots | RateWindow):
        raise TypeError("expected a pace")
    key, leaving = kinds.key(LimitState, request.limit_name), ", waiters = waiters - :one" if write.from_queue else ""
    # Two forms of max(head, now) + spacing: an update expression has no max.
    behind = head <= write.now
    base = ":now" if behind else "head"
    free = "(attribute_not_exists(head) OR head <= :now)" if behind else "head > :now AND head <= :latest"
    values = {"now": write.now, "spacing": request.spacing}
    if not behind:
        values["latest"] = write.now + request.slack
    if write.from_queue:
        values["one"] = 1
    elif not write.passing:
        # No single row shows whether a queue in parts is empty, so each job acquires its permit through the queue.
        free, values["zero"] = f"{free} AND {NO_WAITER} AND attribute_not_exists(parts)", 0
    return update(key, f"SET head = {base} + :spacing{leaving}", free, **values)


def acquire_block(write: AcquireBlock, _: Shards) -> Built:
    expected = "head = :read" if write.read else "attribute_not_exists(head) OR head = :read"
    return update(
        kinds.key(LimitState, write.limit_name), "SET head = :head", expected, head=write.head, read=write.read
    )


def hold_back(write: DelayPace, shards: Shards) -> Built:
    """Move the head forward. The head only grows, so a concurrent longer delay or permit is kept."""
    key, head = kinds.key(LimitState, write.ask.limit_name), write.until + write.ask.slack
    return update(key, "SET head = :head", "attribute_not_exists(head) OR head < :head", head=head)


def advance_pace(write: AdvancePace, shards: Shards) -> Built:
    key, wake_at = kinds.key(LimitState, write.limit_name), write.read.wake_at
    sets, expected = "SET head = :head", "head = :read"
    values: dict[str, Any] = {"head": write.head, "read": write.read.head}
    if wake_at is not None and wake_at > write.head:
        sets, expected = f"{sets}, wake_at = :at", f"{expected} AND wake_at = :seen"
        values["at"] = items.wake(write.head, key.pk, shards.wake)["wake_at"]
        values["seen"] = items.wake(wake_at, key.pk, shards.wake)["wake_at"]
    return update(key, sets, expected, **values)
