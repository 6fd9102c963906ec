"""The meaning of StartJobRun's answers, and the calls that are repeated: a token makes the repeat safe (E1, E8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.launch import CALL_LEASE, UNREADY
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from tests.support.clock import NOON
from tests.support.emr_client import EmrClient
from tests.support.rows import run

TARGET: dict[str, Any] = {
    "type": "emr_serverless",
    "entry_point": "s3://code/job.py",
    "arguments": [],
    "py_files": [],
    "spark": {},
    "application_id": None,
    "execution_role_arn": None,
}


class Answers(EmrClient):
    """Raises these errors first, one a call, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors, self.calls = list(errors), 0

    def start_job_run(self, **asked: Any) -> dict[str, str]:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().start_job_run(**asked)


def refused(code: str, message: str = "no", status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "StartJobRun")


def called(calls: int = 1, after: int = 0, permits: tuple[str, ...] = ("emr:00app",)) -> Run:
    """A run with a recorded call, this long after its first one."""
    made = run()
    request = replace(made.request, target=TARGET)
    lease = NOON + after + CALL_LEASE
    return replace(
        made, request=request, calls=calls, start_requested_at=NOON, lease_until=lease, permits=permits
    )  # fmt: skip


def start(client: EmrClient, asked: Run | None = None) -> Answer:
    return EmrServerlessTarget(client, "00app", "role", "control", lambda seconds: None).start(asked or called(), {})


UNHEARD = [
    ReadTimeoutError(endpoint_url="https://emr-serverless"),
    ConnectionClosedError(endpoint_url="https://emr-serverless"),
    refused("InternalServerException", status=500),
]


@pytest.mark.parametrize("error", UNHEARD, ids=["timeout", "connection", "500"])
def test_e1_unanswered_start_is_called_once_more_with_its_token(error: Exception) -> None:
    client = Answers(error)
    assert start(client) == Started("00app/jr00001")
    assert client.calls == 2


def test_e1_an_unheard_accepted_start_is_not_made_twice() -> None:
    client = EmrClient()
    client.lose_answers = 1
    assert start(client) == Started("00app/jr00001")
    assert len(client.runs) == 1


def test_e1_after_two_unanswered_calls_the_run_may_have_started() -> None:
    client = Answers(UNHEARD[0], UNHEARD[2], UNHEARD[0])
    assert isinstance(start(client), NoAnswer)
    assert client.calls == 2


def test_e1_a_refused_second_call_leaves_the_first_unknown() -> None:
    client = Answers(UNHEARD[0], refused("ThrottlingException"))
    assert isinstance(start(client), NoAnswer), "a slot is not given back unasked"


def test_e8_a_throttled_start_is_not_repeated_at_once() -> None:
    client = Answers(refused("ThrottlingException"))
    assert isinstance(start(client), NotNow)
    assert client.calls == 1, "the pace of the application says when"


def test_e8_a_start_with_a_policy_permit_is_called_once() -> None:
    client = Answers(UNHEARD[0])
    answer = start(client, called(permits=("policy:demo.calm", "emr:00app")))
    assert isinstance(answer, NoAnswer)
    assert client.calls == 1, "the second call would come outside of the permit's span"


STATES = [
    refused("ConflictException", "Application 00app is in state STOPPING", 409),
    refused("ValidationException", "Application must be in one of the following statuses: [STARTED, STOPPED]"),
]
ROLES = [
    refused("ValidationException", "The execution role arn:aws:iam::1:role/new cannot be assumed"),
    refused("AccessDeniedException", "not authorized to perform: iam:PassRole on resource: role/new", 403),
]


CALLER = "arn:aws:sts::123456789012:assumed-role/sluice-prod-CheckRole-1A2B3C/sluice-prod-check"
RESOURCE = "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/00app"
DENIED = {
    "tags": (f"emr-serverless:TagResource on resource: {RESOURCE} because no identity-based policy allows the "
             "emr-serverless:TagResource action", "EmrApplicationIds"),
    "start": (f"emr-serverless:StartJobRun on resource: {RESOURCE}", "EmrApplicationIds"),
    "organization": ("iam:PassRole on resource: arn:aws:iam::123456789012:role/new with an explicit deny in a service "
                     "control policy", "no grant elsewhere allows it"),
    "key": ("kms:GenerateDataKey on resource: arn:aws:kms:eu-west-1:123456789012:key/1a because no resource-based "
            "policy allows the kms:GenerateDataKey action", "in the policy of the key"),
    "endpoint": ("emr-serverless:StartJobRun because no VPC endpoint policy allows the emr-serverless:StartJobRun "
                 "action", "in the policy of the VPC endpoint"),
}  # fmt: skip


@pytest.mark.parametrize("denied", DENIED)
@pytest.mark.parametrize("code", ["AccessDeniedException", "ValidationException"])
def test_e1_a_final_denial_says_what_to_grant(code: str, denied: str) -> None:
    """The ARN of the caller has the word role in it."""
    action, remedy = DENIED[denied]
    answer = start(Answers(refused(code, f"User: {CALLER} is not authorized to perform: {action}", 403)))
    assert isinstance(answer, Never)
    assert action in answer.why
    assert remedy in answer.why.partition("what to do: ")[2]


def test_e1_a_role_that_may_not_be_passed_yet_is_passed_later() -> None:
    text = "iam:PassRole on resource: arn:aws:iam::123456789012:role/new because no identity-based policy allows the"
    message = f"User: {CALLER} is not authorized to perform: {text} iam:PassRole action"
    answer = start(Answers(refused("AccessDeniedException", message, 403)))
    assert isinstance(answer, NotNow)
    assert answer.alone
    assert "EmrRoleArns" in answer.why


def test_e1_a_denial_in_unknown_words_is_final() -> None:
    assert isinstance(start(Answers(refused("AccessDeniedException", f"{CALLER} may not", 403))), Never)


@pytest.mark.parametrize("error", STATES, ids=["conflict", "status"])
def test_e1_an_application_changing_its_state_takes_runs_later(error: ClientError) -> None:
    answer = start(Answers(error))
    assert isinstance(answer, NotNow)
    assert not answer.alone, "it holds for all runs of the application"


@pytest.mark.parametrize("error", ROLES, ids=["not seen", "not passed"])
def test_e1_a_role_not_visible_yet_delays_only_its_own_runs(error: ClientError) -> None:
    answer = start(Answers(error))
    assert isinstance(answer, NotNow)
    assert answer.alone
    assert error.response["Error"]["Message"] in answer.why


@pytest.mark.parametrize("error", [*STATES, *ROLES])
def test_e1_a_refusal_that_lasts_ten_minutes_is_final(error: ClientError) -> None:
    assert UNREADY == 10 * MINUTE
    assert isinstance(start(Answers(error), called(calls=9, after=UNREADY - SECOND)), NotNow)
    assert isinstance(start(Answers(error), called(calls=2, after=UNREADY)), NotNow), "it waited for other things"
    assert isinstance(start(Answers(error), called(calls=9, after=UNREADY)), Never)


@pytest.mark.parametrize(
    "error",
    [
        refused("ValidationException", "sparkSubmitParameters: expected a flag"),
        refused("ValidationException", "Cross-account pass role is not allowed"),
        refused("ResourceNotFoundException", "Application 00app does not exist", 404),
        refused("ValidationException", "Application 00app is in state TERMINATED"),
    ],
)
def test_e1_a_permanent_error_is_a_final_refusal(error: ClientError) -> None:
    assert isinstance(start(Answers(error)), Never)


def test_w7_a_failed_poll_or_cancel_call_is_repeated_once() -> None:
    class Unheard(EmrClient):
        lost = 2

        def get_job_run(self, **asked: str) -> dict[str, Any]:
            self._lose()
            return super().get_job_run(**asked)

        def cancel_job_run(self, **asked: str) -> None:
            self._lose()
            super().cancel_job_run(**asked)

        def _lose(self) -> None:
            self.lost -= 1
            if self.lost % 2:
                raise UNHEARD[0]

    client = Unheard()
    assert isinstance(start(client), Started)
    target = EmrServerlessTarget(client, "00app", "role", "control", lambda seconds: None)
    started = replace(called(), target_id="00app/jr00001")
    target.cancel(started)
    update = target.status(started)
    assert update is not None
    assert update.state == "CANCELLED"
