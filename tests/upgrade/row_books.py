"""What happens to the rows while two versions write them: who wrote which last, and what newer code had added.

The newer version's rows get an attribute that no version knows. So does whatever a still newer version would add.
"""

from __future__ import annotations

from collections import Counter

from tests.faults.memory_tables import Item, MemoryTables
from tests.faults.test_newer_attributes import NEWER, is_made_anew, kind_of


class RowBooks:
    """``newer`` is the version whose writes add the attribute; ``player`` is the one that is invoked.

    What puts the same row again, because the invocation that had put it died, makes it as its own version does. That
    erases nothing that anybody has decided.
    """

    def __init__(self, tables: MemoryTables, newer: str) -> None:
        self.player, self._newer = "", newer
        self.lost: list[tuple[str, str, Item, Item]] = []  # by whom, of which kind, before and after
        self.kept: Counter[str] = Counter()  # by kind: rows of the newer version that the older wrote again
        self.taken_over: Counter[tuple[str, str]] = Counter()  # by kind and writer: rows of the other version
        self.lowered: Counter[str] = Counter()  # by kind: rows that say a lower layout than before
        self._writers: dict[tuple[str, str], str] = {}
        tables.as_stored = self.stored

    def stored(self, before: Item | None, item: Item) -> Item:
        kind, key = kind_of(item), (item["pk"]["S"], item["sk"]["S"])
        if before is not None and self._writers.get(key, self.player) != self.player:
            self.taken_over[kind, self.player] += 1
        self._writers[key] = self.player
        if before is not None and layout_of(item) < layout_of(before):
            self.lowered[kind] += 1
        had = before is not None and "zz_newer" in before
        if had and "zz_newer" in item and self.player != self._newer:
            self.kept[kind] += 1
        if had and "zz_newer" not in item and not is_made_anew(kind, before, item) and {**item, **NEWER} != before:
            self.lost.append((self.player, kind, before, item))
        return {**item, **NEWER} if self.player == self._newer else item


def layout_of(item: Item) -> int:
    return int(item.get("format", {"N": "0"})["N"])
