"""A thin typed client of DynamoDB with the few calls that the stores need. Each call is retried as in `tries.py`."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from chalicelib.aws.tables import items, own_writes
from chalicelib.aws.tables.expressions import Built, Shards, condition, update
from chalicelib.aws.tables.items import Item
from chalicelib.aws.tables.statements import Statement, statement
from chalicelib.aws.tables.tries import FAILURES, Patience, Tries, code_of, reasons_of, tried
from chalicelib.core import errors
from chalicelib.core.instants import DAY, Instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.delivery_lease import ClosingCount
from chalicelib.core.rows.kinds import Key, TableName
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import DeadLetter
from chalicelib.core.rows.schedule import HISTORY
from chalicelib.core.runs import metrics as run_metrics
from chalicelib.core.schedules import closings
from chalicelib.core.writes import MAX_WRITES, Conflict, Put, Write
from chalicelib.ports import Metrics, NoMetrics, Page
from chalicelib.settings import Settings

R = TypeVar("R")
T = TypeVar("T")

# DynamoDB: at most 25 puts and 100 gets in a batch.
MAX_PUTS, MAX_GETS = 25, 100
AT_ONCE = 4  # calls that one read of a view makes at the same time; a client has ten connections
MAX_COUNTED = 10_000  # items that one query counts; DynamoDB ends it at 1 MB, too


def system_now() -> Instant:
    return time.time_ns() // 1_000_000


class Dynamo:
    """Reads by key and query, writes by plan. Implements `ports.Ledger`."""

    def __init__(
        self,
        client: Any,
        settings: Settings,
        patience: Patience | None = None,
        metrics: Metrics | None = None,
        now: Callable[[], Instant] = system_now,
    ) -> None:
        self._client = client
        self._now = now
        self._metrics = metrics or NoMetrics()
        self._patience = replace(
            patience or Patience(), throttled=lambda: self._metrics.add(run_metrics.THROTTLED_CALLS, 1)
        )
        self._names: dict[TableName, str] = {
            "catalog": settings.catalog_table,
            "jobs": settings.jobs_table,
            "runs": settings.runs_table,
        }
        self.shards = Shards(settings.wake_shards, settings.history_shards, HISTORY - settings.history_days * DAY)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """Commit all writes of a plan in one transaction. Returns the conflict if a condition of a write fails; then
        nothing is written. A plan that closes something is counted first."""
        for namespace in closings.closed_by(writes):
            self.count_closing(namespace)
        conflict = self._commit(writes)
        if conflict is not None:
            self._metrics.add(run_metrics.WRITE_CONFLICTS, 1)
        elif letters := sum(isinstance(write, Put) and isinstance(write.row, DeadLetter) for write in writes):
            self._metrics.add(run_metrics.DEAD_LETTERS, letters)
        return conflict

    def _commit(self, writes: Sequence[Write]) -> Conflict | None:
        statements = [statement(write, self._names, self.shards) for write in writes]
        if len({made.key for made in statements}) < len(statements):
            raise ValueError(f"expected each key once in a plan, got {[tuple(made.key) for made in statements]}")
        if len(statements) > MAX_WRITES:
            raise ValueError(f"expected at most {MAX_WRITES} writes in a plan, got {len(statements)}")
        only = statements[0] if len(writes) == 1 and statements[0].action != "ConditionCheck" else None
        if only is not None and not own_writes.is_relative(only.action, only.arguments):
            return self._single(only, writes)
        return self._transaction(statements, writes)

    def count_closing(self, namespace: str) -> None:
        sets = "closings = if_not_exists(closings, :zero) + :one, #namespace = :namespace, #at = :at, #format = :format"
        values = {"zero": 0, "one": 1, "namespace": namespace, "at": self._now(), "format": items.FORMAT}
        self._update(update(kinds.key(ClosingCount, namespace), f"SET {sets}", None, **values))

    def number(self, limit_name: str) -> int:
        sets = "SET numbered = if_not_exists(numbered, :zero) + :one"
        made = update(kinds.key(LimitState, limit_name), sets, None, zero=0, one=1)
        return int(self._update(made, ReturnValues="UPDATED_NEW")["Attributes"]["numbered"]["N"])

    def _update(self, made: Built, **more: str) -> Any:
        """Carry out an update without a condition."""
        _, key, arguments = made
        place = {"TableName": self._names[key.table], "Key": _key(key)}
        return self._ask(self._client.update_item, **place, **arguments, **more)

    def put_all(self, writes: Sequence[Put]) -> None:
        made = list({(each := statement(write, self._names, self.shards)).key: each for write in writes}.values())
        for start in range(0, len(made), MAX_PUTS):
            pending: dict[str, Any] = {}
            for each in made[start : start + MAX_PUTS]:
                request = {"PutRequest": {"Item": each.arguments["Item"]}}
                pending.setdefault(self._names[each.key.table], []).append(request)
            tries = Tries(self._patience)
            while pending:
                pending = self._ask(self._client.batch_write_item, RequestItems=pending).get("UnprocessedItems") or {}
                if pending:
                    tries.pause()

    def get(self, key: Key, kind: type[R]) -> R | None:
        """One row, by a strongly consistent read; None if it does not exist."""
        request = {"TableName": self._names[key.table], "Key": _key(key)}
        found = self._ask(self._client.get_item, **request, ConsistentRead=True).get("Item")
        return self.row(key, kind, found) if found else None

    def row(self, key: Key, kind: type[R], item: Item) -> R:
        """The row of an item that was read."""
        return items.from_item(kind, item)

    def get_many(
        self, wanted: Sequence[Key], only: Mapping[TableName, Sequence[str]] | None = None, strong: bool = True
    ) -> dict[Key, Item]:  # fmt: skip
        """The items of these keys, by strongly consistent reads. Unless ``strong``, they cost half, and some calls are
        made at the same time: for views. Items that do not exist are left out. ``only`` names the attributes to read of
        each table; the keys are always read."""
        parts = [wanted[start : start + MAX_GETS] for start in range(0, len(wanted), MAX_GETS)]
        read = partial(self._get_part, only=only, strong=strong)
        found = [read(part) for part in parts] if strong else together(read, parts)
        return {key: item for part in found for key, item in part.items()}

    def _get_part(
        self, part: Sequence[Key], only: Mapping[TableName, Sequence[str]] | None, strong: bool
    ) -> dict[Key, Item]:  # fmt: skip
        """As `get_many`, for what one call takes."""
        requests: dict[str, Any] = {}
        for key in part:
            if self._names[key.table] not in requests:
                chosen = _projection(only[key.table]) if only else {}
                requests[self._names[key.table]] = {"Keys": [], "ConsistentRead": strong, **chosen}
            requests[self._names[key.table]]["Keys"].append(_key(key))
        tables = {self._names[key.table]: key.table for key in part}
        found: dict[Key, Item] = {}
        tries = Tries(self._patience)
        while requests:
            answer = self._ask(self._client.batch_get_item, RequestItems=requests)
            for name, rows in answer["Responses"].items():
                found |= {Key(tables[name], row["pk"]["S"], row["sk"]["S"]): row for row in rows}
            requests = answer.get("UnprocessedKeys") or {}
            if requests:
                tries.pause()
        return found

    def query(
        self,
        table: TableName,
        expected: str,
        values: Mapping[str, Any],
        *,
        limit: int,
        index: str | None = None,
        start: Mapping[str, Any] | None = None,
        forward: bool = True,
    ) -> tuple[list[Item], Mapping[str, Any] | None]:
        """One page of a query: its items, and the start of the next page. Strong, except on a global index."""
        arguments = self._query(table, expected, values)
        arguments |= {"Limit": limit, "ScanIndexForward": forward, "ConsistentRead": index in (None, "events")}
        if index:
            arguments["IndexName"] = index
        if start:
            arguments["ExclusiveStartKey"] = dict(start)
        try:
            answer = self._ask(self._client.query, **arguments)
        except ClientError as error:
            if start and code_of(error) == "ValidationException":
                raise errors.bad_cursor() from None  # a start outside of the queried part
            raise
        return answer["Items"], answer.get("LastEvaluatedKey")

    def _query(self, table: TableName, expected: str, values: Mapping[str, Any]) -> dict[str, Any]:
        arguments = condition(expected, dict(values))
        return {
            "TableName": self._names[table],
            "KeyConditionExpression": arguments.pop("ConditionExpression"),
            **arguments,
        }

    def count(self, table: TableName, expected: str, values: Mapping[str, Any]) -> int:
        """How many items a query finds, by eventually consistent reads."""
        arguments = self._query(table, expected, values) | {"ProjectionExpression": "pk", "Limit": MAX_COUNTED}
        found = 0
        while True:
            answer = self._ask(self._client.query, **arguments)
            found += len(answer["Items"])
            if not answer.get("LastEvaluatedKey"):
                return found
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def query_all(
        self, table: TableName, expected: str, values: Mapping[str, Any], limit: int = 1000, **more: Any
    ) -> Iterator[Item]:
        """The items of all pages of a query, ``limit`` items a page. A page is read when it is needed."""
        start: Mapping[str, Any] | None = None
        while True:
            page, start = self.query(table, expected, values, limit=limit, start=start, **more)
            yield from page
            if not start:
                return

    def query_first(
        self, table: TableName, expected: str, values: Mapping[str, Any], limit: int, **more: Any
    ) -> tuple[list[Item], bool]:
        """The first items of a query, and whether there are more. One call of DynamoDB returns at most 1 MB."""
        found: list[Item] = []
        start: Mapping[str, Any] | None = None
        while True:
            left = limit - len(found)
            rows, start = self.query(table, expected, values, limit=left, start=start, **more)
            found += rows
            if not start or len(found) >= limit:
                return found, start is not None

    def page(
        self, kind: type[R], table: TableName, expected: str, values: Mapping[str, Any], limit: int, cursor: str | None,
        forward: bool = True,
    ) -> Page[R]:  # fmt: skip
        """A page of the rows that a query finds. Raises ``bad_cursor``."""
        start = checked_start(decode_cursor(cursor))
        found, more = self.query(table, expected, values, limit=limit, start=start, forward=forward)
        return Page(items.rows_of(kind, found), encode_cursor(more))

    def _single(self, made: Statement, writes: Sequence[Write]) -> Conflict | None:
        """Carry out one conditional write. If an earlier try wrote without an answer, the condition of the repeat
        fails. The stored item then shows that the write was done; only a repeat requests that item."""
        calls = {"Put": self._client.put_item, "Update": self._client.update_item, "Delete": self._client.delete_item}
        tries, shown = Tries(self._patience), {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        while True:
            try:
                calls[made.action](**made.arguments, **(shown if tries.unanswered else {}))
                return None
            except FAILURES as error:
                refused = _refused(error, writes)
                if refused is None:
                    tries.again(error)
                elif tries.unanswered and own_writes.is_done(made.action, made.arguments, _stored(error)):
                    return None
                else:
                    return refused

    def _transaction(self, statements: Sequence[Statement], writes: Sequence[Write]) -> Conflict | None:
        """Carry out a transaction. DynamoDB executes one transaction per token (it remembers tokens for 10 minutes), so
        a repeat after a lost answer changes nothing. A repeat after a cancelled transaction needs a new token."""
        actions = [{made.action: made.arguments} for made in statements]
        tries, token = Tries(self._patience), str(uuid.uuid4())
        while True:
            try:
                self._client.transact_write_items(TransactItems=actions, ClientRequestToken=token)
                return None
            except FAILURES as error:
                refused = _refused(error, writes)
                if refused is not None:
                    return refused
                tries.again(error)
                if not tries.unanswered:
                    token = str(uuid.uuid4())

    def _ask(self, call: Callable[..., Any], **arguments: Any) -> Any:
        return tried(self._patience, call, **arguments)


def together(read: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """What a read returns for each part, in their order. ``AT_ONCE`` of the calls are made at the same time."""
    if len(parts) < 2 or AT_ONCE < 2:
        return [read(part) for part in parts]
    from concurrent.futures import ThreadPoolExecutor  # a Lambda without views does without it

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(read, parts))


def _projection(attributes: Sequence[str]) -> dict[str, Any]:
    """A projection with a placeholder for each attribute, because some names are reserved words."""
    names = {f"#{name}": name for name in ("pk", "sk", *attributes)}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}


def encode_cursor(position: Mapping[str, Any] | Sequence[Any] | str | None) -> str | None:
    """An opaque cursor for a position in a list; None at the end of the list."""
    return None if position is None else base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> Any:
    if cursor is None:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        raise errors.bad_cursor() from None


def checked_start(start: Any) -> Mapping[str, Any] | None:
    """The key of an item after which a page begins. Raises ``bad_cursor`` for anything else: callers can forge it."""
    if start is None:
        return None
    if not isinstance(start, dict) or not start or not all(_is_key_value(value) for value in start.values()):
        raise errors.bad_cursor()
    return start


def _is_key_value(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("S", value.get("N")), str)


def _key(key: Key) -> dict[str, dict[str, str]]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _refused(error: Exception, writes: Sequence[Write]) -> Conflict | None:
    """The conflict that an error reports: a condition of a write failed. None for any other error."""
    if not isinstance(error, ClientError):
        return None
    if code_of(error) == "ConditionalCheckFailedException":
        return Conflict(tuple(writes))
    failed = tuple(
        write
        for write, reason in zip(writes, reasons_of(error), strict=False)
        if reason.get("Code") == "ConditionalCheckFailed"
    )
    return Conflict(failed) if failed else None


def _stored(error: Exception) -> Item | None:
    """The item that made the condition of a write fail, if the error contains it."""
    return error.response.get("Item") if isinstance(error, ClientError) else None
