"""A client of Step Functions in memory, with the calls of `aws/targets/step_functions.py`. It checks each request
against AWS's own rules, and refuses as AWS does.

https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from infra.local import service_model

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:sluice-target-etl"
TARGET = {"type": "step_functions", "state_machine": MACHINE}


@dataclass
class Execution:
    arn: str
    machine: str
    name: str
    input: str
    began: int
    status: str = "RUNNING"
    ended: int | None = None
    error: str | None = None
    cause: str | None = None
    output: str | None = "{}"  # of one that succeeded
    shown: bool = True  # by DescribeExecution, which is eventually consistent


@dataclass
class StateMachines:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of
    starts that succeed without an answer. ``calls`` are the operations that were called.
    """

    clock: Any
    executions: dict[str, Execution] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    calls: list[str] = field(default_factory=list)

    def start_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StartExecution", asked)
        before, _, qualified = asked["stateMachineArn"].partition(":stateMachine:")
        arn = f"{before}:execution:{qualified.partition(':')[0]}:{asked['name']}"
        known = self.executions.get(arn)
        if known is not None and (known.status != "RUNNING" or known.input != asked["input"]):
            raise refused("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        made = known or Execution(arn, asked["stateMachineArn"], asked["name"], asked["input"], self.clock.now())
        self.executions[arn] = made
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://states.example")
        return {"executionArn": arn, "startDate": _date(made.began)}

    def describe_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("DescribeExecution", asked)
        found = self._found(asked["executionArn"])
        ended = {} if found.ended is None else {"stopDate": _date(found.ended)}
        answer = {"executionArn": found.arn, "stateMachineArn": found.machine, "name": found.name, **ended}
        answer |= {"status": found.status, "startDate": _date(found.began)}
        if asked.get("includedData") == "METADATA_ONLY":
            return answer
        why = {name: text for name, text in (("error", found.error), ("cause", found.cause)) if text is not None}
        output = {"output": found.output} if found.status == "SUCCEEDED" and found.output is not None else {}
        return {**answer, "input": found.input, **output, **why}

    def stop_execution(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StopExecution", asked)
        found = self._found(asked["executionArn"])
        if found.status == "RUNNING":
            self.end(found, "ABORTED", asked.get("error"), asked.get("cause"))
        return {"stopDate": _date(found.ended or 0)}

    def end(
        self,
        execution: Execution,
        status: str,
        error: str | None = None,
        cause: str | None = None,
        output: str | None = "{}",
    ) -> None:
        execution.status, execution.ended = status, self.clock.now()
        execution.error, execution.cause, execution.output = error, cause, output

    def end_all(self, status: Callable[[Execution], str]) -> None:
        """Every execution that has not ended ends."""
        for each in self.executions.values():
            if each.status == "RUNNING":
                self.end(each, status(each))

    def _found(self, arn: str) -> Execution:
        found = self.executions.get(arn)
        if found is None or not found.shown:
            raise refused("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return found

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems = service_model.problems("stepfunctions", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def event_of(execution: Execution, now: int, **changed: Any) -> dict[str, Any]:
    """The event of a status change. https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html"""
    detail = {
        "executionArn": execution.arn,
        "stateMachineArn": execution.machine.rsplit(":", 1)[0]
        if execution.machine.count(":") > 6
        else execution.machine,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.began,
        "stopDate": execution.ended,
        "input": execution.input,
        "inputDetails": {"included": True},
        "output": execution.output if execution.status == "SUCCEEDED" else None,
        "outputDetails": {"included": True} if execution.status == "SUCCEEDED" else None,
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        "redriveCount": 0,
        "redriveDate": None,
        "redriveStatus": "NOT_REDRIVABLE",
        "redriveStatusReason": "",
        "error": execution.error if execution.status in ("FAILED", "TIMED_OUT") else None,
        "cause": execution.cause if execution.status in ("FAILED", "TIMED_OUT") else None,
    }
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "000000000000",
        "time": _date(now).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "region": "us-east-1",
        "resources": [execution.arn],
        "detail": {**detail, **changed},
    }


def refused(code: str, message: str = "?", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "call")


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
