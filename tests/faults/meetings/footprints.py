"""What a call reads and writes. Two calls commute if neither writes what the other reads or writes.

The unit is an item of a table, a query with its key condition, a target, an object in a bucket, or the clock. A call
carries the code of its invocation up to the next call, so the footprint has what that code reads and changes, too.
Messages in a queue commute: SQS promises no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from sluice.testing.expressions import Bound, condition
from sluice.testing.memory_tables import MemoryTables
from tests.support.snapshot import parts_of, things
from tests.support.world import World

Place = tuple[str, ...]
Item = Mapping[str, Any]
Seen = Literal["nothing", "runs", "everything"]
HINTS, KEPT, EMR, QUEUE = ("MemoryHints",), ("MemoryPayloads",), ("FakeEmr",), ("FakeQueue",)
# Parts of which most accesses say nothing: a sent hint is read when hints are taken, and a call names its payload.
TAKEN = {HINTS: {"due"}, KEPT: set[str]()}
PAYLOADS = "payloads"
RUNS = "RunsTable"


@dataclass(frozen=True, slots=True)
class Query:
    """The items that a query asks for."""

    table: str
    test: Callable[[Item], bool]
    shown: Callable[[Item], Any]

    def differs(self, before: Item | None, after: Item | None) -> bool:
        """Whether the answer can differ after a write that replaced one item by another one."""
        return self._seen(before) != self._seen(after)

    def _seen(self, item: Item | None) -> Any:
        return self.shown(item) if item is not None and self.test(item) else None


@dataclass(slots=True)
class Footprint:
    """``adds`` are the queues to which the call sends. ``all`` conflicts with every call."""

    call: str = ""
    reads: set[Place] = field(default_factory=set)
    writes: set[Place] = field(default_factory=set)
    adds: set[Place] = field(default_factory=set)
    changes: list[tuple[str, Item | None, Item | None]] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    all: bool = False

    def conflicts(self, other: Footprint) -> bool:
        """Whether the two calls may have another effect, or other answers, in the other order."""
        return self.all or other.all or self._disturbs(other) or other._disturbs(self)

    def _disturbs(self, other: Footprint) -> bool:
        if not self.writes.isdisjoint(other.reads) or not self.writes.isdisjoint(other.writes):
            return True
        if not self.writes.isdisjoint(other.adds) or not self.adds.isdisjoint(other.reads):
            return True
        return any(
            query.table == table and query.differs(before, after)
            for query in other.queries
            for table, before, after in self.changes
        )

    @property
    def text(self) -> str:
        """Equal for two calls that do the same."""
        places = [sorted(map(repr, part)) for part in (self.reads, self.writes, self.adds)]
        return f"{self.call} {places} {self.all}"


class Recorder:
    """Writes down the footprint of each call, of the invocations and of what happens while time passes."""

    def __init__(self, world: World) -> None:
        self._world, self._now = world, Footprint()
        self._parts: dict[str, str] = {}
        self._classes = [(thing, type(thing), self._noting(type(thing))) for thing in things(world)]

    def begin(self) -> None:
        """Forget what came before."""
        self._parts = parts_of(self._world)
        self._now = Footprint()

    def end(self, seen: Seen = "nothing") -> Footprint:
        """The footprint since the last one. ``seen`` is what the promise of an invocation depends on that ends here."""
        made, self._now = self._now, Footprint()
        parts = parts_of(self._world)
        self._now = Footprint()  # without what `parts_of` reads
        for name in parts:
            if parts[name] != self._parts[name]:
                self._changed(made, (name,))
        if seen == "everything":
            made.all = True
        elif seen == "runs":
            made.reads |= {EMR, QUEUE}
            made.queries.append(Query(RUNS, lambda item: item["sk"]["S"].startswith("A#"), lambda item: item))
        self._parts = parts
        return made

    def _changed(self, made: Footprint, part: Place) -> None:
        if part == HINTS and made.call == "hints.send" and HINTS not in made.reads:
            made.adds.add(part)
        elif part != KEPT or not any(place[0] == PAYLOADS for place in made.writes):
            made.writes.add(part)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note when code between two calls reads a part of the world, such as the clock or the runs of a target."""
        for thing, plain, noting in self._classes:
            assert type(thing) is plain
            thing.__class__ = noting
        try:
            yield
        finally:
            for thing, plain, _ in self._classes:
                thing.__class__ = plain

    def _noting(self, plain: type) -> type:
        """A class like another one, that notes each access to an attribute."""
        part = (plain.__name__,)
        names = TAKEN.get(part)

        def get(thing: Any, name: str) -> Any:
            if names is None or name in names:
                self._now.reads.add(part)
            return plain.__getattribute__(thing, name)

        return type(plain.__name__, (plain,), {"__getattribute__": get})

    def around(self, what: str, args: tuple[Any, ...], named: dict[str, Any], call: Callable[[], Any]) -> Any:
        """Make a call, and note what it reads and writes."""
        made = self._now
        kind, _, method = what.partition(".")
        made.call = made.call or what
        if kind == "tables":
            return self._at_tables(made, method, named, call)
        if kind == PAYLOADS:
            named_by = made.writes if method.startswith("put_") else made.reads
            named_by.add((PAYLOADS, method.removeprefix("put_"), str(args[0])))
        return call()

    def _at_tables(self, made: Footprint, method: str, named: dict[str, Any], call: Callable[[], Any]) -> Any:
        tables: MemoryTables = self._world.tables
        if method == "query":
            made.queries.append(_query(tables, named))
            return call()
        keys = list(_keys(method, named))
        made.reads.update(keys)
        if method in ("get_item", "batch_get_item"):
            return call()
        before = [tables.item(*key) for key in keys]
        try:
            return call()
        finally:
            for key, old in zip(keys, before, strict=True):
                new = tables.item(*key)
                if new != old:
                    made.writes.add(key)
                    made.changes.append((key[0], old, new))


def _query(tables: MemoryTables, named: dict[str, Any]) -> Query:
    bound, test = Bound(named), condition(named["KeyConditionExpression"])
    table, index = named["TableName"], named.get("IndexName")
    return Query(table, lambda item: test(item, bound), tables.answer_of(table, index))


def _keys(method: str, named: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """The items that a request names, each with its table."""
    match method:
        case "batch_get_item":
            for table, wanted in named["RequestItems"].items():
                for key in wanted["Keys"]:
                    yield _key(table, key)
        case "batch_write_item":
            for table, requests in named["RequestItems"].items():
                for request in requests:
                    put = request.get("PutRequest")
                    yield _key(table, put["Item"] if put else request["DeleteRequest"]["Key"])
        case "transact_write_items":
            for action in named["TransactItems"]:
                [arguments] = action.values()
                yield _key(arguments["TableName"], arguments.get("Item") or arguments["Key"])
        case _:
            yield _key(named["TableName"], named.get("Item") or named["Key"])


def _key(table: str, row: Item) -> tuple[str, str, str]:
    return table, row["pk"]["S"], row["sk"]["S"]
