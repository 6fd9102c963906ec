"""Instants and durations in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sluice import wording

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (-1, "0 ms"),
        (0, "0 ms"),
        (0.0004, "0 ms"),
        (0.82, "820 ms"),
        (0.9999, "1.0 s"),
        (2.14, "2.1 s"),
        (9.96, "10 s"),
        (42.4, "42 s"),
        (59.6, "1 m"),
        (200, "3 m 20 s"),
        (3600, "1 h"),
        (3900, "1 h 5 m"),
        (86_400 * 2 + 3600 * 4 + 5, "2 d 4 h"),
    ],
)
def test_durations_have_units(seconds: float | None, words: str) -> None:
    assert wording.duration(seconds) == words


@pytest.mark.parametrize(
    ("instant", "words"),
    [
        (None, "-"),
        ("not an instant", "-"),
        ("2026-11-20T11:59:59.500Z", "now"),
        ("2026-11-20T11:59:48.000Z", "12 s ago"),
        ("2026-11-20T11:56:30.000Z", "3 m ago"),
        ("2026-11-20T07:00:00.000Z", "5 h ago"),
        ("2026-11-18T11:00:00.000Z", "2 d ago"),
        ("2026-11-20T12:04:30.000Z", "in 4 m"),
        ("2026-11-20T13:00:00.000+01:00", "now"),
    ],
)
def test_instants_are_relative_to_now(instant: str | None, words: str) -> None:
    assert wording.ago(instant, NOW) == words


def test_instants_are_exact_in_utc() -> None:
    assert wording.exact("2026-11-20T13:00:00.123+01:00") == "2026-11-20 12:00:00.123 UTC"
    assert wording.both("2026-11-20T11:56:30.000Z", NOW) == "2026-11-20 11:56:30.000 UTC (3 m ago)"
    assert wording.both(None, NOW) == "-"


def test_the_duration_of_an_active_run_counts_up_to_now() -> None:
    run = {"created_at": "2026-11-20T11:58:00Z", "claimed_at": "2026-11-20T11:58:30Z"}
    assert wording.took(run, NOW) is None
    assert wording.waited(run) == 30
    run |= {"start_requested_at": "2026-11-20T11:58:40Z", "started_at": "2026-11-20T11:59:00Z"}
    assert wording.took(run, NOW) == 60
    assert wording.waited(run) == 40
    assert wording.took(run | {"ended_at": "2026-11-20T11:59:30Z"}, NOW) == 30


def test_a_target_that_reports_no_start_counts_from_the_request() -> None:
    run = {"start_requested_at": "2026-11-20T11:59:00Z", "started_at": None, "ended_at": "2026-11-20T11:59:01Z"}
    assert wording.took(run, NOW) == 1
