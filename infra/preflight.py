"""What is looked at before a stack is changed: whether the account and the region can bear what was asked for.

Each check asks AWS once and answers with a sentence: expected, got, what to do. A check for which the credentials have
no right is left out; CloudFormation then finds out by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError

from infra.stack import DeployError

# Lambda keeps so much of an account's concurrency for functions that reserve nothing.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
UNRESERVED = 100
# DynamoDB warms a table for no less.
MIN_WARM_WRITES = 4000
RESERVED = {"TickReservedConcurrency": "tick", "CheckReservedConcurrency": "check", "ApiConcurrency": "api"}
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_UNKNOWN = {"ResourceNotFoundException", "NoSuchEntity", "NotFound", "NotFoundException", "ValidationException"}


def check(
    session: Any, stack: str, given: Mapping[str, str], wanted: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """Raises `DeployError` for the first thing that AWS would refuse, before anything is changed.

    ``given`` are the parameters of this deployment, ``wanted`` all that will hold after it, ``present`` those of the
    stack as it is, none if it is new.
    """
    _check_warm_tables(wanted, present)
    _check_concurrency(session, stack, wanted)
    if wanted.get("ApiBaseUrl"):
        return  # an emulator has what it has
    if not wanted.get("EmrApplicationId"):
        _check_region(session)
    _check_existing(session, given)


def _check_warm_tables(wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name, least in (("WarmWriteUnits", MIN_WARM_WRITES), ("WarmReadUnits", 12_000)):
        asked, before = int(wanted.get(name, 0)), int(present.get(name, 0))
        if 0 < asked < least:
            raise DeployError(
                f"{name}: expected 0, or {least} and more, got {asked}. DynamoDB warms a table for no less."
            )
        if 0 < asked < before:
            raise DeployError(
                f"{name}: expected {before} or more, which the tables have, got {asked}. DynamoDB lowers it never; "
                f"leave the parameter as it is, it costs nothing any more."
            )


def _check_concurrency(session: Any, stack: str, wanted: Mapping[str, str]) -> None:
    """Reservations of this stack come out of what no function has reserved, of which 100 must be left."""
    asked = {name: int(wanted.get(name, 0)) for name in RESERVED}
    most = int(wanted.get("CheckConcurrency", 0))
    if 0 < asked["CheckReservedConcurrency"] < most:
        raise DeployError(
            f"CheckReservedConcurrency: expected CheckConcurrency ({most}) or more, got "
            f"{asked['CheckReservedConcurrency']}. The queue would call more Lambdas than there may be, and "
            f"each call too many is a try of its message. Lower CheckConcurrency, or reserve more."
        )
    if not any(asked.values()):
        return
    functions = session.client("lambda")
    limit = _told(lambda: functions.get_account_settings()["AccountLimit"])
    if limit is None:
        return
    held = sum(_reserved(functions, f"{stack}-{handler}") for handler in RESERVED.values())
    total, free = int(limit["ConcurrentExecutions"]), int(limit["UnreservedConcurrentExecutions"]) + held
    if free - sum(asked.values()) < UNRESERVED:
        told = ", ".join(f"{name}={number}" for name, number in asked.items() if number)
        room = max(0, free - UNRESERVED)
        raise DeployError(
            f"{told}: expected reservations of at most {room} together, got {sum(asked.values())}. The account has "
            f"{total} concurrent Lambdas in {session.region_name}, of which {free} can be reserved or shared, and "
            f"Lambda keeps {UNRESERVED} for functions without a reservation. Set them to 0, or ask AWS for a higher "
            f"quota (Service Quotas, AWS Lambda, Concurrent executions)."
        )


def _reserved(functions: Any, name: str) -> int:
    try:
        return int(functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions", 0))
    except ClientError:
        return 0  # it is not there yet, or may not be looked at


def _check_region(session: Any) -> None:
    """Whether the region has EMR Serverless. boto3's list may be older than the region, so a call decides."""
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
        return  # somebody is there


def _check_existing(session: Any, given: Mapping[str, str]) -> None:
    """What a parameter names must be there. EMR applications and roles are looked at by `emr_checks`."""
    for name, what, look in _named(session, given):
        try:
            look()
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


def _told(ask: Callable[[], Any]) -> Any:
    """An answer; None if these credentials may not ask."""
    try:
        return ask()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code", "") in _FORBIDDEN:
            return None
        raise


def session() -> boto3.Session:
    """The session that the environment names. Raises `DeployError` if it names no region."""
    made = boto3.Session()
    if made.region_name is None:
        raise DeployError("No region is named. Set AWS_REGION, or name a profile with a region in AWS_PROFILE.")
    return made
