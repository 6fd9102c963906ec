"""When a job that queues would take another way now, because the limits of its schedule have changed (C1, W3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.jobs import claim
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.permits import PermitRequest
from chalicelib.core.limits.rate_window import RateWindow
from chalicelib.core.limits.slots import Slots
from tests.core.builders import EMR_LINE, LINE, NAME, job

RATE_LINE = f"rate:{NAME}:2/{HOUR}"
GROUP, SHARE, COMMON, NIGHT = "group:demo.spark", "pool:demo.big:demo.flights.clean", "pool:demo.big", "policy:demo.n"
LOG, OWN, SHARED = RateWindow(RATE_LINE, 2, HOUR), Slots(LINE, 1), Slots(GROUP, 3)
UNITS = Slots(SHARE, 4, units=2, unit="slots", spare=Slots(COMMON, 10, units=2, unit="slots"))
EMR_PACE, NIGHT_PACE = Pace(EMR_LINE, SECOND, 20), Pace(NIGHT, 1_050, 1)
ASKS: tuple[PermitRequest, ...] = (LOG, OWN, SHARED, EMR_PACE)
ALL = (RATE_LINE, LINE, GROUP)


def otherwise(asks: tuple[PermitRequest, ...], waits_at: str | None, held: tuple[str, ...], units: int = 0) -> bool:
    return claim.asks_otherwise(job(waits_at=waits_at, rank="4#x", held=held, units=units), asks)


@pytest.mark.parametrize(
    ("waits_at", "held"),
    [(RATE_LINE, ()), (LINE, (RATE_LINE,)), (GROUP, (RATE_LINE, LINE)), (EMR_LINE, ALL)],
)
def test_c9_a_job_that_holds_every_permit_before_its_queue_stays_there(waits_at: str, held: tuple[str, ...]) -> None:
    assert otherwise(ASKS, waits_at, held) is False


def test_c1_a_job_whose_queue_limits_it_no_more_does_not_stay_there() -> None:
    assert otherwise(ASKS, "group:demo.gone", ALL) is True
    assert otherwise(ASKS, None, ALL) is True
    assert otherwise((replace(OWN, limit=None), EMR_PACE), LINE, ()) is True
    assert otherwise((replace(LOG, binding=False), OWN, EMR_PACE), RATE_LINE, ()) is True


@pytest.mark.parametrize("held", [(), (RATE_LINE,), (LINE,), (GROUP,), (RATE_LINE, LINE), (LINE, GROUP)])
def test_c1_a_job_that_lacks_a_limit_before_its_queue_asks_for_it_first(held: tuple[str, ...]) -> None:
    assert otherwise(ASKS, EMR_LINE, held) is True


def test_c1_a_job_needs_no_permit_of_what_only_counts_it() -> None:
    counted = (replace(LOG, binding=False), replace(OWN, limit=None), SHARED, EMR_PACE)
    assert otherwise(counted, EMR_LINE, (GROUP,)) is False
    assert otherwise(counted, EMR_LINE, (LINE, GROUP)) is False


def test_c1_a_job_that_holds_a_permit_which_it_does_not_need_gives_it_back() -> None:
    assert otherwise(ASKS, EMR_LINE, (*ALL, "group:demo.gone")) is True
    assert otherwise(ASKS, GROUP, ("group:demo.gone", RATE_LINE, LINE)) is True


def test_e3_a_job_queues_at_its_slowest_pace() -> None:
    paced = (OWN, EMR_PACE, NIGHT_PACE)
    assert otherwise(paced, EMR_LINE, (LINE,)) is True
    assert otherwise(paced, NIGHT, (LINE,)) is False
    assert otherwise(paced, LINE, ()) is False


def test_w3_units_of_a_share_may_be_held_in_the_common_part_but_no_other_number_of_them() -> None:
    pooled = (OWN, UNITS, EMR_PACE)
    assert otherwise(pooled, EMR_LINE, (LINE, SHARE), units=2) is False
    assert otherwise(pooled, EMR_LINE, (LINE, COMMON), units=2) is False
    assert otherwise(pooled, EMR_LINE, (LINE, COMMON), units=3) is True
    assert otherwise(pooled, SHARE, (LINE,)) is False
