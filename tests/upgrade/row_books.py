"""Records the writes of rows by two versions: which version wrote a row last, and the attributes that newer code added.

Rows of the newer version get an attribute that no version has, as a still newer version would add it.
"""

from __future__ import annotations

from collections import Counter

from sluice.testing.memory_tables import Item, MemoryTables
from tests.faults.test_newer_attributes import NEWER, is_made_again
from tests.support.stored import class_of


class RowBooks:
    """``newer`` is the version whose writes add the attribute; ``player`` is the one that is invoked.

    A version may put the same row again, because the invocation that put it was killed. It then writes the row as its
    own version does, which loses no decision.
    """

    def __init__(self, tables: MemoryTables, newer: str) -> None:
        self.player, self._newer = "", newer
        self.lost: list[tuple[str, str, str, Item, Item]] = []  # version, attribute, kind, before, after
        self.kept: Counter[str] = Counter()  # by kind: rows of the newer version that the older wrote again
        self.taken_over: Counter[tuple[str, str]] = Counter()  # by kind and writer: rows of the other version
        self.lowered: Counter[str] = Counter()  # by kind: rows with a lower layout number than before
        self._writers: dict[tuple[str, str], str] = {}
        self._watched = set(NEWER)
        self._kept: set[tuple[str, str]] = set()
        tables.as_stored = self.stored

    def watches(self, attribute: str) -> None:
        """From now on no row may lose this attribute either, which the newer version adds itself."""
        self._watched.add(attribute)

    def has_kept(self, attribute: str) -> set[str]:
        """The kinds of rows with the attribute that older code has written again and kept it."""
        return {kind for kind, name in self._kept if name == attribute}

    def stored(self, before: Item | None, item: Item) -> Item:
        kind, key = class_of(item), (item["pk"]["S"], item["sk"]["S"])
        if before is not None:
            self._compare(kind, before, item)
            if self._writers.get(key, self.player) != self.player:
                self.taken_over[kind, self.player] += 1
        self._writers[key] = self.player
        return {**item, **NEWER} if self.player == self._newer else item

    def _compare(self, kind: str, before: Item, item: Item) -> None:
        self.lowered[kind] += layout_of(item) < layout_of(before)
        had, has = before.keys() & self._watched, item.keys() & self._watched
        if self.player == self._newer:
            return  # `stored` adds the attribute to all its writes
        self.kept[kind] += bool(had & has)
        self._kept |= {(kind, name) for name in had & has}
        if is_made_again(kind, before, item) or _bare(before, had) == _bare(item, set()):
            return
        self.lost += [(self.player, name, kind, before, item) for name in had - has]


def layout_of(item: Item) -> int:
    return int(item.get("format", {"N": "0"})["N"])


def _bare(item: Item, names: set[str]) -> Item:
    return {name: content for name, content in item.items() if name not in names}
