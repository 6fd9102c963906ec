"""The deployed stack through its public interfaces: custom events over bus and API, sizes, pauses, bulk,
deployments.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from infra.local.rollout import STACK
from sluice.client import Client
from tests.support import alarm_events

pytestmark = pytest.mark.cloud

PATIENCE = 30  # seconds of real time


class Stage:
    """A new namespace on the deployed stack, with a queue as the target of its workflow."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.name = f"e2e-{uuid.uuid4().hex[:8]}"
        self.client = Client.from_environment()
        self.sqs, self.s3 = endpoints.client("sqs"), endpoints.client("s3")
        self.bus = endpoints.client("events")
        self.lake = endpoints.outputs["LakeBucket"]
        self.queue = self.sqs.create_queue(QueueName=f"sluice-target-{self.name}")["QueueUrl"]
        self.base = f"/v1/namespaces/{self.name}"
        self.client.put(self.base, {})

    def deploy(self, **schedules: Any) -> dict[str, Any]:
        app = {
            "datasets": {"orders": {"bucket": "lake", "prefix": f"{self.name}/", "keys": ["day"]}},
            "workflows": {"tell": {"target": {"type": "sqs", "queue_url": self.queue}}},
            "schedules": {name: {"workflow": "tell", "enabled": True} | body for name, body in schedules.items()},
        }
        return self.client.put(f"{self.base}/apps/shop", app)

    def reported(self, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """The received messages, once there are enough of them."""
        came: list[dict[str, Any]] = []
        end = time.monotonic() + PATIENCE
        while not enough(came):
            assert time.monotonic() < end, f"expected more than {came}; {self.client.get(self.base + '/jobs')}"
            answer = self.sqs.receive_message(QueueUrl=self.queue, WaitTimeSeconds=1, MaxNumberOfMessages=10)
            came += [json.loads(message["Body"]) for message in answer.get("Messages", ())]
        return came


@pytest.fixture
def stage(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    made = Stage(cloud)
    yield made
    made.client.request("DELETE", f"{made.base}/apps/shop")
    made.sqs.delete_queue(QueueUrl=made.queue)


def test_t11_a_custom_event_comes_by_the_bus_and_by_the_api(stage: Stage) -> None:
    closed = {"type": "event", "event": "order.closed", "count": 2, "pattern": {"region": [{"prefix": "eu-"}]}}
    stage.deploy(a={"trigger": closed})

    entry = {"Source": f"sluice/{stage.name}", "DetailType": "order.closed", "EventBusName": "default"}
    stage.bus.put_events(Entries=[entry | {"Detail": json.dumps({"region": "eu-west-1", "order": 1})}])
    stage.bus.put_events(Entries=[entry | {"Detail": json.dumps({"region": "us-east-1", "order": 2})}])
    posted = {"type": "order.closed", "id": "o3", "payload": {"region": "eu-north-1", "order": 3}}
    stage.client.post(f"{stage.base}/events", {"events": [posted]})
    stage.client.post(f"{stage.base}/events", {"events": [posted]})

    [message] = stage.reported(lambda came: bool(came))
    assert sorted(event["payload"]["order"] for event in message["events"]) == [1, 3]


def test_t23_an_alarm_event_reaches_the_deployed_lambda(cloud: Endpoints, stage: Stage) -> None:
    """The event as AWS documents it, sent to the queue as the rule would send it. ministack's alarms do not notify
    EventBridge, and no client may put an event whose source begins with ``aws.``.
    """
    name = f"{stage.name} / too hot"
    stage.deploy(a={"trigger": {"type": "cloudwatch_alarm", "alarm": name}})
    change = alarm_events.event(name=name)
    queue = cloud.client("cloudformation").describe_stack_resource(StackName=STACK, LogicalResourceId="CustomQueue")
    url = queue["StackResourceDetail"]["PhysicalResourceId"]
    for body in (alarm_events.event(name=name, state="OK", previous="ALARM"), change, change):
        stage.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(body))

    [message] = stage.reported(lambda came: bool(came))
    [event] = message["events"]
    assert (event["kind"], event["alarm"], event["state"]) == ("cloudwatch_alarm", name, "ALARM")
    assert (event["instant"], event["reason"]) == (alarm_events.AT_MILLIS, alarm_events.REASON)


def test_t23_the_deployed_rule_matches_alarm_changes(cloud: Endpoints) -> None:
    bus = cloud.client("events")
    rule = bus.describe_rule(Name=f"{STACK}-alarm-events")
    pattern = json.loads(rule["EventPattern"])
    assert (pattern["account"], pattern["region"]) == (["000000000000"], ["us-east-1"])

    def fits(**changed: str) -> bool:
        event = alarm_events.event() | {"account": "000000000000"} | changed
        answer = bus.test_event_pattern(EventPattern=rule["EventPattern"], Event=json.dumps(event))
        return bool(answer["Result"])

    assert fits()
    assert not fits(account="123456789012")
    assert not fits(region="eu-west-1")
    assert not fits(source="acme.cloudwatch")


def test_t9_object_sizes_are_those_that_s3_reports(stage: Stage) -> None:
    stage.deploy(a={"trigger": {"type": "size", "dataset": "orders", "bytes": "2KB"}})
    for number, size in enumerate((900, 900, 900)):
        stage.s3.put_object(Bucket=stage.lake, Key=f"{stage.name}/day=1/part-{number}", Body=b"x" * size)
    [message] = stage.reported(lambda came: bool(came))
    assert sum(event["bytes"] for event in message["events"]) == 2700


def test_l4_a_job_waiting_in_a_hold_runs_after_the_resume(stage: Stage) -> None:
    stage.deploy(a={"trigger": {"type": "event", "event": "go"}})
    one = f"{stage.base}/apps/shop/schedules/a"
    assert stage.client.post(f"{one}/pause", {"mode": "hold"})["state"] == "hold"
    stage.client.post(f"{stage.base}/events", {"events": [{"type": "go", "id": "1"}]})
    assert "paused (hold)" in stage.client.get(f"{one}/why")["why"]
    stage.client.post(f"{one}/resume", {})
    [message] = stage.reported(lambda came: bool(came))
    assert message["schedule"] == f"{stage.name}.shop.a"


def test_l8_a_deployment_reports_and_deletes_what_is_absent(stage: Stage) -> None:
    go = {"trigger": {"type": "event", "event": "go"}}
    stage.deploy(a=go, b=go)
    assert stage.deploy(a=go)["deleted"] == [f"schedule {stage.name}.shop.b"]
    app = stage.client.get(f"{stage.base}/apps/shop")
    assert app["deployed"]["uri"].startswith("s3://")


def test_l18_schedules_are_paused_in_bulk(stage: Stage) -> None:
    go = {"trigger": {"type": "event", "event": "go"}}
    stage.deploy(a=go | {"tags": {"team": "x"}}, b=go)
    done = stage.client.post(f"{stage.base}/apps/shop/bulk", {"action": "pause", "tag": "team=x"})
    assert done["changed"] == [f"{stage.name}.shop.a"]
    listed = stage.client.get(f"{stage.base}/apps/shop/schedules", {"state": "hold"})
    assert [item["name"] for item in listed["items"]] == done["changed"]
