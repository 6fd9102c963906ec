"""Copies of stored items under other names and at other instants.

The product writes a few items; a copy is such an item with other texts. So a copy is the row that the product would
have written for the other name at the other instant. Only its digests differ (tests/benchmarks/test_console_world.py
compares)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from chalicelib.core import ids
from chalicelib.core.instants import iso, parse_instant

Item = dict[str, dict[str, Any]]

_INSTANT = re.compile(r"(?<!\d)1[67]\d{11}(?!\d)")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DIGEST = re.compile(r"\b(?:([a-z_]+)-)?([0-9a-f]{20,40})\b")
_AT_EMR = re.compile(r"\bjr\d{5}\b")


@dataclass(frozen=True)
class Shards:
    """How many parts the wake index and the indexes of the history have."""

    wake: int
    history: int


@dataclass(frozen=True)
class Change:
    """What a copy changes. ``texts`` are replaced in order, ``shift`` (ms) moves each instant, and ``began`` maps
    generations, which other instants do not follow. ``salt`` and ``event_salt`` change the digests: of the ids of
    events, which several schedules share, and of all others."""

    shards: Shards
    texts: Mapping[str, str] = field(default_factory=dict)
    shift: int = 0
    began: Mapping[int, int] = field(default_factory=dict)
    salt: str = ""
    event_salt: str = ""

    @cached_property
    def _words(self) -> dict[str, str]:
        return {**self.texts, **{ids.base36(old): ids.base36(new) for old, new in self.began.items()}}

    def text(self, text: str) -> str:
        for old, new in self._words.items():
            text = text.replace(old, new)
        if self.salt or self.event_salt:
            text = _AT_EMR.sub(lambda match: f"jr{_digest(match[0], self.salt, 12)}", _DIGEST.sub(self._other, text))
        if not self.shift and not self.began:
            return text
        text = _INSTANT.sub(lambda match: str(self.instant(int(match[0]))), text)
        return _ISO.sub(lambda match: iso(self.instant(parse_instant(match[0]))), text)

    def instant(self, instant: int) -> int:
        return self.began.get(instant, instant + self.shift)

    def _other(self, match: re.Match[str]) -> str:
        kind, digest = match[1], match[2]
        other = _digest(digest, self.event_salt if kind else self.salt, len(digest))
        return f"{kind}-{other}" if kind else other


def copy(item: Item, change: Change) -> Item:
    """The item as the product would have written it elsewhere. `change.texts` may not change the kind of the row."""
    plain = {name: _value(content, change) for name, content in item.items() if name != "ttl"}
    if "ttl" in item:
        plain["ttl"] = {"N": str(int(item["ttl"]["N"]) + change.shift // 1000)}
    _place(plain, change.shards)
    return plain


def copies(items: Iterable[Item], change: Change) -> list[Item]:
    return [copy(item, change) for item in items]


def _value(content: dict[str, Any], change: Change) -> dict[str, Any]:
    [(kind, held)] = content.items()
    match kind:
        case "S":
            return {"S": change.text(held)}
        case "N":
            number = int(held) if held.isdecimal() else 0
            return {"N": str(change.instant(number))} if 10**12 <= number < 2 * 10**12 else content
        case "L":
            return {"L": [_value(part, change) for part in held]}
        case "M":
            return {"M": {change.text(name): _value(part, change) for name, part in held.items()}}
        case _:
            return content


def _place(item: Item, shards: Shards) -> None:
    """Put a copy into the parts of the indexes that its new key and instant belong to (`aws/tables/items.py`)."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    if "wake_shard" in item:
        group, number, _ = item["wake_shard"]["S"].rpartition("#")
        item["wake_shard"] = {"S": f"{group}{number}{ids.shard(pk, shards.wake)}"}
    if "day_key" not in item:
        return
    head, _, name = pk.partition("#")
    day, part = item["at"]["S"][:10], ids.shard(sk.rpartition("#")[0] if head == "DEAD" else name, shards.history)
    key = item["day_key"]["S"].split("#")
    item["day_key"] = {"S": "#".join([*key[:-1], part] if head == "DEAD" else [*key[:-2], day, part])}
    if "wf_key" in item:
        for attribute in ("wf_key", "schedule_key"):
            item[attribute] = {"S": f"{item[attribute]['S'].rpartition('#')[0]}#{part}"}


def _digest(text: str, salt: str, length: int) -> str:
    return hashlib.sha256(f"{salt}:{text}".encode()).hexdigest()[:length] if salt else text[:length]
