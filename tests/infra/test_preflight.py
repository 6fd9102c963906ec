"""Requests that are refused before a stack is changed, with their messages; botocore's Stubber simulates AWS."""

from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from infra import preflight
from infra.stack import DeployError, Step

STACK = "sluice-dev"


class Session:
    """A session whose clients give the set answers, and no others."""

    region_name = "eu-west-1"

    def __init__(self, **clients: Any) -> None:
        self.clients = clients
        self._real = boto3.Session("x", "x", region_name=self.region_name)

    def client(self, service: str, **options: Any) -> Any:
        return self.clients[service.replace("-", "_")]

    def get_available_regions(self, service: str, partition: str) -> list[str]:
        return [name for name in self._real.get_available_regions(service, partition) if name != "eu-west-9"]

    def get_partition_for_region(self, region: str) -> str:
        return "aws"


def stubbed(service: str) -> tuple[Any, Stubber]:
    client = boto3.client(service, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
    stub = Stubber(client)
    stub.activate()
    return client, stub


def account(concurrency: int, unreserved: int, **held: int) -> Session:
    client, stub = stubbed("lambda")
    limit = {"ConcurrentExecutions": concurrency, "UnreservedConcurrentExecutions": unreserved}
    stub.add_response("get_account_settings", {"AccountLimit": limit})
    for handler in ("tick", "check", "burst", "api"):
        name = {"FunctionName": f"{STACK}-{handler}"}
        if handler in held:
            stub.add_response("get_function_concurrency", {"ReservedConcurrentExecutions": held[handler]}, name)
        else:
            stub.add_client_error("get_function_concurrency", "ResourceNotFoundException", expected_params=name)
    return Session(**{"lambda": client})


def check(session: Any, given: Mapping[str, str], present: Mapping[str, str] | None = None) -> list[Step]:
    """The steps that a check has reported."""
    steps: list[Step] = []
    concurrency = {"ObjectsConcurrency": "10", "CheckConcurrency": "20", "BurstConcurrency": "10"}
    preflight.check(session, STACK, given, {**concurrency, **(present or {}), **given}, present or {}, steps.append)
    return steps


def test_reservations_that_leave_a_hundred_are_accepted() -> None:
    reserved = {"TickReservedConcurrency": "2", "CheckReservedConcurrency": "20", "BurstReservedConcurrency": "10"}
    check(account(1000, 1000), {**reserved, "ApiConcurrency": "50"})
    check(account(1000, 900), {"ApiConcurrency": "800"})


@pytest.mark.parametrize(
    ("concurrency", "unreserved", "most"), [(10, 10, 0), (1000, 110, 10)], ids=["new account", "others reserve"]
)
def test_reservations_beyond_the_account_are_refused(concurrency: int, unreserved: int, most: int) -> None:
    with pytest.raises(DeployError, match=rf"at most {most} together, got 12.*keeps 100.*Set them to 0, or ask AWS"):
        check(account(concurrency, unreserved), {"TickReservedConcurrency": "2", "ApiConcurrency": "10"})


def test_reservations_of_the_stack_itself_count_as_free() -> None:
    check(account(1000, 110, api=40), {"ApiConcurrency": "50"})
    with pytest.raises(DeployError, match="at most 50 together, got 51"):
        check(account(1000, 110, api=40), {"ApiConcurrency": "51"})


@pytest.mark.parametrize("callers", ["", "210987654321"])
def test_administrators_whom_api_gateway_refuses_are_refused(callers: str) -> None:
    wanted = {"Administrators": "arn:aws:iam::123456789012:role/a,arn:aws:iam::333333333333:role/b"}
    with pytest.raises(DeployError, match="got arn:aws:iam::333333333333:role/b. .* add their accounts to CallerAcc"):
        preflight.check_callers({**wanted, "CallerAccounts": callers}, "123456789012")
    preflight.check_callers({**wanted, "CallerAccounts": "210987654321,333333333333"}, "123456789012")
    preflight.check_callers({"Administrators": ""}, "123456789012")


def test_the_own_account_is_no_caller_of_another_account() -> None:
    with pytest.raises(DeployError, match="CallerAccounts: expected other accounts, got 123456789012"):
        preflight.check_callers({"CallerAccounts": "210987654321,123456789012"}, "123456789012")


DEFAULT_QUEUES = "arn:*:sqs:*:*:sluice-target-*"
ORDERS = "arn:aws:sqs:eu-west-1:123456789012:orders"


@pytest.mark.parametrize(
    ("queues", "warned"),
    [
        (DEFAULT_QUEUES, False),
        (ORDERS, False),
        (f"{DEFAULT_QUEUES},{ORDERS}", True),
        (f"{ORDERS}, {DEFAULT_QUEUES}", True),
        (f"arn:*:sqs:*:123456789012:sluice-target-*,{ORDERS}", False),
    ],
)
def test_a_default_beside_other_targets_is_reported(queues: str, warned: bool) -> None:
    """Alone it means the stack's account, in a list every account."""
    steps: list[Step] = []
    preflight.warn_of_accounts({"TargetQueueArns": queues}, "123456789012", steps.append)
    assert [(step.resource, step.status) for step in steps] == [("TargetQueueArns", "WARNING")] * warned
    assert all(step.reason.endswith(": arn:*:sqs:*:123456789012:sluice-target-*") for step in steps)


def test_the_lists_of_targets_are_those_with_defaults(template: dict[str, Any]) -> None:
    defaults = {name: str(each.get("Default", "")) for name, each in template["Parameters"].items()}
    assert {name for name, value in defaults.items() if "sluice-target" in value} == set(preflight.TARGETS)


def test_a_stack_without_reservations_needs_no_free_concurrency() -> None:
    assert check(account(1000, 100), {"Stage": "dev"}) == []


@pytest.mark.parametrize(
    ("concurrency", "needed", "lower"),
    [
        (10, 54, "ObjectsConcurrency=2 CheckConcurrency=2 BurstConcurrency=2"),
        (50, 54, "ObjectsConcurrency=10 CheckConcurrency=11 BurstConcurrency=10"),
    ],
)
def test_o7_an_account_with_few_lambdas_is_told_what_to_do(concurrency: int, needed: int, lower: str) -> None:
    """The deployment goes on: a new account has only 10, and AWS raises the number by itself or on request."""
    [step] = check(account(concurrency, concurrency), {})
    assert (step.resource, step.status) == ("concurrent Lambdas", "WARNING")
    assert f"has {concurrency} concurrent Lambdas in eu-west-1" in step.reason
    assert f"may invoke {needed}" in step.reason
    assert "ask AWS for a higher quota (Service Quotas, AWS Lambda, Concurrent executions)" in step.reason
    assert step.reason.endswith(f"deploy with {lower}")
    assert check(account(needed, needed), {}) == []


def test_o7_what_other_functions_reserve_is_not_counted() -> None:
    [step] = check(account(1000, 40, tick=10), {})
    assert "has 1000 concurrent Lambdas in eu-west-1, of which functions outside this stack reserve 950" in step.reason
    assert check(account(1000, 44, tick=10), {}) == []


def test_provisioned_pollers_count_as_what_they_may_invoke() -> None:
    [step] = check(account(100, 100), {"BurstMinimumPollers": "2", "BurstMaximumPollers": "10"})
    assert "may invoke 144" in step.reason
    assert step.reason.endswith("CheckConcurrency=20 BurstConcurrency=24 BurstMinimumPollers=0")


def test_without_the_right_to_read_quotas_a_deployment_goes_on() -> None:
    client, stub = stubbed("lambda")
    stub.add_client_error("get_account_settings", "AccessDeniedException")
    check(Session(**{"lambda": client}), {"ApiConcurrency": "51"})


@pytest.mark.parametrize(
    ("least", "most", "said"), [(1, 10, "expected 0, or 2 and more, got 1"), (12, 10, r"\(10\) or")]
)
def test_pollers_that_lambda_would_refuse_are_refused(least: int, most: int, said: str) -> None:
    with pytest.raises(DeployError, match=f"BurstMinimumPollers: .*{said}"):
        check(Session(), {"BurstMinimumPollers": str(least), "BurstMaximumPollers": str(most)})
    check(account(1000, 1000), {"BurstMinimumPollers": "0", "BurstMaximumPollers": str(most)})
    check(account(1000, 1000), {"BurstMinimumPollers": "10", "BurstMaximumPollers": "10"})


def test_a_reservation_holds_all_that_provisioned_pollers_invoke() -> None:
    """They have no maximum of concurrency, so BurstConcurrency says nothing then."""
    pollers = {"BurstMinimumPollers": "2", "BurstMaximumPollers": "5"}
    with pytest.raises(DeployError, match=r"expected ten times BurstMaximumPollers \(50\) or more, got 49"):
        check(Session(), {**pollers, "BurstReservedConcurrency": "49"})
    check(account(1000, 1000), {**pollers, "BurstReservedConcurrency": "50"})


@pytest.mark.parametrize(("name", "maximum", "reserved"), [("Check", 20, 19), ("Burst", 10, 9)])
def test_a_reservation_below_its_queue_concurrency_is_refused(name: str, maximum: int, reserved: int) -> None:
    sentence = rf"{name}ReservedConcurrency: expected {name}Concurrency \({maximum}\) or more, got {reserved}"
    with pytest.raises(DeployError, match=sentence):
        check(Session(), {f"{name}ReservedConcurrency": str(reserved)})


@pytest.mark.parametrize(
    ("asked", "before", "sentence"),
    [("3999", "0", "expected 0, or 4000 and more, got 3999"), ("4000", "8000", "expected 8000 or more.*got 4000")],
)
def test_tables_are_not_warmed_below_the_dynamodb_minimum(asked: str, before: str, sentence: str) -> None:
    with pytest.raises(DeployError, match=sentence):
        check(Session(), {"WarmWriteUnits": asked}, {"WarmWriteUnits": before})
    check(account(1000, 1000), {"WarmWriteUnits": "8000"}, {"WarmWriteUnits": "8000"})


@pytest.mark.parametrize("name", ["WakeShards", "HistoryShards"])
def test_shards_only_grow(name: str) -> None:
    check(account(1000, 1000), {name: "16"}, {name: "4"})
    check(account(1000, 1000), {name: "16"}, {name: "16"})
    with pytest.raises(DeployError, match=f"{name}: expected 16 or more, the present value, got 8"):
        check(Session(), {name: "8"}, {name: "16"})


def test_a_key_of_another_region_is_not_looked_up_here() -> None:
    check(account(1000, 1000), {"TargetKeyArns": "arn:aws:kms:us-east-1:123456789012:key/none"})


def test_a_region_without_emr_serverless_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody:
        def list_applications(self, **asked: Any) -> None:
            raise EndpointConnectionError(endpoint_url="https://emr-serverless.eu-west-9.amazonaws.com")

    session = Session(emr_serverless=Nobody(), **account(1000, 1000).clients)
    session.region_name = "eu-west-9"
    with pytest.raises(DeployError, match="expected a region with EMR Serverless, got eu-west-9"):
        check(session, {"Stage": "dev"})
    check(session, {"ApiBaseUrl": "http://localhost"})


@pytest.mark.parametrize(
    ("service", "call", "code", "parameter", "value"),
    [
        ("sns", "get_topic_attributes", "NotFound", "AlarmTopicArn", "arn:aws:sns:eu-west-1:1:none"),
        ("kms", "describe_key", "NotFoundException", "TargetKeyArns", "arn:aws:kms:eu-west-1:123456789012:key/none"),
    ],
)
def test_a_resource_named_by_a_parameter_must_exist(
    service: str, call: str, code: str, parameter: str, value: str
) -> None:
    client, stub = stubbed(service)
    stub.add_client_error(call, code, "there is no such thing")
    stub.add_client_error(call, "AccessDenied", "not yours to ask")
    named = {service.replace("-", "_"): client}
    with pytest.raises(
        DeployError, match=f"{parameter}: expected an? .* that exists in eu-west-1, got {value}.*no such"
    ):
        check(Session(**named, **account(1000, 1000).clients), {parameter: value})
    check(Session(**named, **account(1000, 1000).clients), {parameter: value})
