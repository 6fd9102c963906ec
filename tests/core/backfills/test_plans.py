"""What the plan of a backfill holds: instants of the past, or partitions (L12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.backfills import backfill
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, parse_instant
from tests.support.clock import NOON

KEYS = ("year", "month", "day")


def schedule(trigger: Any, **fields: Any) -> Schedule:
    return Schedule.model_validate({"workflow": "clean", "trigger": trigger} | fields).resolved("demo", "flights")


def at(expression: str, **fields: Any) -> dict[str, Any]:
    return {"type": "time", "expression": expression} | fields


def instants(trigger: Any, since: str, until: str, anchor: int | None = None) -> list[str]:
    found = backfill.instants(schedule(trigger), anchor, parse_instant(since), parse_instant(until))
    return [instant.replace(":00.000Z", "Z") for instant in found]


def test_l12_an_interval_includes_its_start_but_not_its_end() -> None:
    found = instants(at("0 2 * * *"), "2026-01-01T02:00:00Z", "2026-01-03T02:00:00Z")
    assert found == ["2026-01-01T02:00Z", "2026-01-02T02:00Z"]


def test_l12_t2_wall_time_rules_apply_to_the_past() -> None:
    """29 March 2026: 02:30 does not exist in Paris, so it fires when the gap ends, at 03:00 (01:00 UTC)."""
    found = instants(at("30 2 * * *", zone="Europe/Paris"), "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z")
    assert found == ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"]


def test_l12_an_interval_keeps_timer_step_or_counts_from_start() -> None:
    since, until = "2026-01-01T00:30:00Z", "2026-01-01T03:00:00Z"
    anchor = parse_instant("2026-03-02T12:10:00Z")
    assert instants(at("@every 1h"), since, until) == ["2026-01-01T00:30Z", "2026-01-01T01:30Z", "2026-01-01T02:30Z"]
    assert instants(at("@every 1h"), since, until, anchor) == ["2026-01-01T01:10Z", "2026-01-01T02:10Z"]
    assert len(instants(at("R2/PT1M"), since, until)) == 150, "a number of repeats is no limit to the past"


def test_l12_t6_exclusions_apply_and_schedule_bounds_do_not() -> None:
    """The first five days of 2026 begin on a Thursday."""
    weekdays = at("0 2 * * *", excluding=["sat", "sun", "2026-01-01"], start="2027-01-01T00:00:00Z", repeats=1)
    found = instants(weekdays, "2026-01-01T00:00:00Z", "2026-01-06T00:00:00Z")
    assert found == ["2026-01-02T02:00Z", "2026-01-05T02:00Z"]
    hourly = at("@every 12h", start="2027-01-01T05:00:00Z", excluding=["2026-01-01"])
    assert instants(hourly, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z") == [
        "2026-01-02T05:00Z",
        "2026-01-02T17:00Z",
    ]
    once = {"type": "time", "due_time": "2026-01-02T05:00:00Z"}
    assert instants(once, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z") == ["2026-01-02T05:00Z"]
    assert instants(once, "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z") == []


def test_l12_times_of_several_leaves_merge_without_repeats() -> None:
    both = {"type": "any", "triggers": [at("0 0,6 * * *"), at("0 6,9 * * *")]}
    found = instants(both, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    assert found == ["2026-01-01T00:00Z", "2026-01-01T06:00Z", "2026-01-01T09:00Z"]


@given(st.integers(1, 5 * 24), st.integers(0, 10 * DAY), st.integers(1, 3 * DAY))
def test_l12_an_interval_has_as_many_instants_as_its_step_allows(hours: int, start: int, span: int) -> None:
    found = [parse_instant(each) for each in
             backfill.instants(schedule(at(f"@every {hours}h")), NOON, NOON - start - span, NOON - start)]  # fmt: skip
    assert all((instant - NOON) % (hours * HOUR) == 0 for instant in found)
    assert len(found) in (span // (hours * HOUR), span // (hours * HOUR) + 1)
    assert all(NOON - start - span <= instant < NOON - start for instant in found)


def test_l12_a_backfill_that_is_too_large_is_refused() -> None:
    with pytest.raises(SluiceError, match="at most 10000 runs in one backfill"):
        instants(at("* * * * *"), "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")


DAYS = [("2013", month, day) for month in ("1", "2", "10") for day in ("1", "9", "10")]


@pytest.mark.parametrize(
    ("since", "until", "count"),
    [
        (None, None, 9),
        ({"year": "2013"}, {"year": "2013"}, 9),
        ({"year": "2013", "month": "2"}, None, 6),
        (None, {"year": "2013", "month": "2"}, 6),
        ({"year": "2013", "month": "1", "day": "9"}, {"year": "2013", "month": "2", "day": "9"}, 4),
        ({"year": "2014"}, None, 0),
    ],
)
def test_l12_a_key_range_names_first_keys_and_includes_both_ends(since: Any, until: Any, count: int) -> None:
    assert len(backfill.between(KEYS, DAYS, since, until)) == count


PADDED = [("2013", month, day) for month in ("01", "09", "10") for day in ("01", "09", "10")]


@pytest.mark.parametrize(
    ("known", "since", "until", "count"),
    [
        (PADDED, {"year": "2013", "month": "9"}, {"year": "2013", "month": "10"}, 6),
        (PADDED, {"year": "2013", "month": "09"}, {"year": "2013", "month": "09"}, 3),
        (PADDED, {"year": "2013", "month": "9", "day": "9"}, {"year": "2013", "month": "9", "day": "9"}, 1),
        (PADDED, {"year": "2013", "month": "9"}, {"year": "2013", "month": "09", "day": "1"}, 1),
        (PADDED, {"year": "2013", "month": "13"}, None, 0),
        (DAYS, {"year": "2013", "month": "01"}, {"year": "2013", "month": "02"}, 6),
        (DAYS, {"year": "02013", "month": "01", "day": "09"}, {"year": "2013", "month": "1", "day": "0010"}, 2),
    ],
)
def test_l12_numbers_of_any_padding_are_within_their_bounds(known: Any, since: Any, until: Any, count: int) -> None:
    assert len(backfill.between(KEYS, known, since, until)) == count


LONG = "9" * 900  # an S3 key has room for 1,024 bytes


@pytest.mark.parametrize(
    ("known", "since", "until", "found"),
    [
        (["1", "2", "3"], "01", "03", ["1", "2", "3"]),
        (["01", "1", "02", "2"], "1", "1", ["01", "1"]),
        (["00122", "00123", "124"], "123", "0124", ["00123", "124"]),
        (["2013-09-30", "2013-10-01", "2013-9-9"], "2013-9-09", "2013-10-1", ["2013-9-9", "2013-09-30", "2013-10-01"]),
        (["-10", "-5", "-05", "0", "5"], "-5", "0", ["-05", "-5", "0"]),
        (["eu-9", "eu-10", "us-1"], "eu-09", "eu-10", ["eu-9", "eu-10"]),
        (["b", "10", "9", "a"], "9", "a", ["9", "10", "a"]),
        ([LONG, f"0{LONG}", "1"], LONG, None, [f"0{LONG}", LONG]),
    ],
)
def test_l12_values_of_one_key_are_within_their_bounds(
    known: list[str], since: str, until: str | None, found: list[str]
) -> None:
    bound = {"key": until} if until is not None else None
    chosen = backfill.between(("key",), [(value,) for value in known], {"key": since}, bound)
    assert [value for (value,) in backfill.in_order(chosen)] == found


@given(st.lists(st.integers(0, 40), unique=True), st.integers(0, 40), st.integers(0, 40), st.data())
def test_l12_padding_changes_no_range(days: list[int], low: int, high: int, data: st.DataObject) -> None:
    def padded(number: int) -> str:
        return str(number).zfill(data.draw(st.integers(1, 4)))

    first, last = sorted((low, high))
    known = {(padded(day),): day for day in days}
    found = backfill.between(("day",), known, {"day": padded(first)}, {"day": padded(last)})
    assert sorted(known[values] for values in found) == sorted(day for day in days if first <= day <= last)


def test_l12_partitions_run_in_the_order_of_their_numbers() -> None:
    assert backfill.in_order([("01", "3"), ("1", "2"), ("1", "02")]) == [("1", "02"), ("1", "2"), ("01", "3")]
    assert backfill.entries_of(KEYS, reversed(DAYS), ())[:4] == ("2013/1/1", "2013/1/9", "2013/1/10", "2013/2/1")
    assert backfill.entries_of(("date",), [("2013-10-01",), ("2013-9-30",), ("2013-9-30",)], ()) == (
        "2013-9-30",
        "2013-10-01",
    )


def test_l12_t19_one_run_for_each_correlation_value() -> None:
    assert backfill.entries_of(KEYS, DAYS, ("year", "month")) == ("2013/1/10", "2013/2/10", "2013/10/10")
    with pytest.raises(SluiceError, match="a dataset with the correlation key hour"):
        backfill.entries_of(KEYS, DAYS, ("hour",))


def test_l12_bounds_in_reverse_order_are_refused() -> None:
    with pytest.raises(SluiceError, match="not before the start"):
        backfill.between(KEYS, DAYS, {"year": "2013", "month": "10"}, {"year": "2013", "month": "09"})


def test_l12_a_bound_with_other_keys_is_refused() -> None:
    for bound in ({"month": "1"}, {"year": "2013", "day": "1"}, {"year": "1", "month": "1", "day": "1", "hour": "1"}):
        with pytest.raises(SluiceError, match="expected the first of the keys year, month, day, or all of them"):
            backfill.between(KEYS, DAYS, {"year": "2013"}, bound)


def test_l12_a_plan_is_split_into_parts_named_by_content() -> None:
    entries = [str(number) for number in range(250)]
    name, parts = backfill.plan_parts("b1", entries)
    assert [len(part.entries) for part in parts] == [100, 100, 50]
    assert [entry for part in parts for entry in part.entries] == entries
    assert backfill.plan_parts("b1", entries)[0] == name
    assert backfill.plan_parts("b2", entries)[0] != name
    assert backfill.plan_parts("b1", entries[::-1])[0] != name


def test_l12_the_datasets_of_a_trigger_are_found() -> None:
    part, size = {"type": "partition", "dataset": "a"}, {"type": "size", "dataset": "b", "bytes": 5}
    tree = {"type": "any", "triggers": [part, {"type": "quiet", "of": size, "after": "1m"}, part]}
    assert backfill.datasets_of(schedule(tree)) == ("demo.a", "demo.b")
