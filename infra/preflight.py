"""Checks before a stack is changed: whether the account and the region support the requested parameters.

Each check makes one AWS call and raises an error with expected, got, and what to do. A check for which the credentials
lack a permission is skipped; CloudFormation then reports the problem.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError

from infra.stack import DeployError

# Lambda keeps this part of an account's concurrency for functions without a reservation.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
UNRESERVED = 100
# The minimum of DynamoDB's warm throughput.
MIN_WARM_WRITES = 4000
RESERVED = {
    "TickReservedConcurrency": "tick",
    "CheckReservedConcurrency": "check",
    "BurstReservedConcurrency": "burst",
    "ApiConcurrency": "api",
}
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_UNKNOWN = {"ResourceNotFoundException", "NoSuchEntity", "NotFound", "NotFoundException", "ValidationException"}


def check(
    session: Any, stack: str, given: Mapping[str, str], wanted: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Raise `DeployError` for the first parameter that AWS would refuse, before anything changes.

    ``given`` are the parameters of this deployment, ``wanted`` all parameters after it, ``present`` those of the stack
    now (empty if it is new).
    """
    _check_warm_tables(wanted, present)
    _check_shards(wanted, present)
    _check_concurrency(session, stack, wanted)
    if wanted.get("ApiBaseUrl"):
        return  # an emulator has no such limits
    if not wanted.get("EmrApplicationId"):
        _check_region(session)
    _check_existing(session, given)


def check_callers(wanted: Mapping[str, str], account: str) -> None:
    """Raise `DeployError` for administrators of accounts whose requests API Gateway will refuse."""
    callers = {account, *wanted.get("CallerAccounts", "").split(",")}
    named = [arn for arn in wanted.get("Administrators", "").split(",") if arn]
    if refused := [arn for arn in named if not callers.issuperset(arn.split(":")[4:5])]:
        raise DeployError(
            f"Administrators: expected users and roles of account {account} or of CallerAccounts, got "
            f"{', '.join(refused)}. API Gateway would refuse their requests; add their accounts to CallerAccounts."
        )


def _check_warm_tables(wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name, minimum in (("WarmWriteUnits", MIN_WARM_WRITES), ("WarmReadUnits", 12_000)):
        units, before = int(wanted.get(name, 0)), int(present.get(name, 0))
        if 0 < units < minimum:
            raise DeployError(
                f"{name}: expected 0, or {minimum} and more, got {units}. This is the minimum of DynamoDB."
            )
        if 0 < units < before:
            raise DeployError(
                f"{name}: expected {before} or more, the present value, got {units}. DynamoDB never lowers it; "
                f"keep the parameter, which costs nothing more."
            )


def _check_shards(wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name in ("WakeShards", "HistoryShards"):
        shards, before = int(wanted.get(name, 0)), int(present.get(name, 0))
        if 0 < shards < before:
            raise DeployError(
                f"{name}: expected {before} or more, the present value, got {shards}. Rows that are in the other parts "
                f"would not be found; keep the parameter."
            )


def _check_concurrency(session: Any, stack: str, wanted: Mapping[str, str]) -> None:
    """Check the reservations of this stack: 100 of the account's unreserved concurrency must remain."""
    reservations = {name: int(wanted.get(name, 0)) for name in RESERVED}
    for name in ("Check", "Burst"):
        maximum, reserved = int(wanted.get(f"{name}Concurrency", 0)), reservations[f"{name}ReservedConcurrency"]
        if 0 < reserved < maximum:
            raise DeployError(
                f"{name}ReservedConcurrency: expected {name}Concurrency ({maximum}) or more, got {reserved}. The queue "
                f"would invoke more Lambdas than allowed, and each refused invocation counts as a try of its message. "
                f"Lower {name}Concurrency, or reserve more."
            )
    if not any(reservations.values()):
        return
    functions = session.client("lambda")
    limit = _permitted(lambda: functions.get_account_settings()["AccountLimit"])
    if limit is None:
        return
    held = sum(_reserved(functions, f"{stack}-{handler}") for handler in RESERVED.values())
    total, free = int(limit["ConcurrentExecutions"]), int(limit["UnreservedConcurrentExecutions"]) + held
    if free - sum(reservations.values()) < UNRESERVED:
        listed = ", ".join(f"{name}={number}" for name, number in reservations.items() if number)
        room = max(0, free - UNRESERVED)
        raise DeployError(
            f"{listed}: expected reservations of at most {room} together, got {sum(reservations.values())}. "
            f"The account has {total} concurrent Lambdas in {session.region_name}, of which {free} can be reserved "
            f"or shared, and Lambda keeps {UNRESERVED} for functions without a reservation. Set them to 0, or ask "
            f"AWS for a higher quota (Service Quotas, AWS Lambda, Concurrent executions)."
        )


def _reserved(functions: Any, name: str) -> int:
    try:
        return int(functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0))
    except ClientError:
        return 0  # it does not exist yet, or the credentials may not read it


def _check_region(session: Any) -> None:
    """Check that the region has EMR Serverless. boto3's list may be older than the region, so a call decides."""
    region = session.region_name
    if region in session.get_available_regions("emr-serverless", session.get_partition_for_region(region)):
        return
    patience = Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 1})
    try:
        session.client("emr-serverless", config=patience).list_applications(maxResults=1)
    except EndpointConnectionError:
        raise DeployError(
            f"expected a region with EMR Serverless, got {region}. Set AWS_REGION to another one: "
            f"https://docs.aws.amazon.com/general/latest/gr/emr-serverless.html"
        ) from None
    except ClientError:
        return  # the endpoint answered


def _check_existing(session: Any, given: Mapping[str, str]) -> None:
    """Check that the objects in parameters exist. `emr_checks` checks EMR applications and roles."""
    for name, what, request in _named(session, given):
        try:
            request()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _UNKNOWN or code.startswith(("InvalidParameter", "NotFound")):
                raise DeployError(
                    f"{name}: expected {what} that exists in {session.region_name}, got {given[name]}. "
                    f"AWS says: {error.response['Error'].get('Message', code)}. Correct it, or create it first."
                ) from None
            if code not in _FORBIDDEN:
                raise


def _named(session: Any, given: Mapping[str, str]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    if topic := given.get("AlarmTopicArn"):
        sns = session.client("sns")
        yield "AlarmTopicArn", "a topic", lambda: sns.get_topic_attributes(TopicArn=topic)
    for key in filter(None, given.get("TargetKeyArns", "").split(",")):
        if key.split(":")[3] == session.region_name:
            yield "TargetKeyArns", "a KMS key", partial(session.client("kms").describe_key, KeyId=key)


def _permitted(call: Callable[[], Any]) -> Any:
    """The answer of a call; None if the credentials lack the permission."""
    try:
        return call()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code", "") in _FORBIDDEN:
            return None
        raise


def session() -> boto3.Session:
    """The session of the environment. Raises `DeployError` without a region."""
    made = boto3.Session()
    if made.region_name is None:
        raise DeployError("Expected a region, got none. Set AWS_REGION, or AWS_PROFILE to a profile with a region.")
    return made
