"""The measurement *cpu*: real clients over tables in memory, whose own time is left out."""

from __future__ import annotations

import time
from typing import Any

import pytest

from benchmarks import cpu
from benchmarks.wire import Wire


@pytest.mark.parametrize("case", cpu.CASES)
def test_each_step_of_a_burst_takes_some_cpu(case: str) -> None:
    found = cpu.once(case, 120)
    assert found.keys() == {"emit", "prepare", "send", "record", "other"}
    assert all(ms > 0 for ms in found.values())


def test_the_time_of_the_answers_is_left_out() -> None:
    wire = Wire()

    def slow(operation: str, members: Any) -> dict[str, Any]:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        return {"TableNames": [operation]}

    client, watch = wire.client("dynamodb", slow), cpu.Stopwatch(wire)
    with watch.within("emit"):
        assert client.list_tables()["TableNames"] == ["ListTables"]
    assert wire.calls == 1 and wire.used_s >= 0.05
    begun = time.process_time()
    with watch.within("send"):
        client.list_tables()
    assert watch.used["send"] <= time.process_time() - begun - 0.05


def test_a_step_has_not_the_time_of_a_step_within() -> None:
    watch = cpu.Stopwatch(Wire())

    def busy() -> None:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    with watch.within("send"):
        watch.around("record", busy)()
        busy()
    assert 0.02 <= watch.used["send"] < 0.04
    assert 0.02 <= watch.used["record"] < 0.04
    assert watch.used.keys() == {"send", "record"}


def test_the_least_time_of_each_step_counts() -> None:
    runs = [{"emit": 0.5, "send": 0.2}, {"emit": 0.4, "send": 0.3}]
    assert cpu.least(runs) == {"steps": {"emit": 0.4, "send": 0.2}, "sum": 0.6, "runs": [0.7, 0.7]}


def test_messages_that_are_missing_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "AFTER_S", -20)
    with pytest.raises(RuntimeError, match="expected 5 messages, got 0"):
        cpu.once("lone", 5)


def test_the_table_has_a_row_for_each_case() -> None:
    steps = dict.fromkeys((*cpu.STEPS, cpu.OTHER), 0.25)
    case = {"steps": steps, "sum": 1.25, "runs": [1.25, 1.5]}
    (table,) = cpu.tables({"cpu": {"messages": 3_000, "cases": {"lone": case, "batch": case}}})
    assert table.row_count == 2
    assert [next(iter(column.cells)) for column in table.columns][:3] == ["lone", "0.250", "0.250"]
    assert "3,000" in str(table.title)
