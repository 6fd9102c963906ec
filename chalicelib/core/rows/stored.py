"""What every stored row has in common: it carries the attributes along that this version of the code does not know.

During a deployment, and after one is taken back, older code replaces rows that newer code has written. A row is
replaced whole, so the attributes that older code does not know must go with it from the read to the write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Name and content, in the form in which the table keeps them. Only `aws/tables/items.py` looks into them.
Unknown = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """``unknown`` are the attributes that were read and that no field names. Two rows that differ in nothing else are
    equal. `dataclasses.replace` keeps them; a row that is made anew in the place of another has none, unless its maker
    copies them."""

    unknown: Unknown = field(default=(), compare=False, repr=False)
