"""A notice as e-mail: an SNS topic with mail subscriptions gets a readable subject and text (W9)."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.aws.targets.sns import SnsTarget
from tests.acceptance.words import day
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

TOPIC = "arn:aws:sns:eu-west-1:123456789012:team"
MAX_SUBJECT = 100  # characters that SNS accepts; printable ASCII that begins with a letter, number or punctuation mark


class Topic:
    """SNS, as far as publishing is concerned. ``down``: it accepts nothing."""

    def __init__(self) -> None:
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.down = False

    def publish_batch(self, **asked: Any) -> dict[str, Any]:
        entries = asked["PublishBatchRequestEntries"]
        if self.down:
            failed = [{"Id": each["Id"], "Code": "InternalError", "SenderFault": False} for each in entries]
            return {"Successful": [], "Failed": failed}
        self.published += [(asked["TopicArn"], each) for each in entries]
        return {"Successful": [{"Id": each["Id"], "MessageId": "m"} for each in entries], "Failed": []}


class Targets:
    """SNS is the real target, over a topic that records what it gets. All other targets are unchanged."""

    def __init__(self, inner: Any, topic: Topic) -> None:
        self._inner, self._sns = inner, SnsTarget(topic)

    def of(self, kind: str) -> Any:
        return self._sns if kind == "sns" else self._inner.of(kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def failing(topic: Topic, **to: Any) -> World:
    world = World(wake_shards=1, history_shards=1)
    rule = {"on": ["failed"], "to": {"type": "sns", "topic_arn": TOPIC, **to}}
    world.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [rule]}))
    world.ports = world.with_ports(targets=Targets(world.targets, topic))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", "disk full")
    world.settle()
    return world


def test_w9_a_failure_reaches_a_topic_with_subject_and_mail_text() -> None:
    topic = Topic()
    world = failing(topic, subject="flights: clean has failed")
    world.pass_by("1m")
    [(arn, mail)] = topic.published
    assert (arn, mail["Subject"]) == (TOPIC, "flights: clean has failed")
    assert len(mail["Subject"]) <= MAX_SUBJECT
    text = json.loads(mail["Message"])
    [run] = world.runs("daily")
    assert (text["workflow"], text["count"]) == ("demo.flights.clean", 1)
    assert [(event["what"], event["id"], event["reason"]) for event in text["events"]] == [
        ("failed", run.run_id, "disk full")
    ]
    # A mail has no attributes. A filter of the subscription can use the schedule and the content type.
    answer = {name: each["StringValue"] for name, each in mail["MessageAttributes"].items()}
    assert answer["sluice-content-type"] == "application/json"
    assert answer["sluice-schedule"].startswith("demo.flights.~notice-")
    assert "MessageGroupId" not in mail


def test_w9_without_a_subject_sns_writes_its_own() -> None:
    topic = Topic()
    failing(topic).pass_by("1m")
    [(_, mail)] = topic.published
    assert "Subject" not in mail


def test_w9_a_mail_that_sns_refuses_is_sent_again_under_same_id() -> None:
    topic = Topic()
    topic.down = True
    world = failing(topic)
    world.pass_by("1s")
    topic.down = False
    world.pass_by("1m")
    [(_, mail)] = topic.published
    [answer] = [run for run in world.ports.runs.runs("workflow", "demo.flights.clean", 10, None).items if run.attempt]
    assert json.loads(mail["Message"])["events"][0]["id"] == answer.run_id
