"""Amounts of data as users write and read them (T9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.sizes import MAX_BYTES, format_bytes, parse_bytes
from tests.core.builders import brief, thorough

DECIMAL = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
UNITS = DECIMAL | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
units = st.sampled_from(sorted(UNITS))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (100, 100),
        ("100", 100),
        ("100 B", 100),
        ("100GB", 100 * 10**9),
        (" 100 gb ", 100 * 10**9),
        ("1.5 MB", 1_500_000),
        ("1.5 MiB", 1_572_864),
        ("0.001 kb", 1),
        ("1.0004 KB", 1_000),
        ("1000 PB", 10**18),
        (10**18, 10**18),
        (1, 1),
    ],
)
def test_t9_a_size_is_a_number_of_bytes_or_of_a_unit(value: str | int, size: int) -> None:
    assert parse_bytes(value, "bytes") == size


@given(st.integers(1, MAX_BYTES), units)
@brief
def test_t9_a_number_of_units_is_that_many_times_its_bytes(count: int, unit: str) -> None:
    count = count % (MAX_BYTES // UNITS[unit]) + 1
    for text in (f"{count}{unit}", f"{count} {unit}", f"{count} {unit.lower()}", f"{count}.0 {unit.upper()}"):
        assert parse_bytes(text, "bytes") == count * UNITS[unit]


@pytest.mark.parametrize(
    "value",
    [
        *[
            "",
            "GB",
            "much",
            "-1",
            "-1 GB",
            "1 XB",
            "1 G",
            "1,5 MB",
            "1e3",
            ".5 MB",
            "1. MB",
            "1 MB 2 KB",
            "٣ GB",
            "1" * 41,
        ],
        *["0", "0.9 B", "0 GB", "1001 PB", "889 PiB", 0, -5, 10**18 + 1],
        *[True, None, 1.5, [1], {"bytes": 1}],
    ],
)
def test_t9_an_invalid_size_is_refused_with_field_and_expected(value: object) -> None:
    with pytest.raises(SluiceError) as caught:
        parse_bytes(value, "trigger.bytes")

    assert (caught.value.code, caught.value.field) == ("invalid", "trigger.bytes")
    assert caught.value.message.startswith("expected a size such as 100GB, 1.5 MiB or a number of bytes, from 1 B to")
    assert caught.value.message.endswith(f"got {value!r}")
    assert caught.value.hint is not None
    assert "powers of 1024" in caught.value.hint


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1 KB"),
        (1_024, "1 KiB"),
        (1_500_000, "1.5 MB"),
        (100 * 10**9, "100 GB"),
        (10**18, "1000 PB"),
        (5 * 2**30, "5 GiB"),
        (125 * 2**30, "125 GiB"),
        (1_536 * 2**10, "1536 KiB"),
        (1_234_000, "1.234 MB"),
        (1_234_500, "1.23 MB"),
        (1_234_567, "1.23 MB"),
        (999_999, "999.99 KB"),
        (37_482_918_273, "37.48 GB"),
    ],
)
def test_t9_a_size_is_spelled_as_a_person_writes_it(size: int, words: str) -> None:
    assert format_bytes(size) == words


@given(st.integers(1, MAX_BYTES), units.filter(lambda unit: unit != "B"))
@thorough
def test_t9_whole_numbers_of_a_unit_are_spelled_exactly(count: int, unit: str) -> None:
    size = (count % (MAX_BYTES // UNITS[unit]) + 1) * UNITS[unit]
    assert parse_bytes(format_bytes(size), "bytes") == size


@given(st.integers(1, 999))
@brief
def test_t9_a_few_bytes_are_spelled_exactly(size: int) -> None:
    assert format_bytes(size) == f"{size} B"
    assert parse_bytes(format_bytes(size), "bytes") == size


@given(st.integers(1, MAX_BYTES))
@thorough
def test_t9_a_shown_size_is_at_most_a_hundredth_too_small(size: int) -> None:
    said = parse_bytes(format_bytes(size), "bytes")
    assert size * 99 // 100 <= said <= size
