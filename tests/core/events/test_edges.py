"""The edges of what is accepted: too long, too large, too alike, too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core import ids, instants
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import build
from chalicelib.core.instants import MINUTE
from chalicelib.core.jobs import gather
from chalicelib.core.rows.job import Progress
from chalicelib.core.runs import complete
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.time import expressions
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.program_status import ProgramStatusTrigger
from tests.support.clock import NOON
from tests.support.rows import run


@pytest.mark.parametrize("text", ["9" * 400 + "d", "9999999d", "P9999999D", "P1DT", "99999999999w"])
def test_a_duration_over_ten_years_or_invalid_is_refused(text: str) -> None:
    with pytest.raises(SluiceError, match="expected a duration"):
        instants.duration(text)


@pytest.mark.parametrize("text", ["1h 30m", "1h30m", "PT1H30M", "90m"])
def test_a_duration_is_read_as_it_is_spelled(text: str) -> None:
    assert instants.duration(text) == 90 * MINUTE


@pytest.mark.parametrize(
    "expression", ["9" * 5_000 + " * * * *", "0 0 * * L5", "0 0 32w * *", "H * * * *", "0 0 * * 5#6"]
)
def test_t1_an_invalid_cron_is_refused_by_its_field(expression: str) -> None:
    with pytest.raises(SluiceError) as refused:
        expressions.parse(expression)
    assert refused.value.field == "expression"


@pytest.mark.parametrize("value", ["\u00fc" * 200, "/" * 500, "~" * 900, "a" * 900])
def test_t19_a_correlation_fits_into_a_sort_key(value: str) -> None:
    assert len(gather.gathering_key({"year": value}).encode()) <= 1_024


def test_t19_a_long_value_does_not_collide_with_a_short_one() -> None:
    long = gather.gathering_key({"year": "a" * 900})
    assert gather.gathering_key({"year": long.removeprefix("GATHERING#")}) != long


def test_l3_a_status_is_accepted_when_the_run_reached_it() -> None:
    step = complete.advance(run(), RunUpdate("RUNNING", NOON), NOON + 10, None)
    assert step is not None
    end = complete.advance(step.run, RunUpdate("SUCCEEDED", NOON), NOON + 9_000, None)
    assert end is not None
    assert build.status_event(end.run, "STARTED").accepted_at == NOON + 10
    assert build.status_event(end.run, "COMPLETED").accepted_at == NOON + 9_000


def test_t7_parts_that_contain_a_separator_stay_distinct() -> None:
    assert ids.digest("a\x1fb", "c") != ids.digest("a", "b\x1fc")
    assert ids.digest("1:a", "b") != ids.digest("1", "a1:b")


def test_w1_dropping_a_retry_keeps_the_end_time_of_the_attempt() -> None:
    failed = replace(run(), state="RETRYING", ended_at=NOON)
    step = complete.advance(failed, RunUpdate("FAILED", NOON + MINUTE), NOON + MINUTE, None)
    assert step is not None
    assert step.run.ended_at == NOON


def test_c14_a_met_leaf_misses_nothing_and_shows_its_count() -> None:
    leaf = ProgramStatusTrigger(type="program_status", workflow="a.b.c", count=5)
    either = tree.AnyOfTrigger(type="any", triggers=(leaf,))
    assert tree.evaluate(either, {"0": Progress(5, NOON, NOON)}, NOON).missing == ()
    assert "COMPLETED 3 times since" in tree.evaluate(leaf, {"0": Progress(3, NOON, NOON)}, NOON).why.text
