"""Step Functions as a target: its document, the names of executions, and the meaning of its events (W16)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.registry import of_event, of_run
from chalicelib.core.targets.step_functions import execution_arn, execution_name, run_name_of
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER, refusal
from tests.support import rows
from tests.support.clock import NOON
from tests.support.state_machines import MACHINE, TARGET, Execution, event_of

TOKEN = ids.client_token("demo.flights.clean.1.a", 2)
NAME = f"sluice-clean-{TOKEN}"
ARN = MACHINE.replace("stateMachine", "execution")
GIVEN = {"sluice": {"event_id": "demo.flights.clean.1.a", "attempt": 2}}


def run(schedule: str = "demo.flights.clean", machine: str = MACHINE, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=2, schedule=schedule, **fields)
    request = replace(plain.request, target={**TARGET, "state_machine": machine}, client_token=TOKEN)
    return replace(plain, request=request)


def execution(status: str, **fields: Any) -> Execution:
    ended = None if status == "RUNNING" else NOON + 5 * SECOND
    return Execution(f"{ARN}:{NAME}", MACHINE, NAME, json.dumps(GIVEN), NOON, status, ended, **fields)


@pytest.mark.parametrize("qualifier", ["", ":PROD", ":7", ":v1.2_a-b"])
@pytest.mark.parametrize(
    "region", ["aws:states:eu-west-1", "aws-cn:states:cn-north-1", "aws-us-gov:states:us-gov-west-1"]
)
def test_w16_a_state_machine_its_version_or_alias_is_accepted(region: str, qualifier: str) -> None:
    arn = f"arn:{region}:123456789012:stateMachine:Etl+daily(1){qualifier}"
    made = ADAPTER.validate_python({"type": "step_functions", "state_machine": arn, "poll_every": "5m"})
    assert (made.type, made.state_machine, made.has_lifecycle) == ("step_functions", arn, True)


@pytest.mark.parametrize(
    "arn",
    [
        "etl",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:etl/label",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:etl:PROD:1",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:e*",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:" + "e" * 81,
        "arn:aws:states:eu-west-1:123456789012:execution:etl:one",
        "arn:aws:states:eu-west-1:123456789012:express:etl:one:5f2b",
        "arn:aws:states:eu-west-1:123456789012:activity:etl",
        "arn:aws:lambda:eu-west-1:123456789012:function:etl",
    ],
)
def test_w16_an_invalid_state_machine_is_refused(arn: str) -> None:
    where, reported = refusal(type="step_functions", state_machine=arn)
    assert (where, "expected text that matches" in reported) == ("state_machine", True), reported


def test_w16_a_poll_is_at_most_once_a_minute() -> None:
    where, reported = refusal(type="step_functions", state_machine=MACHINE, poll_every="30s")
    assert (where, reported) == ("poll_every", "expected an interval from 1m to 1d, got '30s'")


@pytest.mark.parametrize(
    ("schedule", "label"),
    [
        ("demo.flights.clean", "clean"),
        ("demo.flights.etl~g1~load", "etl-g1-load"),
        ("demo.flights.~ping", "-ping"),
        ("demo.flights." + "a" * 60, "a" * 32),
    ],
)
def test_w16_a_name_fits_step_functions_and_its_logs(schedule: str, label: str) -> None:
    name = execution_name(run(schedule))
    assert name == f"sluice-{label}-{TOKEN}"
    assert re.fullmatch(r"[0-9A-Za-z_-]{1,80}", name)


def test_w16_each_attempt_has_its_own_name() -> None:
    tokens = {ids.client_token(run_id, attempt) for run_id in ("a", "b") for attempt in (1, 2)}
    names = {execution_name(replace(run(), request=replace(run().request, client_token=each))) for each in tokens}
    assert len(names) == 4


@pytest.mark.parametrize("qualifier", ["", ":PROD", ":7"])
def test_w16_the_arn_of_an_execution_names_no_alias(qualifier: str) -> None:
    assert execution_arn(run(machine=f"{MACHINE}{qualifier}")) == f"{ARN}:{NAME}"


@pytest.mark.parametrize(
    ("status", "state", "outcome"),
    [
        ("SUCCEEDED", "SUCCEEDED", "failed"),
        ("FAILED", "FAILED", "failed"),
        ("TIMED_OUT", "FAILED", "timed_out"),
        ("ABORTED", "CANCELLED", "failed"),
    ],
)
def test_w16_an_event_says_how_an_execution_ended(status: str, state: str, outcome: Any) -> None:
    change = reported(execution(status))
    assert change.update is not None
    assert (change.kind, change.target_id, change.state) == ("step_functions", f"{ARN}:{NAME}", status)
    assert (change.update.state, change.update.outcome) == (state, outcome)
    assert (change.update.started_at, change.update.at) == (NOON, NOON + 5 * SECOND), "to the millisecond"
    assert change.run_name == "demo.flights.clean.1.a-2"


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
def test_w16_an_event_says_since_when_it_runs(status: str) -> None:
    assert reported(execution(status)).update == RunUpdate("RUNNING", NOON, target_id=f"{ARN}:{NAME}")


def test_w16_an_unknown_status_changes_nothing() -> None:
    assert reported(execution("SLEEPING")).update is None


def test_w16_the_reason_is_error_and_cause_within_a_row() -> None:
    failed = reported(execution("FAILED", error="States.TaskFailed", cause="x" * 32_768)).update
    assert failed is not None
    assert failed.reason.startswith("States.TaskFailed: xxx")
    assert len(failed.reason) == 4_000
    late = reported(execution("TIMED_OUT")).update
    assert late is not None
    assert late.reason == "the execution ran longer than its state machine allows"


@pytest.mark.parametrize(
    ("status", "why", "complete"),
    [
        ("SUCCEEDED", {}, True),
        ("FAILED", {"error": "E"}, True),
        ("FAILED", {"cause": "no disk"}, True),
        ("FAILED", {}, False),
        ("ABORTED", {}, False),
    ],
)
def test_w16_only_an_end_without_a_reason_needs_a_poll(status: str, why: dict[str, str], complete: bool) -> None:
    assert reported(execution(status, **why)).complete is complete


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("sluice-clean-copied-by-hand", json.dumps(GIVEN)),
        (NAME, json.dumps({"sluice": {**GIVEN["sluice"], "attempt": 3}})),
        (NAME, json.dumps({"sluice": {**GIVEN["sluice"], "event_id": "demo.flights.clean.1.b"}})),
        (TOKEN, json.dumps(GIVEN)),
        (NAME, None),
        (NAME, ""),
        (NAME, "{}"),
        (NAME, "[]"),
        (NAME, '{"sluice": 1}'),
        (NAME, '{"sluice": {"event_id": "a", "attempt": "x"}}'),
    ],
)
def test_w16_a_foreign_execution_is_not_ours(name: str, given: str | None) -> None:
    assert run_name_of(name, given) is None
    assert run_name_of(NAME, json.dumps(GIVEN)) == "demo.flights.clean.1.a-2"


def test_w16_an_event_whose_input_was_too_large_names_no_run() -> None:
    change = of_event({"source": "aws.states"}).read_event(
        event_of(execution("SUCCEEDED"), NOON, input=None, inputDetails={"included": False})
    )
    assert (change.run_name, change.target_id) == (None, f"{ARN}:{NAME}")


def test_w15_the_log_of_an_execution_is_its_history() -> None:
    begun = run(target_id=f"{ARN}:{NAME}")
    log = of_run(begun).log_of(begun)
    assert isinstance(log, NoLog)
    assert log.why.endswith(f"aws stepfunctions get-execution-history --execution-arn {ARN}:{NAME}")
    waiting = of_run(run()).log_of(run())
    assert isinstance(waiting, NoLog)
    assert (waiting.why, waiting.never) == ("it has no execution yet", "it never began there")


def reported(of: Execution) -> Any:
    event = event_of(of, NOON + 6 * SECOND)
    return of_event(event).read_event(event)
