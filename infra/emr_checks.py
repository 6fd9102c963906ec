"""Checks that the EMR applications and roles of a deployment exist, before anything is changed."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import ClientError

from infra.stack import DeployError, Step

USUAL_VCPUS = 16  # of a run: by default a driver and three executors of 4 vCPUs each
_MISSING = ("ResourceNotFoundException", "ValidationException", "NoSuchEntity", "NoSuchEntityException")
_FORBIDDEN = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")


def check(session: boto3.Session, parameters: Mapping[str, str], report: Callable[[Step], None]) -> None:
    """Raise `DeployError` for an application or role that does not exist. ``parameters`` are those of the stack after
    the deployment, without the template's defaults. An object that the caller may not read is reported and accepted."""
    _check_runs(parameters)
    if parameters.get("EmrEndpointUrl") or parameters.get("ApiBaseUrl"):
        return  # an emulator has its own applications and no roles
    emr: Any = session.client("emr-serverless")
    for parameter, application in _named(parameters, "EmrApplicationId", "EmrApplicationIds"):
        _ask(parameter, "EMR application", application, partial(_state, emr, application), report)
    iam: Any = session.client("iam")
    for parameter, role in _named(parameters, "EmrJobRoleArn", "EmrRoleArns"):
        _ask(parameter, "role", role, partial(_role, iam, role), report)


def _check_runs(parameters: Mapping[str, str]) -> None:
    """Require EmrMaximumRuns beside EmrMaximumVcpu: a stack of an older version would otherwise get the default of
    1."""
    vcpus = re.match(r"\d+", parameters.get("EmrMaximumVcpu", ""))
    if parameters.get("EmrApplicationId") or "EmrMaximumRuns" in parameters or vcpus is None:
        return
    maximum = int(vcpus[0]) // USUAL_VCPUS
    if maximum > 1:
        raise DeployError(
            f"expected EmrMaximumRuns with EmrMaximumVcpu={parameters['EmrMaximumVcpu']}, got none. Set the number of "
            f"concurrent runs of the application: EmrMaximumRuns={maximum} for runs of {USUAL_VCPUS} vCPUs each."
        )


def _named(parameters: Mapping[str, str], *names: str) -> list[tuple[str, str]]:
    entries = ((name, entry.strip()) for name in names for entry in parameters.get(name, "").split(","))
    return [(name, entry) for name, entry in entries if entry]


def _ask(
    parameter: str, what: str, name: str, find: Callable[[], str | None], report: Callable[[Step], None]
) -> None:  # fmt: skip
    """Raise `DeployError` if ``find`` returns a problem of the object."""
    try:
        wrong = find()
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _FORBIDDEN:
            report(Step(f"{parameter} {name}", "NOT_CHECKED", str(error)))
            return
        if code not in _MISSING:
            raise
        wrong = "which does not exist in this account and region" if what != "role" else "which does not exist"
    if wrong is not None:
        hint = f"Correct the parameter, or create the {what} first. Nothing was changed."
        raise DeployError(f"expected {parameter} to name an existing {what}, got {name}, {wrong}. {hint}")


def _state(emr: Any, application: str) -> str | None:
    state = emr.get_application(applicationId=application)["application"]["state"]
    return "which is terminated" if state == "TERMINATED" else None


def _role(iam: Any, arn: str) -> str | None:
    found = iam.get_role(RoleName=arn.rpartition("/")[2])["Role"]["Arn"]
    return None if found == arn else f"while the role of that name is {found}"
