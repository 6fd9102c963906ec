"""The values that a key of partitions may have, as a dataset or a schedule lists them (T25, T27)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, ValidationInfo

from chalicelib.core.documents import STORED
from chalicelib.core.errors import invalid
from chalicelib.core.partition_values import check_value, decoded

MAX_VALUES = 1_000  # of a key
MAX_BYTES = 200_000  # of the lists in the row of a job, which has 400 KB at most

Listed = Annotated[tuple[str, ...], Field(min_length=1, json_schema_extra={"maxItems": MAX_VALUES})]


def check_listed(key: str, values: Sequence[str], info: ValidationInfo) -> None:
    """Raise ``invalid`` unless these are distinct values that folders of a key may have, `MAX_VALUES` at most."""
    field = f"values.{key}"
    if len(values) > MAX_VALUES:
        hint = f"add by: [{key}] to the schedules: then there is a job for each {key}, and none has to be listed"
        raise invalid(field, f"at most {MAX_VALUES:,} values", f"{len(values):,}", hint)
    for value in values:
        check_value(value, field)
        if decoded(value) != value and info.context != STORED:
            hint = f"write the value without the escapes of its folder: {decoded(value)}"
            raise invalid(field, "a value as runs get it", value, hint)
    if len(set(values)) < len(values):
        again = next(value for number, value in enumerate(values) if value in values[:number])
        raise invalid(field, "distinct values", again, "write each value once")


def size_of(values: Mapping[str, Sequence[str]]) -> int:
    """How many bytes the row of a job has because of these lists."""
    return sum(len(json.dumps(listed, separators=(",", ":"))) for listed in values.values())
