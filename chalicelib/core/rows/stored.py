"""What all stored rows have in common: each keeps the attributes that this version of the code does not know.

During a deployment, and after one is rolled back, older code replaces rows that newer code has written. A row is
replaced whole, so older code must write the attributes that it does not know as it read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Names and values, as DynamoDB stores them. Only `aws/tables/items.py` interprets them.
Unknown = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """``unknown`` are the attributes that were read and have no field. Rows that differ in nothing else are equal.
    `dataclasses.replace` keeps them; a new row in the place of another has none, unless the code copies them."""

    unknown: Unknown = field(default=(), compare=False, repr=False)
