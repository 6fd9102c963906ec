"""Package and deploy to the local cloud if there is a change to deploy."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from infra import deploy, package, stack, template
from infra.local import landing, services
from infra.local.endpoints import Key, LocalSession
from infra.local.layout import Layout

STAGE = "local"
STACK = f"sluice-{STAGE}"
_WITHOUT_EMULATOR = "emulator-missing"
_JOB_ROLE = "arn:aws:iam::000000000000:role/sluice-local-jobs"
# Everything that changes the template or the code.
_SOURCES = (
    *("app.py", "chalicelib", ".chalice/config.json", "requirements-lambda.lock"),
    *("infra/resources", "infra/policies", "infra/package.py", "infra/template.py", "infra/yaml_tags.py"),
)


def emr_application(emr_url: str | None, root: Key) -> str:
    """The id of the emulator's one application, created on the first call."""
    if emr_url is None:
        return _WITHOUT_EMULATOR
    client = LocalSession(emr_url, root).client("emr-serverless")
    for found in client.list_applications()["applications"]:
        if found["name"] == STACK:
            return str(found["id"])
    made = client.create_application(name=STACK, releaseLabel="emr-7.14.0", type="SPARK", clientToken=STACK)
    return str(made["applicationId"])


def fingerprint(root: Path, parameters: Mapping[str, str]) -> str:
    """A hash of everything that decides about the deployment: sources, templates, parameters."""
    digest = hashlib.sha256(json.dumps(dict(parameters), sort_keys=True).encode())
    for file in _files(root):
        digest.update(f"{file.relative_to(root)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def parameters(aws_url: str, emr_url: str | None, application: str) -> dict[str, str]:
    """The template's parameters for the local cloud."""
    return {
        "Stage": STAGE,
        "DataRetention": "Delete",
        "EmrApplicationId": application,
        "EmrJobRoleArn": _JOB_ROLE,
        "EmrEndpointUrl": emr_url or "",
        "ApiBaseUrl": aws_url,
        "WatchedBuckets": landing.BUCKET,
        "TargetRoleArns": "arn:aws:iam::000000000000:role/sluice-target-*",
        # All requests of users are signed by one local user, who may do everything.
        "Authorization": "off",
        # A waiting Lambda costs nothing here, and a claim gets new work at once.
        "WorkerWaitSeconds": "20",
    }


def roll_out(layout: Layout, session: LocalSession, given: Mapping[str, str]) -> stack.Outcome:
    """Update the local stack to the checkout; do nothing if it is up to date. Raises `CloudError`."""
    present = stack.outputs(session.client("cloudformation"), STACK)
    wanted = fingerprint(layout.root, given)
    if present and layout.remembered("deployed") == wanted:
        return stack.Outcome("unchanged", present)
    try:
        package.package(layout.package, with_dependencies=False, root=layout.root)
        outcome = deploy.deploy(session, STACK, layout.package, given, poll_seconds=0.1)
    except (package.PackageError, template.TemplateError, ValueError) as error:
        raise services.CloudError(f"The checkout cannot be packaged: {error}") from None
    except (stack.DeployError, BotoCoreError, ClientError) as error:
        raise services.CloudError(
            f"The local stack could not be deployed: {error}\nThe log is {layout.aws_log}. "
            f"`make reset` removes the local cloud with its data, then `make up` starts a new one."
        ) from None
    _expire_rows(session, outcome.outputs)
    layout.remember("deployed", wanted)
    services.save_aws_state(layout)
    return outcome


def _expire_rows(session: LocalSession, outputs: Mapping[str, str]) -> None:
    """Turn on time to live, because ministack's CloudFormation ignores it in the template."""
    dynamodb = session.client("dynamodb")
    for name in ("CatalogTable", "JobsTable", "RunsTable"):
        found = dynamodb.describe_time_to_live(TableName=outputs[name])["TimeToLiveDescription"]
        if found["TimeToLiveStatus"] == "DISABLED":
            dynamodb.update_time_to_live(
                TableName=outputs[name], TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
            )


def _files(root: Path) -> Iterator[Path]:
    for name in _SOURCES:
        source = root / name
        found = source.rglob("*") if source.is_dir() else [source]
        yield from sorted(f for f in found if f.is_file() and "__pycache__" not in f.parts)
