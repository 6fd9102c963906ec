"""The part of a sweep that `make test` plays, by a fixed rule. `make test-long` plays the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for ``pytest.mark.parametrize``: the first and every ``nth`` one after it. The others are marked `long`."""
    return [_case(case, is_long=place % nth != 0) for place, case in enumerate(cases)]


def parts(count: int) -> list[Any]:
    """The numbers from 0 on of the parts of a sweep within one test. All but the first are marked `long`. A part plays
    every ``count``-th case from its number on."""
    return every(count, range(count))


def _case(case: Any, is_long: bool) -> Any:
    marks = (pytest.mark.long,) if is_long else ()
    if hasattr(case, "values") and hasattr(case, "marks"):
        return pytest.param(*case.values, marks=(*case.marks, *marks), id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
