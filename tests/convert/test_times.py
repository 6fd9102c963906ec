"""The fires of a converted time, compared with those of its source, for a year with both changes of the
clocks (L20).
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.instants import iso, millis
from sluice.convert import cron, crontab, eventbridge
from sluice.convert.draft import Draft, NotCarried
from tests.convert.conftest import accepted

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


def schedules(draft: Draft, tmp_path: Path) -> list[Schedule]:
    app = accepted(draft.text(), tmp_path)
    return [each.definition().resolved("demo", "app", millis(BEGIN)) for each in app.schedules.values()]


def fires(schedule: Schedule) -> Iterator[str]:
    """The nominal instants of a schedule within the year."""
    at = millis(BEGIN) - 1
    while (found := schedule.trigger.next_due(0, at)) is not None and found < millis(END):
        yield iso(found)
        at = found


def text(moment: datetime) -> str:
    return iso(millis(moment.astimezone(UTC)))


@pytest.mark.parametrize(
    "line",
    [
        *["5 0 * * *", "15 14 1 * *", "0 22 * * 1-5", "23 0-23/2 * * *", "5 4 * * sun", "0 4 8-14 * sat"],
        *["*/20 9-17 1,15 jan-jun *", "0 12 * * 0", "0 12 * * 7", "0 0 29 feb *", "0 3 31 * *", "30 6 1-7 * 5-7"],
    ],
)
def test_l20_a_crontab_line_fires_as_cron_does_for_a_year(line: str, tmp_path: Path) -> None:
    draft = Draft("demo", "app", "x")
    crontab.convert(f"{line} true\n", draft, "UTC")
    (schedule,) = schedules(draft, tmp_path)
    source = croniter(line, BEGIN - timedelta(seconds=1))
    wanted = []
    while (at := source.get_next(datetime)) < END:
        wanted.append(text(at))
        if len(wanted) > 100_000:
            raise AssertionError("more fires than a year has")
    assert list(fires(schedule)) == wanted


def test_two_starred_fields_of_days_must_both_match(tmp_path: Path) -> None:
    """crontab(5): a day matches both fields if one of them begins with a star."""
    draft = Draft("demo", "app", "x")
    crontab.convert("0 6 */2 * mon true\n", draft, "UTC")
    (schedule,) = schedules(draft, tmp_path)
    days = (date(2026, 1, 1) + timedelta(days=number) for number in range(365))
    wanted = [f"{day}T06:00:00.000Z" for day in days if day.isoweekday() == 1 and day.day % 2 == 1]
    assert list(fires(schedule)) == wanted


def test_a_crontab_follows_the_clock_as_cron_does(tmp_path: Path) -> None:
    """cron(8): a line with a wildcard follows the clock; any other fires once where the clocks change."""
    draft = Draft("demo", "app", "x")
    crontab.convert("30 * * * * true\n30 2 * * * false\n", draft, "Europe/Berlin")
    hourly, nightly = schedules(draft, tmp_path)
    hours = int((END - BEGIN) / timedelta(hours=1))
    assert list(fires(hourly)) == [text(BEGIN + timedelta(hours=number, minutes=30)) for number in range(hours)]
    found = list(fires(nightly))
    assert len(found) == 365
    assert [at for at in found if at[:10] == "2026-03-29"] == ["2026-03-29T01:00:00.000Z"]  # right after the gap
    assert [at for at in found if at[:10] == "2026-10-25"] == ["2026-10-25T00:30:00.000Z"]  # the first of the two


def last(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def nearest(day: date, number: int) -> date:
    """The day from Monday to Friday nearest to a day, in the same month, as Quartz documents it for W."""
    at, weekday = day.replace(day=number), day.replace(day=number).isoweekday()
    if weekday == 6:
        return at + timedelta(days=2 if number == 1 else -1)
    if weekday == 7:
        return at + timedelta(days=-2 if number == last(day) else 1)
    return at


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ("30 7 ? * MON-FRI *", lambda day: day.isoweekday() < 6),
        ("30 7 ? * 2-6 *", lambda day: day.isoweekday() < 6),
        ("30 7 ? * 1 *", lambda day: day.isoweekday() == 7),
        ("30 7 ? * L *", lambda day: day.isoweekday() == 6),
        ("30 7 L * ? *", lambda day: (day + timedelta(days=1)).day == 1),
        ("30 7 ? * 6L *", lambda day: day.isoweekday() == 5 and (day + timedelta(days=7)).month != day.month),
        ("30 7 ? * 3#2 *", lambda day: day.isoweekday() == 2 and 8 <= day.day <= 14),
        ("30 7 15W * ? *", lambda day: day == nearest(day, 15)),
        ("30 7 1W,LW * ? *", lambda day: day in (nearest(day, 1), nearest(day, last(day)))),
        ("30 7 L-3 * ? *", lambda day: day.day == last(day) - 3),
        ("30 7 ? * FRI#1,2#3 *", lambda day: (day.isoweekday(), (day.day - 1) // 7) in ((5, 0), (1, 2))),
        ("30 7 1/10 * ? *", lambda day: day.day in (1, 11, 21, 31)),
        ("30 7 * 6 ? 2026", lambda day: day.month == 6),
        ("30 7 * 6 ? 2027-2030", lambda day: False),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_l20_an_eventbridge_cron_fires_as_aws_says(fields: str, matches: object, zone: str, tmp_path: Path) -> None:
    wanted = []
    for number in range(-1, 366):
        day = date(2026, 1, 1) + timedelta(days=number)
        at = datetime(day.year, day.month, day.day, 7, 30, tzinfo=ZoneInfo(zone)).astimezone(UTC)
        if matches(day) and BEGIN <= at < END:
            wanted.append(text(at))
    assert list(fires(_of_eventbridge(f"cron({fields})", zone, tmp_path))) == wanted


@pytest.mark.parametrize(
    ("given", "carried"),
    [("0 5 15W * *", "0 5 15W * *"), ("0 5 l * *", "0 5 L * *"), ("0 5 1,28w * *", "0 5 1,28W * *")],
)
def test_an_airflow_cron_keeps_its_nearest_weekdays(given: str, carried: str) -> None:
    assert cron.croniter(given) == carried


def test_a_nearest_weekday_that_croniter_moves_is_not_carried() -> None:
    """croniter takes the last day of a month that has no 31st."""
    with pytest.raises(NotCarried):
        cron.croniter("0 5 31W * *")


def test_eventbridge_skips_a_time_that_does_not_exist(tmp_path: Path) -> None:
    """Scheduler: a time in the gap is skipped, a time in the overlap fires once."""
    found = list(fires(_of_eventbridge("cron(30 2 * * ? *)", "Europe/Berlin", tmp_path)))
    assert len(found) == 364
    assert not [at for at in found if at[:10] == "2026-03-29"]
    assert len([at for at in found if at[:10] == "2026-10-25"]) == 1


def test_eventbridge_one_shots_and_rates_fire_when_due(tmp_path: Path) -> None:
    once = _of_eventbridge("at(2026-07-01T13:00:00)", "America/New_York", tmp_path)
    assert list(fires(once)) == ["2026-07-01T17:00:00.000Z"]
    rate = _of_eventbridge("rate(12 hours)", "UTC", tmp_path, '"StartDate": "2026-12-30T06:00:00Z",')
    assert list(fires(rate)) == [
        *["2026-12-30T06:00:00.000Z", "2026-12-30T18:00:00.000Z"],
        *["2026-12-31T06:00:00.000Z", "2026-12-31T18:00:00.000Z"],
    ]


def _of_eventbridge(expression: str, zone: str, tmp_path: Path, more: str = "") -> Schedule:
    draft = Draft("demo", "app", "x")
    target = '{"Arn": "arn:aws:sns:eu-west-1:123456789012:topic"}'
    eventbridge.convert(
        f'{{"Name": "x", "ScheduleExpression": "{expression}", "ScheduleExpressionTimezone": "{zone}", {more} '
        f'"Target": {target}}}',
        draft,
    )
    (schedule,) = schedules(draft, tmp_path)
    return schedule
