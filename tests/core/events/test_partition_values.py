"""Values of partition keys: what a job could read as a pattern or another folder is refused everywhere (T7, L12)."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.events.partitions import Located, locate
from chalicelib.core.partition_values import GLOB, check_value, decoded

DAYS = Dataset(bucket="lake", prefix="raw/", keys=("day",))

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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("07%3A00", "07:00"),
        ("2026-03-01 07%3a00%3A00", "2026-03-01 07:00:00"),
        ("a%20b%25", "a b%"),
        ("caf%C3%A9", "caf\u00e9"),  # as pyarrow writes it
        ("__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        ("100%", "100%"),
        ("a%2Fb", "a%2Fb"),  # no value has a slash
        ("%2A", "%2A"),  # Spark would read it as a pattern
        ("%253A", "%253A"),  # it would look like an escape
        ("%25%33A", "%25%33A"),
        ("%E9", "%E9"),  # no UTF-8
        ("e%CC%81", "e%CC%81"),  # not in the normal form C
        ("%00", "%00"),
    ],
)
def test_a_value_is_read_without_the_escapes_of_its_folder(text: str, value: str) -> None:
    assert decoded(text) == value
    assert locate(DAYS, f"raw/day={text}/part-0") == Located((text,), f"raw/day={text}/", "part-0")
    located = locate(DAYS, f"raw/day={text}/part-0")
    assert located is not None
    assert located.values == (value,)


@given(st.text("a%235AFf:/*\u00e9", min_size=1, max_size=9), st.text("a%235AFf:/*\u00e9", min_size=1, max_size=9))
def test_folders_share_a_value_only_if_they_mean_the_same(one: str, other: str) -> None:
    assert decoded(decoded(one)) == decoded(one)
    if decoded(one) == decoded(other):
        assert unquote(one) == unquote(other)
