"""`due_time` and `ttl` in the three forms of T3: an RFC 3339 instant, `2h30m`, an ISO 8601 duration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import instants
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, parse_when
from tests.core.builders import NOON, brief

FORMS = "expected an RFC 3339 instant such as 2026-11-20T12:00:00Z, or a duration from now such as 2h30m or PT2H30M, "


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-02T12:00:10Z", NOON + 10 * SECOND),
        ("2026-03-02T17:45:00+05:45", NOON),
        (" 2026-03-02T12:00:00.250Z ", NOON + 250),
        ("2026-03-01T12:00:00Z", NOON - DAY),
        ("2h30m", NOON + 150 * MINUTE),
        ("10s", NOON + 10 * SECOND),
        ("1h 30m", NOON + 90 * MINUTE),
        ("0h0m3s0ms", NOON + 3 * SECOND),
        ("PT2H30M", NOON + 150 * MINUTE),
        ("pt10s", NOON + 10 * SECOND),
        ("P1DT1H", NOON + DAY + HOUR),
        ("0s", NOON),
        ("0m", NOON),
        ("PT0S", NOON),
    ],
)
def test_t3_an_instant_is_read_in_three_forms(text: str, instant: int) -> None:
    assert parse_when(text, NOON, "due_time") == instant


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ("2026-03-02T12:00:00", FORMS, "an instant says its offset: Z, or +02:00"),
        ("2026-03-02", FORMS, "an instant says its offset: Z, or +02:00"),
        ("tomorrow", FORMS, None),
        ("", FORMS, None),
        ("10", FORMS, None),
        (10, FORMS, "a number has no unit: write 30s, PT30S, or an instant with its offset"),
        (True, FORMS, "a number has no unit: write 30s, PT30S, or an instant with its offset"),
        ("P1M", "expected a duration such as 90s, 1h30m, 2d or PT5M, from 0s to 10 years, ", None),
        ("99999d", "expected a duration such as 90s, 1h30m, 2d or PT5M, from 0s to 10 years, ", None),
        ("-10s", FORMS, None),
        ("0001-01-01T00:00:00+14:00", "expected an instant from the year 1970 to 9998, ", None),
        ("9999-12-31T00:00:00Z", "expected an instant from the year 1970 to 9998, ", None),
    ],
)
def test_t3_invalid_instant_is_refused_with_field_and_expected(value: object, message: str, hint: str | None) -> None:
    with pytest.raises(SluiceError) as caught:
        parse_when(value, NOON, "ttl")
    error = caught.value
    assert (error.code, error.field) == ("invalid", "ttl")
    assert error.message == f"{message}got {value!r}"
    assert error.hint == hint


@given(st.text(alphabet="0123456789-:.+TZPWDHMShms ", max_size=30))
@brief
def test_t3_any_text_is_an_instant_or_a_sluice_error(text: str) -> None:
    try:
        instant = parse_when(text, NOON, "due_time")
    except SluiceError as error:
        assert error.field == "due_time"
    else:
        assert instants.parse_instant(instants.iso(instant)) == instant
