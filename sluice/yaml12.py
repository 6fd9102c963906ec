"""YAML by the rules of version 1.2: ``on``, ``yes`` and ``1:30`` are texts, and ``0o14`` is a number.

PyYAML reads version 1.1. The loader and the dumper here have the resolvers of the core schema of 1.2, with two
exceptions. The merge key ``<<`` of 1.1 works. A number with a leading zero is text, because ``month: 08`` names a
folder. A key is always text, exactly as the file contains it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from sluice.visible import escaped

MERGE = "tag:yaml.org,2002:merge"
_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))
_PLAIN = (
    (_NULL, re.compile(r"~|null|Null|NULL|"), "~nN\0"),
    (_BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    (_INT, re.compile(r"[-+]?(0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+"), "-+0123456789"),
    (
        _FLOAT,
        re.compile(
            r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
        ),
        "-+.0123456789",
    ),
    (MERGE, re.compile(r"<<"), "<"),
)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """The resolvers by the first character of a plain scalar, as PyYAML expects them; ``""`` is the empty scalar."""
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, firsts in _PLAIN:
        for first in firsts:
            whole = re.compile(f"(?:{pattern.pattern})$")
            found.setdefault("" if first == "\0" else first, []).append((tag, whole))
    return found


class RepeatedKeys(yaml.YAMLError):
    """Keys that occur more than once in one object, each with the line number of the repetition."""

    def __init__(self, keys: list[tuple[str, int]]) -> None:
        super().__init__("a key a second time in one object")
        self.keys = keys


MAX_MERGED = 100_000  # entries that merge keys copy: a list of aliases can double them with each object


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _resolvers()
    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace merge keys by the entries that they name, each key once. PyYAML keeps every copy of an entry, so that
        objects that merge one another twice would double with each level."""
        if not any(key.tag == MERGE for key, _ in node.value):
            return
        super().flatten_mapping(node)
        self.merged += len(node.value)
        if self.merged > MAX_MERGED:
            problem = f"expected merge keys (<<) that copy at most {MAX_MERGED} entries, got more"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        own = {key.value if isinstance(key.value, str) else id(key): (key, value) for key, value in node.value}
        node.value = list(own.values())

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        return {_name(self, key): self.construct_object(value, deep=deep) for key, value in node.value}


def _name(loader: _Loader, key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(None, None, "a list or an object as a key", key.start_mark)
    return str(key.value)


def _int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(node.value)
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(str(node.value).lower().replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor(_INT, _int)
_Loader.add_constructor(_FLOAT, _float)


class _Dumper(yaml.SafeDumper):
    """Quotes each text that this loader, or a loader of YAML 1.1, would read as another type."""


def quoted_if_needed(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """A text with control characters in double quotes, where they have escapes."""
    style = '"' if escaped(text) != text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, quoted_if_needed)
_Dumper.yaml_implicit_resolvers = {
    first: [*_Loader.yaml_implicit_resolvers.get(first, ()), *yaml.SafeDumper.yaml_implicit_resolvers.get(first, ())]
    for first in {*_Loader.yaml_implicit_resolvers, *yaml.SafeDumper.yaml_implicit_resolvers}
}


def load(text: str) -> Any:
    """The value of a document. Raises ``yaml.YAMLError``."""
    return value_of(compose(text))


def compose(text: str) -> yaml.Node | None:
    """The tree of a document; its nodes contain their line numbers. Raises ``yaml.YAMLError``, and `RepeatedKeys`,
    because PyYAML would keep only the last of two schedules with one name."""
    loader = _Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
    finally:
        loader.dispose()
    repeated = sorted(_repeated(root, set()), key=lambda found: found[1]) if root is not None else []
    if repeated:
        raise RepeatedKeys(repeated)
    return root


def value_of(root: yaml.Node | None) -> Any:
    """The value of a tree. Raises ``yaml.YAMLError``."""
    if root is None:
        return None
    loader = _Loader("")
    try:
        return loader.construct_document(root)
    finally:
        loader.dispose()


def dump(value: Any) -> str:
    """A value as YAML that has the same meaning in versions 1.1 and 1.2, with escapes for control characters."""
    return escaped(str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)))


def line_of(root: yaml.Node | None, field: str) -> int | None:
    """The line, from 1 on, of the field with this path, such as ``schedules.nightly.zone``. For a missing field, the
    line of its innermost part that exists; None if no part exists."""
    line: int | None = None
    node = root
    while node is not None and field:
        found = _child(node, field)
        if found is None:
            return line
        line, node, field = found
    return line


def _child(node: yaml.Node, field: str) -> tuple[int, yaml.Node, str] | None:
    """The first part of a path below a node: its line, its node, and the rest of the path. The longest matching key
    wins, because keys may contain dots. None if no part matches."""
    if isinstance(node, yaml.SequenceNode):
        number, _, rest = field.partition(".")
        if not number.isdigit() or int(number) >= len(node.value):
            return None
        item = node.value[int(number)]
        return item.start_mark.line + 1, item, rest
    entries = [] if not isinstance(node, yaml.MappingNode) else list(_entries(node))
    fitting = [(key, value) for key, value in entries if field == key.value or field.startswith(f"{key.value}.")]
    if not fitting:
        return None
    key, value = max(fitting, key=lambda entry: len(entry[0].value))
    return key.start_mark.line + 1, value, field[len(key.value) + 1 :]


def _entries(node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """The keys and values of an object: first its own, then those of the objects that it merges."""
    yield from ((key, value) for key, value in node.value if key.tag != MERGE and isinstance(key.value, str))
    for key, value in node.value:
        merged = [value] if isinstance(value, yaml.MappingNode) else value.value
        for each in merged if key.tag == MERGE else ():
            if isinstance(each, yaml.MappingNode):
                yield from _entries(each)


def _repeated(node: yaml.Node, seen: set[int]) -> Iterator[tuple[str, int]]:
    if id(node) in seen or isinstance(node, yaml.ScalarNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, seen)
        return
    names: set[str] = set()
    for key, value in node.value:
        if key.tag != MERGE and isinstance(key.value, str):
            if key.value in names:
                yield key.value, key.start_mark.line + 1
            names.add(key.value)
        yield from _repeated(value, seen)
