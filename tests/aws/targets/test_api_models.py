"""What the SDK's models say about a call of AWS's API (W22)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.aws import models
from chalicelib.aws.targets import api_models
from chalicelib.core.errors import SluiceError
from infra.local import service_model

TOPIC = "arn:aws:sns:us-east-1:000000000000:days"


def check(service: str, action: str, **given: Any) -> None:
    api_models.check({"service": service, "action": action, "input": given})


def request(service: str, action: str, **given: Any) -> dict[str, Any]:
    return api_models.request_of(api_models.operation_of(service, action), given, "t1")


@pytest.mark.parametrize(
    ("service", "action", "given"),
    [
        ("sns", "publish", {"TopicArn": TOPIC, "Message": "day {{correlation.day}}"}),
        ("sns", "Publish", {"TopicArn": TOPIC, "Message": "x", "MessageAttributes": "{{properties.attributes}}"}),
        ("ecs", "run_task", {"taskDefinition": "a", "count": "{{properties.count}}"}),
        ("kinesis", "put_record", {"StreamName": "a", "Data": {"base64": "aGk="}, "PartitionKey": "{{run_id}}"}),
        ("ssm", "send_command", {"DocumentName": "a", "AlarmConfiguration": {"Alarms": "{{properties.alarms}}"}}),
        ("logs", "start_query", {"startTime": "{{logical_start_time}}", "endTime": 1, "queryString": "b"}),
        ("cloudtrail", "lookup_events", {"StartTime": "{{nominal_time}}", "EndTime": "{{correlation.day}}T00:00:00Z"}),
        ("rds", "create_db_instance", {"DBInstanceIdentifier": "a", "DBInstanceClass": "b", "Engine": "c"}),
        ("s3", "put_object", {"Bucket": "a", "Key": "b", "Body": "c"}),
        ("sts", "get_caller_identity", {}),
        ("bedrock-runtime", "converse", {"modelId": "m", "additionalModelRequestFields": {"any": [1]}}),
    ],
)  # fmt: skip
def test_w22_a_call_that_aws_knows_is_accepted(service: str, action: str, given: dict[str, Any]) -> None:
    check(service, action, **given)


@pytest.mark.parametrize(
    ("service", "action", "given", "field", "said", "hint"),
    [
        ("snss", "publish", {}, "service", "expected a service of AWS", "did you mean 'sns'?"),
        ("sfn", "start_execution", {}, "service", "expected a service of AWS", "did you mean 'stepfunctions'?"),
        ("sns", "publsh", {}, "action", "expected an action of sns, got 'publsh'", "did you mean 'publish'?"),
        ("sns", "Publsh", {}, "action", "expected an action of sns", "did you mean 'Publish'?"),
        ("sns", "zzzzzzzz", {}, "action", "expected an action of sns", "https://docs.aws.amazon.com/"),
        ("lambda", "invoke", {}, "action", "without a stream", "use a target of type lambda"),
        ("s3", "get_object", {}, "action", "without a stream", "let a function or a job"),
        ("sns", "publish", {"TopicArn": TOPIC}, "input.Message", "expected a value, got nothing", "add the field"),
        ("sns", "publish", {"Message": "", "topicArn": ""}, "input.topicArn", "unknown field", "mean 'TopicArn'?"),
        ("sns", "publish", {"Message": 5}, "input.Message", "expected a text, got 5", "put it in quotes"),
        ("ecs", "run_task", {"taskDefinition": "a", "count": "1"}, "input.count", "expected a whole number", "digits"),
        ("ecs", "run_task", {"taskDefinition": "a", "count": True}, "input.count", "expected a whole number", "digits"),
        ("ecs", "run_task", {"taskDefinition": "a", "count": "n{{attempt}}"}, "input.count", "a whole number", "alone"),
        ("ecs", "run_task", {"taskDefinition": "a", "tags": [{"Key": "a"}]}, "input.tags.0.Key", "unknown", "'key'"),
        ("ecs", "run_task", {"taskDefinition": "a", "tags": {"key": "a"}}, "input.tags", "expected a list", "brackets"),
        ("kinesis", "put_record", {"Data": {"base64": "?"}, "PartitionKey": "a"}, "input.Data", "a text, or", "base64"),
        ("sts", "get_caller_identity", {"a": 1}, "input.a", "unknown field 'a'", "the members are none"),
        ("bedrock-runtime", "converse", {"modelId": "m", "messages": [{"role": "user", "content": [{}]}]},
         "input.messages.0.content.0", "exactly one of", "others"),
        ("cloudwatch", "put_metric_data", {"Namespace": "a", "MetricData": [{"MetricName": "a", "Timestamp": "soon"}]},
         "input.MetricData.0.Timestamp", "expected an instant, got 'soon'", "RFC 3339"),
    ],
)  # fmt: skip
def test_w22_a_call_that_aws_would_refuse_is_refused(
    service: str, action: str, given: dict[str, Any], field: str, said: str, hint: str
) -> None:
    with pytest.raises(SluiceError) as refused:
        check(service, action, **given)
    assert refused.value.field == field
    assert said in refused.value.message
    assert hint in (refused.value.hint or "")


PARTS = ["", ".", "..", "/", "../b", "a/.."]


@pytest.mark.parametrize("key", PARTS)
def test_w22_a_value_that_shortens_the_path_is_refused(key: str) -> None:
    """Without its key, DeleteObject is DeleteBucket."""
    for ask in (check, request):
        with pytest.raises(SluiceError) as refused:
            ask("s3", "delete_object", Bucket="lake", Key=key)
        assert refused.value.field == "input.Key"
        assert "a part of the call's path" in refused.value.message
    with pytest.raises(SluiceError):
        check("s3", "delete_object", Bucket="", Key="a")
    assert request("s3", "delete_object", Bucket="lake", Key="a//b..c/")["Key"] == "a//b..c/"
    assert request("sns", "publish", Message=key)["Message"] == key, "it is in no path"


@pytest.mark.parametrize(
    ("given", "read"),
    [("03", 3), ("-7", -7), ("0" * 18 + "5", 5), ("1" * 20, None), ("1.0", None), ("[" * 100_000, None), ("", None)],
)  # fmt: skip
def test_w22_a_text_of_digits_is_a_whole_number(given: str, read: int | None) -> None:
    if read is not None:
        assert request("ecs", "run_task", taskDefinition="a", count=given)["count"] == read
        return
    with pytest.raises(SluiceError) as refused:
        request("ecs", "run_task", taskDefinition="a", count=given, enableECSManagedTags=given)
    assert [each.field for each in refused.value.each] == ["input.count", "input.enableECSManagedTags"]


@pytest.mark.parametrize(
    ("given", "read"), [("03", 3), ("1.5e3", 1500.0), ("NaN", None), ("1e999", None), ("1_0", None)]
)
def test_w22_a_text_is_a_number_with_a_fraction(given: str, read: float | None) -> None:
    metric = {"MetricName": "a", "Value": given}
    if read is not None:
        [sent] = request("cloudwatch", "put_metric_data", Namespace="a", MetricData=[metric])["MetricData"]
        assert sent["Value"] == read
        return
    with pytest.raises(SluiceError):
        request("cloudwatch", "put_metric_data", Namespace="a", MetricData=[metric])


def test_w22_a_credential_that_aws_does_not_mark_is_no_result() -> None:
    role = api_models.operation_of("sts", "assume_role")
    keys = {"AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c"}
    answer = {
        "Credentials": keys,
        "PackedPolicySize": 3,
        "AssumedRoleUser": {"Arn": "arn:aws:sts::1:x", "AssumedRoleId": "r"},
    }
    shown = api_models.answer_of(role, answer)
    assert shown == {name: {} if name == "Credentials" else value for name, value in answer.items()}
    secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a"
    database = {"DBInstanceIdentifier": "a", "MasterUserSecret": {"SecretArn": secret}}
    found = api_models.answer_of(api_models.operation_of("rds", "create_db_instance"), {"DBInstance": database})
    assert found == {"DBInstance": database}, "the name of a secret is none"


def test_w22_a_model_is_read_once_by_calls_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    models._model.cache_clear()
    read: list[str] = []
    real = models.Loader.load_service_model

    def slow(self: Any, service: str, *rest: Any) -> Any:
        read.append(service)
        time.sleep(0.02)
        return real(self, service, *rest)

    monkeypatch.setattr(models.Loader, "load_service_model", slow)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(models.model, ["sts"] * 4))
    assert read == ["sts"]


def test_w22_every_problem_of_an_input_is_told_at_once() -> None:
    with pytest.raises(SluiceError) as refused:
        check("ssm", "put_parameter", Nam="a", Value=1)
    assert [each.field for each in refused.value.each] == ["input.Nam", "input.Value"]


def test_w22_values_of_the_context_become_what_aws_takes() -> None:
    given = request("sns", "publish", TopicArn=TOPIC, Message={"b": 1, "a": [True]}, Subject=7)
    assert given == {"TopicArn": TOPIC, "Message": '{"a": [true], "b": 1}', "Subject": "7"}
    task = request("ecs", "run_task", taskDefinition="a", count="2", enableECSManagedTags="true")
    assert (task["count"], task["enableECSManagedTags"]) == (2, True)
    record = request("kinesis", "put_record", StreamName="a", Data={"rows": 2}, PartitionKey="k")
    assert record["Data"] == b'{"rows": 2}'
    metric = {"MetricName": "a", "Timestamp": "2026-03-02T13:00:00+01:00", "Value": "1.5"}
    [sent] = request("cloudwatch", "put_metric_data", Namespace="a", MetricData=[metric])["MetricData"]
    assert (sent["Timestamp"], sent["Value"]) == (datetime(2026, 3, 2, 12, tzinfo=UTC), 1.5)
    assert service_model.problems("ecs", "RunTask", task) == []


def test_w22_a_token_is_filled_in_where_aws_has_one() -> None:
    assert request("ecs", "run_task", taskDefinition="a")["clientToken"] == "t1"
    assert request("ecs", "run_task", taskDefinition="a", clientToken="own")["clientToken"] == "own"
    assert "clientToken" not in request("sns", "publish", Message="a")
    # the model requires it: the input needs none
    check("accessanalyzer", "create_analyzer", analyzerName="a", type="ACCOUNT")


def test_w22_no_error_shows_a_value_of_the_context() -> None:
    with pytest.raises(SluiceError) as refused:
        request("ecs", "run_task", taskDefinition="a", count="hunter2", tags="hunter2", overrides=["hunter2"])
    assert {each.field for each in refused.value.each} == {"input.count", "input.tags", "input.overrides"}
    assert "hunter2" not in str(refused.value.to_dict())


def test_w22_an_answer_is_json_without_what_is_sensitive() -> None:
    secret = api_models.operation_of("secretsmanager", "get_secret_value")
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    answer = {"Name": "a", "SecretString": "s", "SecretBinary": b"s", "CreatedDate": at, "ResponseMetadata": {}}
    assert api_models.answer_of(secret, answer) == {"Name": "a", "CreatedDate": "2026-03-02T12:00:00.000Z"}
    records = api_models.operation_of("kinesis", "get_records")
    assert api_models.answer_of(records, {"Records": [{"Data": b"hi"}]}) == {"Records": [{"Data": "aGk="}]}
    assert api_models.answer_of(api_models.operation_of("sqs", "delete_message"), {"ResponseMetadata": {}}) is None


def test_w22_the_names_of_services_are_those_of_botocore() -> None:
    known = models.services()
    assert {"sns", "stepfunctions", "bedrock-runtime", "ec2"} <= set(known)
    assert len(known) > 350
    assert not [name for name in known if "." in name or "_" in name]
