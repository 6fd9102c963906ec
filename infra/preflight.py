"""Checks before a stack is changed: whether the account and the region support the requested parameters.

A check raises an error with expected, got, and what to do. What does not stop a deployment is reported as a step with
the status WARNING. A check for which the credentials lack a permission is skipped; CloudFormation then reports
the problem.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError

from infra import support
from infra.stack import DeployError, Step

# Lambda keeps this part of an account's concurrency for functions without a reservation.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
UNRESERVED = 100
# The minimum of DynamoDB's warm throughput.
MIN_WARM_WRITES = 4000
# The queues, and how many Lambdas each of their parameters bounds: `objects` and `custom` have the same.
QUEUES = {"Objects": 2, "Check": 1, "Burst": 1}
OTHERS = 4  # one each of `api`, `tick`, `run_state` and `lake`
INVOKED_BY_A_POLLER = 10  # at once, by a provisioned poller of SQS
RESERVED = {
    "TickReservedConcurrency": "tick",
    "CheckReservedConcurrency": "check",
    "BurstReservedConcurrency": "burst",
    "ApiConcurrency": "api",
}
# The lists of targets whose defaults are of the stack's account.
TARGETS = tuple(
    f"Target{kind}Arns" for kind in ("Queue", "Topic", "Function", "Bus", "StateMachine", "Secret", "Parameter")
)
_QUOTA = "ask AWS for a higher quota (Service Quotas, AWS Lambda, Concurrent executions)"
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_UNKNOWN = {"ResourceNotFoundException", "NoSuchEntity", "NotFound", "NotFoundException", "ValidationException"}


def check(
    session: Any,
    stack: str,
    given: Mapping[str, str],
    wanted: Mapping[str, str],
    present: Mapping[str, str],
    report: Callable[[Step], None] = lambda step: None,
) -> None:
    """Raise `DeployError` for the first parameter that AWS would refuse, before anything changes.

    ``given`` are the parameters of this deployment, ``wanted`` all parameters after it, ``present`` those of the stack
    now (empty if it is new).
    """
    _check_warm_tables(wanted, present)
    _check_shards(wanted, present)
    _check_pollers(wanted)
    _check_queues(wanted)
    if wanted.get("ApiBaseUrl"):
        return  # an emulator has no such limits
    _check_concurrency(session, stack, wanted, report)
    if not wanted.get("EmrApplicationId"):
        _check_region(session)
    _check_existing(session, given)


def check_callers(wanted: Mapping[str, str], account: str) -> None:
    """Raise `DeployError` for administrators of accounts whose requests API Gateway will refuse, and for the own
    account among the callers: there a policy of the signer suffices, and a statement could allow more."""
    listed = wanted.get("CallerAccounts", "").split(",")
    if account in listed:
        raise DeployError(
            f"CallerAccounts: expected other accounts, got {account}, the account of the stack. Its members call the "
            f"API by their own policies; leave it out."
        )
    callers = {account, *listed}
    named = [arn for arn in wanted.get("Administrators", "").split(",") if arn]
    if refused := [arn for arn in named if not callers.issuperset(arn.split(":")[4:5])]:
        raise DeployError(
            f"Administrators: expected users and roles of account {account} or of CallerAccounts, got "
            f"{', '.join(refused)}. API Gateway would refuse their requests; add their accounts to CallerAccounts."
        )


def warn_of_accounts(wanted: Mapping[str, str], account: str, report: Callable[[Step], None]) -> None:
    """Report lists of targets that name all accounts beside other entries. The default of a list means the account of
    the stack only while it is the only entry."""
    for name in TARGETS:
        entries = [entry.strip() for entry in wanted.get(name, "").split(",")]
        for entry in entries if len(entries) > 1 else ():
            fields = entry.split(":")
            if fields[4:5] == ["*"]:
                own = ":".join([*fields[:4], account, *fields[5:]])
                why = f"{entry} is of every account, as it has other entries beside it. For your account alone: {own}"
                report(Step(name, "WARNING", why))


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


def warn(
    given: Mapping[str, str],
    defaults: Mapping[str, str],
    present: Mapping[str, str],
    today: date,
    report: Callable[[Step], None],
) -> None:
    """Report the parameters of a stack that are behind the defaults, and a release whose support ends."""
    kept = {name: value for name, value in present.items() if name not in given}
    for name, value, default in support.behind(kept, defaults):
        report(Step(name, "WARNING", f"the stack keeps {value}, a former default. Take the new one: {name}={default}"))
    wanted = {**defaults, **present, **given}
    label = support.labels().get(wanted.get("EmrReleaseLabel", ""))
    if label is not None and not wanted.get("EmrApplicationId"):
        for sentence in support.ending([label], support.labels(), today):
            report(Step("EmrReleaseLabel", "WARNING", sentence))


def _check_pollers(wanted: Mapping[str, str]) -> None:
    least, most = int(wanted.get("BurstMinimumPollers", 0)), int(wanted.get("BurstMaximumPollers", 0))
    if least == 1:
        raise DeployError("BurstMinimumPollers: expected 0, or 2 and more, got 1. A queue has at least two pollers.")
    if least > most:
        raise DeployError(
            f"BurstMinimumPollers: expected BurstMaximumPollers ({most}) or less, got {least}. Lower it, or raise "
            f"BurstMaximumPollers."
        )


def _at_once(wanted: Mapping[str, str], name: str) -> tuple[str, int]:
    """The parameter that bounds how many Lambdas a queue invokes at once, in words, and the number."""
    if name == "Burst" and int(wanted.get("BurstMinimumPollers", 0)):
        return "ten times BurstMaximumPollers", INVOKED_BY_A_POLLER * int(wanted["BurstMaximumPollers"])
    return f"{name}Concurrency", int(wanted.get(f"{name}Concurrency", 0))


def _check_queues(wanted: Mapping[str, str]) -> None:
    """A reserved queue may not invoke more Lambdas than are reserved."""
    for name in ("Check", "Burst"):
        (bound, maximum), reserved = _at_once(wanted, name), int(wanted.get(f"{name}ReservedConcurrency", 0))
        if 0 < reserved < maximum:
            raise DeployError(
                f"{name}ReservedConcurrency: expected {bound} ({maximum}) or more, got {reserved}. The queue "
                f"would invoke more Lambdas than allowed, and each refused invocation counts as a try of its message. "
                f"Lower {bound.removeprefix('ten times ')}, or reserve more."
            )


def _check_concurrency(
    session: Any, stack: str, wanted: Mapping[str, str], report: Callable[[Step], None]
) -> None:  # fmt: skip
    """Check that the reservations leave 100 of the account's concurrency. Warn if it is too small for the queues."""
    functions = session.client("lambda")
    limit = account_limit(functions)
    if limit is None:
        return
    total = int(limit["ConcurrentExecutions"])
    held = sum(_reserved(functions, f"{stack}-{handler}") for handler in RESERVED.values())
    free = int(limit["UnreservedConcurrentExecutions"]) + held
    if shortage := _shortage(total, free, session.region_name, wanted):
        report(Step("concurrent Lambdas", "WARNING", shortage))
    reservations = {name: int(wanted.get(name, 0)) for name in RESERVED}
    if not any(reservations.values()):
        return
    if free - sum(reservations.values()) < UNRESERVED:
        listed = ", ".join(f"{name}={number}" for name, number in reservations.items() if number)
        room = max(0, free - UNRESERVED)
        raise DeployError(
            f"{listed}: expected reservations of at most {room} together, got {sum(reservations.values())}. "
            f"The account has {total} concurrent Lambdas in {session.region_name}, of which {free} can be reserved "
            f"or shared, and Lambda keeps {UNRESERVED} for functions without a reservation. Set them to 0, or {_QUOTA}."
        )


def account_limit(functions: Any) -> Mapping[str, Any] | None:
    """The limits of the account's Lambdas in the region of a client; None if the credentials may not read them."""
    found: Mapping[str, Any] | None = _permitted(lambda: functions.get_account_settings()["AccountLimit"])
    return found


def _shortage(total: int, free: int, region: str, wanted: Mapping[str, str]) -> str:
    """What to do if the queues may invoke more Lambdas than the account has, without those that functions of others
    reserve; empty if they may not."""
    maxima = {name: _at_once(wanted, name)[1] for name in QUEUES}
    needed = OTHERS + sum(QUEUES[name] * maximum for name, maximum in maxima.items())
    if needed <= free:
        return ""
    room = max(2, (free - OTHERS) // sum(QUEUES.values()))
    lower = " ".join(f"{name}Concurrency={min(maximum, room)}" for name, maximum in maxima.items())
    others = f", of which functions outside this stack reserve {total - free}" if free < total else ""
    pollers = " BurstMinimumPollers=0" if int(wanted.get("BurstMinimumPollers", 0)) else ""
    return (
        f"the account has {total} concurrent Lambdas in {region}{others}, and the queues of this stack may invoke "
        f"{needed}. Beyond that Lambda refuses invocations, and each refusal counts as a try of its message: "
        f"some then end in the dead letters. Before a burst, {_QUOTA}; until then deploy with {lower}{pollers}"
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
