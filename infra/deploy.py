"""`make deploy STAGE=dev`: upload the package and create or update the stack `sluice-<stage>`.

    python -m infra.deploy STAGE OUT [Parameter=value ...]

The environment names account, region and endpoint, as for any AWS tool.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table

from infra import artifacts, emr_checks, key_checks, preflight, sizes, stack, template, yaml_tags
from infra.place import Place

_NO_ACCOUNT = "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION."
_MORE_RIGHTS = "Use credentials with this permission, or have it added (docs/permissions.md)."


def deploy(
    session: boto3.Session,
    stack_name: str,
    out: Path,
    parameters: Mapping[str, str],
    *,
    report: Callable[[stack.Step], None] = lambda step: None,
    poll_seconds: float = 3.0,
) -> stack.Outcome:
    """Deploy the package in `out` as `stack_name`. Raises `stack.DeployError`, `BotoCoreError` or `ClientError`.

    What AWS would refuse in the middle of the deployment is refused before anything changes: parameters that name what
    does not exist or do not fit, and a change of an EMR application that is started."""
    s3, region = session.client("s3"), session.region_name
    made = yaml_tags.load((out / "template.yaml").read_text())
    declared = made["Parameters"]
    cloudformation: Any = session.client("cloudformation")
    present = stack.parameters(cloudformation, stack_name)
    defaults = {name: str(each.get("Default", "")) for name, each in declared.items()}
    kept = present or {}
    wanted = {**defaults, **kept, **parameters}
    identity = session.client("sts").get_caller_identity()
    account = identity["Account"]
    preflight.check(session, stack_name, parameters, wanted, kept, report)
    preflight.check_callers(wanted, account)
    preflight.warn_of_accounts(wanted, account, report)
    preflight.warn(parameters, defaults, kept, datetime.now(UTC).date(), report)
    place = Place(stack_name, account, region, session.get_partition_for_region(region))
    sizes.check(made, wanted, place, report)
    key_checks.check(session, place, wanted, kept)
    emr_checks.check(session, {**kept, **parameters}, report)
    if wanted["EmrReleaseLabel"] != kept.get("EmrReleaseLabel"):
        emr_checks.check_release(session, wanted, report)
    if not wanted["Administrators"]:
        parameters = {**parameters, "Administrators": _member(identity["Arn"])}
    bucket = artifacts.ensure_bucket(s3, account, region)
    code_key = artifacts.upload(s3, bucket, stack_name, artifacts.code_of(out), ".zip")
    located = template.with_code_at(made, bucket, code_key)
    key = artifacts.upload(s3, bucket, stack_name, yaml_tags.dump(located).encode(), ".yaml")
    # By URL, because a template in the request may have only 51,200 bytes, and every route adds some 600. The URL has
    # the region's own endpoint: the global one does not find a new bucket of another region for some hours.
    url = f"{s3.meta.endpoint_url}/{bucket}/{key}"

    def apply(more: Mapping[str, str]) -> stack.Outcome:
        given = {**parameters, **more}
        return stack.apply(
            cloudformation,
            stack_name,
            url,
            given,
            declared=declared,
            inspect=partial(emr_checks.check_changes, session, stack_name, wanted),
            report=report,
            poll_seconds=poll_seconds,
        )

    if wanted["KmsKeyArn"]:
        parameters = {**parameters, "KmsKeyEncrypts": "true"}
    if present is not None and wanted["KmsKeyArn"] != kept.get("KmsKeyArn", ""):
        # CloudFormation updates a role after the tables and queues that it names. If one deployment did both, the
        # Lambdas could not read these for minutes.
        apply({"KmsKeyEncrypts": "false"})
    protected = wanted["DeletionProtection"] == "true" and wanted["DataRetention"] == "Retain"
    if present is not None or not protected:
        return apply({})
    # A failed first deployment must remove its tables, which deletion protection would prevent.
    created = apply({"DeletionProtection": "false"})
    apply({"DeletionProtection": "true"})
    return created


def _member(arn: str) -> str:
    """The user or role of an ARN, as Sluice names members: a session of a role is the role, without its path."""
    head, separator, rest = arn.partition(":assumed-role/")
    return f"{head.replace(':sts:', ':iam:')}:role/{rest.partition('/')[0]}" if separator else arn


def parse_parameters(arguments: list[str]) -> dict[str, str]:
    """`["A=1"]` as `{"A": "1"}`. Raises `ValueError` for anything else."""
    pairs = [argument.partition("=") for argument in arguments]
    for argument, (name, equals, _) in zip(arguments, pairs, strict=True):
        if not (name and equals):
            raise ValueError(f"expected Parameter=value, got {argument!r}")
    return {name: value for name, _, value in pairs}


def main(argv: list[str] | None = None) -> int:
    """Command line of `make deploy`. Exit code 1 with one message if the deployment fails."""
    console, errors = Console(), Console(stderr=True)
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) < 2:
        errors.print("usage: python -m infra.deploy STAGE OUT [Parameter=value ...]")
        return 2
    stage, out = arguments[0], Path(arguments[1])
    try:
        parameters = {"Stage": stage, **parse_parameters(arguments[2:])}
        outcome = _with_progress(console, f"sluice-{stage}", out, parameters)
    except (stack.DeployError, ValueError, OSError) as error:
        errors.print(f"deploy: {error}", style="red", highlight=False)
        return 1
    except (BotoCoreError, ClientError) as error:
        errors.print(f"deploy: {explain(error)}", style="red", highlight=False)
        return 1
    table = Table(title=f"sluice-{stage} is {outcome.action}")
    table.add_column("output")
    # Folded, never cut: users copy these values into other commands.
    table.add_column("value", overflow="fold")
    for name, value in sorted(outcome.outputs.items()):
        table.add_row(name, value)
    console.print(table)
    return 0


def _with_progress(console: Console, name: str, out: Path, parameters: Mapping[str, str]) -> stack.Outcome:
    session = preflight.session()
    with console.status(f"deploying {name} to {session.region_name}"):
        return deploy(
            session,
            name,
            out,
            parameters,
            report=lambda step: console.print(stack.line_of(step), highlight=False, soft_wrap=True),
        )


def explain(error: Exception) -> str:
    """A message for the error of an AWS call, with what to do."""
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"):
        return f"No AWS credentials: {error} {_NO_ACCOUNT}"
    if type(error).__name__ in ("EndpointConnectionError", "ConnectTimeoutError"):
        return f"AWS is not reachable: {error} Check AWS_REGION and AWS_ENDPOINT_URL."
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    if code in ("InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "ExpiredToken"):
        return f"AWS does not accept these credentials: {error} {_NO_ACCOUNT}"
    if code in ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"):
        return f"These credentials lack a permission: {error} {_MORE_RIGHTS}"
    return str(error)


if __name__ == "__main__":
    raise SystemExit(main())
