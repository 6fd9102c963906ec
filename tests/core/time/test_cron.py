"""Cron expressions (T1): the times that their fields name, and their normal form, compared with the rules and with
croniter.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.time import cron
from chalicelib.core.time.cron import Cron, CronError
from tests.core.builders import brief, thorough
from tests.core.walk import MONTHS, Meaning, expressions

SUNDAY = datetime(2026, 3, 1, 12)
SPECIAL = "special days are L, L-1 to L-30, LW, W, 1W to 31W, and W#1 to W#23"
dates = st.dates(date(1999, 12, 25), date(2101, 1, 5))
moments = st.datetimes(datetime(1999, 12, 25), datetime(2101, 1, 5))


def walls(expression: str, count: int, start: datetime = SUNDAY) -> list[str]:
    """The next wall times; without the year, or the time where it is midnight."""
    found, parsed = [], cron.parse(expression)
    for _ in range(count):
        following = parsed.next_wall(start)
        assert following is not None
        start = following
        found.append(f"{start:%m-%d %H:%M:%S}".removesuffix(" 00:00:00"))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 ? * mon", ["03-02", "03-09"]),
        ("0 0 2 * ?", ["03-02", "04-02"]),
        ("30 */15 * * * *", ["03-01 12:00:30", "03-01 12:15:30"]),
        ("*/20 59 23 * * *", ["03-01 23:59:00", "03-01 23:59:20", "03-01 23:59:40", "03-02 23:59:00"]),
        ("50/5 12 * * *", ["03-01 12:50:00", "03-01 12:55:00", "03-02 12:50:00"]),
        ("0 22-2/2 * * *", ["03-01 22:00:00", "03-02", "03-02 02:00:00", "03-02 22:00:00"]),
        ("0 0 * nov-feb/3 ?", ["11-01", "11-02"]),
        ("0 0 * * fri-mon", ["03-02", "03-06", "03-07", "03-08", "03-09", "03-13"]),
        ("0 0 * * 5-7", ["03-06", "03-07", "03-08", "03-13"]),
        ("0 0 * * 7-2", ["03-02", "03-03", "03-08"]),
        ("0 0 * * SUN,Wed", ["03-04", "03-08"]),
        ("0 0 L * *", ["03-31", "04-30", "05-31"]),
        ("0 0 15,L feb *", ["02-15", "02-28", "02-15", "02-29"]),
        ("0 0 * * friL", ["03-27", "04-24", "05-29"]),
        ("0 0 * * 5l", ["03-27", "04-24", "05-29"]),
        ("0 0 * * mon#1,wed", ["03-02", "03-04", "03-11", "03-18", "03-25", "04-01", "04-06"]),
        ("0 0 * * 0#5", ["03-29", "05-31", "08-30"]),
        ("0 0 13 * friL", ["03-13", "03-27", "04-13", "04-24"]),
        ("0 0 L-3 * *", ["03-28", "04-27", "05-28"]),
        ("0 0 LW * *", ["03-31", "04-30", "05-29"]),  # 31 May is a Sunday
        ("0 0 15W * *", ["03-16", "04-15", "05-15"]),  # 15 March is a Sunday
        ("0 0 1W * *", ["03-02", "04-01", "05-01", "06-01", "07-01", "08-03"]),  # not before the month begins
        ("0 0 31W * *", ["03-31", "05-29", "07-31"]),  # only in months with a 31st
        ("0 0 L-2W * *", ["03-30", "04-28", "05-29"]),
        ("0 0 W#3 * *", ["03-04", "04-03", "05-05"]),
        ("0 0 W * *", ["03-02", "03-03", "03-04", "03-05", "03-06", "03-09"]),
        ("0 0 W#1,LW * *", ["03-02", "03-31", "04-01", "04-30"]),
    ],
)
def test_t1_each_cron_field_names_its_times(expression: str, expected: list[str]) -> None:
    start = datetime(2027, 1, 1) if "feb *" in expression else SUNDAY
    assert walls(expression, len(expected), start) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 13 * fri", ["03-06", "03-13", "03-20", "03-27", "04-03", "04-10", "04-13"]),
        ("0 0 */10 * mon", ["03-02", "03-09", "03-11", "03-16", "03-21"]),
        ("0 0 1 * */3", ["03-04", "03-07", "03-08", "03-11"]),
        ("0 0 1 * 0-6", ["03-02", "03-03"]),
        ("0 0 1-31 * mon", ["03-02", "03-03"]),
        ("0 0 */1 * mon", ["03-02", "03-09"]),
        ("0 0 2 * */1", ["03-02", "04-02"]),
        ("0 0 31 2 mon", ["02-01", "02-08"]),
    ],
)
def test_t1_with_day_of_month_and_day_of_week_one_is_enough(expression: str, expected: list[str]) -> None:
    assert walls(expression, len(expected)) == expected


def test_t1_a_leap_day_may_be_eight_years_away() -> None:
    found = cron.parse("0 0 29 2 *").next_wall(datetime(2096, 3, 1))
    assert found == datetime(2104, 2, 29)


def test_t1_a_fifth_weekday_of_february_comes_every_28_years() -> None:
    assert cron.parse("0 0 * 2 wed#5").next_wall(datetime(2013, 1, 1)) == datetime(2040, 2, 29)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("* * * *", "a cron expression has 5 fields, or 6 with the second first; this one has 4"),
        ("* * * * * * *", "a cron expression has 5 fields, or 6 with the second first; this one has 7"),
        ("60 * * * *", "minute: '60' is not from 0 to 59"),
        ("* 24 * * *", "hour: '24' is not from 0 to 23"),
        ("* * 0 * *", "day of month: '0' is not from 1 to 31"),
        ("* * * 13 *", "month: '13' is not from 1 to 12 or jan to dec"),
        ("* * * * 8", "day of week: '8' is not from 0 to 7 or sun to sat"),
        ("* * * * thr", "day of week: 'thr' is not from 0 to 7 or sun to sat"),
        ("60 * * * * *", "second: '60' is not from 0 to 59"),
        ("*/90 * * * *", "minute: the step '90' is not from 1 to 59; for a longer interval, write @every 90m"),
        ("* * */0 * *", "day of month: the step '0' is not from 1 to 30"),
        ("0 0 32W * *", f"day of month: '32w' is not from 1 to 31; {SPECIAL}"),
        ("0 0 0W * *", f"day of month: '0w' is not from 1 to 31; {SPECIAL}"),
        ("0 0 L-31 * *", f"day of month: 'l' is not from 1 to 31; {SPECIAL}"),
        ("0 0 WW * *", f"day of month: 'ww' is not from 1 to 31; {SPECIAL}"),
        ("0 0 W#24 * *", f"day of month: 'w#24' is not from 1 to 31; {SPECIAL}"),
        ("0 0 1-5W * *", f"day of month: '5w' is not from 1 to 31; {SPECIAL}"),
        (
            "0 0 * * L",
            "day of week: 'l' is not from 0 to 7 or sun to sat; write sat for Saturday, or friL for the last Friday of "
            "the month",
        ),
        ("0 LW * * *", "hour: 'lw' is not from 0 to 23; L and W are for day of month, mon#1 and friL for day of week"),
        ("H * * * *", "minute: 'h' is not from 0 to 59; H and R are not supported: write a time, and jitter if wanted"),
        ("? * * * *", "minute: '?' is not from 0 to 59"),
        ("1,,2 * * * *", "minute: '' is not from 0 to 59"),
        ("0 0 * * mon#6", "day of week: 'mon#6' is not from 0 to 7 or sun to sat"),
    ],
)
def test_t1_the_field_that_is_wrong_is_named(text: str, hint: str) -> None:
    with pytest.raises(CronError) as caught:
        cron.parse(text)
    assert str(caught.value) == hint


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("0 0 5 * * *", "0 5 * * *"),
        ("0,15,30,45 * * * *", "*/15 * * * *"),
        ("0 5 * * 1-5", "0 5 * * mon-fri"),
        ("00 05 ? * MON,TUE,WED,THU,FRI", "0 5 * * mon-fri"),
        ("0 5 * * 6,7", "0 5 * * sat,sun"),
        ("0 5 * * 0,6", "0 5 * * sat,sun"),
        ("0 5 1,2,3,9 1-3 *", "0 5 1-3,9 jan-mar *"),
        ("10/15 * * * *", "10-55/15 * * * *"),
        ("0 22-2 * * *", "0 0-2,22,23 * * *"),
        ("0 0 1-31 * *", "0 0 * * *"),
        ("0 0 1 * 0-6", "0 0 * * *"),
        ("0 0 * * 1#1,1", "0 0 * * mon"),
        ("0 0 l,15 * 5l", "0 0 15,L * friL"),
        ("0 0 lw,L-0,w#3,15w,l-3w,1,L-2 * *", "0 0 1,W#3,L,L-2,15W,L-3W,LW * *"),
        ("0 0 lw,* * *", "0 0 * * *"),
        ("0 0 w,w#3 * *", "0 0 W * *"),
        ("*/10 * * * * *", "*/10 * * * * *"),
        ("0 0 */2 * *", "0 0 */2 * *"),
    ],
)
def test_t1_equivalent_expressions_have_the_same_normal_form(written: str, normal: str) -> None:
    assert str(cron.parse(written)) == normal
    assert cron.parse(normal) == cron.parse(written)


@given(expressions())
@brief
def test_t1_a_normal_form_is_equivalent_and_its_own_normal_form(written: tuple[str, Meaning]) -> None:
    parsed = cron.parse(written[0])
    assert cron.parse(str(parsed)) == parsed
    assert str(cron.parse(str(parsed))) == str(parsed)


@given(expressions(), dates)
@brief
def test_t1_the_days_are_those_that_the_rules_name(written: tuple[str, Meaning], day: date) -> None:
    text, meaning = written
    for number in range(60):
        each = day + timedelta(days=number)
        assert cron.parse(text).fires_on(each) == meaning.on(each), (text, each)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, -1])
@pytest.mark.parametrize("weekday", range(7))
def test_t1_the_nth_weekday_of_each_month(weekday: int, number: int) -> None:
    parsed = cron.parse(f"0 0 * * {weekday}L" if number < 0 else f"0 0 * * {weekday}#{number}")
    meaning = Meaning(nth=frozenset({(weekday, number)}))
    for ordinal in range(date(2026, 1, 1).toordinal(), date(2029, 1, 1).toordinal()):
        day = date.fromordinal(ordinal)
        assert parsed.fires_on(day) == meaning.on(day), day


@given(expressions(), moments)
@brief
def test_t1_no_wall_time_lies_between_one_and_the_next(written: tuple[str, Meaning], past: datetime) -> None:
    parsed = cron.parse(written[0])
    found = parsed.next_wall(past)
    if found is not None:
        assert found > past
        between = max(past, found - timedelta(seconds=1))
        assert parsed.next_wall(between) == found
        assert parsed.fires_on(found.date())


@given(
    expressions(),
    dates,
    st.frozensets(st.dates(date(2026, 1, 1), date(2026, 3, 31)), max_size=90),
)
@brief
def test_t30_working_days_leave_out_holidays(
    written: tuple[str, Meaning], day: date, holidays: frozenset[date]
) -> None:
    text, meaning = written
    parsed = cron.parse(text)
    for number in range(90):
        each = date(2026, 1, 1) + timedelta(days=number)
        assert parsed.fires_on(each, holidays.__contains__) == meaning.on(each, holidays), (text, each)


def test_t30_a_month_of_holidays_has_no_working_day() -> None:
    parsed = cron.parse("0 17 LW,1W,W#1 * *")
    found = parsed.next_wall(datetime(2026, 2, 27, 18), lambda day: day.month == 3)
    assert found == datetime(2026, 4, 1, 17)


def test_t30_holidays_change_working_days_alone() -> None:
    assert not cron.parse("0 17 L * friL").has_working_days
    assert cron.parse("0 17 L-3 * *").next_wall(SUNDAY, lambda day: True) == datetime(2026, 3, 28, 17)
    assert cron.parse("0 17 LW * *").next_wall(SUNDAY, lambda day: True) is None


@given(st.integers(1, 28), moments)
@thorough
def test_t30_croniter_names_the_same_nearest_working_days(number: int, past: datetime) -> None:
    """In a month without the day, croniter takes the last day, and Sluice has no fire, as for the day without W."""
    found = cron.parse(f"0 5 {number}W * *").next_wall(past)
    assert found == croniter(f"0 5 {number}W * *", past, max_years_between_matches=9).get_next(datetime)


@given(expressions().filter(lambda written: not any(sign in written[0].upper() for sign in "LW#")), moments)
@thorough
def test_t1_croniter_names_the_same_times_where_it_knows_form(written: tuple[str, Meaning], past: datetime) -> None:
    """croniter is an independent implementation. It gets lists of numbers, without ``L`` and ``#``. Where those meet
    another restricted day, it finds no date or refuses the expression.
    """
    parsed = cron.parse(written[0])
    lists = [parsed.minutes, parsed.hours, parsed.days, parsed.months, parsed.weekdays, parsed.seconds]
    whole = [None, None, cron.DAYS.every, None, cron.WEEK.every, None]
    stars = [numbers == every for numbers, every in zip(lists, whole, strict=True)]
    short_duration = ["*" if star else ",".join(map(str, numbers)) for numbers, star in zip(lists, stars, strict=True)]
    found = parsed.next_wall(past)
    if found is not None and found.year - past.year < 5:
        other = croniter(" ".join(short_duration), past, max_years_between_matches=9).get_next(datetime)
        assert found == other, short_duration


@pytest.mark.parametrize(
    ("expression", "rate"),
    [
        ("* * * * *", 1_440),
        ("*/10 * * * * *", 8_640),
        ("0 5,17 * * *", 2),
        ("0 5 * * mon-fri", 5 / 7),
        ("0 0 1 * *", 12 / 365.25),
        ("0 0 29 2 *", 1 / 1461),
    ],
)
def test_t1_fires_a_day_are_an_average_over_years(expression: str, rate: float) -> None:
    assert cron.parse(expression).fires_per_day() == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("number", range(12))
def test_t1_months_are_named_by_their_english_abbreviations(number: int) -> None:
    assert cron.parse(f"0 0 1 {MONTHS[number].upper()} *").months == (number + 1,)


@pytest.mark.parametrize(
    "text", ["0 5 29 2 *", "1 2 L * fri", "*/5 * 1-7 jan,feb mon#1", "0 0 31 */2 *", "0 0 * * friL"]
)
def test_t1_the_fires_a_day_are_those_of_28_years(text: str) -> None:
    parsed = cron.parse(text)
    days = [date(2001, 1, 1) + timedelta(days=number) for number in range(10_227)]
    fires = len(parsed.minutes) * len(parsed.hours) * sum(map(parsed.fires_on, days))
    assert parsed.fires_per_day() == fires / 10_227


def test_t1_times_of_equal_days_count_their_days_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[date] = []
    real = Cron.fires_on
    monkeypatch.setattr(Cron, "fires_on", lambda self, day: asked.append(day) or real(self, day))
    first = cron.parse("0 5 3,17 * tue").fires_per_day()
    assert len(asked) < 3_000

    asked.clear()
    assert cron.parse("15,45 6 3,17 * tue").fires_per_day() == 2 * first
    assert asked == []
