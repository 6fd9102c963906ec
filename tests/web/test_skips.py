"""One occurrence of a schedule is skipped, by its nominal instant, and the skip is undone (L19)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.web.conftest import APP, Api
from tests.web.wrong import ONE, refused

DAILY = {"type": "time", "expression": "0 5 * * *"}
HOURLY = {"type": "time", "expression": "@every 1h"}


def upcoming(api: Api, count: int = 3) -> list[str]:
    fires: list[str] = api.get(f"{ONE}/preview?count={count}")["items"]
    return fires


def skip(api: Api, at: str) -> list[str]:
    skips: list[str] = api.post(f"{ONE}/skip", {"at": at})["skips"]
    return skips


def unskip(api: Api, at: str) -> list[str]:
    skips: list[str] = api.post(f"{ONE}/unskip", {"at": at})["skips"]
    return skips


@pytest.mark.parametrize("trigger", [DAILY, HOURLY, {"type": "any", "triggers": [HOURLY, DAILY]}])
def test_l19_what_the_preview_lists_can_be_skipped_and_unskipped(api: Api, trigger: Any) -> None:
    made = api.schedule("nightly", trigger=trigger, enabled=True)
    first, second, third = upcoming(api)

    assert skip(api, third) == [third]
    assert skip(api, first) == [first, third]
    assert api.get(f"{ONE}/preview?count=3")["skipped"] == [first, third]
    assert skip(api, second) == [first, second, third]
    assert unskip(api, second) == [first, third]

    view = api.get(ONE)
    assert view["skips"] == [first, third]
    assert (view["version"], view["state"], view["updated_at"]) == (made["version"], "enabled", made["updated_at"])


def test_l19_skip_and_unskip_are_idempotent(api: Api) -> None:
    api.schedule("nightly", trigger=DAILY, enabled=True)
    first, second, _ = upcoming(api)
    skip(api, first)
    before = api.everything()
    assert skip(api, first) == [first]
    assert unskip(api, second) == [first]
    assert unskip(api, "2013-01-01T05:00:00Z") == [first]
    assert api.everything() == before


def test_l19_an_instant_may_have_any_offset(api: Api) -> None:
    api.schedule("nightly", trigger=DAILY, enabled=True)
    first = datetime.fromisoformat(upcoming(api)[0])
    elsewhere = (first + timedelta(hours=5, minutes=30)).replace(tzinfo=None).isoformat() + "+05:30"
    assert skip(api, elsewhere) == [upcoming(api)[0]]


def test_l19_a_skip_survives_pause_and_update_but_not_a_disable(api: Api) -> None:
    api.schedule("nightly", trigger=DAILY, enabled=True)
    [first] = upcoming(api, 1)
    skip(api, first)
    assert api.post(f"{ONE}/pause")["skips"] == [first]
    assert api.post(f"{ONE}/resume")["skips"] == [first]
    assert api.schedule("nightly", trigger=DAILY, priority=9)["skips"] == [first]
    assert api.post(f"{ONE}/disable")["skips"] == []


def test_l19_the_number_of_skipped_occurrences_is_bounded(api: Api) -> None:
    api.schedule("nightly", trigger=DAILY, enabled=True)
    *first, last = upcoming(api, 17)
    for fire in first:
        skip(api, fire)
    error = refused(api, 400, "POST", f"{ONE}/skip", {"at": last})
    assert (error["field"], error["message"]) == ("at", "expected at most 16 skipped occurrences, got 'one more'")
    assert error["hint"] == "disable or pause the schedule to leave out more"
    unskip(api, first[0])
    assert skip(api, last) == [*first[1:], last]


def test_l19_the_year_9998_is_a_valid_instant_in_every_zone(api: Api) -> None:
    ahead = {"type": "time", "expression": "0 13 31 12 *", "zone": "Pacific/Kiritimati"}
    api.schedule("nightly", trigger=ahead, enabled=True)
    assert skip(api, "9998-12-30T23:00:00Z") == ["9998-12-30T23:00:00.000Z"]


def test_l19_a_skip_that_enabling_would_clear_is_refused(api: Api) -> None:
    api.schedule("nightly", trigger=DAILY)
    error = refused(api, 409, "POST", f"{ONE}/skip", {"at": upcoming(api)[0]})
    assert error["code"] == "conflict"
    assert error["message"] == "expected a schedule that is enabled or paused, got one that is disabled"
    assert error["hint"] == "enable the schedule before you skip an occurrence of it"


# -- what is refused -------------------------------------------------------------------------------------------------


def test_l19_an_instant_that_is_no_fire_is_refused_with_the_next(standing: Api) -> None:
    following = standing.get(f"{ONE}/preview?count=3")["items"]
    a_moment_late = following[0].replace("05:00:00.000Z", "05:00:00.001Z")
    for at in (a_moment_late, "2013-01-01T05:00:00.000Z", "2100-01-02T05:00:00.000Z"):  # a Saturday
        error = refused(standing, 400, "POST", f"{ONE}/skip", {"at": at})
        assert (error["code"], error["field"]) == ("invalid", "at")
        assert error["message"] == f"expected an upcoming fire of this schedule, got '{at}'"
        assert error["hint"] == f"the next ones are {', '.join(following)}"


def test_l19_a_schedule_without_times_has_nothing_to_skip(standing: Api) -> None:
    error = refused(standing, 400, "POST", f"{APP}/schedules/chained/skip", {"at": "2100-01-01T05:00:00Z"})
    assert (error["field"], error["hint"]) == ("at", "it has no time trigger")


INSTANT = "expected an RFC 3339 instant such as 2026-11-20T12:00:00Z, got "
AGE = "expected an instant from the year 1970 to 9998, got "


@pytest.mark.parametrize("action", ["skip", "unskip"])
@pytest.mark.parametrize(
    ("body", "code", "field", "message"),
    [
        (None, "invalid", "at", "expected a value, got nothing"),
        ({}, "invalid", "at", "expected a value, got nothing"),
        ({"at": None}, "invalid", "at", "expected text, got None"),
        ({"at": 1_795_000_000}, "invalid", "at", "expected text, got 1795000000"),
        ({"at": ["2100-01-01T05:00:00Z"]}, "invalid", "at", "expected text, got ["),
        ({"at": ""}, "invalid", "at", INSTANT + "''"),
        ({"at": "tomorrow"}, "invalid", "at", INSTANT + "'tomorrow'"),
        ({"at": "2100-01-01"}, "invalid", "at", INSTANT + "'2100-01-01'"),
        ({"at": "2100-01-01T05:00:00"}, "invalid", "at", INSTANT + "'2100-01-01T05:00:00'"),
        ({"at": "2100-02-30T05:00:00Z"}, "invalid", "at", INSTANT + "'2100-02-30T05:00:00Z'"),
        ({"at": "9999-12-31T23:59:59Z"}, "invalid", "at", AGE + "'9999-12-31T23:59:59Z'"),
        ({"at": "9999-12-31T23:59:59-23:59"}, "invalid", "at", AGE),
        ({"at": "0001-01-01T00:00:00+23:59"}, "invalid", "at", AGE),
        ({"at": "1969-12-31T23:59:59Z"}, "invalid", "at", AGE),
        ({"when": "2100-01-01T05:00:00Z"}, "unknown_field", "when", "unknown field 'when' (and 1 more)"),
        ({"at": "2100-01-01T05:00:00Z", "until": "x"}, "unknown_field", "until", "unknown field 'until'"),
        (b"[]", "invalid", "body", "expected a JSON object, got []"),
    ],
)
def test_l19_a_wrong_occurrence_changes_nothing(
    standing: Api, action: str, body: Any, code: str, field: str, message: str
) -> None:
    error = refused(standing, 400, "POST", f"{ONE}/{action}", body)
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"].startswith(message)
