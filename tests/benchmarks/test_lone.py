"""The parts of a lone fire are all that it costs, each with what needs it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from benchmarks import results
from benchmarks.cost import lone


@pytest.fixture
def fire() -> dict[str, Any]:
    return next(deepcopy(one) for one in results.read()["cost"] if one["path"] == lone.PATH)


def test_w11_the_parts_of_a_lone_fire_add_up_to_its_price(fire: dict[str, Any]) -> None:
    parts = list(lone.parts(fire))
    assert sum(part.usd for part in parts) == pytest.approx(fire["usd_per_million"], abs=0.02)
    assert sum(part.table_units + part.index_units for part in parts) == fire["write_units"]
    assert sum(part.read_units for part in parts) == fire["read_units"]
    assert all(part.usd > 0 and part.needed_for for part in parts), "no part without a price is explained"


@pytest.mark.parametrize("new", ["write", "call"])
def test_w11_a_new_part_needs_a_reason(fire: dict[str, Any], new: str) -> None:
    if new == "write":
        fire["writes"].append(fire["writes"][0] | {"row": "COPY"})
    else:
        fire["calls"]["sqs:ChangeMessageVisibility"] = 1.0
    with pytest.raises(KeyError, match="COPY" if new == "write" else "ChangeMessageVisibility"):
        list(lone.parts(fire))
