"""ECS as a target: its document, what its program gets, and the meaning of its events (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.bills import FARGATE, Usage, cost_usd
from chalicelib.core.targets.ecs import EcsTarget, overrides_of, run_name_of
from chalicelib.core.targets.registry import of_event, of_run
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER, refusal
from tests.support import rows
from tests.support.clock import NOON
from tests.support.ecs_tasks import PLACE, PULL, TARGET, Task, event_of

TOKEN = ids.client_token("demo.flights.clean.1.a", 2)
ARN = f"{PLACE}:task/sluice-target-jobs/0a1b"
CONTEXT = {"correlation": {"day": "2026-03-01"}, "properties": {"depth": 1}}


def run(**target: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=2)
    return replace(plain, request=replace(plain.request, target={**TARGET, **target}, client_token=TOKEN))


def task(status: str = "STOPPED", **fields: Any) -> Task:
    asked = {"overrides": overrides_of(run(), {}), "startedBy": f"sluice-{TOKEN}", "cluster": "sluice-target-jobs"}
    instants: dict[str, Any] = {"pulled": NOON, "began": NOON + 20 * SECOND} if status in ("RUNNING", "STOPPED") else {}
    ended = {"ended": NOON + 10 * MINUTE, "stop_code": "EssentialContainerExited"} if status == "STOPPED" else {}
    return Task(ARN, asked, NOON - SECOND, status, **{**instants, **ended, **fields})


def update(told: Task, **changed: Any) -> RunUpdate:
    event = event_of(told, NOON, **changed)
    found = of_event(event).read_event(event).update
    assert found is not None
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"cluster": f"{PLACE}:cluster/jobs", "task_definition": f"{PLACE}:task-definition/etl:12"},
        {"task_definition": "etl:3", "capacity_provider": "FARGATE_SPOT", "platform_version": "1.4.0"},
        {"command": ["load", "{{correlation.day}}"], "environment": {"DAY": "{{correlation.day}}"}},
        {"security_groups": ["sg-0a1b2c3d"], "assign_public_ip": True, "poll_every": "5m"},
    ],
)
def test_w22_a_task_of_a_definition_is_accepted(fields: dict[str, Any]) -> None:
    made = ADAPTER.validate_python({**TARGET, **fields})
    assert (made.type, made.has_lifecycle, made.needs_role) == ("ecs", True, True)


@pytest.mark.parametrize(
    ("fields", "where", "expected"),
    [
        ({"cluster": "a/b"}, "cluster", "expected text that matches"),
        ({"cluster": f"{PLACE}:service/jobs"}, "cluster", "expected text that matches"),
        ({"task_definition": "etl:0"}, "task_definition", "expected text that matches"),
        ({"task_definition": f"{PLACE}:task-definition/etl*"}, "task_definition", "expected text that matches"),
        ({"container": ""}, "container", "expected text that matches"),
        ({"subnets": []}, "subnets", "expected at least 1"),
        ({"subnets": ["vpc-0a1b2c3d"]}, "subnets.0", "expected text that matches"),
        ({"capacity_provider": "my-instances"}, "capacity_provider", "expected 'FARGATE' or 'FARGATE_SPOT'"),
        ({"environment": {"SLUICE_RUN": "x"}}, "environment.SLUICE_RUN", "a variable that Sluice does not set itself"),
        ({"environment": {"DAY": "{{day}}"}}, "environment.DAY", "a path such as {{correlation.day}}"),
        ({"command": ["{{correlation.day}"]}, "command.0", "placeholders such as"),
        ({"command": ["x" * 8_000, "y" * 200]}, "command", "with 8192 characters at most"),
    ],
)
def test_w22_a_wrong_ecs_target_is_refused(fields: dict[str, Any], where: str, expected: str) -> None:
    field, reported = refusal(**{**TARGET, **fields})
    assert (field, expected in reported) == (where, True), reported


def test_w22_a_target_without_its_container_is_refused() -> None:
    field, _ = refusal(**{name: value for name, value in TARGET.items() if name != "container"})
    assert field == "container"


def test_w22_a_list_sees_cluster_and_family_without_revision() -> None:
    plain = list(EcsTarget.named({**TARGET, "task_definition": "etl:3"}))
    assert [(each.kind, each.value, each.got) for each in plain] == [
        ("engines", "arn:own:ecs:own:own:cluster/sluice-target-jobs".replace("own", _own()), "sluice-target-jobs"),
        ("engines", "arn:own:ecs:own:own:task-definition/etl".replace("own", _own()), "etl:3"),
    ]
    [_, whole] = EcsTarget.named({**TARGET, "task_definition": f"{PLACE}:task-definition/etl:3"})
    assert whole.value == f"{PLACE}:task-definition/etl"


def _own() -> str:
    from chalicelib.core.access.queue_urls import OWN

    return OWN


def test_w22_a_program_gets_its_command_and_its_context() -> None:
    given = {"command": ["load", "--day={{correlation.day}}"], "environment": {"DEPTH": "{{properties.depth}}"}}
    [own] = overrides_of(run(**given), CONTEXT)["containerOverrides"]
    assert (own["name"], own["command"]) == ("job", ["load", "--day=2026-03-01"])
    assert {each["name"]: each["value"] for each in own["environment"]} == {
        "DEPTH": "1",
        "SLUICE_CONTEXT": run().request.context_uri,
        "SLUICE_RUN": "demo.flights.clean.1.a-2",
    }
    with pytest.raises(SluiceError, match="a run whose context has correlation.day"):
        overrides_of(run(**given), {"properties": {"depth": 1}})
    with pytest.raises(SluiceError, match="8192 characters at most"):
        overrides_of(run(command=["{{properties.text}}"]), {"properties": {"text": "x" * 9_000}})


@pytest.mark.parametrize("status", ["PROVISIONING", "PENDING", "ACTIVATING"])
def test_w22_a_task_that_waits_has_not_begun(status: str) -> None:
    event = event_of(task(status), NOON)
    assert of_event(event).read_event(event).update is None


@pytest.mark.parametrize("status", ["RUNNING", "DEACTIVATING", "STOPPING", "DEPROVISIONING"])
def test_w22_a_task_runs_since_its_start(status: str) -> None:
    told = task("RUNNING")
    told.status = status
    assert update(told) == RunUpdate("RUNNING", NOON + 20 * SECOND, target_id=ARN)


@pytest.mark.parametrize(
    ("fields", "state", "outcome", "reason"),
    [
        ({"exit_code": 0}, "SUCCEEDED", "failed", ""),
        ({"exit_code": 3}, "FAILED", "failed", "container job exited with code 3"),
        (
            {"exit_code": 137, "why": "OutOfMemoryError: Container killed due to memory usage"},
            "FAILED",
            "failed",
            "container job exited with code 137: OutOfMemoryError: Container killed due to memory usage",
        ),
        (
            {"exit_code": None, "stopped_reason": "Timeout waiting for network"},
            "FAILED",
            "failed",
            "Timeout waiting for network; container job has no exit code",
        ),
        ({"exit_code": 143, "stop_code": "SpotInterruption", "stopped_reason": "Your Spot Task was interrupted."},
         "FAILED", "lost", "container job exited with code 143; Your Spot Task was interrupted."),
        ({"exit_code": 0, "stop_code": "SpotInterruption", "stopped_reason": "Your Spot Task was interrupted."},
         "FAILED", "lost", "container job exited with code 0; Your Spot Task was interrupted."),
        ({"stop_code": "TaskFailedToStart", "stopped_reason": PULL, "began": None}, "FAILED", "failed", PULL),
        ({"exit_code": 143, "stop_code": "UserInitiated", "stopped_reason": "wrong day"}, "CANCELLED", "failed",
         "wrong day"),
        ({"exit_code": 0, "stop_code": "UserInitiated", "stopped_reason": "Sluice: cancelled by ada"}, "CANCELLED",
         "failed", ""),
    ],
)  # fmt: skip
def test_w22_a_task_ends_as_its_container_does(fields: dict[str, Any], state: str, outcome: Any, reason: str) -> None:
    found = update(task(**fields))
    assert (found.state, found.outcome, found.reason) == (state, outcome, reason)
    assert found.at == NOON + 10 * MINUTE


def test_w22_an_event_names_its_run_and_says_all() -> None:
    event = event_of(task(exit_code=0), NOON)
    change = of_event(event).read_event(event)
    assert (change.kind, change.target_id, change.state) == ("ecs", ARN, "STOPPED")
    assert (change.run_name, change.complete) == ("demo.flights.clean.1.a-2", True)


def test_w22_a_task_that_people_start_is_foreign() -> None:
    """Somebody has started it again with its environment."""
    event = event_of(task(), NOON, startedBy="ada")
    assert run_name_of(event["detail"]) is None
    assert run_name_of(event_of(task(), NOON, overrides={}, startedBy=f"sluice-{TOKEN}")["detail"]) is None


def test_w22_without_overrides_the_worst_container_decides() -> None:
    assert update(task(exit_code=0), overrides={"containerOverrides": []}).state == "FAILED"


@pytest.mark.parametrize(
    ("seconds", "storage", "usage"),
    [
        (600, 20, Usage(1 / 6, 2 / 6)),
        (20, 20, Usage(1 / 60, 2 / 60)),
        (3_600, 50, Usage(1, 2, 30)),
    ],
)
def test_w22_a_task_costs_from_pull_to_end(seconds: int, storage: int, usage: Usage) -> None:
    """One vCPU and 2 GB; less than a minute costs as a minute, and 20 GB of storage are free."""
    told = task(exit_code=0, ended=NOON + seconds * SECOND)
    found = update(told, ephemeralStorage={"sizeInGiB": storage})
    assert found.billed == usage.stored()
    assert EcsTarget.prices == FARGATE
    assert cost_usd(Usage(1, 2, 30), FARGATE) == pytest.approx(0.04048 + 2 * 0.004445 + 30 * 0.000111)


def test_w22_a_task_that_never_pulled_costs_nothing() -> None:
    assert update(task(pulled=None, began=None, stop_code="TaskFailedToStart")).billed == ()


def test_w22_the_log_is_where_the_definition_says() -> None:
    log = of_run(run()).log_of(replace(run(), target_id=ARN))
    assert isinstance(log, NoLog)
    assert "aws ecs describe-task-definition --task-definition sluice-target-etl --query" in log.why
    assert "aws logs get-log-events --log-group-name GROUP --log-stream-name PREFIX/job/0a1b" in log.why
    assert of_run(run()).log_of(run()) == NoLog("it has no task yet", "it never began there")
