"""Step Functions as a target: start, poll, find and stop executions.

The name of an execution follows from the attempt, and Step Functions starts one execution for a name. A repeated call
with the same input returns the same execution while it runs. Any other call fails with ``ExecutionAlreadyExists``.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets import envelope
from chalicelib.aws.targets.aws_errors import code_of, is_no_answer, message_of, twice
from chalicelib.aws.targets.clients import Clients, Now
from chalicelib.aws.targets.envelope import MAX_BYTES
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.results import Result
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, Started
from chalicelib.core.targets.step_functions import (
    STOPPED,
    execution_arn,
    execution_name,
    result_of,
    run_name_of,
    update_of,
)
from chalicelib.settings import Settings

R = TypeVar("R")

UNKNOWN = "Step Functions knows no such execution any more"
# The request can never succeed unchanged. An error in none of these lists may pass; it counts as refused for now.
_NEVER = {
    *("AccessDeniedException", "InvalidArn", "InvalidExecutionInput", "InvalidName", "StateMachineDeleting"),
    *("StateMachineDoesNotExist", "StateMachineTypeNotSupported", "ValidationException"),
    *("KmsAccessDeniedException", "KmsInvalidStateException"),
}
_NO_ANSWER = {"InternalFailure", "InternalServerError", "ServiceUnavailable", "RequestTimeout"}
_THROTTLED = {"ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "KmsThrottlingException"}
# DescribeExecution is eventually consistent: a new execution may be missing. After this time, a missing one is lost.
FINAL_AFTER: Millis = 2 * MINUTE
BETWEEN_QUESTIONS = 0.1  # seconds, when many runs are polled
BETWEEN_ATTEMPTS = 0.2  # seconds, before the repeat of a call without an answer
MAX_CAUSE = 32_768
UNREADABLE = Result(refused="the output could not be read: the KMS key of the state machine is unusable")
_LEFT_OUT = "left_out"  # of an execution: it was read without its encrypted fields

# A start call answers within a second. After the timeout the next call has the same name.
CALL: dict[str, Any] = {"connect_timeout": 2, "read_timeout": 6, "retries": {"total_max_attempts": 1}}


class StepFunctionsTarget:
    def __init__(self, client: Any, now: Now, pause: Callable[[float], None] = time.sleep) -> None:
        self._client, self._now, self._pause = client, now, pause

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            answer = self._client.start_execution(
                stateMachineArn=run.request.target["state_machine"],
                name=execution_name(run),
                input=input_of(run, context),
            )
        except ClientError as error:
            return self._existing(run) if code_of(error) == "ExecutionAlreadyExists" else _refusal(error)
        except BotoCoreError as error:
            return NoAnswer(f"StartExecution gave no answer: {error}")
        if ":express:" in answer["executionArn"]:
            return Never("expected a standard state machine, got an express one: its execution cannot be followed")
        return Started(answer["executionArn"])

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Start runs one by one: StartExecution has no batch form."""
        return [self.start(run, context) for run, context in calls]

    def _existing(self, run: Run) -> Answer:
        """The answer for an execution that an earlier call has started. The execution has ended since, or the earlier
        call was made by another release and had another input."""
        try:
            found = self.find(run)
        except (BotoCoreError, ClientError) as error:
            return NoAnswer(f"the execution exists, and DescribeExecution gave no answer: {error}")
        return Started(found) if found is not None else NoAnswer("the execution exists, and is not shown yet")

    def status(self, run: Run) -> RunUpdate | None:
        if run.target_id is None:
            return None
        try:
            found = self._describe(run.target_id)
        except ClientError as error:
            if code_of(error) in _THROTTLED:
                return None  # throttled: the next check polls this run again
            raise
        if found is None:
            return self._unknown(run)
        began, ended = _instant(found["startDate"]), _instant(found.get("stopDate") or found["startDate"])
        result = UNREADABLE if found.get(_LEFT_OUT) else result_of(found.get("output"))
        return update_of(run.target_id, found["status"], began, ended, found.get("error"), found.get("cause"), result)

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        """Poll runs one by one, because a listing has neither error nor cause. The pauses keep to the rate that
        DescribeExecution sustains."""
        answers = []
        for number, run in enumerate(runs):
            self._pause(BETWEEN_QUESTIONS if number else 0)
            answers.append(self.status(run))
        return answers

    def find(self, run: Run) -> str | None:
        arn = execution_arn(run)
        return arn if self._describe(arn) is not None else None

    def cancel(self, run: Run) -> None:
        why = {"error": STOPPED, "cause": run.reason.text[:MAX_CAUSE]}
        try:
            self._twice(self._client.stop_execution, executionArn=run.target_id, **why)
        except ClientError as error:
            if not code_of(error).startswith("Kms") or code_of(error) in _THROTTLED:
                _expect_ended(error)
                return
            # Step Functions cannot encrypt error and cause, because their KMS key is unusable. Without them it needs
            # no key.
            self._stop_without_reason(run)

    def run_name(self, target_id: str) -> str | None:
        found = self._describe(target_id)
        return run_name_of(str(found.get("name")), found.get("input")) if found is not None else None

    def _stop_without_reason(self, run: Run) -> None:
        try:
            self._twice(self._client.stop_execution, executionArn=run.target_id)
        except ClientError as error:
            _expect_ended(error)

    def _unknown(self, run: Run) -> RunUpdate | None:
        """The update of a run whose execution is missing: lost, or None shortly after the start. Executions are kept
        for 90 days, so later an execution is missing only if a user has deleted its state machine."""
        now = self._now()
        first = run.start_requested_at if run.start_requested_at is not None else run.claimed_at
        return RunUpdate("FAILED", now, UNKNOWN, run.target_id, outcome="lost") if now - first >= FINAL_AFTER else None

    def _describe(self, arn: str) -> Mapping[str, Any] | None:
        """The execution; None if there is none. If its KMS key is unusable, the encrypted fields are left out."""
        try:
            return self._described(arn)
        except ClientError as error:
            if not code_of(error).startswith("Kms") or code_of(error) in _THROTTLED:
                raise
        found = self._described(arn, includedData="METADATA_ONLY")
        return {**found, _LEFT_OUT: True} if found is not None else None

    def _described(self, arn: str, **more: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self._twice(self._client.describe_execution, executionArn=arn, **more)
        except ClientError as error:
            if code_of(error) == "ExecutionDoesNotExist":
                return None
            raise
        return found

    def _twice(self, call: Callable[..., R], **asked: Any) -> R:
        return twice(lambda: self._pause(BETWEEN_ATTEMPTS), _NO_ANSWER, call, **asked)


def input_of(run: Run, context: Mapping[str, Any]) -> str:
    """The input of an execution: the identity of the run, and its context or its data. Content that is too large for an
    input is left out; ``sluice.context_uri`` is the address of the context in the control bucket."""
    content = envelope.envelope(run, context)
    content["sluice"]["context_uri"] = run.request.context_uri
    text = json.dumps(content, sort_keys=True)  # ASCII: a character is a byte
    return text if len(text) <= MAX_BYTES else json.dumps({"sluice": content["sluice"]}, sort_keys=True)


def _refusal(error: ClientError) -> Answer:
    code = code_of(error)
    if is_no_answer(error, _NO_ANSWER):
        return NoAnswer(f"StartExecution gave no answer: {code}")
    reason = denials.with_remedy(code, message_of(error))
    if code in _NEVER:
        return Never(f"Step Functions refused the start: {reason}")
    return NotNow(f"Step Functions refused for now: {reason}")


def _expect_ended(error: ClientError) -> None:
    """Ignore the error of an execution that has ended already, because the next poll returns its end. Raises all
    others."""
    if code_of(error) not in ("ExecutionDoesNotExist", "ValidationException"):
        raise error


def _instant(at: datetime) -> Instant:
    return round(at.timestamp() * 1000)


def build(clients: Clients, settings: Settings) -> StepFunctionsTarget:
    del settings
    return StepFunctionsTarget(clients.make("stepfunctions", **CALL), clients.now)
