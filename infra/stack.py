"""Create or update one CloudFormation stack through a change set, both in AWS and in the local cloud."""

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from botocore.exceptions import ClientError, WaiterError

# A stack in one of these states can be neither created nor updated; it must be deleted.
_STUCK = {"ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"}
# The first deployment was rolled back. Only the stack's name remains, because CloudFormation has removed the resources
# (`RetainExceptOnCreate` below).
_ROLLED_BACK = "ROLLBACK_COMPLETE"
_DONE = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


class DeployError(Exception):
    """The deployment failed. The message has the cause, and what to do."""


@dataclass(frozen=True)
class Step:
    """One line of progress: the new status of a resource."""

    resource: str
    status: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """The result of a deployment: `created`, `updated` or `unchanged`, and the stack's outputs by key."""

    action: str
    outputs: dict[str, str]


def apply(
    cloudformation: Any,
    stack: str,
    template_url: str,
    parameters: Mapping[str, str],
    *,
    declared: Collection[str],
    inspect: Callable[[Sequence[Mapping[str, Any]]], None] = lambda changes: None,
    report: Callable[[Step], None] = lambda step: None,
    poll_seconds: float = 3.0,
) -> Outcome:
    """Create or update `stack` from the template at `template_url`, whose parameters are `declared`; return when it is
    done.

    A parameter that is not given keeps the stack's present value, or takes the template's default in a new stack.
    `inspect` gets the changes of an update before they are made; if it raises, the stack stays as it is.
    Raises `DeployError` for a parameter that the template does not have, and with the reason of the first resource that
    failed."""
    if unknown := sorted(set(parameters) - set(declared)):
        raise DeployError(f"expected parameters of {', '.join(sorted(declared))}, got {', '.join(unknown)}")
    before = _describe(cloudformation, stack)
    if before and before["StackStatus"] == _ROLLED_BACK:
        report(Step(stack, "DELETE_IN_PROGRESS", "its first deployment was rolled back; creating it again"))
        cloudformation.delete_stack(StackName=stack)
        waiter = cloudformation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": poll_seconds, "MaxAttempts": int(600 / poll_seconds)})
        before = None
    status = before["StackStatus"] if before else "REVIEW_IN_PROGRESS"
    if status in _STUCK:
        raise DeployError(
            f"Stack {stack} is in {status} and cannot be updated. Delete it "
            f"(aws cloudformation delete-stack --stack-name {stack}), then deploy again."
        )
    if status == "UPDATE_ROLLBACK_FAILED":
        raise DeployError(
            f"Stack {stack} is in {status}: CloudFormation could not take back a failed deployment. The stack's events "
            f"name the resource. If it is the EMR application, stop it (aws emr-serverless stop-application). Then run "
            f"aws cloudformation continue-update-rollback --stack-name {stack}, and deploy again at its end."
        )
    if status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        raise DeployError(
            f"Stack {stack} is in {status}: another deployment is active. Wait for its end, then deploy again."
        )
    creating = status == "REVIEW_IN_PROGRESS"
    change_set = f"sluice-{uuid.uuid4().hex[:12]}"
    cloudformation.create_change_set(
        StackName=stack,
        ChangeSetName=change_set,
        ChangeSetType="CREATE" if creating else "UPDATE",
        TemplateURL=template_url,
        Parameters=_parameters(parameters, before, declared),
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    if not _has_changes(cloudformation, stack, change_set, poll_seconds):
        return Outcome("unchanged", outputs(cloudformation, stack))
    if not creating:
        try:
            inspect(_changes(cloudformation, stack, change_set))
        except BaseException:
            cloudformation.delete_change_set(StackName=stack, ChangeSetName=change_set)
            raise
    last = None if creating else _newest(cloudformation, stack)
    # A failed first deployment removes its tables and buckets, or their names would be in use at the next try.
    cloudformation.execute_change_set(StackName=stack, ChangeSetName=change_set, RetainExceptOnCreate=creating)
    _follow(cloudformation, stack, last, report, poll_seconds)
    return Outcome("created" if creating else "updated", outputs(cloudformation, stack))


def delete(
    cloudformation: Any, stack: str, *, report: Callable[[Step], None] = lambda step: None, poll_seconds: float = 3.0
) -> None:
    """Delete `stack`; return when it is deleted. Raises `DeployError` with the reason of the first resource that
    remains."""
    found = _describe(cloudformation, stack)
    if found is None:
        return
    # By its id, because a deleted stack is found by its id only.
    stack_id = found.get("StackId", stack)
    last = _newest(cloudformation, stack_id)
    cloudformation.delete_stack(StackName=stack)
    _follow(cloudformation, stack_id, last, report, poll_seconds, done={"DELETE_COMPLETE"})


def line_of(step: Step) -> str:
    """A step as a line of progress."""
    return f"{step.status:<28} {step.resource}  {step.reason}".rstrip()


def outputs(cloudformation: Any, stack: str) -> dict[str, str]:
    """The stack's outputs by key; empty when there is no such stack."""
    found = _describe(cloudformation, stack)
    return {o["OutputKey"]: o["OutputValue"] for o in (found or {}).get("Outputs", [])}


def parameters(cloudformation: Any, stack: str) -> dict[str, str] | None:
    """The present parameters of a stack; None if it does not exist, or if its creation was rolled back."""
    found = _describe(cloudformation, stack)
    if found is None or found["StackStatus"] in (_ROLLED_BACK, "REVIEW_IN_PROGRESS"):
        return None
    return {parameter["ParameterKey"]: parameter.get("ParameterValue", "") for parameter in found.get("Parameters", [])}


def _describe(cloudformation: Any, stack: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return found


def _parameters(
    given: Mapping[str, str], before: dict[str, Any] | None, declared: Collection[str]
) -> list[dict[str, Any]]:  # fmt: skip
    """The given parameters and those that keep their value. CloudFormation refuses to keep one that the new template
    lacks."""
    present = [p["ParameterKey"] for p in (before or {}).get("Parameters", [])]
    kept = [key for key in present if key not in given and key in declared]
    return [
        *({"ParameterKey": key, "ParameterValue": value} for key, value in sorted(given.items())),
        *({"ParameterKey": key, "UsePreviousValue": True} for key in kept),
    ]


def _has_changes(cloudformation: Any, stack: str, change_set: str, poll_seconds: float) -> bool:
    """Wait until the change set is ready. False if the stack is up to date."""
    waiter = cloudformation.get_waiter("change_set_create_complete")
    try:
        waiter.wait(
            StackName=stack,
            ChangeSetName=change_set,
            WaiterConfig={"Delay": poll_seconds, "MaxAttempts": int(600 / poll_seconds)},
        )
    except WaiterError:
        state = cloudformation.describe_change_set(StackName=stack, ChangeSetName=change_set)
        reason = state.get("StatusReason", "no reason given")
        cloudformation.delete_change_set(StackName=stack, ChangeSetName=change_set)
        if "didn't contain changes" in reason or "No updates" in reason:
            return False
        raise DeployError(f"CloudFormation refused the change set of {stack}: {reason}") from None
    return True


def _changes(cloudformation: Any, stack: str, change_set: str) -> list[dict[str, Any]]:
    pages = cloudformation.get_paginator("describe_change_set").paginate(StackName=stack, ChangeSetName=change_set)
    return [change for page in pages for change in page.get("Changes", [])]


def _follow(
    cloudformation: Any,
    stack: str,
    last: str | None,
    report: Callable[[Step], None],
    poll_seconds: float,
    done: Collection[str] = _DONE,
) -> None:
    """Report every event after ``last`` until the stack is stable. Raises `DeployError` unless its final status is one
    of `done`."""
    failures: list[Step] = []
    while True:
        for event in _events_since(cloudformation, stack, last):
            last = event["EventId"]
            step = Step(event["LogicalResourceId"], event["ResourceStatus"], event.get("ResourceStatusReason", ""))
            report(step)
            if step.status.endswith("_FAILED"):
                failures.append(step)
        found = _describe(cloudformation, stack)
        status = found["StackStatus"] if found else "DELETE_COMPLETE"
        if status in done:
            return
        if not status.endswith("_IN_PROGRESS"):
            # Later failures are only cancellations after the first.
            why = f"{failures[0].resource}: {failures[0].reason}" if failures else "CloudFormation gave no reason"
            raise DeployError(f"Stack {stack} ended in {status}. First failure: {why}")
        time.sleep(poll_seconds)


def _events(cloudformation: Any, stack: str) -> Iterator[dict[str, Any]]:
    """The events of the stack, newest first, a page at a time: an old stack has thousands of them."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack)
    return (event for page in pages for event in page["StackEvents"])


def _newest(cloudformation: Any, stack: str) -> str | None:
    """The id of the newest event."""
    return next((event["EventId"] for event in _events(cloudformation, stack)), None)


def _events_since(cloudformation: Any, stack: str, last: str | None) -> list[dict[str, Any]]:
    """The events after the one with the id ``last``, oldest first; all of them for None."""
    return list(takewhile(lambda event: event["EventId"] != last, _events(cloudformation, stack)))[::-1]
