"""The row of the objects in the prefix of a dataset that belong to no partition: mistakes in the layout (T7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chalicelib.core.instants import MINUTE, Instant
from chalicelib.core.rows.stored import StoredRow

MAX_SHOWN = 3  # objects in a row


@dataclass(frozen=True, slots=True)
class IgnoredObjects(StoredRow):
    """The last objects in no partition, the newest first, and one for each reason: its ``key``, ``at`` which instant
    it came (RFC 3339), the ``code`` and the folder (``of``) that tell reasons apart, and ``why`` in words.
    ``noted_at`` is the instant of the last write, and there is at most one a minute, however many such objects
    come."""

    dataset: str
    objects: tuple[Mapping[str, str], ...]
    noted_at: Instant


def noted(row: IgnoredObjects | None, dataset: str, found: Mapping[str, str], now: Instant) -> IgnoredObjects | None:
    """The row with another object; None if the row was written less than a minute ago."""
    if row is not None and now - row.noted_at < MINUTE:
        return None
    others = [each for each in (row.objects if row is not None else ()) if _reason(each) != _reason(found)]
    return IgnoredObjects(dataset, (found, *others)[:MAX_SHOWN], now)


def _reason(noted: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What tells reasons apart. An object that an earlier version has noted has no code."""
    return noted.get("code"), noted.get("of")
