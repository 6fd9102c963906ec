"""When a time trigger is due: strictly growing instants, bounds, jitter, exclusions, and what is refused (T3, T6)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core.definitions.schedule import CatchUp, NewSchedule, Schedule
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.fires import catch_up, upcoming
from chalicelib.core.fires import timer as fire_timer
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, duration, iso, parse_instant
from chalicelib.core.names import Names
from chalicelib.core.triggers.time import Series, TimeTrigger
from tests.core.builders import NOON, brief, schedule, schedule_state, thorough

EXPRESSIONS = ["@every 7s", "@every 90m", "R9/PT13M", "* * * * *", "*/7 3 * * mon", "0 5 1 * *", "30 2 * * *",
               "30 2 LW * *", "0 0 8W,W#4,L-28 * *", "DTSTART:20260301T023000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,WE",
               "DTSTART:20260101T023000 RRULE:FREQ=DAILY;INTERVAL=3;COUNT=90"]  # fmt: skip
ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe"]
EXCLUSIONS: list[Any] = [["sat", "sun"], ["03-29"], [{"from": "03-05", "to": "03-09"}, "fri"],
                         [{"from": "2026-03-08", "to": "2026-03-12"}],
                         [{"from": "2026-03-03T01:30:00Z", "to": "2026-03-03T14:00:00Z"}, "2026-03-04"]]  # fmt: skip


def rule(**fields: Any) -> TimeTrigger:
    return TimeTrigger.model_validate({"type": "time"} | fields).resolve(Names("demo", "flights", "UTC", NOON))


def first(trigger: TimeTrigger, count: int, after: Instant = NOON, anchor: Instant = NOON) -> list[Instant]:
    found: list[Instant] = []
    while len(found) < count and (at := trigger.next_due(anchor, found[-1] if found else after)):
        found.append(at)
    return found


rules = st.builds(
    rule,
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ZONES),
    due_time=st.sampled_from([None, "1s", "36h", "2026-03-10T00:00:30Z"]),
    end=st.sampled_from([None, "30d"]),
    jitter=st.sampled_from([None, "5s", "3h"]),
    excluding=st.sampled_from([[], *EXCLUSIONS]),
)


@given(rules, st.integers(0, 20 * DAY))
@thorough
def test_t4_occurrences_and_their_due_instants_strictly_increase(trigger: TimeTrigger, offset: int) -> None:
    series = Series(trigger, NOON, None, "demo.flights.tick#0")
    found = first(trigger, 12, NOON + offset)
    assert all(one < other for one, other in pairwise([NOON + offset, *found]))
    dues = [series.due(nominal) for nominal in found]
    assert all(nominal <= due for nominal, due in zip(found, dues, strict=True))
    assert all(one < other for one, other in pairwise(dues))
    assert dues == [series.due(nominal) for nominal in found], "always the same"


@given(rules, st.integers(0, 20 * DAY), st.integers(0, 10))
@thorough
def test_t4_occurrences_after_any_instant_are_those_remaining(trigger: TimeTrigger, offset: int, step: int) -> None:
    whole = first(trigger, 30)
    after = NOON + offset
    expected = [at for at in whole if at > after][:step]
    if len(expected) == step:
        assert first(trigger, step, after) == expected


@given(rules)
@brief
def test_t3_a_trigger_is_read_back_from_storage_unchanged(trigger: TimeTrigger) -> None:
    stored = json.loads(json.dumps(trigger.model_dump(mode="json")))
    assert TimeTrigger.model_validate(stored) == trigger
    assert trigger.resolve(Names("demo", "flights", "Europe/Paris", NOON + DAY)) == trigger, "resolved once, it stays"


def test_t3_defaults_are_not_written() -> None:
    plain = TimeTrigger.model_validate({"type": "time", "expression": "0 5 * * *"})
    assert plain.model_dump(mode="json") == {"type": "time", "expression": "0 5 * * *", "zone": None}


def test_l10_an_interval_counts_from_its_start_not_from_enabling() -> None:
    trigger = rule(expression="@every 1h", start="2026-03-02T00:30:00Z")
    assert [iso(at)[11:16] for at in first(trigger, 3)] == ["12:30", "13:30", "14:30"]
    ahead = rule(expression="@every 1h", start="2026-03-02T13:00:00Z", end="2026-03-02T15:00:00Z")
    assert [iso(at)[11:16] for at in first(ahead, 9)] == ["13:00", "14:00", "15:00"]


def test_t6_the_jitter_of_a_fire_ends_before_the_next_one() -> None:
    series = Series(rule(expression="@every 10s", jitter="10h"), NOON, None, "demo.flights.tick#0")
    for number in range(1, 50):
        nominal = NOON + number * 10 * SECOND
        assert nominal <= series.due(nominal) < nominal + 10 * SECOND


def test_t6_an_exclusion_is_skipped_at_once_however_long() -> None:
    year = {"from": "2026-03-02", "to": "2027-03-01"}
    assert first(rule(expression="@every 1s", excluding=[year]), 1) == [parse_instant("2027-03-02T00:00:00Z")]


def nuuk(expression: str, *excluding: Any, **fields: Any) -> list[str]:
    """The fires in Nuuk from 27 to 30 March 2026. On the 28th at 23:00, the clocks go forward to midnight."""
    trigger = rule(expression=expression, zone="America/Nuuk", excluding=list(excluding), **fields)
    begin, end = parse_instant("2026-03-27T12:00:00Z"), parse_instant("2026-03-30T12:00:00Z")
    return [iso(at)[5:16] for at in first(trigger, 20, begin) if at < end]


@pytest.mark.parametrize(
    ("expression", "excluding", "fires"),
    [
        ("30 23 * * *", [], ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
        ("30 23 * * *", ["2026-03-28"], ["03-28T01:30", "03-30T00:30"]),
        ("30 23 * * *", ["03-28"], ["03-28T01:30", "03-30T00:30"]),
        ("30 23 * * *", ["sat"], ["03-28T01:30", "03-30T00:30"]),
        ("30 23 * * *", [{"from": "2026-03-28", "to": "2026-03-28"}], ["03-28T01:30", "03-30T00:30"]),
        # The excluded day is the one after the fire, which the clocks move into it.
        ("30 23 * * *", ["2026-03-29"], ["03-28T01:30", "03-29T01:00"]),
        ("30 23 * * *", ["sun"], ["03-28T01:30", "03-29T01:00"]),
        # Two wall times have one instant: the day of either of them is enough.
        ("0,30 0,23 * * *", ["2026-03-28"], ["03-28T01:00", "03-28T01:30", "03-29T01:00", "03-29T01:30",
                                             "03-30T00:00", "03-30T00:30", "03-30T01:00", "03-30T01:30"]),
        ("0,30 0,23 * * *", ["2026-03-29"], ["03-28T01:00", "03-28T01:30", "03-28T02:00", "03-28T02:30",
                                             "03-29T01:00", "03-30T01:00", "03-30T01:30"]),
        # A window of instants and an interval have no wall time.
        ("30 23 * * *", [{"from": "2026-03-29T00:00:00Z", "to": "2026-03-29T01:00:01Z"}],
         ["03-28T01:30", "03-30T00:30"]),
        ("R/2026-03-27T13:00:00Z/PT12H", ["2026-03-28"],
         ["03-27T13:00", "03-28T01:00", "03-29T01:00", "03-29T13:00", "03-30T01:00"]),
    ],
)  # fmt: skip
def test_t6_a_day_excludes_its_wall_times_also_those_in_a_gap(
    expression: str, excluding: list[Any], fires: list[str]
) -> None:
    assert nuuk(expression, *excluding) == fires
    assert nuuk(expression, *excluding, jitter="1ms") == fires


def test_t6_exclusions_leave_gap_and_overlap_as_they_are() -> None:
    assert nuuk("30 23 * * *", "2026-03-30", gap="skip") == ["03-28T01:30", "03-30T00:30"]
    autumn = rule(expression="30 23 * * *", zone="America/Nuuk", overlap="both", excluding=["2026-10-23"])
    shown = first(autumn, 3, parse_instant("2026-10-23T12:00:00Z"))
    assert [iso(at)[5:16] for at in shown] == ["10-25T00:30", "10-25T01:30", "10-26T01:30"]


def test_t30_a_span_of_every_year_is_left_out_every_year() -> None:
    winter = {"from": "11-15", "to": "02-15"}
    found = first(rule(expression="0 9 14,15,16 * *", zone="Europe/Paris", excluding=[winter]), 60)
    shown = [iso(at)[:10] for at in found]
    assert [day for day in shown if day[5:] > "11-14" or day[5:] <= "02-15"] == []
    assert {day[5:] for day in shown if day[:4] == "2027"} >= {"02-16", "03-14", "11-14", "10-16"}


def test_t30_a_span_of_the_whole_year_leaves_no_fire() -> None:
    with pytest.raises(ValidationError) as caught:
        rule(expression="@daily", excluding=[{"from": "03-01", "to": "02-29"}])
    assert "an exclusion that leaves fires of the expression" in str(caught.value)


def test_t30_the_next_fire_of_a_rule_is_described() -> None:
    text = {"every": "2 weeks", "from": "2026-03-02T09:00", "day_of_week": "mon"}
    trigger = rule(expression=text, zone="Europe/Paris", excluding=[{"from": "11-15", "to": "02-15"}], jitter="1h")
    words = "at 09:00 on Monday, every 2 weeks from 2026-03-02, Europe/Paris, except on 11-15 to 02-15, up to 1h later"
    assert trigger.describe() == words
    assert iso(first(trigger, 1)[0]) == "2026-03-16T08:00:00.000Z"
    assert rule(expression="0 17 LW * *", zone="Europe/Paris").describe() == (
        "at 17:00 on the last working day of the month, Europe/Paris"
    )


def test_t30_a_rule_that_has_ended_is_refused_when_it_is_put() -> None:
    over = rule(expression="DTSTART:20260101T090000 RRULE:FREQ=DAILY;COUNT=3")
    assert over.past_field(NOON) == "expression"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "trigger.expression", "expected an expression or a due_time"),
        ({"due_time": "soon"}, "trigger.due_time", "expected "),
        ({"expression": "@daily", "start": "tomorrow"}, "trigger.start", "expected "),
        ({"due_time": "1h", "repeats": 3}, "trigger.repeats", "expected repeats only with an expression"),
        ({"due_time": "1h", "excluding": ["sat"]}, "trigger.excluding", "expected excluding only with an expression"),
        ({"expression": "@daily", "repeats": 0}, "trigger.repeats", "expected greater than or equal to 1"),
        ({"expression": "@daily", "jitter": "some"}, "trigger.jitter", "expected a duration"),
        ({"expression": "@daily", "gap": "before"}, "trigger.gap", "expected 'after' or 'skip'"),
        ({"expression": "@daily", "overlap": "none"}, "trigger.overlap", "expected 'first', 'second' or 'both'"),
        ({"expression": "@daily", "excluding": "sat"}, "trigger.excluding", "expected a list of dates"),
        ({"expression": "@daily", "excluding": ["caturday"]}, "trigger.excluding.0", "expected a date such as"),
        ({"expression": "@daily", "excluding": ["sat", "2026-02-30"]}, "trigger.excluding.1", "expected a date"),
        ({"expression": "@daily", "excluding": ["13-01"]}, "trigger.excluding.0", "expected a date such as"),
        ({"expression": "@daily", "excluding": [{"from": "13-01", "to": "02-15"}]},
         "trigger.excluding.0", "expected two dates with years"),
        ({"expression": "@daily", "excluding": [{"from": "11-15", "to": "2027-02-15"}]},
         "trigger.excluding.0", "expected two dates with years, or two days of every year"),
        ({"expression": "@daily", "excluding": [{"from": "2026-01-01"}]}, "trigger.excluding.0", "expected a window"),
        ({"expression": "@daily", "excluding": [{"from": "2026-01-02", "to": "2026-01-01"}]},
         "trigger.excluding.0.to", "expected a date that is not before"),
        ({"expression": "@daily", "excluding": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]},
         "trigger.excluding", "expected at least one day of the week that is not excluded"),
        ({"expression": "0 5 * * sat", "excluding": ["sat"]}, "trigger.excluding", "expected an exclusion that"),
        ({"expression": "0 5 25 12 *", "excluding": ["12-25"]}, "trigger.excluding", "expected an exclusion that"),
    ],
)  # fmt: skip
def test_t3_t6_an_invalid_time_is_refused_by_its_field(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        schedule({"type": "time"} | fields)
    error = from_validation(caught.value)
    assert (error.field, error.message[: len(words)]) == (field, words)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"start": "2h", "end": "1h"}, "trigger.end"),
        ({"due_time": "3h", "end": "2h"}, "trigger.end"),
        ({"due_time": "1h", "start": "2h"}, "trigger.due_time"),
    ],
)
def test_l10_bounds_with_nothing_between_them_are_refused_at_put(fields: dict[str, str], field: str) -> None:
    document = {"workflow": "w", "trigger": {"type": "time", "expression": "@hourly"} | fields}
    with pytest.raises(SluiceError) as caught:
        Schedule.model_validate(document).resolved("demo", "flights", NOON)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"ttl": "never"}, "ttl"),
        ({"ttl": "0s"}, "ttl"),
        ({"when_done": "archive"}, "when_done"),
        ({"catch_up": "some"}, "catch_up.mode"),
        ({"catch_up": {"mode": "all", "within": "for ever"}}, "catch_up.within"),
        ({"catch_up": {"kind": "all"}}, "catch_up.kind"),
    ],
)
def test_t5_l10_fields_of_a_schedule_are_refused_by_their_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        NewSchedule.model_validate({"workflow": "w", "trigger": {"type": "time", "expression": "@hourly"}} | fields)
    assert from_validation(caught.value).field == field


def test_t5_a_bare_string_sets_the_mode_of_catch_up() -> None:
    made = schedule({"type": "time", "expression": "@hourly"})
    assert made.catch_up == CatchUp(mode="all", within="1d")
    assert CatchUp.model_validate("latest") == CatchUp(mode="latest", within="1d")


@given(
    st.sampled_from(["@every 7m", "*/7 * * * *", "0 */5 * * *", "R500/PT9M"]),
    st.sampled_from(["all", "latest", "none"]),
    st.integers(1, 4_000),
    st.sampled_from(["1h", "1d", "3d"]),
    st.sampled_from([None, 3, 40]),
)
@thorough
def test_t5_caught_up_and_skipped_fires_are_all_there_were(
    expression: str, mode: Any, minutes: int, within: str, repeats: int | None
) -> None:
    """Compared with the definition, by counting the fires one by one."""
    now = NOON + minutes * MINUTE
    every = first(rule(expression=expression), repeats or 10_000, NOON)
    every = [at for at in every if at <= now]
    missed = [at for at in every if at < now - catch_up.MISSED_AFTER]
    kept = {"all": every, "none": every[len(missed) :], "latest": every[-1:] if missed else every}[mode]
    kept = [at for at in kept if at >= now - duration(within)] if mode != "none" else kept

    document = {"type": "time", "expression": expression} | ({"repeats": repeats} if repeats else {})
    made = schedule(document, catch_up={"mode": mode, "within": within})
    timer = fire_timer.first_timer(made, schedule_state(), NOON)
    fires: list[Any] = []
    skipped = 0
    while timer is not None and timer.wake_at is not None and timer.wake_at <= now and timer.next:
        emission = fire_timer.emit(timer, made, now, now + 1)
        assert len(emission.fires) <= fire_timer.MAX_FIRES
        fires += emission.fires
        skipped += sum(record.count for record in emission.skipped)
        timer = emission.timer
    assert [fire.due_at for fire in fires] == kept
    assert skipped == len(every) - len(kept)


def test_t5_a_month_of_seconds_is_counted_exactly_or_as_at_least() -> None:
    month = 31 * DAY
    exact = Series(rule(expression="@every 1s"), NOON, None, "s")
    skipped = catch_up.skip(exact, NOON + SECOND, CatchUp(mode="none"), NOON + month, None)
    assert skipped is not None
    assert (skipped.count, skipped.following) == (month // SECOND - 61, NOON + month - 60 * SECOND)
    cron = Series(rule(expression="* * * * * *"), NOON, None, "s")
    many = catch_up.skip(cron, NOON + SECOND, CatchUp(mode="latest"), NOON + month, None)
    assert many is not None
    assert (many.count, many.exact, many.following) == (catch_up.MAX_COUNTED, False, NOON + month)
    assert many.reason.startswith("at least 10000 fires from 2026-03-02T12:00:01.000Z to ")


def test_l11_a_preview_shows_due_times_repeats_jitter_and_end() -> None:
    made = schedule({"type": "time", "expression": "@every 1h", "due_time": "30m", "repeats": 3, "jitter": "10m"})
    made = made.resolved("demo", "flights", NOON)
    shown = upcoming.fires(made, NOON, 10, name="demo.flights.tick")
    assert [fire.nominal for fire in shown] == [NOON + HOUR // 2, NOON + 3 * HOUR // 2, NOON + 5 * HOUR // 2]
    assert all(fire.nominal <= fire.due <= fire.nominal + 10 * MINUTE for fire in shown)
    ended = schedule({"type": "time", "expression": "@every 1h"}, ttl="150m").resolved("demo", "flights", NOON)
    assert upcoming.preview(ended, NOON, 10) == [NOON + HOUR, NOON + 2 * HOUR]


def test_t1_a_preview_shows_the_number_of_fires_per_day() -> None:
    every_minute = schedule({"type": "time", "expression": {"minute": "*"}})
    assert upcoming.per_day(every_minute) == 1_440
    spread = schedule({"type": "time", "expression": "0 5 * * *"}, spread={"count": 380, "over": "1h"})
    assert upcoming.per_day(spread) == 380


def test_l11_a_time_trigger_is_described_in_words() -> None:
    answer = rule(expression="@every 10s", due_time="10s", repeats=4, jitter="2s", excluding=["sat", "12-25"])
    assert answer.describe() == (
        "every 10 seconds, first at 2026-03-02T12:00:10.000Z, 4 times, except on sat and 12-25, up to 2s later"
    )
    assert rule(due_time="10s").describe() == "at 2026-03-02T12:00:10.000Z"
