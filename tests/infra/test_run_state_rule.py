"""The rule for EMR's state changes, against envelopes as AWS documents them.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html The emulator delivers events
itself, because no client can put events of `aws.*` sources. So this test checks the pattern.
"""

from typing import Any

import pytest
from moto.events.models import EventPattern

from .resolve import Resolver

APPLICATION, LISTED = "00f1982r1uukb925", "00g2093s2vvlc036"
RUNNING: dict[str, Any] = {
    "version": "0",
    "id": "00df3ec6-5da1-36e6-ab71-20f0de68f8a0",
    "detail-type": "EMR Serverless Job Run State Change",
    "source": "aws.emr-serverless",
    "account": "123456789012",
    "time": "2022-05-31T21:07:42Z",
    "region": "us-east-1",
    "resources": [],
    "detail": {
        "jobRunId": "00f1cbn5g4bb0c01",
        "applicationId": APPLICATION,
        "arn": f"arn:aws:emr-serverless:us-east-1:123456789012:/applications/{APPLICATION}/jobruns/00f1cbn5g4bb0c01",
        "releaseLabel": "emr-7.9.0",
        "state": "RUNNING",
        "previousState": "SCHEDULED",
        "createdBy": "arn:aws:sts::123456789012:assumed-role/sluice/check",
        "updatedAt": "2022-05-31T21:07:42.299487Z",
        "createdAt": "2022-05-31T21:07:25.325900Z",
    },
}


@pytest.fixture
def pattern(template: dict[str, Any]) -> EventPattern:
    """The rule's pattern, as CloudFormation resolves it."""
    event = template["Resources"]["RunState"]["Properties"]["Events"]["RunStateEvent"]
    resolve = Resolver(template, {"EmrApplication.ApplicationId": APPLICATION}, EmrApplicationIds=LISTED)
    return EventPattern(None, resolve(event["Properties"]["Pattern"]))


def envelope(**detail: str) -> dict[str, Any]:
    """The sample with other details."""
    return {**RUNNING, "detail": {**RUNNING["detail"], **detail}}


@pytest.mark.parametrize("state", ["RUNNING", "SUCCESS", "FAILED", "CANCELLED"])
def test_states_that_change_a_run_match(pattern: EventPattern, state: str) -> None:
    assert pattern.matches_event(envelope(state=state))


@pytest.mark.parametrize("state", ["SUBMITTED", "QUEUED", "PENDING", "SCHEDULED", "CANCELLING"])
def test_intermediate_states_do_not_match_the_rule(pattern: EventPattern, state: str) -> None:
    assert not pattern.matches_event(envelope(state=state))


def test_runs_of_a_listed_application_match(pattern: EventPattern) -> None:
    assert pattern.matches_event(envelope(applicationId=LISTED))


def test_other_applications_do_not_match(pattern: EventPattern) -> None:
    assert not pattern.matches_event(envelope(applicationId="00somebodyelses"))


@pytest.mark.parametrize(
    "detail_type",
    [
        "EMR Serverless Application State Change",
        "EMR Serverless Job Run Retry",
        "EMR Serverless Job Resource Utilization Update",
    ],
)
def test_other_events_of_the_service_do_not_match(pattern: EventPattern, detail_type: str) -> None:
    assert not pattern.matches_event({**RUNNING, "detail-type": detail_type})
