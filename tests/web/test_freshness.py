"""The age of datasets with ``fresh`` over HTTP (T29): in one dataset, in the list, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import HOUR, iso
from chalicelib.flow.ingest import objects
from chalicelib.wiring import ports
from tests.web.conftest import NS, Api

DAILY: dict[str, Any] = {"bucket": "lake", "prefix": "daily/", "keys": ["day"], "fresh": "3h"}
PATH = f"{NS}/datasets/daily"


@pytest.mark.parametrize(("ago", "late"), [(HOUR, False), (4 * HOUR, True)])
def test_t29_a_dataset_says_until_when_it_is_fresh(api: Api, ago: int, late: bool) -> None:
    api.put(PATH, DAILY)
    came = ports().clock.now() - ago
    objects.match_object(ports(), ObjectCreated("lake-bucket", "daily/day=1/part-0.csv", came, 5))
    age = {"late": late, "fresh_until": iso(came + 3 * HOUR), "newest": {"day": "1"}, "newest_at": iso(came)}
    assert api.get(PATH)["freshness"] == age
    listed = {item["name"]: item["freshness"] for item in api.get(f"{NS}/datasets")["items"]}
    assert listed["demo.daily"] == age
    assert set(map(type, (listed[name] for name in listed if name != "demo.daily"))) == {type(None)}


def test_o8_each_dataset_has_its_newest_partition(api: Api) -> None:
    api.put(PATH, {name: value for name, value in DAILY.items() if name != "fresh"})
    assert api.get(PATH)["newest"] is None
    came = ports().clock.now() - HOUR
    objects.match_object(ports(), ObjectCreated("lake-bucket", "daily/day=1/part-0.csv", came, 5))
    newest = {"partition": {"day": "1"}, "at": iso(came)}
    assert api.get(PATH)["newest"] == newest
    listed = {item["name"]: item["newest"] for item in api.get(f"{NS}/datasets")["items"]}
    assert listed["demo.daily"] == newest


def test_t29_without_a_partition_the_age_counts_from_the_put(api: Api) -> None:
    api.put(PATH, DAILY)
    found = api.get(PATH)["freshness"]
    assert (found["late"], found["newest"], found["newest_at"]) == (False, None, None)


@pytest.mark.parametrize(("fresh", "hint"), [("59s", "such as 26h"), ("soon", None), (26, None)])
def test_t29_a_span_that_is_none_or_too_short_is_refused(api: Api, fresh: Any, hint: str | None) -> None:
    error = api.refused(400, "PUT", PATH, DAILY | {"fresh": fresh})
    assert error["field"] == "fresh"
    assert hint is None or hint in error["hint"]
