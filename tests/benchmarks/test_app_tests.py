"""The cases of the measurement play as they say, and a median over its budget is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.app_tests import CASES, IMPORT, over_budget, tables


@pytest.mark.parametrize("case", [case for case, _ in CASES.values()], ids=lambda case: case.__name__)
def test_a_case_plays(case: Callable[[], None]) -> None:
    case()


def test_a_test_over_its_budget_is_named() -> None:
    found = [{"test": IMPORT, "cpu_ms": 1_500.0}, {"test": "a DAG of four nodes", "cpu_ms": 120.4}]
    assert over_budget({"app_tests": found}) == ["a DAG of four nodes: expected at most 100 ms, got 120"]
    [table] = tables({"app_tests": found})
    assert [list(column.cells) for column in table.columns] == [[IMPORT, "a DAG of four nodes"], ["1,500", "120"]]
