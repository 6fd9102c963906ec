"""An hour without one or two services of AWS, or with most of the calls of one refused (O12). Nothing is lost, nothing
is done twice, and the backlog is soon done. `docs/internals/reliability.md` has the results.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chalicelib.core.events import partitions
from tests.faults import outage_table
from tests.faults.outage_table import PAIRS, SINGLES, of_pair, of_single
from tests.faults.outages import HOUR, played
from tests.faults.services import SERVICES

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "reliability.md"
# By then nothing is behind: failed messages come again every six minutes, and silent runs are polled every ten.
LONGEST = 12
WITH_SERVICES = pytest.mark.parametrize(("service", "how"), SINGLES)


@WITH_SERVICES
def test_o12_an_hour_without_a_service_loses_and_doubles_nothing(service: str, how: str) -> None:
    platform, result = of_single(service, how)
    platform.check()
    # If the tables refuse the record of a delivery for long, the message comes again under its id (E6).
    assert result.twice == 0 or (service, how) == ("dynamodb", "throttled")
    assert result.twice <= result.fires // 10
    assert result.dead_letters == 0
    assert result.recovery <= LONGEST


def test_o12_each_outage_has_an_effect() -> None:
    """Each outage delays some work: a service that is down in name only would prove nothing."""
    _, well = played()
    assert (well.late, well.worst, well.refused, well.recovery) == (0, 0, "", 0)
    assert max(well.spark_worst, well.data_worst, well.history_worst) <= 1
    for service in SERVICES:
        _, result = of_single(service, "unavailable")
        assert max(result.worst, result.spark_worst, result.data_worst, result.history_worst) > HOUR / 2, service


def test_o12_callers_get_the_documented_status_in_an_outage() -> None:
    assert of_single("dynamodb", "unavailable")[1].refused == "503"
    assert of_single("lambda", "unavailable")[1].refused == "502"
    for service in ("sqs", "s3", "emr", "eventbridge", "stream"):
        assert of_single(service, "unavailable")[1].refused == "", service


def test_o12_the_check_detects_lost_and_left_over_rows() -> None:
    """Falsify the rows of a correct hour, one fact at a time. The check detects each."""
    platform, _ = played()
    platform.check()
    table = platform.tables._tables["RunsTable"]
    key = next(key for key in table.items if key[1].startswith("A#"))
    item = table.items[key]
    table.replace(key, None)
    with pytest.raises(AssertionError):
        platform.check()
    table.replace(key, item)
    lost = platform.stream.bucket.objects.popitem()
    with pytest.raises(AssertionError, match="history is not complete"):
        platform.check()
    platform.stream.bucket.objects[lost[0]] = lost[1]
    platform.posted_ids.append("order-never")
    with pytest.raises(AssertionError, match="custom events"):
        platform.check()
    platform.posted_ids.pop()
    platform.unsent.append(partitions.ObjectCreated("lake-bucket", "raw/x", platform.begin))
    with pytest.raises(AssertionError, match="the notification of raw/x"):
        platform.check()
    platform.unsent.clear()
    platform.objects.dead.append("raw/y")
    with pytest.raises(AssertionError, match="for an operator to repair"):
        platform.check()
    platform.objects.dead.clear()
    platform.check()


def test_o12_the_table_of_one_service_has_the_tested_results() -> None:
    assert outage_table.within(PAGE.read_text(), "one service") == outage_table.singles(), (
        "python -m tests.faults.outage_table --write docs/internals/reliability.md"
    )


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_o12_two_outages_in_a_row_lose_and_double_nothing(pair: tuple[str, str]) -> None:
    platform, result = of_pair(*pair)
    platform.check()
    assert result.twice == 0
    assert result.recovery <= LONGEST


@pytest.mark.long
def test_o12_the_table_of_two_services_has_the_tested_results() -> None:
    assert outage_table.within(PAGE.read_text(), "two services") == outage_table.pairs(), (
        "python -m tests.faults.outage_table --write docs/internals/reliability.md --pairs"
    )
