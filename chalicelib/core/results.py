"""The result of a run: a small JSON value that its program hands on to the runs after it (W18).

A run has a result if its target gives one, and only if it succeeded. The row of the run keeps it, written with the end
of the run. A result that cannot be kept changes nothing about that end: the row says why it was refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_RESULT = 10_000  # bytes of ASCII JSON without spaces, as it is stored
MAX_READ = 64 * 1024  # bytes that are read of a result as its program wrote it, with its spaces
MAX_LEVELS = 50  # of lists and objects in each other
HINT = "put it into S3, and give its address as the result"


@dataclass(frozen=True, slots=True)
class Result:
    """What a run has handed on: a JSON ``value``, or why Sluice ``refused`` it. Neither: it has handed on nothing."""

    value: Any = None
    refused: str = ""


NONE = Result()


def of_text(text: str | bytes) -> Result:
    """The result in a JSON text. An empty text and ``null`` are none. Of a long text, the first bytes are enough, if
    they are more than `MAX_READ`."""
    if len(text) > MAX_READ:
        return _too_large(f"more than {MAX_READ:,}")
    try:
        return of_value(json.loads(text, parse_constant=_refuse_constant) if text.strip() else None)
    except (ValueError, RecursionError):
        begins = text[:100].decode(errors="replace") if isinstance(text, bytes) else text[:100]
        return Result(refused=f"expected a result in JSON, got {begins!r}")


def of_value(value: Any) -> Result:
    """A value as a result. It must be one that JSON can hold."""
    if value is None:
        return NONE
    if _levels(value) > MAX_LEVELS:
        return Result(refused=f"expected a result of at most {MAX_LEVELS} levels, got more; {HINT}")
    try:
        size = len(json.dumps(value, separators=(",", ":"), allow_nan=False))
    except (TypeError, ValueError) as error:
        return Result(refused=f"expected a result in JSON, got {type(value).__name__}: {error}")
    return Result(value) if size <= MAX_RESULT else _too_large(f"{size:,}")


def _too_large(got: str) -> Result:
    return Result(refused=f"expected a result of at most {MAX_RESULT:,} bytes of JSON, got {got}; {HINT}")


def _refuse_constant(name: str) -> NoReturn:
    """``NaN`` and ``Infinity`` are not JSON, though Python reads them."""
    raise ValueError(name)


def _levels(value: Any) -> int:
    """How many lists and objects contain each other, counted up to one more than `MAX_LEVELS`."""
    levels, inside = 0, _containers([value])
    while inside and levels <= MAX_LEVELS:
        levels += 1
        inside = _containers(part for each in inside for part in _parts(each))
    return levels


def _containers(values: Iterable[Any]) -> list[Any]:
    return [each for each in values if isinstance(each, Mapping | list | tuple)]


def _parts(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, Mapping) else container
