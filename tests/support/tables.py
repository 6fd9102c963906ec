"""The three tables, made from the fragment of the template that is deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infra import yaml_tags

RESOURCES = Path(__file__).parents[2] / "infra" / "resources" / "tables.yaml"
KEPT = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes", "BillingMode")


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


def create(client: Any, prefix: str) -> dict[str, str]:
    """Create the tables; returns their names by settings field."""
    names = {}
    for logical_id, arguments in definitions().items():
        field = logical_id.removesuffix("Table").lower() + "_table"
        names[field] = f"{prefix}-{field}"
        client.create_table(TableName=names[field], **arguments)
    return names
