"""What an answer of ``why`` has for a console: the trigger's tree, the use of limits, and references (C14)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, NS, Api, installation, settle_in

DAY = {"year": "2013", "month": "1", "day": "1"}
FLIGHTS = {"type": "partition", "dataset": "flights"}
CLEANED = {"type": "program_status", "workflow": "clean"}
ONE_AT_A_TIME = {"type": "concurrency", "max": 1, "on_unmet": "wait"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """A schedule with half a match, and one with a run and two jobs that wait for its slot and its pool."""
    with installation() as made:
        settle_in(made)
        made.put(f"{NS}/pools/small", {"size": 1})
        made.put(f"{APP}/workflows/clean", _clean("small"))
        made.schedule("join", trigger={"type": "all", "triggers": [FLIGHTS, CLEANED]}, enabled=True)
        made.schedule("slow", workflow="clean", constraints=[ONE_AT_A_TIME, {"type": "rate", "max": 9, "per": "1h"}])
        made.post(f"{NS}/datasets/flights/partitions", {"partition": DAY})
        made.work()
        for number in range(2):
            made.post(f"{APP}/schedules/slow/run", idempotency_key=f"run {number}")
            made.work()
        yield made


def _clean(pool: str) -> dict[str, Any]:
    return {"target": {"type": "emr_serverless", "entry_point": "s3://code/clean.py"}, "pool": pool}


SLOW, GONE = "demo.flights.slow", "demo.flights.gone"


def names(view: Any) -> dict[str, tuple[str, str]]:
    return {ref["text"]: (ref["kind"], ref["name"]) for ref in view["refs"]}


def test_c14_why_has_the_tree_of_the_trigger(api: Api) -> None:
    [job] = api.get(f"{APP}/schedules/join/why")["jobs"]
    root = job["tree"]
    flights, cleaned = root["children"]
    assert (root["type"], root["need"], root["have"], root["met"]) == ("all", 2, 1, False)
    assert (flights["met"], flights["arrived"]) == (True, job["arrived"])
    assert (cleaned["met"], cleaned["missing"], cleaned["have"]) == (False, job["missing"], 0)
    assert [flights["leaf"], cleaned["leaf"]] == ["0", "1"]


def test_c14_why_of_an_idle_schedule_has_an_empty_tree(api: Api) -> None:
    api.schedule("idle", trigger=FLIGHTS | {"count": 3}, enabled=True)
    tree = api.get(f"{APP}/schedules/idle/why")["tree"]
    assert (tree["need"], tree["have"], tree["text"]) == (3, 0, "3 partitions of demo.flights")


def test_c14_the_nouns_of_sentences_are_references(api: Api) -> None:
    view = api.get(f"{APP}/schedules/join/why")
    wanted = {
        "demo.flights.clean": ("workflow", "demo.flights.clean"),
        "demo.flights": ("dataset", "demo.flights"),
    }
    assert names(view["jobs"][0]).items() >= wanted.items()
    assert names(view).items() >= wanted.items()


def test_c14_a_constraint_says_who_holds_its_slots(api: Api) -> None:
    [job] = api.get(f"{APP}/schedules/slow/why")["jobs"]
    [run] = api.get(f"{APP}/schedules/slow/runs")["items"]
    slots, rate = job["constraints"]
    assert (slots["used"], slots["max"], slots["held_by"]) == (1, 1, [run["run_id"]])
    assert (rate["used"], rate["max"], rate["held_by"]) == (2, 9, None)
    assert job["tree"] is None


def test_c14_limits_beyond_constraints_are_in_why(api: Api) -> None:
    [job] = api.get(f"{APP}/schedules/slow/why")["jobs"]
    limits = {each["text"]: each for each in job["limits"]}
    own, pool = limits["workflow demo.flights.clean"], limits["pool demo.small"]
    assert (own["used"], own["max"], own["waits_here"], own["waiting"]) == (1, 1, True, 1)
    assert (pool["used"], pool["max"], pool["held_by"], pool["waits_here"]) == (1, 1, None, False)
    assert names(job)["workflow demo.flights.clean"] == ("workflow", "demo.flights.clean")


def test_c14_why_of_a_run_and_of_a_record_has_references(api: Api) -> None:
    [run] = api.get(f"{APP}/schedules/slow/runs")["items"]
    own = {SLOW: ("schedule", SLOW), "workflow demo.flights.clean": ("workflow", "demo.flights.clean")}
    assert names(api.get(f"/v1/runs/{run['run_id']}/why")) == own
    api.schedule("gone", trigger=FLIGHTS | {"count": 2}, enabled=True)
    api.post(f"{NS}/datasets/flights/partitions", {"partition": DAY | {"day": "7"}})
    api.work()
    [job] = api.get(f"{APP}/schedules/gone/jobs")["items"]
    api.post(f"{APP}/schedules/gone/disable")
    assert names(api.get(f"/v1/runs/{job['job_id']}/why")) == {GONE: ("schedule", GONE)}


def test_o8_an_idle_schedule_shows_all_its_constraints(api: Api) -> None:
    """Also the limits behind them, with what they allow and what is in use, while nothing waits."""
    api.put(f"{NS}/policies/calm", {"max_events": 5, "interval": "10s"})
    weekdays = {"type": "time", "expression": "0 5 * * 1-5"}
    night = {"type": "time_window", "start": "22:00", "end": "06:00", "on_unmet": "wait"}
    rules = [ONE_AT_A_TIME, {"type": "rate", "max": 9, "per": "1h", "on_unmet": "wait"}, night]
    api.schedule("rests", workflow="clean", trigger=weekdays, policy="calm", constraints=rules, enabled=True)

    view = api.get(f"{APP}/schedules/rests/why")

    assert view["jobs"] == []
    slots, rate, window = view["constraints"]
    assert (slots["used"], slots["max"], slots["met"]) == (1, 1, False)
    assert "at most 1 run of the workflow at a time" in slots["why"]
    assert (rate["max"], "between 22:00 and 06:00" in window["why"]) == (9, True)
    rules = {limit["name"].partition(":")[0]: limit["rule"] for limit in view["limits"]}
    assert rules["workflow"] == "at most 1 run at a time"
    assert rules["rate"] == "at most 9 runs claimed per 1h"
    assert rules["policy"] == "at most 5 starts in any 10s"
    assert rules["pool"] == "at most 1 slot at a time"


def test_o8_a_schedule_that_waits_shows_those_of_its_first_job(api: Api) -> None:
    view = api.get(f"{APP}/schedules/slow/why")
    assert (view["constraints"], view["limits"]) == (view["jobs"][0]["constraints"], view["jobs"][0]["limits"])
