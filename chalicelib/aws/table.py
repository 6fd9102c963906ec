"""A thin, typed hold on DynamoDB: the few calls that the stores need, and how conflicts are retried."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from chalicelib.aws import items, keys
from chalicelib.aws.items import Item
from chalicelib.aws.keys import Key
from chalicelib.aws.statements import statement
from chalicelib.aws.updates import Shards
from chalicelib.core.calendar import DAY
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows import HISTORY
from chalicelib.core.writes import GateIs, NoneGathering, NotClosed, NotWaiting, Put, Refused, Write
from chalicelib.settings import Settings

R = TypeVar("R")

# DynamoDB: at most 100 actions in a transaction, 25 puts and 100 gets in a batch.
MOST_ACTIONS, MOST_PUTS, MOST_GETS = 100, 25, 100
# Conflicts on a hot row are over within milliseconds; ten tries span about ten seconds.
MOST_TRIES = 10
_AGAIN = {
    "TransactionConflict",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ThrottlingError",
    "ThrottlingException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
}


class Dynamo:
    """Reads by key and query, writes by plan. Implements `ports.Ledger`."""

    def __init__(self, client: Any, settings: Settings) -> None:
        self._client = client
        self._names = {
            "catalog": settings.catalog_table,
            "jobs": settings.jobs_table,
            "runs": settings.runs_table,
        }
        self.shards = Shards(settings.wake_shards, settings.history_shards, HISTORY - settings.history_days * DAY)

    def commit(self, writes: Sequence[Write]) -> Refused | None:
        """Carry out a plan in one piece, or nothing of it."""
        statements = [statement(write, self._names, self.shards) for write in writes]
        if len({made.key for made in statements}) < len(statements):
            raise ValueError(f"expected each key once in a plan, got {[tuple(made.key) for made in statements]}")
        if len(statements) > MOST_ACTIONS:
            raise ValueError(f"expected at most {MOST_ACTIONS} writes in a plan, got {len(statements)}")
        single = len(writes) == 1 and not isinstance(writes[0], GateIs | NotClosed | NoneGathering | NotWaiting)
        for attempt in range(MOST_TRIES):
            try:
                if single:
                    self._single(statements[0].action, statements[0].arguments)
                else:
                    actions = [{made.action: made.arguments} for made in statements]
                    self._client.transact_write_items(TransactItems=actions)
                return None
            except ClientError as error:
                refused = _refused(error, writes)
                if refused is not None:
                    return refused
                _pause(attempt)
        raise SluiceError("unavailable", "the tables are too busy for this change", None, "try again in a few seconds")

    def number(self, line: str) -> int:
        key = keys.line(line)
        answer = self._client.update_item(
            TableName=self._names[key.table],
            Key=_key(key),
            UpdateExpression="SET numbered = if_not_exists(numbered, :zero) + :one",
            ExpressionAttributeValues={":zero": {"N": "0"}, ":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["numbered"]["N"])

    def put_all(self, writes: Sequence[Put]) -> None:
        by_key = {(made := statement(write, self._names, self.shards)).key: made for write in writes}
        self._in_batches([(made.key, {"PutRequest": {"Item": made.arguments["Item"]}}) for made in by_key.values()])

    def get(self, key: Key, kind: type[R]) -> R | None:
        """One row, read strongly."""
        found = self._client.get_item(TableName=self._names[key.table], Key=_key(key), ConsistentRead=True).get("Item")
        return items.from_item(kind, found) if found else None

    def get_many(self, wanted: Sequence[Key]) -> dict[Key, Item]:
        """Items by key, read strongly; what does not exist is left out."""
        found: dict[Key, Item] = {}
        for start in range(0, len(wanted), MOST_GETS):
            part = wanted[start : start + MOST_GETS]
            asked: dict[str, Any] = {}
            for key in part:
                asked.setdefault(self._names[key.table], {"Keys": [], "ConsistentRead": True})["Keys"].append(_key(key))
            tables = {self._names[key.table]: key.table for key in part}
            for attempt in range(MOST_TRIES):
                answer = self._client.batch_get_item(RequestItems=asked)
                for name, rows in answer["Responses"].items():
                    found |= {Key(tables[name], row["pk"]["S"], row["sk"]["S"]): row for row in rows}
                asked = answer.get("UnprocessedKeys") or {}
                if not asked:
                    break
                _pause(attempt)
            if asked:
                raise SluiceError(
                    "unavailable", "the tables are too busy to be read", None, "try again in a few seconds"
                )
        return found

    def query(
        self,
        table: str,
        condition: str,
        values: Mapping[str, Any],
        *,
        limit: int,
        index: str | None = None,
        start: Mapping[str, Any] | None = None,
        forward: bool = True,
        names: Mapping[str, str] | None = None,
    ) -> tuple[list[Item], Mapping[str, Any] | None]:
        """One page of a query: its items, and where the next one starts. Strong, except on a global index."""
        arguments: dict[str, Any] = {
            "TableName": self._names[table],
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": {f":{name}": items.value(plain) for name, plain in values.items()},
            "Limit": limit,
            "ScanIndexForward": forward,
            "ConsistentRead": index in (None, "events"),
        }
        if index:
            arguments["IndexName"] = index
        if names:
            arguments["ExpressionAttributeNames"] = dict(names)
        if start:
            arguments["ExclusiveStartKey"] = dict(start)
        answer = self._client.query(**arguments)
        return answer["Items"], answer.get("LastEvaluatedKey")

    def query_all(
        self, table: str, condition: str, values: Mapping[str, Any], index: str | None = None
    ) -> Iterator[Item]:
        start: Mapping[str, Any] | None = None
        while True:
            page, start = self.query(table, condition, values, limit=1000, index=index, start=start)
            yield from page
            if not start:
                return

    def _single(self, action: str, arguments: dict[str, Any]) -> None:
        call = {"Put": self._client.put_item, "Update": self._client.update_item, "Delete": self._client.delete_item}
        call[action](**arguments)

    def _in_batches(self, requests: Sequence[tuple[Key, dict[str, Any]]]) -> None:
        for start in range(0, len(requests), MOST_PUTS):
            self._batch([(key.table, request) for key, request in requests[start : start + MOST_PUTS]])

    def _batch(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> None:
        pending: dict[str, Any] = {}
        for table, request in requests:
            pending.setdefault(self._names[table], []).append(request)
        for attempt in range(MOST_TRIES):
            pending = self._client.batch_write_item(RequestItems=pending).get("UnprocessedItems") or {}
            if not pending:
                return
            _pause(attempt)
        raise SluiceError("unavailable", "the tables are too busy for this change", None, "try again in a few seconds")


def encode_cursor(place: Mapping[str, Any] | str | None) -> str | None:
    """An opaque cursor out of a place in a list."""
    return None if place is None else base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> Any:
    if cursor is None:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        hint = "leave the cursor out to begin at the start"
        raise SluiceError("bad_cursor", "expected a cursor that a list answered with", "cursor", hint) from None


def _key(key: Key) -> dict[str, dict[str, str]]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _refused(error: ClientError, writes: Sequence[Write]) -> Refused | None:
    """The refusal in an error, None if it is worth another try; whatever else it is goes on its way."""
    code = error.response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        return Refused(tuple(writes))
    if code == "TransactionCanceledException":
        reasons = [reason.get("Code") for reason in error.response.get("CancellationReasons", [])]
        failed = tuple(
            write for write, reason in zip(writes, reasons, strict=False) if reason == "ConditionalCheckFailed"
        )
        if failed:
            return Refused(failed)
        if any(reason in _AGAIN for reason in reasons):
            return None
    elif code in _AGAIN:
        return None
    raise error


def _pause(attempt: int) -> None:
    """Full jitter, 10 ms doubling to 2 s: contenders for one row come back at different moments."""
    time.sleep(random.uniform(0, min(0.01 * 2**attempt, 2)))
