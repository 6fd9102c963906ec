"""The permissions of each Lambda, from the fragments and policies of the template, with all functions resolved.

Chalice's part of the template has no roles, and takes seconds to make, so it is left out.
`tests/infra/test_permissions.py` compares the roles with those of the packaged template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from infra import template, yaml_tags
from infra.local.permissions import Need, Place, Policy
from tests.infra.resolve import PSEUDO, Resolver
from tests.support.fakes import APPLICATION

INFRA = Path(__file__).parents[2] / "infra"
# Handlers by the logical ids that Chalice gives their functions. `Burst` has the role of `Check`.
LAMBDAS = {
    "APIHandler": "api",
    "Tick": "tick",
    "Objects": "objects",
    "Check": "check",
    "RunState": "run_state",
    "Custom": "custom",
    "Lake": "lake",
    "Lineage": "lineage",
}
# Names of a stack's resources in the tests; further applications and roles, and a bucket that exists already.
LAKE, CONTROL, WATCHED = "lake-bucket", "control", "watched-bucket"
# The KMS key of the stack, with what it encrypts. Then one of targets, with targets that it encrypts.
OWN_KEY = "arn:aws:kms:eu-west-1:123456789012:key/0000"
OWN = (
    *("arn:aws:dynamodb:*:*:table/*", "arn:aws:sqs:*:*:*Queue", "arn:aws:sqs:*:*:*DeadLetters"),
    *(f"arn:aws:s3:::{bucket}/*" for bucket in (LAKE, CONTROL)),
)
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ENCRYPTED = (
    "arn:aws:sqs:eu-west-1:123456789012:sluice-target-x",
    "arn:aws:sns:us-east-1:000000000000:sluice-target-x",
    "arn:aws:states:us-east-1:000000000000:execution:sluice-target-etl:*",
    "arn:aws:secretsmanager:us-east-1:000000000000:secret:sluice-target-x-*",
)
PLACE = Place(
    PSEUDO["AWS::Region"],
    PSEUDO["AWS::AccountId"],
    PSEUDO["AWS::Partition"],
    {**dict.fromkeys(OWN, OWN_KEY), **dict.fromkeys(ENCRYPTED, KEY)},
)
JOB_ROLE = "arn:aws:iam::000000000000:role/job"
LISTED_APPLICATION, LISTED_ROLE = "00listed", "arn:aws:iam::000000000000:role/listed"
TARGET_ROLES = "arn:aws:iam::123456789012:role/sluice-target-*"
LINEAGE_SECRET = "/sluice/lineage"
LINEAGE_FOLDER, LINEAGE_QUEUE = f"{LAKE}/lineage/", "arn:aws:sqs:eu-west-1:123456789012:lineage"
GIVEN = {
    "EmrApplicationId": APPLICATION,
    "EmrApplicationIds": LISTED_APPLICATION,
    "EmrJobRoleArn": JOB_ROLE,
    "EmrRoleArns": LISTED_ROLE,
    "KmsKeyArn": OWN_KEY,
    "TargetKeyArns": KEY,
    "TargetRoleArns": TARGET_ROLES,
    # Of every account, because tests name several. `tests/infra/test_policies.py` has the defaults.
    "TargetQueueArns": "arn:aws:sqs:*:*:sluice-target-*",
    "TargetTopicArns": "arn:aws:sns:*:*:sluice-target-*",
    "TargetFunctionArns": "arn:aws:lambda:*:*:function:sluice-target-*",
    "TargetBusArns": "arn:aws:events:*:*:event-bus/sluice-target-*",
    "TargetStateMachineArns": "arn:aws:states:*:*:stateMachine:sluice-target-*",
    "TargetSecretArns": "arn:aws:secretsmanager:*:*:secret:sluice-target-*",
    "TargetParameterArns": "arn:aws:ssm:*:*:parameter/sluice-target/*",
    "LineageFolder": LINEAGE_FOLDER,
    "LineageQueueArn": LINEAGE_QUEUE,
    "LineageSecret": LINEAGE_SECRET,
    "Tracing": "Active",
    "WatchedBuckets": WATCHED,
}


# Tables and queues of a stack, as tests name them.
OF_STACK = (
    (re.compile(r"table/[^/]*catalog_table"), "table/CatalogTable"),
    (re.compile(r"table/[^/]*jobs_table"), "table/JobsTable"),
    (re.compile(r"table/[^/]*runs_table"), "table/RunsTable"),
    (re.compile(r":hints$"), ":HintsQueue"),
    (re.compile(r":objects$"), ":ObjectsQueue"),
)
_ITS_OWN = re.compile(
    rf"table/(Catalog|Jobs|Runs)Table|:(Hints|Objects)Queue|:::({LAKE}|{CONTROL}|{WATCHED})(/|$)|:key/0000$|\*$"
)


def of_stack(need: Need) -> Need | None:
    """The stack's resource that a test's resource represents; None if the resource belongs only to the test."""
    resource = need.resource
    for pattern, name in OF_STACK:
        resource = pattern.sub(name, resource)
    return replace(need, resource=resource) if _ITS_OWN.search(resource) else None


@cache
def policies() -> Mapping[str, Policy]:
    """The policy of each Lambda, by the name of its handler."""
    fragments = [yaml_tags.load(path.read_text()) for path in sorted((INFRA / "resources").glob("*.yaml"))]
    own = {path.stem: yaml_tags.load(path.read_text()) for path in sorted((INFRA / "policies").glob("*.yaml"))}
    functions = {name: {"Type": "AWS::Serverless::Function", "Properties": {}} for name in (*LAMBDAS, "Burst")}
    # Fragments that extend Chalice's functions and events are merged onto objects that have a type.
    chalice = {"Resources": functions | {"RestAPI": {"Type": "AWS::Serverless::Api", "Properties": {}}}}
    return of_template(template.assemble(chalice, fragments, own))


def of_template(made: dict[str, Any]) -> dict[str, Policy]:
    """The policy of each Lambda in a template."""
    resolve = Resolver(made, _attributes(made["Resources"]), **GIVEN)
    return {
        handler: Policy(_statements(made["Resources"], f"{name}Role", resolve)) for name, handler in LAMBDAS.items()
    }


def _statements(resources: Mapping[str, Any], role: str, resolve: Resolver) -> Iterator[Mapping[str, Any]]:
    documents = [resolve(each) for each in resources[role]["Properties"]["Policies"]]
    for resource in resources.values():
        if resource["Type"] == "AWS::IAM::Policy" and {"Ref": role} in resource["Properties"]["Roles"]:
            documents.append(resolve(resource["Properties"]))
    for document in documents:
        if isinstance(document, dict):  # without the policies that a condition excludes
            yield from document["PolicyDocument"]["Statement"]


def _attributes(resources: Mapping[str, Any]) -> dict[str, str]:
    """ARNs of resources that policies name. A table and a queue have their logical ids as names."""
    buckets = {"LakeBucket": LAKE, "ControlBucket": CONTROL, "AuditLog": "audit"}
    found: dict[str, str] = {}
    for name, resource in resources.items():
        match resource["Type"]:
            case "AWS::DynamoDB::Table":
                found[f"{name}.Arn"] = PLACE.arn("dynamodb", f"table/{name}")
                found[f"{name}.StreamArn"] = PLACE.arn("dynamodb", f"table/{name}/stream/2026-01-01T00:00:00.000")
            case "AWS::SQS::Queue":
                found[f"{name}.Arn"] = PLACE.arn("sqs", name)
            case "AWS::S3::Bucket":
                found[f"{name}.Arn"] = PLACE.bucket(buckets[name])
            case "AWS::Logs::LogGroup":
                found[f"{name}.Arn"] = PLACE.arn("logs", f"log-group:{name}:*")
    return found
