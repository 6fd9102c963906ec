"""The three tables, made from the fragment of the template that is deployed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from infra import yaml_tags
from sluice.testing.memory_tables import MemoryTables

RESOURCES = Path(__file__).parents[2] / "infra" / "resources" / "tables.yaml"
KEPT = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes", "BillingMode")


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """CreateTable arguments by logical id."""
    resources = yaml_tags.load(RESOURCES.read_text())["Resources"]
    return {name: {key: _cold(body["Properties"][key]) for key in KEPT if key in body["Properties"]}
            for name, body in resources.items()}  # fmt: skip


def _cold(content: Any) -> Any:
    """Indexes without their warm throughput, which only CloudFormation can resolve."""
    if not isinstance(content, list):
        return content
    return [{key: each[key] for key in each if key != "WarmThroughput"} for each in content]


def in_memory() -> tuple[MemoryTables, dict[str, str]]:
    """Fresh tables in this process, and their names, which are their logical ids, by settings field."""
    made = MemoryTables()
    for logical_id, arguments in definitions().items():
        made.create_table(logical_id, **arguments)
    return made, {_field(logical_id): logical_id for logical_id in definitions()}


def create(client: Any, prefix: str) -> dict[str, str]:
    """Create the tables; returns their names by settings field."""
    names = {}
    for logical_id, arguments in definitions().items():
        field = _field(logical_id)
        names[field] = f"{prefix}-{field}"
        client.create_table(TableName=names[field], **arguments)
    return names


def _field(logical_id: str) -> str:
    """The settings field with the name of a table, such as `jobs_table` for `JobsTable`."""
    return logical_id.removesuffix("Table").lower() + "_table"
