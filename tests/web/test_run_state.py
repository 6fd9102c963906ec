"""State changes of job runs of EMR Serverless and of executions of Step Functions, as EventBridge sends them."""

import json
from typing import Any

import boto3
import pytest

from chalicelib import handlers
from chalicelib.wiring import ports
from tests.support.state_machines import Execution, event_of
from tests.web.conftest import APP, Api

ONE = f"{APP}/schedules/nightly"


def change(job_run_id: str, state: str, application: str | None = None) -> dict[str, Any]:
    """A state change of a job run.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
    """
    return {
        "version": "0",
        "id": "00df3ec6-5da1-36e6-ab71-20f0de68f8a0",
        "detail-type": "EMR Serverless Job Run State Change",
        "source": "aws.emr-serverless",
        "account": "123456789012",
        "time": "2099-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {
            "jobRunId": job_run_id,
            "applicationId": application or ports().settings.emr_application_id,
            "arn": f"arn:aws:emr-serverless:us-east-1:123456789012:/applications/x/jobruns/{job_run_id}",
            "releaseLabel": "emr-7.1.0",
            "state": state,
            "previousState": "SUBMITTED",
            "createdBy": "arn:aws:sts::123456789012:assumed-role/check/check",
            "updatedAt": "2099-01-01T00:00:00.000Z",
            "createdAt": "2098-12-31T23:59:00.000Z",
        },
    }


def test_a_state_change_moves_its_run(api: Api) -> None:
    api.schedule("nightly", workflow="clean")
    job_id = api.post(f"{ONE}/run")["job_id"]
    api.work()
    run = api.get(f"/v1/runs/{job_id}")
    assert run["state"] == "STARTING"
    job_run_id = run["target_id"].partition("/")[2]

    assert handlers.run_state(change(job_run_id, "RUNNING")) == f"run {job_id} is RUNNING"
    assert handlers.run_state(change(job_run_id, "SUCCESS")) == f"run {job_id} is SUCCEEDED"
    assert handlers.run_state(change(job_run_id, "RUNNING")) == f"run {job_id} is already past RUNNING"

    run = api.get(f"/v1/runs/{job_id}")
    assert (run["state"], run["ended_at"]) == ("SUCCEEDED", "2099-01-01T00:00:00.000Z")


def test_w16_a_status_of_an_execution_moves_its_run(api: Api) -> None:
    states = boto3.client("stepfunctions")
    definition = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
    machine = states.create_state_machine(
        name="sluice-target-etl", definition=definition, roleArn="arn:aws:iam::123456789012:role/machine"
    )["stateMachineArn"]
    api.put(f"{APP}/workflows/etl", {"target": {"type": "step_functions", "state_machine": machine}})
    api.schedule("nightly", workflow="etl")
    job_id = api.post(f"{ONE}/run", {"properties": {"depth": 7}})["job_id"]
    api.work()
    arn = api.get(f"/v1/runs/{job_id}")["target_id"]
    made = states.describe_execution(executionArn=arn)
    began = round(made["startDate"].timestamp() * 1000)
    execution = Execution(arn, machine, made["name"], made["input"], began)
    assert json.loads(made["input"])["context"]["properties"] == {"depth": 7}

    invoke = api.client.lambda_.invoke
    assert invoke("run_state", event_of(execution, began)).payload == f"run {job_id} is RUNNING"
    execution.status, execution.ended = "FAILED", began + 1
    execution.error, execution.cause = "NoDisk", "the disk is full"
    assert invoke("run_state", event_of(execution, began)).payload == f"run {job_id} is FAILED"
    assert api.get(f"/v1/runs/{job_id}")["reason"] == "NoDisk: the disk is full"

    theirs = Execution(f"{arn}x", machine, f"{made['name']}x", "{}", began)
    answer = invoke("run_state", event_of(theirs, began)).payload
    assert answer == f"{arn}x of step_functions was not started by Sluice"


def test_a_state_change_of_a_foreign_job_changes_nothing(api: Api) -> None:
    emr = boto3.client("emr-serverless")
    theirs = emr.start_job_run(
        applicationId=ports().settings.emr_application_id,
        clientToken="theirs",
        executionRoleArn="arn:aws:iam::123456789012:role/job",
        jobDriver={"sparkSubmit": {"entryPoint": "s3://code/theirs.py"}},
        name="theirs",
    )["jobRunId"]
    before = api.everything()
    for job_run_id in (theirs, "00nosuchjobrun"):
        answer = handlers.run_state(change(job_run_id, "SUCCESS"))
        expected = f"{ports().settings.emr_application_id}/{job_run_id} of emr_serverless was not started by Sluice"
        assert answer == expected
    assert handlers.run_state(change(theirs, "SCHEDULED")) == "state SCHEDULED changes nothing"
    assert api.everything() == before


@pytest.mark.parametrize("missing", ["detail", "time", "source"])
def test_an_incomplete_state_change_is_error_so_that_it_is_kept(api: Api, missing: str) -> None:
    """Lambda retries it, and finally keeps it as a dead letter."""
    event = {name: value for name, value in change("x", "SUCCESS").items() if name != missing}
    with pytest.raises(KeyError):
        handlers.run_state(event)


def test_the_rule_lambdas_call_these_handlers(api: Api) -> None:
    invoke = api.client.lambda_.invoke
    assert "was not started by Sluice" in invoke("run_state", change("00nosuchjobrun", "SUCCESS")).payload
    assert set(invoke("tick", change("x", "x")).payload) == {"emitted", "soon", "hinted", "zones"}
