"""The shards of the wake indexes: each is read once in a tick, and what is too much for one invocation is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.kinds import TableName
from chalicelib.core.rows.ref import Ref, ShardPart, shard_ref
from chalicelib.log import logger
from chalicelib.ports import Over, Page, Ports, Wakes

Rows = Page[tuple[Ref, Instant]]
PAGE = 500  # the rows of a shard that one invocation reads and handles


def hand_on(ports: Ports, parts: Sequence[ShardPart]) -> bool:
    """Send a hint for each part . Returns False if the queue does not answer: the next tick finds the rows."""
    now = ports.clock.now()
    try:
        ports.hints.send_all([(now, [shard_ref(part) for part in parts])], now, must=True)
    except Exception:
        logger.exception("shards not handed on", extra={"shards": [(part.table, part.shard) for part in parts]})
        return False
    return True


def read_once(ports: Ports) -> Ports:
    """The ports for one tick, whose steps share what they read of the wake indexes.

    What a step reads may be as old as the tick. The indexes are eventually consistent anyway. Each row is read strongly
    before a step acts, and the next tick finds the rows that were written since.
    """
    return replace(ports, wakes=ReadOnce(ports.wakes, ports.settings.wake_shards))


class ReadOnce(Over):
    """Implements `ports.Wakes`. First pages are remembered, and answer later reads of no later instant."""

    def __init__(self, inner: Wakes, shards: int) -> None:
        super().__init__(inner)
        self._inner = inner
        self._shards = shards
        self._pages: dict[tuple[TableName, int], tuple[Instant, int, Rows]] = {}

    def due(self, table: TableName, shard: int, until: Instant, limit: int, cursor: str | None) -> Rows:
        if cursor is not None:
            return self._inner.due(table, shard, until, limit, cursor)
        known = self._pages.get((table, shard))
        if known is None or known[0] < until or known[1] != limit:
            page = self._inner.due(table, shard, until, limit, None)
            self._pages[table, shard] = until, limit, page
            return page
        page = known[2]
        items = tuple(row for row in page.items if row[1] <= until)
        return Page(items, page.cursor if len(items) == len(page.items) else None)

    def upcoming(self, since: Instant, until: Instant) -> tuple[tuple[Ref, Instant], ...]:
        pages = [self.due("jobs", shard, until, PAGE, None) for shard in range(self._shards)]
        if any(page.cursor is not None for page in pages):
            return self._inner.upcoming(since, until)
        found = [row for page in pages for row in page.items if row[1] >= since]
        waits = [row for row in found if row[0].kind == "job" and not sort_keys.is_fire(row[0].parts[2])]
        return tuple(sorted(waits, key=lambda row: row[1]))
