"""Documents in YAML or JSON files: app documents, whose ``${placeholders}`` are filled in before they are sent,
messages, and lists of events."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from string import Template
from typing import Any

import yaml

from sluice.client import Document
from sluice.errors import WrongUsage

MERGE = "tag:yaml.org,2002:merge"


def load(path: str, values: Mapping[str, str] | None = None) -> Document:
    """The document in a file (``-``: standard input), its placeholders filled from ``values``.

    Raises ``WrongUsage`` if the file cannot be read or parsed (with the line), or if a placeholder has no value. A
    filled value is text: ``count: ${n}`` sends ``"3"``, which the API accepts where it expects a number.
    """
    text = _read(path)
    parsed = _parse(path, text)
    if not isinstance(parsed, dict):
        hint = "start the document with `namespace:` and `app:`"
        raise WrongUsage(f"expected an app document in {path}, got {_word_for(parsed)}", None, hint)
    filled: Document = _fill(parsed, values or {}, path, "")
    return filled


def load_plain(path: str) -> Document:
    """The object in a file. A dollar sign in a text has no special meaning."""
    parsed = _parse(path, _read(path))
    if not isinstance(parsed, dict):
        raise WrongUsage(f"expected an object in {path}, got {_word_for(parsed)}")
    plain: Document = _fill(parsed, None, path, "")
    return plain


def load_list(path: str, key: str) -> list[Document]:
    """The list of objects in a file, at the top level or under ``key``. A dollar sign has no special meaning."""
    parsed = _parse(path, _read(path))
    listed = parsed[key] if isinstance(parsed, dict) and set(parsed) == {key} else parsed
    if not isinstance(listed, list) or not listed:
        hint = f"write each as an item: `- type: ...`, or put the list under `{key}:`"
        raise WrongUsage(f"expected a list of {key} in {path}, got {_word_for(listed)}", None, hint)
    for number, item in enumerate(listed):
        if not isinstance(item, dict):
            raise WrongUsage(f"expected an object, got {_word_for(item)}", f"{path}: {key}.{number}")
    plain: list[Document] = _fill(listed, None, path, key)
    return plain


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"expected a readable file, got {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongUsage(f"expected text in UTF-8, got other bytes in {path}") from None


def _parse(path: str, text: str) -> Any:
    if path.endswith(".json"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise WrongUsage(f"expected JSON, got {error.msg.lower()}", f"{path}, line {error.lineno}") from None
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}, line {mark.line + 1}" if mark else path
        raise WrongUsage(f"expected YAML, got an error: {error.problem or error}", where) from None
    except yaml.YAMLError as error:
        raise WrongUsage(f"expected YAML, got an error: {error}", path) from None


def _fill(value: Any, values: Mapping[str, str] | None, path: str, field: str) -> Any:
    """The same tree with all texts filled in; unchanged if ``values`` is None. Keys are never filled in: which objects
    exist must not depend on a setting."""
    if isinstance(value, dict):
        return {str(key): _fill(item, values, path, f"{field}.{key}".lstrip(".")) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, values, path, f"{field}.{number}".lstrip(".")) for number, item in enumerate(value)]
    if isinstance(value, str):
        return value if values is None else _fill_text(value, values, path, field)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise WrongUsage(f"expected text, a number, a list or an object, got {_word_for(value)}", f"{path}: {field}")


def _fill_text(text: str, values: Mapping[str, str], path: str, field: str) -> str:
    where = f"{path}: {field}"
    try:
        return Template(text).substitute(values)
    except KeyError as missing:
        name = str(missing.args[0])
        near = get_close_matches(name, list(values), n=1)
        hint = f"add --set {name}=..." + (f" (or is --set {near[0]} a typing error?)" if near else "")
        raise WrongUsage(f"expected a value for the placeholder ${{{name}}}, got none", where, hint) from None
    except ValueError:
        hint = "write $$ for a dollar sign"
        raise WrongUsage(f"expected ${{name}} after every dollar sign, got {text!r}", where, hint) from None


def _word_for(value: Any) -> str:
    if isinstance(value, list | dict) and not value:
        return "an empty list" if isinstance(value, list) else "an empty object"
    words = {"NoneType": "nothing", "str": "text", "list": "a list", "dict": "an object"}
    return words.get(type(value).__name__, type(value).__name__)


class _Loader(yaml.SafeLoader):
    """A YAML loader in which dates stay text, and a repeated key is an error.

    The standard loader silently keeps only the last of two equal keys, so a schedule could get lost.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag != MERGE and key.value in names:
                problem = f"{key.value!r} a second time in one object"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            if isinstance(key.value, str):
                names.add(key.value)
        return super().construct_mapping(node, deep)


# A day such as 2013-01-01 is the text of a property or tag, not a Python date.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
