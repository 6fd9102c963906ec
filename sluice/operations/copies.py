"""Whole tables: read by scans, written in batches. Implements `Copies`, for exports, imports and repairs.

Only an administrator's command uses it. The roles of the Lambdas allow no scan.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.aws.tables import items
from chalicelib.aws.tables.items import Item
from chalicelib.aws.tables.tries import Patience, Tries, code_of, tried
from chalicelib.core.instants import Instant
from chalicelib.core.limits import names as limit_names
from chalicelib.core.rows import kinds
from chalicelib.core.rows.kinds import Key, TableName
from chalicelib.core.rows.limit import LimitState
from chalicelib.settings import Settings
from sluice.operations.ports import StoredCopy

MAX_PUTS = 25  # of DynamoDB, in a batch
_INDEX = ("wake_shard", "wake_at")
# What a limit counts of the jobs and runs that use it.
_COUNTS = ("active", "waiters", "starts", "untracked_start", "rev")
# The ``wake_at`` of a row that no tick may find yet. A write that keeps the instant of a row keeps this one, too, and
# one that sets another leaves nothing to wake.
_ASLEEP = "9999-12-31T00:00:00.000Z"


class DynamoCopies:
    layout = items.FORMAT

    def __init__(self, client: Any, settings: Settings, patience: Patience | None = None) -> None:
        self._client, self._settings, self._patience = client, settings, patience or Patience()
        self._names: dict[TableName, str] = {
            "catalog": settings.catalog_table,
            "jobs": settings.jobs_table,
            "runs": settings.runs_table,
        }

    def page(self, table: TableName, cursor: Any) -> tuple[tuple[StoredCopy, ...], Any]:
        request: dict[str, Any] = {"TableName": self._names[table], "ConsistentRead": True}
        if cursor is not None:
            request["ExclusiveStartKey"] = cursor
        answer = tried(self._patience, self._client.scan, **request)
        found = tuple(self.copy_of(table, _as_json(item)) for item in answer["Items"])
        return found, answer.get("LastEvaluatedKey")

    def copy_of(self, table: TableName, item: Mapping[str, Any]) -> StoredCopy:
        stored = _from_json(item)
        kind = kinds.kind_of(Key(table, stored["pk"]["S"], stored["sk"]["S"])).row
        row = items.from_item(kind, stored)
        return StoredCopy(table, kind.__name__, row, item)

    def put_asleep(self, copies: Sequence[StoredCopy]) -> None:
        asleep = [(copy.table, _asleep(self._item(copy))) for copy in copies]
        self._batches([(table, {"PutRequest": {"Item": item}}) for table, item in asleep])

    def create(self, copies: Sequence[StoredCopy]) -> None:
        for copy in copies:
            request = {"TableName": self._names[copy.table], "Item": self._item(copy)}
            self._unless_refused(self._client.put_item, **request, ConditionExpression="attribute_not_exists(pk)")

    def wake(self, copies: Sequence[StoredCopy]) -> None:
        for copy in copies:
            item = self._item(copy)
            if not _wakes(item):
                continue
            self._unless_refused(
                self._client.update_item,
                TableName=self._names[copy.table],
                Key={"pk": item["pk"], "sk": item["sk"]},
                UpdateExpression="SET wake_at = :at",
                ConditionExpression="wake_at = :asleep",
                ExpressionAttributeValues={":at": item["wake_at"], ":asleep": {"S": _ASLEEP}},
            )

    def delete(self, copies: Sequence[StoredCopy]) -> None:
        keys = [(copy.table, {"pk": copy.item["pk"], "sk": copy.item["sk"]}) for copy in copies]
        self._batches([(table, {"DeleteRequest": {"Key": key}}) for table, key in keys])

    def put_limit(self, state: LimitState) -> None:
        """Store the counts of a limit; its other attributes stay."""
        key = kinds.key(LimitState, state.limit_name)
        counts = ("active", "waiters", "head", "starts", "rev", "untracked_start", "last_start", "last_success_start")
        named = {name: getattr(state, name) for name in (*counts, "last_success_at", "numbered")}
        values = {f":{name}": items.value(plain) for name, plain in named.items() if plain is not None}
        changes = ", ".join(f"#{name} = :{name}" for name, plain in named.items() if plain is not None)
        tried(
            self._patience,
            self._client.update_item,
            TableName=self._names[key.table],
            Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}},
            UpdateExpression=f"SET {changes} REMOVE wake_at, wake_shard",
            ExpressionAttributeNames={f"#{name}": name for name, plain in named.items() if plain is not None},
            ExpressionAttributeValues=values,
        )

    def put_beside(self, copies: Sequence[StoredCopy]) -> None:
        for copy in copies:
            item = _from_json(copy.item)
            stays = {"pk", "sk", *_INDEX, *_COUNTS}
            if limit_names.is_rate_window(item["pk"]["S"].removeprefix("LIMIT#")):
                stays -= {"starts"}  # no end of a run removes them, and the source knows all of them
            given = {name: part for name, part in item.items() if name not in stays}
            self._set(copy.table, item, given)

    def put_later(self, limit_name: str, instants: Mapping[str, Instant]) -> None:
        key = kinds.key(LimitState, limit_name)
        place = {"pk": {"S": key.pk}, "sk": {"S": key.sk}}
        for name, at in instants.items():
            later = f"attribute_not_exists(#{name}) OR #{name} < :{name}"
            given = {name: items.value(at), "format": items.value(items.FORMAT)}
            self._set(key.table, place, given, ConditionExpression=later)

    def _set(self, table: TableName, place: Item, given: Item, **arguments: Any) -> None:
        """Set attributes of a row, which need not exist."""
        self._unless_refused(
            self._client.update_item,
            TableName=self._names[table],
            Key={"pk": place["pk"], "sk": place["sk"]},
            UpdateExpression=f"SET {', '.join(f'#{name} = :{name}' for name in given)}",
            ExpressionAttributeNames={f"#{name}": name for name in given},
            ExpressionAttributeValues={f":{name}": part for name, part in given.items()},
            **arguments,
        )

    def _item(self, copy: StoredCopy) -> Item:
        """The item of a row, with the shards of these tables. That of a limit keeps attributes that its row has not."""
        if not isinstance(copy.row, LimitState):
            return items.to_item(copy.row, self._settings.wake_shards, self._settings.history_shards)
        item = {name: part for name, part in _from_json(copy.item).items() if name not in _INDEX}
        item |= {name: items.value(getattr(copy.row, name)) for name in ("active", "waiters", "starts") if name in item}
        woken = items.wake(copy.row.wake_at, item["pk"]["S"], self._settings.wake_shards)
        return item | {name: {"S": text} for name, text in woken.items()}

    def _unless_refused(self, call: Any, **arguments: Any) -> None:
        """Make a conditional write; a condition that does not hold leaves the row as it is."""
        try:
            tried(self._patience, call, **arguments)
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise

    def _batches(self, requests: Sequence[tuple[TableName, dict[str, Any]]]) -> None:
        for start in range(0, len(requests), MAX_PUTS):
            pending: dict[str, Any] = {}
            for table, request in requests[start : start + MAX_PUTS]:
                pending.setdefault(self._names[table], []).append(request)
            tries = Tries(self._patience)
            while pending:
                answer = tried(self._patience, self._client.batch_write_item, RequestItems=pending)
                pending = answer.get("UnprocessedItems") or {}
                if pending:
                    tries.pause()


def _wakes(item: Item) -> bool:
    return "wake_at" in item and not items.is_listed(item)


def _asleep(item: Item) -> Item:
    return item | {"wake_at": {"S": _ASLEEP}} if _wakes(item) else item


def _as_json(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as JSON: binary attributes become base64, and sets have an order."""
    return {name: _plain(part) for name, part in item.items()}


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    [(kind, content)] = part.items()
    match kind:
        case "B":
            content = base64.b64encode(getattr(content, "value", content)).decode()
        case "SS" | "NS":
            content = sorted(content)
        case "M":
            content = {name: _plain(inner) for name, inner in content.items()}
        case "L":
            content = [_plain(inner) for inner in content]
    return {kind: content}


def _from_json(item: Mapping[str, Any]) -> Item:
    return {name: _stored(part) for name, part in item.items()}


def _stored(part: Mapping[str, Any]) -> dict[str, Any]:
    [(kind, content)] = part.items()
    match kind:
        case "B":
            content = base64.b64decode(content)
        case "M":
            content = {name: _stored(inner) for name, inner in content.items()}
        case "L":
            content = [_stored(inner) for inner in content]
    return {kind: content}
