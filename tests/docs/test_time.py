"""Computes every line of the tables of the page of time. The page must show the results (T1, T2, T3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from chalicelib.core import instants
from chalicelib.core.definitions.calendar import HolidayCalendar
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant, iso, parse_instant
from chalicelib.core.time import expressions, wall, wording
from chalicelib.core.time.wall import Daylight

PAGE = Path(__file__).parents[2] / "docs" / "time.md"
ZONE = "Europe/Paris"
SUNDAY = parse_instant("2026-03-01T12:00:00Z")
NOON = parse_instant("2026-03-02T12:00:00Z")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose head begins with this cell, without the marks of code."""
    table = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE.read_text(), flags=re.M)
    assert table is not None, f"the page has no table {heading}"
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


def written(cell: str) -> Any:
    return json.loads(cell) if cell.startswith("{") else cell


def fires(expression: str, zone: str, after: Instant, count: int, rule: Daylight = wall.DEFAULT) -> str:
    found: list[str] = []
    anchor = after
    while len(found) < count and (fire := expressions.next_fire(expression, zone, anchor, after, rule)) is not None:
        after = fire
        found.append(iso(fire)[5:19].replace("T", " ").removesuffix(":00"))
    return ", ".join(found)


@pytest.mark.parametrize("row", rows("written | stored"), ids=lambda row: row[0])
def test_t1_page_shows_how_expression_is_stored_and_described(row: list[str]) -> None:
    stored = expressions.normalise(written(row[0]))
    answer = [stored, str(expressions.fires_per_day(stored)), wording.describe(stored, ZONE)]
    assert answer == row[1:]


@pytest.mark.parametrize("row", rows("expression | first fires after Sunday, 2026-03-01 12:00"), ids=lambda row: row[0])
def test_t1_the_page_says_when_an_expression_fires(row: list[str]) -> None:
    assert fires(row[0], "UTC", SUNDAY, row[1].count(",") + 1) == row[1]


@pytest.mark.parametrize("row", rows("expression, with `calendar: france`"), ids=lambda row: row[0])
def test_t30_the_page_says_when_working_days_fire(row: list[str]) -> None:
    app = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.S)[-1])
    holidays = HolidayCalendar.model_validate(app["calendars"]["france"]).holidays()
    after, found = parse_instant("2026-12-01T00:00:00Z"), []
    for _ in range(row[1].count(",") + 1):
        after = expressions.next_fire(row[0].split("`")[0], "UTC", 0, after, Daylight(is_holiday=holidays.names)) or 0
        found.append(iso(after)[5:10])
    assert ", ".join(found) == row[1]


@pytest.mark.parametrize("row", rows("written | because"), ids=lambda row: row[0])
def test_t1_the_page_says_why_an_expression_is_refused(row: list[str]) -> None:
    with pytest.raises(SluiceError) as refused:
        expressions.normalise(row[0])
    assert refused.value.hint == row[1]


@pytest.mark.parametrize("row", rows("expression | rule | after"), ids=lambda row: f"{row[0]} {row[1]} {row[2]}")
def test_t2_the_page_says_when_fires_come_as_clocks_change(row: list[str]) -> None:
    gap, overlap = row[1].split(", ")
    after = parse_instant(f"{row[2].replace(' ', 'T')}:00Z")
    rule = Daylight(gap, overlap)
    assert fires(row[0], "America/New_York", after, row[3].count(",") + 1, rule) == row[3]


@pytest.mark.parametrize("row", rows("written at 2026-03-02T12:00:00Z"), ids=lambda row: row[0])
def test_t3_the_page_says_which_instant_is_meant(row: list[str]) -> None:
    assert iso(instants.parse_when(row[0], NOON, "due_time")) == row[1]


def test_t2_the_page_lists_the_rule_choices_with_default_first() -> None:
    table = (
        PAGE.read_text().split("say what its fire does; the default is the first of each.")[1].split("In New York")[0]
    )
    kinds = get_type_hints(Daylight)
    assert re.findall(r"\| `(\w+)` \|", table) == [*get_args(kinds["gap"]), *get_args(kinds["overlap"])]
    assert (Daylight().gap, Daylight().overlap) == (get_args(kinds["gap"])[0], get_args(kinds["overlap"])[0])
