"""Values of partition keys: what a job could read as a pattern or another folder is refused everywhere (T7, L12)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.events.values import GLOB, check_value

BAD = [
    "*",
    "a?",
    "{a,b}",
    "[0-9]",
    "a]",
    "..",
    ".",
    "a\\b",
    "a\x00b",
    "a\nb",
    "a\u200bb",
    "a\u0301",
    "\u212b",
    "\ud800",
]
GOOD = ["2026-01-31", "a b", "\u00e1", "日本", "%2A", "a=b", "__HIVE_DEFAULT_PARTITION__", "a..b", "+1:00", "a,b"]


@pytest.mark.parametrize("value", BAD)
def test_a_value_that_names_other_folders_is_refused(value: str) -> None:
    with pytest.raises(SluiceError) as failure:
        check_value(value, "partition.day")
    assert (failure.value.code, failure.value.field) == ("invalid", "partition.day")
    assert failure.value.hint


@pytest.mark.parametrize("value", GOOD)
def test_a_value_as_spark_writes_it_is_accepted(value: str) -> None:
    check_value(value, "partition.day")


@given(st.text(min_size=1, max_size=8))
def test_an_accepted_value_has_one_form_and_no_pattern(value: str) -> None:
    try:
        check_value(value, "x")
    except SluiceError:
        return
    assert unicodedata.normalize("NFC", value) == value
    assert not GLOB & set(value)
    assert "/" not in value
