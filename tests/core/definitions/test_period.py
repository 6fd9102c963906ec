"""The field `period` of a dataset (T24): stored documents, what the clocks allow, and values of partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.documents import SENT
from chalicelib.core.events import periods
from chalicelib.core.events.build import partition_event, size_event
from chalicelib.core.events.partitions import identity
from chalicelib.core.instants import parse_instant
from chalicelib.core.time import period_names
from tests.support.zone_rules import hours, made, use

HOURS = {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"}
NOON = parse_instant("2026-03-02T12:00:00Z")


def dataset(period: dict[str, Any] | None = HOURS, context: Any = None, **fields: Any) -> Dataset:
    document = {"bucket": "lake", "prefix": "raw/clicks/", "keys": ["region", "dt", "hour"], "period": period, **fields}
    return Dataset.model_validate(document, **({"context": context} if context else {}))


def test_t24_a_dataset_without_a_period_is_stored_as_before() -> None:
    assert "period" not in dataset(None).model_dump(mode="json")
    assert dataset().model_dump(mode="json")["period"] == HOURS


def test_t24_rules_that_change_leave_stored_documents_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quarters = HOURS | {"each": "15m", "format": "dt=%Y-%m-%d/hour=%H:%M", "zone": "Asia/Kolkata"}
    assert dataset(quarters, SENT).period is not None
    back = parse_instant("2026-10-25T01:00:00Z")
    use(monkeypatch, made(tmp_path, "next", {"Asia/Kolkata": hours(6.5, (back, 5.5))}))
    stored = dataset(quarters)
    assert periods.period_of(stored, {"region": "eu", "dt": "2026-03-01", "hour": "07:15"}) is not None
    with pytest.raises(ValidationError, match="an offset"):
        dataset(quarters, SENT)
    use(monkeypatch, made(tmp_path, "later", {}))
    stored = dataset(quarters)
    assert periods.period_of(stored, {"region": "eu", "dt": "2026-03-01", "hour": "07:15"}) is None
    assert identity(stored, ("eu", "2026-3-1", "7:15")) == ("eu", "2026-3-1", "7:15")
    with pytest.raises(ValidationError, match="expected a time zone"):
        dataset(quarters, SENT)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (("eu", "2026-03-01", "07"), ("eu", "2026-03-01", "07")),
        (("eu", "2026-3-1", "7"), ("eu", "2026-03-01", "07")),
        (("e%3A", "2026%2D03-01", "%37"), ("e:", "2026-03-01", "07")),
        (("eu", "2026-03-29", "02"), ("eu", "2026-03-29", "02")),
        (("eu", "x", "%37"), ("eu", "x", "7")),
    ],
)
def test_t24_values_that_identify_a_partition(texts: tuple[str, ...], values: tuple[str, ...]) -> None:
    assert identity(dataset(), texts) == values
    event = partition_event("demo.clicks", dataset(), texts, NOON, NOON)
    assert tuple((event.partition or {}).values()) == values
    assert event.path == f"s3://lake/raw/clicks/region={texts[0]}/dt={texts[1]}/hour={texts[2]}/"
    assert event.id == partition_event("demo.clicks", dataset(), values, NOON, NOON).id
    key = f"raw/clicks/region={texts[0]}/dt={texts[1]}/hour={texts[2]}/part-0"
    counted = size_event("demo.clicks", dataset(), key, "", 5, NOON, NOON)
    assert (counted.partition, counted.path) == (event.partition, f"s3://lake/{key}")


def test_t24_first_values_stay_until_they_name_a_period() -> None:
    assert periods.written(dataset(), {"region": "eu", "dt": "2026-3-1"}) == {"region": "eu", "dt": "2026-3-1"}
    assert periods.written(dataset(keys=["dt", "hour", "region"]), {"dt": "2026-3-1", "hour": "7"}) == {
        "dt": "2026-03-01",
        "hour": "07",
    }


def test_t24_a_calendar_is_made_once_for_each_version_of_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = dataset().period, dataset().period
    assert one is not None and other is not None
    before = one.names
    assert before is not None
    assert other.names is before
    use(monkeypatch, made(tmp_path, "other", {"Europe/Paris": hours(1)}))
    assert other.names is not None
    assert other.names is not before


def test_t24_keys_of_a_format() -> None:
    assert period_names.keys_of("dt=%Y-%m-%d/hour=%H") == ("dt", "hour")
    assert period_names.text_of(period_names.parse("dt=%Y-%-m-%d/hour=%H")) == "dt=%Y-%-m-%d/hour=%H"
