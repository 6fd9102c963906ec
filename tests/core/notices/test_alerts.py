"""W9: how often notices are sent, and how many events each holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chalicelib.core.instants import MINUTE, SECOND, iso
from chalicelib.core.notices import alerts
from chalicelib.core.rows.notice import NoticeWindow, PendingNotice
from tests.core.builders import NAME, NOON

TEAM: dict[str, Any] = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}


def notes(*numbers: int) -> list[PendingNotice]:
    return [
        PendingNotice(NAME, "failed", f"r{number}", NAME, "disk full", NOON + number * SECOND) for number in numbers
    ]


def begun(*numbers: int) -> tuple[NoticeWindow, dict[str, Any]]:
    answer = alerts.add_notices(notes(*numbers), alerts.Channel(TEAM), None, NOON)
    assert answer.window is not None
    assert answer.notice is not None
    return answer.window, answer.notice


def test_w9_a_notice_names_the_dag_and_the_node() -> None:
    node = "demo.shop.forecast~8f9e268e~check"
    [event] = alerts.add_notices(
        [PendingNotice(NAME, "failed", "r1", node, "disk full", NOON)], alerts.Channel(TEAM), None, NOON
    ).notice["events"]  # type: ignore[index]
    assert (event["schedule"], event["dag"], event["node"]) == (
        "demo.shop.forecast/check",
        "demo.shop.forecast",
        "check",
    )
    assert "dag" not in begun(1)[1]["events"][0]


def test_w9_a_notice_goes_where_it_was_meant_to_go() -> None:
    """Rules change while it waits: a window stays reachable, and the present rules stand in for one that has gone."""
    old, new = alerts.Channel(TEAM), alerts.Channel(TEAM, group=MINUTE)
    [plain] = notes(1)
    [meant] = [replace(plain, channels=(old.id,))]
    window = alerts.add_notices([plain], old, None, NOON).window
    assert alerts.routes(meant, {}, {old.id: window}) == {old.id: old}
    assert alerts.routes(meant, {new.id: new}, {old.id: window}) == {old.id: old}
    assert alerts.routes(meant, {old.id: old, new.id: new}, {old.id: None, new.id: None}) == {old.id: old}
    assert alerts.routes(meant, {new.id: new}, {old.id: None}) == {new.id: new}
    assert alerts.routes(plain, {new.id: new}, {}) == {new.id: new}, "older code wrote it"
    assert alerts.routes(meant, {}, {old.id: None}) == {}


def test_w9_the_first_failures_are_all_reported_at_once() -> None:
    window, notice = begun(*range(12, 0, -1))
    assert (notice["count"], [event["id"] for event in notice["events"]]) == (12, [f"r{n}" for n in range(1, 11)])
    assert (window.count, window.events, window.until) == (0, (), NOON + alerts.WINDOW)


def test_w9_later_failures_are_counted_and_the_earliest_kept() -> None:
    window, _ = begun(0)
    later = alerts.add_notices(notes(9, 8, 7, 6, 5), alerts.Channel(TEAM), window, NOON).window
    assert later is not None
    most = alerts.add_notices(notes(*range(20, 9, -1), 1), alerts.Channel(TEAM), later, NOON).window
    assert most is not None
    assert most.count == 17
    assert [answer["at"] for answer in most.events] == [iso(NOON + n * SECOND) for n in (1, *range(5, 14))]
    assert most.rev == window.rev + 2

    closed = alerts.close(most, window.until)
    assert closed.notice is not None
    assert (closed.notice["count"], closed.notice["since"]) == (17, iso(NOON))
    assert closed.window is not None
    quiet = alerts.close(closed.window, closed.window.until)
    assert (quiet.window, quiet.notice) == (None, None), "after a quiet window it is over"


def test_w9_a_pending_notice_waits_only_while_all_channels_rest() -> None:
    window, _ = begun(0)
    sooner = replace(window, until=NOON + MINUTE)
    assert alerts.rests_until([window, sooner], NOON) == NOON + MINUTE
    assert alerts.rests_until([window, None], NOON) is None
    assert alerts.rests_until([], NOON) is None, "nobody wants it any more: it goes"
    assert alerts.rests_until([sooner], NOON + MINUTE) == NOON + 2 * MINUTE, "its notice is being sent at this moment"


def test_w9_a_pending_notice_waits_for_the_first_end_of_a_window() -> None:
    window, _ = begun(0)
    sooner = replace(window, until=NOON + 3 * MINUTE)
    assert alerts.rests_until([window, sooner], NOON) == NOON + 3 * MINUTE


def test_w9_the_window_after_a_notice_begins_at_its_end() -> None:
    window, _ = begun(0)
    counted = alerts.add_notices(notes(1, 2), alerts.Channel(TEAM), window, NOON).window
    assert counted is not None
    end = NOON + alerts.WINDOW + SECOND
    closed = alerts.close(replace(counted, leases=3), end)
    begins = {"since": end, "until": end + alerts.WINDOW, "wake_at": end + alerts.WINDOW}
    assert closed.window == replace(counted, count=0, events=(), rev=counted.rev + 1, leases=0, **begins)
    assert closed.notice is not None
    assert (closed.notice["workflow"], closed.notice["until"]) == (counted.workflow, iso(end))
    assert [event["id"] for event in closed.notice["events"]] == ["r1", "r2"]
