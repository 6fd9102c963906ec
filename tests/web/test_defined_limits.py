"""All limits of a namespace in one list, used or not: pools, policies, those of EMR and those of schedules (O8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in

WAIT = {"on_unmet": "wait"}
TWO = {"type": "concurrency", "max": 2, **WAIT}
HEAVY = {"type": "concurrency", "max": 3, "group": "heavy", **WAIT}
HOURLY = {"type": "rate", "max": 4, "per": "1h", **WAIT}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        made.put(f"{NS}/pools/small", {"size": 3, "shares": {"flights.clean": {"reserved": 1}}})
        made.put(f"{NS}/policies/calm", {"max_events": 5, "interval": "10s"})
        made.schedule("two", workflow="clean", trigger=WEEKDAYS, constraints=[TWO, HEAVY, HOURLY])
        made.schedule("one", workflow="clean", trigger=WEEKDAYS, constraints=[TWO | {"max": 1}])
        made.schedule("free", workflow="notify", trigger=WEEKDAYS)
        made.post(f"{APP}/schedules/two/run", idempotency_key="run")
        made.work()
        yield made


def everything(api: Api, limit: int = 50) -> dict[str, Any]:
    path, found, cursor = f"{NS}/limits?all=true&limit={limit}", dict[str, Any](), ""
    while True:
        page = api.get(f"{path}{cursor}")
        found |= {item["name"]: item for item in page["items"]}
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def test_o8_all_limits_are_listed_with_rule_and_use(api: Api) -> None:
    found = everything(api)
    rules = {name: item["rule"] for name, item in found.items()}
    assert rules == {
        "pool:demo.small": "at most 2 slots at a time",
        "pool:demo.small:demo.flights.clean": "at most 1 slot at a time",
        "policy:demo.calm": "at most 5 starts in any 10s",
        "emr:starts": rules["emr:starts"],
        "workflow:demo.flights.clean": "at most 1 run at a time",
        "group:demo.heavy": "at most 3 runs at a time",
        "rate:demo.flights.clean:4/3600000": "at most 4 runs claimed per 1h",
    }
    use = {name: (item["in_use"], item["maximum"], item["waiting"]) for name, item in found.items()}
    assert use["workflow:demo.flights.clean"] == (1, 1, 0)
    assert use["group:demo.heavy"] == (1, 3, 0)
    assert use["rate:demo.flights.clean:4/3600000"] == (1, 4, 0)
    assert use["policy:demo.calm"] == (None, None, 0)
    assert found["policy:demo.calm"]["next_at"] is not None


def test_o8_without_all_only_documents_and_queues_are_listed(api: Api) -> None:
    names = [item["name"] for item in api.get(f"{NS}/limits")["items"]]
    assert names == ["policy:demo.calm", "pool:demo.small", "pool:demo.small:demo.flights.clean"]


def test_o8_pages_of_one_schedule_each_have_all_limits(api: Api) -> None:
    """A limit of two schedules is on the page of each, with the rule of that one."""
    assert everything(api, limit=1).keys() == everything(api).keys()


def test_o8_a_rate_tells_its_rule_and_use_by_its_name(api: Api) -> None:
    [rate] = api.get(f"{NS}/limits?name=rate:demo.flights.clean:4/3600000")["items"]
    assert (rate["rule"], rate["in_use"], rate["maximum"]) == ("at most 4 runs claimed per 1h", 1, 4)


def test_o8_a_name_and_all_exclude_each_other(api: Api) -> None:
    assert api.refused(400, "GET", f"{NS}/limits?all=true&name=pool:demo.small")["field"] == "all"
