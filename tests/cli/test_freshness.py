"""The age of datasets on the command line (T29)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import View, dataset, past

NS = "/v1/namespaces/demo"


def aged(late: bool, until: float, newest: dict[str, str] | None = None) -> View:
    came = past(minutes=400) if newest else None
    age: dict[str, Any] = {"late": late, "fresh_until": past(minutes=until), "newest": newest, "newest_at": came}
    return {**dataset("demo.daily"), "fresh": "3h", "freshness": age}


@pytest.mark.parametrize(("late", "until", "shown"), [(True, 125, "late for 2 h"), (False, -125, "2 h left")])
def test_t29_the_list_says_which_datasets_are_late(
    api: PlayedApi, sluice: Sluice, late: bool, until: float, shown: str
) -> None:
    api.lists |= {f"{NS}/datasets": [aged(late, until), {**dataset("demo.other"), "freshness": None}]}
    lines = sluice("datasets", "-n", "demo").stdout.splitlines()
    assert "FRESH" in lines[0]
    assert shown in lines[1]
    assert shown not in lines[2]


def test_t29_without_a_span_the_list_has_no_column_for_it(api: PlayedApi, sluice: Sluice) -> None:
    api.lists |= {f"{NS}/datasets": [{**dataset("demo.other"), "freshness": None}]}
    assert "FRESH" not in sluice("datasets", "-n", "demo").stdout


@pytest.mark.parametrize(
    ("late", "until", "newest", "shown"), [(True, 125, {"day": "1"}, "day=1, "), (False, -125, None, "none has come")]
)
def test_t29_a_dataset_says_what_came_last(
    api: PlayedApi, sluice: Sluice, late: bool, until: float, newest: dict[str, str] | None, shown: str
) -> None:
    api.play("GET", f"{NS}/datasets/daily", aged(late, until, newest))
    api.lists |= {f"{NS}/datasets/daily/partitions": []}
    page = sluice("describe", "dataset", "demo.daily").stdout
    assert "for 3h; " in page
    assert shown in page
