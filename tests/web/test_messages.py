"""The message API (L16), data (L13) and runs for a later time (W8), from the caller's side."""

from __future__ import annotations

import base64
import json
from typing import Any

import boto3
import pytest

from chalicelib.core.definitions.data import MAX_DATA, MAX_INLINE
from tests.web.conftest import APP, NS, Api

PING = f"{APP}/messages/ping"


def target(api: Api) -> dict[str, Any]:
    return {"type": "sqs", "queue_url": api.sqs.get_queue_url(QueueName="target")["QueueUrl"]}


def test_l16_a_message_is_put_read_listed_and_deleted(api: Api) -> None:
    sent = {"schedule": "@every 10s", "due_time": "1h", "repeats": 4, "data": {"a": 1}, "target": target(api)}
    created = api.send("PUT", PING, sent)
    assert (created.status_code, created.headers["ETag"]) == (201, '"1"')
    view = json.loads(created.body)
    assert view["name"] == "demo.flights.ping"
    assert (view["kind"], view["repeats"], view["data"]) == ("message", 4, {"a": 1})
    assert view["target"] == target(api) | {"group": None}
    assert view["due_time"] == view["next_fire"]
    assert view["due_time"].endswith("Z")
    assert api.get(PING) == view
    assert api.get(f"{APP}/messages") == {"items": [view], "next_cursor": None}

    replaced = api.send("PUT", PING, sent)
    assert (replaced.status_code, replaced.headers["ETag"]) == (200, '"2"')
    api.delete(PING)
    assert api.refused(404, "GET", PING)["message"] == "no message named 'demo.flights.ping'"
    assert api.refused(404, "DELETE", PING)["code"] == "not_found"
    assert api.get(f"{APP}/messages") == {"items": [], "next_cursor": None}


def test_l16_if_match_guards_the_version_that_was_read(api: Api) -> None:
    sent = {"schedule": "@daily", "target": target(api)}
    assert api.refused(412, "PUT", PING, sent, if_match='"1"')["code"] == "changed_meanwhile"
    api.put(PING, sent)
    api.put(PING, sent, if_match='"1"')
    assert api.refused(412, "PUT", PING, sent, if_match='"1"')["code"] == "changed_meanwhile"
    assert api.refused(412, "DELETE", PING, if_match='"1"')["code"] == "changed_meanwhile"
    api.delete(PING, if_match='"2"')


def test_l16_messages_are_listed_page_by_page(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.put(f"{APP}/messages/{name}", {"schedule": "@daily", "workflow": "notify"})
    first = api.get(f"{APP}/messages?limit=2")
    rest = api.get(f"{APP}/messages?limit=2&cursor={first['next_cursor']}")
    assert [each["name"] for each in first["items"] + rest["items"]] == [f"demo.flights.{name}" for name in "abc"]
    assert rest["next_cursor"] is None
    assert api.get(f"{APP}/schedules")["items"] == []
    assert api.refused(404, "GET", f"{NS}/apps/none/messages")["code"] == "not_found"


def test_l16_a_due_message_is_sent_and_its_history_is_readable(api: Api) -> None:
    api.put(APP, {"default_target": target(api)})
    api.put(PING, {"due_time": "1ms", "data": "now", "description": "once"})
    api.work()
    [run] = api.get(f"{PING}/runs")["items"]
    assert (run["schedule"], run["state"]) == ("demo.flights.~ping", "SUCCEEDED")
    assert len(api.messages(target(api)["queue_url"])) == 1
    assert api.get(f"/v1/runs/{run['run_id']}")["workflow"] == "demo.flights.~"
    assert api.refused(404, "GET", f"{APP}/messages/never/runs")["code"] == "not_found"


def test_l16_why_says_when_a_message_is_due(api: Api) -> None:
    view = api.put(PING, {"due_time": "2h", "workflow": "notify"})
    why = api.get(f"{PING}/why")
    assert (why["schedule"], why["state"], why["next_fire"]) == ("demo.flights.~ping", "enabled", view["next_fire"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "schedule"),
        ({"due_time": "1h"}, "target"),
        ({"due_time": "1h", "target": {"type": "pigeon"}}, "target"),
        ({"due_time": "1h", "workflow": "none"}, "workflow"),
        ({"due_time": "1h", "workflow": "notify", "enabled": True}, "enabled"),
        ({"due_time": "1h", "workflow": "~"}, "workflow"),
        ({"schedule": "61 * * * *", "workflow": "notify"}, "schedule"),
        ({"schedule": "@daily", "workflow": "notify", "tags": []}, "tags"),
    ],
)
def test_l16_bad_input_is_refused_by_its_field_and_not_stored(api: Api, body: dict[str, Any], field: str) -> None:
    before = api.everything()
    assert api.refused(400, "PUT", PING, body)["field"] == field
    assert api.everything() == before


def test_l16_the_tilde_is_not_a_valid_name(api: Api) -> None:
    api.put(PING, {"schedule": "@daily", "workflow": "notify"})
    for path in ("messages/~ping", "schedules/~ping", "schedules/~ping/run", "workflows/~", "workflows/~ping"):
        method = "POST" if path.endswith("run") else "GET"
        assert api.refused(400, method, f"{APP}/{path}")["field"] == "name"


def test_l13_data_of_256_kb_is_accepted_and_stored_in_s3(api: Api) -> None:
    api.put(PING, {"due_time": "1h", "workflow": "notify", "data": "x" * MAX_INLINE})
    assert api.get(PING)["data"] == "x" * MAX_INLINE
    content = bytes(range(256)) * (MAX_DATA // 256)
    sent = {"due_time": "1h", "workflow": "notify", "content_type": "image/png",
            "data_base64": base64.b64encode(content).decode()}  # fmt: skip
    uri = api.put(PING, sent)["data_uri"]
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    stored = boto3.client("s3").get_object(Bucket=bucket, Key=key)
    assert (bucket, stored["ContentType"], stored["Body"].read()) == ("control", "image/png", content)

    more = {**sent, "data_base64": base64.b64encode(content + b"x").decode()}
    error = api.refused(413, "PUT", PING, more)
    assert (error["code"], error["field"]) == ("too_large", "data_base64")


def test_l13_a_bucket_that_refuses_the_data_is_reported(api: Api) -> None:
    api.put(APP, {"default_target": target(api), "data_bucket": "nobodys-bucket"})
    error = api.refused(400, "PUT", PING, {"due_time": "1h", "data": "x" * (MAX_INLINE + 1)})
    assert error["message"] == "expected a bucket nobodys-bucket that takes large data, got 'NoSuchBucket from S3'"
    assert "s3:PutObject on nobodys-bucket/data/*" in error["hint"]


def test_l13_a_schedule_may_have_data_too(api: Api) -> None:
    view = api.schedule("nightly", data=[1, 2], content_type="application/vnd.own+json")
    assert (view["data"], view["content_type"]) == ([1, 2], "application/vnd.own+json")
    assert "data_uri" not in api.schedule("plain")
    error = api.refused(400, "PUT", APP, {"workflows": {}, "schedules": {"a": {"workflow": "b", "data_uri": "s3://x/y",
                        "trigger": {"type": "time", "expression": "@daily"}}}})  # fmt: skip
    assert error["field"] == "schedules.a.data_uri"


def test_w8_a_run_at_an_instant_is_listed_and_cancelled(api: Api) -> None:
    api.schedule("nightly")
    job_id = api.post(f"{APP}/schedules/nightly/run", {"at": "2h", "properties": {"day": "1"}})["job_id"]
    [job] = api.get(f"{APP}/schedules/nightly/jobs")["items"]
    assert (job["job_id"], job["kind"], job["reason"]) == (job_id, "run_now", f"due at {job['due_at']}")
    cancelled = api.post(f"/v1/jobs/{job_id}/cancel")
    assert (cancelled["id"], cancelled["kind"]) == (job_id, "DROPPED")
    assert api.get(f"{APP}/schedules/nightly/jobs")["items"] == []
    again = api.post(f"/v1/jobs/{job_id}/cancel")
    assert (again["id"], again["kind"], again["reason"]) == (job_id, "DROPPED", cancelled["reason"])


@pytest.mark.parametrize("at", ["yesterday", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00", ""])
def test_w8_an_invalid_instant_is_refused(api: Api, at: str) -> None:
    api.schedule("nightly")
    assert api.refused(400, "POST", f"{APP}/schedules/nightly/run", {"at": at})["field"] == "at"


def test_l16_a_delayed_publish_reaches_subscribers_with_its_type(api: Api) -> None:
    sns, queue = boto3.client("sns"), target(api)["queue_url"]
    arn = api.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = sns.create_topic(Name="news")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    goes = {"target": {"type": "sns", "topic_arn": topic}, "due_time": "1ms"}

    api.put(PING, goes | {"data": "<a/>", "content_type": "application/xml"})
    api.work()
    [small] = received(api, queue)
    assert small["Body"] == "<a/>"
    assert small["MessageAttributes"]["sluice-content-type"]["StringValue"] == "application/xml"
    assert small["MessageAttributes"]["sluice-schedule"]["StringValue"] == "demo.flights.~ping"

    uri = api.put(PING, goes | {"data": "x" * (MAX_INLINE + 1), "content_type": "text/csv"})["data_uri"]
    api.work()
    [large] = received(api, queue)
    assert json.loads(large["Body"]) == {"data_uri": uri, "content_type": "text/csv"}


def received(api: Api, queue: str) -> list[Any]:
    answer = api.sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"], MaxNumberOfMessages=10)
    found: list[Any] = answer.get("Messages", [])
    for message in found:
        api.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return found
