"""Each write of `core/writes` as a DynamoDB statement: where, what, and under which condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chalicelib.aws import items, keys
from chalicelib.aws.keys import Key
from chalicelib.core.lines import Ask, Slots
from chalicelib.core.rows import GATHERING, Job, Timer
from chalicelib.core.writes import (
    CloseGeneration,
    Create,
    Delete,
    GateIs,
    GiveBack,
    JoinLine,
    LeaseLine,
    LeaveLine,
    NoneGathering,
    NotClosed,
    Put,
    PutDefinition,
    PutGate,
    Remove,
    Replace,
    Row,
    SettleLine,
    TakeOut,
    TakePermit,
    Write,
)

ABSENT = "attribute_not_exists(pk)"
NOBODY = "(attribute_not_exists(waiters) OR waiters = :zero)"


@dataclass(frozen=True, slots=True)
class Shards:
    wake: int
    history: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One item of a transaction, or one conditional write: the same arguments serve both."""

    action: str  # Put, Update, Delete or ConditionCheck
    key: Key
    arguments: dict[str, Any]


def statement(write: Write, table_names: dict[str, str], shards: Shards) -> Statement:
    build: Callable[[Any, Shards], tuple[str, Key, dict[str, Any]]] = _BUILDERS[type(write)]
    action, key, arguments = build(write, shards)
    named = {"TableName": table_names[key.table], **arguments}
    if action != "Put":
        named["Key"] = {"pk": {"S": key.pk}, "sk": {"S": key.sk}}
    return Statement(action, key, named)


_Built = tuple[str, Key, dict[str, Any]]


def _put(row: Row, shards: Shards, condition: str | None, **values: Any) -> _Built:
    arguments: dict[str, Any] = {"Item": items.to_item(row, shards.wake, shards.history)}
    return "Put", keys.key_of(row), arguments | _condition(condition, values)


def _condition(condition: str | None, values: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
    if values:
        arguments["ExpressionAttributeValues"] = {f":{name}": items.value(plain) for name, plain in values.items()}
    return arguments


def _update(key: Key, expression: str, condition: str | None, **values: Any) -> _Built:
    return "Update", key, {"UpdateExpression": expression} | _condition(condition, values)


def _create(write: Create, shards: Shards) -> _Built:
    return _put(write.row, shards, ABSENT)


def _replace(write: Replace, shards: Shards) -> _Built:
    row = write.row
    if isinstance(row, Job):
        # A tombstone keeps the revision of the job it lies on, so its absence is asked for by name.
        open_or_not = "(attribute_not_exists(closed) OR closed = :closed)"
        condition = f"rev = :rev AND job_id = :job AND {open_or_not}"
        return _put(row, shards, condition, rev=row.rev - 1, job=row.job_id, closed=row.closed)
    if isinstance(row, Timer):
        # Each generation's timer begins with the same revision: an emitter that slept over a replacement loses.
        condition = "rev = :rev AND generation = :generation"
        return _put(row, shards, condition, rev=row.rev - 1, generation=row.generation)
    return _put(row, shards, "rev = :rev", rev=row.rev - 1)


def _put_row(write: Put, shards: Shards) -> _Built:
    return _put(write.row, shards, None)


def _put_gate(write: PutGate, shards: Shards) -> _Built:
    if write.over is None:
        return _put(write.gate, shards, ABSENT)
    action, key, arguments = _put(write.gate, shards, None)
    over = write.over
    return action, key, arguments | _gate_condition(over.generation, over.version, (over.mode,))


def _gate_condition(generation: int, version: int, modes: tuple[str, ...]) -> dict[str, Any]:
    listed = ", ".join(f":m{index}" for index in range(len(modes)))
    values = {"generation": generation, "version": version} | {f"m{index}": mode for index, mode in enumerate(modes)}
    condition = f"generation = :generation AND version = :version AND #mode IN ({listed})"
    return _condition(condition, values) | {"ExpressionAttributeNames": {"#mode": "mode"}}


def _put_definition(write: PutDefinition, shards: Shards) -> _Built:
    if write.over is None:
        return _put(write.definition, shards, ABSENT)
    return _put(write.definition, shards, "version = :over", over=write.over)


def _delete(write: Delete, _: Shards) -> _Built:
    return "Delete", keys.key_of(write.row), {}


def _remove(write: Remove, _: Shards) -> _Built:
    return "Delete", keys.key_of(write.row), _condition("attribute_exists(pk)", {})


def _take_out(write: TakeOut, _: Shards) -> _Built:
    condition = "job_id = :job AND (attribute_not_exists(closed) OR closed = :closed)"
    values: dict[str, Any] = {"job": write.job.job_id, "closed": write.job.closed}
    if write.job.waits_at is not None:
        # What the job holds and where it queues must be what the plan gives back and gives up.
        condition += " AND waits_at = :line"
        values["line"] = write.job.waits_at
    elif not write.job.closed:
        condition += " AND attribute_not_exists(waits_at)"
    return "Delete", keys.key_of(write.job), _condition(condition, values)


def _gate_is(write: GateIs, _: Shards) -> _Built:
    gate = write.gate
    return "ConditionCheck", keys.gate(gate.schedule), _gate_condition(gate.generation, gate.version, write.modes)


def _not_closed(write: NotClosed, _: Shards) -> _Built:
    condition = "attribute_not_exists(closed) OR closed = :false"
    return "ConditionCheck", keys.gathering(write.schedule, write.generation), _condition(condition, {"false": False})


def _none_gathering(write: NoneGathering, _: Shards) -> _Built:
    return "ConditionCheck", keys.gathering(write.schedule, write.generation), _condition(ABSENT, {})


def _close(write: CloseGeneration, shards: Shards) -> _Built:
    key = keys.gathering(write.schedule, write.generation)
    blank = {
        "format": items.FORMAT,
        "schedule": write.schedule,
        "generation": write.generation,
        "place": GATHERING,
        "job_id": "",
        "kind": "gathering",
        "state": "PENDING_TRIGGER",
        "created_at": write.at,
        "rev": 1,
        "expires_at": write.expires_at,
    }
    names = {f"#{name}": name for name in blank}
    kept = ", ".join(f"#{name} = if_not_exists(#{name}, :{name})" for name in blank)
    wake = items.wake(write.at, key.pk, shards.wake)
    expression = f"SET {kept}, closed = :true, wake_shard = :shard, wake_at = :at, #ttl = :ttl"
    values = blank | {
        "true": True,
        "shard": wake["wake_shard"],
        "at": wake["wake_at"],
        "ttl": write.expires_at // 1000,
    }
    action, key, arguments = _update(key, expression, None, **values)
    return action, key, arguments | {"ExpressionAttributeNames": names | {"#ttl": "ttl"}}


def _take_permit(write: TakePermit, _: Shards) -> _Built:
    ask, key = write.ask, keys.line(write.ask.line)
    leaving = ", waiters = waiters - :one" if write.from_queue else ""
    if isinstance(ask, Slots):
        expression = f"SET active = if_not_exists(active, :zero) + :one{leaving}"
        values: dict[str, Any] = {"zero": 0, "one": 1}
        free = "(attribute_not_exists(active) OR active < :limit)"
        if ask.limit is None:
            return _update(key, expression, None, **values)
        condition = free if write.from_queue else f"{free} AND {NOBODY}"
        return _update(key, expression, condition, limit=ask.limit, **values)
    # Two forms of max(head, now) + spacing, for an update expression knows no max.
    behind = write.head <= write.now
    base = ":now" if behind else "head"
    free = "(attribute_not_exists(head) OR head <= :now)" if behind else "head > :now AND head <= :latest"
    values = {"now": write.now, "spacing": ask.spacing}
    if not behind:
        values["latest"] = write.now + ask.slack
    if write.from_queue:
        values["one"] = 1
    else:
        free, values["zero"] = f"{free} AND {NOBODY}", 0
    return _update(key, f"SET head = {base} + :spacing{leaving}", free, **values)


def _join(write: JoinLine, shards: Shards) -> _Built:
    key = keys.line(write.ask.line)
    wake = items.wake(write.wake_at, key.pk, shards.wake)
    expression = (
        "SET waiters = if_not_exists(waiters, :zero) + :one, wake_shard = :shard, wake_at = if_not_exists(wake_at, :at)"
    )
    values: dict[str, Any] = {"zero": 0, "one": 1, "shard": wake["wake_shard"], "at": wake["wake_at"]}
    condition, bound = _no_permit(write.ask, write)
    return _update(key, expression, f"{condition} OR waiters > :zero", **values, **bound)


def _no_permit(ask: Ask, write: JoinLine) -> tuple[str, dict[str, Any]]:
    if isinstance(ask, Slots):
        return "active >= :limit", {"limit": ask.limit}
    return "head > :latest", {"latest": write.now + ask.slack}


def _leave(write: LeaveLine, _: Shards) -> _Built:
    return _update(keys.line(write.line), "SET waiters = waiters - :one", "waiters > :zero", one=1, zero=0)


def _give_back(write: GiveBack, shards: Shards) -> _Built:
    key = keys.line(write.line)
    if write.wake_at is None:
        return _update(key, "SET active = active - :one", NOBODY, one=1, zero=0)
    wake = items.wake(write.wake_at, key.pk, shards.wake)
    expression = "SET active = active - :one, wake_shard = :shard, wake_at = :at"
    return _update(key, expression, "waiters > :zero", one=1, zero=0, shard=wake["wake_shard"], at=wake["wake_at"])


def _lease_line(write: LeaseLine, shards: Shards) -> _Built:
    key = keys.line(write.line)
    read, until = items.wake(write.read, key.pk, shards.wake), items.wake(write.until, key.pk, shards.wake)
    return _update(key, "SET wake_at = :until", "wake_at = :read", until=until["wake_at"], read=read["wake_at"])


def _settle_line(write: SettleLine, _: Shards) -> _Built:
    return _update(keys.line(write.line), "REMOVE wake_at, wake_shard", NOBODY, zero=0)


_BUILDERS: dict[type, Callable[[Any, Shards], _Built]] = {
    Create: _create,
    Replace: _replace,
    Put: _put_row,
    PutGate: _put_gate,
    PutDefinition: _put_definition,
    Delete: _delete,
    Remove: _remove,
    TakeOut: _take_out,
    GateIs: _gate_is,
    NotClosed: _not_closed,
    NoneGathering: _none_gathering,
    CloseGeneration: _close,
    TakePermit: _take_permit,
    JoinLine: _join,
    LeaveLine: _leave,
    GiveBack: _give_back,
    LeaseLine: _lease_line,
    SettleLine: _settle_line,
}
