"""A repeated write is recognised by the wire format: the stored item in a refusal, and the token of a transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import Create, DeleteJob, PutState, Replace, Write
from tests.support import rows
from tests.support.reasons import says
from tests.support.world import settings


class LosesAnswers:
    """A client whose writes are carried out. The answer to every other one is lost."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            self.asked.append(arguments)
            answer = getattr(self._client, name)(**arguments)
            if len(self.asked) % 2:
                raise ConnectionClosedError(endpoint_url="https://dynamodb")
            return answer

        return call


@pytest.mark.parametrize(
    "write",
    [Replace(replace(rows.job(), rev=2, reason=says("again"), correlation={"day": "1"})), DeleteJob(rows.job())],
)
def test_a_single_write_is_recognized_by_the_item_in_the_refusal(
    store: tuple[Any, dict[str, str]], dynamo: Dynamo, write: Write
) -> None:
    assert dynamo.commit([Create(rows.job())]) is None
    client = LosesAnswers(store[0])

    assert Dynamo(client, settings(store[1])).commit([write]) is None

    assert [arguments.get("ReturnValuesOnConditionCheckFailure") for arguments in client.asked] == [None, "ALL_OLD"]
    found = dynamo.get(kinds.key(Job, rows.SCHEDULE, rows.GENERATION, "GATHERING"), Job)
    assert found == (write.row if isinstance(write, Replace) else None)


def test_a_repeated_transaction_has_the_same_token(store: tuple[Any, dict[str, str]], dynamo: Dynamo) -> None:
    client = LosesAnswers(store[0])

    Dynamo(client, settings(store[1])).commit([Create(rows.job()), PutState(rows.schedule_state(), None)])

    first, second = (arguments["ClientRequestToken"] for arguments in client.asked)
    assert first == second
    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == rows.schedule_state()
