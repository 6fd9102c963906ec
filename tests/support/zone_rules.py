"""Versions of the rules of time zones, made for a test: a zone changes its offset where the test wants it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from chalicelib.core import zones
from chalicelib.core.instants import HOUR, SECOND, Instant, Millis
from chalicelib.core.zones import Rules

# The offset of a zone from the beginning, and its changes: from an instant on, another offset.
Offsets = tuple[Millis, Sequence[tuple[Instant, Millis]]]
UTC: Offsets = (0, ())


def made(folder: Path, version: str, rules: Mapping[str, Offsets]) -> Rules:
    """A version of the rules that has these zones and UTC alone."""
    known = {"UTC": UTC, **rules}
    for name, offsets in known.items():
        file = folder / version / "zoneinfo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_tzif(*offsets))
    (folder / version / "zones").write_text("\n".join(known))
    return Rules(folder / version, version)


def use(monkeypatch: pytest.MonkeyPatch, rules: Rules) -> None:
    """This process computes with these rules from now on, as one that was deployed with them."""
    monkeypatch.setattr(zones, "_rules", rules)


def hours(first: float, *changes: tuple[Instant, float]) -> Offsets:
    return round(first * HOUR), [(at, round(offset * HOUR)) for at, offset in changes]


def _tzif(first: Millis, changes: Sequence[tuple[Instant, Millis]]) -> bytes:
    """A file of RFC 8536: an empty block of version 1, and one of version 2 with the changes."""
    offsets = [first, *(offset for _, offset in changes)]
    header = struct.pack(">4sc15x", b"TZif", b"2")
    counts = struct.pack(">6L", 0, 0, 0, len(changes), len(offsets), 4)
    body = struct.pack(f">{len(changes)}q", *(at // SECOND for at, _ in changes)) + bytes(range(1, len(offsets)))
    body += b"".join(struct.pack(">lbb", offset // SECOND, 0, 0) for offset in offsets) + b"XXX\0"
    nothing = struct.pack(">6L", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"XXX\0"
    return header + nothing + header + counts + body + b"\n\n"
