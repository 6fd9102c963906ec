"""The answer to a PUT of a schedule contains its number of fires a day (T1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import APP, Api

ONE = f"{APP}/schedules/nightly"
TICK = {"type": "time", "expression": "@every 10m"}


@pytest.mark.parametrize(
    ("trigger", "rate"),
    [
        ({"type": "time", "expression": {"minute": "*"}}, 1_440),
        ({"type": "time", "expression": "0 5 * * *"}, 1),
        ({"type": "time", "due_time": "1h"}, 1),
        ({"type": "any", "triggers": [TICK, {"type": "time", "expression": "@hourly"}]}, 168),
        ({"type": "elapsed", "after": "4h"}, 0),
    ],
)
def test_t1_a_put_and_a_get_answer_the_fires_per_day(api: Api, trigger: Any, rate: int) -> None:
    assert api.schedule("nightly", trigger=trigger)["fires_per_day"] == rate
    assert api.get(ONE)["fires_per_day"] == rate


def test_t1_the_answer_to_a_replacement_has_the_new_rate(api: Api) -> None:
    api.schedule("nightly")
    spread = {"count": 380, "over": "1h"}
    daily = {"type": "time", "expression": "0 5 * * *"}
    assert api.schedule("nightly", trigger=daily, spread=spread)["fires_per_day"] == 380
