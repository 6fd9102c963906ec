"""Checks before anything is changed: that the EMR applications, roles and release of a deployment exist, and that no
change meets a started application."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import ClientError

from infra.stack import DeployError, Step

USUAL_VCPUS = 16  # of a run: by default a driver and three executors of 4 vCPUs each
_APPLICATION = "AWS::EMRServerless::Application"
_AT_REST = ("CREATED", "STOPPED")  # EMR changes and deletes an application only in these states
_TOUCHING = ("Modify", "Remove", "Dynamic")
_NUMBERED = re.compile(r"emr-\d+\.\d+\.\d+")
_MISSING = ("ResourceNotFoundException", "ValidationException", "NoSuchEntity", "NoSuchEntityException")
_FORBIDDEN = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")


def check(session: boto3.Session, parameters: Mapping[str, str], report: Callable[[Step], None]) -> None:
    """Raise `DeployError` for an application or role that does not exist. ``parameters`` are those of the stack after
    the deployment, without the template's defaults. An object that the caller may not read is reported and accepted."""
    _check_runs(parameters)
    if _emulated(parameters):
        return  # an emulator has its own applications and no roles
    emr: Any = session.client("emr-serverless")
    for parameter, application in _named(parameters, "EmrApplicationId", "EmrApplicationIds"):
        _ask(parameter, "EMR application", application, partial(_state, emr, application), report)
    iam: Any = session.client("iam")
    for parameter, role in _named(parameters, "EmrJobRoleArn", "EmrRoleArns"):
        _ask(parameter, "role", role, partial(_role, iam, role), report)


def check_release(session: boto3.Session, parameters: Mapping[str, str], report: Callable[[Step], None]) -> None:
    """Raise `DeployError` for a release of the stack's application that EMR does not have in this region: AWS brings
    new ones to its regions over some days. ``parameters`` are all of the stack after the deployment."""
    if _emulated(parameters) or parameters["EmrApplicationId"]:
        return
    label = parameters["EmrReleaseLabel"]
    if not label.startswith("emr-"):
        raise DeployError(f"expected EmrReleaseLabel such as emr-7.14.0, got {label!r}. Nothing was changed.")
    if not _NUMBERED.fullmatch(label):
        report(Step(f"EmrReleaseLabel {label}", "NOT_CHECKED", "EMR lists only releases such as emr-7.14.0"))
        return
    emr: Any = session.client("emr")
    try:
        listed = emr.list_release_labels(Filters={"Prefix": label})["ReleaseLabels"]
    except ClientError as error:
        report(Step(f"EmrReleaseLabel {label}", "NOT_CHECKED", str(error)))
        return
    if label not in listed:
        raise DeployError(
            f"expected EmrReleaseLabel to name a release of EMR in {session.region_name}, got {label}, which EMR does "
            f"not list there. Choose one of: aws emr list-release-labels. Nothing was changed."
        )


def check_changes(
    session: boto3.Session, stack: str, parameters: Mapping[str, str], changes: Sequence[Mapping[str, Any]]
) -> None:
    """Raise `DeployError` if a change set changes or deletes an application that is started.

    EMR refuses both, and CloudFormation would then roll the whole deployment back. EMR itself accepts a few changes of
    a started application, but CloudFormation sends all properties, also when only a tag changes.
    https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2370"""
    if _emulated(parameters):
        return
    for change in (each["ResourceChange"] for each in changes if "ResourceChange" in each):
        if change["ResourceType"] != _APPLICATION or change["Action"] not in _TOUCHING:
            continue
        application = change["PhysicalResourceId"]
        state = _now(session.client("emr-serverless"), application)
        if state not in _AT_REST and state != "TERMINATED":
            raise DeployError(
                f"expected EMR application {application} in {' or '.join(_AT_REST)}, got {state}, while the deployment "
                f"{_effect(change)}. EMR would refuse that, and CloudFormation would roll back the whole deployment. "
                f"Nothing was changed. Pause the schedules (sluice pause), wait for the runs or cancel them, and stop "
                f"it (aws emr-serverless stop-application --application-id {application}). When it is STOPPED "
                f"(aws emr-serverless get-application --application-id {application}), deploy {stack} again, and "
                f"resume the schedules (sluice resume). The next run starts the application."
            )


def _emulated(parameters: Mapping[str, str]) -> bool:
    return bool(parameters.get("EmrEndpointUrl") or parameters.get("ApiBaseUrl"))


def _effect(change: Mapping[str, Any]) -> str:
    """What a change does to a resource, in words."""
    if change["Action"] == "Remove":
        return "deletes it"
    targets = (detail.get("Target", {}) for detail in change.get("Details", []))
    names = sorted({str(target.get("Name") or target.get("Attribute", "")) for target in targets} - {""})
    return f"changes its {', '.join(names) or 'properties'}"


def _now(emr: Any, application: str) -> str:
    """The state of an application. One that is gone counts as stopped, and so does one that the caller may not read:
    then EMR refuses the change by itself."""
    try:
        return str(emr.get_application(applicationId=application)["application"]["state"])
    except ClientError as error:
        if error.response.get("Error", {}).get("Code", "") in (*_FORBIDDEN, *_MISSING):
            return "STOPPED"
        raise


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
