"""The benchmark of the matrix of periods: what it stores, and when it fails."""

from __future__ import annotations

from datetime import UTC, date
from typing import Any

import pytest

from benchmarks import matrix as benchmark
from chalicelib.core.writes import Put
from chalicelib.flow.history import period_ends
from chalicelib.flow.views import matrix
from chalicelib.flow.views.schedule_list import Wanted
from tests.support.clock import NOON
from tests.support.world import World


def test_l23_each_day_of_each_schedule_has_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "SCHEDULES", 3)
    monkeypatch.setattr(benchmark, "DAYS", 40)
    world.deploy(benchmark.app(3), benchmark.NAMESPACE, benchmark.APP)
    runs = list(benchmark.stored(NOON, 0, NOON))
    assert len(runs) == 3 * 40
    world.ports.ledger.put_all([Put(run) for run in runs])
    names = [f"{benchmark.NAMESPACE}.{benchmark.APP}.{name}" for name in benchmark.named(3)]
    days = matrix.Days(date(2026, 1, 21), date(2026, 3, 1), UTC)

    def shown() -> dict[str, str]:
        found = matrix.page(world.ports, benchmark.NAMESPACE, Wanted(), days, 100, None)
        assert found.cursor is None
        return {item["schedule"]: item["days"] for item in found.items}

    before = shown()
    assert list(before) == names
    assert {letter for row in before.values() for letter in row} == {"s", "f"}
    assert period_ends.keep(world.ports, names, {}) == 3
    assert shown() == before


@pytest.mark.parametrize(("requests", "ms", "count"), [(1, 999, 0), (1, 1_000, 1), (2, 500, 1)])
def test_l23_more_than_a_second_or_a_request_fails(requests: int, ms: int, count: int) -> None:
    one: dict[str, Any] = {"requests": requests, "calls": 252, "read_units": 980.0, "ms": ms}
    results = {"matrix": {"schedules": 100, "days": 400, "runs": 40_000, "before": one, "rows": one}}
    assert len(benchmark.over_budget(results)) == count
    assert benchmark.tables(results)[0].row_count == 2
