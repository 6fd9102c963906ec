"""Step Functions as a target: what is sent, and the meaning of each answer (W16)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError
from moto import mock_aws

from chalicelib.aws.targets.step_functions import StepFunctionsTarget, input_of
from chalicelib.core import ids
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.results import Result
from chalicelib.core.rows.run import Run
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, Started
from chalicelib.core.targets.step_functions import execution_arn, execution_name
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.reasons import says
from tests.support.state_machines import MACHINE, TARGET, Execution, StateMachines, event_of, refused

CONTEXT = {"properties": {"depth": 1}, "events": []}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://states.example")


def run(**fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    token = ids.client_token(plain.run_id, plain.attempt)
    return replace(plain, request=replace(plain.request, target=TARGET, client_token=token))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def machines(clock: HandClock) -> StateMachines:
    return StateMachines(clock)


@pytest.fixture
def target(machines: StateMachines, clock: HandClock) -> StepFunctionsTarget:
    return StepFunctionsTarget(machines, clock.now, pause=lambda seconds: None)


def started(machines: StateMachines, target: StepFunctionsTarget) -> tuple[Run, Execution]:
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, Started)
    return run(target_id=answer.target_id, start_requested_at=machines.clock.now()), machines.executions[
        answer.target_id
    ]


def test_w16_a_start_has_the_context_and_its_identity(machines: StateMachines, target: StepFunctionsTarget) -> None:
    answer = target.start(run(), CONTEXT)
    [made] = machines.executions.values()
    assert answer == Started(execution_arn(run()))
    assert (made.machine, made.name) == (MACHINE, execution_name(run()))
    view = json.loads(made.input)
    assert view["context"] == CONTEXT
    assert (view["sluice"]["event_id"], view["sluice"]["attempt"]) == ("demo.flights.clean.1.a", 1)
    assert view["sluice"]["context_uri"] == run().request.context_uri


def test_w16_data_of_the_schedule_replaces_the_context() -> None:
    given = {"content_type": "application/json", "text": '{"order": 7}'}
    answer = json.loads(input_of(replace(run(), request=replace(run().request, data=given)), CONTEXT))
    assert (answer["data"], "context" in answer) == ({"order": 7}, False)


@pytest.mark.parametrize("letters", ["x" * 262_144, "ü" * 50_000])
def test_w16_a_too_large_input_goes_by_reference(
    machines: StateMachines, target: StepFunctionsTarget, letters: str
) -> None:
    """The client in memory refuses an input that is larger than Step Functions accepts."""
    target.start(run(), {"properties": {"text": letters}})
    [made] = machines.executions.values()
    answer = json.loads(made.input)
    assert list(answer) == ["sluice"]
    assert answer["sluice"]["context_uri"] == run().request.context_uri


def test_w16_a_repeated_start_is_the_same_execution(machines: StateMachines, target: StepFunctionsTarget) -> None:
    first, again = target.start(run(), CONTEXT), target.start(run(), dict(reversed(CONTEXT.items())))
    assert first == again
    assert len(machines.executions) == 1
    assert machines.calls == ["StartExecution"] * 2


@pytest.mark.parametrize("how", ["it has ended", "its input was another"])
def test_w16_an_existing_execution_counts_as_started(
    machines: StateMachines, target: StepFunctionsTarget, how: str
) -> None:
    begun, made = started(machines, target)
    if how == "it has ended":
        machines.end(made, "SUCCEEDED")
    context = CONTEXT if how == "it has ended" else {**CONTEXT, "properties": {"depth": 2}}
    assert target.start(run(), context) == Started(begun.target_id or "")
    assert len(machines.executions) == 1


def test_w16_an_execution_not_visible_yet_is_an_unknown_answer(
    machines: StateMachines, target: StepFunctionsTarget
) -> None:
    _, made = started(machines, target)
    machines.end(made, "SUCCEEDED")
    made.shown = False
    assert isinstance(target.start(run(), CONTEXT), NoAnswer)
    machines.refusals = [refused("ExecutionAlreadyExists"), refused("ThrottlingException")]
    assert isinstance(target.start(run(), CONTEXT), NoAnswer), "a start never raises for a refusal"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("ThrottlingException"), NotNow),
        (refused("ExecutionLimitExceeded"), NotNow),
        (refused("KmsThrottlingException"), NotNow),
        (refused("InternalFailure", status=500), NoAnswer),
        (refused("ServiceUnavailable", status=503), NoAnswer),
        (TIMEOUT, NoAnswer),
        (refused("AccessDeniedException"), Never),
        (refused("StateMachineDoesNotExist"), Never),
        (refused("StateMachineDeleting"), Never),
        (refused("InvalidArn"), Never),
        (refused("InvalidExecutionInput"), Never),
        (refused("ValidationException"), Never),
        (refused("KmsAccessDeniedException"), Never),
    ],
)
def test_c12_each_refusal_of_a_start_has_its_meaning(
    machines: StateMachines, target: StepFunctionsTarget, error: Exception, kind: type[Answer]
) -> None:
    machines.refusals = [error]
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, kind), answer
    assert not machines.executions


def test_w16_an_express_state_machine_is_refused_with_reason(target: StepFunctionsTarget, clock: HandClock) -> None:
    class Express(StateMachines):
        def start_execution(self, **asked: Any) -> dict[str, Any]:
            made = super().start_execution(**asked)
            return {**made, "executionArn": f"{made['executionArn'].replace(':execution:', ':express:')}:5f2b"}

    answer = StepFunctionsTarget(Express(clock), clock.now).start(run(), CONTEXT)
    assert isinstance(answer, Never)
    assert "expected a standard state machine, got an express one" in answer.why


def test_w7_a_poll_gives_state_instants_and_reason(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, made = started(machines, target)
    began = machines.clock.now()
    assert target.status(begun) == RunUpdate("RUNNING", began, target_id=begun.target_id)
    machines.clock.pass_by("2500ms")
    machines.end(made, "FAILED", "States.TaskFailed", "no disk")
    ended = began + 2_500
    reason = "States.TaskFailed: no disk"
    assert target.status(begun) == RunUpdate("FAILED", ended, reason, begun.target_id, started_at=began)
    assert target.status_many([begun, run()]) == [target.status(begun), None]


def test_w7_a_throttled_poll_of_an_execution_is_repeated_later(
    machines: StateMachines, target: StepFunctionsTarget
) -> None:
    begun, _ = started(machines, target)
    machines.refusals = [refused("ThrottlingException")]
    assert target.status(begun) is None
    machines.refusals = [TIMEOUT]
    assert target.status(begun) is not None, "a poll without an answer is asked once more"
    machines.refusals = [refused("AccessDeniedException")]
    with pytest.raises(Exception, match="AccessDenied"):
        target.status(begun)


def test_w7_executions_are_polled_at_ten_a_second(machines: StateMachines, clock: HandClock) -> None:
    pauses: list[float] = []
    target = StepFunctionsTarget(machines, clock.now, pauses.append)
    begun, _ = started(machines, target)
    assert target.status_many([begun] * 3) == [target.status(begun)] * 3
    assert pauses == [0.1, 0.1]


def test_w7_a_just_started_execution_is_not_lost(machines: StateMachines, target: StepFunctionsTarget) -> None:
    """DescribeExecution is eventually consistent."""
    begun, made = started(machines, target)
    made.shown = False
    machines.clock.wait_until(machines.clock.now() + 2 * MINUTE - SECOND)
    assert target.status(begun) is None
    machines.clock.pass_by("1s")
    lost = target.status(begun)
    assert lost is not None
    assert (lost.state, lost.outcome) == ("FAILED", "lost")


def test_w7_text_encrypted_with_a_foreign_key_is_omitted(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, made = started(machines, target)
    machines.end(made, "FAILED", "E", "secret")
    machines.refusals = [refused("KmsAccessDeniedException")]
    answer = target.status(begun)
    assert answer is not None
    assert (answer.state, answer.reason) == ("FAILED", "")


def test_w10_an_unanswered_start_is_found_by_its_name(machines: StateMachines, target: StepFunctionsTarget) -> None:
    assert target.find(run()) is None
    machines.lose_answers = 1
    assert isinstance(target.start(run(), CONTEXT), NoAnswer)
    assert target.find(run()) == execution_arn(run())
    assert target.find(run(attempt=2)) is None


def test_w6_a_stop_has_a_reason(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, made = started(machines, target)
    target.cancel(replace(begun, reason=says("cancelled by ada")))
    assert (made.status, made.error, made.cause) == ("ABORTED", "Sluice.Stopped", "cancelled by ada")


def test_w6_a_stop_of_an_ended_execution_changes_nothing(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, made = started(machines, target)
    machines.end(made, "SUCCEEDED")
    machines.refusals = [refused("ValidationException", "Execution is not running")]
    target.cancel(begun)
    machines.executions.clear()
    target.cancel(begun)
    assert made.status == "SUCCEEDED"


def test_w6_a_stop_without_the_right_to_a_key_has_no_reason(
    machines: StateMachines, target: StepFunctionsTarget
) -> None:
    begun, made = started(machines, target)
    machines.refusals = [refused("KmsAccessDeniedException")]
    target.cancel(replace(begun, reason=says("cancelled by ada")))
    assert (made.status, made.cause) == ("ABORTED", None)


def test_w6_a_throttled_stop_is_an_error_so_that_it_is_repeated(
    machines: StateMachines, target: StepFunctionsTarget
) -> None:
    begun, made = started(machines, target)
    machines.refusals = [refused("ThrottlingException")]
    with pytest.raises(Exception, match="Throttling"):
        target.cancel(begun)
    assert made.status == "RUNNING"


def test_w7_an_execution_names_its_run(machines: StateMachines, target: StepFunctionsTarget) -> None:
    _, made = started(machines, target)
    assert target.run_name(made.arn) == "demo.flights.clean.1.a-1"
    made.name = "copied-by-hand"
    assert target.run_name(made.arn) is None, "somebody has started it with an input of ours"
    assert target.run_name(f"{made.arn}x") is None


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """boto3's own client, on moto."""
    with mock_aws():
        client = boto3.client("stepfunctions", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        definition = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})
        role = "arn:aws:iam::123456789012:role/machine"
        client.create_state_machine(name="sluice-target-etl", definition=definition, roleArn=role)
        yield client


def test_w16_boto3_accepts_and_returns_what_the_adapter_uses(client: Any, clock: HandClock) -> None:
    machine = MACHINE.replace("000000000000", "123456789012")
    mine = replace(run(), request=replace(run().request, target={**TARGET, "state_machine": machine}))
    target = StepFunctionsTarget(client, clock.now)
    answer = target.start(mine, CONTEXT)
    assert answer == Started(execution_arn(mine))
    begun = replace(mine, target_id=execution_arn(mine), reason=says("cancelled by ada"))
    view = target.status(begun)
    assert view is not None
    assert view.state == "RUNNING"
    assert target.run_name(execution_arn(mine)) == "demo.flights.clean.1.a-1"
    assert target.find(mine) == execution_arn(mine)
    target.cancel(begun)
    ended = target.status(begun)
    assert ended is not None
    assert ended.state == "CANCELLED"
    assert target.start(mine, CONTEXT) == Started(execution_arn(mine))


def test_w18_the_output_of_an_execution_is_its_result(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, execution = started(machines, target)
    machines.end(execution, "SUCCEEDED", output='{"mode": "full"}')
    update = target.status(begun)
    assert update is not None and update.result == Result({"mode": "full"})
    told = event_of(execution, machines.clock.now())
    change = registry.of_event(told).read_event(told)
    assert change.complete and change.update is not None and change.update.result == Result({"mode": "full"})


def test_w18_an_event_without_its_output_is_completed_by_a_poll(
    machines: StateMachines, target: StepFunctionsTarget
) -> None:
    """Input and output together were too large for the event."""
    _, execution = started(machines, target)
    machines.end(execution, "SUCCEEDED", output='{"mode": "full"}')
    told = event_of(execution, machines.clock.now(), output=None, outputDetails={"included": False})
    change = registry.of_event(told).read_event(told)
    assert not change.complete


def test_w18_an_output_that_no_key_opens_is_refused(machines: StateMachines, target: StepFunctionsTarget) -> None:
    begun, execution = started(machines, target)
    machines.end(execution, "SUCCEEDED", output='{"mode": "full"}')
    machines.refusals = [refused("KmsInvalidStateException", "the key is disabled")]
    update = target.status(begun)
    assert update is not None and update.state == "SUCCEEDED"
    assert update.result.refused.startswith("the output could not be read")
