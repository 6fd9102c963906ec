"""ECS as a target: start, poll, find and stop tasks on Fargate.

The client token follows from the attempt. RunTask with a token that a cluster has seen starts nothing, and answers the
task of the first call; with other parameters it fails with ``ConflictException``, which names that task. ECS keeps a
token for 24 hours, but no longer than an hour after the end of the task. A call that is repeated later searches first.
https://docs.aws.amazon.com/AmazonECS/latest/APIReference/ECS_Idempotency.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.engine import CALL, Engine, instant
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, Started
from chalicelib.core.targets.ecs import STOPPED_BY, cluster_of, overrides_of, started_by, update_of
from chalicelib.core.targets.target import first_call, tag_value
from chalicelib.settings import Settings

TOKEN: Millis = HOUR  # for so long a token is known surely
MAX_STOP_REASON = 255  # characters
# Failures of an answer that the same call will meet again. Others, such as missing capacity, pass.
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
_FINAL = re.compile(r"ATTRIBUTE|INACTIVE|LOCATION|MISSING|MemberOf")
# A `ClientException` is final, unless a quota is used up or a role is too new.
_PASSES = re.compile(r"limit|quota|capacity|try again|rate exceeded", re.IGNORECASE)
_NOT_ASSUMED = re.compile(r"unable to assume", re.IGNORECASE)


class EcsTarget(Engine):
    """Stopped tasks are described for an hour. Sluice polls a silent run every ten minutes, so a task is missing only
    after a long outage."""

    name, start_call, one = "ECS", "RunTask", "task"
    never: ClassVar = {
        *("AccessDeniedException", "BlockedException", "ClientException", "ClusterNotFoundException"),
        *("InvalidParameterException", "PlatformTaskDefinitionIncompatibilityException", "PlatformUnknownException"),
        *("UnsupportedFeatureException", "ValidationException"),
    }
    no_answer: ClassVar = (*Engine.no_answer, "ServerException")
    asked_at_once: ClassVar = 100

    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        try:
            asked = request_of(run, context)
        except SluiceError as error:
            return Never(f"{error.field}: {error.message}; {error.hint}")
        if run.unknown_answer and self._now() - first_call(run) >= TOKEN and (found := self.find(run)) is not None:
            return Started(found)
        try:
            answer = self._client.run_task(**asked)
        except ClientError as error:
            return self._refused(run, error)
        if answer["tasks"]:
            return Started(answer["tasks"][0]["taskArn"])
        return _failed(answer["failures"])

    def _refused(self, run: Run, error: ClientError) -> Answer:
        """The answer for an error of RunTask. Raises all errors that their code alone explains."""
        if code_of(error) == "ClientException" and _NOT_ASSUMED.search(message_of(error)):
            return self.of_role(run, message_of(error))
        if code_of(error) == "ClientException" and _PASSES.search(message_of(error)):
            return NotNow(f"ECS refused for now: {message_of(error)}")
        if code_of(error) != "ConflictException":
            raise error
        # An earlier call of this attempt has started the task, with what another release has made of the run.
        known = error.response.get("resourceIds") or ()
        try:
            found = known[0] if known else self.find(run)
        except (BotoCoreError, ClientError) as failure:
            return NoAnswer(f"the task exists, and ListTasks gave no answer: {failure}")
        return Started(found) if found is not None else NoAnswer("the task exists, and is not shown yet")

    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        found: dict[str, RunUpdate | None] = {}
        by_cluster: dict[str, list[str]] = {}
        for arn in target_ids:
            by_cluster.setdefault(cluster_of(arn), []).append(arn)
        for cluster, arns in by_cluster.items():
            answer = self._of_cluster(self._client.describe_tasks, cluster=cluster, tasks=arns)
            if answer is None:
                continue
            missing = {each.get("arn") for each in answer.get("failures", ()) if each.get("reason") == "MISSING"}
            found |= {arn: None for arn in arns if arn not in missing}
            found |= {task["taskArn"]: update_of(task, instant) for task in answer.get("tasks", ())}
        return found

    def find(self, run: Run) -> str | None:
        """ECS lists stopped tasks for an hour. A page may be empty before the last one."""
        for status in ("RUNNING", "STOPPED"):
            asked = {"cluster": run.request.target["cluster"], "startedBy": started_by(run), "desiredStatus": status}
            while True:
                page = self._of_cluster(self._client.list_tasks, **asked) or {}
                if arns := page.get("taskArns"):
                    return str(arns[0])
                if not page.get("nextToken"):
                    break
                asked["nextToken"] = page["nextToken"]
        return None

    def stop(self, target_id: str, why: str) -> None:
        reason = f"{STOPPED_BY}{why}"[:MAX_STOP_REASON]
        try:
            self.twice(self._client.stop_task, cluster=cluster_of(target_id), task=target_id, reason=reason)
        except ClientError as error:
            # The task or its cluster is gone. The next poll says so.
            if code_of(error) not in ("InvalidParameterException", "ClusterNotFoundException"):
                raise

    def _of_cluster(self, call: Callable[..., Mapping[str, Any]], **asked: Any) -> Mapping[str, Any] | None:
        """The answer about a cluster; None if somebody has deleted it, so that tasks of others are polled none the
        less."""
        try:
            return self.twice(call, **asked)
        except ClientError as error:
            if code_of(error) == "ClusterNotFoundException":
                return None
            raise


def request_of(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of RunTask. Raises ``invalid`` as `overrides_of` does."""
    stored = run.request.target
    provider, version = stored.get("capacity_provider"), stored.get("platform_version")
    network: dict[str, Any] = {
        "subnets": list(stored["subnets"]),
        "assignPublicIp": "ENABLED" if stored.get("assign_public_ip") else "DISABLED",
    }
    if stored.get("security_groups"):
        network["securityGroups"] = list(stored["security_groups"])
    place: dict[str, Any] = {"launchType": "FARGATE"}
    if provider:
        place = {"capacityProviderStrategy": [{"capacityProvider": provider, "weight": 1}]}
    tags = {"sluice:schedule": run.schedule, "sluice:workflow": run.workflow}
    return {
        "cluster": stored["cluster"],
        "taskDefinition": stored["task_definition"],
        "count": 1,
        "clientToken": run.request.client_token,
        "startedBy": started_by(run),
        "networkConfiguration": {"awsvpcConfiguration": network},
        "overrides": overrides_of(run, context),
        "tags": [{"key": key, "value": tag_value(value)} for key, value in tags.items()],
        **place,
        **({"platformVersion": version} if version else {}),
    }


def _failed(failures: Sequence[Mapping[str, Any]]) -> Answer:
    """The answer for a call that placed no task."""
    texts = [": ".join(str(each[key]) for key in ("reason", "detail") if each.get(key)) for each in failures]
    why = "; ".join(texts) or "it placed no task, and gave no reason"
    final = any(_FINAL.match(str(each.get("reason"))) for each in failures)
    return Never(f"ECS refused the start: {why}") if final else NotNow(f"ECS refused for now: {why}")


def build(clients: Clients, settings: Settings) -> EcsTarget:
    del settings
    return EcsTarget(clients.make("ecs", **CALL), clients.now)
