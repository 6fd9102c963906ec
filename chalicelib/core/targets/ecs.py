"""ECS on Fargate as a target: a task of a task definition (W22)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core import ids
from chalicelib.core.access.allowed import Named, own_arn
from chalicelib.core.errors import invalid
from chalicelib.core.instants import HOUR, MINUTE, SECOND, Instant, parse_instant
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import templates
from chalicelib.core.targets.answers import RunUpdate, StateChange
from chalicelib.core.targets.bills import FARGATE, Prices, Usage
from chalicelib.core.targets.target import PREFIX, REGION, Log, NoLog, PollInterval, Target

CONTEXT, RUN = "SLUICE_CONTEXT", "SLUICE_RUN"  # what a program finds in its environment
STOPPED_BY = "Sluice: "  # begins the reason of a task that Sluice has stopped
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html: `overrides` as JSON.
MAX_OVERRIDES = 8_192
FREE_STORAGE = 20  # GiB of ephemeral storage that each task has
MAX_REASON = 4_000

_NAME = r"[A-Za-z0-9_-]{1,255}"
_OWN = rf"arn:aws[a-z-]*:ecs:{REGION}:\d{{12}}:"
_Name = Annotated[str, Field(pattern=rf"^{_NAME}$")]
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
_Text = Annotated[str, Field(max_length=MAX_OVERRIDES)]
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Task.html. The program of a task was ended from outside,
# or has lost its machine.
_LOST = ("InfrastructureHealth", "ServiceSchedulerInitiated", "SpotInterruption", "TerminationNotice")


class EcsTarget(Target):
    """A task on Fargate. Its container ``container`` runs the program: it gets the ``command``, the ``environment`` and
    the run context, and its exit code decides.

    ECS reports the states of a task by events. With ``poll_every``, Sluice also polls it at that interval (W6).
    """

    listed: ClassVar[bool] = True
    stores_result: ClassVar[bool] = True
    needs_role: ClassVar[bool] = True
    event_source: ClassVar[str | None] = "aws.ecs"
    prices: ClassVar[Prices | None] = FARGATE

    type: Literal["ecs"]
    cluster: str = Field(pattern=rf"^({_NAME}|{_OWN}cluster/{_NAME})$")
    task_definition: str = Field(pattern=rf"^({_OWN}task-definition/)?{_NAME}(:[1-9]\d{{0,9}})?$")
    container: _Name
    command: tuple[_Text, ...] = Field(default=(), max_length=200)
    environment: dict[_Variable, _Text] = Field(default_factory=dict, max_length=100)
    subnets: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(min_length=1, max_length=16)
    security_groups: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(default=(), max_length=5)
    assign_public_ip: bool = False
    capacity_provider: Literal["FARGATE", "FARGATE_SPOT"] | None = None
    platform_version: Annotated[str, Field(pattern=r"^(LATEST|\d+\.\d+\.\d+)$")] | None = None
    poll_every: PollInterval | None = None

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        for name in (CONTEXT, RUN):
            if name in self.environment:
                hint = "leave it out, or choose another name"
                raise invalid(f"environment.{name}", "a variable that Sluice does not set itself", name, hint)
        templates.check(self.command, "command")
        templates.check(self.environment, "environment")
        size = len(json.dumps({"command": self.command, "environment": self.environment}))
        if size > MAX_OVERRIDES:
            hint = "let the program read what is large from its run context"
            raise invalid("command", f"command and environment with {MAX_OVERRIDES} characters at most", size, hint)
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        for field, kind in (("cluster", "cluster"), ("task_definition", "task-definition")):
            text = str(stored[field])
            plain = text.rpartition("/")[2].partition(":")[0]
            place = text.rpartition("/")[0]
            yield Named("engines", f"{place}/{plain}" if place else own_arn("ecs", f"{kind}/{plain}"), field, text)

    @classmethod
    def read_event(cls, event: Mapping[str, Any]) -> StateChange:
        """A task state change. It has what DescribeTasks answers, with instants as texts.

        https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html
        """
        task = event["detail"]
        update = update_of(task, parse_instant)
        arn, name = task["taskArn"], run_name_of(task)
        return StateChange("ecs", arn, task["lastStatus"], update, name, complete=True, place=cluster_of(arn))

    @classmethod
    def place_of(cls, stored: Mapping[str, Any]) -> str | None:
        return str(stored["cluster"]).rpartition("/")[2]

    @classmethod
    def log_of(cls, run: Run) -> Log:
        if run.target_id is None:
            return NoLog("it has no task yet", "it never began there")
        stored = run.request.target
        container, task = stored["container"], run.target_id.rpartition("/")[2]
        where = f"taskDefinition.containerDefinitions[?name=='{container}'].logConfiguration.options"
        family = stored["task_definition"]
        definition = f'aws ecs describe-task-definition --task-definition {family} --query "{where}"'
        tail = f"aws logs get-log-events --log-group-name GROUP --log-stream-name PREFIX/{container}/{task}"
        return NoLog(f"the task writes where its definition says. GROUP and PREFIX are in: {definition}; then: {tail}")


def started_by(run: Run) -> str:
    """`startedBy` of the task of this attempt, by which it is found again: at most 128 letters, digits, ``-_/``."""
    return f"{PREFIX}{run.request.client_token}"


def overrides_of(run: Run, context: Mapping[str, Any]) -> dict[str, Any]:
    """The `overrides` of a task. Raises ``invalid`` for a placeholder whose value the context lacks, and for more than
    ECS accepts."""
    stored = run.request.target
    given = templates.fill(stored.get("environment") or {}, context, "environment")
    variables = {**given, CONTEXT: run.request.context_uri, RUN: f"{run.run_id}-{run.attempt}"}
    own: dict[str, Any] = {
        "name": stored["container"],
        "environment": [{"name": name, "value": templates.as_text(value)} for name, value in sorted(variables.items())],
    }
    if stored.get("command"):
        own["command"] = [templates.as_text(word) for word in templates.fill(stored["command"], context, "command")]
    found = {"containerOverrides": [own]}
    if (size := len(json.dumps(found))) > MAX_OVERRIDES:
        hint = "let the program read what is large from its run context"
        raise invalid("command", f"command and environment with {MAX_OVERRIDES} characters at most", size, hint)
    return found


def update_of(task: Mapping[str, Any], at: Callable[[Any], Instant]) -> RunUpdate | None:
    """The update of a run from its task; None while the task has not begun. ``at`` reads an instant of the task."""
    arn = str(task["taskArn"])
    began = at(task["startedAt"]) if task.get("startedAt") else None
    if task["lastStatus"] == "STOPPED":
        return _ended(task, arn, began, at)
    return RunUpdate("RUNNING", began, target_id=arn) if began is not None else None


def run_name_of(task: Mapping[str, Any]) -> str | None:
    """``<run id>-<attempt>`` of a task; None if Sluice did not start it. People may start tasks with a copy of the
    environment, so `startedBy` must belong to the attempt."""
    name = _own(task)[1]
    found = ids.attempt_named(name)
    is_ours = found is not None and task.get("startedBy") == f"{PREFIX}{ids.client_token(*found)}"
    return name if is_ours else None


def cluster_of(task: str) -> str:
    """The cluster of a task, from its ARN: ``...:task/<cluster>/<id>``."""
    return task.split("/")[1]


def _ended(task: Mapping[str, Any], arn: str, began: Instant | None, at: Callable[[Any], Instant]) -> RunUpdate:
    ended = at(task["stoppedAt"])
    code, said = str(task.get("stopCode") or ""), str(task.get("stoppedReason") or "")
    billed = _billed(task, ended, at)
    if code == "UserInitiated":
        reason = "" if said.startswith(STOPPED_BY) else said  # the run has that reason already
        return RunUpdate("CANCELLED", ended, reason[:MAX_REASON], arn, started_at=began, billed=billed)
    container = _program(task)
    exit_code = container.get("exitCode")
    if code in ("", "EssentialContainerExited") and exit_code == 0:
        return RunUpdate("SUCCEEDED", ended, target_id=arn, started_at=began, billed=billed)
    name = f"container {container.get('name', '')}"
    if exit_code is not None:
        said = f"{name} exited with code {exit_code}" + (f"; {said}" if code in _LOST else "")
    elif began is not None:
        said = f"{said or code}; {name} has no exit code"
    reason = ": ".join(dict.fromkeys(part for part in (said, str(container.get("reason") or "")) if part))
    outcome: Literal["lost", "failed"] = "lost" if code in _LOST else "failed"
    return RunUpdate("FAILED", ended, reason[:MAX_REASON], arn, outcome=outcome, started_at=began, billed=billed)


def _own(task: Mapping[str, Any]) -> tuple[str, str]:
    """The container of the program, and the name of the run; empty texts if the task names none."""
    for each in (task.get("overrides") or {}).get("containerOverrides") or ():
        for variable in each.get("environment") or ():
            if variable["name"] == RUN:
                return str(each["name"]), str(variable["value"])
    return "", ""


def _program(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """The container of the program. Without its name, the one with the highest exit code."""
    containers: list[Mapping[str, Any]] = list(task.get("containers") or ())
    named = [each for each in containers if each.get("name") == _own(task)[0]]
    return max(named or containers, key=lambda each: each.get("exitCode") or 0, default={})


def _billed(task: Mapping[str, Any], ended: Instant, at: Callable[[Any], Instant]) -> tuple[int, ...]:
    """What Fargate bills for a task: from the begin of the pull to its end, in whole seconds, one minute at least.
    Empty for a task that never pulled.

    https://aws.amazon.com/fargate/pricing/
    """
    if not task.get("pullStartedAt") or not _is_sized(task):
        return ()
    seconds = max(-(-(ended - at(task["pullStartedAt"])) // SECOND), MINUTE // SECOND)
    hours = seconds * SECOND / HOUR
    storage = (task.get("ephemeralStorage") or task.get("fargateEphemeralStorage") or {}).get("sizeInGiB", 0)
    return Usage(
        vcpu_hours=int(task["cpu"]) / 1024 * hours,
        memory_gb_hours=int(task["memory"]) / 1024 * hours,
        storage_gb_hours=max(storage - FREE_STORAGE, 0) * hours,
    ).stored()


def _is_sized(task: Mapping[str, Any]) -> bool:
    return all(re.fullmatch(r"\d+", str(task.get(name))) for name in ("cpu", "memory"))
