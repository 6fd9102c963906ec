"""Targets are called with the role that the allow-list of their namespace names (O10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.prefetch import DynamoPrefetch
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.targets.answers import NoAnswer, NotNow
from chalicelib.flow.deliveries import prepare, send
from chalicelib.flow.runs import dead_letters, follow
from tests.support.answers import explain
from tests.support.batch_jobs import TARGET as JOB
from tests.support.deliveries_crossed import fires
from tests.support.ecs_tasks import TARGET as TASK
from tests.support.fakes import FakeEmr, FakeQueue, FakeTargets
from tests.support.reasons import says
from tests.support.schedules import at
from tests.support.state_machines import MACHINE
from tests.support.world import EMR, SQS, World, flights

ROLES = "arn:aws:iam::123456789012:role/"
ONE, TWO = f"{ROLES}sluice-target-one", f"{ROLES}sluice-target-two"
PROBE = "arn:aws:lambda:us-east-1:123456789012:function:sluice-target-check"
AT_ONE = "1 12 2 3 *"
NOTIFY = {"target": SQS}
CALM = {"calm": {"max_events": 20, "interval": "10s"}}
FIVE = {"spread": {"count": 5, "over": "1ms"}}


def world_with(schedules: dict[str, Any], role: str | None = ONE, **workflows: Any) -> World:
    world = World(target_role_arns=(f"{ROLES}*",))
    world.deploy(flights(schedules, notify=NOTIFY, **workflows))
    if role is not None:
        world.allow("demo", target_role=role)
    return world


def two_namespaces(other: str = TWO) -> World:
    """Ten fires of each of two namespaces, all for one queue and one instant."""
    world = world_with({"a": at(AT_ONE, "notify", **FIVE)})
    world.deploy(
        {"workflows": {"notify": NOTIFY}, "schedules": {"b": at(AT_ONE, "notify", **FIVE)}}, namespace="second"
    )
    world.allow("second", target_role=other)
    return world


def prepared(world: World) -> send.Leased:
    """The five fires of 12:01, ready to be sent at their instant."""
    world.clock.pass_by("20s")
    refs, instant = fires(world), world.clock.now() + 40 * SECOND
    ready = prepare.prepare(world.ports, refs, instant)
    leased = send.lease(world.ports, ready.ready, instant)
    assert len(leased.ready) == 5
    world.clock.wait_until(instant)
    return leased


def called(world: World, *names: str) -> list[tuple[str, str]]:
    """The calls of these names, each with its role, in their order."""
    return [(call, role) for call, _, role in world.targets.sts.called_as if not names or call in names]


def test_o10_a_delivery_is_sent_with_the_role_of_its_namespace() -> None:
    world = world_with({"s": at(AT_ONE, "notify")})
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1
    assert called(world) == [("start_many", ONE)]
    assert world.runs("s")[0].target_role == ONE
    assert world.targets.sts.assumed == [
        {
            "RoleArn": ONE,
            "RoleSessionName": "sluice-demo",
            "ExternalId": "sluice/test/demo",
            "DurationSeconds": 3_600,
        }
    ]


def test_o10_without_a_role_nothing_is_assumed() -> None:
    world = world_with({"s": at(AT_ONE, "notify"), "t": at(AT_ONE)}, role=None)
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == len(world.targets.emr.runs) == 1
    assert (world.targets.sts.tries, called(world)) == (0, [])
    assert world.runs("s")[0].target_role is None


def test_o10_two_namespaces_of_one_instant_have_two_roles() -> None:
    world = two_namespaces()
    world.pass_by("2m")
    roles = {run_id.partition(".")[0]: role for _, run_id, role in world.targets.sts.called_as}
    assert roles == {"demo": ONE, "second": TWO}
    assert len(world.targets.sts.called_as) == len(world.targets.queue.messages) == 10
    assert len(world.targets.sts.assumed) == 2


def test_o10_two_namespaces_never_share_the_session_of_a_role() -> None:
    world = two_namespaces(other=ONE)
    world.pass_by("2m")
    assert {request["ExternalId"] for request in world.targets.sts.assumed} == {
        "sluice/test/demo",
        "sluice/test/second",
    }
    assert len(world.targets.queue.messages) == 10


def test_o10_one_refused_role_holds_up_no_other() -> None:
    world = two_namespaces()
    world.targets.sts.denied.add(TWO)
    world.pass_by("2m")
    assert {run_id.partition(".")[0] for run_id, _ in world.targets.queue.messages} == {"demo"}
    world.targets.sts.denied.clear()
    world.pass_by("10m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 10


def test_o10_an_outage_of_sts_loses_and_doubles_no_delivery() -> None:
    world = world_with({"s": at(AT_ONE, "notify", spread={"count": 20})})
    world.targets.sts.down = "Throttling"
    world.pass_by("3m")
    assert world.targets.queue.messages == []
    [why, *_] = [explain.why_job(world.ports, job) for job in world.jobs("s")]
    assert "STS refused the target role of namespace demo for now: Throttling" in str(why)
    world.targets.sts.down = ""
    world.pass_by("10m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 20
    assert {run.state for run in world.runs("s")} == {"SUCCEEDED"}


def test_o10_an_outage_calls_sts_once_for_a_burst() -> None:
    world = world_with({"s": at(AT_ONE, "notify", spread={"count": 100, "over": "1ms"})})
    world.targets.sts.down = "ServiceUnavailable"
    world.pass_by("61s")
    assert world.targets.sts.tries <= 3


def test_o10_a_dead_letter_says_what_to_do_about_a_role() -> None:
    world = world_with({"s": at(AT_ONE, "notify")})
    world.targets.sts.denied.add(ONE)
    world.pass_by("40m")
    [run] = world.runs("s")
    assert (run.state, world.targets.queue.messages) == ("FAILED", [])
    assert "may not assume the target role of namespace demo (AccessDenied)" in run.reason.text
    assert "sluice allowed demo" in run.reason.text
    assert "external id sluice/test/demo" in run.reason.text
    assert ONE not in run.reason.text, "its reader may lack the right to read the allow-list"
    world.targets.sts.denied.clear()
    dead_letters.redrive(world.ports, "demo", run.run_id)
    world.settle()
    assert len(world.targets.queue.messages) == 1


def test_o10_credentials_are_renewed_before_they_end() -> None:
    world = world_with({"s": at("*/10 * * * *", "notify")})
    world.pass_by("4h")
    assert len(world.targets.queue.messages) == 24
    assert 5 <= len(world.targets.sts.assumed) <= 6
    assert world.targets.sts.expired == []


def test_o10_credentials_that_end_in_an_invocation_are_renewed() -> None:
    """An invocation that has prepared its fires waits; its credentials end in the meantime."""
    world = world_with({"s": at(AT_ONE, "notify", **FIVE)})
    leased = prepared(world)
    world.targets.sts.until = {key: world.clock.now() for key in world.targets.sts.until}  # they end now
    sessions: dict[Any, Any] = vars(world.targets.roles)["_sessions"]
    for role, session in list(sessions.items()):
        sessions[role] = replace(session, until=world.clock.now())
    send.send(world.ports, leased)
    assert world.targets.sts.expired == []
    assert len(world.targets.sts.assumed) == 2
    assert len(world.targets.queue.messages) == 5


def test_o10_valid_credentials_outlast_an_outage_of_sts() -> None:
    world = world_with({"s": at("*/5 * * * *", "notify")})
    world.pass_by("46m")
    world.targets.sts.down = "ServiceUnavailable"
    world.pass_by("6m")
    assert len(world.targets.queue.messages) == 10, "that of 12:50, when the credentials have 15 minutes left"
    world.pass_by("20m")
    assert len(world.targets.queue.messages) == 12, "13:05 waits: the credentials end at that instant"
    world.targets.sts.down = ""
    world.pass_by("15m")
    assert len(world.targets.queue.messages) == 17
    assert world.targets.sts.expired == []


def test_o10_a_changed_role_holds_for_calls_five_seconds_later() -> None:
    world = world_with({"s": at(AT_ONE, "notify")})
    world.run_now("s", "r1")
    world.settle()
    world.allow("demo", target_role=TWO)
    world.clock.pass_by("5s")
    world.run_now("s", "r2")
    world.settle()
    assert called(world) == [("start", ONE), ("start", TWO)]


def test_o10_a_role_that_changes_while_fires_wait_is_used() -> None:
    world = world_with({"s": at(AT_ONE, "notify", **FIVE)})
    leased = prepared(world)
    world.allow("demo", target_role=TWO)
    world.clock.pass_by("5s")
    send.send(world.ports, leased)
    assert called(world) == [("start_many", TWO)] * 5
    assert len(world.targets.queue.messages) == 5


def test_o10_a_policy_sends_blocks_with_the_role() -> None:
    world = World(target_role_arns=(f"{ROLES}*",))
    schedule = at(AT_ONE, "notify", spread={"count": 40, "over": "1ms"}, policy="calm", coalesce=False)
    world.deploy({**flights({"s": schedule}, notify=NOTIFY), "policies": CALM})
    world.allow("demo", target_role=ONE)
    world.pass_by("3m")
    assert len(world.targets.queue.messages) == 40
    assert {role for _, _, role in world.targets.sts.called_as} == {ONE}
    assert len(world.targets.sts.called_as) == 40
    assert len(world.targets.sts.assumed) == 1


def test_o10_an_outage_of_sts_loses_nothing_of_a_policy() -> None:
    world = World(target_role_arns=(f"{ROLES}*",))
    schedule = at(AT_ONE, "notify", spread={"count": 10, "over": "1ms"}, policy="calm", coalesce=False)
    world.deploy({**flights({"s": schedule}, notify=NOTIFY), "policies": CALM})
    world.allow("demo", target_role=ONE)
    world.targets.sts.down = "Throttling"
    world.pass_by("3m")
    assert world.targets.queue.messages == []
    world.targets.sts.down = ""
    world.pass_by("15m")
    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 10


def forget(world: World) -> None:
    """Lose all credentials, as a new process has none."""
    vars(world.targets.roles)["_sessions"].clear()


# -- targets with a lifecycle --------------------------------------------------------------------------------------


def test_o10_a_run_is_launched_and_cancelled_with_its_role() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.pass_by("2m")
    [run] = world.runs("s")
    assert (run.state, run.target_role) == ("STARTING", ONE)
    world.targets.emr.runs["jr00001"].state = "RUNNING"
    world.pass_by("10m")  # Sluice polls it
    assert world.runs("s")[0].state == "RUNNING"
    follow.request_cancel(world.ports, run.run_id, 1, says("no longer needed"))
    world.settle()
    assert world.runs("s")[0].state == "CANCELLED"
    assert {role for _, role in called(world)} == {ONE}
    assert {name for name, _ in called(world)} >= {"start", "status", "cancel"}


def test_o10_the_end_of_a_run_is_read_with_its_role() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.pass_by("2m")
    before = len(called(world, "status"))
    assert world.finish("FAILED", "no such file") == 1
    assert called(world, "status")[before:] == [("status", ONE)]
    assert world.runs("s")[0].reason.text == "no such file"


def test_o10_a_run_keeps_the_role_that_launched_it() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.pass_by("2m")
    world.allow("demo", target_role=TWO)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("10m")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert {role for _, role in called(world)} == {ONE}


@pytest.mark.parametrize(("then", "followed"), [(TWO, [TWO]), (None, [])])
def test_o10_a_run_of_a_refused_role_is_followed_all_the_same(then: str | None, followed: list[str]) -> None:
    world = world_with({"s": at(AT_ONE)})
    world.pass_by("2m")
    world.allow("demo", **({"target_role": then} if then else {}))
    forget(world)
    world.targets.sts.denied.add(ONE)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("2h")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert list({role for _, _, role in world.targets.sts.called_as} - {ONE}) == followed


def test_o10_a_run_launched_without_a_role_is_followed_without() -> None:
    world = world_with({"s": at(AT_ONE)}, role=None)
    world.pass_by("2m")
    world.allow("demo", target_role=ONE)
    world.targets.emr.runs["jr00001"].state = "SUCCESS"
    world.pass_by("10m")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert called(world) == []


def test_o10_an_outage_of_sts_leaves_runs_to_later_polls() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.pass_by("2m")
    [run] = world.runs("s")
    forget(world)
    world.targets.sts.down = "ServiceUnavailable"
    follow.request_cancel(world.ports, run.run_id, 1, says("no longer needed"))
    world.pass_by("15m")
    assert world.runs("s")[0].state == "STARTING"
    assert world.runs("s")[0].cancel
    world.targets.sts.down = ""
    world.pass_by("30m")
    assert world.runs("s")[0].state == "CANCELLED"


def test_o10_an_outage_of_sts_loses_and_doubles_no_start() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.targets.sts.down = "Throttling"
    world.pass_by("4m")
    [run] = world.runs("s")
    assert (run.state, world.targets.emr.calls) == ("STARTING", [])
    assert run.reason.text == "STS refused the target role of namespace demo for now: Throttling"
    assert run.reason.text in str(explain.why_run(run))
    world.targets.sts.down = ""
    world.pass_by("10m")
    assert len(world.targets.emr.runs) == 1


def test_o10_a_role_in_the_making_is_waited_for_ten_minutes() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.targets.sts.denied.add(ONE)
    world.pass_by("9m")
    assert world.runs("s")[0].state == "STARTING"
    world.targets.sts.denied.clear()
    world.pass_by("10m")
    assert len(world.targets.emr.runs) == 1


def test_o10_a_run_whose_role_stays_refused_fails() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.targets.sts.denied.add(ONE)
    world.pass_by("40m")
    [run] = world.runs("s")
    assert (run.state, world.targets.emr.calls) == ("FAILED", [])
    assert "may not assume the target role of namespace demo (AccessDenied)" in run.reason.text
    assert world.limit_state("workflow:demo.flights.clean").active == 0


def test_o10_a_refused_role_holds_back_no_other_start() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.deploy({"workflows": {"clean": {"target": EMR}}, "schedules": {"t": at(AT_ONE)}}, namespace="second")
    world.targets.sts.denied.add(ONE)
    world.pass_by("2m")
    assert [name.partition(".")[0] for name in world.targets.emr.calls] == ["second"]


def test_o10_a_run_is_found_with_the_role_of_its_call() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.targets.emr.lose_answers = 1
    world.pass_by("61s")
    assert world.runs("s")[0].unknown_answer
    world.allow("demo", target_role=TWO)
    world.disable("s")
    world.pass_by("10m")
    assert called(world, "find", "start")[-1][1] == ONE
    assert {role for _, role in called(world)} == {ONE}
    assert world.runs("s")[0].state == "CANCELLED"


def test_o10_no_run_is_given_up_without_a_search() -> None:
    world = world_with({"s": at(AT_ONE)})
    world.targets.emr.answers = [NoAnswer("the connection broke")]
    world.pass_by("61s")
    forget(world)
    world.targets.sts.down = "ServiceUnavailable"
    world.disable("s")
    with pytest.raises(ExceptionGroup) as failure:
        world.pass_by("5m")
    assert "expected the credentials of a role to find run" in str(failure.value.exceptions[0])
    assert world.runs("s")[0].state == "STARTING"
    assert world.limit_state("workflow:demo.flights.clean").active == 1


def test_o10_a_state_machine_is_called_with_the_role() -> None:
    machine = {"target": {"type": "step_functions", "state_machine": MACHINE}}
    world = world_with({"s": at(AT_ONE, "machine")}, machine=machine)
    world.pass_by("2m")
    assert called(world, "start") == [("start", ONE)]
    [execution] = world.targets.machines.executions.values()
    world.targets.machines.end(execution, "SUCCEEDED")
    world.pass_by("15m")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert {role for _, role in called(world)} == {ONE}


# -- probes, callbacks, workers ------------------------------------------------------------------------------------


def test_o10_a_probe_is_called_with_the_role_of_the_schedule() -> None:
    probe = {"type": "probe", "target": {"type": "lambda", "function": PROBE}}
    world = world_with({"s": at(AT_ONE, constraints=[probe])})
    world.targets.says = [b'{"met": true}']
    world.pass_by("2m")
    assert called(world, "probe") == [("probe", ONE)]
    assert len(world.targets.emr.runs) == 1


def test_o10_a_probe_without_credentials_holds_the_job() -> None:
    probe = {"type": "probe", "target": {"type": "lambda", "function": PROBE}}
    world = world_with({"s": at(AT_ONE, constraints=[probe])})
    world.targets.sts.denied.add(ONE)
    world.pass_by("2m")
    assert world.targets.asked == []
    [job] = world.jobs("s")
    assert "may not assume the target role of namespace demo" in str(explain.why_job(world.ports, job))


@pytest.mark.parametrize(("secret", "tries"), [({}, 0), ({"secret": "/sluice-target/demo/key"}, 1)])
def test_o10_a_callback_needs_the_role_for_its_secret_alone(secret: dict[str, str], tries: int) -> None:
    target = {"type": "http", "url": "https://hooks.example.com/orders", **secret}
    world = world_with({"s": at(AT_ONE, "call")}, call={"target": target})
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1
    assert world.targets.sts.tries == tries


def test_o10_a_repeated_call_has_the_role() -> None:
    world = world_with({"s": at(AT_ONE, "notify")})
    world.targets.queue.answers = [NotNow("the queue is throttled")]
    world.pass_by("3m")
    assert called(world) == [("start_many", ONE)] * 2
    assert len(world.targets.sts.assumed) == 1


# -- when STS is called --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schedule",
    [at(AT_ONE), at(AT_ONE, "notify"), at(AT_ONE, "notify", **FIVE), at(AT_ONE, "notify", policy="calm", **FIVE)],
    ids=["a run", "a delivery", "a batch", "a block of permits"],
)
def test_o10_no_call_of_sts_comes_between_last_read_and_start(
    schedule: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def tell(owner: type, name: str, word: str) -> None:
        method = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:
            told.append(word)
            return method(*args, **named)

        monkeypatch.setattr(owner, name, call)

    tell(FakeTargets, "assume", "assume")
    tell(DynamoRows, "get", "read")
    tell(DynamoPrefetch, "stamps", "read")
    tell(DynamoJobs, "closings", "read")
    for fake in (FakeEmr, FakeQueue):
        tell(fake, "start_many", "send")
    tell(FakeEmr, "start", "send")
    world = World(target_role_arns=(f"{ROLES}*",))
    world.deploy({**flights({"s": {**schedule, "coalesce": False}}, notify=NOTIFY), "policies": CALM})
    world.allow("demo", target_role=ONE)
    world.pass_by("3m")
    assert "send" in told
    for number, word in enumerate(told):
        if word == "send":
            before = [each for each in told[:number] if each != "send"]
            assert before[-1] == "read"
            assert "assume" in before


# -- the document --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [((), "(none)"), ((TWO,), f"({TWO})"), ((f"{ROLES}other-*", TWO), f"({ROLES}other-*, {TWO})")],
)
def test_o10_a_role_that_the_stack_may_not_assume_is_refused(patterns: tuple[str, ...], expected: str) -> None:
    world = World(target_role_arns=patterns)
    world.deploy({})
    with pytest.raises(SluiceError) as failure:
        world.allow("demo", target_role=ONE)
    assert (failure.value.code, failure.value.field) == ("invalid", "target_role")
    assert failure.value.message == f"expected a role that TargetRoleArns of the stack names {expected}, got '{ONE}'"
    assert "TargetRoleArns" in str(failure.value.hint)


def test_o10_no_call_falls_back_to_the_role_of_the_lambda() -> None:
    """The namespace keeps its role; IAM refuses to assume it."""
    world = world_with({"s": at(AT_ONE, "notify"), "t": at(AT_ONE)})
    world.ports = world.with_ports(settings=replace(world.ports.settings, target_role_arns=()))
    world.targets.sts.denied.add(ONE)
    world.pass_by("2m")
    assert (world.targets.queue.messages, world.targets.emr.calls) == ([], [])


def test_the_session_lasts_longer_than_what_is_needed() -> None:
    from chalicelib.aws.targets import assumed

    assert assumed.NEEDED < assumed.RENEWED_BEFORE < assumed.SESSION == HOUR
    assert EMR["type"] == "emr_serverless"


def test_w22_a_task_is_called_with_the_role() -> None:
    world = world_with({"s": at(AT_ONE, "task")}, task={"target": TASK})
    world.pass_by("2m")
    assert called(world, "start") == [("start", ONE)]
    [task] = world.targets.tasks.tasks.values()
    world.targets.tasks.end(task, 0)
    world.pass_by("15m")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert {role for _, role in called(world)} == {ONE}


def test_w22_a_task_needs_a_target_role_of_its_namespace() -> None:
    world = World(target_role_arns=(f"{ROLES}*",), account="123456789012")
    document = {"workflows": {"task": {"target": TASK}}, "schedules": {"s": at(AT_ONE, "task")}}
    with pytest.raises(SluiceError, match="expected a target role of the namespace") as refused:
        world.deploy(document)
    assert refused.value.field == "workflows.task.target.type"
    world.allow("demo", target_role=ONE)
    world.deploy(document)
    world.allow("demo")
    world.clock.pass_by("10s")
    world.pass_by("2m")
    assert world.targets.tasks.tasks == {}
    assert "expected a target role of the namespace" in world.runs("s")[0].reason.text


def test_w22_a_list_of_engines_bounds_clusters_and_families() -> None:
    world = world_with({})
    place = "arn:aws:ecs:us-east-1:123456789012"
    world.allow("demo", target_role=ONE, engines=[f"{place}:cluster/jobs", f"{place}:task-definition/load-*"])
    mine = {**TASK, "cluster": f"{place}:cluster/jobs", "task_definition": f"{place}:task-definition/load-a:3"}
    world.deploy(flights({}, task={"target": mine}))
    for field, kind in (("cluster", "cluster"), ("task_definition", "task-definition")):
        with pytest.raises(SluiceError, match="a resource of an engine that namespace demo may use") as refused:
            world.deploy(flights({}, task={"target": {**mine, field: f"{place}:{kind}/other"}}))
        assert refused.value.field == f"workflows.task.target.{field}"


def test_w22_a_job_of_batch_is_called_with_the_role() -> None:
    """Also the search after a lost answer."""
    world = world_with({"s": at(AT_ONE, "load")}, load={"target": JOB})
    world.targets.batch_jobs.lose_answers = 1
    world.pass_by("5m")
    [job] = world.targets.batch_jobs.jobs.values()
    assert "ListJobs" in world.targets.batch_jobs.calls
    world.targets.batch_jobs.end(job, "SUCCEEDED")
    world.pass_by("15m")
    assert world.runs("s")[0].state == "SUCCEEDED"
    assert {role for _, role in called(world)} == {ONE}


def test_w22_a_list_of_engines_bounds_queues_and_definitions() -> None:
    world = world_with({})
    place = "arn:aws:batch:us-east-1:123456789012"
    world.allow("demo", target_role=ONE, engines=[f"{place}:job-queue/night", f"{place}:job-definition/load-*"])
    mine = {**JOB, "job_queue": f"{place}:job-queue/night", "job_definition": f"{place}:job-definition/load-a:3"}
    world.deploy(flights({}, load={"target": mine}))
    for field, kind in (("job_queue", "job-queue"), ("job_definition", "job-definition")):
        with pytest.raises(SluiceError, match="a resource of an engine that namespace demo may use") as refused:
            world.deploy(flights({}, load={"target": {**mine, field: f"{place}:{kind}/other"}}))
        assert refused.value.field == f"workflows.load.target.{field}"
