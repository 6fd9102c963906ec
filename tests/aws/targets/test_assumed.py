"""Credentials of target roles: when STS is called, what clients sign with, what refusals mean (O10)."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError, ConnectTimeoutError

from chalicelib import wiring
from chalicelib.aws.targets import assumed
from chalicelib.aws.targets.assumed import NEEDED, RENEWED_BEFORE, SESSION, AssumedRoles, external_id, session_name
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.registry import AwsTargets
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.runs.target_roles import MAX_ASSUME, TargetRole
from tests.support.clock import HandClock
from tests.support.fakes import FakeSts
from tests.support.world import settings

ROLE = TargetRole("arn:aws:iam::123456789012:role/sluice-target-demo", "demo")
NAMES = {"catalog_table": "c", "jobs_table": "j", "runs_table": "r"}


class Sent(BaseException):
    """The request has been signed. Not an Exception, so that botocore does not try it again."""


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sts(clock: HandClock) -> FakeSts:
    return FakeSts(clock)


@pytest.fixture
def roles(clock: HandClock, sts: FakeSts) -> AssumedRoles:
    return AssumedRoles(lambda: sts, wiring.client_as, clock.now, "prod")


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def signer(client: Any, service: str) -> str:
    """The access key that signs the next request of a client."""
    seen: list[str] = []

    def stop(request: AWSRequest, **_: Any) -> None:
        head = request.headers["Authorization"]
        seen.append(head.decode() if isinstance(head, bytes) else head)
        raise Sent

    client.meta.events.register_first(f"before-send.{service}", stop)
    with pytest.raises(Sent):
        client.send_message(QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/q", MessageBody="x")
    client.meta.events.unregister(f"before-send.{service}", stop)
    return seen[0].partition("Credential=")[2].partition("/")[0]


def test_o10_a_client_signs_with_the_present_credentials(roles: AssumedRoles, clock: HandClock, sts: FakeSts) -> None:
    assert roles.renew(ROLE) is None
    client = roles.maker(ROLE)("sqs")
    assert signer(client, "sqs") == "key0"
    clock.wait_until(clock.now() + SESSION - RENEWED_BEFORE)
    assert (roles.renew(ROLE), len(sts.assumed)) == (None, 1)
    clock.wait_until(clock.now() + 1)
    assert (roles.renew(ROLE), len(sts.assumed)) == (None, 2)
    assert signer(client, "sqs") == "key1"


def test_o10_a_client_of_a_role_never_signs_as_the_lambda(roles: AssumedRoles, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of-the-lambda")
    other = TargetRole(ROLE.arn, "other")
    assert (roles.renew(ROLE), roles.renew(other)) == (None, None)
    assert [signer(roles.maker(each)("sqs"), "sqs") for each in (ROLE, other)] == ["key0", "key1"]


def test_o10_without_credentials_a_client_sends_nothing(roles: AssumedRoles) -> None:
    client = roles.maker(ROLE)("sqs")
    with pytest.raises(KeyError):
        client.send_message(QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/q", MessageBody="x")


@pytest.mark.parametrize(
    ("code", "denied", "words"),
    [
        ("AccessDenied", True, "Sluice may not assume the target role of namespace demo (AccessDenied)"),
        ("ValidationError", True, "(ValidationError)"),
        ("RegionDisabledException", True, "(RegionDisabledException)"),
        ("Throttling", False, "STS refused the target role of namespace demo for now: Throttling"),
        ("ThrottlingException", False, "for now: ThrottlingException"),
        ("ServiceUnavailable", False, "for now: ServiceUnavailable"),
        ("ExpiredToken", False, "for now: ExpiredToken"),
    ],
)
def test_o10_a_refusal_of_sts_says_whether_a_repeat_may_help(
    roles: AssumedRoles, sts: FakeSts, code: str, denied: bool, words: str
) -> None:
    sts.down = code
    refused = roles.renew(ROLE)
    assert refused is not None
    assert refused.denied is denied
    assert words in refused.why
    assert ROLE.arn not in refused.why
    assert ("external id sluice/prod/demo" in refused.why) is denied


def test_o10_a_refusal_of_sts_names_the_policy_that_decided(clock: HandClock) -> None:
    class Denying:
        def assume_role(self, **_: Any) -> Any:
            text = (
                f"User: arn:aws:sts::1:assumed-role/check/x is not authorized to perform: sts:AssumeRole on {ROLE.arn}"
            )
            message = f"{text} with an explicit deny in a service control policy"
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "AssumeRole")

    refused = AssumedRoles(Denying, wiring.client_as, clock.now, "prod").renew(ROLE)
    assert refused is not None
    assert refused.why.endswith("; the denial comes from the service control policies of the organization")
    assert ROLE.arn not in refused.why


def test_o10_a_call_of_sts_without_an_answer_may_be_repeated(clock: HandClock) -> None:
    class Silent:
        def assume_role(self, **_: Any) -> Any:
            raise ConnectTimeoutError(endpoint_url="https://sts.eu-west-1.amazonaws.com")

    refused = AssumedRoles(Silent, wiring.client_as, clock.now, "prod").renew(ROLE)
    assert refused is not None
    assert not refused.denied
    assert refused.why.startswith("STS gave no answer for the target role of namespace demo: ")


def test_o10_a_refusal_is_remembered_for_five_seconds(roles: AssumedRoles, clock: HandClock, sts: FakeSts) -> None:
    sts.down = "Throttling"
    assert roles.renew(ROLE) == roles.renew(ROLE) is not None
    assert sts.tries == 1
    sts.down = ""
    clock.wait_until(clock.now() + assumed.REMEMBERED)
    assert roles.renew(ROLE) is None


def test_o10_credentials_are_used_to_their_last_five_minutes(
    roles: AssumedRoles, clock: HandClock, sts: FakeSts
) -> None:
    assert roles.renew(ROLE) is None
    sts.down = "ServiceUnavailable"
    clock.wait_until(clock.now() + SESSION - NEEDED)
    assert roles.renew(ROLE) is None
    clock.wait_until(clock.now() + 1)
    assert roles.renew(ROLE) is not None


def test_o10_a_denied_renewal_ends_the_use_of_a_role(roles: AssumedRoles, clock: HandClock, sts: FakeSts) -> None:
    assert roles.renew(ROLE) is None
    sts.denied.add(ROLE.arn)
    clock.wait_until(clock.now() + SESSION - RENEWED_BEFORE + 1)
    for _ in range(2):
        refused = roles.renew(ROLE)
        assert refused is not None
        assert refused.denied


def test_o10_an_adapter_is_built_once_for_each_role(clock: HandClock, sts: FakeSts) -> None:
    made: list[tuple[str, str]] = []

    def make(service: str, **_: Any) -> Any:
        made.append(("own", service))
        return sts

    def make_as(credentials: Any, service: str, **_: Any) -> Any:
        made.append((credentials.get_frozen_credentials().access_key, service))
        return object()

    targets = AwsTargets(Clients(make, clock.now, make_as, "prod"), settings(NAMES))
    other = TargetRole(ROLE.arn, "other")
    for _ in range(2):
        assert targets.assume("sqs", ROLE) is targets.assume("sqs", other) is targets.assume("sns", ROLE) is None
    assert made == [("own", "sts"), ("key0", "sqs"), ("key1", "sqs"), ("key0", "sns")]
    assert targets.of("sqs", ROLE) is targets.of("sqs", ROLE)
    assert targets.of("sqs", ROLE) is not targets.of("sqs", other)
    assert targets.of("sqs") not in (targets.of("sqs", ROLE), targets.of("sqs", other))


def test_o10_names_of_sessions_fit_what_sts_accepts() -> None:
    assert session_name("sales-eu") == "sluice-sales-eu"
    assert len(session_name("n" * 63)) == 64
    assert external_id("prod", "sales-eu") == "sluice/prod/sales-eu"


def test_o10_a_call_of_sts_ends_within_the_time_kept_for_it() -> None:
    call = assumed.CALL
    tries = call["retries"]["total_max_attempts"]
    assert tries * (call["connect_timeout"] + call["read_timeout"]) * SECOND + SECOND <= MAX_ASSUME


def test_the_fake_of_sts_refuses_as_botocore_does() -> None:
    fake = FakeSts(HandClock())
    fake.denied.add(ROLE.arn)
    with pytest.raises(ClientError) as failure:
        fake.assume_role(RoleArn=ROLE.arn, DurationSeconds=SESSION // SECOND)
    assert failure.value.response["Error"]["Code"] == "AccessDenied"
    assert SESSION == 60 * MINUTE
