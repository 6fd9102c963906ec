"""Durations, instants, and the expressions that name fire times (T1). `test_wall_time.py` tests wall time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import instants as core_instants
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from chalicelib.core.time import expressions
from tests.core.builders import NOON, brief, thorough

ZONES = ["UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"]
EXPRESSIONS = ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 29 2 *", "15 1,2 * * sun", "0 12 1-7 * mon", "@monthly"]
instants = st.integers(parse_instant("2010-01-01T00:00:00Z"), parse_instant("2040-01-01T00:00:00Z"))


def refusal(expression: str) -> SluiceError:
    with pytest.raises(SluiceError) as caught:
        expressions.parse(expression)
    return caught.value


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("250ms", 250),
        ("90s", 90 * SECOND),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("2d", 2 * DAY),
        ("1w", 7 * DAY),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
        (" 10s ", 10 * SECOND),
        ("PT5M", 5 * MINUTE),
        ("PT1.5S", 1_500),
        ("P1D", DAY),
        ("P2W", 14 * DAY),
        ("P1DT2H3M4S", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("pt1h30m", 90 * MINUTE),
    ],
)
def test_t1_a_duration_is_read_in_go_form_and_in_iso_8601(text: str, millis: int) -> None:
    assert core_instants.duration(text) == millis


@pytest.mark.parametrize(
    "text", ["", " ", "soon", "5", "h", "-1h", "1x", "1h and 5m", "P", "PT", "P1Y", "1e3s", "0.4ms"]
)
def test_an_invalid_duration_is_refused_with_field_and_expected(text: str) -> None:
    with pytest.raises(SluiceError) as caught:
        core_instants.duration(text, "timeout.after")

    assert (caught.value.code, caught.value.field) == ("invalid", "timeout.after")
    assert caught.value.message.startswith("expected a duration such as 90s, 1h30m, 2d or PT5M")
    assert caught.value.message.endswith(f"got {text!r}")


@pytest.mark.parametrize("nothing", ["0s", "0h0m", "PT0S", "P0D"])
def test_a_duration_is_positive(nothing: str) -> None:
    with pytest.raises(SluiceError, match="from 1ms to 10 years"):
        core_instants.duration(nothing)


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h", "d", "w"])), min_size=1))
@brief
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    unit = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
    total = sum(number * unit[letter] for number, letter in parts)
    text = "".join(f"{number}{letter}" for number, letter in parts)
    if 1 <= total <= core_instants.MAX_DURATION and len(text) <= core_instants.MAX_TEXT:
        assert core_instants.duration(text) == total


@given(st.integers(1, 9 * 365 * DAY))
@brief
def test_a_spelled_duration_is_exact_down_to_its_second_part(span: int) -> None:
    short_duration = core_instants.format_duration(span)
    back = core_instants.duration(short_duration)
    assert back <= span
    assert span < SECOND or span - back < max(MINUTE, HOUR if back >= HOUR else 0, DAY if back >= DAY else 0)


@pytest.mark.parametrize(
    ("span", "short_duration"),
    [(250, "250ms"), (10 * SECOND, "10s"), (90 * MINUTE, "1h 30m"), (DAY + HOUR + MINUTE, "1d 1h"), (7 * DAY, "7d")],
)
def test_a_duration_is_spelled_as_a_person_writes_it(span: int, short_duration: str) -> None:
    assert core_instants.format_duration(span) == short_duration


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.250Z", 250),
        ("2026-03-02T12:00:00Z", NOON),
        ("2026-03-02T17:45:00+05:45", NOON),
        ("2026-03-02T07:00:00-05:00", NOON),
    ],
)
def test_an_instant_is_parsed_with_its_offset(text: str, instant: int) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", ["2026-03-02T12:00:00", "2026-03-02", "noon", "", "2026-13-02T12:00:00Z"])
def test_an_instant_without_an_offset_is_refused_as_ambiguous(text: str) -> None:
    with pytest.raises(SluiceError) as caught:
        parse_instant(text, "due_time")
    assert caught.value.field == "due_time"
    assert caught.value.message == f"expected an RFC 3339 instant such as 2026-11-20T12:00:00Z, got {text!r}"


@given(instants, instants)
@brief
def test_printed_instants_parse_back_and_sort_equally(one: int, other: int) -> None:
    assert parse_instant(core_instants.iso(one)) == one
    assert (core_instants.iso(one) < core_instants.iso(other)) == (one < other)


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"])
def test_t1_expression_whose_date_never_comes_is_refused_at_put(expression: str) -> None:
    error = refusal(expression)
    assert error.field == "expression"
    assert error.message == f"expected a cron expression that some date matches, got {expression!r}"
    assert error.hint == "no such date exists in any year; correct day of month or month"


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 29 feb ?", "0 0 30 2 mon", "59 23 31 12 *"])
def test_t1_an_expression_of_a_rare_date_is_accepted(expression: str) -> None:
    expressions.parse(expression)


@pytest.mark.parametrize(
    "junk",
    [
        *["", "   ", "daily", "@reboot", "* * * *", "0 0 0 1 1 * 2026", "60 * * * *", "* 24 * * *", "* * 0 * *"],
        *["* * * 13 *", "* * * * 8", "*/0 * * * *", "-1 * * * *", "1- * * * *", "1,,2 * * * *", "0 0 LX * *"],
        *["H * * * *", "R * * * *", "0 0 * foo *", "0 0 * * mon#6", "5; * * * *", "1_0 * * * *", "٣ * * * *"],
        *["60 * * * * *", "? * * * *", "*/90 * * * *", "0 0 32W * *", "0 0 * * L", "0 0 L-31 * *", "0 0 * * 8#1"],
    ],
)
def test_t1_no_expression_is_refused_naming_what_would_be_one(junk: str) -> None:
    error = refusal(junk)
    assert (error.code, error.field) == ("invalid", "expression")
    assert error.message.startswith("expected a 5-field cron expression such as '0 5 * * mon-fri'")
    assert error.message.endswith(f"got {junk!r}")


@given(st.text(alphabet="0123456789*/,-? @adehimnorstuvwy#LWHR", max_size=24))
@thorough
def test_t1_any_text_is_accepted_or_refused_with_a_sluice_error(text: str) -> None:
    try:
        expressions.parse(text)
    except SluiceError as error:
        assert error.field == "expression"
    else:
        assert expressions.next_fire(text, "UTC", NOON, NOON) > NOON


@pytest.mark.parametrize("name", ["Mars/Base", "", "Europe", "../etc/passwd", "utc ", "a\0b"])
def test_t2_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(SluiceError) as caught:
        expressions.next_fire("@daily", name, 0, 0)
    error = caught.value
    assert error.field == "zone"
    assert error.message == f"expected a time zone such as Europe/Paris or UTC, got {name!r}"
    assert error.hint == "use a name of the IANA time zone database"


@pytest.mark.parametrize("expression", ["@every", "@every ", "@every 0s", "@every soon", "@every -1h", "@every 999ms"])
def test_t1_an_interval_is_at_least_a_second(expression: str) -> None:
    assert refusal(expression).field == "expression"
    expressions.parse("@every 1s")


@pytest.mark.parametrize(
    ("macro", "expression", "fires"),
    [
        ("@yearly", "0 0 1 1 *", "2027-01-01T00:00:00Z"),
        ("@annually", "0 0 1 1 *", "2027-01-01T00:00:00Z"),
        ("@monthly", "0 0 1 * *", "2026-04-01T00:00:00Z"),
        ("@weekly", "0 0 * * 0", "2026-03-08T00:00:00Z"),
        ("@daily", "0 0 * * *", "2026-03-03T00:00:00Z"),
        ("@midnight", "0 0 * * *", "2026-03-03T00:00:00Z"),
        ("@hourly", "0 * * * *", "2026-03-02T13:00:00Z"),
    ],
)
def test_t1_a_macro_equals_its_expression(macro: str, expression: str, fires: str) -> None:
    for written in (macro, macro.upper(), f" {macro} ", expression):
        expressions.parse(written)
        assert expressions.next_fire(written, "UTC", NOON, NOON) == parse_instant(fires)


@given(st.integers(1, 40 * DAY // SECOND), instants, st.integers(-DAY, 400 * DAY))
@brief
def test_t1_every_counts_elapsed_time_from_its_anchor(seconds: int, anchor: int, offset: int) -> None:
    after = anchor + offset

    fire = expressions.next_fire(f"@every {seconds}s", "America/New_York", anchor, after)

    steps, rest = divmod(fire - anchor, seconds * SECOND)
    assert rest == 0
    assert steps >= 1
    assert fire > after
    assert steps == 1 or fire - seconds * SECOND <= after


@given(st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), instants, instants)
@thorough
def test_t4_fires_are_strictly_after_and_strictly_increasing(expression: str, zone: str, anchor: int, at: int) -> None:
    last = at
    for _ in range(4):
        fire = expressions.next_fire(expression, zone, anchor, last)
        assert fire > last
        assert fire > anchor
        last = fire


@given(st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), instants, st.integers(1, 10 * DAY))
@thorough
def test_t4_no_fire_lies_between_an_instant_and_its_next_fire(expression: str, zone: str, at: int, later: int) -> None:
    """From any instant before a fire, the next fire is that one or an earlier one: none is skipped."""
    fire = expressions.next_fire(expression, zone, 0, at)
    between = min(at + later, fire - 1)
    assert expressions.next_fire(expression, zone, 0, between) == fire


@pytest.mark.parametrize("late", [1, 999, 59_999])
def test_t4_a_part_of_a_second_past_a_fire_is_past_it(late: int) -> None:
    five = parse_instant("2026-03-02T05:00:00Z")
    assert expressions.next_fire("0 5 * * *", "UTC", 0, five - 1) == five
    assert expressions.next_fire("0 5 * * *", "UTC", 0, five) == five + DAY
    assert expressions.next_fire("0 5 * * *", "UTC", 0, five + late) == five + DAY
