"""On the local cloud a run is a task of ECS: a process, started with the target role of its namespace (W22)."""

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


class Tasks(Team):
    """A namespace with a cluster and a task definition, whose program has a role for the control bucket."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints)
        self.ecs, self.logs = endpoints.client("ecs"), endpoints.client("logs")
        self.family, self.task_role = f"sluice-target-{self.name}", f"task-{self.name}"
        self.ecs.create_cluster(clusterName=self.family)
        trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
        role = self.iam.create_role(RoleName=self.task_role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        bucket = f"arn:aws:s3:::{endpoints.outputs['ControlBucket']}"
        own = [("s3:GetObject", f"{bucket}/context/*"), ("s3:PutObject", f"{bucket}/results/*")]
        allowed = [{"Effect": "Allow", "Action": action, "Resource": resource} for action, resource in own]
        policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
        self.iam.put_role_policy(RoleName=self.task_role, PolicyName="own", PolicyDocument=policy)
        options = {"awslogs-group": f"/{self.name}", "awslogs-stream-prefix": "etl", "awslogs-region": "us-east-1"}
        log = {"logDriver": "awslogs", "options": {**options, "awslogs-create-group": "true"}}
        container = {"name": "job", "image": "etl:1", "entryPoint": ["python", "-c"], "logConfiguration": log}
        self.ecs.register_task_definition(
            family=self.family,
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu="256",
            memory="512",
            taskRoleArn=role,
            containerDefinitions=[container],
        )
        arn = f"arn:aws:ecs:{ACCOUNT}"
        self.assumes(
            cluster=[f"{arn}:cluster/{self.family}"],
            task_definition=[f"{arn}:task-definition/{self.family}"],
            task_role=[role],
        )

    def target(self, *command: str) -> dict[str, Any]:
        place = {"cluster": self.family, "task_definition": self.family, "subnets": ["subnet-0a1b2c3d"]}
        return {"type": "ecs", **place, "container": "job", "command": [*command]}

    def lines(self, task: str) -> list[str]:
        stream = f"etl/job/{task.rpartition('/')[2]}"
        events = self.logs.get_log_events(logGroupName=f"/{self.name}", logStreamName=stream)["events"]
        return [event["message"] for event in events]

    def remove(self) -> None:
        super().remove()
        self.iam.delete_role_policy(RoleName=self.task_role, PolicyName="own")
        self.iam.delete_role(RoleName=self.task_role)
        self.ecs.delete_cluster(cluster=self.family)


@pytest.fixture
def team(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tasks]:
    with Tasks.living(cloud, monkeypatch) as made:
        yield made


def test_w22_a_run_is_a_program_that_reads_its_context(team: Tasks) -> None:
    team.runs(team.target(PROGRAM, "{{properties.day}}", "0"), properties={"day": "monday"})
    done = team.run(lambda run: run["state"] == "SUCCEEDED")
    assert team.lines(done["target_id"]) == ["day monday"]
    whole = team.client.get(f"/v1/runs/{done['run_id']}")
    assert whole["result"] == {"run": done["run_id"]}
    assert whole["billed"]["cost_usd"] > 0


def test_w22_a_failed_program_a_missing_one_and_a_cancel(team: Tasks) -> None:
    team.runs(team.target(PROGRAM, "monday", "4"))
    assert team.run(lambda run: run["state"] == "FAILED")["reason"] == "container job exited with code 4"

    team.runs({**team.target(), "task_definition": f"{team.family}:9"})
    missing = team.run(lambda run: run["state"] == "FAILED" and "refused" in run["reason"])
    assert "ECS refused the start: " in missing["reason"]

    team.runs(team.target("import time; time.sleep(600)"))
    going = team.run(lambda run: run["state"] == "RUNNING")
    team.client.post(f"/v1/runs/{going['run_id']}/cancel", {})
    team.run(lambda run: run["state"] == "CANCELLED")
    [task] = team.ecs.describe_tasks(cluster=team.family, tasks=[going["target_id"]])["tasks"]
    assert (task["stopCode"], task["containers"][0]["exitCode"]) == ("UserInitiated", 128 + 15)
