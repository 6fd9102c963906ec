"""Rows as DynamoDB items and back. Free-form documents are stored as JSON text, all other fields as plain attributes.

``format`` is the number of the layout (O11). Code reads every layout that was released; none was before layout 4.
A new attribute needs no new layout: code that does not know the attribute keeps it (`core/rows/stored.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from chalicelib.core import ids
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.rows import kinds
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job, Progress
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.parts import Parts
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
_JSON_FIELDS = {
    "definition",
    "document",
    "properties",
    "request",
    "event",
    "metrics",
    "named",
    "sends",
    "result",
    "element",
    "elements",
}
_SPARSE = {
    "count",
    "plan",
    "done",
    "ahead",
    "left",
    "spread",
    "shape",
    "shapes",
    "bundled",
    "stops",
}  # not stored if they have their default
_CARRIED = "unknown"  # the only field that is not stored under its own name
# A row without a ``wake_at`` that people search for lies in a list of its own in the wake index, which no tick reads.
# In place of the number of a shard such an item has ``<list>#<namespace>#<shard>``.
WAITS, PAUSED = "waits", "paused"
_HISTORY_KEYS = frozenset({"wf_key", "schedule_key", "day_key", "at"})

_EXACT = 10**38  # DynamoDB keeps up to 38 digits of a number
_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize
_json = json.JSONEncoder(separators=(",", ":")).encode
_FORMAT, _OF_BUNDLES = {"N": str(FORMAT)}, {"N": str(OF_BUNDLES)}
_PARTS: dict[str, type[Any]] = {"event": Event, "request": StartRequest}  # fields that hold another row


class NewerLayout(RuntimeError):
    """A row has a newer layout than this code can read. The message or tick that needs the row is retried, and succeeds
    once the newer code is deployed."""


def value(plain: Any) -> dict[str, Any]:
    """One attribute value. What rows consist of does not pass boto3's slow serializer.

    DynamoDB refuses text that is not valid Unicode, such as half of a surrogate pair in the answer of a target. A
    question mark replaces it."""
    kind = type(plain)
    if kind is str:
        return {"S": plain if plain.isascii() else plain.encode("utf-8", "replace").decode()}
    if kind is int and -_EXACT < plain < _EXACT:
        return {"N": str(plain)}
    if kind is list or kind is tuple:
        return {"L": [value(part) for part in plain]}
    if kind is dict:
        return {"M": {name: value(part) for name, part in plain.items()}}
    if kind is bool:
        return {"BOOL": plain}
    result: dict[str, Any] = _serialize(plain)
    return result


def _read(content: dict[str, Any]) -> Any:
    """The content of an attribute value: numbers are integers, lists and sets are tuples."""
    ((kind, stored),) = content.items()
    if kind == "S" or kind == "BOOL":
        return stored
    if kind == "N" and stored.isdecimal():
        return int(stored)
    if kind == "L":
        return tuple([_read(part) for part in stored])
    if kind == "M":
        return {name: _read(part) for name, part in stored.items()}
    return _plain(_deserialize(content))


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
    item: Item = dict(row.unknown)
    item |= {"pk": value(key.pk), "sk": value(key.sk), "format": _layout(row)}
    form = _form(type(row))
    for (name, default, is_sparse, is_special), content in zip(form.fields, form.contents(row), strict=True):
        if content is not None and not (is_sparse and content == default):
            item[name] = value(_encode(name, content) if is_special else content)
    plain: dict[str, Any] = {}
    wake_at = getattr(row, "wake_at", None)
    plain |= wake(wake_at, key.pk, wake_shards) if wake_at is not None else listed(row, key.pk, wake_shards)
    expires_at = getattr(row, "expires_at", None)
    if expires_at is not None:
        plain["ttl"] = expires_at // 1000
    if isinstance(row, Run | Record | DeadLetter):
        plain |= _history(row, history_shards)
    if isinstance(row, AuditRow):
        plain |= {"day_key": audit_day(iso(row.recorded_at)[:10]), "at": row.id}
    for name, content in plain.items():
        item[name] = value(content)
    return item


def _layout(row: Row) -> dict[str, Any]:
    is_bundle = isinstance(row, Job) and row.is_bundle
    return _OF_BUNDLES if is_bundle or (isinstance(row, Run) and row.sends is not None) else _FORMAT


def from_item(kind: type[R], item: Item) -> R:
    """The row of a stored item. Raises `NewerLayout` if the item has a layout that this code does not know."""
    layout = _read(item["format"]) if "format" in item else FORMAT
    if layout > OF_BUNDLES:
        raise NewerLayout(
            f"row {_read(item['pk'])}, {_read(item['sk'])} has layout {layout}; this code reads up to {OF_BUNDLES}"
        )
    form = _form(kind)
    values: dict[str, Any] = {}
    unknown: list[tuple[str, Any]] = []
    for name, content in item.items():
        if name in form.special:
            values[name] = _decode(name, content)
        elif name in form.names:
            values[name] = content["S"] if "S" in content else _read(content)
        elif name not in form.known:
            unknown.append((name, content))
    for name in form.reasons & values.keys():
        values[name] = parse(values[name])
    if is_listed(item):
        del values["wake_at"]
    if kind is LimitState:  # created by updates, which do not write its name
        values["limit_name"] = _read(item["pk"]).removeprefix("LIMIT#")
    return kind(**values, **({_CARRIED: tuple(unknown)} if unknown and issubclass(kind, StoredRow) else {}))


def rows_of(kind: type[R], found: Iterable[Item]) -> tuple[R, ...]:
    return tuple(from_item(kind, item) for item in found)


def picked(item: Item, names: Sequence[str]) -> tuple[Any, ...]:
    """Some attributes of a row, but not of a run; None for an attribute that is not stored."""
    return tuple(_decode(name, item[name]) if name in item else None for name in names)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the rows of a class are stored. ``fields`` are those that `to_item` writes: the name, the default, whether
    a content that equals the default is left out, and whether `_encode` has to write it. ``contents`` reads their
    contents from a row.

    ``names`` are the fields that are read, ``special`` those of them that `_decode` has to read, and ``reasons`` those
    that are reasons. ``known`` are the attributes that this code writes, or leaves out on purpose."""

    fields: tuple[tuple[str, Any, bool, bool], ...]
    contents: Callable[[Any], tuple[Any, ...]]
    names: frozenset[str]
    special: frozenset[str]
    reasons: frozenset[str]
    known: frozenset[str]


def _form(kind: type[Any]) -> _Form:
    found = _FORMS.get(kind)
    if found is None:
        found = _FORMS[kind] = _made_form(kind)
    return found


_FORMS: dict[type[Any], _Form] = {}


def _made_form(kind: type[Any]) -> _Form:
    found = [each for each in fields(kind) if each.name != _CARRIED]
    names = frozenset(each.name for each in found)
    reasons = frozenset(each.name for each in found if each.type == "Why")
    special = names & _JSON_FIELDS | names & {"leaves", "period_parts", "wake_at"}
    known = names | {"pk", "sk", "format"}
    known |= {"wake_shard"} if "wake_at" in names else set()
    known |= {"ttl"} if "expires_at" in names else set()
    known |= _HISTORY_KEYS if kind in (Run, Record, DeadLetter, AuditRow) else set()
    written = tuple(
        (each.name, each.default, _is_sparse(kind, each), each.name in special | reasons)
        for each in found
        if each.name != "wake_at"
    )
    first, *others = (name for name, *_ in written)
    read = attrgetter(first, *others)
    return _Form(written, read if others else lambda row: (read(row),), names, special, reasons, known)


def _is_sparse(kind: type[Any], field: Field[Any]) -> bool:
    """Whether a content that equals the default is not stored. DynamoDB bills runs by the KB, so an empty attribute of
    theirs is left out, too."""
    return field.name in _SPARSE or (kind is Run and field.default is not MISSING and not field.default)


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
    """The plain content of a field: texts, numbers, lists and maps."""
    if name in _JSON_FIELDS:
        return _json([_whole(event) for event in content] if name == "named" else _whole(content))
    if name == "leaves":
        return {leaf: progress.numbers for leaf, progress in content.items()}
    if name == "period_parts":
        return {leaf: parts.text for leaf, parts in content.items()}
    return content.kept() if isinstance(content, Why) else content


def _whole(content: Any) -> Any:
    """A document as it is, or a row that is stored inside another one as a document."""
    if not isinstance(content, Event | StartRequest):
        return content
    form = _form(type(content))
    parts = zip(form.fields, form.contents(content), strict=True)
    # None is not stored: a reader fills in None for a missing attribute.
    return {name: part for (name, *_), part in parts if part is not None} | dict(content.unknown)


def _decode(name: str, content: dict[str, Any]) -> Any:
    if name == "wake_at":
        return parse_instant(_read(content))
    if name in _JSON_FIELDS:
        document = json.loads(content["S"]) if "S" in content else _deserialize(content)
        if name == "named":
            return tuple(_part(Event, event) for event in document)
        return _part(_PARTS[name], document) if name in _PARTS else document
    if name == "leaves":
        return {leaf: Progress.of(numbers) for leaf, numbers in _read(content).items()}
    if name == "period_parts":
        return {leaf: Parts.of_text(text) for leaf, text in _read(content).items()}
    return _read(content)


def _part(kind: type[R], document: dict[str, Any]) -> R:
    """A row that is stored inside another one."""
    known = _form(kind).names
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
