"""Names of DAGs in sentences, notices and on a terminal: ``nightly/load``, as people know them (W20)."""

from __future__ import annotations

import pytest

from chalicelib.core import ids
from chalicelib.core.why import Why, mention
from sluice.wording import as_written

ID = "demo.flights.daily~8f9e268e~load.mb2x.0123456789abcdef0123"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("demo.flights.daily~8f9e268e~load", "demo.flights.daily/load"),
        ("demo.flights.daily~8f9e268e", "demo.flights.daily"),
        ("demo.flights.daily~", "demo.flights.daily"),
        ("demo.flights.clean", "demo.flights.clean"),
        ("demo.flights.~backup", "demo.flights.~backup"),
        (ID, ID),
    ],
)
def test_w20_names_are_plain_and_ids_stay_whole(name: str, shown: str) -> None:
    text, wanted = f"waits for {name}: it runs", f"waits for {shown}: it runs"
    assert (ids.plain_in(text), as_written(text)) == (wanted, wanted)
    assert Why.of("x", "waits for ", mention("schedule", name), ": it runs").text == wanted
    assert name == ID or ids.plain(name) == shown
