"""When a queued job needs other permits, because the limits of its schedule have changed (C1, W3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.jobs import claim
from chalicelib.core.limits.permits import Pace, PermitRequest, RateWindow, Slots
from tests.core.builders import EMR_LIMIT, LIMIT, NAME, job

RATE_LIMIT = f"rate:{NAME}:2/{HOUR}"
GROUP, SHARE, COMMON, NIGHT = "group:demo.spark", "pool:demo.big:demo.flights.clean", "pool:demo.big", "policy:demo.n"
LOG, OWN, SHARED = RateWindow(RATE_LIMIT, 2, HOUR), Slots(LIMIT, 1), Slots(GROUP, 3)
UNITS = Slots(SHARE, 4, units=2, unit="slots", fallback=Slots(COMMON, 10, units=2, unit="slots"))
EMR_PACE, NIGHT_PACE = Pace(EMR_LIMIT, SECOND, 20), Pace(NIGHT, 1_050, 1)
ASKS: tuple[PermitRequest, ...] = (LOG, OWN, SHARED, EMR_PACE)
ALL = (RATE_LIMIT, LIMIT, GROUP)


def otherwise(asks: tuple[PermitRequest, ...], queued_in: str | None, held: tuple[str, ...], units: int = 0) -> bool:
    return claim.asks_otherwise(job(queued_in=queued_in, rank="4#x", held=held, units=units), asks)


@pytest.mark.parametrize(
    ("queued_in", "held"),
    [(RATE_LIMIT, ()), (LIMIT, (RATE_LIMIT,)), (GROUP, (RATE_LIMIT, LIMIT)), (EMR_LIMIT, ALL)],
)
def test_c9_a_job_holding_all_permits_before_its_queue_stays(queued_in: str, held: tuple[str, ...]) -> None:
    assert otherwise(ASKS, queued_in, held) is False


def test_c1_a_job_leaves_a_queue_whose_limit_no_longer_applies() -> None:
    assert otherwise(ASKS, "group:demo.gone", ALL) is True
    assert otherwise(ASKS, None, ALL) is True
    assert otherwise((replace(OWN, limit=None), EMR_PACE), LIMIT, ()) is True
    assert otherwise((replace(LOG, binding=False), OWN, EMR_PACE), RATE_LIMIT, ()) is True


@pytest.mark.parametrize("held", [(), (RATE_LIMIT,), (LIMIT,), (GROUP,), (RATE_LIMIT, LIMIT), (LIMIT, GROUP)])
def test_c1_a_job_lacking_a_limit_before_its_queue_asks_for_it(held: tuple[str, ...]) -> None:
    assert otherwise(ASKS, EMR_LIMIT, held) is True


def test_c1_a_job_needs_no_permit_of_a_limit_that_only_counts_it() -> None:
    counted = (replace(LOG, binding=False), replace(OWN, limit=None), SHARED, EMR_PACE)
    assert otherwise(counted, EMR_LIMIT, (GROUP,)) is False
    assert otherwise(counted, EMR_LIMIT, (LIMIT, GROUP)) is False


def test_c1_a_job_releases_a_permit_that_it_does_not_need() -> None:
    assert otherwise(ASKS, EMR_LIMIT, (*ALL, "group:demo.gone")) is True
    assert otherwise(ASKS, GROUP, ("group:demo.gone", RATE_LIMIT, LIMIT)) is True


def test_e3_a_job_queues_at_its_slowest_pace() -> None:
    paced = (OWN, EMR_PACE, NIGHT_PACE)
    assert otherwise(paced, EMR_LIMIT, (LIMIT,)) is True
    assert otherwise(paced, NIGHT, (LIMIT,)) is False
    assert otherwise(paced, LIMIT, ()) is False


def test_w3_units_of_a_share_may_be_held_in_the_fallback() -> None:
    pooled = (OWN, UNITS, EMR_PACE)
    assert otherwise(pooled, EMR_LIMIT, (LIMIT, SHARE), units=2) is False
    assert otherwise(pooled, EMR_LIMIT, (LIMIT, COMMON), units=2) is False
    assert otherwise(pooled, EMR_LIMIT, (LIMIT, COMMON), units=3) is True
    assert otherwise(pooled, SHARE, (LIMIT,)) is False
