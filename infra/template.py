"""Merge Chalice's template with Sluice's fragments. Pure: mappings in, one mapping out.

Chalice generates the Lambdas, their events and the REST API from `app.py`. The fragments in `infra/resources/` add
tables, queues, buckets and the properties of the Lambdas that Chalice cannot express; `infra/policies/` gives each
Lambda a role and a log, unless its fragment names those of another Lambda.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

Template = dict[str, Any]

_FUNCTION = "AWS::Serverless::Function"


class TemplateError(Exception):
    """The parts do not match. The message names the parts, and what to do."""


def handler_of(logical_id: str) -> str:
    """The handler's name in `app.py`, from Chalice's logical id: `RunState` -> `run_state`, `APIHandler` -> `api`."""
    if logical_id == "APIHandler":
        return "api"
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in logical_id).lstrip("_")


def assemble(chalice: Template, fragments: Sequence[Template], policies: Mapping[str, Template]) -> Template:
    """The template to deploy.

    `policies` maps a handler's name to its `{"Statement": [...]}`. A Lambda whose fragment has a `Role` needs none.
    Raises `TemplateError` if a Lambda has no policy, or a policy no Lambda: without this check, only a denied call in
    production would show it."""
    merged = deepcopy(chalice)
    # Replace Chalice's outputs; the fragments define those of docs/interfaces.md.
    merged["Outputs"] = {}
    for fragment in fragments:
        merged = merge(merged, fragment)
    functions = {lid: r for lid, r in merged["Resources"].items() if r.get("Type") == _FUNCTION}
    untyped = sorted(lid for lid, r in merged["Resources"].items() if "Type" not in r)
    if untyped:
        raise TemplateError(
            f"infra/resources/ refers to {', '.join(untyped)}, which app.py does not define. "
            f"Lambdas in app.py: {', '.join(sorted(functions))}. Rename one of them."
        )
    extensions = (item for fragment in fragments for item in fragment.get("Resources", {}).items())
    sharing = {lid for lid, extension in extensions if _shares_a_role(lid, extension)}
    _expect_same(set(policies), {handler_of(lid) for lid in functions if lid not in sharing})
    for logical_id, function in functions.items():
        handler = handler_of(logical_id)
        if logical_id not in sharing:
            own = _role_and_log(logical_id, handler, policies[handler])
            # What belongs to a Lambda exists under the condition under which the Lambda does.
            made = {name: function[name] for name in ("Condition",) if name in function}
            merged["Resources"] |= {name: resource | made for name, resource in own.items()}
            function["Properties"] |= {
                "Role": {"Fn::GetAtt": [f"{logical_id}Role", "Arn"]},
                "LoggingConfig": {"LogGroup": {"Ref": f"{logical_id}Log"}},
            }
        function["Properties"] |= {
            # Named, so that operators find the function, and the local EMR emulator has the name before the stack.
            "FunctionName": {"Fn::Sub": f"${{AWS::StackName}}-{_dashed(handler)}"},
            "Tracing": {"Ref": "Tracing"},
            "Tags": {"sluice:stage": {"Ref": "Stage"}, "sluice:handler": handler},
        }
    return merged


def merge(base: Any, over: Any) -> Any:
    """`base` overridden by `over`: mappings are merged key by key, all other values replaced.

    An intrinsic such as `{"Fn::GetAtt": [...]}` is one value, not a mapping: merged with `{"Fn::Sub": ...}` it would
    become an invalid mapping with two functions.
    """
    if not (isinstance(base, dict) and isinstance(over, dict)) or _is_intrinsic(base) or _is_intrinsic(over):
        return deepcopy(over)
    return {key: merge(base[key], over[key]) if key in base and key in over else deepcopy(base.get(key, over.get(key)))
            for key in [*base, *(k for k in over if k not in base)]}  # fmt: skip


def with_code_at(template: Template, bucket: str, key: str) -> Template:
    """The same template with every Lambda's code in S3, as CloudFormation requires."""
    moved = deepcopy(template)
    for resource in moved["Resources"].values():
        if resource.get("Type") == _FUNCTION:
            resource["Properties"]["CodeUri"] = {"Bucket": bucket, "Key": key}
    return moved


def _shares_a_role(logical_id: str, extension: Mapping[str, Any]) -> bool:
    """Whether a fragment extends one of Chalice's functions, which has no type there, with the role of another.

    Raises `TemplateError` if it does not name the log of that one, too: a role may write its own log alone."""
    given = {"Role", "LoggingConfig"} & set(extension.get("Properties", {}))
    if "Type" in extension or not given:
        return False
    if len(given) == 1:
        raise TemplateError(
            f"infra/resources/ gives {logical_id} a {given.pop()} alone. Expected Role and LoggingConfig of one other "
            f"Lambda, because its role may write no other log, or neither of them."
        )
    return True


def _dashed(handler: str) -> str:
    return handler.replace("_", "-")


def _is_intrinsic(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))


def _expect_same(with_policy: set[str], in_app: set[str]) -> None:
    if missing := sorted(in_app - with_policy):
        raise TemplateError(
            f"app.py has {', '.join(missing)} without a policy. Write infra/policies/{missing[0]}.yaml "
            f"with a Statement list that allows only the handler's calls."
        )
    if surplus := sorted(with_policy - in_app):
        raise TemplateError(
            f"infra/policies/ has {', '.join(surplus)}, but app.py has no such handler with a role of its own. "
            f"Handlers: {', '.join(sorted(in_app))}."
        )


def _traces() -> Template:
    """The permissions that a Lambda needs to send traces, if tracing is on. IAM defines no resource types for X-Ray."""
    statement = {
        "Sid": "SendTraces",
        "Effect": "Allow",
        "Action": ["xray:PutTelemetryRecords", "xray:PutTraceSegments"],
        "Resource": "*",
    }
    policy = {"PolicyName": "traces", "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
    return {"Fn::If": ["TracingIsActive", policy, {"Ref": "AWS::NoValue"}]}


# What the key of the stack must allow, by the beginning of an action on what it encrypts. DynamoDB decrypts the key of
# a table for each principal that reads or writes it; SQS decrypts what it has generated for a sender.
# https://docs.aws.amazon.com/kms/latest/developerguide/services-dynamodb.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
_USES = {
    "dynamodb:": ("kms:Decrypt",),
    "sqs:ReceiveMessage": ("kms:Decrypt",),
    "sqs:SendMessage": ("kms:Decrypt", "kms:GenerateDataKey"),
    "s3:GetObject": ("kms:Decrypt",),
    "s3:PutObject": ("kms:GenerateDataKey",),
}


def _use_of_key(statements: Sequence[Template]) -> Template:
    """The permissions to use the key of the stack, if it has one: only through the services that a role may call."""
    services: dict[str, set[str]] = {}
    for action in (action for statement in statements for action in _listed(statement["Action"])):
        for needed in (needed for begin, uses in _USES.items() if action.startswith(begin) for needed in uses):
            services.setdefault(needed, set()).add(action.partition(":")[0])
    granted = [
        {
            "Sid": f"{action.removeprefix('kms:')}WithTheKey",
            "Effect": "Allow",
            "Action": action,
            "Resource": {"Ref": "KmsKeyArn"},
            "Condition": {
                "StringEquals": {
                    "kms:ViaService": [
                        {"Fn::Sub": f"{service}.${{AWS::Region}}.${{AWS::URLSuffix}}"} for service in sorted(through)
                    ]
                }
            },
        }
        for action, through in sorted(services.items())
    ]
    policy = {"PolicyName": "key", "PolicyDocument": {"Version": "2012-10-17", "Statement": granted}}
    return {"Fn::If": ["KeyIsGiven", policy, {"Ref": "AWS::NoValue"}]}


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _role_and_log(logical_id: str, handler: str, policy: Template) -> Template:
    """The log group of a Lambda, and its role with the policy and the permission to write this log."""
    write_log = {
        "Sid": "WriteOwnLog",
        "Effect": "Allow",
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": {"Fn::GetAtt": [f"{logical_id}Log", "Arn"]},
    }
    assume = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {
        f"{logical_id}Log": {
            "Type": "AWS::Logs::LogGroup",
            "Properties": {
                "LogGroupName": {"Fn::Sub": f"/aws/lambda/${{AWS::StackName}}-{_dashed(handler)}"},
                "RetentionInDays": {"Ref": "LogRetentionDays"},
                "KmsKeyId": {"Fn::If": ["KeyEncrypts", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]},
            },
        },
        f"{logical_id}Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [assume]},
                "Policies": [
                    {
                        "PolicyName": _dashed(handler),
                        "PolicyDocument": {"Version": "2012-10-17", "Statement": [write_log, *policy["Statement"]]},
                    },
                    _use_of_key(policy["Statement"]),
                    _traces(),
                ],
            },
        },
    }
