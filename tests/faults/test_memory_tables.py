"""The tables in memory answer as moto does, call by call, in the crash scenarios.

moto is slow. So `make test` plays a sample of the scenarios, which sends each form of request that all of them send:
each expression, each index, each option. `make test-long` plays the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sluice.testing.expressions import plain
from sluice.testing.memory_tables import MemoryTables
from tests.faults.dying import SMALL, play, world_for
from tests.faults.test_crash_points import SCENARIOS
from tests.support import tables
from tests.support.aws_rules import TABLE_CALLS
from tests.support.world import World

SAMPLE = (
    "a counted run that could never be delivered, and is redriven",
    "a pool that grows while a job waits",
    "a fast policy, whose queue is in parts",
    "its workflow asks for no approval any more",
    "a rate, and two schedules that share it",
    "a start that misses its permit",
    "an app that goes with its messages",
    "a disable of who holds a slot and a rate",
    "a pool that a workflow names while its runs are going",
    "a backfill that is cancelled with its runs",
    "a run that fails and is attempted again",
    "a policy that two schedules share",
    "a gap after the last run, and two schedules that keep it",
    "a drain that becomes a hold",
    "a feed that comes, and one that does not",
    "start calls that are throttled",
    "a batch that outlasts its lease and its invocation",
    "an end in the middle of a fire",
    "a hold and a resume around jobs that run, queue and come",
    "a start and an end that are not in time",
    "a fast policy, whose jobs start in blocks",
    "a group of two workflows",
    "a worker that dies, and another that does its work",
    "a policy that comes to allow more",
    "two failures, and the hold that they bring",
    "updates that leave triggers as they are",
    "an execution that fails and is attempted again",
    "a backlog of three fires each",
)


class Twin:
    """A client over two clients: each call goes to both, and both must answer alike."""

    def __init__(self, one: Any, other: Any) -> None:
        self._one, self._other = one, other

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            one, other = _answer(self._one, name, arguments), _answer(self._other, name, arguments)
            assert _seen(one) == _seen(other), f"{name} of {arguments}"
            if isinstance(other, ClientError):
                raise other
            return other

        return call


@pytest.mark.parametrize("name", SAMPLE)
def test_the_tables_in_memory_answer_as_moto_does(name: str) -> None:
    _compare(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in SAMPLE])
def test_the_tables_in_memory_answer_as_moto_in_every_scenario(name: str) -> None:
    _compare(name)


@pytest.mark.long
def test_the_sample_for_moto_sends_every_form_of_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new scenario sends a new form of request, add the scenario to the sample."""
    sent: dict[str, set[tuple[str, ...]]] = {name: set() for name in SCENARIOS}
    playing = ""
    for call in TABLE_CALLS:
        plain_call = getattr(MemoryTables, call)

        def noted(tables: MemoryTables, *, call: str = call, plain_call: Any = plain_call, **arguments: Any) -> Any:
            sent[playing].update(_forms(call, arguments))
            return plain_call(tables, **arguments)

        monkeypatch.setattr(MemoryTables, call, noted)
    for name, scenario in SCENARIOS.items():
        playing = name
        play(scenario, world_for(scenario))
    in_sample = set().union(*(sent[name] for name in SAMPLE))
    missing = {name: forms for name in SCENARIOS if (forms := sent[name] - in_sample)}
    assert missing == {}


def _forms(call: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The parts of a request that decide how the tables read it, without numbers: they are those of placeholders."""
    yield (call,)
    for name, content in arguments.items():
        if name.endswith("Expression"):
            yield call, name, re.sub(r"\d+", "#", content)
        elif name not in ("Key", "Item", "TableName", "TransactItems", "RequestItems"):
            yield call, name, content if name == "IndexName" else ""
    for action in arguments.get("TransactItems", ()):
        for kind, parts in action.items():
            yield from _forms(f"{call} {kind}", parts)


def _compare(name: str) -> None:
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        twin = Twin(client, MemoryTables())
        world = World(twin, tables.create(twin, "t"), **{**SMALL, **SCENARIOS[name].tuned})
        play(SCENARIOS[name], world)


def _answer(client: Any, name: str, arguments: Mapping[str, Any]) -> Any:
    try:
        return getattr(client, name)(**arguments)
    except ClientError as error:
        return error


def _seen(answer: Any) -> Any:
    """What a caller receives: the error, or the items in their order."""
    if isinstance(answer, ClientError):
        reasons = [reason["Code"] for reason in answer.response.get("CancellationReasons", [])]
        return answer.response["Error"]["Code"], reasons
    view = answer or {}
    found = [*view.get("Items", []), *([view["Item"]] if "Item" in view else [])]
    several = {name: sorted(_rows(rows)) for name, rows in view.get("Responses", {}).items()}
    return _rows(found), several


def _rows(rows: Any) -> list[Any]:
    return [repr(plain({"M": row})) for row in rows]
