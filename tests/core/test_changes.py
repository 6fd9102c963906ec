"""`core/changes.py::replace` does what `dataclasses.replace` does."""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import pytest

from chalicelib.core.changes import replace
from chalicelib.core.rows.job import Job, Progress
from tests.aws.tables.test_unknown_attributes import KINDS, sample


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_copy_of_a_row_is_that_of_the_standard_library(kind: Any) -> None:
    row = dataclasses.replace(sample(kind), unknown=(("zz", {"S": "kept"}),))
    first = next(each.name for each in dataclasses.fields(kind) if each.name != "unknown")
    made, expected = replace(row, **{first: "other"}), dataclasses.replace(row, **{first: "other"})
    assert made == expected != row
    assert made.unknown == row.unknown
    assert type(made) is kind
    assert replace(row) == row and replace(row) is not row


def test_a_copy_is_frozen() -> None:
    made = replace(Progress(1, 2, 3), count=4)
    assert made == Progress(4, 2, 3)
    with pytest.raises(FrozenInstanceError):
        made.count = 5


def test_a_name_that_is_no_field_is_an_error() -> None:
    with pytest.raises(TypeError, match="expected fields of Progress, got counted"):
        replace(Progress(1, 2, 3), counted=4)


@dataclass
class WithoutSlots:
    size: int
    parts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checked:
    size: int
    twice: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.size)


@dataclass(frozen=True, slots=True)
class Single:
    size: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [(WithoutSlots(1, [3]), WithoutSlots(2, [3])), (Checked(1), Checked(2)), (Single(1), Single(2))],
)
def test_other_classes_are_copied_by_their_initializer(value: Any, expected: Any) -> None:
    assert replace(value, size=2) == expected


def test_a_job_has_slots_that_are_copied() -> None:
    """Otherwise the copy would be as slow as before."""
    from chalicelib.core import changes

    assert changes._slots(Job) is not None
