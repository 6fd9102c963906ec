"""A DynamoDB client that bills: around every call it reads the items before and after, and counts the units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from benchmarks.cost import capacity
from benchmarks.cost.capacity import Index, Item
from benchmarks.cost.tally import Tally


@dataclass(frozen=True, slots=True)
class Table:
    """The data of a table for the meter: the name in the report, and its indexes."""

    title: str
    indexes: tuple[Index, ...]


# The tables by the names in calls.
Schema = Mapping[str, Table]
_REFUSED = ("ConditionalCheckFailedException", "TransactionCanceledException")


def table_of(title: str, arguments: Mapping[str, Any]) -> Table:
    """A table from the arguments of CreateTable."""
    table_keys = _names(arguments["KeySchema"])
    indexes = (
        Index(
            name=index["IndexName"],
            keys=_names(index["KeySchema"]),
            table_keys=table_keys,
            local=kind == "LocalSecondaryIndexes",
            whole=index["Projection"]["ProjectionType"] == "ALL",
        )
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
        for index in arguments.get(kind, ())
    )
    return Table(title, tuple(indexes))


def row_kind(item: Mapping[str, Any]) -> str:
    """The kind of a row, derived from its key as in `core/rows/kinds.py`."""
    pk, sk = str(item["pk"]["S"]), str(item["sk"]["S"])
    head = sk.partition("#")[0]
    owner, _, name = pk.partition("#")
    if head == "STATE" and owner == "LIMIT":
        return f"LIMIT {name.partition(':')[0]}"
    return {"A": "RUN"}.get(head, head)


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item["pk"]["S"]), str(item["sk"]["S"])


class MeteredDynamo:
    """The calls that `aws/tables/dynamo.py` makes, on a real client. `schema` maps a table's name to its indexes."""

    def __init__(self, client: Any, schema: Schema, tally: Tally) -> None:
        self._client = client
        self._schema = schema
        self.tally = tally

    def put_item(self, **arguments: Any) -> Any:
        return self._write("PutItem", self._client.put_item, arguments)

    def update_item(self, **arguments: Any) -> Any:
        return self._write("UpdateItem", self._client.update_item, arguments)

    def delete_item(self, **arguments: Any) -> Any:
        return self._write("DeleteItem", self._client.delete_item, arguments)

    def batch_write_item(self, RequestItems: Mapping[str, Sequence[Any]]) -> Any:
        self.tally.call("dynamodb", "BatchWriteItem")
        writes = [_of_batch(table, request) for table, requests in RequestItems.items() for request in requests]
        before = [self._stored(write) for write, _ in writes]
        answer = self._client.batch_write_item(RequestItems=RequestItems)
        for (write, action), old in zip(writes, before, strict=True):
            self._bill(write, action, old, self._stored(write), transactional=False)
        return answer

    def transact_write_items(self, TransactItems: Sequence[Mapping[str, Any]], **arguments: Any) -> Any:
        self.tally.call("dynamodb", "TransactWriteItems")
        writes = [(arguments, f"Tx {action.lower()}") for item in TransactItems for action, arguments in item.items()]
        before = [self._stored(write) for write, _ in writes]
        refused = ""
        try:
            return self._client.transact_write_items(TransactItems=TransactItems, **arguments)
        except ClientError as error:
            refused = _refusal(error)
            raise
        finally:
            for (write, action), old in zip(writes, before, strict=True):
                after = write.get("Item", old) if refused else self._stored(write)
                self._bill(write, action + refused, old, after, transactional=True, stands=bool(refused))

    def get_item(self, **arguments: Any) -> Any:
        self.tally.call("dynamodb", "GetItem")
        answer = self._client.get_item(**arguments)
        units = capacity.get_units(answer.get("Item"), arguments.get("ConsistentRead", False))
        self._read(arguments["TableName"], row_kind(arguments["Key"]), "Get", units)
        return answer

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> Any:
        self.tally.call("dynamodb", "BatchGetItem")
        answer = self._client.batch_get_item(RequestItems=RequestItems)
        for table, request in RequestItems.items():
            # Reading some attributes of an item costs as much as reading all.
            whole = "ProjectionExpression" not in request and not answer.get("UnprocessedKeys")
            found = {_name(row): row for row in answer["Responses"].get(table, ())} if whole else {}
            for key in request["Keys"]:
                row = found.get(_name(key)) if whole else self._stored({"TableName": table, "Key": key})
                units = capacity.get_units(row, request.get("ConsistentRead", False))
                self._read(table, row_kind(key), "Batch get", units)
        return answer

    def query(self, **arguments: Any) -> Any:
        self.tally.call("dynamodb", "Query")
        answer = self._client.query(**arguments)
        found: list[Item] = answer["Items"]
        name = arguments.get("IndexName")
        index = next((one for one in self._schema[arguments["TableName"]].indexes if one.name == name), None)
        entries = [entry for item in found if (entry := index.entry(item) if index else item)]
        units = capacity.query_units(entries, arguments.get("ConsistentRead", False))
        self._read(arguments["TableName"], f"index {name}" if index else "several", "Query", units)
        return answer

    def _read(self, table: str, row: str, action: str, units: float) -> None:
        self.tally.read(self._schema[table].title, row, action, units)

    def _write(self, operation: str, call: Any, arguments: dict[str, Any]) -> Any:
        self.tally.call("dynamodb", operation)
        before = self._stored(arguments)
        action = operation.removesuffix("Item")
        try:
            answer = call(**arguments)
        except ClientError as error:
            after = arguments.get("Item", before)
            self._bill(arguments, action + _refusal(error), before, after, transactional=False, stands=True)
            raise
        self._bill(arguments, action, before, self._stored(arguments), transactional=False)
        return answer

    def _bill(
        self,
        write: Mapping[str, Any],
        action: str,
        before: Item | None,
        after: Item | None,
        *,
        transactional: bool,
        stands: bool = False,
    ) -> None:
        """Count the units. `stands`: the write failed; it is billed, but the indexes did not change."""
        table = self._schema[write["TableName"]]
        indexes = () if stands else table.indexes
        units = capacity.write_units(before, after, transactional)
        entries = sum(capacity.index_units(index, before, after, transactional) for index in indexes)
        size = max(capacity.size(before), capacity.size(after))
        self.tally.wrote(table.title, row_kind(_key(write)), action, units, entries, size)

    def _stored(self, write: Mapping[str, Any]) -> Item | None:
        """The stored item. This read is not billed: it is the meter's own."""
        answer = self._client.get_item(TableName=write["TableName"], Key=_key(write), ConsistentRead=True)
        found: Item | None = answer.get("Item")
        return found


def _of_batch(table: str, request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """One write of a batch as the arguments of a single write, and the name of that operation."""
    if "DeleteRequest" in request:
        return {"TableName": table, "Key": request["DeleteRequest"]["Key"]}, "Batch delete"
    return {"TableName": table, "Item": request["PutRequest"]["Item"]}, "Batch put"


def _key(write: Mapping[str, Any]) -> dict[str, Any]:
    source = write.get("Key") or write["Item"]
    return {"pk": source["pk"], "sk": source["sk"]}


def _refusal(error: ClientError) -> str:
    return " (refused)" if error.response["Error"]["Code"] in _REFUSED else " (failed)"


def _names(schema: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(key["AttributeName"] for key in schema)
