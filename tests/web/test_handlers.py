"""Between the Lambda runtime and the flows: messages as AWS sends them, and malformed messages."""

import json
import time
from typing import Any
from urllib.parse import quote_plus

import pytest

from chalicelib import handlers
from chalicelib.aws import hints
from chalicelib.core.rows.ref import Ref
from chalicelib.ports import Ports
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api

LAKE = "lake-bucket"
ONE = f"{APP}/schedules/nightly"


def record(key: str, event: str = "ObjectCreated:Put", bucket: str = LAKE) -> dict[str, Any]:
    """A record of a notification of S3.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventTime": "2026-03-02T12:00:00.123Z",
        "eventName": event,
        "userIdentity": {"principalId": "AWS:AIDA"},
        "requestParameters": {"sourceIPAddress": "203.0.113.1"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "objects",
            "bucket": {"name": bucket, "ownerIdentity": {"principalId": "A1"}, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": quote_plus(key, safe="/"), "size": 0, "eTag": "d41d8", "sequencer": "0055AED6DCD90281E5"},
        },
    }


def reported(*keys: str, **more: str) -> str:
    """A notification about objects, as the body of a message."""
    return json.dumps({"Records": [record(key, **more) for key in keys]})


def sqs(*bodies: str, queue: str = "objects") -> dict[str, Any]:
    """An event of an SQS event source mapping; the messages are called m0, m1, ..."""
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": "r",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183"},
                "messageAttributes": {},
                "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def failed(answer: dict[str, Any]) -> list[str]:
    assert set(answer) == {"batchItemFailures"}
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def flag(day: str) -> str:
    return f"raw/flights/year=2013/month=1/day={day}/_SUCCESS"


def days(api: Api) -> set[str]:
    return {item["partition"]["day"] for item in api.get(f"{NS}/datasets/flights/partitions")["items"]}


# -- objects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", ["1", "1 of 2", "1+2", "Zürich", "日", "50%", "a=b", "a&b"])
def test_an_object_key_is_decoded_before_it_is_used(api: Api, day: str) -> None:
    answer = handlers.objects(sqs(reported(flag(day))))
    assert failed(answer) == []
    [item] = api.get(f"{NS}/datasets/flights/partitions")["items"]
    assert item["partition"] == {"year": "2013", "month": "1", "day": day}
    assert (item["object"], item["put_at"]) == (flag(day), "2026-03-02T12:00:00.123Z")


def test_a_message_may_have_several_objects_and_a_batch_messages(api: Api) -> None:
    answer = handlers.objects(sqs(reported(flag("1"), flag("2")), reported(flag("3")), reported(flag("3"))))
    assert failed(answer) == []
    assert days(api) == {"1", "2", "3"}


def test_the_test_event_of_s3_is_not_a_failure(api: Api) -> None:
    event = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-03-02T12:00:00.000Z", "Bucket": LAKE}
    body = json.dumps(event | {"RequestId": "5582815E1AEA5ADF", "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3"})
    assert failed(handlers.objects(sqs(body))) == []
    assert days(api) == set()


def test_a_notification_of_no_new_dataset_object_changes_nothing(api: Api) -> None:
    before = api.everything()
    removed = reported(flag("1"), event="ObjectRemoved:Delete")
    elsewhere = reported(flag("1"), bucket="another")
    answer = handlers.objects(
        sqs(
            removed,
            elsewhere,
            reported("raw/other/x"),
            reported("raw/flights/x"),
            reported(flag("1") + "x"),
        )
    )
    assert failed(answer) == []
    # The dataset shows the last objects that came and do not count.
    assert [[item for item in table if '"IGNORED"' not in item] for table in api.everything()] == before


POISON = {
    "not JSON": "poison",
    "nothing": "",
    "a list": "[]",
    "a number": "7",
    "no records": "{}",
    "records that are none": '{"Records": 7}',
    "a record that is none": '{"Records": [7]}',
    "a record without an object": '{"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-03-02"}]}',
    "a record without a time": json.dumps({"Records": [record(flag("1")) | {"eventTime": "noon"}]}),
    "an object without a key": json.dumps(
        {"Records": [record("x") | {"s3": {"bucket": {"name": LAKE}, "object": {"key": None}}}]}
    ),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
def test_a_message_without_a_notification_fails_alone(api: Api, poison: str) -> None:
    answer = handlers.objects(sqs(reported(flag("1")), poison, reported(flag("2"))))
    assert failed(answer) == ["m1"]
    assert days(api) == {"1", "2"}


def sent_again(api: Api) -> list[str]:
    return [each["Body"] for each in api.messages(api.sqs.get_queue_url(QueueName="objects")["QueueUrl"])]


REFUSED = "raw/flights/year=2013/month=*/day=1/_SUCCESS"


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_a_record_that_fails_beside_others_becomes_a_message(api: Api, order: tuple[int, ...]) -> None:
    """It goes to the dead letters alone. The message may come again before that is noticed."""
    api.sqs.create_queue(QueueName="objects")
    records = [record(REFUSED), record(flag("1")), record(flag("2"))]
    message = json.dumps({"Records": [records[number] for number in order]})

    assert failed(handlers.objects(sqs(message, reported(flag("3"))))) == []

    assert days(api) == {"1", "2", "3"}
    [alone] = sent_again(api)
    assert json.loads(alone) == {"Records": [records[0]]}
    assert failed(handlers.objects(sqs(alone))) == ["m0"]
    assert sent_again(api) == []


@pytest.mark.parametrize("junk", [7, {"eventName": "ObjectCreated:Put"}, record("x") | {"eventTime": "noon"}])
def test_a_malformed_record_beside_others_becomes_a_message(api: Api, junk: object) -> None:
    api.sqs.create_queue(QueueName="objects")
    assert failed(handlers.objects(sqs(json.dumps({"Records": [junk, record(flag("1"))]})))) == []
    assert days(api) == {"1"}
    assert [json.loads(each) for each in sent_again(api)] == [{"Records": [junk]}]


def test_a_message_whose_records_all_fail_comes_again_whole(api: Api) -> None:
    """So an outage does not multiply the messages."""
    api.sqs.create_queue(QueueName="objects")
    answer = handlers.objects(sqs(reported(REFUSED, REFUSED), reported(flag("1"))))
    assert (failed(answer), sent_again(api), days(api)) == (["m0"], [], {"1"})


def test_a_record_that_cannot_be_sent_again_fails_its_message(api: Api) -> None:
    answer = handlers.objects(sqs(reported(REFUSED, flag("1"))))  # there is no queue of this name
    assert (failed(answer), days(api)) == (["m0"], {"1"})


# -- hints -----------------------------------------------------------------------------------------------------------


def hint(*refs: Ref, due_in: int = 0) -> str:
    """A hint about a row that is due in this many milliseconds."""
    return hints.encode(refs, ports().clock.now() + due_in)


def accepted_run(api: Api) -> tuple[str, Ref]:
    """A job that needs a check, after its own hint was removed."""
    api.schedule("nightly")
    job_id = api.post(f"{ONE}/run")["job_id"]
    [message] = api.messages(api.hints_url)
    (ref,), _ = hints.decode(message["Body"])
    return job_id, ref


def test_a_due_hint_is_handled(api: Api) -> None:
    job_id, ref = accepted_run(api)
    assert failed(handlers.hints(sqs(hint(ref), queue="hints"))) == []
    assert api.get(f"/v1/runs/{job_id}")["state"] == "SUCCEEDED"


def test_the_last_moment_before_a_due_hint_is_waited_for(api: Api) -> None:
    job_id, ref = accepted_run(api)
    begin = time.monotonic()
    assert failed(handlers.hints(sqs(hint(ref, due_in=300), queue="hints"))) == []
    assert time.monotonic() - begin >= 0.29
    assert api.get(f"/v1/runs/{job_id}")["state"] == "SUCCEEDED"


def test_an_early_hint_is_sent_again(api: Api) -> None:
    job_id, ref = accepted_run(api)
    body = hint(ref, due_in=600_000)

    assert failed(handlers.hints(sqs(body, queue="hints"))) == []

    api.refused(404, "GET", f"/v1/runs/{job_id}")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    counts = api.sqs.get_queue_attributes(QueueUrl=api.hints_url, AttributeNames=names)["Attributes"]
    assert counts == dict(zip(names, ["0", "1"], strict=True))


@pytest.mark.parametrize("keep_warm", ["true", "false"])
def test_a_tick_without_hints_keeps_check_warm(api: Api, monkeypatch: pytest.MonkeyPatch, keep_warm: str) -> None:
    """Its hint has no rows, so it changes nothing."""
    monkeypatch.setenv("SLUICE_KEEP_WARM", keep_warm)
    ports.cache_clear()
    handlers.tick()
    before, _ = api.everything(), api.messages(api.hints_url)
    handlers.tick()
    messages = api.messages(api.hints_url)
    assert [hints.decode(message["Body"]) for message in messages] == [((), 0)] * (keep_warm == "true")
    assert failed(handlers.hints(sqs(*(message["Body"] for message in messages), queue="hints"))) == []
    assert api.everything() == before


def test_a_tick_that_sends_hints_sends_none_without_rows(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KEEP_WARM", "true")
    ports.cache_clear()
    ref = Ref("job", ("demo.flights.clean", "1", "FIRE#x"))

    def emit(at: Ports) -> int:
        at.hints.send([ref], at.clock.now(), at.clock.now())
        return 3

    monkeypatch.setattr("chalicelib.flow.fires.emit.emit_due", emit)
    assert handlers.tick()["emitted"] == 3
    assert [hints.decode(message["Body"])[0] for message in api.messages(api.hints_url)] == [(ref,)]


def test_a_queue_that_is_down_does_not_fail_a_tick(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KEEP_WARM", "true")
    ports.cache_clear()
    api.sqs.delete_queue(QueueUrl=api.hints_url)
    assert not any(handlers.tick().values())


@pytest.mark.parametrize(
    "ref",
    [
        Ref("job", ("demo.flights.nightly", "1", "GATHERING")),
        Ref("run", ("demo.flights.nightly.1.0a1b2c3d4e5f60718293", "001")),
        Ref("limit", ("workflow:demo.flights.clean",)),
        Ref("partition", ("demo.flights", "2013/1/1")),
        Ref("timer", ("demo.flights.nightly",)),
    ],
)
def test_a_hint_about_a_deleted_row_changes_nothing(api: Api, ref: Ref) -> None:
    before = api.everything()
    assert failed(handlers.hints(sqs(hint(ref), queue="hints"))) == []
    assert api.everything() == before


JUNK = [
    pytest.param('{"due": 0, "refs": ["abc"]}'),
    pytest.param('{"due": 0, "refs": [["moon", "x"]]}'),
    "junk",
    "",
    "[]",
    "{}",
    '{"due": 0}',
    '{"due": "noon", "refs": []}',
    '{"due": 0, "refs": [[]]}',
    '{"due": 0, "refs": 7}',
    '{"due": 0, "refs": [["job", "no-such"]]}',
    '{"due": Infinity, "refs": []}',
]


@pytest.mark.parametrize("junk", JUNK)
def test_an_invalid_hint_fails_alone(api: Api, junk: str) -> None:
    job_id, ref = accepted_run(api)
    assert failed(handlers.hints(sqs(junk, hint(ref), queue="hints"))) == ["m0"]
    assert api.get(f"/v1/runs/{job_id}")["state"] == "SUCCEEDED"


def test_one_failing_ref_does_not_block_the_others(api: Api) -> None:
    job_id, ref = accepted_run(api)
    assert failed(handlers.hints(sqs(hint(Ref("job", ("no-such",)), ref), queue="hints"))) == ["m0"]
    assert api.get(f"/v1/runs/{job_id}")["state"] == "SUCCEEDED"


# -- the map of app.py -----------------------------------------------------------------------------------------------


def test_the_queue_lambdas_call_these_handlers(api: Api) -> None:
    invoke = api.client.lambda_.invoke
    assert failed(invoke("objects", sqs("poison", reported(flag("1")))).payload) == ["m0"]
    assert days(api) == {"1"}
    assert failed(invoke("check", sqs("poison", queue="hints")).payload) == ["m0"]
