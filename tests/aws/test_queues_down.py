"""Hints while SQS does not answer: nothing depends on a hint, so its sender continues without it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from chalicelib.aws.hints import SqsHints
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.ref import Ref
from tests.support.clock import NOON, HandClock

A_JOB = Ref("job", ("demo.flights.clean", "1", "FIRE#x"))


class Down:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def send_message_batch(self, **_: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "down"}}, "SendMessageBatch"),
        EndpointConnectionError(endpoint_url="https://sqs.example"),
    ],
)
def test_a_hint_that_cannot_be_sent_fails_only_its_sender(error: Exception) -> None:
    hints = SqsHints(Down(error), "hints", HandClock())
    hints.send([A_JOB], NOON, NOON)
    hints.send_all([(NOON + SECOND, [A_JOB])], NOON)
    with pytest.raises(type(error)):
        hints.send_all([(NOON + SECOND, [A_JOB])], NOON, ahead=True, must=True)
