"""Rows as DynamoDB items and back. Free-form documents are stored as JSON text, all other fields as plain attributes.

``format`` is the number of the layout (O11). Code reads every layout that was released; none was before layout 4.
A new attribute needs no new layout: code that does not know the attribute keeps it (`core/rows/stored.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from chalicelib.core import ids
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.run import DeadLetter, Record, Run, StartRequest
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stored import StoredRow, Unknown
from chalicelib.core.states import PAUSED_MODES
from chalicelib.core.why import Why, parse
from chalicelib.core.writes import Row

R = TypeVar("R")
Item = dict[str, Any]

FORMAT = 4
# That of bundles and their runs: older code would take them for single events, so it must refuse them.
OF_BUNDLES = 5
# As text, users' floats and deep structures keep every byte; DynamoDB's numbers would not preserve them.
_JSON_FIELDS = {"definition", "document", "properties", "request", "event", "metrics", "named", "sends"}
_SPARSE = {
    "count",
    "plan",
    "done",
    "ahead",
    "left",
    "spread",
    "spread_at",
    "bundled",
    "bundled_to",
}  # not stored if they have their default
_CARRIED = "unknown"  # the only field that is not stored under its own name
# A row without a ``wake_at`` that people search for lies in a list of its own in the wake index, which no tick reads.
# In place of the number of a shard such an item has ``<list>#<namespace>#<shard>``.
WAITS, PAUSED = "waits", "paused"
_HISTORY_KEYS = frozenset({"wf_key", "schedule_key", "day_key", "at"})

_EXACT = 10**38  # DynamoDB keeps up to 38 digits of a number
_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


class NewerLayout(RuntimeError):
    """A row has a newer layout than this code can read. The message or tick that needs the row is retried, and succeeds
    once the newer code is deployed."""


def value(plain: Any) -> dict[str, Any]:
    """One attribute value. Texts and small numbers, which are most values, do not pass boto3's slow serializer.

    DynamoDB refuses text that is not valid Unicode, such as half of a surrogate pair in the answer of a target. A
    question mark replaces it."""
    if type(plain) is str:
        return {"S": plain if plain.isascii() else plain.encode("utf-8", "replace").decode()}
    if type(plain) is int and -_EXACT < plain < _EXACT:
        return {"N": str(plain)}
    result: dict[str, Any] = _serialize(plain)
    return result


def _read(content: dict[str, Any]) -> Any:
    """The plain content of an attribute value."""
    if "S" in content:
        return content["S"]
    if "N" in content and content["N"].isdecimal():
        return int(content["N"])
    return _deserialize(content)


def wake(at: Instant | None, pk: str, shards: int) -> dict[str, str]:
    """The two attributes that put a row into the wake index; none without an instant."""
    return {} if at is None else {"wake_shard": ids.shard(pk, shards), "wake_at": iso(at)}


def listed(row: object, pk: str, shards: int) -> dict[str, str]:
    """The two attributes that put a row without a ``wake_at`` into a list of its namespace, oldest first; none for most
    rows.

    The list `WAITS` has the jobs that only an event, a person or a resume wakes; a queue lists its own jobs. `PAUSED`
    has the schedule states on pause."""
    match row:
        case Job(closed=False, queued_in=None):
            group, schedule, since = WAITS, row.schedule, row.created_at
        case ScheduleState() if row.mode in PAUSED_MODES:
            group, schedule, since = PAUSED, row.schedule, row.mode_at
        case _:
            return {}
    part = list_part(group, schedule.partition(".")[0], ids.shard(pk, shards))
    return {"wake_shard": part, "wake_at": iso(since)}


def list_part(group: str, namespace: str, shard: object) -> str:
    """The value of ``wake_shard`` of a part of a list."""
    return f"{group}#{namespace}#{shard}"


def is_listed(item: Mapping[str, Any]) -> bool:
    """Whether the attributes of the wake index put an item into a list, so that it needs no attention."""
    return "#" in item.get("wake_shard", {}).get("S", "")


def to_item(row: Row, wake_shards: int, history_shards: int) -> Item:
    key = kinds.key_of(row)
    plain: dict[str, Any] = {"pk": key.pk, "sk": key.sk, "format": _layout(row)}
    is_run = isinstance(row, Run)
    for item in fields(row):
        content = getattr(row, item.name)
        if content is None or item.name in ("wake_at", _CARRIED):
            continue
        # DynamoDB bills runs by the KB, so an empty attribute that equals its default is not stored.
        left_out = (is_run and not content) or item.name in _SPARSE
        if not (left_out and content == item.default):
            plain[item.name] = _encode(item.name, content)
    wake_at = getattr(row, "wake_at", None)
    plain |= wake(wake_at, key.pk, wake_shards) if wake_at is not None else listed(row, key.pk, wake_shards)
    expires_at = getattr(row, "expires_at", None)
    if expires_at is not None:
        plain["ttl"] = expires_at // 1000
    if isinstance(row, Run | Record | DeadLetter):
        plain |= _history(row, history_shards)
    if isinstance(row, AuditRow):
        plain |= {"day_key": audit_day(iso(row.recorded_at)[:10]), "at": row.id}
    return dict(row.unknown) | {name: value(content) for name, content in plain.items()}


def _layout(row: Row) -> int:
    is_bundle = isinstance(row, Job) and row.is_bundle
    return OF_BUNDLES if is_bundle or (isinstance(row, Run) and row.sends is not None) else FORMAT


def from_item(kind: type[R], item: Item) -> R:
    """The row of a stored item. Raises `NewerLayout` if the item has a layout that this code does not know."""
    stored = {name: _read(content) for name, content in item.items()}
    if stored.get("format", FORMAT) > OF_BUNDLES:
        raise NewerLayout(
            f"row {stored['pk']}, {stored['sk']} has layout {stored['format']}; this code reads up to {OF_BUNDLES}"
        )
    if kind is LimitState:  # created by updates, which do not write its name
        stored["limit_name"] = stored["pk"].removeprefix("LIMIT#")
    known, written = _names(kind), _written(kind)  # type: ignore[arg-type]  # a class is hashable
    if is_listed(item):
        del stored["wake_at"]
    values = {name: _decode(name, content) for name, content in stored.items() if name in known}
    values |= {name: parse(values[name]) for name in _reasons(kind) & values.keys()}  # type: ignore[arg-type]  # as above
    unknown = tuple((name, content) for name, content in item.items() if name not in written)
    return kind(**values, **({_CARRIED: unknown} if unknown and issubclass(kind, StoredRow) else {}))


def rows_of(kind: type[R], found: Iterable[Item]) -> tuple[R, ...]:
    return tuple(from_item(kind, item) for item in found)


def picked(item: Item, names: Sequence[str]) -> tuple[Any, ...]:
    """Some attributes of a row, but not of a run; None for an attribute that is not stored."""
    return tuple(_decode(name, _read(item[name])) if name in item else None for name in names)


@cache
def _names(kind: type[Any]) -> frozenset[str]:
    return frozenset(name.name for name in fields(kind)) - {_CARRIED}


@cache
def _reasons(kind: type[Any]) -> frozenset[str]:
    """The attributes of a row class that are reasons."""
    return frozenset(item.name for item in fields(kind) if item.type == "Why")


@cache
def _written(kind: type[Any]) -> frozenset[str]:
    """The attributes of a row class that this code writes, or leaves out on purpose."""
    names = _names(kind) | {"pk", "sk", "format"}  # type: ignore[arg-type]  # as above
    if "wake_at" in names:
        names |= {"wake_shard"}
    if "expires_at" in names:
        names |= {"ttl"}
    return names | _HISTORY_KEYS if kind in (Run, Record, DeadLetter, AuditRow) else names


def audit_day(day: str) -> str:
    """The part of the index `by_day` with the audit records of a day of all namespaces."""
    return f"AUDIT#{day}"


def _history(row: Run | Record | DeadLetter, shards: int) -> dict[str, str]:
    """The keys of the history indexes. They never change once written, so later writes cost the indexes nothing."""
    namespace = row.schedule.partition(".")[0]
    if isinstance(row, Record):
        at = f"{iso(row.recorded_at)}#{row.id}"
        day = f"RECORD#{namespace}#{iso(row.recorded_at)[:10]}#{ids.shard(row.id, shards)}"
        return {"schedule_key": f"RECORD#{row.schedule}", "day_key": day, "at": at}
    part = ids.shard(row.run_id, shards)
    if isinstance(row, DeadLetter):
        # One list holds all days of a namespace: dead letters are few, and the oldest matter as much as the newest.
        at = f"{iso(row.failed_at)}#{row.run_id}#{row.attempt:03d}"
        return {"schedule_key": f"DEAD#{row.schedule}", "day_key": f"DEAD#{namespace}#{part}", "at": at}
    return {
        "wf_key": f"{row.workflow}#{part}",
        # Split into parts: ten thousand events of one schedule may be due at one instant (W11).
        "schedule_key": f"{row.schedule}#{part}",
        "day_key": f"{namespace}#{iso(row.claimed_at)[:10]}#{part}",
        "at": f"{iso(row.claimed_at)}#{row.run_id}#{row.attempt:03d}",
    }


def _encode(name: str, content: Any) -> Any:
    plain = _to_plain(name, content)
    return json.dumps(plain, separators=(",", ":")) if name in _JSON_FIELDS else plain


def _to_plain(name: str, content: Any) -> Any:
    if isinstance(content, Why):
        return content.kept()
    if isinstance(content, Event | StartRequest):
        # None is not stored: a reader fills in None for a missing attribute.
        parts = ((part.name, getattr(content, part.name)) for part in fields(content) if part.name != _CARRIED)
        return {name: part_value for name, part_value in parts if part_value is not None} | dict(content.unknown)
    if name == "named":
        return [_to_plain("event", event) for event in content]
    if name == "leaves":
        return {leaf: progress.numbers for leaf, progress in content.items()}
    return content if name in _JSON_FIELDS else _listed(content)


def _listed(content: Any) -> Any:
    return [_listed(part) for part in content] if isinstance(content, tuple) else content


def _decode(name: str, content: Any) -> Any:
    if name == "wake_at":
        return parse_instant(content)
    if name in _JSON_FIELDS:
        document = json.loads(content) if isinstance(content, str) else content
        if name == "named":
            return tuple(_part(Event, event) for event in document)
        return (
            _part({"event": Event, "request": StartRequest}[name], document)
            if name in ("event", "request")
            else document
        )
    if name == "leaves":
        return {leaf: Progress.of([int(number) for number in numbers]) for leaf, numbers in content.items()}
    return _plain(content)


def _part(kind: type[R], document: dict[str, Any]) -> R:
    """A row that is stored inside another one."""
    known = _names(kind)  # type: ignore[arg-type]  # a class is hashable
    unknown: Unknown = tuple((name, content) for name, content in document.items() if name not in known)
    values = {name: content for name, content in document.items() if name in known}
    return kind(**values, **({_CARRIED: unknown} if unknown else {}))


def _plain(content: Any) -> Any:
    if isinstance(content, Decimal):
        return int(content)
    if isinstance(content, set):
        return tuple(sorted(content))
    if isinstance(content, list):
        return tuple(_plain(part) for part in content)
    if isinstance(content, dict):
        return {name: _plain(part) for name, part in content.items()}
    return content
