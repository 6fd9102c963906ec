"""What the policy of a KMS key must allow, so that the key can encrypt a stack (parameter `KmsKeyArn`).

    python -m infra.key_policy prod

The command prints the statements for a stage in the account and region of the environment. Roles of the stack, and who
deploys it, get their permissions from IAM policies, as the statement that KMS gives each new key allows. AWS's own
services have no such policies, so the key must name them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra import preflight
from infra.place import Place, place_of
from infra.stack import DeployError

LOG_CONTEXT = "kms:EncryptionContext:aws:logs:arn"
# Logs calls KMS itself; the others check and generate the data keys of a queue to which they send.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
LOGS = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey")
SENDERS = ("kms:Decrypt", "kms:GenerateDataKey")
# The operators of conditions, and the parts of a statement that denies, that are understood.
_OPERATORS = ("StringEquals", "StringLike", "ArnEquals", "ArnLike")
_PARTS = {"Sid", "Effect", "Principal", "Action", "Resource"}


def _root(place: Place) -> str:
    return f"arn:{place.partition}:iam::{place.account}:root"


def log_groups(place: Place) -> tuple[str, str]:
    """Patterns of the log groups of the stack: those of the Lambdas, and that of the API."""
    group = f"arn:{place.partition}:logs:{place.region}:{place.account}:log-group"
    return f"{group}:/aws/lambda/{place.stack}-*", f"{group}:/aws/apigateway/{place.stack}"


def statements(place: Place) -> list[dict[str, Any]]:
    """The statements that the policy of a key needs for a stack."""
    return [
        {
            "Sid": "LetIamPoliciesAllow",
            "Effect": "Allow",
            "Principal": {"AWS": _root(place)},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Sid": "LetLogsEncrypt",
            "Effect": "Allow",
            "Principal": {"Service": _logs(place)},
            "Action": list(LOGS),
            "Resource": "*",
            "Condition": {"ArnLike": {LOG_CONTEXT: list(log_groups(place))}},
        },
        # Which bucket and which rules may send is in the policies of the queues.
        {
            "Sid": "LetEventsReachQueues",
            "Effect": "Allow",
            "Principal": {"Service": ["s3.amazonaws.com", "events.amazonaws.com"]},
            "Action": list(SENDERS),
            "Resource": "*",
        },
    ]


def missing(policy: Mapping[str, Any], place: Place, api_log: bool = True) -> list[str]:
    """What a policy does not allow, in words; the group of the API counts with ``api_log`` alone.

    A statement that allows, and whose forms are not known, counts as met. One that denies counts only if it is without
    a condition, so that it is certain to deny."""
    every = _listed(policy.get("Statement", ()))
    allowing = [each for each in every if each.get("Effect") == "Allow"]
    certain = [each for each in every if _PARTS.issuperset(each) and each.get("Resource") == "*"]
    denying = [each for each in certain if each.get("Effect") == "Deny"]
    return [
        f"{action} for {who}"
        for kind, who, actions, contexts in _needed(place, api_log)
        for action in actions
        if any(_covers(each, kind, who, action, "", place) for each in denying)
        or not all(any(_covers(each, kind, who, action, context, place) for each in allowing) for context in contexts)
    ]


def _needed(place: Place, api_log: bool) -> Iterator[tuple[str, str, Sequence[str], Sequence[str]]]:
    """The kind and name of each principal, its actions, and the logs about which it asks."""
    yield "AWS", _root(place), SENDERS, ("",)
    yield (
        "Service",
        _logs(place),
        LOGS,
        [group.replace("*", "check") for group in log_groups(place)[: 2 if api_log else 1]],
    )
    for service in ("s3.amazonaws.com", "events.amazonaws.com"):
        yield "Service", service, SENDERS, ("",)


def _covers(statement: Mapping[str, Any], kind: str, who: str, action: str, context: str, place: Place) -> bool:
    principal = statement.get("Principal", {})
    named = ["*"] if principal in ("*", {"AWS": "*"}) else _listed(principal.get(kind, ()))
    if kind == "AWS" and place.account in named:
        named = [*named, who]
    return (
        ("*" in named or who in named or "NotPrincipal" in statement)
        and any(fnmatchcase(action.lower(), pattern.lower()) for pattern in _listed(statement.get("Action", "*")))
        and all(
            _holds(operator, name, _listed(values), context, place)
            for operator, conditions in statement.get("Condition", {}).items()
            for name, values in conditions.items()
        )
    )


def _holds(operator: str, name: str, values: Sequence[str], context: str, place: Place) -> bool:
    if operator not in _OPERATORS:
        return True
    if name == LOG_CONTEXT:
        return any(fnmatchcase(context, pattern) for pattern in values)
    return name.lower() != "aws:sourceaccount" or place.account in values


def _logs(place: Place) -> str:
    return f"logs.{place.region}.{place.suffix}"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def main(argv: list[str] | None = None) -> int:
    """Command line. Exit code 1 with one message without an account."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m infra.key_policy STAGE", file=sys.stderr)
        return 2
    try:
        place = place_of(preflight.session(), f"sluice-{arguments[0]}")
    except (DeployError, BotoCoreError, ClientError) as error:
        print(f"key policy: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"Version": "2012-10-17", "Statement": statements(place)}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
