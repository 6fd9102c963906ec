"""Runs, records and pointers, history by workflow, schedule and day; the wake index.

Implements `ports.RunTable` and `ports.Wakes`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.aws.tables.dynamo import Dynamo, checked_start, decode_cursor, encode_cursor
from chalicelib.core import errors, ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, Instant, iso, parse_instant
from chalicelib.core.rows import kinds, sort_keys
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.kinds import Key, TableName
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import DeadLetter, Record, Run, RunSpan
from chalicelib.ports import Page, Soonest

R = TypeVar("R")

# scope -> its index, and the partition attribute of the index
_SCOPES = {
    "workflow": ("by_workflow", "wf_key"),
    "schedule": ("by_schedule", "schedule_key"),
    "day": ("by_day", "day_key"),
}


_BETWEEN = "wake_shard = :shard AND wake_at BETWEEN :since AND :until"

PAGE = 100  # rows more than an even share that are read of one part of an index at a time


class DynamoRuns:
    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo

    def several(self, names: Sequence[tuple[str, int]], strong: bool = True) -> tuple[Run, ...]:
        found = self._dynamo.get_many([kinds.key(Run, *name) for name in names], strong=strong)
        return items.rows_of(Run, found.values())

    def attempts(self, run_id: str) -> tuple[Run, ...]:
        values = {"pk": f"RUN#{run_id}", "sk": "A#"}
        found = self._dynamo.query_all("runs", "pk = :pk AND begins_with(sk, :sk)", values)
        return items.rows_of(Run, found)

    def runs(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Run]:
        return self._history(Run, scope, self._parts(name), limit, cursor)

    def spans(self, scope: str, names: Sequence[str], since: Instant, until: Instant, most: int) -> tuple[RunSpan, ...]:
        wanted: list[Key] = []
        for name in names:
            wanted += self._newest(scope, self._parts(name), since, until, most - len(wanted))
            if len(wanted) >= most:
                break
        return items.rows_of(RunSpan, self._in_order(wanted, strong=False))

    def claimed(self, namespace: str, since: Instant, until: Instant, most: int) -> tuple[tuple[str, int], ...]:
        wanted: list[Key] = []
        day = until - 1
        while day >= since - since % DAY and len(wanted) < most:
            parts = self._parts(f"{namespace}#{iso(day)[:10]}")
            wanted += self._newest("day", parts, since, until, most - len(wanted))
            day -= DAY
        return tuple((key.pk.removeprefix("RUN#"), int(key.sk.removeprefix("A#"))) for key in wanted)

    def attempts_between(self, schedule: str, since: Instant, until: Instant, most: int) -> tuple[Run, ...]:
        wanted = self._newest("schedule", self._parts(schedule), since, until, most)
        return items.rows_of(Run, self._in_order(wanted, strong=False))

    def records_between(self, schedule: str, since: Instant, until: Instant, most: int) -> tuple[Record, ...]:
        wanted = self._newest("schedule", [f"RECORD#{schedule}"], since, until, most)
        return items.rows_of(Record, self._in_order(wanted, strong=False))

    def records(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[Record]:
        parts = [f"RECORD#{name}"] if scope == "schedule" else self._parts(f"RECORD#{name}")
        return self._history(Record, scope, parts, limit, cursor)

    def dead_letters(self, scope: str, name: str, limit: int, cursor: str | None) -> Page[DeadLetter]:
        parts = [f"DEAD#{name}"] if scope == "schedule" else self._parts(f"DEAD#{name}")
        return self._history(DeadLetter, "day" if scope == "namespace" else scope, parts, limit, cursor)

    def dead_letter(self, run_id: str) -> DeadLetter | None:
        named = ids.parse_job_id(run_id)
        if named is None:
            return None
        values = {"pk": kinds.key(DeadLetter, named.schedule, run_id, 0).pk, "sk": f"{run_id}#"}
        letters = items.rows_of(DeadLetter, self._dynamo.query_all("runs", "pk = :pk AND begins_with(sk, :sk)", values))
        return letters[-1] if letters else None

    def has_dead_letter(self, schedule: str) -> bool:
        values = {"pk": kinds.key(DeadLetter, schedule, "", 0).pk}
        return bool(self._dynamo.query("runs", "pk = :pk", values, limit=1)[0])

    def audit(self, namespace: str, since: Instant, until: Instant, limit: int, cursor: str | None) -> Page[AuditRow]:
        values = {
            "pk": kinds.key(AuditRow, namespace, "").pk,
            "since": iso(since),
            "until": _before(cursor, since, until),
        }
        condition = "pk = :pk AND sk BETWEEN :since AND :until"
        found, rest = self._dynamo.query("runs", condition, values, limit=limit + 2, forward=False)
        # The upper bound is included. No record has a bare instant as its key, but a cursor is the key of the last one.
        rows = [item for item in found if item["sk"]["S"] < values["until"]]
        last = rows[:limit][-1]["sk"]["S"] if rows else None
        more = last if len(rows) > limit or rest else None  # DynamoDB ends a page at 1 MB, too
        return Page(items.rows_of(AuditRow, rows[:limit]), encode_cursor(more))

    def audit_of_all(self, since: Instant, until: Instant, limit: int, cursor: str | None) -> Page[AuditRow]:
        before = _before(cursor, since, until)
        found: list[items.Item] = []
        at = parse_instant(before[: len(iso(until))])
        while at >= since - since % DAY and len(found) <= limit:
            values = {"part": items.audit_day(iso(at)[:10]), "since": iso(since), "before": before}
            condition = "day_key = :part AND #at BETWEEN :since AND :before"
            page, _ = self._dynamo.query("runs", condition, values, limit=limit + 2, index="by_day", forward=False)
            found += [item for item in page if item["at"]["S"] < before]
            at -= DAY
        more = found[limit - 1]["at"]["S"] if len(found) > limit else None
        wanted = [_key_of(item) for item in found[:limit]]
        return Page(items.rows_of(AuditRow, self._in_order(wanted)), encode_cursor(more))

    def _parts(self, name: str) -> list[str]:
        return [f"{name}#{part}" for part in range(self._dynamo.shards.history)]

    def _history(self, kind: type[R], scope: str, parts: list[str], limit: int, cursor: str | None) -> Page[R]:
        """A page of history, newest first. All parts of an index are read and merged; the cursor is one instant."""
        index, attribute = _SCOPES[scope]
        before = decode_cursor(cursor) if cursor is not None else "~"
        if not isinstance(before, str) or not before:
            raise errors.bad_cursor()
        condition, most = f"{attribute} = :part AND #at < :before", limit + 1
        asked = [{"part": part, "before": before} for part in parts]
        lists = [
            self._dynamo.query("runs", condition, each, limit=most, index=index, forward=False)[0] for each in asked
        ]
        newest = list(heapq.merge(*lists, key=lambda item: str(item["at"]["S"]), reverse=True))
        wanted = [_key_of(item) for item in newest[:limit]]
        more = newest[limit - 1]["at"]["S"] if len(newest) > limit else None
        return Page(items.rows_of(kind, self._in_order(wanted)), encode_cursor(more))

    def _newest(self, scope: str, parts: Sequence[str], since: Instant, until: Instant, most: int) -> list[Key]:
        """The keys of the newest rows in all parts of an index. Each part is read page by page, and only as far as the
        merge needs it."""
        size = most // len(parts) + PAGE
        lists = [self._backward(scope, part, since, until, size) for part in parts]
        merged = heapq.merge(*lists, key=lambda item: str(item["at"]["S"]), reverse=True)
        return [_key_of(item) for item in islice(merged, most)]

    def _backward(self, scope: str, part: str, since: Instant, until: Instant, size: int) -> Iterator[items.Item]:
        # A sort key is an instant and an id, so it follows the bare instant: `since` is included, `until` is not.
        index, attribute = _SCOPES[scope]
        values = {"part": part, "since": iso(since), "until": iso(until)}
        condition = f"{attribute} = :part AND #at BETWEEN :since AND :until"
        return self._dynamo.query_all("runs", condition, values, size, index=index, forward=False)

    def _in_order(self, wanted: Sequence[Key], strong: bool = True) -> list[items.Item]:
        found = self._dynamo.get_many(wanted, strong=strong) if wanted else {}
        return [found[key] for key in wanted if key in found]


class DynamoWakes:
    def __init__(self, dynamo: Dynamo) -> None:
        self._dynamo = dynamo

    def overdue(self, table: TableName, until: Instant, limit: int) -> tuple[Ref, ...]:
        found: list[items.Item] = []
        for shard in range(self._dynamo.shards.wake):
            values = {"shard": str(shard), "until": iso(until)}
            condition = "wake_shard = :shard AND wake_at <= :until"
            found += self._dynamo.query(table, condition, values, limit=limit, index="wake")[0]
        found.sort(key=lambda item: str(item["wake_at"]["S"]))
        return tuple(ref for ref, _ in _named(table, found[:limit]))

    def due(
        self, table: TableName, shard: int, until: Instant, limit: int, cursor: str | None
    ) -> Page[tuple[Ref, Instant]]:
        return self._page(table, [str(shard)], iso(until), limit, cursor)

    def upcoming(self, since: Instant, until: Instant) -> tuple[tuple[Ref, Instant], ...]:
        found: list[tuple[Ref, Instant]] = []
        for shard in range(self._dynamo.shards.wake):
            values = {"shard": str(shard), "since": iso(since), "until": iso(until)}
            # Prepared fires may be many, and the jobs that wait lie among them.
            items_of = self._dynamo.query_all("jobs", _BETWEEN, values, index="wake")
            found += [(ref, at) for ref, at in _named("jobs", items_of)
                      if ref.kind == "job" and not sort_keys.is_fire(ref.parts[2])]  # fmt: skip
        return tuple(sorted(found, key=lambda entry: entry[1]))

    def listed(self, group: str, namespace: str, limit: int, cursor: str | None) -> Page[Ref]:
        table: TableName = "jobs" if group == items.WAITS else "catalog"
        parts = [items.list_part(group, namespace, shard) for shard in range(self._dynamo.shards.wake)]
        page = self._page(table, parts, "~", limit, cursor)
        return Page(tuple(ref for ref, _ in page.items), page.cursor)

    def soonest(self, table: TableName, since: Instant, until: Instant, limit: int) -> Soonest:
        found: list[tuple[Ref, Instant]] = []
        complete: list[Instant] = []  # of the shards that have more rows
        for shard in range(self._dynamo.shards.wake):
            values = {"shard": str(shard), "since": iso(since), "until": iso(until)}
            rows, more = self._dynamo.query_first(table, _BETWEEN, values, limit, index="wake")
            found += _named(table, rows)
            complete += [parse_instant(rows[-1]["wake_at"]["S"])] if more else []
        found.sort(key=lambda entry: entry[1])
        complete += [found[limit - 1][1]] if len(found) > limit else []
        return Soonest(tuple(found[:limit]), min(complete, default=None))

    def waking(self, table: TableName, until: Instant, limit: int, cursor: str | None) -> Page[tuple[Ref, Instant]]:
        return self._page(table, [str(shard) for shard in range(self._dynamo.shards.wake)], iso(until), limit, cursor)

    def _page(
        self, table: TableName, parts: Sequence[str], until: str, limit: int, cursor: str | None
    ) -> Page[tuple[Ref, Instant]]:
        """One page of the wake index, part by part. A cursor over all parts in order of time would be as long as they
        are many."""
        number, start = _part_and_start(cursor, len(parts))
        found: list[tuple[Ref, Instant]] = []
        left = limit
        while number < len(parts) and left > 0:
            values = {"part": parts[number], "until": until}
            condition = "wake_shard = :part AND wake_at <= :until"
            rows, start = self._dynamo.query(table, condition, values, limit=left, index="wake", start=start)
            left -= len(rows)
            found += _named(table, rows)
            number = number if start else number + 1
        return Page(tuple(found), encode_cursor([number, start]) if number < len(parts) else None)


def _key_of(item: items.Item) -> Key:
    return Key("runs", item["pk"]["S"], item["sk"]["S"])


def _named(table: TableName, found: Iterable[items.Item]) -> list[tuple[Ref, Instant]]:
    """The refs of items of a wake index with their instants, without those of rows that no step handles."""
    refs = ((kinds.ref_of(Key(table, item["pk"]["S"], item["sk"]["S"])), item) for item in found)
    return [(ref, parse_instant(item["wake_at"]["S"])) for ref, item in refs if ref is not None]


def _part_and_start(cursor: str | None, parts: int) -> tuple[int, Mapping[str, Any] | None]:
    """The part of an index at which a page begins, and its position there. Raises ``bad_cursor``."""
    match decode_cursor(cursor) if cursor is not None else [0, None]:
        case [int(number), start] if not isinstance(number, bool) and 0 <= number < parts:
            return number, checked_start(start)
    raise errors.bad_cursor()


def _before(cursor: str | None, since: Instant, until: Instant) -> str:
    """The key before which a page of audit records begins: that of the last record of the page before, or the end of
    the span. Raises ``bad_cursor`` for a position outside the span."""
    if cursor is None:
        return iso(until)
    position = decode_cursor(cursor)
    if not isinstance(position, str) or not iso(since) <= position < iso(until):
        raise errors.bad_cursor()
    try:
        parse_instant(position[: len(iso(until))])
    except SluiceError:
        raise errors.bad_cursor() from None
    return position
