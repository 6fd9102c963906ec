"""Expressions as sentences (L11). An expression without a short sentence is quoted."""

from __future__ import annotations

import pytest
from hypothesis import given

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, SECOND
from chalicelib.core.time import expressions as time_expressions
from chalicelib.core.time import wording
from tests.core.builders import NOON, brief
from tests.core.walk import Meaning, expressions

PARIS = "Europe/Paris"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("@every 10s", "every 10 seconds"),
        ("@every 1s", "every second"),
        ("@every 1h", "every hour"),
        ("@every 90m", "every 1 hour 30 minutes"),
        ("@every 1d", "every 24 hours"),
        ("@every 2d", "every 2 days"),
        ("R4/PT10S", "every 10 seconds, four times"),
        ("R2/PT1H", "every hour, twice"),
        ("R40/PT1H", "every hour, 40 times"),
        ("R1/PT3S", "once, after 3 seconds"),
        ("R1/2026-01-01T00:00:00Z/PT3S", "once, at 2026-01-01 01:00, Europe/Paris"),
        ("R4/2026-01-01T00:00:05Z/PT3S", "every 3 seconds, four times, from 2026-01-01 01:00:05, Europe/Paris"),
    ],
)
def test_l11_an_interval_is_described_in_words(expression: str, words: str) -> None:
    assert wording.describe(expression, PARIS) == words


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/15 * * * *", "every 15 minutes"),
        ("@hourly", "every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("30 */2 * * *", "every 2 hours from 00:30, Europe/Paris"),
        ("30 * * * *", "at minute 30 of every hour, Europe/Paris"),
        ("5,35 * * * *", "at minutes 5 and 35 of every hour, Europe/Paris"),
        ("15 * * * * *", "at second 15 of every minute, Europe/Paris"),
        ("0 9-17 * * *", "every hour from 09:00 to 17:00, Europe/Paris"),
        ("*/15 9-17 * * mon-fri", "every 15 minutes from 09:00 to 17:45 on Monday to Friday, Europe/Paris"),
        ("*/10 5 * * *", "every 10 minutes from 05:00 to 05:50, Europe/Paris"),
        ("0 5 * * *", "at 05:00 every day, Europe/Paris"),
        ("30 0 5,17 * * *", "at 05:00:30 and 17:00:30 every day, Europe/Paris"),
        ("0 5 * * mon-fri", "at 05:00 on Monday to Friday, Europe/Paris"),
        ("0 5 * * sat,0", "at 05:00 on Saturday and Sunday, Europe/Paris"),
        ("0 5 * * mon", "at 05:00 on Monday, Europe/Paris"),
        ("0 5 * jan mon", "at 05:00 on Monday in January, Europe/Paris"),
        ("0 5 * nov,dec *", "at 05:00 every day in November and December, Europe/Paris"),
        ("@monthly", "at 00:00 on day 1 of the month, Europe/Paris"),
        ("0 0 1,15 * *", "at 00:00 on days 1 and 15 of the month, Europe/Paris"),
        ("0 0 1-7 1,4 *", "at 00:00 on days 1 to 7 of January and April, Europe/Paris"),
        ("@yearly", "at 00:00 on 1 January, Europe/Paris"),
        ("0 0 L * *", "at 00:00 on the last day of the month, Europe/Paris"),
        ("0 0 15,L * *", "at 00:00 on day 15 and the last day of the month, Europe/Paris"),
        ("0 0 * * friL", "at 00:00 on the last Friday of the month, Europe/Paris"),
        ("0 0 * feb mon#1", "at 00:00 on the first Monday of February, Europe/Paris"),
        ("0 0 13 * fri", "at 00:00 on day 13 of the month or on Friday, Europe/Paris"),
    ],
)
def test_l11_a_cron_expression_is_described_in_words(expression: str, words: str) -> None:
    assert wording.describe(expression, PARIS) == words
    assert wording.describe(time_expressions.normalise(expression), PARIS) == words


@pytest.mark.parametrize("expression", ["7 3,5,7,9,11 * * *", "0 0 */2 * *", "1-50 * * * *", "*/7 3 * * * *"])
def test_l11_an_expression_without_a_short_sentence_is_quoted(expression: str) -> None:
    assert wording.describe(expression, PARIS) == f"at '{expression}' in Europe/Paris"


def test_l11_start_is_described_with_its_date_unless_it_is_today() -> None:
    begin, four = NOON + 10 * SECOND, "R4/PT10S"
    assert wording.describe(four, "UTC", begin, NOON) == "every 10 seconds, four times, from 12:00:10"
    assert wording.describe(four, "UTC", begin) == "every 10 seconds, four times, from 2026-03-02 12:00:10"
    assert wording.describe(four, "UTC", begin, NOON - DAY).endswith("from 2026-03-02 12:00:10")
    assert wording.describe(four, "Asia/Kathmandu", begin, NOON).endswith("from 17:45:10, Asia/Kathmandu")
    assert wording.describe("@daily", PARIS, NOON, NOON) == "at 00:00 every day, from 13:00, Europe/Paris"


@given(expressions())
@brief
def test_l11_every_expression_has_the_words_of_its_normal_form(written: tuple[str, Meaning]) -> None:
    try:
        normal = time_expressions.normalise(written[0])
    except SluiceError:
        return
    words, same = wording.describe(written[0], PARIS), wording.describe(normal, PARIS)
    assert words.removesuffix(PARIS) != ""
    assert words == same or f"'{written[0]}'" in words
