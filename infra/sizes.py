"""Whether the lists in parameters fit: AWS limits a role's policies, a Lambda's environment and a rule's pattern.

CloudFormation reports such a limit only in the middle of a deployment, which it then rolls back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.place import Place
from infra.resolver import Resolver
from infra.stack import DeployError, Step

# All inline policies of a role together; IAM does not count white space. Nobody can raise it.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
POLICIES = 10_240
# All variables of a function as one JSON text, as Lambda's own error measures them. Nobody can raise it.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT = 4_096
# The pattern of a rule. AWS raises the quota of an account up to 4,096 on request.
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
PATTERN = 2_048
_SHOWN = 3

# ARNs of resources that CloudFormation names.
_ARNS = {
    "AWS::DynamoDB::Table": "dynamodb:{place}:table/{name}",
    "AWS::SQS::Queue": "sqs:{place}:{name}",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::Logs::LogGroup": "logs:{place}:log-group:{name}:*",
}
_NAMED_BY = ("BucketName", "LogGroupName", "FunctionName")


@dataclass(frozen=True)
class Size:
    """The size of one thing and its limit, which AWS may have raised for the account if it is ``adjustable``."""

    what: str
    used: int
    limit: int
    adjustable: bool = False


def check(
    template: Mapping[str, Any], parameters: Mapping[str, str], place: Place, report: Callable[[Step], None]
) -> None:
    """Raise `DeployError` for the first thing that exceeds its limit, with the parameters that make it large. One whose
    limit AWS may have raised is reported."""
    for size in sizes(template, parameters, place):
        if size.used <= size.limit:
            continue
        causes = _causes(template, parameters, place, size)
        largest = ", ".join(f"{name} ({characters:,} of them)" for name, characters in causes[:_SHOWN])
        sentence = (
            f"expected at most {size.limit:,} characters in {size.what}, got {size.used:,}: {largest}. Name fewer "
            f"entries there, or shorter ones. "
        )
        if not size.adjustable:
            raise DeployError(
                f"{sentence}A list of targets may end an entry with * for all names that begin alike. Or deploy a "
                f"second installation, and move namespaces to it (docs/export.md). Nothing was changed."
            )
        quota = "Or ask AWS for a larger quota (Service Quotas, EventBridge, Event pattern size)."
        report(Step(size.what, "WARNING", f"{sentence}{quota} Without it the deployment is rolled back."))


def sizes(template: Mapping[str, Any], parameters: Mapping[str, str], place: Place) -> list[Size]:
    """The sizes of all policies, environments and patterns with these parameters. Names that CloudFormation makes up
    count with their greatest length."""
    resolve = _resolver(template, parameters, place)
    resources = template["Resources"]
    shared = template.get("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    found: list[Size] = []
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::IAM::Role" if _exists(resource, resolve):
                used = sum(len(_dense(each)) for each in _documents(name, resources, resolve))
                found.append(Size(f"the policies of {name}", used, POLICIES))
            case "AWS::Serverless::Function":
                variables = resolve({**shared, **properties.get("Environment", {}).get("Variables", {})})
                used = len(json.dumps(variables, separators=(",", ":")).encode())
                found.append(Size(f"the environment of the Lambda {name}", used, ENVIRONMENT))
                events = (event.get("Properties", {}) for event in properties.get("Events", {}).values())
                found += [_pattern(name, resolve(event["Pattern"])) for event in events if "Pattern" in event]
            case "AWS::Events::Rule" if "EventPattern" in properties and _exists(resource, resolve):
                found.append(_pattern(name, resolve(properties["EventPattern"])))
    return found


def _pattern(name: str, pattern: Any) -> Size:
    used = len(json.dumps(pattern, separators=(",", ":")))
    return Size(f"an event pattern of {name}", used, PATTERN, adjustable=True)


def _documents(role: str, resources: Mapping[str, Any], resolve: Resolver) -> Iterator[Any]:
    """The documents of a role's own policies, and of the policies that other resources attach to it."""
    for policy in resolve(resources[role]["Properties"].get("Policies", [])):
        yield policy["PolicyDocument"]
    for resource in resources.values():
        attached = resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]
        if attached and _exists(resource, resolve):
            yield resolve(resource["Properties"]["PolicyDocument"])


def _dense(document: Any) -> str:
    return re.sub(r"\s", "", json.dumps(document))


def _exists(resource: Mapping[str, Any], resolve: Resolver) -> bool:
    return "Condition" not in resource or resolve.holds(resource["Condition"])


def _causes(
    template: Mapping[str, Any], parameters: Mapping[str, str], place: Place, size: Size
) -> list[tuple[str, int]]:
    """The given parameters that make this thing larger than their defaults would, and by how much; the largest
    first."""
    saved: dict[str, int] = {}
    for name in parameters:
        without = {given: value for given, value in parameters.items() if given != name}
        smaller = next((each.used for each in sizes(template, without, place) if each.what == size.what), 0)
        saved[name] = size.used - smaller
    return sorted(((name, by) for name, by in saved.items() if by > 0), key=lambda each: -each[1])


def _resolver(template: Mapping[str, Any], parameters: Mapping[str, str], place: Place) -> Resolver:
    pseudo = {
        "AWS::Partition": place.partition,
        "AWS::Region": place.region,
        "AWS::AccountId": place.account,
        "AWS::StackName": place.stack,
        "AWS::URLSuffix": place.suffix,
    }
    resolve = Resolver(template, parameters, pseudo, lambda name: made(name))
    made = _made(template["Resources"], place, resolve)
    return resolve


def _made(resources: Mapping[str, Any], place: Place, resolve: Resolver) -> Callable[[str], str]:
    """A function that returns references and attributes of resources, as long as those that CloudFormation makes."""

    def value(wanted: str) -> str:
        logical_id, _, attribute = wanted.partition(".")
        resource = resources.get(logical_id, {"Type": ""})
        given = next((resource["Properties"][key] for key in _NAMED_BY if key in resource.get("Properties", {})), None)
        name = str(resolve(given)) if given else f"{place.stack}-{logical_id}-{'X' * 13}"
        if attribute == "ApplicationId":
            return "0" * 16
        if attribute.endswith("Arn"):
            form = _ARNS.get(resource["Type"], "service:{place}:{name}")
            arn = form.format(place=f"{place.region}:{place.account}", account=place.account, name=name)
            return f"arn:{place.partition}:{arn}" + ("/stream/2026-01-01T00:00:00.000" if "Stream" in attribute else "")
        if resource["Type"] == "AWS::SQS::Queue":
            return f"https://sqs.{place.region}.{place.suffix}/{place.account}/{name}"
        return name

    return value
