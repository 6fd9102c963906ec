"""What the parts of `sluice.builder` are made of: documents that hold only what was given."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from sluice.errors import WrongUsage


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


# A parameter that was left out. None is a value: it becomes null.
UNSET: Any = _Unset()


class Part(dict[str, Any]):
    """A document inside of another one. It is a dict, so that JSON and YAML take it as it is."""


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given."""
    return {field: value for field, value in fields.items() if value is not UNSET}


def given_or(value: Any, fields: Mapping[str, Any]) -> Any:
    """``value`` if it was given, else a document of the fields that were."""
    return given(fields) if value is UNSET else value


class Named:
    """A document with a name in an app. Each method sets a field and returns the same builder."""

    group: ClassVar[str]  # the field of an app that holds it

    def __init__(self, name: str, content: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._content: dict[str, Any] = plain(content or {})

    def document(self) -> dict[str, Any]:
        """The document that the API takes."""
        found: dict[str, Any] = plain(self._content)
        return found

    def yaml(self) -> str:
        """The document as a file. In a file of a message, which ``sluice message put --file`` reads, a dollar sign has
        no special meaning."""
        from sluice import yaml12

        return yaml12.dump(self.document())

    @classmethod
    def of_file(cls, name: str, path: str | os.PathLike[str]) -> Self:
        """The builder of a YAML or JSON file with one document, such as that of a message."""
        from sluice import documents

        return cls(name, documents.load_plain(os.fspath(path)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._content!r})"

    def _set(self, field: str, value: Any) -> Self:
        self._content[field] = value
        return self

    def _append(self, field: str, value: Any) -> Self:
        return self._extend(field, [value])

    def _extend(self, field: str, values: list[Any]) -> Self:
        for value in values:
            if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
                got = "list" if isinstance(value, tuple) else type(value).__name__
                hint = "write an asterisk before it: (*values)"
                raise WrongUsage(f"expected each value by itself, got a {got}", field, hint)
        return self._set(field, [*self._content.get(field, ()), *values])

    def _merge(self, field: str, values: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Self:
        got: Any = values  # a caller may not use types
        if got is not None and not isinstance(got, Mapping):
            hint = "such as {name: value}, or name=value"
            raise WrongUsage(f"expected values by name, got a {type(got).__name__}", field, hint)
        return self._set(field, {**self._content.get(field, {}), **(values or {}), **more})


class Constrained(Named):
    """A named document with constraints."""

    def wait_until_met(self) -> Self:
        """A job waits until the constraint that was added last is met."""
        return self._unmet("wait")

    def abort_unless_met(self) -> Self:
        """Sluice aborts a job for which the constraint that was added last is not met."""
        return self._unmet("abort")

    def cancel_other(self) -> Self:
        """A job cancels the runs that keep the concurrency constraint that was added last from being met."""
        return self._unmet("cancel_other")

    def _unmet(self, what: str) -> Self:
        constraints = self._content.get("constraints")
        if not constraints:
            hint = "add one before, such as concurrency(1)"
            raise WrongUsage("expected a constraint before its rule for what is not met, got none", self.name, hint)
        return self._set("constraints", [*constraints[:-1], {**constraints[-1], "on_unmet": what}])


def plain(value: Any) -> Any:
    """A copy of plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return copy.copy(value)
