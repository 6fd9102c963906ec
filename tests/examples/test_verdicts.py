"""The checks that the examples make of their own results: each detects a wrong result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from examples.backups.consumer import Arrival
from examples.backups.logs import busiest
from examples.backups.run import Outcome, mean_place, most_within, picture
from examples.features.expected import expected
from examples.flights import data
from examples.retraining.retrain import month_csv, node_of, overtaken
from examples.stage import Failed, check, most_at_once

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def seconds(*numbers: float) -> list[datetime]:
    return [NOON + timedelta(seconds=number) for number in numbers]


def test_h4_a_failed_check_ends_an_example_with_exit_code_1() -> None:
    check(True, "anything", None)
    with pytest.raises(Failed, match="expected two, got 3") as failed:
        check(False, "two", 3)
    assert isinstance(failed.value, SystemExit) and isinstance(failed.value.code, str)


def test_h4_the_most_within_an_interval_uses_a_sliding_window() -> None:
    assert most_within([], 10) == 0
    assert most_within([0, 9, 9.9, 10, 19], 10) == 3
    assert most_within([0, 10, 20], 10) == 1


def test_h4_the_most_at_once_counts_equal_instants_together() -> None:
    a, b, c, d = seconds(0, 5, 10, 15)
    assert most_at_once([(a, b), (b, c), (c, d)]) == 1
    assert most_at_once([(a, c), (b, d), (b, c)]) == 3


def test_h4_a_run_queued_earlier_and_claimed_later_was_overtaken() -> None:
    def run(queued: float, claimed: float) -> dict[str, Any]:
        return dict(
            zip(("accepted_at", "claimed_at"), (at.isoformat() for at in seconds(queued, claimed)), strict=True)
        )

    assert overtaken(run(0, 20), run(0, 10))
    assert not overtaken(run(0, 10), run(0, 20))
    assert not overtaken(run(9, 20), run(0, 10)), "it came when the slot was taken already"


def test_h4_the_mean_rank_of_urgent_runs_is_computed() -> None:
    assert mean_place([True, True, False, False, True], True) == pytest.approx(8 / 3)
    assert mean_place([True, True, False, False, True], False) == 3.5


def test_h4_a_node_is_shown_by_its_own_name() -> None:
    assert node_of({"schedule": "demo.retraining.retrain~0123abcd~jfk"}) == "jfk"
    assert node_of({"schedule": "demo.retraining.experiment"}) == "experiment"


def test_h4_month_has_each_of_its_flights_once_under_one_header() -> None:
    header, *rows = month_csv().splitlines()
    assert (len(rows), rows.count(header)) == (27_004, 0)


def test_h4_the_logs_are_those_of_the_busiest_aircraft() -> None:
    first, *rest = busiest(3)
    assert (first.tail, first.flights, first.key) == ("N725MQ", 575, "logs/N725MQ.csv")
    assert first.content.startswith(b"year,month,day") and first.content.count(b"\n") == 576
    assert [log.flights for log in rest] == [513, 507]


def test_h4_the_expected_day_is_counted_from_the_week_before() -> None:
    day = data.FIRST_DAY + timedelta(days=7)
    found = expected([day])
    assert [key[1] for key in found] == ["EWR", "JFK", "LGA"]
    assert sum(each.flights for each in found.values()) == 899
    assert all(0 < each.known_aircraft <= each.flights < each.route_flights for each in found.values())


def test_h4_the_chart_of_backups_has_each_once_in_30_rows() -> None:
    arrivals = [
        Arrival(str(n), f"demo.fleet-1.n{n}", NOON + timedelta(seconds=n / 10), round((NOON.timestamp() + n) * 1000))
        for n in range(100)
    ]
    lines = picture(Outcome(NOON, arrivals, [], 0, 0, ""))
    rows = [line.replace(" s ", " ").split() for line in lines]
    assert len(lines) <= 30
    assert (sum(int(row[1]) for row in rows), sum(int(row[2]) for row in rows)) == (100, 100)
    assert [int(row[1]) for row in rows[:4]] == [40, 40, 20, 0], "four seconds a line"
