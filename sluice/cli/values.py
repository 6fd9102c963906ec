"""The values of arguments and options, where they are plain: text, numbers and flags.

typer reads every value with pydantic, whose import takes longer than the rest of a command. So plain values are read
here. All others, and those that are wrong, go to typer, which also words the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def lightened(params: list[Any]) -> list[Any]:
    """The parameters, reading plain values without pydantic. Older versions of typer have nothing to replace."""
    for param in params:
        if hasattr(param, "get_runtime_param") and "get_runtime_param" not in vars(param):
            param.get_runtime_param = _Reader(param, param.get_runtime_param).itself
    return params


class _Reader:
    """Takes the place of typer's reader of one parameter."""

    def __init__(self, param: Any, original: Callable[[], Any]) -> None:
        self._original = original
        self._annotation = param.type_descriptor.annotation
        info = param.type_descriptor.parameter_info
        self._min, self._max = info.min, info.max

    def itself(self) -> _Reader:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        found = self._plain(value)
        return self._original().coerce(value, param=param, ctx=ctx) if found is None else found

    def _plain(self, value: Any) -> Any:
        """The value as it is meant; None if it is not plain."""
        wanted = self._annotation
        if wanted is str or wanted is bool:
            return value if type(value) is wanted else None
        if wanted == list[str] and isinstance(value, list | tuple):
            return list(value) if all(type(item) is str for item in value) else None
        if wanted is int or wanted is float:
            return self._number(value, wanted)
        return None

    def _number(self, value: Any, wanted: type[int] | type[float]) -> int | float | None:
        if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
            return None
        number = wanted(value)
        low, high = self._min, self._max
        return number if (low is None or number >= low) and (high is None or number <= high) else None
