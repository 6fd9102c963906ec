"""Apps over HTTP: the record of a deployment, the effect of a delete, and bulk changes of schedules (L8, L18)."""

from __future__ import annotations

import copy
import json
from typing import Any

import boto3
import pytest

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.flow.schedules import actions
from chalicelib.settings import Settings
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api

WORKFLOW = {"target": {"type": "sqs", "queue_url": "https://sqs.example/target"}}
DAILY = {"workflow": "ship", "trigger": {"type": "time", "expression": "0 5 * * *"}, "enabled": True}
PATH = f"{NS}/apps/orders"
ORDERS = {"owner": "ops", "workflows": {"ship": WORKFLOW}, "schedules": {"a": DAILY, "b": DAILY}}
FEWER = {"owner": "ops", "workflows": {"ship": WORKFLOW}, "schedules": {"a": DAILY, "c": DAILY}}


def schedules(api: Api, path: str = PATH) -> dict[str, str]:
    """The state of each schedule of an app, by short name."""
    return {item["name"].rpartition(".")[2]: item["state"] for item in api.get(f"{path}/schedules")["items"]}


def test_l8_an_app_is_created_updated_and_deleted(api: Api) -> None:
    assert api.put(PATH, ORDERS)["created"][0] == "app demo.orders"
    first = api.send("GET", PATH)
    assert "demo.orders" in [item["name"] for item in api.get(f"{NS}/apps")["items"]]
    assert first.headers["ETag"] == f'"{first.json_body["version"]}"'

    assert api.put(PATH, ORDERS | {"description": "orders"})["replaced"] == ["app demo.orders"]
    assert api.get(PATH)["description"] == "orders"
    assert api.refused(412, "DELETE", PATH, if_match=first.headers["ETag"])["code"] == "changed_meanwhile"
    assert set(schedules(api)) == {"a", "b"}

    api.delete(PATH, if_match=api.send("GET", PATH).headers["ETag"])
    for path in (PATH, f"{PATH}/schedules", f"{PATH}/schedules/a", f"{PATH}/workflows/ship"):
        assert api.refused(404, "GET", path)["code"] == "not_found"
    api.refused(404, "DELETE", PATH)
    api.put(PATH, ORDERS)
    assert set(schedules(api)) == {"a", "b"}


def test_l8_an_app_is_deployed_at_an_expected_version(api: Api) -> None:
    api.put(PATH, ORDERS)
    first = api.send("GET", PATH).headers["ETag"]
    api.put(PATH, FEWER, if_match=first)
    before = api.everything()

    error = api.refused(412, "PUT", PATH, ORDERS, if_match=first)

    assert error["code"] == "changed_meanwhile"
    assert api.everything() == before
    assert api.refused(412, "PUT", f"{NS}/apps/other", ORDERS, if_match=first)["code"] == "changed_meanwhile"
    assert set(schedules(api)) == {"a", "c"}


def test_l8_an_app_that_another_needs_is_not_deleted(api: Api) -> None:
    api.put(PATH, ORDERS)
    api.schedule("chained", workflow="demo.orders.ship")
    before = api.everything()

    error = api.refused(409, "DELETE", PATH)

    assert error["code"] == "in_use"
    assert "got demo.orders.ship used by schedule demo.flights.chained" in error["message"]
    assert api.everything() == before


def test_l8_an_app_shows_what_was_deployed_and_the_bucket_has_it(api: Api) -> None:
    api.put(f"{PATH}?update_schedules=false", ORDERS)
    answer = api.get(PATH)["deployed"]
    assert answer["counts"] == {"datasets": 0, "workflows": 1, "schedules": 2}
    assert answer["update_schedules"] is False
    assert answer["by"] == api.get(PATH)["updated_by"]
    assert answer["at"] == api.get(PATH)["updated_at"]

    bucket, _, key = answer["uri"].removeprefix("s3://").partition("/")
    assert (bucket, key.rpartition("/")[0]) == ("control", "deployments/demo.orders")
    held = boto3.client("s3").get_object(Bucket=bucket, Key=key)
    assert held["ContentType"] == "application/json"
    assert json.loads(held["Body"].read()) == ORDERS

    api.post(f"{PATH}/schedules/a/disable")
    api.delete(f"{PATH}/schedules/b")
    assert api.get(PATH)["deployed"] == answer


def test_l8_a_dry_run_leaves_no_document_in_the_bucket(api: Api) -> None:
    s3 = boto3.client("s3")
    before = s3.list_objects_v2(Bucket="control").get("Contents", [])
    previewed = api.put(f"{PATH}?dry_run=true", ORDERS)
    assert s3.list_objects_v2(Bucket="control").get("Contents", []) == before
    assert api.put(PATH, ORDERS) | {"changes": {}} == previewed


def test_l8_a_dry_run_tells_the_changes_of_each_part(api: Api) -> None:
    api.put(PATH, ORDERS)
    later = copy.deepcopy(ORDERS)
    later["description"] = "all orders"
    name, workflow = next(iter(later["workflows"].items()))
    workflow["priority"] = 7
    later["schedules"]["a"] = {**DAILY, "timeout": {"after": "2h", "then": "abort"}, "enabled": False}
    previewed = api.put(f"{PATH}?dry_run=true", later)
    changes = previewed["changes"]
    assert changes["app demo.orders"] == ["description: '' -> 'all orders'"]
    assert changes[f"workflow demo.orders.{name}"] == ["priority: 5 -> 7"]
    assert changes["schedule demo.orders.a"] == ["timeout.after: '1d' -> '2h'", "enabled: true -> false"]
    assert len(changes) == 3
    [effect] = previewed["effects"].values()
    assert (effect["code"], effect["text"]) == ("stops", "stops; drops nothing")
    assert api.put(PATH, later)["effects"] == previewed["effects"] == {"schedule demo.orders.a": effect}
    assert api.put(f"{PATH}?dry_run=true", later)["changes"] == {}


@pytest.mark.parametrize(
    ("query", "action", "left"),
    [
        ("", "deleted", {"a", "c"}),
        ("?update_schedules=true", "deleted", {"a", "c"}),
        ("?update_schedules=false", "untouched", {"a", "b"}),
        ("?update_schedules=false&dry_run=true", "untouched", {"a", "b"}),
    ],
)
def test_l8_a_request_says_whether_schedules_are_updated(api: Api, query: str, action: str, left: set[str]) -> None:
    api.put(PATH, ORDERS)
    report = api.put(PATH + query, FEWER)
    assert "schedule demo.orders.b" in report[action]
    assert set(schedules(api)) == left


@pytest.mark.parametrize("text", ["true", "false"])
def test_l8_the_installation_sets_what_a_request_omits(api: Api, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    api.put(PATH, ORDERS)
    monkeypatch.setenv("SLUICE_UPDATE_SCHEDULES", text)
    ports.cache_clear()

    api.put(PATH, FEWER)
    assert ("b" in schedules(api)) == (text == "false")
    api.put(f"{PATH}?update_schedules=true", FEWER)
    assert set(schedules(api)) == {"a", "c"}


@pytest.mark.parametrize("text", ["yes", "True", "0", ""])
def test_l8_a_setting_neither_true_nor_false_stops_the_process(text: str) -> None:
    names = ("CATALOG_TABLE", "JOBS_TABLE", "RUNS_TABLE", "HINTS_QUEUE_URL", "LAKE_BUCKET", "CONTROL_BUCKET")
    environment = {f"SLUICE_{name}": "x" for name in names}
    assert Settings.from_environment(environment).update_schedules is True
    message = f"expected true or false in SLUICE_UPDATE_SCHEDULES, got {text!r}"
    with pytest.raises(RuntimeError, match=message):
        Settings.from_environment(environment | {"SLUICE_UPDATE_SCHEDULES": text})


# -- many schedules at once ------------------------------------------------------------------------------------------


def test_l18_schedules_are_switched_by_tag_workflow_and_state(api: Api) -> None:
    api.schedule("a", tags={"team": "x"}, enabled=True)
    api.schedule("b", tags={"team": "x"})
    api.schedule("c", workflow="clean", enabled=True)
    bulk = f"{APP}/bulk"
    a, b, c = (f"demo.flights.{name}" for name in "abc")

    done = {"failed": [], "dry_run": False}
    assert api.post(bulk, {"action": "disable", "tag": "team=x"}) == {"changed": [a], "unchanged": [b], **done}
    assert api.post(bulk, {"action": "disable", "workflow": "clean"})["changed"] == [c]
    assert api.post(bulk, {"action": "enable", "workflow": "demo.flights.notify"})["changed"] == [a, b]
    assert api.post(bulk, {"action": "enable", "state": "disabled"})["changed"] == [c]
    assert api.post(bulk, {"action": "disable", "tag": "team", "state": "enabled"})["changed"] == [a, b]
    assert api.post(bulk, {"action": "enable", "all": True}) == {"changed": [a, b], "unchanged": [c], **done}
    assert schedules(api, APP) == dict.fromkeys("abc", "enabled")


def test_l18_a_failing_item_has_its_error_and_the_others_change(api: Api) -> None:
    api.put(f"{APP}/workflows/refine", {"target": {"type": "emr_serverless", "entry_point": "s3://code/refine.py"}})
    for name, workflow, upstream in (("m", "clean", "refine"), ("n", "refine", "clean")):
        trigger = {"type": "program_status", "workflow": upstream}
        document = NewSchedule.model_validate({"workflow": workflow, "trigger": trigger})
        # As before puts checked disabled schedules.
        actions.put(ports(), f"demo.flights.{name}", document, "tester", checked=True)
    api.schedule("z")

    answer = api.post(f"{APP}/bulk", {"action": "enable", "all": True})

    assert answer["changed"] == ["demo.flights.m", "demo.flights.z"]
    assert [each["name"] for each in answer["failed"]] == ["demo.flights.n"]
    assert answer["failed"][0]["error"]["code"] == "cycle"
    assert answer["failed"][0]["error"]["hint"]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"action": "disable"}, "invalid", "all"),
        ({"action": "disable", "all": False}, "invalid", "all"),
        ({"action": "disable", "all": True, "tag": "team=x"}, "invalid", "all"),
        ({"tag": "team=x"}, "invalid", "action"),
        ({"action": "destroy", "all": True}, "invalid", "action"),
        ({"action": "enable", "tag": "=x"}, "invalid", "tag"),
        ({"action": "enable", "tag": ""}, "invalid", "tag"),
        ({"action": "enable", "workflow": "No Name"}, "invalid", "workflow"),
        ({"action": "enable", "state": "enbaled"}, "invalid", "state"),
        ({"action": "enable", "tags": "team=x"}, "unknown_field", "tags"),
    ],
)
def test_l18_a_bulk_request_without_a_filter_changes_nothing(
    api: Api, body: dict[str, Any], code: str, field: str
) -> None:
    api.schedule("a", tags={"team": "x"}, enabled=True)
    before = api.everything()
    error = api.refused(400, "POST", f"{APP}/bulk", body)
    assert (error["code"], error["field"]) == (code, field)
    assert api.everything() == before


def test_l18_a_bulk_request_needs_its_app(api: Api) -> None:
    assert api.refused(404, "POST", f"{NS}/apps/none/bulk", {"action": "enable", "all": True})["code"] == "not_found"
