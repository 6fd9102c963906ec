"""Namespaces, apps, workflows and datasets over HTTP: created, read, listed, replaced, deleted (L17)."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import parse_instant
from chalicelib.flow.ingest import objects
from chalicelib.wiring import ports
from tests.web.conftest import APP, KEYS, NS, Api

DATASET = {"bucket": "lake", "prefix": "raw/orders/", "keys": ["shop-id", "_day"]}
WORKFLOW = {"target": {"type": "sqs", "queue_url": "https://sqs.example/target"}}


def test_t7_a_dataset_shows_the_last_objects_in_no_partition(api: Api) -> None:
    assert api.get(f"{NS}/datasets/weather")["ignored"] == []
    created = ObjectCreated("lake-bucket", "raw/weather/_tables/part-0.csv", parse_instant("2026-11-20T11:50:12Z"), 5)
    objects.match_object(ports(), created)
    objects.match_object(ports(), replace(created, key="raw/weather/part-0.csv"))
    [ignored] = api.get(f"{NS}/datasets/weather")["ignored"]
    assert ignored == {
        "key": "raw/weather/part-0.csv",
        "at": "2026-11-20T11:50:12.000Z",
        "why": "its path has no folders year=.../month=.../day=...",
        "code": "no_folders",
        "of": "",
    }
    assert "ignored" not in api.get(f"{NS}/datasets")["items"][0]


@pytest.mark.parametrize(
    ("path", "body", "change"),
    [
        ("/v1/namespaces/other", {}, {"owner": "ops"}),
        (f"{APP}/workflows/ship", WORKFLOW, {"priority": 9}),
        (f"{NS}/datasets/orders", DATASET, {"prefix": "raw/orders-v2/"}),
    ],
)
def test_a_document_is_created_updated_and_deleted(
    api: Api, path: str, body: dict[str, Any], change: dict[str, Any]
) -> None:
    created = api.send("PUT", path, body)
    assert created.status_code == 201
    collection = path.rpartition("/")[0]
    assert api.get(path)["name"] in [item["name"] for item in api.get(collection)["items"]]

    assert api.send("PUT", path, body | change).status_code == 200
    read = api.send("GET", path)
    assert change.items() <= read.json_body.items()
    assert (read.headers["ETag"], read.json_body["version"]) == ('"2"', 2)

    api.delete(path)
    assert api.refused(404, "GET", path)["code"] == "not_found"
    api.refused(404, "DELETE", path)
    api.put(path, body)
    assert api.get(path)["version"] == 1


def test_putting_an_equal_document_changes_nothing(api: Api) -> None:
    first = api.put(f"{NS}/datasets/orders", DATASET)
    before = api.everything()

    again = api.send("PUT", f"{NS}/datasets/orders", DATASET)

    assert first["did"] == "created"
    assert again.json_body == {"name": "demo.orders", "kind": "dataset", "did": "unchanged", "version": 1}
    assert api.everything() == before


def test_lake_is_the_name_of_the_installation_bucket(api: Api) -> None:
    assert api.get(f"{NS}/datasets/flights")["bucket"] == "lake-bucket"
    assert api.get("/v1/health") == {"status": "ok", "lake": "lake-bucket", "control": "control"}


@pytest.mark.parametrize(
    ("path", "referrers"),
    [
        (NS, ["demo.flights", "demo.weather"]),
        (f"{NS}/datasets/flights", ["schedule demo.flights.nightly"]),
        (f"{APP}/workflows/notify", ["schedule demo.flights.nightly"]),
        (f"{APP}/workflows/clean", ["schedule demo.flights.after"]),
    ],
)
def test_a_document_in_use_is_not_deleted(api: Api, path: str, referrers: list[str]) -> None:
    api.schedule("nightly", trigger={"type": "partition", "dataset": "flights"})
    api.schedule("after", trigger={"type": "program_status", "workflow": "clean"})
    before = api.everything()

    error = api.refused(409, "DELETE", path)

    assert error["code"] == "in_use"
    assert all(name in error["message"] for name in referrers)
    assert error["hint"] == "delete or change these first"
    assert api.everything() == before


def test_a_document_no_longer_in_use_can_be_deleted(api: Api) -> None:
    api.schedule("nightly", trigger={"type": "partition", "dataset": "flights"})
    api.delete(f"{APP}/schedules/nightly")
    api.delete(f"{NS}/datasets/flights")
    api.delete(f"{NS}/datasets/weather")
    for name in ("clean", "notify"):
        api.delete(f"{APP}/workflows/{name}")
    api.delete(APP)
    api.delete(NS)
    assert api.get("/v1/namespaces") == {"items": [], "next_cursor": None}


def test_a_prefix_belongs_to_one_dataset(api: Api) -> None:
    taken = DATASET | {"prefix": "raw/flights/"}
    before = api.everything()

    error = api.refused(409, "PUT", f"{NS}/datasets/orders", taken)

    assert (error["code"], error["field"]) == ("conflict", "prefix")
    assert "lake-bucket/raw/flights/, which belongs to dataset demo.flights" in error["message"]
    assert api.everything() == before


def test_a_released_prefix_can_be_used_again(api: Api) -> None:
    api.put(f"{NS}/datasets/weather", {"bucket": "lake", "prefix": "raw/weather-v2/", "keys": KEYS})
    api.put(f"{NS}/datasets/orders", DATASET | {"prefix": "raw/weather/"})
    api.delete(f"{NS}/datasets/orders")
    api.put(f"{NS}/datasets/storms", DATASET | {"prefix": "raw/weather/"})


def test_no_name_is_reserved(empty: Api) -> None:
    for name in ("a", "0", "a" * 63, "a-b_c", "pending", "state", "gate", "version", "null"):
        one = f"/v1/namespaces/{name}/apps/{name}/schedules/{name}"
        dataset = DATASET | {"prefix": f"{name}/"}
        trigger = {"type": "partition", "dataset": name, "count": 2}
        schedules = {name: {"workflow": name, "trigger": trigger, "enabled": True}}
        empty.put(f"/v1/namespaces/{name}")
        empty.put(
            f"/v1/namespaces/{name}/apps/{name}",
            {"workflows": {name: WORKFLOW}, "datasets": {name: dataset}, "schedules": schedules},
        )
        empty.post(f"/v1/namespaces/{name}/datasets/{name}/partitions", {"partition": {"shop-id": name, "_day": name}})
        assert len(empty.get(f"{one}/jobs")["items"]) == 1


def test_a_body_of_any_content_type_is_read_and_none_is_empty(empty: Api) -> None:
    empty.put("/v1/namespaces/nothing", b"")
    kinds = ("text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "x")
    for number, kind in enumerate(kinds):
        assert empty.put(f"/v1/namespaces/n{number}", {"owner": "ops"}, content_type=kind)["did"] == "created"
        assert empty.get(f"/v1/namespaces/n{number}")["owner"] == "ops"


# -- partitions ----------------------------------------------------------------------------------------------------


def test_a_partition_is_registered_once_and_listed(api: Api) -> None:
    path = f"{NS}/datasets/flights/partitions"
    day = {"year": "2013", "month": "1", "day": 1}

    made = api.send("POST", path, {"partition": day})
    again = api.post(path, {"partition": day})

    assert made.status_code == 201
    assert made.json_body["partition"] == {"year": "2013", "month": "1", "day": "1"}
    assert made.json_body["path"] == "s3://lake-bucket/raw/flights/year=2013/month=1/day=1/"
    assert again["ready_at"] == made.json_body["ready_at"]
    assert api.get(path) == {"items": [again], "next_cursor": None, "at_least": False}


def test_partitions_need_their_dataset(api: Api) -> None:
    api.refused(404, "GET", f"{NS}/datasets/orders/partitions")
    api.refused(404, "POST", f"{NS}/datasets/orders/partitions", {"partition": {"day": "1"}})


# -- deployment of an app --------------------------------------------------------------------------------------------

ORDERS = {
    "owner": "ops",
    "datasets": {"orders": DATASET},
    "workflows": {"ship": WORKFLOW},
    "schedules": {
        "daily": {"workflow": "ship", "trigger": {"type": "partition", "dataset": "orders"}, "enabled": True}
    },
}
PARTS = ["app demo.orders", "dataset demo.orders", "workflow demo.orders.ship", "schedule demo.orders.daily"]


def test_a_deployment_reports_what_it_did_to_each_part(api: Api) -> None:
    path = f"{NS}/apps/orders"
    report = {"name": "demo.orders", "created": [], "replaced": [], "kept": [], "deleted": [], "untouched": []}
    report |= {"effects": {}}

    assert api.put(path, ORDERS) == report | {"created": PARTS}
    before = api.everything()
    assert api.put(path, ORDERS) == report | {"kept": PARTS}
    assert api.everything() == before
    changed = ORDERS | {"workflows": {"ship": WORKFLOW | {"priority": 9}}}
    assert api.put(path, changed) == report | {"kept": [*PARTS[:2], PARTS[3]], "replaced": [PARTS[2]]}
    assert api.get(f"{path}/workflows/ship")["priority"] == 9
    assert api.get(f"{path}/schedules/daily")["enabled"] is True


def test_a_dry_run_answers_the_same_and_stores_nothing(api: Api) -> None:
    path = f"{NS}/apps/orders"
    before = api.everything()
    previewed = api.put(f"{path}?dry_run=true", ORDERS)
    assert api.everything() == before
    assert previewed == api.put(f"{path}?dry_run=false", ORDERS) | {"changes": {}}

    before = api.everything()
    assert api.put(f"{path}?dry_run=true", ORDERS)["kept"] == PARTS
    assert api.everything() == before


def test_a_document_may_move_a_prefix_between_datasets(api: Api) -> None:
    moved = {"bucket": "lake", "prefix": "raw/weather-v2/", "keys": KEYS}
    api.put(APP, {"datasets": {"weather": moved, "storms": DATASET | {"prefix": "raw/weather/"}}})
    assert api.get(f"{NS}/datasets/storms")["prefix"] == "raw/weather/"


def test_an_app_names_its_own_path_or_nothing(api: Api) -> None:
    api.put(f"{APP}?dry_run=true", {"namespace": "demo", "app": "flights"})
    error = api.refused(400, "PUT", APP, {"namespace": "demo", "app": "fligths"})
    assert (error["field"], error["message"]) == ("app", "expected 'flights', as the path says, got 'fligths'")


# -- cycles, seen over the whole document ----------------------------------------------------------------------------


def after(workflow: str) -> dict[str, str]:
    return {"type": "program_status", "workflow": workflow}


def spark(name: str) -> dict[str, Any]:
    return {"target": {"type": "emr_serverless", "entry_point": f"s3://code/{name}.py"}}


def circle(**enabled: Any) -> dict[str, Any]:
    """Two schedules, each of which starts the other's workflow."""
    there = {"workflow": "clean", "trigger": after("refine")}
    back = {"workflow": "refine", "trigger": after("clean")}
    workflows = {"clean": spark("clean"), "refine": spark("refine"), "notify": WORKFLOW}
    return {"workflows": workflows, "schedules": {"there": there | enabled, "back": back | enabled}}


def test_a_cycle_of_enabled_schedules_stores_nothing(api: Api) -> None:
    """A document without `enabled` keeps the schedules enabled, and these would form the cycle."""
    api.put(f"{APP}/workflows/refine", spark("refine"))
    for name, workflow in [("there", "clean"), ("back", "refine")]:
        api.schedule(name, workflow=workflow, enabled=True)
    before = api.everything()

    error = api.refused(400, "PUT", APP, circle())

    assert (error["code"], error["field"]) == ("cycle", "schedules.there.trigger")
    assert api.everything() == before


def test_a_document_may_reverse_a_chain(api: Api) -> None:
    """Old and new schedules together would form a cycle; only the final state counts."""
    api.put(f"{APP}/workflows/refine", spark("refine"))
    api.schedule("there", workflow="clean", trigger=after("refine"), enabled=True)
    turned = circle(enabled=True)
    turned["schedules"]["there"] = {"workflow": "clean", "trigger": {"type": "partition", "dataset": "flights"}}

    api.put(APP, turned)

    assert api.get(f"{APP}/schedules/there")["enabled"] is True
