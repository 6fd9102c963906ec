"""DynamoDB in this process: atomic, strongly consistent, and strict.

It answers only the calls that the service makes (`chalicelib/aws/tables/dynamo.py`). A test compares it with moto, call
by call. Items are never changed in place, so an answer may be the stored item itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.aws.tables.items import is_listed
from sluice.testing.expressions import Bound, Invalid, check_bindings, condition, projection, update

Key = tuple[str, str]
Item = Mapping[str, Any]
MAX_ITEM = 400_000  # bytes of an item, approximately


class MemoryTables:
    """A replacement for the DynamoDB client of boto3. It has none of the client's events."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_: None))

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._lock = threading.RLock()
        self.before_call: Callable[[], None] = _nothing
        self.after_write: Callable[[], None] = _nothing  # called after a write is stored, before it is answered
        # The item that is stored when an item replaces another one or none.
        self.as_stored: Callable[[Item | None, Item], Item] = _as_written
        self.known: dict[int, tuple[Item, Any]] = {}  # items that a test has read, by identity
        self._tokens: set[str] = set()  # of transactions that were carried out

    def create_table(self, TableName: str, **arguments: Any) -> None:
        self._tables[TableName] = _Table(arguments)

    def get_item(self, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:
        self.before_call()
        found = self._tables[TableName].items.get(_key(Key))
        return {"Item": found} if found is not None else {}

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        self.before_call()
        answers: dict[str, list[Item]] = {}
        with self._lock:
            for name, asked in RequestItems.items():
                rows = (self._tables[name].items.get(_key(key)) for key in asked["Keys"])
                chosen = projection(asked)
                answers[name] = [chosen(row) for row in rows if row is not None]
        return {"Responses": answers, "UnprocessedKeys": {}}

    def batch_write_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        self.before_call()
        with self._lock:
            for name, requests in RequestItems.items():
                for request in requests:
                    if "PutRequest" in request:
                        self._store(
                            self._tables[name], _key(request["PutRequest"]["Item"]), request["PutRequest"]["Item"]
                        )
                    else:
                        self._store(self._tables[name], _key(request["DeleteRequest"]["Key"]), None)
        self.after_write()
        return {"UnprocessedItems": {}}

    def put_item(self, **arguments: Any) -> None:
        self._alone("Put", arguments)

    def update_item(self, **arguments: Any) -> dict[str, Any]:
        return {"Attributes": self._alone("Update", arguments)}

    def delete_item(self, **arguments: Any) -> None:
        self._alone("Delete", arguments)

    def transact_write_items(
        self,
        TransactItems: Sequence[Mapping[str, Any]],
        ClientRequestToken: str = "",
    ) -> None:
        self.before_call()
        if ClientRequestToken in self._tokens:
            return
        actions = [next(iter(action.items())) for action in TransactItems]
        targets = [(arguments["TableName"], _target(arguments)) for _, arguments in actions]
        if len(set(targets)) < len(targets) or len(targets) > 100:
            raise _error("ValidationException", "an item twice, or more than 100 items, in one transaction")
        with self._lock:
            reasons = [{"Code": "None" if self._holds(arguments) else "ConditionalCheckFailed"}
                       for _, arguments in actions]  # fmt: skip
            if any(reason["Code"] != "None" for reason in reasons):
                raise _error("TransactionCanceledException", "a condition does not hold", CancellationReasons=reasons)
            changes = [self._change(action, arguments) for action, arguments in actions]
            for change in changes:
                self._store(*change)
            if ClientRequestToken:
                self._tokens.add(ClientRequestToken)
        self.after_write()

    def query(self, **arguments: Any) -> dict[str, Any]:
        self.before_call()
        bound = Bound(arguments)
        test = condition(arguments["KeyConditionExpression"])
        check_bindings(bound, arguments["KeyConditionExpression"])
        with self._lock:
            table = self._tables[arguments["TableName"]]
            part, by = table.part(arguments.get("IndexName"), arguments["KeyConditionExpression"], bound)
            rows = sorted((row for row in part if test(row, bound)), key=lambda row: _place(row, by))
        if not arguments.get("ScanIndexForward", True):
            rows.reverse()
        if "ExclusiveStartKey" in arguments:
            rows = _behind(rows, arguments["ExclusiveStartKey"], by, arguments.get("ScanIndexForward", True))
        page = rows[: arguments["Limit"]]
        shown = table.shown(page, arguments.get("IndexName"))
        # As in DynamoDB, a full page has a LastEvaluatedKey, even if no item follows.
        if len(page) < arguments["Limit"]:
            return {"Items": shown}
        return {"Items": shown, "LastEvaluatedKey": table.keys_of(page[-1], arguments.get("IndexName"))}

    def scan(
        self,
        TableName: str,
        ConsistentRead: bool = False,
        ExclusiveStartKey: Item | None = None,  # noqa: N803
        Limit: int = 1_000,  # noqa: N803
    ) -> dict[str, Any]:
        self.before_call()
        with self._lock:
            keys = sorted(self._tables[TableName].items)
            after = _key(ExclusiveStartKey) if ExclusiveStartKey is not None else ("", "")
            page = [key for key in keys if key > after][:Limit]
            shown = {"Items": [self._tables[TableName].items[key] for key in page]}
        if len(page) < Limit:
            return shown
        return {**shown, "LastEvaluatedKey": {"pk": {"S": page[-1][0]}, "sk": {"S": page[-1][1]}}}

    def saved(self) -> dict[str, Any]:
        """All items of all tables, as the argument of `restore`."""
        return {name: table.saved() for name, table in self._tables.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        for name, kept in saved.items():
            self._tables[name].restore(kept)

    @property
    def digest(self) -> int:
        """A hash of all items. Tables with the same items have the same digest."""
        return hash(tuple(table.digest for table in self._tables.values()))

    def rows(self) -> Iterator[tuple[str, Item]]:
        """Every item, with the name of its table."""
        for name, table in self._tables.items():
            for row in list(table.items.values()):
                yield name, row

    def waking(self) -> Iterator[tuple[str, Item]]:
        """Every item that needs attention at an instant, its ``wake_at``, with the name of its table."""
        for name, table in self._tables.items():
            yield from ((name, row) for row in table.waking())

    def item(self, table: str, pk: str, sk: str) -> Item | None:
        """The stored item with this key; no call of the service."""
        return self._tables[table].items.get((pk, sk))

    def answer_of(self, table: str, index: str | None) -> Callable[[Item], Item | None]:
        """A function that returns the part of an item that a query answers with; None for an item that the index does
        not contain.
        """
        return self._tables[table].answer_of(index)

    def _alone(self, action: str, arguments: dict[str, Any]) -> Item | None:
        self.before_call()
        with self._lock:
            if not self._holds(arguments):
                stored = self._tables[arguments["TableName"]].items.get(_target(arguments))
                shown = "ReturnValuesOnConditionCheckFailure" in arguments and stored is not None
                more = {"Item": stored} if shown else {}
                raise _error("ConditionalCheckFailedException", "the condition does not hold", **more)
            table, key, item = self._change(action, arguments)
            self._store(table, key, item)
        self.after_write()
        return item

    def _store(self, table: _Table, key: Key, item: Item | None) -> None:
        before = table.items.get(key)
        table.replace(key, item if item is None or item is before else self.as_stored(before, item))

    def _holds(self, arguments: Mapping[str, Any]) -> bool:
        expected, bound = arguments.get("ConditionExpression"), Bound(arguments)
        try:
            check_bindings(bound, expected, arguments.get("UpdateExpression"))
            stored = self._tables[arguments["TableName"]].items.get(_target(arguments), {})
            return expected is None or condition(expected)(stored, bound)
        except Invalid as error:
            raise _error("ValidationException", str(error)) from error

    def _change(self, action: str, arguments: Mapping[str, Any]) -> tuple[_Table, Key, Item | None]:
        table, key = self._tables[arguments["TableName"]], _target(arguments)
        stored = table.items.get(key)
        match action:
            case "Put":
                return table, key, arguments["Item"]
            case "Delete":
                return table, key, None
            case "Update":
                try:
                    base = stored if stored is not None else arguments["Key"]
                    return table, key, update(arguments["UpdateExpression"], base, Bound(arguments))
                except Invalid as error:
                    raise _error("ValidationException", str(error)) from error
            case _:
                return table, key, stored


class _Table:
    """Items by key, and by the value of every attribute that is the hash of an index."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        indexes = [*arguments.get("GlobalSecondaryIndexes", []), *arguments.get("LocalSecondaryIndexes", [])]
        self._ranges = {index["IndexName"]: index["KeySchema"][1]["AttributeName"] for index in indexes}
        self._hashes = {index["IndexName"]: index["KeySchema"][0]["AttributeName"] for index in indexes}
        self._whole = {index["IndexName"] for index in indexes if index["Projection"]["ProjectionType"] == "ALL"}
        self.items: dict[Key, Item] = {}
        # The items by the attributes that are the hash of the table or of an index, and by their values.
        self._attributes = ("pk", *dict.fromkeys(hash_ for hash_ in self._hashes.values() if hash_ != "pk"))
        self._parts: dict[str, dict[str, dict[Key, Item]]] = {name: {} for name in self._attributes}
        self._hashes_of: dict[Key, int] = {}  # of the items that the digest contains
        self._changed: set[Key] = set()  # the items whose hash must be computed again
        self._digest = 0

    def saved(self) -> Any:
        self.digest  # noqa: B018 - so that nothing is left to be hashed at each restore
        return dict(self.items), _copied(self._parts), dict(self._hashes_of), self._digest

    def restore(self, saved: Any) -> None:
        items, parts, hashes, self._digest = saved
        self.items, self._hashes_of, self._changed = dict(items), dict(hashes), set()
        self._parts = _copied(parts)

    @property
    def digest(self) -> int:
        for key in self._changed:
            self._digest ^= self._hashes_of.pop(key, 0)
            if key in self.items:
                self._hashes_of[key] = hash((key, _spelled(self.items[key])))
                self._digest ^= self._hashes_of[key]
        self._changed.clear()
        return self._digest

    def replace(self, key: Key, item: Item | None) -> None:
        before = self.items.pop(key, None)
        self._changed.add(key)
        if before is not None:
            for attribute in self._attributes:
                if attribute in before:
                    value = before[attribute]["S"]
                    part = self._parts[attribute][value]
                    del part[key]
                    if not part:
                        del self._parts[attribute][value]
        if item is None:
            return
        if len(str(item)) > MAX_ITEM:
            raise _error("ValidationException", f"the item {key} is larger than DynamoDB takes")
        self.items[key] = item
        for attribute in self._attributes:
            if attribute in item:
                self._parts[attribute].setdefault(item[attribute]["S"], {})[key] = item

    def waking(self) -> Iterator[Item]:
        """The items of the wake index, without those of its lists."""
        for rows in self._parts.get("wake_shard", {}).values():
            yield from (row for row in rows.values() if not is_listed(row))

    def part(self, index: str | None, expression: str, bound: Bound) -> tuple[list[Item], str]:
        """The items of one partition of the table or of an index, and the attribute that orders them."""
        name, _, value, *_ = expression.split()
        attribute = bound.names.get(name, name)
        by = self._ranges[index] if index else "sk"
        found = self._parts.get(attribute, {}).get(bound.values[value]["S"], {})
        return [row for row in found.values() if by in row], by

    def shown(self, page: list[Item], index: str | None) -> list[Item]:
        return page if index is None or index in self._whole else [self.keys_of(row, index) for row in page]

    def answer_of(self, index: str | None) -> Callable[[Item], Item | None]:
        by = self._ranges[index] if index else "sk"
        return lambda row: self.shown([row], index)[0] if by in row else None

    def keys_of(self, row: Item, index: str | None) -> dict[str, Any]:
        wanted = {"pk", "sk"} | ({self._hashes[index], self._ranges[index]} if index else set())
        return {name: row[name] for name in wanted}


def _nothing() -> None:
    pass


def _copied(parts: Mapping[str, Mapping[str, Mapping[Key, Item]]]) -> dict[str, dict[str, dict[Key, Item]]]:
    return {name: {value: dict(part) for value, part in of.items()} for name, of in parts.items()}


def _as_written(before: Item | None, item: Item) -> Item:
    return item


def _key(row: Item) -> Key:
    return row["pk"]["S"], row["sk"]["S"]


def _target(arguments: Mapping[str, Any]) -> Key:
    return _key(arguments["Item"] if "Item" in arguments else arguments["Key"])


def _spelled(item: Item) -> str:
    return str(sorted(item.items()))


def _place(row: Item, by: str) -> tuple[str, Key]:
    return row[by]["S"], _key(row)


def _behind(rows: list[Item], start: Item, by: str, forward: bool) -> list[Item]:
    place = _place(start, by)
    return [row for row in rows if (_place(row, by) > place if forward else _place(row, by) < place)]


def _error(code: str, message: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, **more}, "memory")
