"""Apps under test use the same tables as a deployment."""

from __future__ import annotations

from sluice.testing.tables import TABLES
from tests.support import tables


def test_their_keys_and_indexes_are_those_of_the_template() -> None:
    deployed = {
        name: {key: value for key, value in definition.items() if key not in ("AttributeDefinitions", "BillingMode")}
        for name, definition in tables.definitions().items()
    }
    assert deployed == TABLES
