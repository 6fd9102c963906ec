"""Step Functions as a target: start, poll, find and stop executions.

The name of an execution follows from the attempt, and Step Functions starts one execution for a name. A repeated call
with the same input returns the same execution while it runs. Any other call fails with ``ExecutionAlreadyExists``.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets import envelope
from chalicelib.aws.targets.aws_errors import code_of
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.engine import CALL, Engine, instant
from chalicelib.aws.targets.envelope import MAX_BYTES
from chalicelib.core.results import Result
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, RunUpdate, Started
from chalicelib.core.targets.step_functions import (
    STOPPED,
    execution_arn,
    execution_name,
    result_of,
    run_name_of,
    update_of,
)
from chalicelib.settings import Settings

MAX_CAUSE = 32_768
UNREADABLE = Result(refused="the output could not be read: the KMS key of the state machine is unusable")
_LEFT_OUT = "left_out"  # of an execution: it was read without its encrypted fields


class StepFunctionsTarget(Engine):
    """A listing of executions has neither error nor cause, so runs are polled one by one. Executions are kept for 90
    days, so later an execution is missing only if a user has deleted its state machine."""

    name, start_call, one = "Step Functions", "StartExecution", "execution"
    never: ClassVar = {
        *("AccessDeniedException", "InvalidArn", "InvalidExecutionInput", "InvalidName", "StateMachineDeleting"),
        *("StateMachineDoesNotExist", "StateMachineTypeNotSupported", "ValidationException"),
        *("KmsAccessDeniedException", "KmsInvalidStateException"),
    }
    no_answer: ClassVar = (*Engine.no_answer, "RequestTimeout")
    throttled: ClassVar = (*Engine.throttled, "KmsThrottlingException")

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            answer = self._client.start_execution(
                stateMachineArn=run.request.target["state_machine"],
                name=execution_name(run),
                input=input_of(run, context),
            )
        except ClientError as error:
            if code_of(error) != "ExecutionAlreadyExists":
                raise
            return self._existing(run)
        if ":express:" in answer["executionArn"]:
            return Never("expected a standard state machine, got an express one: its execution cannot be followed")
        return Started(answer["executionArn"])

    def _existing(self, run: Run) -> Answer:
        """The answer for an execution that an earlier call has started. The execution has ended since, or the earlier
        call was made by another release and had another input."""
        try:
            found = self.find(run)
        except (BotoCoreError, ClientError) as error:
            return NoAnswer(f"the execution exists, and DescribeExecution gave no answer: {error}")
        return Started(found) if found is not None else NoAnswer("the execution exists, and is not shown yet")

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        [arn] = target_ids
        found = self._describe(arn)
        if found is None:
            return {}
        began, ended = instant(found["startDate"]), instant(found.get("stopDate") or found["startDate"])
        result = UNREADABLE if found.get(_LEFT_OUT) else result_of(found.get("output"))
        return {arn: update_of(arn, found["status"], began, ended, found.get("error"), found.get("cause"), result)}

    def find(self, run: Run) -> str | None:
        arn = execution_arn(run)
        return arn if self._describe(arn) is not None else None

    def stop(self, target_id: str, why: str) -> None:
        said = {"error": STOPPED, "cause": why[:MAX_CAUSE]}
        try:
            self.twice(self._client.stop_execution, executionArn=target_id, **said)
        except ClientError as error:
            if not self._lacks_key(error):
                _expect_ended(error)
                return
            # Step Functions cannot encrypt error and cause, because their KMS key is unusable. Without them it needs
            # no key.
            self._stop_without_reason(target_id)

    def run_name(self, target_id: str) -> str | None:
        found = self._describe(target_id)
        return run_name_of(str(found.get("name")), found.get("input")) if found is not None else None

    def _stop_without_reason(self, target_id: str) -> None:
        try:
            self.twice(self._client.stop_execution, executionArn=target_id)
        except ClientError as error:
            _expect_ended(error)

    def _describe(self, arn: str) -> Mapping[str, Any] | None:
        """The execution; None if there is none. If its KMS key is unusable, the encrypted fields are left out."""
        try:
            return self._described(arn)
        except ClientError as error:
            if not self._lacks_key(error):
                raise
        found = self._described(arn, includedData="METADATA_ONLY")
        return {**found, _LEFT_OUT: True} if found is not None else None

    def _described(self, arn: str, **more: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self.twice(self._client.describe_execution, executionArn=arn, **more)
        except ClientError as error:
            if code_of(error) == "ExecutionDoesNotExist":
                return None
            raise
        return found

    def _lacks_key(self, error: ClientError) -> bool:
        return code_of(error).startswith("Kms") and code_of(error) not in self.throttled


def input_of(run: Run, context: Mapping[str, Any]) -> str:
    """The input of an execution: the identity of the run, and its context or its data. Content that is too large for an
    input is left out; ``sluice.context_uri`` is the address of the context in the control bucket."""
    content = envelope.envelope(run, context)
    content["sluice"]["context_uri"] = run.request.context_uri
    text = json.dumps(content, sort_keys=True)  # ASCII: a character is a byte
    return text if len(text) <= MAX_BYTES else json.dumps({"sluice": content["sluice"]}, sort_keys=True)


def _expect_ended(error: ClientError) -> None:
    """Ignore the error of an execution that has ended already, because the next poll returns its end. Raises all
    others."""
    if code_of(error) not in ("ExecutionDoesNotExist", "ValidationException"):
        raise error


def build(clients: Clients, settings: Settings) -> StepFunctionsTarget:
    del settings
    return StepFunctionsTarget(clients.make("stepfunctions", **CALL), clients.now)
