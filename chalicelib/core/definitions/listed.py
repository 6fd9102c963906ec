"""The values that a key of partitions may have, as a dataset or a schedule lists them (T25, T27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, ValidationInfo

from chalicelib.core.documents import STORED, one_of
from chalicelib.core.errors import invalid
from chalicelib.core.partition_values import check_value, decoded
from chalicelib.core.triggers.parts import MAX_VALUES

Listed = Annotated[tuple[str, ...], Field(min_length=1, json_schema_extra={"maxItems": MAX_VALUES})]


def _tag(given: Any) -> str:
    if isinstance(given, list | tuple):
        return "@listed"
    return "@seen" if given == "seen_last" else "@other"


# A list, or the values that the period before had.
ListedOrSeen = Annotated[
    Annotated[Listed, Tag("@listed")] | Annotated[Literal["seen_last"], Tag("@seen")],
    one_of(_tag, "a list of values, or seen_last"),
]


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
