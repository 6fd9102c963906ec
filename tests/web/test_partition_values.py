"""Values of partition keys in requests: what a job could read as a pattern or another folder is refused (T7, L12)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.backfills.request import Backfill, Reprocess
from chalicelib.core.errors import from_validation
from chalicelib.web.bodies import NewPartition, RunNow


@pytest.mark.parametrize("value", ["*", "{1,2}", "a\u0301"])
@pytest.mark.parametrize(
    ("model", "body"),
    [
        (NewPartition, lambda value: {"partition": {"day": value}}),
        (RunNow, lambda value: {"partition": {"day": value}}),
        (Backfill, lambda value: {"partitions": {"values": [{"day": value}]}}),
        (Backfill, lambda value: {"partitions": {"from": {"day": value}}}),
        (Reprocess, lambda value: {"dataset": "d", "partition": {"day": value}}),
    ],
)
def test_each_request_refuses_such_a_value(model: Any, body: Any, value: str) -> None:
    with pytest.raises(ValidationError) as failure:
        model.model_validate(body(value))
    error = from_validation(failure.value, model)
    assert error.field is not None
    assert error.field.endswith("day")
    assert "a value" in error.message
