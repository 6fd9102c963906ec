"""The tables in memory answer as moto does, call by call, in all crash scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sluice.testing.expressions import plain
from sluice.testing.memory_tables import MemoryTables
from tests.faults.dying import SMALL, play
from tests.faults.test_crash_points import SCENARIOS
from tests.support import tables
from tests.support.world import World


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


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_tables_in_memory_answer_as_moto_does(name: str) -> None:
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
    told = answer or {}
    found = [*told.get("Items", []), *([told["Item"]] if "Item" in told else [])]
    several = {name: sorted(_rows(rows)) for name, rows in told.get("Responses", {}).items()}
    return _rows(found), several


def _rows(rows: Any) -> list[Any]:
    return [repr(plain({"M": row})) for row in rows]
