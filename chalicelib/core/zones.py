"""Time zones by the rules of the pinned package ``tzdata``, and by no others.

``ZoneInfo(name)`` of Python asks the zone database of the machine first. A Lambda image, a container and a laptop have
databases of different years, so a preview and a fire could differ. Every process of Sluice gets its zones here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import tzdata


@dataclass(frozen=True, slots=True)
class Rules:
    """One version of the rules of all zones. ``folder`` is laid out as in the package: ``zones`` lists the names, and
    ``zoneinfo`` has a file for each. ``version`` is that of the IANA, such as ``2026f``."""

    folder: Path
    version: str


PINNED = Rules(Path(tzdata.__file__).parent, tzdata.IANA_VERSION)
_rules = PINNED


def version() -> str:
    """The version of the rules of this process."""
    return _rules.version


def zone(name: str) -> ZoneInfo | None:
    """The zone with exactly this name; None if the rules have none."""
    return _read(_rules, name) if name in _names(_rules) else None


def unknown(name: str) -> str:
    """Why nothing can be computed in a zone that the rules no longer have."""
    return f"expected a zone that version {version()} of the time zones has, got {name!r}; name another zone"


@cache
def _names(rules: Rules) -> frozenset[str]:
    return frozenset((rules.folder / "zones").read_text().split())


@cache
def _read(rules: Rules, name: str) -> ZoneInfo:
    with (rules.folder / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)
