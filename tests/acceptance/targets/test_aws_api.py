"""W22: one call of AWS's API for each run, as a user sees it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.flow.runs import dead_letters
from tests.acceptance.words import day
from tests.support.api_calls import refused
from tests.support.dags import dag, edge, views
from tests.support.schedules import at
from tests.support.world import World, flights

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sluice-target-one"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:days"
PUBLISH: dict[str, Any] = {
    "type": "aws_api",
    "service": "sns",
    "action": "publish",
    "input": {"TopicArn": TOPIC, "Message": "day {{correlation.day}} is ready"},
}
PUT = {
    "type": "aws_api",
    "service": "ssm",
    "action": "put_parameter",
    "input": {"Name": "/newest", "Value": "{{correlation.day}}", "Type": "String", "Overwrite": True},
    "result": True,
}
RUN_TASK = {"type": "aws_api", "service": "ecs", "action": "RunTask", "input": {"taskDefinition": "load:3"}}
DAILY = {"workflow": "notify", "enabled": True, "trigger": {"type": "partition", "dataset": "flights"}, "by": ["day"]}
ONCE = at("1 12 2 3 *", "notify")


def calling(target: dict[str, Any], schedule: dict[str, Any], world: World | None = None, **workflow: Any) -> World:
    world = world or World()
    world.deploy(flights({"call": schedule}, notify={"target": target, **workflow}))
    return world


def put_refused(world: World, target: dict[str, Any]) -> SluiceError:
    with pytest.raises(SluiceError) as found:
        calling(target, DAILY, world)
    return found.value


def test_w22_a_partition_makes_a_call_with_its_values() -> None:
    world = calling(PUBLISH, DAILY)
    world.upload(day(1))
    world.settle()
    [run] = world.runs("call")
    assert (run.state, run.target_id) == ("SUCCEEDED", "q1")
    [(name, request)] = world.targets.calls.made
    assert (name, request["TopicArn"]) == ("sns:Publish", TOPIC)
    assert request["Message"].startswith("day ")
    assert "{{" not in request["Message"]


def test_w22_nodes_of_a_dag_follow_a_call_and_read_its_result() -> None:
    world = World()
    world.targets.calls.answers["ssm:PutParameter"] = {"Version": 7}
    tell = {**PUBLISH, "input": {"TopicArn": TOPIC, "Message": "version {{upstream.result.Version}}"}}
    document = flights({}, w_mark={"target": PUT}, w_tell={"target": tell})
    document["dags"] = {"daily": dag(edge("mark -> tell"))}
    world.deploy(document)
    world.upload(day(1))
    world.settle()
    assert [name for name, _ in world.targets.calls.made] == ["ssm:PutParameter", "sns:Publish"]
    assert world.targets.calls.made[1][1]["Message"] == "version 7"
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w22_an_unanswered_call_is_made_again_with_its_token() -> None:
    world = calling(RUN_TASK, ONCE)
    world.targets.calls.lose_answers = 1
    world.pass_by("2m")
    [run] = world.runs("call")
    assert run.state == "SUCCEEDED"
    first, second = (request["clientToken"] for _, request in world.targets.calls.made)
    assert first == second


def test_w22_a_redriven_call_has_the_token_of_its_dead_letter() -> None:
    world = calling(RUN_TASK, ONCE, delivery={"tries": 1})
    world.targets.calls.lose_answers = 1
    world.pass_by("2m")
    [letter] = dead_letters.listed(world.ports, "demo", None, 100, None).items
    dead_letters.redrive(world.ports, "demo", letter.run_id)
    world.settle()
    assert [run.state for run in world.runs("call")] == ["FAILED", "SUCCEEDED"]
    assert len({request["clientToken"] for _, request in world.targets.calls.made}) == 1


def test_w22_a_throttled_call_waits_and_a_denied_one_does_not() -> None:
    world = calling(PUBLISH, {**DAILY})
    world.targets.calls.refusals = [refused("ThrottlingException")]
    world.upload(day(1))
    world.settle()
    assert world.targets.calls.made == []
    world.pass_by("2m")
    assert len(world.targets.calls.made) == 1
    denied = f"User: {ROLE} is not authorized to perform: sns:Publish on resource: {TOPIC}"
    world.targets.calls.refusals = [refused("AuthorizationError", denied)]
    world.upload(day(2))
    world.settle()
    [letter] = dead_letters.listed(world.ports, "demo", None, 100, None).items
    assert f"what to do: allow sns:Publish on {TOPIC} in the policies of the role" in letter.reason.text


def test_w22_a_run_without_the_value_is_a_dead_letter() -> None:
    world = calling(PUBLISH, ONCE)  # a fire has no day
    world.pass_by("2m")
    [run] = world.runs("call")
    assert run.state == "FAILED"
    assert "input.Message: expected a run whose context has correlation.day" in run.reason.text
    assert world.targets.calls.made == []


def test_w22_a_call_has_the_instant_for_which_it_is_made() -> None:
    world = calling({**PUBLISH, "input": {"TopicArn": TOPIC, "Message": "{{nominal_time}}"}}, ONCE)
    world.pass_by("2m")
    assert world.targets.calls.made[0][1]["Message"] == "2026-03-02T12:01:00.000Z"


def test_w22_a_message_may_be_a_call() -> None:
    world = calling(PUBLISH, DAILY)
    target = {**PUBLISH, "input": {"TopicArn": TOPIC, "Message": "{{data.text}}"}}
    world.message("soon", target=target, due_time="1m", data={"a": 1})
    world.pass_by("2m")
    assert world.targets.calls.made[0][1]["Message"] == '{"a":1}'
    with pytest.raises(SluiceError) as found:
        world.message("bad", target={**target, "action": "publsh"}, due_time="1m")
    assert (found.value.field, found.value.hint) == ("target.action", "did you mean 'publish'?")


def test_w22_a_notice_may_be_a_call() -> None:
    tell = {**PUBLISH, "input": {"TopicArn": TOPIC, "Message": "{{data.text}}"}}
    world = calling(PUBLISH, ONCE, notify=[{"on": ["failed"], "to": tell}])
    world.pass_by("3m")
    [(_, request)] = world.targets.calls.made
    assert "correlation.day" in request["Message"]


def test_w22_a_namespace_without_a_role_is_refused() -> None:
    world = World(account=ACCOUNT, target_role_arns=("*",))
    found = put_refused(world, PUBLISH)
    assert found.field == "workflows.notify.target.type"
    assert "expected a target role of the namespace" in found.message
    assert "sluice allowed demo" in (found.hint or "")
    world.allow("demo", target_role=ROLE)
    calling(PUBLISH, DAILY, world)
    world.upload(day(1))
    world.settle()
    assert [(run.state, run.target_role) for run in world.runs("call")] == [("SUCCEEDED", ROLE)]
    assert {role for _, _, role in world.targets.sts.called_as} == {ROLE}


@pytest.mark.parametrize("pattern", ["sns:Publish", "sns:Pub*", "sns:*"])
def test_w22_an_allow_list_names_the_calls(pattern: str) -> None:
    world = calling(PUBLISH, DAILY)
    world.allow("demo", actions=[pattern])
    calling(PUBLISH, DAILY, world)
    found = put_refused(world, PUT)
    assert found.field == "workflows.notify.target.action"
    assert f"an API action that namespace demo may use ({pattern}), got 'ssm:PutParameter'" in found.message
    assert "actions: sluice allowed demo" in (found.hint or "")


def test_w22_a_call_that_is_allowed_no_longer_is_not_made() -> None:
    world = calling(PUBLISH, DAILY)
    world.allow("demo", actions=["ssm:*"])
    world.clock.pass_by("1m")
    world.upload(day(1))
    world.settle()
    [run] = world.runs("call")
    assert (run.state, world.targets.calls.made) == ("FAILED", [])
    assert "not allowed: action: expected an API action" in run.reason.text


@pytest.mark.parametrize(
    ("changed", "field", "said"),
    [
        ({"input": {"Message": "{{day}}"}}, "target.input.Message", "expected a path such as {{correlation.day}}"),
        ({"format": "cloudevents"}, "target.format", "unknown field 'format'"),
        ({"service": "SNS"}, "target.service", "expected text that matches"),
        ({"input": ["a"]}, "target.input", "expected an object"),
    ],
)
def test_w22_a_wrong_document_is_refused(changed: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ValidationError) as found:
        Workflow.model_validate({"target": {**PUBLISH, **changed}})
    error = from_validation(found.value, Workflow)
    assert error.field == field
    assert said in error.message


def test_w22_every_problem_of_an_app_is_told_at_once() -> None:
    found = put_refused(World(), {**PUT, "input": {"Name": 1, "Valu": "a"}})
    fields = {each.field for each in found.each}
    assert {f"workflows.notify.target.input.{name}" for name in ("Name", "Valu")} <= fields
