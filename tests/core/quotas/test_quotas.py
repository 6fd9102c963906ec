"""Quotas of a namespace: figures, limits, and how many requests a second pass."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires.upcoming import counted
from chalicelib.core.instants import SECOND
from chalicelib.core.quotas.document import Quotas, Usage, check
from chalicelib.core.quotas.rate import BURST, MAX_KNOWN, Rates

DEFAULTS = Quotas(schedules=10, fires_per_second=5, documents=20, requests_per_second=2)


def timed(expression: str, **fields: Any) -> Schedule:
    trigger = {"type": "time", "expression": expression}
    return Schedule.model_validate({"workflow": "demo.flights.clean", "trigger": trigger, **fields})


def refused(before: Usage, after: Usage) -> SluiceError:
    with pytest.raises(SluiceError) as raised:
        check("demo", DEFAULTS, before, after)
    return raised.value


def test_fires_a_day_include_spread_and_seconds() -> None:
    spread = {"count": 100_000, "over": "1m"}
    assert counted(timed("@every 1s")) == 86_400
    assert counted(timed("@every 1m", spread=spread)) == 1_440 * 100_000
    assert counted(timed("0 5 * * *")) == 1
    assert counted(timed("0 5 * * mon")) is None


def test_o14_many_schedules_of_few_fires_a_day_count() -> None:
    """What is left out is below 1.2 fires a second at the quota of schedules."""
    hourly = counted(timed("0 * * * *"))
    assert hourly == 24
    before = Usage(schedules=0)
    after = before.plus(0, {f"demo.flights.s{number}": hourly for number in range(100_000)}, 0)
    assert refused(before, after).message == "expected at most 5 fires a second in namespace demo, got 27.8"


def test_a_refusal_names_figure_quota_and_where_to_raise_it() -> None:
    before = Usage(schedules=10, documents=12)
    error = refused(before, before.plus(1, {"demo.flights.x": 0}, 1))
    assert error.code == "over_quota"
    assert error.message == "expected at most 10 schedules in namespace demo, got 11"
    assert "sluice quotas demo" in str(error.hint)


def test_fires_of_a_namespace_add_up() -> None:
    before = Usage(fires={"demo.flights.a": 3 * 86_400})
    check("demo", DEFAULTS, before, before.plus(0, {"demo.flights.b": 2 * 86_400}, 1))
    error = refused(before, before.plus(0, {"demo.flights.b": 3 * 86_400}, 1))
    assert error.message == "expected at most 5 fires a second in namespace demo, got 6"


def test_a_replaced_schedule_counts_once() -> None:
    before = Usage(schedules=1, fires={"demo.flights.a": 5 * 86_400})
    check("demo", DEFAULTS, before, before.plus(0, {"demo.flights.a": 4 * 86_400}, 0))


def test_a_namespace_above_its_quota_may_still_shrink() -> None:
    before = Usage(schedules=30, documents=30, fires={"demo.flights.a": 9 * 86_400})
    check("demo", DEFAULTS, before, before.plus(0, {"demo.flights.a": 8 * 86_400}, 0))


def test_quotas_of_a_namespace_replace_those_of_the_installation() -> None:
    own = Quotas(schedules=3)
    assert own.over(DEFAULTS) == Quotas(schedules=3, fires_per_second=5, documents=20, requests_per_second=2)


def test_requests_pass_at_the_rate_of_the_quota() -> None:
    rates = Rates()
    assert sum(rates.take("noisy", 2, 0) for _ in range(1_000)) == 2 * BURST
    assert rates.take("quiet", 2, 0)
    assert [rates.take("noisy", 2, now) for now in (100, SECOND // 2, SECOND // 2)] == [False, True, False]


def test_a_process_remembers_a_bounded_number_of_namespaces() -> None:
    rates = Rates()
    for number in range(MAX_KNOWN + 10):
        rates.take(f"n{number}", 1, number)
    assert len(rates._left) == MAX_KNOWN
