"""The ids of events and of the bundles that they are in (E2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import ids
from chalicelib.core.fires import bundles
from tests.support.clock import NOON

NAME = "demo.flights.my-batch_2"
FIRE = bundles.fire_id(NAME, 7, NOON)
NUMBERS = st.integers(0, 99_999)


@given(NUMBERS)
def test_e2_the_id_of_an_event_has_its_fire_and_its_number(number: int) -> None:
    event = bundles.event_id(FIRE, number)
    assert bundles.number_of(event) == (FIRE, number)
    assert bundles.fire_of(event) == FIRE
    assert not bundles.is_bundle_id(event)
    parsed = ids.parse_job_id(event)
    assert parsed is not None and (parsed.schedule, parsed.generation) == (NAME, 7)


@given(NUMBERS, st.integers(1, 1_667))
def test_e2_the_id_of_a_bundle_is_that_of_no_event(first: int, count: int) -> None:
    bundle = bundles.bundle_id(FIRE, first, count)
    assert bundles.is_bundle_id(bundle)
    assert bundles.number_of(bundle) is None
    assert bundles.fire_of(bundle) == bundles.fire_of_bundle(bundle) == FIRE


def test_e2_other_work_has_no_fire() -> None:
    other = ids.job_id(NAME, 7, "run:r1")
    assert (bundles.number_of(other), bundles.fire_of(other), bundles.is_bundle_id(other)) == (None, None, False)
    assert bundles.number_of(NAME) is None
