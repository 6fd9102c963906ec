"""A client of ECS in memory, with the calls of `aws/targets/ecs.py`. It checks each request against AWS's own rules,
and refuses as AWS does.

https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from chalicelib.core.instants import HOUR
from infra.local import service_model
from tests.support.state_machines import refused

PLACE = "arn:aws:ecs:us-east-1:000000000000"
TARGET = {
    "type": "ecs",
    "cluster": "sluice-target-jobs",
    "task_definition": "sluice-target-etl",
    "container": "job",
    "subnets": ["subnet-0a1b2c3d"],
}
KEPT = HOUR  # for so long ECS describes and lists a stopped task, and keeps its token
PULL = "CannotPullContainerError: pull image manifest has been retried 5 time(s): etl:9: not found"


@dataclass
class Task:
    arn: str
    asked: dict[str, Any]
    created: int
    status: str = "PROVISIONING"
    pulled: int | None = None  # when the pull of its image began
    began: int | None = None
    ended: int | None = None
    exit_code: int | None = None
    stop_code: str = ""
    stopped_reason: str = ""
    why: str = ""  # the reason of its container
    shown: bool = True  # by ListTasks and DescribeTasks, which are eventually consistent

    @property
    def variables(self) -> dict[str, str]:
        [own] = self.asked["overrides"]["containerOverrides"]
        return {each["name"]: each["value"] for each in own["environment"]}


@dataclass
class Tasks:
    """``refusals`` are errors to raise instead of answers, the first one first, and ``failures`` the failures of the
    next answers of RunTask. ``lose_answers`` is the number of starts that succeed without an answer."""

    clock: Any
    tasks: dict[str, Task] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    lose_answers: int = 0
    empty_pages: int = 0  # of a list, before its first task
    calls: list[str] = field(default_factory=list)

    def run_task(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("RunTask", asked)
        if self.failures:
            return {"tasks": [], "failures": [self.failures.pop(0)]}
        made = self._known(asked)
        if made is None:
            cluster = asked["cluster"].rpartition("/")[2]
            made = Task(f"{PLACE}:task/{cluster}/{len(self.tasks):032x}", asked, self.clock.now())
            self.tasks[made.arn] = made
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://ecs.example")
        return {"tasks": [described(made)], "failures": []}

    def describe_tasks(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("DescribeTasks", asked)
        found = [self.tasks[arn] for arn in asked["tasks"] if arn in self.tasks and self._is_shown(self.tasks[arn])]
        lacking = [arn for arn in asked["tasks"] if arn not in {task.arn for task in found}]
        assert all(f":task/{asked['cluster']}/" in arn for arn in asked["tasks"]), "ECS knows tasks by their cluster"
        return {
            "tasks": [described(task) for task in found],
            "failures": [{"arn": arn, "reason": "MISSING"} for arn in lacking],
        }

    def list_tasks(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("ListTasks", asked)
        page = int(asked.get("nextToken", 0))
        if page < self.empty_pages:
            return {"taskArns": [], "nextToken": str(page + 1)}
        cluster, wants = asked["cluster"].rpartition("/")[2], asked.get("desiredStatus", "RUNNING")
        arns = [
            task.arn
            for task in self.tasks.values()
            if f":task/{cluster}/" in task.arn
            and self._is_shown(task)
            and task.asked["startedBy"] == asked["startedBy"]
            and (task.status == "STOPPED") == (wants == "STOPPED")
        ]
        return {"taskArns": arns}

    def stop_task(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StopTask", asked)
        task = self.tasks.get(asked["task"])
        if task is None or not self._is_shown(task):
            raise refused("InvalidParameterException", "The referenced task was not found.")
        if task.status != "STOPPED":
            self.end(task, 143, "UserInitiated", asked.get("reason", "Task stopped by user"))
        return {"task": described(task)}

    def begin(self, task: Task) -> None:
        """Its image is pulled, and its containers run."""
        task.status, task.pulled, task.began = "RUNNING", task.pulled or self.clock.now(), self.clock.now()

    def end(
        self, task: Task, exit_code: int | None = 0, code: str = "EssentialContainerExited", reason: str = ""
    ) -> None:
        task.status, task.ended, task.exit_code, task.stop_code = "STOPPED", self.clock.now(), exit_code, code
        task.stopped_reason = reason or "Essential container in task exited"

    def fails_to_start(self, task: Task, reason: str = PULL) -> None:
        task.pulled = self.clock.now()
        self.end(task, None, "TaskFailedToStart", reason)

    def end_all(self, exit_code: Callable[[Task], int]) -> None:
        """Every task that has not ended ends."""
        for each in self.tasks.values():
            if each.status != "STOPPED":
                self.end(each, exit_code(each))

    def _known(self, asked: dict[str, Any]) -> Task | None:
        """The task of an earlier call with the token. A token ends an hour after its task."""
        for task in self.tasks.values():
            if (task.asked["cluster"], task.asked["clientToken"]) != (asked["cluster"], asked["clientToken"]):
                continue
            if task.ended is not None and self.clock.now() - task.ended >= KEPT:
                continue
            if task.asked != asked:
                raise conflict(task.arn)
            return task
        return None

    def _is_shown(self, task: Task) -> bool:
        return task.shown and (task.ended is None or self.clock.now() - task.ended < KEPT)

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems = service_model.problems("ecs", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def conflict(arn: str) -> ClientError:
    error = refused("ConflictException", "The clientToken is in use by another RunTask request")
    error.response["resourceIds"] = [arn]
    return error


def described(task: Task, instant: Callable[[int], Any] | None = None) -> dict[str, Any]:
    """A task as DescribeTasks shows it. ``instant`` writes its instants; by default as boto3 returns them."""
    at = instant or _date
    container: dict[str, Any] = {"name": task.asked["overrides"]["containerOverrides"][0]["name"]}
    container["lastStatus"] = task.status if task.status in ("RUNNING", "STOPPED") else "PENDING"
    if task.exit_code is not None:
        container["exitCode"] = task.exit_code
    if task.why:
        container["reason"] = task.why
    cluster = task.arn.split("/")[1]
    shown: dict[str, Any] = {
        "taskArn": task.arn,
        "clusterArn": f"{PLACE}:cluster/{cluster}",
        "taskDefinitionArn": f"{PLACE}:task-definition/sluice-target-etl:3",
        "containers": [{"name": "sidecar", "lastStatus": container["lastStatus"], "exitCode": 137}, container],
        "cpu": "1024",
        "memory": "2048",
        "ephemeralStorage": {"sizeInGiB": 20},
        "createdAt": at(task.created),
        "desiredStatus": "STOPPED" if task.status == "STOPPED" else "RUNNING",
        "lastStatus": task.status,
        "launchType": "FARGATE",
        "overrides": json.loads(json.dumps(task.asked["overrides"])),
        "startedBy": task.asked["startedBy"],
        "version": 3,
    }
    for name, when in (("pullStartedAt", task.pulled), ("startedAt", task.began), ("stoppedAt", task.ended)):
        if when is not None:
            shown[name] = at(when)
    if task.status == "STOPPED":
        shown |= {"stopCode": task.stop_code, "stoppedReason": task.stopped_reason}
    return shown


def event_of(task: Task, now: int, **changed: Any) -> dict[str, Any]:
    """The event of a state change. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html"""
    return {
        "version": "0",
        "id": "3317b2af-7005-947d-b652-f55e762e571a",
        "detail-type": "ECS Task State Change",
        "source": "aws.ecs",
        "account": "000000000000",
        "time": _text(now),
        "region": "us-east-1",
        "resources": [task.arn],
        "detail": {**described(task, _text), **changed},
    }


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


def _text(instant: int) -> str:
    return _date(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")
