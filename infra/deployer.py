"""The rights that a deployment needs, as an IAM policy and as the table of `docs/permissions.md`.

    python -m infra.deployer > policy.json     # a policy for who deploys; --table writes the table

`deployment_rights.yaml` has the rights for each type of resource, with their source. The rest are the calls of `make
deploy` and `make undeploy` themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra import yaml_tags

_HERE = Path(__file__).parent
PAGE = _HERE.parent / "docs" / "permissions.md"
BEGIN, END = "| resource | rights |\n|---|---|\n", "\n<!-- end of the rights -->"
# What `make deploy` and `make undeploy` call: stack, artifacts, and the checks before a change.
OWN = {
    "the stack": (
        "cloudformation:CreateChangeSet",
        "cloudformation:DeleteChangeSet",
        "cloudformation:DeleteStack",
        "cloudformation:DescribeChangeSet",
        "cloudformation:DescribeStackEvents",
        "cloudformation:DescribeStacks",
        "cloudformation:ExecuteChangeSet",
    ),
    "code and template in S3": (
        "s3:CreateBucket",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutBucketPublicAccessBlock",
        "s3:PutObject",
    ),
    "the removal of a stage": (
        "cloudformation:ListStackResources",
        "dynamodb:ListTables",
        "emr-serverless:StopApplication",
        "s3:DeleteObject",
        "s3:DeleteObjectVersion",
        "s3:ListAllMyBuckets",
        "s3:ListBucketVersions",
    ),
    "checks before a change": (
        "elasticmapreduce:ListReleaseLabels",
        "emr-serverless:GetApplication",
        "emr-serverless:ListApplications",
        "iam:GetRole",
        "kms:DescribeKey",
        "kms:GetKeyPolicy",
        "lambda:GetAccountSettings",
        "lambda:GetFunctionConcurrency",
        "sns:GetTopicAttributes",
    ),
}


# A change set is also authorized on the transforms of its template.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html
RESOURCES = {
    "cloudformation": [
        "arn:*:cloudformation:*:*:stack/sluice-*/*",
        *(f"arn:*:cloudformation:*:aws:transform/{name}" for name in ("LanguageExtensions", "Serverless-2016-10-31")),
    ]
}


def rights() -> Mapping[str, Sequence[str]]:
    """The actions by the type of resource, and by what `make deploy` does itself."""
    of_types = yaml_tags.load((_HERE / "deployment_rights.yaml").read_text())
    return {**{kind.removeprefix("AWS::"): actions for kind, actions in of_types.items()}, **OWN}


def table() -> str:
    rows = (f"| {what} | {', '.join(sorted(actions))} |" for what, actions in rights().items())
    return BEGIN + "\n".join(rows) + END


def policy() -> dict[str, Any]:
    """A policy with all rights, a statement for each service. docs/permissions.md says which resources can be fewer."""
    by_service: dict[str, set[str]] = {}
    for action in (action for actions in rights().values() for action in actions):
        by_service.setdefault(action.partition(":")[0], set()).add(action)
    statements = [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": RESOURCES.get(service, "*")}
        for service, actions in sorted(by_service.items())
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def main(argv: list[str] | None = None) -> int:
    if "--table" in (sys.argv[1:] if argv is None else argv):
        text = PAGE.read_text()
        PAGE.write_text(text[: text.index(BEGIN)] + table() + text[text.index(END) + len(END) :])
    else:
        print(json.dumps(policy(), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
