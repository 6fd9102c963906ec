"""ECS as a target: what is sent, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from chalicelib.aws.targets.ecs import EcsTarget, request_of
from chalicelib.core import ids
from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.launch import CALL_LEASE
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.ecs_tasks import TARGET, Task, Tasks, conflict
from tests.support.reasons import says
from tests.support.state_machines import refused

CONTEXT = {"correlation": {"day": "2026-03-01"}}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://ecs.example")


def run(target: dict[str, Any] | None = None, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    token = ids.client_token(plain.run_id, plain.attempt)
    return replace(plain, request=replace(plain.request, target={**TARGET, **(target or {})}, client_token=token))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def tasks(clock: HandClock) -> Tasks:
    return Tasks(clock)


@pytest.fixture
def target(tasks: Tasks, clock: HandClock) -> EcsTarget:
    return EcsTarget(tasks, clock.now, pause=lambda seconds: None)


def started(tasks: Tasks, target: EcsTarget, **given: Any) -> tuple[Run, Task]:
    answer = target.start(run(given), CONTEXT)
    assert isinstance(answer, Started), answer
    return run(given, target_id=answer.target_id, start_requested_at=tasks.clock.now()), tasks.tasks[answer.target_id]


def test_w22_a_start_has_its_place_and_its_identity(tasks: Tasks, target: EcsTarget) -> None:
    given = {
        "security_groups": ("sg-0a1b2c3d",),
        "assign_public_ip": True,
        "platform_version": "1.4.0",
        "command": ("load", "{{correlation.day}}"),
    }
    begun, made = started(tasks, target, **given)
    asked = made.asked
    assert (asked["cluster"], asked["taskDefinition"], asked["count"]) == (
        "sluice-target-jobs",
        "sluice-target-etl",
        1,
    )
    assert asked["networkConfiguration"]["awsvpcConfiguration"] == {
        "subnets": ["subnet-0a1b2c3d"],
        "securityGroups": ["sg-0a1b2c3d"],
        "assignPublicIp": "ENABLED",
    }
    assert (asked["launchType"], asked["platformVersion"]) == ("FARGATE", "1.4.0")
    assert (asked["clientToken"], asked["startedBy"]) == (
        begun.request.client_token,
        f"sluice-{begun.request.client_token}",
    )
    [own] = asked["overrides"]["containerOverrides"]
    assert own["command"] == ["load", "2026-03-01"]
    assert made.variables == {"SLUICE_CONTEXT": begun.request.context_uri, "SLUICE_RUN": "demo.flights.clean.1.a-1"}
    assert {each["key"] for each in asked["tags"]} == {"sluice:schedule", "sluice:workflow"}


def test_w22_spot_is_a_capacity_provider(tasks: Tasks, target: EcsTarget) -> None:
    _, made = started(tasks, target, capacity_provider="FARGATE_SPOT")
    assert made.asked["capacityProviderStrategy"] == [{"capacityProvider": "FARGATE_SPOT", "weight": 1}]
    assert "launchType" not in made.asked


def test_w22_a_node_of_a_dag_has_tags_that_aws_accepts(tasks: Tasks, target: EcsTarget) -> None:
    node = replace(run(), schedule="demo.flights.etl~0a1b2c3d~load")
    assert isinstance(target.start(node, CONTEXT), Started)
    [made] = tasks.tasks.values()
    assert made.asked["tags"][0] == {"key": "sluice:schedule", "value": "demo.flights.etl@0a1b2c3d@load"}


def test_w22_a_repeated_start_is_the_same_task(tasks: Tasks, target: EcsTarget) -> None:
    first, again = target.start(run(), CONTEXT), target.start(run(), CONTEXT)
    assert first == again and len(tasks.tasks) == 1
    assert target.start(run(attempt=2), CONTEXT) != first and len(tasks.tasks) == 2


def test_w22_a_start_with_other_parameters_is_the_first_task(tasks: Tasks, target: EcsTarget) -> None:
    """Another release has made the first call."""
    first = target.start(run(), CONTEXT)
    changed = run({"environment": {"NEW": "1"}})
    assert target.start(changed, CONTEXT) == first
    tasks.refusals = [refused("ConflictException")]
    assert target.start(changed, CONTEXT) == first, "an answer without its task: it is searched"
    tasks.refusals = [refused("ConflictException"), TIMEOUT, TIMEOUT]
    assert isinstance(target.start(changed, CONTEXT), NoAnswer)
    next(iter(tasks.tasks.values())).shown = False
    tasks.refusals = [refused("ConflictException")]
    assert isinstance(target.start(changed, CONTEXT), NoAnswer)
    assert conflict("a").response["resourceIds"] == ["a"] and len(tasks.tasks) == 1


def test_w22_a_token_that_ended_starts_nothing_twice(tasks: Tasks, target: EcsTarget) -> None:
    """An hour after the end of a task ECS has forgotten its token. A task that runs for longer is found by a search."""
    tasks.lose_answers = 1
    first = run(start_requested_at=tasks.clock.now())
    assert isinstance(target.start(first, CONTEXT), NoAnswer)
    [made] = tasks.tasks.values()
    tasks.clock.pass_by("90m")
    made.asked = {**made.asked, "clientToken": "forgotten"}
    assert target.start(replace(first, unknown_answer=True), CONTEXT) == Started(made.arn)
    assert len(tasks.tasks) == 1
    tasks.refusals = [TIMEOUT, TIMEOUT]
    assert isinstance(target.start(replace(first, unknown_answer=True), CONTEXT), NoAnswer)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"reason": "Capacity is unavailable at this time. Please try again later."}, NotNow),
        ({"reason": "RESOURCE:MEMORY"}, NotNow),
        ({"reason": "RESOURCE:ENI", "arn": "arn:x"}, NotNow),
        ({"reason": "AGENT"}, NotNow),
        ({}, NotNow),
        ({"reason": "ATTRIBUTE", "detail": "no such attribute"}, Never),
        ({"reason": "MISSING"}, Never),
        ({"reason": "INACTIVE"}, Never),
        ({"reason": "MemberOf placement constraint unsatisfied."}, Never),
    ],
)
def test_w22_each_failure_of_a_placement_has_its_meaning(
    tasks: Tasks, target: EcsTarget, failure: dict[str, str], kind: type[Answer]
) -> None:
    tasks.failures = [failure]
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, kind) and not tasks.tasks
    assert failure.get("reason", "no reason") in answer.why and failure.get("detail", "") in answer.why


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("ThrottlingException", "Rate exceeded"), NotNow),
        (refused("ClientException", "Tasks provisioning capacity limit exceeded."), NotNow),
        (refused("ClientException", "ECS was unable to assume the role 'r' that was provided for this task."), NotNow),
        (refused("LimitExceededException"), NotNow),
        (refused("ServerException", status=500), NoAnswer),
        (TIMEOUT, NoAnswer),
        (refused("ClientException", "Unable to find task definition: etl"), Never),
        (refused("AccessDeniedException"), Never),
        (refused("ClusterNotFoundException"), Never),
        (refused("InvalidParameterException", "Override for container named job is not a container"), Never),
        (refused("PlatformUnknownException"), Never),
    ],
)
def test_w22_each_refusal_of_a_task_has_its_meaning(
    tasks: Tasks, target: EcsTarget, error: Exception, kind: type[Answer]
) -> None:
    tasks.refusals = [error]
    assert isinstance(target.start(run(), CONTEXT), kind)
    assert not tasks.tasks


PASS = "User: arn:aws:sts::1:assumed-role/t/s is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:r"
NOT_PASSED = refused("AccessDeniedException", f"{PASS} because no identity-based policy allows the iam:PassRole action")
NOT_ASSUMED = refused("ClientException", "ECS was unable to assume the role 'r' that was provided for this task.")
# How long after the first call, how many calls there were, and whether the refusal is final.
CALLED = [(0, 1, False), (5 * MINUTE, 9, False), (10 * MINUTE, 3, False), (10 * MINUTE, 9, True)]


@pytest.mark.parametrize("error", [NOT_PASSED, NOT_ASSUMED])
@pytest.mark.parametrize(("after", "calls", "final"), CALLED)
def test_o10_a_role_that_may_show_later_is_refused_for_now(
    tasks: Tasks, target: EcsTarget, error: Exception, after: int, calls: int, final: bool
) -> None:
    """A new role, and a new right to pass it, take some minutes until ECS sees them."""
    tasks.refusals = [error]
    first = tasks.clock.now()
    called = run(start_requested_at=first, lease_until=first + after + CALL_LEASE, calls=calls)
    answer = target.start(called, CONTEXT)
    assert isinstance(answer, NotNow | Never)
    assert answer == (Never(answer.why) if final else NotNow(answer.why, alone=True))
    assert not tasks.tasks


@pytest.mark.parametrize(
    "denied",
    [f"{PASS} with an explicit deny in a service control policy", PASS.replace("iam:PassRole", "ecs:RunTask")],
)
def test_o10_a_denial_that_no_waiting_mends_is_final_at_once(tasks: Tasks, target: EcsTarget, denied: str) -> None:
    tasks.refusals = [refused("AccessDeniedException", denied)]
    assert isinstance(target.start(run(), CONTEXT), Never)


def test_w22_a_value_that_the_context_lacks_is_never_sent(tasks: Tasks, target: EcsTarget) -> None:
    answer = target.start(run({"environment": {"DAY": "{{correlation.hour}}"}}), CONTEXT)
    assert isinstance(answer, Never) and answer.why.startswith("environment.DAY: expected a run whose context has")
    assert tasks.calls == []


def test_w22_many_tasks_are_polled_in_calls_by_cluster(tasks: Tasks, target: EcsTarget) -> None:
    begun, made = started(tasks, target)
    other, _ = started(tasks, target, cluster="sluice-target-other")
    tasks.begin(made)
    tasks.calls.clear()
    running, waiting, none = target.status_many([begun, other, run()])
    assert running is not None and (running.state, running.at) == ("RUNNING", tasks.clock.now())
    assert (waiting, none, tasks.calls) == (None, None, ["DescribeTasks"] * 2)
    tasks.calls.clear()
    assert target.status_many([begun] * 100) == [running] * 100
    assert tasks.calls == ["DescribeTasks"]


def test_w22_a_poll_says_how_a_task_ended(tasks: Tasks, target: EcsTarget) -> None:
    begun, made = started(tasks, target)
    tasks.begin(made)
    tasks.clock.pass_by("2m")
    tasks.end(made, 3)
    update = target.status(begun)
    assert update is not None and (update.state, update.at) == ("FAILED", tasks.clock.now())
    assert (update.reason, update.billed) == ("container job exited with code 3", (33, 67, 0))


def test_w22_a_task_is_lost_when_ecs_has_forgotten_it(tasks: Tasks, target: EcsTarget) -> None:
    begun, made = started(tasks, target)
    made.shown = False
    tasks.clock.wait_until(tasks.clock.now() + 2 * MINUTE - SECOND)
    assert target.status(begun) is None, "DescribeTasks is eventually consistent"
    made.shown = True
    tasks.end(made)
    tasks.clock.wait_until(tasks.clock.now() + HOUR)
    lost = target.status(begun)
    assert lost is not None and (lost.state, lost.outcome) == ("FAILED", "lost")


@pytest.mark.parametrize("reasons", [[], ["AGENT"]])
def test_w22_a_task_that_ecs_leaves_out_is_not_lost(tasks: Tasks, target: EcsTarget, reasons: list[str]) -> None:
    """Only the failure MISSING says that ECS does not know a task."""
    begun, made = started(tasks, target)
    tasks.clock.pass_by("10m")
    failures = [{"arn": made.arn, "reason": reason} for reason in reasons]
    tasks.describe_tasks = lambda **asked: {"tasks": [], "failures": failures}  # type: ignore[method-assign]
    assert target.status(begun) is None


@pytest.mark.parametrize("ended", [False, True])
def test_w22_an_unanswered_start_is_found_by_its_token(tasks: Tasks, target: EcsTarget, ended: bool) -> None:
    assert target.find(run()) is None
    tasks.lose_answers = 1
    assert isinstance(target.start(run(), CONTEXT), NoAnswer)
    [made] = tasks.tasks.values()
    if ended:
        tasks.end(made)
    for tasks.empty_pages in (0, 2):
        assert target.find(run()) == made.arn
    assert target.find(run(attempt=2)) is None


def test_w22_a_stop_has_a_reason_that_ecs_accepts(tasks: Tasks, target: EcsTarget) -> None:
    begun, made = started(tasks, target)
    target.cancel(replace(begun, reason=says("cancelled by ada " + "x" * 300)))
    assert made.stopped_reason.startswith("Sluice: cancelled by ada xxx")
    update = target.status(begun)
    assert update is not None and (update.state, update.reason) == ("CANCELLED", "")
    target.cancel(begun)
    tasks.tasks.clear()
    target.cancel(begun)
    tasks.refusals = [refused("ThrottlingException")]
    with pytest.raises(Exception, match="Throttling"):
        target.cancel(begun)


def test_w22_a_deleted_cluster_loses_its_tasks_alone(tasks: Tasks, target: EcsTarget) -> None:
    begun, made = started(tasks, target)
    other, living = started(tasks, target, cluster="sluice-target-other")
    tasks.begin(living)
    tasks.clock.pass_by("5m")
    tasks.refusals = [refused("ClusterNotFoundException")]
    lost, running = target.status_many([begun, other])
    assert lost is not None and (lost.state, lost.outcome) == ("FAILED", "lost")
    assert running is not None and running.state == "RUNNING"
    tasks.refusals = [refused("ClusterNotFoundException")] * 2
    assert target.find(begun) is None
    tasks.refusals = [refused("ClusterNotFoundException")]
    target.cancel(begun)
    assert made.status == "PROVISIONING"


def test_w22_a_request_follows_from_the_row_and_the_context() -> None:
    assert request_of(run(), CONTEXT) == request_of(run(), dict(CONTEXT))
