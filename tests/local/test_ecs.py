"""Tasks of ECS on the local cloud: their states, events, processes, and refusals (`infra/local/ecs.py`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local import ecs as local_ecs

PLACE = {"networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-0a1b2c3d"]}}, "launchType": "FARGATE"}


class Cloud:
    """ministack's ECS in this process, with its events in the place of EventBridge."""

    def __init__(self, ecs: Any, logs: Any) -> None:
        self.ecs, self.logs, self.events = ecs, logs, list[dict[str, Any]]()
        bus = SimpleNamespace(_put_events=lambda sent, allow_aws_source: self.events.extend(sent["Entries"]))
        roles = SimpleNamespace(execution_credentials=lambda config: {"AWS_ACCESS_KEY_ID": config["Role"]})
        local_ecs.install(ecs, logs, bus, roles, "http://127.0.0.1:4566")
        self.call("CreateCluster", clusterName="jobs")

    def call(self, operation: str, **asked: Any) -> Any:
        status, _, body = self.ecs._ACTION_MAP[operation](asked)
        found = json.loads(body)
        return found if status == 200 else SimpleNamespace(**found)

    def define(self, family: str, *containers: dict[str, Any], **more: Any) -> None:
        defined = [{"name": "job", "image": "etl:1"} | each for each in containers]
        asked = {"family": family, "containerDefinitions": defined, "requiresCompatibilities": ["FARGATE"], **more}
        self.call("RegisterTaskDefinition", **asked)

    def start(self, family: str, token: str = "", **own: Any) -> Any:
        more = {"clientToken": token} if token else {}
        overrides = {"containerOverrides": [{"name": "job", **own}]}
        return self.call("RunTask", cluster="jobs", taskDefinition=family, overrides=overrides, **PLACE, **more)

    def ends(self, started: Any) -> dict[str, Any]:
        return self.reaches(started, lambda task: task["lastStatus"] == "STOPPED")

    def reaches(self, started: Any, met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        arn, end = started["tasks"][0]["taskArn"], time.monotonic() + 20
        while True:
            task: dict[str, Any] = self.call("DescribeTasks", cluster="jobs", tasks=[arn])["tasks"][0]
            if met(task):
                return task
            assert time.monotonic() < end, task
            time.sleep(0.02)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    from ministack.services import cloudwatch_logs, ecs

    for name in ("_get_docker", "_run_task_worker", "_maybe_mark_stopped", "_restore_state"):
        monkeypatch.setattr(ecs, name, getattr(ecs, name))  # restored at the end
    monkeypatch.setattr(ecs, "_ACTION_MAP", dict(ecs._ACTION_MAP))
    yield Cloud(ecs, cloudwatch_logs)
    for kept in (ecs._clusters, ecs._task_defs, ecs._task_def_latest, ecs._tasks, cloudwatch_logs._log_groups):
        kept.clear()


def test_a_task_runs_its_command_and_tells_each_state(cloud: Cloud) -> None:
    options = {"awslogs-group": "/jobs", "awslogs-stream-prefix": "etl", "awslogs-create-group": "true"}
    logged = {"logConfiguration": {"logDriver": "awslogs", "options": {**options, "awslogs-region": "us-east-1"}}}
    given = {"environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    cloud.define("etl", {"entryPoint": ["sh", "-c"], **given, **logged}, taskRoleArn="arn:aws:iam::000000000000:role/r")
    own = {"command": ['echo "$A $B $AWS_ACCESS_KEY_ID"'], "environment": [{"name": "B", "value": "3"}]}
    started = cloud.start("etl", **own)
    task = cloud.ends(started)
    assert (task["stopCode"], task["containers"][0]["exitCode"]) == ("EssentialContainerExited", 0)
    told = [json.loads(event["Detail"])["lastStatus"] for event in cloud.events]
    assert told == ["PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "STOPPED"]
    assert {event["DetailType"] for event in cloud.events} == {"ECS Task State Change"}
    stream = f"etl/job/{task['taskArn'].rpartition('/')[2]}"
    [line] = cloud.logs._log_groups["/jobs"]["streams"][stream]["events"]
    assert line["message"] == "1 3 arn:aws:iam::000000000000:role/r"


def test_a_failed_program_has_its_exit_code(cloud: Cloud) -> None:
    cloud.define("etl", {"command": ["sh", "-c", "exit 7"]})
    assert cloud.ends(cloud.start("etl"))["containers"][0]["exitCode"] == 7


def test_an_essential_container_ends_the_others(cloud: Cloud) -> None:
    cloud.define("two", {"command": ["true"]}, {"name": "proxy", "command": ["sleep", "600"]})
    codes = [each["exitCode"] for each in cloud.ends(cloud.start("two"))["containers"]]
    assert codes == [0, 128 + 15]


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        ({}, "CannotPullContainerError: the local cloud pulls no image, and does not know the command of etl:1"),
        ({"command": ["no-such-program"]}, 'CannotStartContainerError: exec: "no-such-program": executable file not'),
    ],
)
def test_what_is_not_here_is_the_reason_of_the_stop(cloud: Cloud, container: dict[str, Any], reason: str) -> None:
    cloud.define("etl", container)
    task = cloud.ends(cloud.start("etl"))
    assert task["stopCode"] == "TaskFailedToStart" and task["stoppedReason"].startswith(reason)
    assert "startedAt" not in task


def test_a_stop_kills_the_program(cloud: Cloud) -> None:
    cloud.define("etl", {"command": ["sleep", "600"]})
    started = cloud.start("etl")
    running = cloud.reaches(started, lambda task: task["lastStatus"] == "RUNNING")
    answer = cloud.call("StopTask", cluster="jobs", task=running["taskArn"], reason="wrong day")
    assert (answer["task"]["lastStatus"], answer["task"]["desiredStatus"]) == ("RUNNING", "STOPPED")
    task = cloud.ends(started)
    assert (task["stopCode"], task["stoppedReason"]) == ("UserInitiated", "wrong day")
    assert task["containers"][0]["exitCode"] == 128 + 15
    early = cloud.start("etl")
    cloud.call("StopTask", cluster="jobs", task=early["tasks"][0]["taskArn"])
    assert "startedAt" not in cloud.ends(early), "it was stopped before it began"


def test_a_token_starts_one_task(cloud: Cloud) -> None:
    cloud.define("etl", {"command": ["true"]})
    first, again = cloud.start("etl", "a"), cloud.start("etl", "a")
    assert [task["taskArn"] for task in first["tasks"]] == [task["taskArn"] for task in again["tasks"]]
    other = cloud.start("etl", "a", command=["false"])
    assert other.resourceIds == [first["tasks"][0]["taskArn"]]
    assert cloud.start("etl", "b")["tasks"][0]["taskArn"] != first["tasks"][0]["taskArn"]
    cloud.ends(first)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"startedBy": "a b"}, "InvalidParameterException"),
        ({"cluster": "other"}, "ClusterNotFoundException"),
        ({"taskDefinition": "other"}, "ClientException"),
        ({"networkConfiguration": None}, "InvalidParameterException"),
        ({"overrides": {"containerOverrides": [{"name": "other"}]}}, "InvalidParameterException"),
        (
            {"overrides": {"containerOverrides": [{"name": "job", "command": ["x" * 9_000]}]}},
            "InvalidParameterException",
        ),
    ],
)
def test_a_task_that_ecs_refuses_is_refused_here(cloud: Cloud, changed: dict[str, Any], code: str) -> None:
    cloud.define("etl", {"command": ["true"]})
    asked = {"cluster": "jobs", "taskDefinition": "etl", **PLACE, **changed}
    answer = cloud.call("RunTask", **{name: value for name, value in asked.items() if value is not None})
    assert getattr(answer, "__type") == code


def test_a_task_beyond_the_capacity_is_a_failure(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_ecs, "MAX_TASKS", 0)
    cloud.define("etl", {"command": ["true"]})
    answer = cloud.start("etl")
    assert (answer["tasks"], answer["failures"][0]["reason"]) == ([], local_ecs.NO_CAPACITY)


def test_a_task_that_the_local_cloud_cut_off_has_an_end(cloud: Cloud) -> None:
    kept = {"tasks": {"arn:aws:ecs:us-east-1:000000000000:task/jobs/1": {"lastStatus": "RUNNING", "version": 3}}}
    cloud.ecs._restore_state(kept)
    [task] = [task for _, task in cloud.ecs._tasks.all_items()]
    assert (task["lastStatus"], task["stopCode"], bool(task["stoppedAt"])) == ("STOPPED", "InfrastructureHealth", True)


@pytest.mark.parametrize(
    ("operation", "asked", "resource", "cluster"),
    [
        ("RunTask", {"cluster": "jobs", "taskDefinition": "etl:3"}, "task-definition/etl:3", "jobs"),
        (
            "StopTask",
            {"cluster": "jobs", "task": "arn:aws:ecs:us-east-1:000000000000:task/jobs/1"},
            "task/jobs/1",
            "jobs",
        ),
        ("CreateCluster", {"clusterName": "jobs"}, "*", None),
    ],
)
def test_a_call_is_authorized_as_aws_does(operation: str, asked: dict[str, Any], resource: str, cluster: Any) -> None:
    from ministack.core import iam_actions, responses

    changed = SimpleNamespace(
        **{name: getattr(iam_actions, name) for name in ("extract_resource_arn", "request_tag_context")}
    )
    local_ecs.authorize(changed, responses)
    body = json.dumps(asked).encode()
    headers = {"x-amz-target": f"AmazonEC2ContainerServiceV20141113.{operation}"}
    found = changed.extract_resource_arn("ecs", "POST", "/", headers, body, {}, "us-east-1", "000000000000")
    assert found.endswith(resource)
    context = changed.request_tag_context("ecs", f"ecs:{operation}", body, {})
    assert context.get("ecs:cluster") == (cluster and f"arn:aws:ecs:us-east-1:000000000000:cluster/{cluster}")
