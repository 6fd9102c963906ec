"""One action on schedules by their names, how a pause is, and what would change (L18)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.dags import dag
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in
from tests.web.reads import counted


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        for number in range(4):
            made.schedule(f"s{number}", enabled=True, tags={"team": "a"})
        made.schedule("off")
        made.put(f"{APP}/dags/seen", dag(nodes={"one": {"workflow": "clean"}}))
        yield made


def bulk(api: Api, action: str, **body: Any) -> Any:
    return api.post(f"{APP}/bulk", {"action": action, **body})


def states(api: Api) -> dict[str, str]:
    return {item["name"]: item["state"] for item in api.get(f"{APP}/schedules")["items"]}


def test_l18_named_schedules_change_and_failures_have_reasons(api: Api) -> None:
    done = bulk(api, "pause", names=["s0", "demo.flights.s1", "off", "gone", "demo.flights.seen~"])
    assert (done["changed"], done["unchanged"]) == (["demo.flights.s0", "demo.flights.s1"], [])
    failed = {each["name"].rpartition(".")[2]: each["error"] for each in done["failed"]}
    alone = api.refused(409, "POST", f"{APP}/schedules/off/pause", {})
    assert failed["off"] == alone
    assert failed["gone"]["message"] == "no schedule named 'demo.flights.gone'"
    assert failed["seen~"]["message"] == "schedule seen belongs to the DAG seen and cannot be changed alone"
    assert bulk(api, "resume", names=["s0", "s1"])["changed"] == ["demo.flights.s0", "demo.flights.s1"]


def test_l18_a_bulk_pause_has_its_mode_and_timeouts(api: Api) -> None:
    assert bulk(api, "pause", names=["s0"], mode="drain", timeouts="stop")["changed"] == ["demo.flights.s0"]
    assert states(api)["demo.flights.s0"] == "drain"
    assert bulk(api, "pause", names=["s0"], mode="drain", timeouts="stop")["unchanged"] == ["demo.flights.s0"]
    assert bulk(api, "pause", tag="team=a", mode="backlog")["changed"] == [f"demo.flights.s{n}" for n in range(4)]
    assert set(states(api).values()) == {"backlog", "disabled", "enabled"}
    bulk(api, "resume", tag="team=a")


@pytest.mark.parametrize("action", ["enable", "disable", "pause", "resume"])
def test_l18_a_dry_run_answers_as_the_change_and_stores_nothing(api: Api, action: str) -> None:
    bulk(api, "pause", names=["s3"])
    names = ["s0", "s3", "off", "gone"]
    before = api.everything()
    planned = bulk(api, action, names=names, dry_run=True)
    assert api.everything() == before
    assert planned.pop("dry_run") is True
    done = bulk(api, action, names=names)
    assert done.pop("dry_run") is False
    assert planned == done
    bulk(api, "disable", names=["off"])
    bulk(api, "enable", names=["s0", "s3"])


def test_l18_a_dry_run_by_filter_names_who_fits(api: Api) -> None:
    with counted() as tally:
        planned = bulk(api, "pause", tag="team", dry_run=True)
    assert planned["changed"] == [f"demo.flights.s{n}" for n in range(4)]
    assert states(api)["demo.flights.s0"] == "enabled"
    # One call for a hundred states to see who fits, one for those that fit, one for their workflows. One reads
    # the app, and one its tags.
    assert tally.calls == {"GetItem": 2, "Query": 1, "BatchGetItem": 3}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"names": ["s0"], "all": True}, "names"),
        ({"names": ["s0"], "tag": "team"}, "names"),
        ({"names": []}, "names"),
        ({"names": [f"s{number}" for number in range(101)]}, "names"),
        ({"names": ["other.flights.s0"]}, "names.0"),
        ({"names": ["s0"], "mode": "drain"}, "mode"),
        ({"names": ["s0"], "timeouts": "stop"}, "timeouts"),
    ],
)
def test_l18_a_wrong_bulk_request_is_refused(api: Api, body: Any, field: str) -> None:
    error = api.refused(400, "POST", f"{APP}/bulk", {"action": "enable", **body})
    assert error["field"] == field


def test_l18_names_of_another_app_name_that_app(api: Api) -> None:
    api.put(f"{NS}/apps/orders", {"schedules": {"s": {"workflow": "demo.flights.notify", "trigger": WEEKDAYS}}})
    error = api.refused(400, "POST", f"{APP}/bulk", {"action": "enable", "names": ["demo.orders.s"]})
    assert (error["message"], error["hint"]) == (
        "expected a schedule of the app demo.flights, got 'demo.orders.s'",
        "send one request for each app",
    )
