"""The key of an installation: what it encrypts, who may use it, and what its policy must allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from ministack.core import iam_evaluator
from moto import mock_aws

from infra import key_checks, key_policy
from infra.local.permissions import Need, needs
from infra.place import Place
from infra.stack import DeployError
from tests.support import permission_tour, roles
from tests.support.permissions import Watch, watched

from .conftest import of_type
from .resolve import PSEUDO, Resolver

KEY = roles.OWN_KEY
ENCRYPTED = ("AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Logs::LogGroup")
PLACE = Place("sluice-prod", PSEUDO["AWS::AccountId"], PSEUDO["AWS::Region"])
DEFAULT = [key_policy.statements(PLACE)[0]]  # the policy that KMS gives a new key


def resolved(template: dict[str, Any], kind: str, key: str, encrypts: str = "true") -> dict[str, str]:
    """The properties of the resources of a type as JSON, by their names."""
    resolve = Resolver(template, {}, KmsKeyArn=key, KmsKeyEncrypts=encrypts)
    names = ("SSESpecification", "SqsManagedSseEnabled", "KmsMasterKeyId", "BucketEncryption", "KmsKeyId")
    return {
        name: json.dumps({each: resolve(properties[each]) for each in names if each in properties}, default=str)
        for name, properties in of_type(template["Resources"], kind)
    }


@pytest.mark.parametrize("kind", ENCRYPTED)
def test_one_parameter_encrypts_everything_that_is_stored(template: dict[str, Any], kind: str) -> None:
    with_key = resolved(template, kind, KEY)
    assert with_key
    # Whoever deletes a key deletes what it encrypts, and nobody may delete an audit record.
    assert [name for name, text in with_key.items() if KEY not in text] == (["AuditLog"] if "S3" in kind else [])


@pytest.mark.parametrize("kind", ENCRYPTED)
def test_the_roles_may_use_the_key_before_it_encrypts(template: dict[str, Any], kind: str) -> None:
    assert KEY not in "".join(resolved(template, kind, KEY, encrypts="false").values())
    assert Resolver(template, {}, KmsKeyArn=KEY, KmsKeyEncrypts="false").holds("KeyIsGiven")
    for name in roles.LAMBDAS:
        [of_key] = [each for each in template["Resources"][f"{name}Role"]["Properties"]["Policies"]
                    if "KmsKeyArn" in json.dumps(each)]  # fmt: skip
        assert of_key["Fn::If"][0] == "KeyIsGiven"


@pytest.mark.parametrize("kind", ENCRYPTED)
def test_without_a_key_nothing_uses_one_that_is_billed(template: dict[str, Any], kind: str) -> None:
    for text in resolved(template, kind, "").values():
        assert "kms" not in text.lower().replace("kmsmasterkeyid", "").replace("kmskeyid", "")
        assert '"SSEEnabled": true' not in text


def test_a_bucket_with_a_key_asks_kms_once_for_many_objects(template: dict[str, Any]) -> None:
    buckets = resolved(template, "AWS::S3::Bucket", KEY)
    assert all('"BucketKeyEnabled": true' in buckets[name] for name in ("LakeBucket", "ControlBucket"))


@pytest.fixture(scope="module")
def toured() -> Watch:
    with watched() as watch:
        permission_tour.play()
    return watch


def test_a_call_on_what_is_encrypted_needs_the_key() -> None:
    table = roles.PLACE.arn("dynamodb", "table/JobsTable")
    via = (("kms:ViaService", "dynamodb.eu-west-1.amazonaws.com"),)
    assert needs("dynamodb", "GetItem", {"TableName": "JobsTable"}, roles.PLACE) == [
        Need("dynamodb:GetItem", table),
        Need("kms:Decrypt", KEY, via),
    ]
    sent = needs("sqs", "SendMessage", {"QueueUrl": "https://sqs.example/HintsQueue"}, roles.PLACE)
    assert [need.action for need in sent] == ["sqs:SendMessage", "kms:GenerateDataKey", "kms:Decrypt"]
    put = needs("s3", "PutObject", {"Bucket": roles.CONTROL, "Key": "context/a"}, roles.PLACE)
    assert [need.action for need in put] == ["s3:PutObject", "kms:GenerateDataKey"]
    elsewhere = needs("s3", "GetObject", {"Bucket": "watched-bucket", "Key": "a"}, roles.PLACE)
    assert [need.action for need in elsewhere] == ["s3:GetObject"]


def test_each_lambda_uses_the_key_for_its_own_calls_alone(toured: Watch) -> None:
    asked = {name: {need for need in toured.of(name) if need.action.startswith("kms:")} for name in roles.policies()}
    assert all(asked.values())
    for name, policy in roles.policies().items():
        assert all(policy.allows(need) for need in asked[name])
        for action in ("kms:Decrypt", "kms:GenerateDataKey"):
            assert not policy.allows(Need(action, KEY))
            assert not policy.allows(Need(action, KEY, (("kms:ViaService", "ssm.eu-west-1.amazonaws.com"),)))
        assert not policy.allows(Need("kms:Decrypt", KEY.replace("0000", "1111"), next(iter(asked[name])).keys))
    assert not roles.policies()["tick"].allows(
        Need("kms:GenerateDataKey", KEY, (("kms:ViaService", "s3.eu-west-1.amazonaws.com"),))
    )


# -- the policy of the key -----------------------------------------------------------------------------------------


def let_in(statements: list[dict[str, Any]], who: str, action: str, **keys: str) -> bool:
    """Whether IAM lets a service of AWS use the key."""
    context = iam_evaluator.EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=KEY,
        region="eu-west-1",
        service_context={name.lower(): value for name, value in keys.items()},
    )
    found = iam_evaluator.evaluate_resource_policy({"Statement": statements}, context, service=who)
    return bool(found.decision == "Allow")


@pytest.mark.parametrize("group", ["/aws/lambda/sluice-prod-run-state", "/aws/apigateway/sluice-prod"])
def test_the_printed_statements_let_logs_encrypt_own_groups(group: str) -> None:
    statements = key_policy.statements(PLACE)
    arn = f"arn:aws:logs:eu-west-1:123456789012:log-group:{group}"
    for action in key_policy.LOGS:
        assert let_in(statements, "logs.eu-west-1.amazonaws.com", action, **{key_policy.LOG_CONTEXT: arn})
    other = arn.replace("sluice-prod", "orders")
    assert not let_in(statements, "logs.eu-west-1.amazonaws.com", "kms:Decrypt", **{key_policy.LOG_CONTEXT: other})


@pytest.mark.parametrize("service", ["s3.amazonaws.com", "events.amazonaws.com"])
def test_the_printed_statements_let_events_reach_the_queues(service: str) -> None:
    for action in key_policy.SENDERS:
        assert let_in(key_policy.statements(PLACE), service, action)
        assert not let_in(DEFAULT, service, action)
    assert not let_in(key_policy.statements(PLACE), service, "kms:ScheduleKeyDeletion")


def test_the_printed_statements_are_enough() -> None:
    assert key_policy.missing({"Statement": key_policy.statements(PLACE)}, PLACE) == []


@pytest.mark.parametrize("number", range(3))
def test_a_missing_statement_is_named(number: int) -> None:
    statements = key_policy.statements(PLACE)
    del statements[number]
    lacking = key_policy.missing({"Statement": statements}, PLACE)
    words = ("arn:aws:iam::123456789012:root", "logs.eu-west-1.amazonaws.com", "s3.amazonaws.com")
    assert f"kms:Decrypt for {words[number]}" in lacking
    assert not any(word in text for text in lacking for word in words if word != words[number])


@pytest.mark.parametrize(
    "statement",
    [
        {"Principal": "*", "Action": "kms:*"},
        {"Principal": {"Service": "*", "AWS": "123456789012"}, "Action": ["kms:*"]},
        {
            "Principal": {"Service": ["logs.eu-west-1.amazonaws.com", "s3.amazonaws.com", "events.amazonaws.com"],
                          "AWS": "arn:aws:iam::123456789012:root"},
            "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
        },
        {"Principal": "*", "Action": "kms:*", "Condition": {"StringEquals": {"aws:SourceAccount": ["123456789012"]}}},
    ],
)  # fmt: skip
def test_a_policy_in_other_words_is_enough(statement: dict[str, Any]) -> None:
    assert key_policy.missing({"Statement": {"Effect": "Allow", "Resource": "*", **statement}}, PLACE) == []


@pytest.mark.parametrize(
    ("groups", "enough"),
    [
        ("arn:aws:logs:eu-west-1:123456789012:*", True),
        (["arn:aws:logs:eu-west-1:123456789012:log-group:/aws/*"], True),
        (["arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/*"], False),
        (["arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/other-*"], False),
    ],
)
def test_a_policy_about_logs_covers_all_groups_of_the_stack(groups: Any, enough: bool) -> None:
    root, logs, events = key_policy.statements(PLACE)
    logs = {**logs, "Condition": {"ArnLike": {key_policy.LOG_CONTEXT: groups}}}
    lacking = key_policy.missing({"Statement": [root, logs, events]}, PLACE)
    assert (lacking == []) is enough


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Deny", "Principal": "*", "Action": "kms:*"},
        {"Effect": "Allow", "Principal": {"AWS": "210987654321"}, "Action": "kms:*"},
        {"Effect": "Allow", "Principal": {"Service": "logs.us-east-1.amazonaws.com"}, "Action": "kms:*"},
        {"Effect": "Allow", "Principal": "*", "Action": "kms:Describe*"},
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "kms:*",
            "Condition": {"StringEquals": {"aws:SourceAccount": "210987654321"}},
        },
    ],
)
def test_a_policy_about_something_else_is_not_enough(statement: dict[str, Any]) -> None:
    assert "kms:Decrypt for logs.eu-west-1.amazonaws.com" in key_policy.missing({"Statement": [statement]}, PLACE)


@pytest.mark.parametrize(
    ("deny", "counts"),
    [
        ({"Principal": "*", "Action": "kms:*"}, True),
        ({"Principal": {"AWS": "*"}, "Action": "kms:Decrypt"}, True),
        ({"Principal": "*", "Action": "kms:*", "Condition": {"StringNotEquals": {"aws:SourceAccount": "1"}}}, False),
        ({"Principal": "*", "Action": "kms:ScheduleKeyDeletion"}, False),
        ({"Principal": "*", "NotAction": "kms:*"}, False),
        ({"NotPrincipal": {"AWS": "arn:aws:iam::123456789012:role/a"}, "Action": "kms:*"}, False),
    ],
)
def test_a_statement_that_denies_all_leaves_the_key_unusable(deny: dict[str, Any], counts: bool) -> None:
    policy = {"Statement": [*key_policy.statements(PLACE), {"Effect": "Deny", "Resource": "*", **deny}]}
    assert ("kms:Decrypt for s3.amazonaws.com" in key_policy.missing(policy, PLACE)) is counts


@pytest.mark.parametrize(
    "more",
    [
        {"Principal": {"Service": "s3.amazonaws.com"}, "NotAction": ["kms:ScheduleKeyDeletion"]},
        {"NotPrincipal": {"Service": "ec2.amazonaws.com"}, "Action": "kms:*"},
        {
            "Principal": {"Service": "s3.amazonaws.com"},
            "Action": "kms:*",
            "Condition": {"StringNotEquals": {"aws:SourceAccount": "999999999999"}},
        },
    ],
)
def test_forms_that_are_not_known_count_as_met(more: dict[str, Any]) -> None:
    root, logs, _ = key_policy.statements(PLACE)
    lacking = key_policy.missing({"Statement": [root, logs, {"Effect": "Allow", "Resource": "*", **more}]}, PLACE)
    assert not [each for each in lacking if "s3.amazonaws.com" in each]


@pytest.mark.parametrize(("logged", "enough"), [(True, False), (False, True)])
def test_the_log_of_the_api_counts_only_if_it_is_made(logged: bool, enough: bool) -> None:
    root, logs, events = key_policy.statements(PLACE)
    of_lambdas = {**logs, "Condition": {"ArnLike": {key_policy.LOG_CONTEXT: key_policy.log_groups(PLACE)[0]}}}
    assert (key_policy.missing({"Statement": [root, of_lambdas, events]}, PLACE, logged) == []) is enough


# -- before a deployment -------------------------------------------------------------------------------------------


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.Session("x", "x", region_name="eu-west-1")


def made(session: boto3.Session, statements: list[dict[str, Any]] | None = None, **more: Any) -> str:
    policy = {"Version": "2012-10-17", "Statement": key_policy.statements(PLACE) if statements is None else statements}
    return str(session.client("kms").create_key(Policy=json.dumps(policy), **more)["KeyMetadata"]["Arn"])


def check(session: Any, key: str, present: str = "") -> None:
    place = Place("sluice-prod", "123456789012", session.region_name)
    key_checks.check(session, place, {"KmsKeyArn": key}, {"KmsKeyArn": present})


def test_a_usable_key_is_accepted(session: boto3.Session) -> None:
    key = made(session)
    check(session, key)
    check(session, key, key)
    check(session, "")


def test_a_key_without_the_statements_is_refused_with_what_to_do(session: boto3.Session) -> None:
    with pytest.raises(DeployError, match=r"kms:GenerateDataKey for s3.amazonaws.com.*python -m infra.key_policy prod"):
        check(session, made(session, DEFAULT))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("disable_key", "expected an enabled key.*state Disabled.*aws kms enable-key"),
        ("schedule_key_deletion", "state PendingDeletion.*aws kms cancel-key-deletion"),
    ],
)
def test_a_key_that_is_not_enabled_is_refused(session: boto3.Session, change: str, said: str) -> None:
    key = made(session)
    getattr(session.client("kms"), change)(KeyId=key.rpartition("/")[2])
    with pytest.raises(DeployError, match=f"{said}.*Nothing was changed"):
        check(session, key)


def test_a_key_of_another_kind_is_refused(session: boto3.Session) -> None:
    with pytest.raises(DeployError, match="expected a symmetric key.*RSA_2048"):
        check(session, made(session, KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY"))


def test_a_key_that_does_not_exist_is_refused(session: boto3.Session) -> None:
    with pytest.raises(DeployError, match="expected a key that exists, got arn:aws:kms:eu-west-1"):
        check(session, "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000")


def test_a_key_of_another_region_is_refused_without_a_call() -> None:
    session = boto3.Session("x", "x", region_name="eu-central-1")
    with pytest.raises(
        DeployError, match="expected a key of the region of the stack, eu-central-1, got one of eu-west-1"
    ):
        check(session, KEY)


def test_a_key_of_another_account_is_refused_without_a_call() -> None:
    session = boto3.Session("x", "x", region_name="eu-west-1")
    with pytest.raises(DeployError, match="of the account of the stack, 123456789012, got one of 210987654321"):
        check(session, KEY.replace("123456789012", "210987654321"))


@pytest.mark.parametrize("key", ["", KEY.replace("0000", "1111")])
def test_a_stack_never_loses_its_key(session: boto3.Session, key: str) -> None:
    with pytest.raises(DeployError, match=f"expected {KEY}, the present key, got .*could no longer read"):
        check(session, key, KEY)


def test_without_the_right_to_read_the_key_a_deployment_goes_on(session: boto3.Session) -> None:
    class Forbidden:
        def describe_key(self, **asked: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "DescribeKey")

    class Limited:
        region_name = "eu-west-1"

        def client(self, service: str) -> Any:
            return Forbidden()

    check(Limited(), KEY)


def test_the_command_prints_the_policy_of_a_stage(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("infra.preflight.session", lambda: session)
    assert key_policy.main(["prod"]) == 0
    assert json.loads(capsys.readouterr().out)["Statement"] == key_policy.statements(PLACE)
    assert key_policy.main([]) == 2


def test_the_page_shows_the_command() -> None:
    page = Path(__file__).parents[2] / "docs" / "deployment.md"
    assert "python -m infra.key_policy" in page.read_text()
