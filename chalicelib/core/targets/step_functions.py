"""Step Functions as a target: an execution of a standard state machine (W16)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from chalicelib.core import ids, results
from chalicelib.core.access.allowed import Named
from chalicelib.core.instants import Instant, parse_instant
from chalicelib.core.results import Result
from chalicelib.core.rows.run import Run
from chalicelib.core.states import FailureKind, RunState
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.target import ARN, PREFIX, REGION, Log, NoLog, PollInterval, Target, attempt_name

# A version or an alias may follow the name. `/` is excluded: it precedes the label of a Distributed Map, which cannot
# be started.
# https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
_NAME = r'[^\s:/?*<>{}\[\]"#%\\^|~`$&,;]{1,80}'
StateMachineArn = Annotated[
    str, Field(pattern=rf"{ARN}states:{REGION}:\d{{12}}:stateMachine:{_NAME}(:[A-Za-z0-9_.-]{{1,80}})?$")
]

# https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html. A pending redrive continues
# without a further call.
_STATES: Mapping[str, tuple[RunState, FailureKind]] = {
    "RUNNING": ("RUNNING", "failed"),
    "PENDING_REDRIVE": ("RUNNING", "failed"),
    "SUCCEEDED": ("SUCCEEDED", "failed"),
    "FAILED": ("FAILED", "failed"),
    "TIMED_OUT": ("FAILED", "timed_out"),
    "ABORTED": ("CANCELLED", "failed"),
}
MAX_LABEL = 32  # characters; prefix, label and token together have at most 80, the limit of a name
STOPPED = "Sluice.Stopped"  # the error of an execution that Sluice has stopped
MAX_REASON = 4_000  # characters of error and cause that a run row keeps; a cause may have 32,768


class StepFunctionsTarget(Target):
    """An execution of a standard state machine, in the account and region of the stack.

    Step Functions reports the states of a run by events. With ``poll_every``, Sluice also polls it at that interval
    (W6).
    """

    listed: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.states"

    type: Literal["step_functions"]
    state_machine: StateMachineArn
    poll_every: PollInterval | None = None

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        return (Named("state_machines", str(stored["state_machine"]), "state_machine"),)

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A status change of an execution. It contains input, output, error and cause unless they are too large.

        https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
        """
        detail, at = event["detail"], parse_instant(event["time"])
        arn, status = detail["executionArn"], detail["status"]
        error, cause, output = detail.get("error"), detail.get("cause"), detail.get("output")
        began, ended = detail.get("startDate") or at, detail.get("stopDate") or at
        update = update_of(arn, status, began, ended, error, cause, result_of(output))
        complete = bool(output or error or cause)
        run_name = run_name_of(detail["name"], detail.get("input"))
        # arn:aws:states:<region>:<account>:execution:<state machine>:<name>
        machine = arn.rpartition(":")[0].replace(":execution:", ":stateMachine:")
        return StateChange("step_functions", arn, status, update, run_name, complete, machine)

    @classmethod
    def place_of(cls, stored: Mapping[str, Any]) -> str | None:
        """The state machine, without version and alias."""
        return ":".join(str(stored["state_machine"]).split(":")[:7])

    @classmethod
    def log_of(cls, run: Run) -> Log:
        if run.target_id is None:
            return NoLog("it has no execution yet", "it never began there")
        history = f"aws stepfunctions get-execution-history --execution-arn {run.target_id}"
        return NoLog(f"Step Functions keeps the history of the execution: {history}")


def update_of(
    arn: str,
    status: str,
    began: Instant,
    ended: Instant,
    error: str | None,
    cause: str | None,
    result: Result = results.NONE,
) -> RunUpdate | None:
    """The update of a run from the status of its execution; None for a status that this release does not know."""
    if status not in _STATES:
        return None
    state, outcome = _STATES[status]
    if state == "RUNNING":
        return RunUpdate(state, began, target_id=arn)
    said = (error, cause) if error != STOPPED else ()  # the cause is then the reason that the run has already
    reason = ": ".join(part for part in said if part)[:MAX_REASON]
    if status == "TIMED_OUT" and not reason:
        reason = "the execution ran longer than its state machine allows"
    return RunUpdate(state, ended, reason, arn, outcome=outcome, started_at=began, result=result)


def result_of(output: str | None) -> Result:
    """The result of a run from the output of its execution, a JSON text."""
    return results.of_text(output) if output is not None else results.NONE


def execution_name(run: Run) -> str:
    """The name of the execution of this attempt. It never changes, so a repeated start call starts no other execution.
    CloudWatch Logs accepts all its characters, too."""
    return attempt_name(run, MAX_LABEL)


def execution_arn(run: Run) -> str:
    """The ARN of the execution of this attempt, if it was started. It contains neither version nor alias."""
    before, _, qualified = str(run.request.target["state_machine"]).partition(":stateMachine:")
    return f"{before}:execution:{qualified.partition(':')[0]}:{execution_name(run)}"


def run_name_of(name: str, given: str | None) -> str | None:
    """``<run id>-<attempt>`` from the input of an execution; None if Sluice did not start the execution.

    The name of the execution must match the attempt, because users may start executions with a copy of the input.
    """
    try:
        envelope = json.loads(given or "")["sluice"]
        run_id, attempt = str(envelope["event_id"]), int(envelope["attempt"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    is_ours = name.startswith(PREFIX) and name.endswith(f"-{ids.client_token(run_id, attempt)}")
    return f"{run_id}-{attempt}" if is_ours else None
