"""The two writes that only a backfill needs, as DynamoDB statements (L12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.aws.tables import items
from chalicelib.aws.tables.expressions import Built, Shards, condition, update
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.writes import ExpectBackfillRunning, WakeBackfill


def _wake(write: WakeBackfill, shards: Shards) -> Built:
    key = kinds.key(Backfill, write.schedule, write.backfill)
    wake = items.wake(write.at, key.pk, shards.wake)
    expression = "SET rev = rev + :one, leases = :zero, wake_shard = :wake_shard, wake_at = :wake_at"
    return update(key, expression, "attribute_exists(pk)", one=1, zero=0, **wake)


def _expect_running(write: ExpectBackfillRunning, _: Shards) -> Built:
    key = kinds.key(Backfill, write.schedule, write.backfill)
    expected = condition("#state = :running", {"running": "RUNNING"})
    return "ConditionCheck", key, expected | {"ExpressionAttributeNames": {"#state": "state"}}


BUILDERS: dict[type, Callable[[Any, Shards], Built]] = {WakeBackfill: _wake, ExpectBackfillRunning: _expect_running}
