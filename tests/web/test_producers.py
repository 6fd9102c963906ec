"""What a workflow reads and produces, over HTTP (L22): what is put, what is refused, what the answers show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, NS, Api, installation, settle_in

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
DAILY = {"bucket": "lake", "prefix": "daily/", "keys": ["year", "month", "day"]}
CLEAN = f"{APP}/workflows/clean"


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """An installation for the tests of refused puts, which leave nothing that another one sees."""
    with installation() as made:
        settle_in(made)
        yield made


def clean(**fields: Any) -> dict[str, Any]:
    return {"target": EMR, **fields}


def on(*datasets: str, workflow: str = "clean", **fields: Any) -> dict[str, Any]:
    leaves = [{"type": "partition", "dataset": name} for name in datasets]
    trigger = leaves[0] if len(leaves) == 1 else {"type": "all", "triggers": leaves}
    return {"workflow": workflow, "trigger": trigger, "enabled": True, **fields}


def after(upstream: str, workflow: str, **fields: Any) -> dict[str, Any]:
    trigger = {"type": "program_status", "workflow": upstream}
    return {"workflow": workflow, "trigger": trigger, "enabled": True, **fields}


def test_l22_a_workflow_is_shown_as_it_was_put(api: Api) -> None:
    api.put(f"{NS}/datasets/daily", DAILY)
    assert not {"reads", "produces"} & api.get(CLEAN).keys()
    sent = clean(reads=["flights", "demo.weather", "flights"], produces=["daily"])
    assert api.put(CLEAN, sent)["did"] == "replaced"
    assert api.put(CLEAN, sent)["did"] == "unchanged"
    assert (api.get(CLEAN)["reads"], api.get(CLEAN)["produces"]) == (["flights", "demo.weather"], ["daily"])


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"reads": ["flihgts"]}, "reads.0", "dataset"),
        ({"produces": ["weather", "nothing"]}, "produces.1", "dataset"),
        ({"produces": ["demo.flights.weather"]}, "produces.0", "a dataset as name or namespace.name"),
        ({"reads": "flights"}, "reads", "a list"),
        ({"produces": ["other.daily"]}, "produces.0", "expected a dataset of namespace demo, got 'other.daily'"),
        (
            {"produces": [{"dataset": "other.daily", "register": "on_success"}]},
            "produces.0",
            "expected a dataset of namespace demo, got 'other.daily'",
        ),
        ({"produces": ["flights", "flights"]}, "produces", "expected each dataset once"),
        ({"produces": [{"dataset": "flights"}]}, "produces.0.register", "expected a value"),
        ({"produces": [{"dataset": "flights", "register": "always"}]}, "produces.0.register", "'on_success'"),
        ({"produces": [3]}, "produces.0", "expected"),
    ],
)
def test_l22_a_workflow_names_datasets_that_exist(
    shared: Api, fields: dict[str, Any], field: str, message: str
) -> None:
    before = shared.everything()
    error = shared.refused(400, "PUT", CLEAN, clean(**fields))
    assert (error["field"], message in error["message"]) == (field, True), error
    app = {"workflows": {"clean": clean(**fields)}}
    assert shared.refused(400, "PUT", APP, app)["field"] == f"workflows.clean.{field}"
    assert shared.everything() == before


def test_l22_a_dataset_that_a_workflow_names_is_not_deleted(api: Api) -> None:
    api.put(f"{NS}/datasets/daily", DAILY)
    api.put(f"{NS}/apps/other")
    api.put(f"{NS}/apps/other/workflows/reader", clean(reads=["daily"]))
    api.put(CLEAN, clean(produces=["daily"]))
    error = api.refused(409, "DELETE", f"{NS}/datasets/daily")
    assert error["code"] == "in_use"
    assert "used by workflow demo.flights.clean, workflow demo.other.reader" in error["message"]
    api.put(CLEAN, clean())
    api.delete(f"{NS}/apps/other/workflows/reader")
    api.delete(f"{NS}/datasets/daily")


def test_l22_a_reader_in_another_namespace_keeps_a_dataset(api: Api) -> None:
    api.put("/v1/namespaces/other")
    api.put("/v1/namespaces/other/apps/far", {"workflows": {"reader": clean(reads=["demo.weather"])}})
    error = api.refused(409, "DELETE", f"{NS}/datasets/weather")
    assert "used by workflow other.far.reader" in error["message"]


def test_l22_an_app_brings_a_dataset_and_its_producer(api: Api) -> None:
    document = {"datasets": {"daily": DAILY}, "workflows": {"clean": clean(reads=["weather"], produces=["daily"])}}
    answer = api.put(f"{APP}?dry_run=true", document)
    changes = answer["changes"]["workflow demo.flights.clean"]
    assert changes[:2] == ["produces: added ['daily']", "reads: added ['weather']"]
    api.put(APP, document)
    assert api.get(CLEAN)["produces"] == ["daily"]
    assert "workflow demo.flights.clean" in api.put(APP, document)["kept"]


def test_l22_a_schedule_on_what_its_workflow_makes_is_refused(api: Api) -> None:
    api.put(CLEAN, clean(produces=["weather"]))
    error = api.refused(400, "PUT", f"{APP}/schedules/loop", on("flights", "weather"))
    assert (error["code"], error["field"]) == ("cycle", "trigger")
    cycle = "demo.flights.clean -> demo.weather -> demo.flights.clean"
    assert error["message"] == f"expected triggers without a cycle, got {cycle}"
    assert error["hint"] == (
        "break the cycle: trigger one of these by time, or let one of them produce another dataset"
    )


def test_l22_a_product_that_starts_its_workflow_is_refused(api: Api) -> None:
    api.put(f"{APP}/schedules/loop", on("weather"))
    before = api.everything()
    error = api.refused(400, "PUT", CLEAN, clean(produces=["weather"]))
    assert (error["code"], error["field"]) == ("cycle", "produces")
    assert error["message"].endswith("got demo.flights.clean -> demo.weather -> demo.flights.clean")
    assert api.everything() == before


def test_l22_a_cycle_through_datasets_and_statuses_is_refused(api: Api) -> None:
    """clean writes weather, which starts join; join ends, which starts tidy; tidy would write flights for clean."""
    api.put(f"{APP}/workflows/join", clean())
    api.put(f"{APP}/workflows/tidy", clean())
    api.put(f"{APP}/schedules/a", on("flights", enabled=False))
    api.put(f"{APP}/schedules/b", on("weather", workflow="join"))
    api.put(f"{APP}/schedules/c", after("join", "tidy"))
    api.put(CLEAN, clean(produces=["weather"]))
    error = api.refused(400, "PUT", f"{APP}/workflows/tidy", clean(produces=["flights"]))
    names = ["flights.tidy", "flights", "flights.clean", "weather", "flights.join", "flights.tidy"]
    assert error["message"].endswith("got " + " -> ".join(f"demo.{name}" for name in names))
    assert "the disabled demo.flights.a would wait for each other" in error["hint"]
    api.delete(f"{APP}/schedules/a")
    api.put(f"{APP}/workflows/tidy", clean(produces=["flights"]))
    closing = on("flights")
    assert api.refused(400, "PUT", f"{APP}/schedules/a", closing)["code"] == "cycle"
    both = {"workflows": {"clean": clean(), "join": clean(), "tidy": clean(produces=["flights"])}}
    both["schedules"] = {"a": closing, "b": on("weather", workflow="join"), "c": after("join", "tidy")}
    assert api.put(APP, both)


def test_l22_a_document_with_a_cycle_is_refused(api: Api) -> None:
    document = {
        "workflows": {"clean": clean(produces=["weather"]), "join": clean(produces=["flights"])},
        "schedules": {"a": on("flights"), "b": on("weather", workflow="join", enabled=False)},
    }
    before = api.everything()
    error = api.refused(400, "PUT", APP, document)
    assert error["code"] == "cycle"
    assert "demo.flights -> " in error["message"]
    assert api.everything() == before


def test_l22_a_dag_that_its_own_product_starts_is_refused(api: Api) -> None:
    dag = {
        "nodes": {"one": {"workflow": "clean"}, "two": {"workflow": "join"}},
        "edges": [{"from": "one", "to": "two"}],
    }
    api.put(f"{APP}/workflows/join", clean())
    api.put(f"{APP}/dags/forecast", {**dag, "trigger": {"type": "partition", "dataset": "weather"}, "enabled": True})
    error = api.refused(400, "PUT", f"{APP}/workflows/join", clean(produces=["weather"]))
    assert error["code"] == "cycle"
    assert error["message"].count("demo.flights.join") == 2


def test_l22_an_absence_is_no_cycle(api: Api) -> None:
    """A workflow that makes up for data that has not come."""
    api.put(CLEAN, clean(produces=["weather"]))
    absent = {"type": "absent", "of": {"type": "partition", "dataset": "weather"}, "within": "1d"}
    api.put(f"{APP}/schedules/repair", {"workflow": "clean", "trigger": absent, "enabled": True})
    api.put(CLEAN, clean(produces=["weather"], priority=3))
