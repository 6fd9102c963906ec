"""The CloudFormation template of the job role of one namespace.

    python -m infra.job_role demo --data raw/demo/ --data curated/demo/ > demo-role.yaml

EMR Serverless runs the jobs of the namespace with this role. It reads the scripts, contexts and manifests of the
namespace, reads and writes its data in the lake, and writes its logs and results. It reads and writes nothing of other
namespaces, and no history. The template has three parameters: the outputs `LakeBucket` and `ControlBucket` of the
stack, and its `KmsKeyArn`, if it has one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from chalicelib.core.history import lines
from infra import yaml_tags

HISTORY = (lines.ROOT, lines.LATE_ROOT, "history_compact/", "history_report/")
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_PREFIX = re.compile(r"([\w.=+@-]+/)+", re.ASCII)
_MAX_PREFIXES = 20  # so that the policy stays below IAM's 10,240 characters
_LAKE, _CONTROL = "arn:${AWS::Partition}:s3:::${LakeBucket}", "arn:${AWS::Partition}:s3:::${ControlBucket}"


class BadRole(ValueError):
    """A namespace or a prefix that no role may have. The message says what was expected."""


def template(namespace: str, data: Sequence[str] = (), callers: Sequence[str] = ()) -> dict[str, Any]:
    """The template of the role of a namespace.

    `data` are prefixes of the lake that its jobs read and write; `<namespace>/` if there are none. `callers` are the
    namespaces whose schedules run workflows of this namespace: a context belongs to the namespace of its schedule.
    Raises `BadRole` for a malformed namespace or prefix, for a prefix of the history, and for too many of them.
    """
    prefixes = tuple(dict.fromkeys(data)) or (f"{namespace}/",)
    schedulers = tuple(dict.fromkeys((namespace, *callers)))
    for each in schedulers:
        if not _NAMESPACE.fullmatch(each):
            raise BadRole(f"expected the name of a namespace, got {each!r}")
    for prefix in prefixes:
        if not _PREFIX.fullmatch(prefix) or ".." in prefix.split("/"):
            raise BadRole(f"expected a folder of the lake such as raw/{namespace}/, got {prefix!r}")
        if prefix.startswith(HISTORY):
            raise BadRole(f"expected a folder without history, got {prefix!r}; no job of a namespace writes history")
    if len(prefixes) + len(schedulers) > _MAX_PREFIXES:
        raise BadRole(f"expected at most {_MAX_PREFIXES} folders and namespaces, got {len(prefixes) + len(schedulers)}")
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"The role with which EMR Serverless runs the jobs of namespace {namespace} of Sluice.",
        "Parameters": {
            "LakeBucket": {"Type": "String", "Description": "Output LakeBucket of Sluice's stack."},
            "ControlBucket": {"Type": "String", "Description": "Output ControlBucket of Sluice's stack."},
            "KmsKeyArn": {"Type": "String", "Default": "", "Description": "Parameter KmsKeyArn of Sluice's stack."},
        },
        "Conditions": {"KeyIsGiven": {"Fn::Not": [{"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}]}},
        "Resources": {
            "JobRole": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": _trust(),
                    "Policies": [
                        {
                            "PolicyName": "jobs",
                            "PolicyDocument": {
                                "Version": "2012-10-17",
                                "Statement": _statements(namespace, prefixes, schedulers),
                            },
                        },
                        {"Fn::If": ["KeyIsGiven", _use_of_key(), {"Ref": "AWS::NoValue"}]},
                    ],
                    "Tags": [{"Key": "sluice:namespace", "Value": namespace}],
                },
            }
        },
        "Outputs": {"RoleArn": {"Value": {"Fn::GetAtt": ["JobRole", "Arn"]}}},
    }


def _trust() -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "emr-serverless.amazonaws.com"},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
            }
        ],
    }


def _statements(namespace: str, prefixes: Sequence[str], schedulers: Sequence[str]) -> list[dict[str, Any]]:
    # The name of a context begins with the full name of its schedule: context/<namespace>.<app>.<schedule>.<...>.json
    ours = [f"{folder}/{each}.*" for folder in ("context", "manifests") for each in schedulers]
    results = [f"results/{each}.*" for each in schedulers]
    data = [f"{_LAKE}/{prefix}*" for prefix in prefixes]
    return [
        _allow(
            "ReadScriptsAndContexts", ["s3:GetObject"], [f"{_CONTROL}/{key}" for key in (*ours, f"code/{namespace}/*")]
        ),
        _allow("ReadData", ["s3:GetObject"], data),
        _allow("WriteData", ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], data),
        _allow("WriteLogs", ["s3:PutObject"], [f"{_CONTROL}/logs/{namespace}/*"]),
        _allow("HandOnResults", ["s3:GetObject", "s3:PutObject"], [f"{_CONTROL}/{key}" for key in results]),
        _allow("FindBuckets", ["s3:GetBucketLocation"], [_LAKE, _CONTROL]),
        # Spark lists a folder by its name with and without the final slash.
        {
            **_allow("ListData", ["s3:ListBucket"], [_LAKE]),
            "Condition": {"StringLike": {"s3:prefix": [p for each in prefixes for p in (each[:-1], f"{each}*")]}},
        },
        {
            # Before Spark writes a result, it looks whether something has its name.
            **_allow("ListScriptsAndResults", ["s3:ListBucket"], [_CONTROL]),
            "Condition": {"StringLike": {"s3:prefix": [f"code/{namespace}", f"code/{namespace}/*", *results]}},
        },
        # A policy that is attached to the role later does not open the history either.
        {
            "Sid": "WriteNoHistory",
            "Effect": "Deny",
            "Action": ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            "Resource": [{"Fn::Sub": f"{_LAKE}/{prefix}*"} for prefix in HISTORY],
        },
    ]


def _use_of_key() -> dict[str, Any]:
    """The permissions that reading and writing the encrypted buckets needs."""
    statement = {
        "Sid": "UseTheKeyOfTheBuckets",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": {"Ref": "KmsKeyArn"},
        "Condition": {"StringEquals": {"kms:ViaService": {"Fn::Sub": "s3.${AWS::Region}.${AWS::URLSuffix}"}}},
    }
    return {"PolicyName": "key", "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}


def _allow(sid: str, actions: list[str], resources: list[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": [{"Fn::Sub": text} for text in resources]}


def main(argv: list[str] | None = None) -> int:
    """Command line. Exit code 1 with one message for names that no role may have."""
    parser = argparse.ArgumentParser(prog="python -m infra.job_role", description="The job role of one namespace.")
    parser.add_argument("namespace")
    parser.add_argument(
        "--data", action="append", default=[], metavar="FOLDER", help="folder of the lake, such as raw/demo/"
    )
    parser.add_argument(
        "--caller", action="append", default=[], metavar="NAMESPACE", help="namespace that runs its workflows"
    )
    options = parser.parse_args(argv)
    try:
        print(yaml_tags.dump(template(options.namespace, options.data, options.caller)), end="")
    except BadRole as error:
        print(f"job role: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
