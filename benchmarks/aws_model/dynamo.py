"""DynamoDB in virtual time: the tables in memory, with durations, units, limits per key, conflicts and throttling.

Units are those of `benchmarks/cost/capacity.py`. A transaction holds its items for half of its duration; another write
to one of them conflicts. What is throttled answers as DynamoDB does: an error, or unprocessed parts of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from benchmarks.aws_model.invocation import CallPath
from benchmarks.aws_model.throughput import Throughput, Warm
from benchmarks.cost import capacity
from benchmarks.cost.capacity import Index, Item
from benchmarks.cost.meter import Schema

Place = tuple[str, str]  # table or index, partition key
RowKey = tuple[str, str, str]
MAX_SIZES = 500_000


class ModelDynamo:
    """The calls of boto3's client that `chalicelib/aws/tables/dynamo.py` makes."""

    def __init__(
        self, tables: Any, schema: Schema, path: CallPath, warm: Mapping[str, Warm] | None = None
    ) -> None:  # fmt: skip
        self._tables = tables
        self._schema = schema
        self._path = path
        self.throughput = Throughput(path.assumed, warm)
        self.conflicts = 0
        # Called with the table, the key and the instant of each row that is written.
        self.on_write: Callable[[RowKey, float], None] = lambda row, at: None
        self._held: dict[RowKey, float] = {}  # rows of transactions, until when
        self._sizes: dict[int, tuple[Item, int]] = {}

    # -- reads -------------------------------------------------------------------------------------------------------

    def get_item(self, **arguments: Any) -> Any:
        half = self._path.there("dynamodb:GetItem")
        table, pk = arguments["TableName"], arguments["Key"]["pk"]["S"]
        self._admit([(table, pk)], "r", half, "dynamodb:GetItem")
        answer = self._tables.get_item(**arguments)
        strong = arguments.get("ConsistentRead", False)
        self._take(table, pk, "r", capacity.get_units(answer.get("Item"), strong))
        self._path.back("dynamodb:GetItem", half)
        return answer

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> Any:
        name = "dynamodb:BatchGetItem"
        half = self._path.there(name, sum(len(request["Keys"]) for request in RequestItems.values()))
        found: dict[str, list[Any]] = {}
        refused: dict[str, Any] = {}
        for table, request in RequestItems.items():

            def place(key: Any, table: str = table) -> list[Place]:
                return [(table, key["pk"]["S"])]

            going, left = self._divided(request["Keys"], place, "r")
            if left:
                refused[table] = {**request, "Keys": left}
            if not going:
                continue
            rows = self._tables.batch_get_item(RequestItems={table: {**request, "Keys": going}})["Responses"][table]
            for key in going:
                size = self._size(self._stored(table, key))
                units = max(1, -(-size // (4 * capacity.KB))) * (1.0 if request.get("ConsistentRead", False) else 0.5)
                self._take(table, key["pk"]["S"], "r", units)
            found[table] = rows
        self._path.back(name, half, sum(map(len, found.values())))
        if refused and not found:
            raise _throttled(name)
        return {"Responses": {table: found.get(table, []) for table in RequestItems}, "UnprocessedKeys": refused}

    def query(self, **arguments: Any) -> Any:
        name = "dynamodb:Query"
        half = self._path.there(name)
        place = arguments.get("IndexName"), _queried(arguments)
        table = arguments["TableName"]
        index = next((one for one in self._schema[table].indexes if one.name == place[0]), None)
        of = f"{table}/{index.name}" if index and not index.local else table
        self._admit([(of, place[1])], "r", half, name)
        answer = self._tables.query(**arguments)
        entries = [entry for item in answer["Items"] if (entry := index.entry(item) if index else item)]
        self._take(of, place[1], "r", capacity.query_units(entries, arguments.get("ConsistentRead", False)))
        self._path.back(name, half, len(answer["Items"]))
        return answer

    # -- writes ------------------------------------------------------------------------------------------------------

    def put_item(self, **arguments: Any) -> Any:
        return self._write("dynamodb:PutItem", self._tables.put_item, arguments)

    def update_item(self, **arguments: Any) -> Any:
        return self._write("dynamodb:UpdateItem", self._tables.update_item, arguments)

    def delete_item(self, **arguments: Any) -> Any:
        return self._write("dynamodb:DeleteItem", self._tables.delete_item, arguments)

    def batch_write_item(self, RequestItems: Mapping[str, Sequence[Any]]) -> Any:
        name = "dynamodb:BatchWriteItem"
        half = self._path.there(name, sum(map(len, RequestItems.values())))
        refused: dict[str, Any] = {}
        done = 0
        for table, requests in RequestItems.items():

            def places(request: Any, table: str = table) -> list[Place]:
                write = _of_batch(table, request)
                return self._places(write, self._stored(table, _key(write)))

            going, left = self._divided(requests, places, "w")
            held = [one for one in going if self._is_held(table, _key(_of_batch(table, one)))]
            going, left = [one for one in going if one not in held], [*left, *held]
            if left:
                refused[table] = left
            if going:
                before = [self._stored(table, _key(_of_batch(table, one))) for one in going]
                self._tables.batch_write_item(RequestItems={table: going})
                for request, old in zip(going, before, strict=True):
                    self._bill(_of_batch(table, request), old, transactional=False)
            done += len(going)
        self._path.back(name, half, done)
        if refused and not done:
            raise _throttled(name)
        return {"UnprocessedItems": refused}

    def transact_write_items(self, TransactItems: Sequence[Mapping[str, Any]], **arguments: Any) -> Any:
        name = "dynamodb:TransactWriteItems"
        half = self._path.there(name, len(TransactItems))
        writes = [write for item in TransactItems for write in item.values()]
        before = [self._stored(write["TableName"], _key(write)) for write in writes]
        reasons = [self._reason(write, old) for write, old in zip(writes, before, strict=True)]
        if any(reason != "None" for reason in reasons):
            self._path.back(name, half, 0)
            raise ClientError(
                {
                    "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                    "CancellationReasons": [{"Code": reason} for reason in reasons],
                },
                "TransactWriteItems",
            )
        try:
            return self._tables.transact_write_items(TransactItems=TransactItems, **arguments)
        finally:
            until = self._path.timeline.local + half
            for write, old in zip(writes, before, strict=True):
                self._bill(write, old, transactional=True)
                if self._path.invocation is not None:
                    self._held[_row(write)] = until
            self._path.back(name, half, len(writes))

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _write(self, name: str, call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        half = self._path.there(name)
        old = self._stored(arguments["TableName"], _key(arguments))
        if self._is_held(arguments["TableName"], _key(arguments)):
            self.conflicts += 1
            self._path.back(name, half, 0)
            raise ClientError({"Error": {"Code": "TransactionConflictException", "Message": "a transaction"}}, name)
        self._admit(self._places(arguments, old), "w", half, name)
        try:
            return call(**arguments)
        finally:
            self._bill(arguments, old, transactional=False)
            self._path.back(name, half)

    def _reason(self, write: Mapping[str, Any], old: Item | None) -> str:
        if self._is_held(write["TableName"], _key(write)):
            self.conflicts += 1
            return "TransactionConflict"
        if self._path.invocation is None or self.throughput.admits(self._places(write, old), "w", self._now):
            return "None"
        return "ThrottlingError"

    @property
    def _now(self) -> float:
        return self._path.timeline.local

    def _is_held(self, table: str, key: Mapping[str, Any]) -> bool:
        return self._held.get((table, key["pk"]["S"], key["sk"]["S"]), 0.0) > self._now

    def _stored(self, table: str, key: Mapping[str, Any]) -> Item | None:
        """The stored item; this read is the model's own."""
        found: Item | None = self._tables.get_item(TableName=table, Key=key).get("Item")
        return found

    def _places(self, write: Mapping[str, Any], old: Item | None) -> list[Place]:
        """What a write needs throughput of: the key of its table, and those of the index entries that it has or had."""
        table = write["TableName"]
        places = {(table, _key(write)["pk"]["S"]): None}
        for index in self._schema[table].indexes:
            for item in (old, write.get("Item")):
                if not index.local and item is not None and _is_in(index, item):
                    places[f"{table}/{index.name}", item[index.keys[0]]["S"]] = None
        return list(places)

    def _divided(
        self, requests: Iterable[Any], places: Callable[[Any], list[Place]], kind: str
    ) -> tuple[list[Any], list[Any]]:
        """The requests of a batch that go through, and those that are throttled."""
        going: list[Any] = []
        left: list[Any] = []
        free = self._path.invocation is None
        for request in requests:
            (going if free or self.throughput.admits(places(request), kind, self._now) else left).append(request)
        return going, left

    def _admit(self, places: list[Place], kind: str, half: float, name: str) -> None:
        """Raises the error of a throttled call if one of these places has no throughput left."""
        if self._path.invocation is not None and not self.throughput.admits(places, kind, self._now):
            self._path.back(name, half, 0)
            raise _throttled(name)

    def _bill(self, write: Mapping[str, Any], old: Item | None, *, transactional: bool) -> None:
        """Take the units of a write that has been tried. A refused one takes them from the table alone."""
        if self._path.invocation is None:
            return
        table, key = write["TableName"], _key(write)
        new = self._stored(table, key)
        units = max(1, -(-max(self._size(old), self._size(new)) // capacity.KB)) * (2 if transactional else 1)
        self._take(table, key["pk"]["S"], "w", units)
        if old is new:
            return
        self.on_write(_row(write), self._now)
        for index in self._schema[table].indexes:
            name = table if index.local else f"{table}/{index.name}"
            for partition, units in _entries(index, old, new, transactional):
                self._take(name, partition, "w", units)

    def _size(self, item: Item | None) -> int:
        """The bytes of an item. Stored items never change, so each is measured once."""
        if item is None:
            return 0
        known = self._sizes.get(id(item))
        if known is None or known[0] is not item:
            if len(self._sizes) > MAX_SIZES:
                self._sizes.clear()
            known = self._sizes[id(item)] = (item, capacity.size(item))
        return known[1]

    def _take(self, name: str, key: str, kind: str, units: float) -> None:
        if self._path.invocation is not None:
            self.throughput.take(name, key, kind, units, self._now)


def _is_in(index: Index, item: Item | None) -> bool:
    """Whether an item has an entry in an index."""
    return item is not None and all(key in item for key in index.keys)


def _entries(index: Index, old: Item | None, new: Item | None, transactional: bool) -> Iterator[tuple[str, int]]:
    """The units that a write takes of an index, by partition key."""
    was, is_now = _is_in(index, old), _is_in(index, new)
    if index.whole:
        units = capacity.index_units(index, old, new, transactional)
        item = new if is_now else old
        if units and item is not None:
            yield item[index.keys[0]]["S"], units
        return
    # An entry has keys alone, so it is under 1 KB.
    present = [item for there, item in ((was, old), (is_now, new)) if there and item is not None]
    if len(present) == 2 and all(present[0][key] == present[1][key] for key in index.keys):
        return
    factor = 2 if transactional and index.local else 1
    for item in present:
        yield item[index.keys[0]]["S"], factor


def _key(write: Mapping[str, Any]) -> dict[str, Any]:
    source = write.get("Key") or write["Item"]
    return {"pk": source["pk"], "sk": source["sk"]}


def _row(write: Mapping[str, Any]) -> RowKey:
    key = _key(write)
    return write["TableName"], key["pk"]["S"], key["sk"]["S"]


def _of_batch(table: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """One write of a batch as the arguments of a single write."""
    if "DeleteRequest" in request:
        return {"TableName": table, "Key": request["DeleteRequest"]["Key"]}
    return {"TableName": table, "Item": request["PutRequest"]["Item"]}


def _queried(arguments: Mapping[str, Any]) -> str:
    """The partition key of a query: the value of its first condition."""
    value = arguments["KeyConditionExpression"].split()[2]
    return str(arguments["ExpressionAttributeValues"][value]["S"])


def _throttled(name: str) -> ClientError:
    code = "ProvisionedThroughputExceededException"
    return ClientError({"Error": {"Code": code, "Message": "throughput exceeded"}}, name.partition(":")[2])
