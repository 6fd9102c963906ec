"""On the local cloud a run is a run of a Glue job: a script, started with the target role of its namespace (W22)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from tests.e2e.test_target_roles import ACCOUNT, Team

pytestmark = [pytest.mark.cloud, pytest.mark.long]

SCRIPT = """
import sys, time
from sluice_job import RunContext, result
context = RunContext.from_arguments("etl", sys.argv[1:])
then = context.text("then")
if then == "wait":
    time.sleep(600)
if then == "fail":
    sys.exit("no disk: " + sys.argv[sys.argv.index("--day") + 1])
result({"run": context.run_id})
"""
TRUST = {"Effect": "Allow", "Principal": {"Service": "glue.amazonaws.com"}, "Action": "sts:AssumeRole"}
LIBRARY = Path(__file__).parents[2] / "job_library" / "sluice_job.py"


class Jobs(Team):
    """A namespace with a Python shell job, whose script has a role for the control bucket."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(endpoints)
        self.glue, self.s3 = endpoints.client("glue"), endpoints.client("s3")
        self.job, self.job_role = f"sluice-target-{self.name}", f"job-{self.name}"
        trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
        role = self.iam.create_role(RoleName=self.job_role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        control = endpoints.outputs["ControlBucket"]
        own = [
            ("s3:GetObject", f"arn:aws:s3:::{control}/context/*"),
            ("s3:PutObject", f"arn:aws:s3:::{control}/results/*"),
        ]
        allowed = [{"Effect": "Allow", "Action": action, "Resource": resource} for action, resource in own]
        policy = json.dumps({"Version": "2012-10-17", "Statement": allowed})
        self.iam.put_role_policy(RoleName=self.job_role, PolicyName="own", PolicyDocument=policy)
        self.s3.create_bucket(Bucket=self.name)
        self.s3.put_object(Bucket=self.name, Key="etl.py", Body=SCRIPT.encode())
        self.s3.put_object(Bucket=self.name, Key="sluice_job.py", Body=LIBRARY.read_bytes())
        self.glue.create_job(
            Name=self.job,
            Role=role,
            Command={"Name": "pythonshell", "ScriptLocation": f"s3://{self.name}/etl.py"},
            DefaultArguments={"--extra-py-files": f"s3://{self.name}/sluice_job.py"},
            MaxRetries=0,
        )
        self.assumes(glue_job=[f"arn:aws:glue:{ACCOUNT}:job/{self.job}"])

    def ends(self, then: str, state: str) -> dict[str, Any]:
        target = {"type": "glue", "job": self.job, "arguments": {"--day": "{{properties.then}}day"}}
        self.runs(target, properties={"then": then})
        return self.run(lambda run: run["state"] == state)

    def remove(self) -> None:
        super().remove()
        self.iam.delete_role_policy(RoleName=self.job_role, PolicyName="own")
        self.iam.delete_role(RoleName=self.job_role)
        self.glue.delete_job(JobName=self.job)
        for key in ("etl.py", "sluice_job.py"):
            self.s3.delete_object(Bucket=self.name, Key=key)
        self.s3.delete_bucket(Bucket=self.name)


@pytest.fixture
def team(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    with Jobs.living(cloud, monkeypatch) as made:
        yield made


def test_w22_a_run_is_a_script_with_context_and_result(team: Jobs) -> None:
    done = team.ends("end", "SUCCEEDED")
    whole = team.client.get(f"/v1/runs/{done['run_id']}")
    assert whole["result"] == {"run": done["run_id"]}
    assert whole["billed"]["dpu_hours"] > 0
    assert team.ends("fail", "FAILED")["reason"] == "no disk: failday"
    [failed, first] = team.glue.get_job_runs(JobName=team.job)["JobRuns"]
    assert (failed["JobRunState"], f"{team.job}/{first['Id']}") == ("FAILED", done["target_id"])


def test_w22_a_cancelled_run_ends_its_script(team: Jobs) -> None:
    target = {"type": "glue", "job": team.job, "poll_every": "1m"}
    team.runs(target, properties={"then": "wait"})
    going = team.run(lambda run: run["target_id"] is not None)
    team.client.post(f"/v1/runs/{going['run_id']}/cancel", {})
    team.run(lambda run: run["state"] == "CANCELLED")
    [job_run] = team.glue.get_job_runs(JobName=team.job)["JobRuns"]
    assert job_run["JobRunState"] == "STOPPED"
