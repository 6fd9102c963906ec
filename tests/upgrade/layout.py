"""The layout of all stored data, as a description: `layout.json` is the released one.

`python -m tests.upgrade.layout` prints how the present code differs, and records compatible changes. It records
incompatible changes only with another layout number: docs/operations.md, "Upgrade and going back".
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tests.support import tables
from tests.support.clock import NOON

RECORDED = Path(__file__).with_name("layout.json")
RULE = (
    "raise FORMAT in chalicelib/aws/tables/items.py, move the tag and the commit in tests/upgrade/baseline.txt, then "
    "`python -m tests.upgrade.layout`. See docs/operations.md, Upgrade and going back"
)
Described = dict[str, Any]
# Attributes whose new values older code need not know, with the reason.
OPEN = {
    "Event.kind": "a context has the kind, the id and the instant of an event that older code does not know",
    "Definition.kind": "each kind has keys of its own, and older code lists and reads the kinds that it knows",
}


@dataclass(frozen=True)
class Difference:
    """``compatible``: code of the recorded layout and present code can share the tables in spite of it."""

    text: str
    compatible: bool = False


def describe(package: str = "chalicelib") -> Described:
    """The layout of a version's data: rows, nested data, tables, and hints in the queue."""
    items, hints, kinds, event, run, job, ref = (
        importlib.import_module(f"{package}.{name}")
        for name in ("aws.tables.items", "aws.hints", "core.rows.kinds", "core.rows.event", "core.rows.run",
                     "core.rows.job", "core.rows.ref")
    )  # fmt: skip
    rows = {row.__name__: row for row in kinds.ROWS}
    limit = rows.pop("LimitState")  # created by updates alone
    stored = {name: _row(rows[name], items) for name in sorted(rows)}
    plain = {"pk": "S", "sk": "S", "format": "N", "wake_at": "S", "wake_shard": "S"}
    numbers = {name: "N" for name, hint in get_type_hints(limit).items() if _not_none(hint) is int}
    attributes_of_limit = _attributes(limit, numbers | plain | {"starts": "M", "rates": "SS"})
    stored["LimitState"] = {"keys": ["LIMIT#<limit> / STATE"], "attributes": attributes_of_limit}
    parts = {kind.__name__: _attributes(kind, {}) for kind in (event.Event, run.StartRequest, job.Progress)}
    hint = json.loads(hints.encode([ref.Ref("job", ("schedule", "1", "place"))], NOON))
    return {
        "layout": items.FORMAT,
        "rows": stored,
        "parts": parts,
        "tables": tables.definitions(),
        "hint": {"body": hint, "kinds": sorted(get_args(ref.RefKind))},
    }


def differences(recorded: Described, present: Described) -> list[Difference]:
    """The changes since a layout was recorded, in words, and whether both can share the tables."""
    return [
        *_of_groups("row", recorded["rows"], present["rows"]),
        *_of_groups("part", _as_groups(recorded["parts"]), _as_groups(present["parts"])),
        *_of_tables(recorded["tables"], present["tables"]),
        *_of_hints(recorded["hint"], present["hint"]),
    ]


def recorded() -> Described:
    found: Described = json.loads(RECORDED.read_text())
    return found


def _row(kind: Any, items: Any) -> Described:
    keys, stored = [], {}
    for row in _samples(kind):
        item = items.to_item(row, 1, 1)
        keys.append(f"{item['pk']['S']} / {item['sk']['S']}")
        stored |= {name: next(iter(content)) for name, content in item.items()}
    return {"keys": sorted(set(keys)), "attributes": _attributes(kind, stored)}


def _attributes(kind: Any, stored: Mapping[str, str]) -> Described:
    """Each attribute: its type in the table, whether a reader can do without it, and its possible values."""
    hints, answer = get_type_hints(kind), {}
    for each in fields(kind):
        if each.name != "unknown":
            answer[each.name] = {"type": stored.get(each.name, _type(hints[each.name])), "optional": _has_default(each)}
            if values := _values(hints[each.name]):
                answer[each.name]["values"] = values
    derived = {
        name: {"type": stored_type, "optional": False} for name, stored_type in stored.items() if name not in answer
    }
    return dict(sorted((answer | derived).items()))


def _samples(kind: Any) -> Iterator[Any]:
    """Rows of a kind with all fields set, one for each value that the key may depend on."""
    hints = get_type_hints(kind)
    named = {each.name: hints[each.name] for each in fields(kind) if each.name != "unknown"}
    for value in _values(named.get("kind", str)) or [None]:
        made = {name: _sample(name, hint) for name, hint in named.items()}
        yield kind(**(made | ({} if value is None else {"kind": value})))


def _sample(name: str, hint: Any) -> Any:
    hint = _not_none(hint)
    if is_dataclass(hint):
        return next(_samples(hint))
    if values := _values(hint):
        return values[0]
    if get_origin(hint) in (tuple, Mapping) or hint in (Mapping, dict):
        return ("x",) if get_origin(hint) is tuple else {}
    return {int: NOON, bool: True, str: f"ns.app.{name}"}.get(hint, f"ns.app.{name}")


def _type(hint: Any) -> str:
    hint = _not_none(hint)
    if get_origin(hint) is Literal:
        return "str"
    return str(getattr(get_origin(hint) or hint, "__name__", hint))


def _not_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _values(hint: Any) -> list[str]:
    hint = _not_none(hint)
    return sorted(get_args(hint)) if get_origin(hint) is Literal else []


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING


def _as_groups(parts: Described) -> Described:
    return {name: {"keys": [], "attributes": attributes} for name, attributes in parts.items()}


def _of_groups(what: str, before: Described, after: Described) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield Difference(f"{what} {name} is new", compatible=True)
        elif name not in after:
            yield Difference(f"{what} {name} is gone")
        else:
            if before[name]["keys"] != after[name]["keys"]:
                more = f"{name}.kind" in OPEN and set(before[name]["keys"]) <= set(after[name]["keys"])
                text = f"the keys of {name} were {before[name]['keys']}, are {after[name]['keys']}"
                yield Difference(text, compatible=more)
            yield from _of_attributes(name, before[name]["attributes"], after[name]["attributes"])


def _of_attributes(row: str, before: Described, after: Described) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            can_miss = after[name]["optional"]
            how = "may be missing" if can_miss else "must be there, and rows that are stored have not got it"
            yield Difference(f"{row}.{name} is new: it {how}", compatible=can_miss)
        elif name not in after:
            yield Difference(f"{row}.{name} is gone: older code reads it")
        elif before[name] != after[name]:
            only_values = _without_values(before[name]) == _without_values(after[name])
            compatible = only_values and f"{row}.{name}" in OPEN
            yield Difference(f"{row}.{name} was {before[name]}, is {after[name]}", compatible)


def _without_values(attribute: Described) -> Described:
    return {name: answer for name, answer in attribute.items() if name != "values"}


def _of_hints(before: Described, after: Described) -> Iterator[Difference]:
    """Older code sends a hint of a kind that it does not know back to the queue, until newer code gets it."""
    if before != after:
        more = before["body"] == after["body"] and set(before["kinds"]) <= set(after["kinds"])
        yield Difference(f"hint was {before}, is {after}", compatible=more)


def _of_tables(before: Described, after: Described) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield Difference(f"table {name} is new", compatible=True)
        elif name not in after:
            yield Difference(f"table {name} is gone")
        elif before[name] != after[name]:
            yield Difference(
                f"table {name} was {before[name]}, is {after[name]}", _only_adds(before[name], after[name])
            )


def _only_adds(before: Described, after: Described) -> bool:
    """Whether a table has everything that it had, and nothing new but indexes."""
    same = all(
        after.get(name) == answer for name, answer in before.items() if isinstance(answer, str) or name == "KeySchema"
    )
    lists = ("AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    return same and all(each in after.get(name, []) for name in lists for each in before.get(name, []))


def written(description: Described) -> str:
    return json.dumps(description, indent=1) + "\n"


def main() -> int:
    present = describe()
    found = differences(recorded(), present) if RECORDED.exists() else []
    for each in found:
        print(f"{'compatible' if each.compatible else 'NOT COMPATIBLE'}: {each.text}")
    if not all(each.compatible for each in found) and present["layout"] == recorded()["layout"]:
        print(f"The layout of rows changed: {RULE}.")
        return 1
    RECORDED.write_text(written(present))
    print(f"{RECORDED} describes layout {present['layout']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
