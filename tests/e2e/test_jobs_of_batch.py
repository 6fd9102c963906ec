"""On the local cloud a run is a job of AWS Batch: a process, submitted with the target role of its namespace (W22)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from tests.e2e.test_target_roles import ACCOUNT, Team

pytestmark = [pytest.mark.cloud, pytest.mark.long]

PROGRAM = """
import sluice_job, sys
context = sluice_job.RunContext.from_environment()
print("day", sys.argv[1])
sluice_job.result({"run": context.run_id})
sys.exit(int(sys.argv[2]))
"""
TRUST = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
SIZES = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "2048"}]


class Jobs(Team):
    """A namespace with a job queue and a job definition, whose program has a role for the control bucket."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints)
        self.batch, self.logs = endpoints.client("batch"), endpoints.client("logs")
        self.own, self.job_role = f"sluice-target-{self.name}", f"job-{self.name}"
        self.batch.create_compute_environment(
            computeEnvironmentName=self.own, type="MANAGED", computeResources={
                "type": "FARGATE", "maxvCpus": 4, "subnets": ["subnet-0a1b2c3d"]},
        )  # fmt: skip
        order = [{"order": 1, "computeEnvironment": self.own}]
        self.batch.create_job_queue(jobQueueName=self.own, priority=1, computeEnvironmentOrder=order)
        trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
        role = self.iam.create_role(RoleName=self.job_role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        bucket = f"arn:aws:s3:::{endpoints.outputs['ControlBucket']}"
        needed = [("s3:GetObject", f"{bucket}/context/*"), ("s3:PutObject", f"{bucket}/results/*")]
        allowed = [{"Effect": "Allow", "Action": action, "Resource": resource} for action, resource in needed]
        policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
        self.iam.put_role_policy(RoleName=self.job_role, PolicyName="own", PolicyDocument=policy)
        self.batch.register_job_definition(
            jobDefinitionName=self.own,
            type="container",
            platformCapabilities=["FARGATE"],
            containerProperties={"image": "etl:1", "jobRoleArn": role, "resourceRequirements": SIZES},
        )
        arn = f"arn:aws:batch:{ACCOUNT}"
        queue, definition = [f"{arn}:job-queue/{self.own}"], [f"{arn}:job-definition/{self.own}"]
        self.assumes(job_queue=queue, job_definition=definition)

    def target(self, *arguments: str, **more: Any) -> dict[str, Any]:
        place = {"job_queue": self.own, "job_definition": self.own}
        return {"type": "batch", **place, "command": ["python", "-c", *arguments], **more}

    def job(self, job_id: str) -> dict[str, Any]:
        [found] = self.batch.describe_jobs(jobs=[job_id])["jobs"]
        return dict(found)

    def lines(self, job_id: str) -> list[str]:
        stream = self.job(job_id)["container"]["logStreamName"]
        events = self.logs.get_log_events(logGroupName="/aws/batch/job", logStreamName=stream)["events"]
        return [event["message"] for event in events]

    def remove(self) -> None:
        super().remove()
        self.iam.delete_role_policy(RoleName=self.job_role, PolicyName="own")
        self.iam.delete_role(RoleName=self.job_role)


@pytest.fixture
def team(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    with Jobs.living(cloud, monkeypatch) as made:
        yield made


def test_w22_a_run_is_a_batch_job_that_reads_its_context(team: Jobs) -> None:
    team.runs(team.target(PROGRAM, "{{properties.day}}", "0"), properties={"day": "monday"})
    done = team.run(lambda run: run["state"] == "SUCCEEDED")
    assert team.lines(done["target_id"]) == ["day monday"]
    whole = team.client.get(f"/v1/runs/{done['run_id']}")
    assert whole["result"] == {"run": done["run_id"]}
    assert whole["billed"]["cost_usd"] > 0


def test_w22_a_failed_job_a_closed_queue_and_a_cancel(team: Jobs) -> None:
    team.runs(team.target(PROGRAM, "monday", "4"))
    failed = team.run(lambda run: run["state"] == "FAILED")
    assert failed["reason"] == "Essential container in task exited (exit code 4)"

    team.batch.update_job_queue(jobQueue=team.own, state="DISABLED")
    team.runs(team.target("print(1)"))
    held = team.run(lambda run: "refused for now" in run["reason"])
    assert held["reason"].startswith(f"AWS Batch refused for now: Job queue {team.own} is not in state ENABLED")
    team.batch.update_job_queue(jobQueue=team.own, state="ENABLED")
    team.run(lambda run: run["run_id"] == held["run_id"] and run["state"] == "SUCCEEDED")

    team.runs(team.target("import time; time.sleep(600)"))
    going = team.run(lambda run: run["state"] == "RUNNING")
    team.client.post(f"/v1/runs/{going['run_id']}/cancel", {})
    team.run(lambda run: run["state"] == "CANCELLED")
    job = team.job(going["target_id"])
    assert (job["status"], job["isTerminated"], job["container"]["exitCode"]) == ("FAILED", True, 128 + 15)
