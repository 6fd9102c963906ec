"""The budgets of the command line's start: a median that exceeds one is named."""

from __future__ import annotations

from benchmarks import measurement
from benchmarks.startup import COMMANDS, NOTHING, over_budget, tables


def test_a_command_over_its_budget_is_named() -> None:
    slow = {"command": "sluice why", "wall_ms": 401.0, "own_ms": 199.0}
    fat = {"command": "sluice --help", "wall_ms": 300.0, "own_ms": 230.4}
    assert over_budget({"startup": [slow, fat]}) == [
        "sluice why: expected wall_ms of at most 400, got 401",
        "sluice --help: expected own_ms of at most 200, got 230",
    ]
    assert measurement.over_budget("startup", {"startup": [slow]})
    assert measurement.over_budget("cost", {}) == []


def test_help_and_why_are_measured_beside_an_idle_interpreter() -> None:
    assert next(iter(COMMANDS)) == NOTHING
    assert {"sluice --help", "sluice why", "sluice why schedule"} < set(COMMANDS)
    [table] = tables({"startup": [{"command": "sluice why", "wall_ms": 301.4, "own_ms": 150.0}]})
    assert [list(column.cells) for column in table.columns] == [["sluice why"], ["301"], ["150"]]
