"""Quiet hours and the span of a group: nothing is lost in them, also when clocks change (W9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.notify import Notify
from chalicelib.core.errors import from_validation
from chalicelib.core.instants import HOUR, MINUTE, Instant, iso, parse_instant
from chalicelib.core.notices import alerts, quiet
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice

TEAM = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
NIGHT = {"from": "22:00", "to": "07:00", "zone": "Europe/Paris"}


def rule(**fields: Any) -> Notify:
    return Notify.model_validate({"on": ["failed", "missed_end"], "to": TEAM, **fields})


def trouble(at: Instant, what: str = "failed") -> PendingNotice:
    return PendingNotice("demo.flights.clean", what, f"r{at}", "demo.flights.nightly", "disk full", at)


def step(given: Notify, window: NoticeWindow | None, at: Instant, what: str = "failed") -> alerts.AlertStep:
    [channel] = alerts.channels([given], trouble(at, what)).values()
    return alerts.add_notices([trouble(at, what)], channel, window, at)


def instant(text: str) -> Instant:
    return parse_instant(text)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-03-02T20:59:59Z", None),
        ("2026-03-02T21:00:00Z", "2026-03-03T06:00:00.000Z"),
        ("2026-03-03T05:59:59Z", "2026-03-03T06:00:00.000Z"),
        ("2026-03-03T06:00:00Z", None),
        ("2026-03-28T22:00:00Z", "2026-03-29T05:00:00.000Z"),  # the clocks go forward in this night
        ("2026-10-24T21:00:00Z", "2026-10-25T06:00:00.000Z"),  # and back in this one
    ],
)
def test_w9_quiet_hours_follow_the_clocks_of_their_zone(now: str, end: str | None) -> None:
    found = quiet.end_of(rule(quiet=NIGHT).quiet.hours, instant(now))  # type: ignore[union-attr]
    assert (None if found is None else iso(found)) == end


def test_w9_in_a_zone_that_no_longer_exists_nothing_is_quiet() -> None:
    assert quiet.end_of({**NIGHT, "zone": "Mars/Base", "days": ()}, instant("2026-03-02T23:00:00Z")) is None
    assert quiet.end_of(None, 0) is None


def test_w9_what_comes_in_quiet_hours_is_one_notice_at_their_end() -> None:
    given, late = rule(quiet=NIGHT), instant("2026-03-02T22:00:00Z")
    begun = step(given, None, late)
    assert begun.notice is None and begun.window is not None
    assert iso(begun.window.until) == "2026-03-03T06:00:00.000Z"
    assert begun.window.wake_at == begun.window.until
    more = step(given, begun.window, late + HOUR).window
    assert more is not None
    end = alerts.close(more, more.until)
    assert end.notice is not None and end.window is not None
    assert (end.notice["count"], end.notice["since"]) == (2, iso(late))
    assert end.window.until == more.until + alerts.WINDOW


def test_w9_a_window_that_ends_in_quiet_hours_goes_on() -> None:
    given, evening = rule(quiet=NIGHT), instant("2026-03-02T20:58:00Z")
    first = step(given, None, evening)
    assert first.notice is not None and first.window is not None
    more = step(given, first.window, evening + MINUTE).window
    assert more is not None
    kept = alerts.close(more, more.until)
    assert kept.notice is None and kept.window is not None
    assert (iso(kept.window.until), kept.window.count) == ("2026-03-03T06:00:00.000Z", 1)
    assert kept.window.rev == more.rev + 1
    assert alerts.close(first.window, first.window.until) == alerts.AlertStep(None), "nothing to keep"


def test_w9_an_urgent_kind_is_sent_in_quiet_hours() -> None:
    given, late = rule(quiet={**NIGHT, "urgent": ["missed_end"]}), instant("2026-03-02T22:00:00Z")
    assert step(given, None, late).notice is None
    assert step(given, None, late, "missed_end").notice is not None
    plain = alerts.channels([rule()], trouble(late, "missed_end"))
    assert alerts.channels([given], trouble(late, "missed_end")) == plain, "one channel with a rule without quiet hours"


def test_w9_two_quiet_days_in_a_row_are_one_rest() -> None:
    weekend = {"from": "00:00", "to": "24:00", "days": ["sat", "sun"]}
    saturday = instant("2026-03-07T10:00:00Z")
    window = step(rule(quiet=weekend), None, saturday).window
    assert window is not None
    on = alerts.close(window, window.until)
    assert on.notice is None and on.window is not None
    assert iso(on.window.until) == "2026-03-09T00:00:00.000Z"
    assert alerts.close(on.window, on.window.until).notice is not None


def test_w9_a_group_is_as_long_as_its_rule_says() -> None:
    given, noon = rule(group="10m"), instant("2026-03-02T12:00:00Z")
    window = step(given, None, noon).window
    assert window is not None and window.until == noon + 10 * MINUTE
    more = step(given, window, noon + MINUTE).window
    assert more is not None
    after = alerts.close(more, more.until)
    assert after.window is not None and after.window.until == more.until + 10 * MINUTE


def test_w9_an_incident_ends_in_quiet_hours_too() -> None:
    evening = instant("2026-03-02T20:58:00Z")
    open_one = NoticeWindow(
        "demo.flights.clean", "c", TEAM, evening, evening, 0, (), wake_at=evening + 5 * MINUTE,
        hours=rule(quiet=NIGHT).quiet.hours, incident="i", opened_at=evening,  # type: ignore[union-attr]
    )  # fmt: skip
    assert alerts.close(open_one, evening + 5 * MINUTE).notice is not None
    assert alerts.close(replace(open_one, trouble_at=evening), evening + 5 * MINUTE).notice is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"quiet": {**NIGHT, "from": "25:00"}}, "quiet.from"),
        ({"quiet": {**NIGHT, "to": "7"}}, "quiet.to"),
        ({"quiet": {**NIGHT, "zone": "Europe/Pari"}}, "quiet.zone"),
        ({"quiet": {**NIGHT, "to": "22:00"}}, "quiet.to"),
        ({"quiet": {"from": "00:00", "to": "24:00"}}, "quiet.to"),
        ({"quiet": {"from": "00:00", "to": "23:59"}}, "quiet.to"),
        ({"quiet": {"from": "07:00", "to": "06:46"}}, "quiet.to"),
        ({"quiet": {**NIGHT, "urgent": ["missed_end", "aborted"]}}, "quiet.urgent"),
        ({"quiet": {**NIGHT, "days": ["monday"]}}, "quiet.days.0"),
        ({"quiet": {**NIGHT, "urgent": ["late"]}}, "quiet.urgent.0"),
        ({"quiet": {"to": "07:00"}}, "quiet.from"),
        ({"group": "30s"}, "group"),
        ({"group": "2d"}, "group"),
        ({"group": 10}, "group"),
    ],
)
def test_w9_hours_that_never_end_and_wrong_spans_are_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        rule(**wrong)
    assert from_validation(raised.value, Notify).field == field


@pytest.mark.parametrize(
    "hours",
    [
        {"from": "07:00", "to": "06:45"},
        {"from": "00:00", "to": "24:00", "days": ["sat", "sun"]},
        {"from": "00:00", "to": "23:59", "days": ["mon", "tue", "wed", "thu", "fri", "sat"]},
        {"from": "22:00", "to": "24:00", "urgent": ["missed_end"]},
    ],
)
def test_w9_hours_that_end_for_a_quarter_of_an_hour_pass(hours: dict[str, Any]) -> None:
    assert rule(quiet=hours).quiet is not None


def test_w9_the_order_and_the_fields_of_a_stored_rule_stay() -> None:
    assert set(rule().model_dump(mode="json")) == {"on", "to"}
    assert rule(quiet=NIGHT, group="10m").model_dump(mode="json")["quiet"] == NIGHT
