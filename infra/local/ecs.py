"""ECS on the local cloud: the containers of a task are processes (`containers.py`).

ministack runs tasks in Docker. Without it, it says at once that a task is RUNNING, and runs nothing. Here a task goes
through PROVISIONING, PENDING, ACTIVATING, RUNNING and STOPPED, each change is an event of EventBridge, and StopTask
ends the processes. RunTask keeps to its client token, refuses what ECS refuses, and places at most `MAX_TASKS` at a
time.

A container without a command would run that of its image, which is not here: it cannot be pulled.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from infra.local import permissions, service_model
from infra.local.containers import CannotPull, CannotStart, Container, command_of, credentials_of, environment, log_into

_LOG = logging.getLogger("sluice.local")
MAX_TASKS = 50
NO_CAPACITY = "Capacity is unavailable at this time. Please try again later or in a different availability zone"
_BETWEEN_STATES = 0.1  # seconds
_POLL = 0.05  # seconds
_CUT_OFF = "the local cloud was stopped while the task ran"
Answer = tuple[int, dict[str, str], bytes]


def install(ecs: Any, logs: Any, eventbridge: Any, lambda_runtime: Any, endpoint: str) -> None:
    """Change this module of ministack. `endpoint` is the address of the local cloud for the containers."""
    tasks = _Tasks(ecs, logs, eventbridge, lambda_runtime, endpoint)
    ecs._get_docker = lambda: tasks  # what is not None runs containers
    ecs._run_task_worker = tasks.play
    ecs._maybe_mark_stopped = lambda *args: None
    tasks.run = ecs._ACTION_MAP["RunTask"]
    ecs._ACTION_MAP["RunTask"], ecs._ACTION_MAP["StopTask"] = tasks.run_task, tasks.stop_task
    restore = ecs._restore_state

    def restored(data: Any) -> None:
        restore(data)
        for _, task in ecs._tasks.all_items():
            if not task.get("stoppedAt"):
                task.update(stoppedAt=ecs._iso(), stopCode="InfrastructureHealth", stoppedReason=_CUT_OFF)

    ecs._restore_state = restored


def authorize(iam_actions: Any, responses: Any) -> None:
    """Let ministack ask for the resources of ECS that AWS asks for: a task definition or a task, with the cluster as a
    condition. It asks for the cluster itself, which no policy of AWS names. Other operations stay as they are."""
    resource_of, context_of = iam_actions.extract_resource_arn, iam_actions.request_tag_context

    def need(service: str, operation: str, body: bytes) -> permissions.Need | None:
        place = permissions.Place(responses.get_region(), responses.get_account_id())
        try:
            return permissions.needs(service, operation, json.loads(body), place)[0] if service == "ecs" else None
        except (LookupError, ValueError):
            return None

    def extract_resource_arn(
        service: str, method: str, path: str, headers: Mapping[str, str], body: bytes, *more: Any
    ) -> Any:
        found = need(service, headers.get("x-amz-target", "").rpartition(".")[2], body)
        return found.resource if found else resource_of(service, method, path, headers, body, *more)

    def request_tag_context(service: str, action: str, body: bytes, params: Any) -> dict[str, Any]:
        found = need(service, action.partition(":")[2], body)
        return {**context_of(service, action, body, params), **dict(found.keys if found else ())}

    iam_actions.extract_resource_arn, iam_actions.request_tag_context = extract_resource_arn, request_tag_context


class _Tasks:
    def __init__(self, ecs: Any, logs: Any, eventbridge: Any, lambda_runtime: Any, endpoint: str) -> None:
        self._ecs, self._logs, self._eventbridge = ecs, logs, eventbridge
        self._lambda_runtime, self._endpoint = lambda_runtime, endpoint
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], tuple[dict[str, Any], list[str]]] = {}  # by place, cluster and token
        self._stops: dict[str, list[str]] = {}  # by task: the reasons of the stops that were requested
        self.run: Any = None  # ministack's own RunTask

    def run_task(self, data: dict[str, Any]) -> Answer:
        cluster = self._ecs._resolve_cluster_name(data.get("cluster", "default"))
        if refused := self._refusal(data, cluster):
            return refused
        key = (self._ecs.get_account_id(), self._ecs.get_region(), cluster, str(data.get("clientToken", "")))
        with self._lock:
            if data.get("clientToken") and key in self._known:
                return self._again(data, *self._known[key])
            living = sum(task["lastStatus"] != "STOPPED" for _, task in self._ecs._tasks.all_items())
            if living + int(data.get("count", 1)) > MAX_TASKS:
                return _json(200, {"tasks": [], "failures": [{"reason": NO_CAPACITY}]})
            answer: Answer = self.run(data)
            made = json.loads(answer[2]).get("tasks", [])
            if made:
                self._known[key] = data, [task["taskArn"] for task in made]
        return answer

    def _refusal(self, data: Mapping[str, Any], cluster: str | None) -> Answer | None:
        if problems := service_model.problems("ecs", "RunTask", data):
            return _error("InvalidParameterException", "; ".join(problems))
        if cluster not in self._ecs._clusters and cluster != "default":
            return _error("ClusterNotFoundException", "Cluster not found.")
        definition = self._ecs._task_defs.get(self._ecs._resolve_td_key(data["taskDefinition"]))
        if definition is None or definition["status"] != "ACTIVE":
            return _error("ClientException", f"Unable to find task definition: {data['taskDefinition']}")
        names = [container["name"] for container in definition["containerDefinitions"]]
        for each in data.get("overrides", {}).get("containerOverrides", ()):
            if each["name"] not in names:
                what = f"Override for container named {each['name']} is not a container in the TaskDefinition."
                return _error("InvalidParameterException", what)
        if definition["networkMode"] == "awsvpc" and not data.get("networkConfiguration"):
            what = "Network Configuration must be provided when networkMode 'awsvpc' is specified."
            return _error("InvalidParameterException", what)
        return None

    def _again(self, data: dict[str, Any], first: dict[str, Any], arns: Sequence[str]) -> Answer:
        """The answer to a call with a token that is known."""
        if data != first:
            what = "The clientToken is in use by another RunTask request."
            return _json(400, {"__type": "ConflictException", "message": what, "resourceIds": list(arns)})
        found = [self._ecs._sanitize(self._ecs._tasks[arn]) for arn in arns if arn in self._ecs._tasks]
        return _json(200, {"tasks": found, "failures": []})

    def stop_task(self, data: dict[str, Any]) -> Answer:
        cluster = self._ecs._resolve_cluster_name(data.get("cluster", "default"))
        if cluster not in self._ecs._clusters:
            return _error("ClusterNotFoundException", "Cluster not found.")
        task = self._ecs._resolve_task(data.get("task", ""), cluster)
        if not task:
            return _error("InvalidParameterException", "The referenced task was not found.")
        if task["lastStatus"] != "STOPPED":
            self._stops.setdefault(task["taskArn"], []).append(data.get("reason") or "Task stopped by user")
        return _json(200, {"task": {**self._ecs._sanitize(task), "desiredStatus": "STOPPED"}})

    def play(
        self,
        task: dict[str, Any],
        definition: Mapping[str, Any],
        overrides: Sequence[Mapping[str, Any]],
        docker: Any,
        account: str,
        region: str,
    ) -> None:
        """The life of a task, in a thread of its own. It has the place of ministack's own function."""
        del docker
        started: list[Container] = []
        with self._ecs.request_scope(account, region):
            try:
                self._play(task, definition, overrides, started)
            except Exception as error:
                _LOG.exception("task %s", task["taskArn"])
                self._end(task, f"ResourceInitializationError: {error}", "TaskFailedToStart")
            finally:
                for container in started:
                    container.stop(0)
                self._stops.pop(task["taskArn"], None)

    def _play(
        self,
        task: dict[str, Any],
        definition: Mapping[str, Any],
        overrides: Sequence[Mapping[str, Any]],
        started: list[Container],
    ) -> None:
        arn, asked = task["taskArn"], self._stops.setdefault(task["taskArn"], [])
        self._tell(task)
        for mark in (self._ecs._mark_task_pending, self._ecs._mark_task_activating):
            time.sleep(_BETWEEN_STATES)
            if asked:
                self._end(task, asked[0], "UserInitiated")
                return
            mark(arn, task)
            self._tell(task)
        try:
            for each in definition["containerDefinitions"]:
                started.append(self._start(task, definition, each, overrides))
        except CannotPull as error:
            self._end(task, f"CannotPullContainerError: {error}", "TaskFailedToStart")
            return
        except CannotStart as error:
            self._end(task, f"CannotStartContainerError: {error}", "TaskFailedToStart")
            return
        except self._ecs._SecretResolutionError as error:
            self._end(task, f"ResourceInitializationError: unable to pull secrets: {error}", "TaskFailedToStart")
            return
        for container in task["containers"]:
            container["lastStatus"] = "RUNNING"
        self._ecs._mark_task_running(arn, task)
        self._tell(task)
        self._watch(task, definition, started, asked)

    def _watch(
        self, task: dict[str, Any], definition: Mapping[str, Any], started: Sequence[Container], asked: Sequence[str]
    ) -> None:
        """Wait for the end of an essential container, or for a stop. Then end the others."""
        essential = [each.get("essential", True) for each in definition["containerDefinitions"]]
        while not asked:
            codes = [container.wait(_POLL) for container in started]
            ended = [code is not None for code in codes]
            if all(ended) or any(end and needed for end, needed in zip(ended, essential, strict=True)):
                break
        for shown, container in zip(task["containers"], started, strict=True):
            shown["exitCode"] = container.stop()
        if asked:
            self._end(task, asked[0], "UserInitiated")
        else:
            self._end(task, "Essential container in task exited", "EssentialContainerExited")

    def _start(
        self,
        task: Mapping[str, Any],
        definition: Mapping[str, Any],
        container: Mapping[str, Any],
        overrides: Sequence[Mapping[str, Any]],
    ) -> Container:
        ecs, own = self._ecs, self._ecs._container_override_for(overrides, container["name"])
        region, account, task_id = ecs.get_region(), ecs.get_account_id(), task["taskArn"].rpartition("/")[2]
        variables = {each["name"]: each["value"] for each in container.get("environment", ())}
        variables |= ecs._resolve_container_secrets(container)
        variables |= {each["name"]: each["value"] for each in own.get("environment", ())}
        role = definition.get("taskRoleArn", "")
        credentials = credentials_of(self._lambda_runtime, role, account, region, f"task-{task_id}")
        command = command_of(
            container["image"],
            entry_point=container.get("entryPoint", ()),
            command=own.get("command") or container.get("command", ()),
        )
        log = ecs._awslogs_config(container, task_id, task_id)
        write = None
        if log:
            scope = partial(ecs.request_scope, account, log["region"] or region)
            write = log_into(self._logs, scope, log["group"], log["stream"], create_group=log["create_group"])
        return Container(command, environment(variables, self._endpoint, region, credentials), write)

    def _end(self, task: dict[str, Any], reason: str, code: str) -> None:
        self._ecs._mark_task_stopped(task["taskArn"], task, reason, code)
        self._tell(task)

    def _tell(self, task: Mapping[str, Any]) -> None:
        """Put the event of a state change.

        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html
        """
        entry = {
            "Source": "aws.ecs",
            "DetailType": "ECS Task State Change",
            "Detail": json.dumps({**self._ecs._sanitize(task), "updatedAt": self._ecs._iso()}),
            "Resources": [task["taskArn"]],
        }
        self._eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def _json(status: int, content: Mapping[str, Any]) -> Answer:
    return status, {"Content-Type": "application/x-amz-json-1.1"}, json.dumps(content).encode()


def _error(code: str, message: str) -> Answer:
    return _json(400, {"__type": code, "message": message})
