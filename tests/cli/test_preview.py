"""`sluice preview`: the next fires of a schedule."""

from __future__ import annotations

import json

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, View, past

PATH = f"{SCHEDULES}/clean/preview"


def fires(*items: str, due: list[str] | None = None) -> View:
    return {
        "items": list(items),
        "due": due or list(items),
        "fires_per_day": 1440 if items else 0,
        "description": "every minute",
        "next_cursor": None,
    }


def test_preview_numbers_the_next_fires(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, fires("2126-11-22T10:00:00.000Z", past(seconds=-90)))
    done = sluice("preview", CLEAN, "--count", "2")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["trigger", "every", "minute"] in lines
    assert ["fires", "a", "day", "1,440"] in lines
    assert ["#", "FIRE", "IN"] in lines
    assert lines[-2][:4] == ["1", "2126-11-22", "10:00:00.000", "UTC"]
    assert lines[-1][-3:] == ["in", "1", "m"]
    assert api.requests[0].query == {"count": "2"}


def test_o8_preview_has_the_wall_time_of_the_schedule(api: PlayedApi, sluice: Sluice) -> None:
    summer, winter = "2126-07-22T10:00:00.000Z", "2126-11-22T10:00:00.000Z"
    api.play("GET", PATH, fires(summer, winter) | {"zone": "America/New_York", "events_per_fire": 3})
    page = sluice("preview", CLEAN).stdout
    assert "2126-07-22 06:00:00 EDT" in page and "2126-11-22 05:00:00 EST" in page
    assert "America/New_York" in page
    lines = [line.split() for line in page.splitlines()]
    assert ["fires", "a", "day", "480"] in lines and ["events", "a", "day", "1,440"] in lines


def test_preview_marks_the_fires_that_are_skipped(api: PlayedApi, sluice: Sluice) -> None:
    first, second = "2126-11-22T10:00:00.000Z", "2126-11-22T10:01:00.000Z"
    api.play("GET", PATH, fires(first, second) | {"skipped": [second]})
    lines = [line.split() for line in sluice("preview", CLEAN).stdout.splitlines()]
    assert "skipped" not in lines[-2]
    assert lines[-1][-1] == "skipped"


def test_preview_shows_when_a_jittered_fire_is_due(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, fires("2126-11-22T10:00:00.000Z", due=["2126-11-22T10:04:07.000Z"]))
    page = sluice("preview", CLEAN).stdout
    assert "DUE" in page and page.rstrip().endswith("2126-11-22 10:04:07.000 UTC")


def test_t25_preview_shows_the_next_periods(api: PlayedApi, sluice: Sluice) -> None:
    period = {"label": "2126-03-29", "need": 46, "complete_from": "2126-03-29T22:00:00.000Z"}
    unknown = period | {"label": "2126-03-30", "need": None}
    api.play("GET", PATH, fires() | {"periods": [period, unknown]})
    done = sluice("preview", CLEAN)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["PERIOD", "PARTITIONS", "COMPLETE", "FROM", "IN"] in lines
    assert lines[-2][:5] == ["2126-03-29", "46", "2126-03-29", "22:00:00.000", "UTC"]
    assert lines[-1][:2] == ["2126-03-30", "-"]
    assert done.stderr == ""


def test_preview_without_fires_says_so_on_stderr(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", PATH, fires())
    done = sluice("preview", CLEAN)
    assert (done.exit_code, "#" in done.stdout, "no fire is planned" in done.stderr) == (0, False, True)
    assert json.loads(sluice("preview", CLEAN, "--json").stdout) == fires()
