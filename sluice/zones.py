"""Time zones by the rules of the installed package ``tzdata``, as the service has them (`chalicelib/core/zones.py`).

``ZoneInfo(name)`` of Python asks the zone database of the machine first, whose rules may be those of another year.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import tzdata

_FOLDER = Path(tzdata.__file__).parent


@cache
def zone(name: str) -> ZoneInfo | None:
    """The zone with exactly this name; None if there is none."""
    if name not in _names():
        return None
    with (_FOLDER / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def _names() -> frozenset[str]:
    return frozenset((_FOLDER / "zones").read_text().split())
