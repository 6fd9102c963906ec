# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""On the local cloud a run is an execution of a real state machine, and its end comes by EventBridge (W16)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from sluice.client import Client
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud

# Seconds. Silent runs are polled after two minutes, so an earlier update came from an event.
PATIENCE = 110.0
THEN = "$.context.properties.then"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
DEFINITION = {
    "StartAt": "Choose",
    "States": {
        "Choose": {
            "Type": "Choice",
            "Choices": [
                {"Variable": THEN, "StringEquals": "fail", "Next": "Broken"},
                {"Variable": THEN, "StringEquals": "wait", "Next": "Later"},
            ],
            "Default": "Done",
        },
        "Broken": {"Type": "Fail", "Error": "NoDisk", "Cause": "the disk is full"},
        "Later": {"Type": "Wait", "Seconds": 600, "Next": "Done"},
        "Done": {"Type": "Succeed"},
    },
}


def until(poll: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while not (seen := poll()):
        assert time.monotonic() < end, f"expected {what} within {PATIENCE:g} s"
        time.sleep(0.2)
    return seen


class Machine:
    """A state machine with an alias, and a schedule that starts it."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.states = endpoints.client("stepfunctions")
        self.iam, self.name = endpoints.client("iam"), f"sluice-target-{uuid.uuid4().hex[:8]}"
        role = self.iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
        made = self.states.create_state_machine(
            name=self.name, definition=json.dumps(DEFINITION), roleArn=role, publish=True
        )
        self.arn = made["stateMachineArn"]
        version = made.get("stateMachineVersionArn") or self.states.publish_state_machine_version(
            stateMachineArn=self.arn
        )["stateMachineVersionArn"]  # fmt: skip
        self.alias = self.states.create_state_machine_alias(
            name="PROD", routingConfiguration=[{"stateMachineVersionArn": version, "weight": 100}]
        )["stateMachineAliasArn"]
        self.client = Client.from_environment()
        self.base = f"/v1/namespaces/w16-{uuid.uuid4().hex[:8]}"
        self.client.put(self.base, {})
        never = {"type": "time", "expression": "0 0 1 1 *"}  # it is started by hand
        self.client.put(
            f"{self.base}/apps/etl",
            {
                "workflows": {"load": {"target": {"type": "step_functions", "state_machine": self.alias}}},
                "schedules": {"load": {"workflow": "load", "enabled": True, "trigger": never}},
            },
        )

    def start(self, then: str) -> str:
        asked = {"properties": {"then": then}}
        return str(self.client.post(f"{self.base}/apps/etl/schedules/load/run", asked)["job_id"])

    def reaches(self, run_id: str, state: str) -> dict[str, Any]:
        def poll() -> dict[str, Any] | None:
            found = self.client.get(f"{self.base}/apps/etl/schedules/load/runs", {"limit": 10})["items"]
            return next((run for run in found if run["run_id"] == run_id and run["state"] == state), None)

        run: dict[str, Any] = until(poll, f"the run {state}")
        return run


@pytest.fixture
def machine(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    made = Machine(cloud)
    yield made
    made.client.request("DELETE", f"{made.base}/apps/etl")
    made.states.delete_state_machine(stateMachineArn=made.arn)
    made.iam.delete_role(RoleName=made.name)


def test_w16_a_run_ends_as_its_execution_does(machine: Machine) -> None:
    well = machine.start("end")
    done = machine.reaches(well, "SUCCEEDED")
    failed = machine.reaches(machine.start("fail"), "FAILED")
    assert failed["reason"] == "NoDisk: the disk is full"
    answer = machine.states.describe_execution(executionArn=done["target_id"])
    assert json.loads(answer["input"])["sluice"]["event_id"] == well
    started = machine.states.list_executions(stateMachineArn=machine.arn)["executions"]
    assert {each["executionArn"] for each in started} == {done["target_id"], failed["target_id"]}


def test_w6_a_cancelled_run_stops_its_execution_in_local_cloud(machine: Machine) -> None:
    run_id = machine.start("wait")
    arn = machine.reaches(run_id, "RUNNING")["target_id"]
    machine.client.post(f"/v1/runs/{run_id}/cancel", {})
    machine.reaches(run_id, "CANCELLED")
    answer = machine.states.describe_execution(executionArn=arn)
    assert (answer["status"], answer["error"]) == ("ABORTED", "Sluice.Stopped")
