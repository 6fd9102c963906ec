"""How other schedulers write times: understood, or refused with the right spelling."""

from __future__ import annotations

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import duration, zone
from chalicelib.core.time import expressions


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("cron(0 5 * * ? *)", "0 5 * * *"),
        ("cron(0/15 8 ? * 2-6 *)", "*/15 8 * * mon-fri"),
        ("cron(0 8 ? * MON-FRI *)", "0 8 * * mon-fri"),
        ("cron(0 18 ? * 6L *)", "0 18 * * friL"),
        ("cron(0 18 ? * 3#2 *)", "0 18 * * tue#2"),
        ("cron(0 18 ? * 1 *)", "0 18 * * sun"),
        ("cron(0 18 ? * L *)", "0 18 * * sat"),
        ("Rate(5 minutes)", "@every 5m"),
        ("rate(1 hour)", "@every 1h"),
        ("rate(1 day)", "@every 1d"),
    ],
)
def test_an_expression_of_eventbridge_is_understood(given: str, stored: str) -> None:
    assert expressions.normalise(given) == stored


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("5 minutes", "write '@every 5m', which counts from the instant at which the schedule is enabled"),
        ("every 2 hours", "write '@every 2h', which counts from the instant at which the schedule is enabled"),
        ("1h30m", "write '@every 1h30m', which counts from the instant at which the schedule is enabled"),
        (
            "0 5 * * ? *",
            "write 'cron(0 5 * * ? *)' for the six fields of EventBridge; here the first of six is the second",
        ),
        ("rate(5m)", "or write '@every 5m'"),
        ("cron(0 5 * * ?)", "write cron(minute hour day-of-month month day-of-week year), or 5 fields without cron()"),
        ("cron(0 5 * * ? 2027)", "write * for the year, and bound the trigger by start and end"),
    ],
)
def test_another_spelling_of_an_expression_is_corrected(given: str, hint: str) -> None:
    with pytest.raises(SluiceError) as refused:
        expressions.normalise(given)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("5 minutes", "write 5m"),
        ("1 hour and 30 mins", "write 1h30m"),
        ("2 Days", "write 2d"),
        ("300", "a number has no unit: write 300s for seconds, or 300m for minutes"),
        ("soon", None),
    ],
)
def test_another_spelling_of_a_duration_is_corrected(given: str, hint: str | None) -> None:
    with pytest.raises(SluiceError) as refused:
        duration(given)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("PST", "write the name of a place, such as America/Los_Angeles"),
        ("cest", "write the name of a place, such as Europe/Paris"),
        ("europe/paris", "did you mean 'Europe/Paris'?"),
        ("america/new_york", "did you mean 'America/New_York'?"),
        (
            "+02:00",
            "an offset is no zone, for it has no daylight saving: write the name of a place, such as Europe/Paris",
        ),
        ("HKT", "an abbreviation is no zone: write the name of a place, such as America/New_York"),
        ("PT", "an abbreviation is no zone: write the name of a place, such as America/New_York"),
        ("Mars/Base", "use a name of the IANA time zone database"),
        ("localtime", "it exists on some machines only: write the name of a place, such as Europe/Paris"),
        ("posixrules", "it exists on some machines only: write the name of a place, such as Europe/Paris"),
        ("right/Europe/Paris", "it exists on some machines only: write Europe/Paris"),
        ("posix/America/New_York", "it exists on some machines only: write America/New_York"),
    ],
)
def test_another_spelling_of_a_zone_is_corrected(given: str, hint: str) -> None:
    with pytest.raises(SluiceError) as refused:
        zone(given)
    assert refused.value.hint == hint


def test_the_zone_cet_is_a_zone_with_daylight_saving() -> None:
    assert zone("CET").key == "CET"
