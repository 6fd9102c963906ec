"""Documents in YAML or JSON files: app documents, whose ``${placeholders}`` are filled in before they are sent,
messages, and lists of events."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from string import Template
from typing import Any

import yaml

from sluice import yaml12
from sluice.client import Document
from sluice.errors import Problem, WrongUsage


@dataclass(frozen=True, slots=True)
class Source:
    """A document, and the file that it comes from. ``tree`` contains the lines of its fields."""

    path: str
    document: Document
    tree: Any

    def line_of(self, field: str) -> int | None:
        """The line of a field, from 1 on; that of the innermost part that is there, or None."""
        return yaml12.line_of(self.tree, field)

    def place(self, field: str | None) -> str:
        """A field with its file and line: ``app.yaml, line 12: schedules.nightly.zone``."""
        return _place(self.path, self.tree, field)


class Values(dict[str, str]):
    """The values of placeholders by name. ``places`` has the file and the line of each one that is from a file."""

    def __init__(self, values: Mapping[str, str], places: Mapping[str, str]) -> None:
        super().__init__(values)
        self.places = dict(places)


def load(path: str, values: Mapping[str, str] | None = None) -> Document:
    """The document of `source`."""
    return source(path, values).document


def source(path: str, values: Mapping[str, str] | None = None) -> Source:
    """The document in a file (``-``: standard input), its placeholders filled from ``values``.

    Raises ``WrongUsage`` if the file cannot be read or parsed (with the line), or if placeholders have no value. A
    filled value is text: ``count: ${n}`` sends ``"3"``, which the API accepts where it expects a number.
    """
    parsed, tree = _parse(path, _read(path))
    if not isinstance(parsed, dict):
        hint = "start the document with `namespace:` and `app:`"
        raise WrongUsage(f"expected an app document in {path}, got {_word_for(parsed)}", None, hint)
    return Source(path, _Filler(path, tree, values or {}).filled(parsed), tree)


def load_plain(path: str) -> Document:
    """The document of `plain_source`."""
    return plain_source(path).document


def plain_source(path: str, such: str = "due_time: 10m") -> Source:
    """The object in a file. A dollar sign in a text has no special meaning. ``such`` is an example of a field."""
    parsed, tree = _parse(path, _read(path))
    if not isinstance(parsed, dict):
        hint = f"write names with their values, such as `{such}`"
        raise WrongUsage(f"expected an object in {path}, got {_word_for(parsed)}", None, hint)
    return Source(path, _Filler(path, tree, None).filled(parsed), tree)


def text_source(name: str, text: str) -> Source:
    """The app document in a text. A dollar sign has no special meaning. name stands for the file in errors."""
    parsed, tree = _parse(name, text)
    if not isinstance(parsed, dict):
        hint = "write the lines of the app document, such as `schedules:`"
        raise WrongUsage(f"expected an app document, got {_word_for(parsed)}", name, hint)
    return Source(name, _Filler(name, tree, None).filled(parsed), tree)


def load_list(path: str, key: str) -> list[Document]:
    """The list of objects in a file, at the top level or under ``key``. A dollar sign has no special meaning."""
    parsed, tree = _parse(path, _read(path))
    is_under = isinstance(parsed, dict) and set(parsed) == {key}
    listed = parsed[key] if is_under else parsed
    if not isinstance(listed, list) or not listed:
        hint = f"write each as an item: `- type: ...`, or put the list under `{key}:`"
        raise WrongUsage(f"expected a list of {key} in {path}, got {_word_for(listed)}", None, hint)
    for number, item in enumerate(listed):
        if not isinstance(item, dict):
            hint = "write names with their values, such as `type: ...`"
            raise WrongUsage(f"expected an object, got {_word_for(item)}", f"{path}: {key}.{number}", hint)
    filled = _Filler(path, tree, None).filled(parsed)
    plain: list[Document] = filled[key] if is_under else filled
    return plain


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        hint = "correct the path, or write - and pipe the document in"
        raise WrongUsage(f"expected a readable file, got {path}: {error.strerror}", None, hint) from None
    except UnicodeDecodeError:
        raise WrongUsage(f"expected text in UTF-8, got other bytes in {path}") from None


def _parse(path: str, text: str) -> tuple[Any, Any]:
    """The value of a text, and the tree with the lines of its fields; None as the tree if the lines are unknown."""
    if path.endswith(".json"):
        return _parse_json(path, text)
    try:
        tree = yaml12.compose(text)
        return yaml12.value_of(tree), tree
    except yaml12.RepeatedKeys as repeated:
        hint = "rename one of them, or remove it"
        raise WrongUsage.of(
            [Problem(f"expected each name once, got {key!r} a second time in one object", f"{path}, line {line}", hint)
             for key, line in repeated.keys]
        ) from None  # fmt: skip
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}, line {mark.line + 1}" if mark else path
        raise WrongUsage(f"expected YAML, got an error: {error.problem or error}", where, _yaml_hint(error)) from None
    except yaml.YAMLError as error:
        raise WrongUsage(f"expected YAML, got an error: {error}", path) from None
    except RecursionError:
        raise WrongUsage("expected at most 100 levels of objects and lists, got more", path) from None


def _yaml_hint(error: yaml.MarkedYAMLError) -> str | None:
    problem = str(error.problem)
    if "'\\t'" in problem:
        return "indent with spaces: YAML forbids tabs"
    if "mapping values are not allowed" in problem:
        return "indent this line as its neighbours, put a space after each colon, and put a text with ': ' in quotes"
    if "undefined alias" in problem or "alias" in str(error.context):
        return "put a text that begins with * in quotes, such as '*/15 * * * *'"
    if "cannot start any token" in problem:
        return "put a text that begins with @, %, ` or a quote in quotes, such as '@daily'"
    return None


def _json_hint(error: json.JSONDecodeError) -> str:
    before, here = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    if before.endswith(",") and here[:1] in ("}", "]"):
        return f"remove the comma before {here[0]}"
    if "double quotes" in error.msg and here[:1] != '"':
        return 'put the name in double quotes, such as "namespace"'
    if "',' delimiter" in error.msg:
        return "add the comma, or close what is open, before this place"
    return "correct this line; true, false and null are the only words without quotes"


def _parse_json(path: str, text: str) -> tuple[Any, Any]:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError as error:
        where, hint = f"{path}, line {error.lineno}", _json_hint(error)
        raise WrongUsage(f"expected JSON, got an error: {error.msg.lower()}", where, hint) from None
    try:
        return parsed, yaml12.compose(text.replace("\t", " "))
    except (yaml.YAMLError, RecursionError):
        return parsed, None  # valid JSON whose lines are not known


def _place(path: str, tree: Any, field: str | None) -> str:
    line = yaml12.line_of(tree, field) if field else None
    where = f"{path}, line {line}" if line is not None else path
    return f"{where}: {field}" if field else where


MAX_VALUES = 100_000  # values of one document: an alias of YAML can repeat a part of it without end


class _Filler:
    """Fills the placeholders of a tree from ``values``, or leaves texts as they are if it has none.

    Keys are never filled in: which objects exist must not depend on a setting."""

    def __init__(self, path: str, tree: Any, values: Mapping[str, str] | None) -> None:
        self._path, self._tree, self._values = path, tree, values
        self._problems: list[Problem] = []
        self._filled: set[str] = set()  # placeholders with a value
        self._unfilled: dict[str, str] = {}  # those without one, with the field of the first
        self._left = MAX_VALUES

    def filled(self, value: Any) -> Any:
        """The same tree with all texts filled in. Raises ``WrongUsage`` with every problem of it."""
        try:
            found = self._fill(value, "")
        except RecursionError:
            hint = "an alias cannot be a part of what it names"
            raise WrongUsage("expected an alias of another value, got one of itself", self._path, hint) from None
        for name, field in self._unfilled.items():
            spare = {key: value for key, value in (self._values or {}).items() if key not in self._filled}
            hint = _how_to_give(name, spare, getattr(self._values, "places", {}))
            self._report(f"expected a value for the placeholder ${{{name}}}, got none", field, hint)
        if self._problems:
            raise WrongUsage.of(self._problems)
        return found

    def _fill(self, value: Any, field: str) -> Any:
        self._left -= 1
        if self._left < 0:
            hint = "aliases repeat what they name: use fewer of them"
            raise WrongUsage(f"expected at most {MAX_VALUES} values in a document, got more", self._path, hint)
        if isinstance(value, dict):
            return {str(key): self._fill(item, f"{field}.{key}".lstrip(".")) for key, item in value.items()}
        if isinstance(value, list):
            return [self._fill(item, f"{field}.{number}".lstrip(".")) for number, item in enumerate(value)]
        if isinstance(value, str):
            return value if self._values is None else self._fill_text(value, self._values, field)
        if isinstance(value, float) and not math.isfinite(value):
            self._report(f"expected a number that JSON can hold, got {value}", field, "put it in quotes")
            return None
        if value is None or isinstance(value, bool | int | float):
            return value
        self._report(f"expected text, a number, a list or an object, got {_word_for(value)}", field, None)
        return None

    def _fill_text(self, text: str, values: Mapping[str, str], field: str) -> str | None:
        used = _Used(values)
        try:
            return Template(text).substitute(used)
        except KeyError as missing:
            self._unfilled.setdefault(str(missing.args[0]), field)
        except ValueError:
            hint = "write $$ for a dollar sign"
            self._report(f"expected ${{name}} after every dollar sign, got {text!r}", field, hint)
        finally:
            self._filled |= used.names
        return None

    def _report(self, message: str, field: str, hint: str | None) -> None:
        self._problems.append(Problem(message, _place(self._path, self._tree, field), hint))


class _Used(dict[str, str]):
    """Values that remember which of them were asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        value = super().__getitem__(name)
        self.names.add(name)
        return value


def _how_to_give(name: str, spare: Mapping[str, str], places: Mapping[str, str]) -> str:
    """How to give a placeholder its value: where others have theirs, and which one is perhaps misspelt, of those that
    the document does not use. ``places`` are the files and lines of values that are from files."""
    files = [place.partition(", line ")[0] for place in places.values()]
    how = f"add {name}: ... to {files[-1]}, or --set {name}=..." if files else f"add --set {name}=..."
    near = get_close_matches(name, list(spare), n=1)
    if not near:
        return how
    given = f"is {near[0]} in {places[near[0]]}" if near[0] in places else f"is --set {near[0]}"
    return f"{how} (or {given} a typing error?)"


def _word_for(value: Any) -> str:
    if isinstance(value, list | dict) and not value:
        return "an empty list" if isinstance(value, list) else "an empty object"
    words = {"NoneType": "nothing", "str": "text", "list": "a list", "dict": "an object"}
    return words.get(type(value).__name__, type(value).__name__)
