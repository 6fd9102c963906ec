"""The parts that a period needs of a dataset, and which of them have come (T25). A leaf of a job holds them.

The parts have numbers: `core/triggers/parts.py` computes them from the calendar. ``have`` has a bit for each number, so
a set of 10,000 parts takes at most 2 KB.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.instants import Instant


@dataclass(frozen=True, slots=True)
class Parts:
    """``dataset`` is the full name of the dataset. ``each``, ``format``, ``zone`` and ``week_starts`` are its periods,
    and ``keys`` its keys, when the job began. The parts are the periods that begin from ``start`` to before ``end``,
    for each combination of ``values``. ``need`` is how many there are, and ``of`` the label of the job's period.

    ``around``: they are those of a window, and not of the period itself.

    ``grows`` is the key whose values are those of the period before and all that come (``seen_last``). ``unsure``: the
    period before had none, so that only time meets the leaf.

    The leaf may lack ``allow`` of them from ``allowed_at`` on, and any from ``open_at`` on; None: it may lack none.

    ``unknown`` are fields that newer code has stored; a write keeps them as they are (O11)."""

    dataset: str
    keys: tuple[str, ...]
    each: str
    format: str
    zone: str
    week_starts: str
    values: Mapping[str, tuple[str, ...]]
    start: Instant
    end: Instant
    of: str
    need: int
    allowed_at: Instant
    allow: int | None = None
    open_at: Instant | None = None
    around: bool = False
    grows: str | None = None
    unsure: bool = False
    have: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def count(self) -> int:
        """How many of the parts have come."""
        return self.have.bit_count()

    @property
    def lacking(self) -> int:
        return self.need - self.count

    def has(self, number: int) -> bool:
        return bool(self.have >> number & 1)

    def is_enough(self, now: Instant) -> bool:
        """Whether the leaf is met at ``now``: no part is missing, or so many may be."""
        lacking = self.lacking
        allowed = self.allow is not None and lacking <= self.allow and now >= self.allowed_at
        known = not self.unsure and (lacking == 0 or allowed)
        return known or (self.open_at is not None and now >= self.open_at)

    @property
    def enough_at(self) -> Instant | None:
        """When the leaf is met if no further part comes; None: never."""
        may_lack = self.allow is not None and self.lacking <= self.allow and not self.unsure
        allowed = self.allowed_at if may_lack else None
        return min((at for at in (allowed, self.open_at) if at is not None), default=None)

    @property
    def text(self) -> str:
        """The form in which a row stores the parts; `of_text` reads it."""
        bits = self.have.to_bytes((self.have.bit_length() + 7) // 8, "little")
        fields = {name: getattr(self, name) for name in _FIELDS if name != "have"}
        known = {name: content for name, content in fields.items() if content is not None and content is not False}
        packed = b85encode(zlib.compress(bits, 9)).decode()
        return json.dumps({**known, "have": packed, **self.unknown}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Parts:
        found = json.loads(text)
        have = int.from_bytes(zlib.decompress(b85decode(found["have"])), "little")
        known = {name: found[name] for name in _FIELDS if name in found}
        values = {key: tuple(texts) for key, texts in found["values"].items()}
        unknown = {name: content for name, content in found.items() if name not in _FIELDS}
        return cls(**{**known, "keys": tuple(found["keys"]), "values": values, "have": have}, unknown=unknown)


_FIELDS = (
    "dataset", "keys", "each", "format", "zone", "week_starts", "values", "start", "end", "of", "need", "allowed_at",
    "allow", "open_at", "around", "grows", "unsure", "have",
)  # fmt: skip
