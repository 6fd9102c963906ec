"""The keys and indexes of the three tables, as `infra/resources/tables.yaml` defines them. A test compares the two."""

from __future__ import annotations

from typing import Any


def _schema(of: str, by: str) -> list[dict[str, str]]:
    return [{"AttributeName": of, "KeyType": "HASH"}, {"AttributeName": by, "KeyType": "RANGE"}]


def _index(name: str, of: str, by: str, projection: str = "KEYS_ONLY") -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": _schema(of, by), "Projection": {"ProjectionType": projection}}


WAKE = _index("wake", "wake_shard", "wake_at")
# CreateTable arguments by the name that the template gives to the table.
TABLES: dict[str, dict[str, Any]] = {
    "CatalogTable": {"KeySchema": _schema("pk", "sk"), "GlobalSecondaryIndexes": [WAKE]},
    "JobsTable": {
        "KeySchema": _schema("pk", "sk"),
        "GlobalSecondaryIndexes": [WAKE],
        "LocalSecondaryIndexes": [_index("events", "pk", "event_job", "ALL")],
    },
    "RunsTable": {
        "KeySchema": _schema("pk", "sk"),
        "GlobalSecondaryIndexes": [
            WAKE,
            _index("by_workflow", "wf_key", "at"),
            _index("by_schedule", "schedule_key", "at"),
            _index("by_day", "day_key", "at"),
        ],
    },
}
