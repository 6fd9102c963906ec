"""An app that is too large for a body is uploaded, checked as one in a body, and deployed after the answer (L8)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from chalicelib.web import quotas
from chalicelib.web.http import MAX_BODY
from chalicelib.wiring import ports
from tests.web.conftest import NS, WEEKDAYS, Api
from tests.web.signed import Signer, authorizing, member, role

ORDERS = f"{NS}/apps/orders"
EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
ADA, BOB = Signer(role("data", "ada")), Signer(role("readers", "bob"))


def document(count: int, **fields: Any) -> dict[str, Any]:
    schedules = {f"s{number:04d}": {"workflow": "w", "enabled": True, "trigger": WEEKDAYS} for number in range(count)}
    return {"workflows": {"w": {"target": EMR}}, "schedules": schedules, **fields}


def sent(begun: dict[str, Any], content: dict[str, Any] | bytes) -> str:
    """Upload a document as a client does by the URL, and return the path that deploys it."""
    bucket, _, key = urlsplit(begun["url"]).path.lstrip("/").partition("/")
    if bucket != ports().settings.control_bucket:  # the bucket is part of the host
        key = f"{bucket}/{key}"
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    boto3.client("s3").put_object(Bucket=ports().settings.control_bucket, Key=key, Body=body)
    return f"{ORDERS}?upload={begun['upload']}"


def test_l8_an_app_beyond_the_limit_of_a_body_is_uploaded(api: Api) -> None:
    large = document(12)
    for schedule in large["schedules"].values():
        schedule["properties"] = {"text": "x" * 90_000}
    assert len(json.dumps(large)) > MAX_BODY
    assert api.refused(413, "PUT", ORDERS, large)["code"] == "too_large"

    path = sent(api.post(f"{ORDERS}/uploads"), large)
    answer = api.send("PUT", path)
    begun = json.loads(answer.body)
    assert (answer.status_code, begun["state"], begun["counts"]["created"]) == (202, "RUNNING", 14)
    api.work()

    ended = api.get(f"{ORDERS}/deployments/{begun['deployment']}")
    assert (ended["state"], ended["error"]) == ("DONE", None)
    assert api.get(ORDERS)["deployed"]["counts"]["schedules"] == 12
    assert len(api.get(f"{ORDERS}/schedules/s0011")["properties"]["text"]) == 90_000


def test_l8_a_wrong_upload_is_refused_as_a_wrong_body(api: Api) -> None:
    wrong = document(2, schedules={"a": {"workflow": "gone", "trigger": WEEKDAYS}})
    in_body = api.refused(400, "PUT", ORDERS, wrong)
    uploaded = api.refused(400, "PUT", sent(api.post(f"{ORDERS}/uploads"), wrong))
    assert uploaded == in_body
    assert api.refused(400, "PUT", sent(api.post(f"{ORDERS}/uploads"), b'{"a": 1, "a": 2}'))["code"] == "bad_json"
    assert api.refused(404, "GET", ORDERS)["code"] == "not_found"


def test_l8_a_dry_run_of_an_upload_stores_nothing(api: Api) -> None:
    path = sent(api.post(f"{ORDERS}/uploads"), document(2))
    before = api.everything()
    report = api.put(f"{path}&dry_run=true")
    assert report["created"][-1] == "schedule demo.orders.s0001"
    assert api.everything() == before


def test_l8_an_upload_is_known_to_its_app_alone(api: Api) -> None:
    begun = api.post(f"{ORDERS}/uploads")
    sent(begun, document(1))
    assert api.refused(404, "PUT", f"{NS}/apps/others?upload={begun['upload']}")["code"] == "not_found"
    assert api.refused(404, "PUT", f"{ORDERS}?upload={'0' * 32}")["code"] == "not_found"
    assert api.refused(404, "PUT", f"{ORDERS}?upload=../x")["code"] == "not_found"
    assert api.refused(400, "PUT", f"{ORDERS}?upload={begun['upload']}", document(1))["code"] == "invalid"


def test_o9_an_upload_counts_for_the_quotas(api: Api) -> None:
    quotas.memory.cache_clear()
    api.put(f"{NS}/quotas", {"schedules": 2})
    path = sent(api.post(f"{ORDERS}/uploads"), document(3))
    assert api.refused(409, "PUT", path)["code"] == "over_quota"
    assert api.refused(404, "GET", ORDERS)["code"] == "not_found"
    quotas.memory.cache_clear()


def test_o9_an_upload_needs_the_right_to_define(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [{"member": member("data"), "roles": ["admin"]}, {"member": member("readers"), "roles": ["viewer"]}]
    api.put(f"{NS}/access", {"members": members})
    begun = api.post(f"{ORDERS}/uploads")
    path = sent(begun, document(1))
    authorizing(monkeypatch, "enforce")
    assert BOB.send("POST", f"{ORDERS}/uploads")[0] == 403
    assert BOB.send("PUT", path)[0] == 403
    assert ADA.send("PUT", path)[0] == 202
    assert BOB.send("GET", f"{ORDERS}/deployments/{begun['upload']}")[0] == 200


def test_o5_schedules_of_an_upload_have_audit_records(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put(f"{NS}/access", {"members": [{"member": member("data"), "roles": ["admin"]}]})
    path = sent(api.post(f"{ORDERS}/uploads"), document(3))
    authorizing(monkeypatch, "enforce")
    assert ADA.send("PUT", path)[0] == 202
    api.work()
    found = ADA.send("GET", f"{NS}/audit?kind=schedule")[1]["items"]
    assert sorted(each["name"] for each in found) == [f"demo.orders.s000{number}" for number in range(3)]
    assert {(each["by"], each["session"], each["operation"]) for each in found} == {
        (role("data", "ada"), "ada", "deploy_app")
    }
