"""Definitions, the reverse index and the partition registry. Implements `ports.Catalog`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core.definitions import prefixes
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows import kinds
from chalicelib.core.rows.access import AccessRow, AllowedRow
from chalicelib.core.rows.definition import Definition, Listing, PrefixRow
from chalicelib.core.rows.event import ManifestRow, Partition
from chalicelib.core.rows.kinds import NAMESPACES
from chalicelib.core.rows.schedule import Subscription, Version
from chalicelib.ports import Kind, Page

R = TypeVar("R")
NEAR_PREFIXES = 20  # rows of less than 200 bytes: one read of 4 KB
_VERSION = "VERSION#"  # how the sort keys of versions begin
# How long a process uses an allow-list that it has read, or whether there are several namespaces. A change holds for
# every call that begins later than this after the answer to its request.
ALLOWED_FOR: Millis = 5 * SECOND
MAX_ALLOWED = 1_000  # allow-lists in memory, a few KB each

# Allow-lists by namespace, and under an empty name `is_shared`, each with the instant of its read.
Lately = dict[str, tuple[Instant, Any]]


class DynamoCatalog:
    def __init__(self, dynamo: Dynamo, lately: Lately | None = None) -> None:
        self._dynamo = dynamo
        self._lately: Lately = {} if lately is None else lately

    def over(self, dynamo: Dynamo) -> DynamoCatalog:
        """The same catalog over another `Dynamo`; what was read lately is shared."""
        return DynamoCatalog(dynamo, self._lately)

    def versions(self, schedule: str, limit: int, before: int | None = None) -> tuple[Version, ...]:
        last = f"{_VERSION}~" if before is None else kinds.key(Version, schedule, before - 1).sk
        values = {"pk": f"SCHEDULE#{schedule}", "first": _VERSION, "last": last}
        between = "pk = :pk AND sk BETWEEN :first AND :last"
        found, _ = self._dynamo.query_first("catalog", between, values, limit, forward=False)
        return items.rows_of(Version, found)

    def allowed_lately(self, namespace: str, now: Instant) -> AllowedRow | None:
        return self._read_lately(
            namespace, now, partial(self._dynamo.get, kinds.key(AllowedRow, namespace), AllowedRow)
        )

    def is_shared(self, joining: str = "") -> bool:
        found, _ = self._dynamo.query("catalog", "pk = :pk", {"pk": NAMESPACES}, limit=3)
        return len({joining, *(item["sk"]["S"] for item in found)} - {"", SYSTEM}) > 1

    def is_shared_lately(self, now: Instant) -> bool:
        return self._read_lately("", now, self.is_shared)

    def _read_lately(self, name: str, now: Instant, read: Callable[[], R]) -> R:
        known = self._lately.get(name)
        if known is None or not known[0] <= now < known[0] + ALLOWED_FOR:
            if len(self._lately) >= MAX_ALLOWED:
                self._lately.clear()
            known = self._lately[name] = now, read()
        found: R = known[1]
        return found

    def accesses(self, limit: int, cursor: str | None) -> Page[AccessRow]:
        return self._list(AccessRow, "ACCESS", "", limit, cursor)

    def definitions(self, kind: Kind, parent: str, limit: int, cursor: str | None) -> Page[Definition]:
        return self._list(Definition, *_place(kind, parent), limit, cursor)

    def schedules(self, app: str, limit: int, cursor: str | None, beginning: str = "") -> Page[str]:
        pk, prefix = _place("schedule", app)
        page = self._list(Listing, pk, f"{prefix}{beginning}", limit, cursor)
        return Page(tuple(row.schedule for row in page.items), page.cursor)

    def listings(self, app: str, limit: int, cursor: str | None) -> Page[Listing]:
        return self._list(Listing, *_place("schedule", app), limit, cursor)

    def count(self, kind: Kind, parent: str) -> int:
        pk, prefix = _place(kind, parent)
        return self._dynamo.count("catalog", "pk = :pk AND begins_with(sk, :sk)", {"pk": pk, "sk": prefix})

    def schedules_after(self, app: str, after: str, limit: int) -> Page[str]:
        pk, prefix = _place("schedule", app)
        # '!' sorts before each character of a name, and '$' right after '#'.
        values = {"pk": pk, "first": f"{prefix}{after}!" if after else prefix, "last": f"{prefix[:-1]}$"}
        found, more = self._dynamo.query("catalog", "pk = :pk AND sk BETWEEN :first AND :last", values, limit=limit)
        names = tuple(row.schedule for row in items.rows_of(Listing, found))
        return Page(names, names[-1].rpartition(".")[2] if more and names else None)

    def messages(self, app: str, limit: int, cursor: str | None) -> Page[Listing]:
        return self._list(Listing, *_place("message", app), limit, cursor)

    def dataset_of(self, bucket: str, key: str) -> tuple[str, Dataset] | None:
        folders = prefixes.folders_of(key)
        row = self._matched_prefix(bucket, folders) if folders else None
        definition = self._dynamo.get(kinds.key(Definition, "dataset", row.dataset), Definition) if row else None
        return (row.dataset, Dataset.model_validate(definition.document)) if row and definition else None

    def _matched_prefix(self, bucket: str, folders: list[str]) -> PrefixRow | None:
        """The row of the dataset that gets the objects of the innermost folder. All rows of the folders sort before the
        key of the innermost folder, the longest last, with rows of sibling folders in between. So a backward query
        finds the row with one read instead of one read per folder. If too many rows lie in between, each folder is read
        by its key.
        """
        first, last = kinds.key(PrefixRow, bucket, folders[0]), kinds.key(PrefixRow, bucket, folders[-1])
        values = {"pk": last.pk, "first": first.sk, "last": last.sk}
        between = "pk = :pk AND sk BETWEEN :first AND :last"
        near, more = self._dynamo.query("catalog", between, values, limit=NEAR_PREFIXES, forward=False)
        matched = prefixes.matched(row for row in items.rows_of(PrefixRow, near) if row.prefix in folders)
        return prefixes.matched(self._prefix_rows(bucket, folders)) if more and matched is None else matched

    def _prefix_rows(self, bucket: str, folders: list[str]) -> list[PrefixRow]:
        found = self._dynamo.get_many([kinds.key(PrefixRow, bucket, folder) for folder in folders])
        return sorted(items.rows_of(PrefixRow, found.values()), key=lambda row: len(row.prefix))

    def prefixes_around(self, bucket: str, prefix: str) -> tuple[PrefixRow, ...]:
        return tuple(self._prefix_rows(bucket, prefixes.path_of(prefix)))

    def prefixes_in(self, bucket: str, prefix: str, limit: int, cursor: str | None) -> Page[PrefixRow]:
        place = kinds.key(PrefixRow, bucket, prefix)
        return self._list(PrefixRow, place.pk, place.sk, limit, cursor)

    def subscriptions(self, event_key: str, limit: int, cursor: str | None) -> Page[Subscription]:
        # '$' sorts right after '#', so the page begins after all rows of the last schedule of the previous page.
        values = {"pk": f"TRIGGER#{event_key}", "after": f"{cursor}$" if cursor else "!"}
        found, more = self._dynamo.query("catalog", "pk = :pk AND sk > :after", values, limit=limit)
        rows = items.rows_of(Subscription, found)
        if more and len({row.schedule for row in rows}) > 1:
            rows = tuple(row for row in rows if row.schedule != rows[-1].schedule)
        return Page(rows, rows[-1].schedule if more and rows else None)

    def manifests(self, dataset: str, limit: int) -> tuple[ManifestRow, ...]:
        return self._list(ManifestRow, f"DATASET#{dataset}", "MANIFEST#", limit, None, forward=False).items

    def partitions(
        self,
        dataset: str,
        limit: int,
        cursor: str | None,
        forward: bool = True,
        beginning: str = "",
        since: str = "",
    ) -> Page[Partition]:
        first = f"PARTITION#{since}" if since else ""
        return self._list(Partition, f"DATASET#{dataset}", f"PARTITION#{beginning}", limit, cursor, forward, first)

    def _list(
        self,
        kind: type[R],
        pk: str,
        prefix: str,
        limit: int,
        cursor: str | None,
        forward: bool = True,
        first: str = "",
    ) -> Page[R]:
        """A page of the rows of a partition whose sort keys begin with the prefix, from ``first`` on if it is given."""
        condition, values = "pk = :pk", {"pk": pk}
        if first:
            condition = "pk = :pk AND sk BETWEEN :first AND :last"
            values |= {"first": first, "last": f"{prefix}\U0010ffff"}
        elif prefix:
            condition, values = "pk = :pk AND begins_with(sk, :sk)", {"pk": pk, "sk": prefix}
        return self._dynamo.page(kind, "catalog", condition, values, limit, cursor, forward)


def _place(kind: str, parent: str) -> tuple[str, str]:
    """The partition key under which a kind of definitions is listed, and the prefix of its sort keys."""
    if kind == "namespace":
        return NAMESPACES, ""
    of_app = kind in ("workflow", "schedule", "message", "dag")
    return f"{'APP' if of_app else 'NS'}#{parent}", f"{kind.upper()}#"
