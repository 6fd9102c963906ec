"""Registered partitions by their values: a number names the folder of that number, however many zeros it has (L12)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.flow import registered
from tests.support.world import World, flights

KEYS = ["year", "month", "day"]


def world_of(keys: list[str], *folders: str) -> World:
    """A world with a dataset of these keys, and an object in each of these folders."""
    world = World()
    datasets = {"days": {"bucket": "lake", "prefix": "raw/days/", "keys": keys}}
    world.deploy(flights({}) | {"datasets": datasets})
    for folder in folders:
        world.upload(f"raw/days/{folder}/part-0.parquet")
    return world


def found(world: World, keys: list[str], *values: str, **options: Any) -> tuple[str, ...]:
    return registered.texts(world.ports, "demo.days", keys, values, "partition", **options)


PADDED = [f"year=2026/month={month:02}/day={day:02}" for month, day in product((1, 9, 10), (1, 5, 12))]


@pytest.mark.parametrize(
    ("named", "texts"),
    [
        (("2026", "1", "5"), ("2026", "01", "05")),
        (("2026", "01", "05"), ("2026", "01", "05")),
        (("02026", "001", "5"), ("2026", "01", "05")),
        (("2026", "10", "012"), ("2026", "10", "12")),
        (("2026", "9", "12"), ("2026", "09", "12")),
        (("2026", "9"), ("2026", "09")),
        (("2026",), ("2026",)),
        (("2027", "1", "5"), ("2027", "1", "5")),
        (("2026", "13", "1"), ("2026", "13", "1")),
        (("2026", "10", "6"), ("2026", "10", "6")),
    ],
)
def test_l12_numbers_name_the_registered_folder(named: tuple[str, ...], texts: tuple[str, ...]) -> None:
    assert found(world_of(KEYS, *PADDED), KEYS, *named) == texts


def test_l12_numbers_without_zeros_are_named_with_zeros() -> None:
    world = world_of(KEYS, "year=2026/month=1/day=5", "year=2026/month=10/day=5")
    assert found(world, KEYS, "2026", "01", "05") == ("2026", "1", "5")


def test_l12_a_folder_above_that_is_spelled_otherwise_is_named() -> None:
    world = world_of(KEYS, *PADDED)
    with pytest.raises(SluiceError, match=r"in the folders of demo.days: year=2026/month=01, got .*month=1/day=6"):
        found(world, KEYS, "2026", "1", "6")
    assert found(world, KEYS, "2026", "1", "6", above=False) == ("2026", "1", "6")


def test_l12_of_two_folders_of_one_number_both_are_named() -> None:
    world = world_of(["day"], "day=5", "day=05", "day=6")
    assert found(world, ["day"], "5") == ("5",)
    assert found(world, ["day"], "05") == ("05",)
    with pytest.raises(SluiceError, match=r"day=05 or day=5, got 'day=005'"):
        found(world, ["day"], "005")


def test_l12_texts_between_numbers_hide_no_folder() -> None:
    between = ["005", "05 a", "05-1", "05.5", "050", "05a", "4", "5x", "0", "00"]
    world = world_of(["n", "m"], *(f"n={each}/m=1" for each in ("05", *between)), "n=5-1/m=1")
    with pytest.raises(SluiceError, match="n=005/m=1 or n=05/m=1"):
        found(world, ["n", "m"], "5", "01")


@pytest.mark.parametrize("value", ["a5", "2026-3-1", "eu-05", "1.5", "1_000", "٥"])
def test_l12_texts_with_numbers_are_no_numbers(value: str) -> None:
    world = world_of(["key"], "key=a05", "key=2026-03-01", "key=eu-5", "key=1.50", "key=1000", "key=5")
    assert found(world, ["key"], value) == (value,)


def test_l12_negative_numbers_and_zero_have_leading_zeros_too() -> None:
    world = world_of(["n"], "n=-05", "n=00", "n=7")
    assert found(world, ["n"], "-5") == ("-05",)
    assert found(world, ["n"], "0") == ("00",)
    assert found(world, ["n"], "-7") == ("-7",)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 3)), max_size=6), st.data())
def test_l12_a_registered_number_is_found_in_any_spelling(
    rows: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    folders = {(str(a).zfill(zeros), str(b).zfill(zeros)) for a, b, zeros in rows}
    world = world_of(["a", "b"], *(f"a={a}/b={b}" for a, b in folders))
    a, b = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 12))
    equal = sorted(each for each in folders if (int(each[0]), int(each[1])) == (a, b))
    known = registered.matching(world.ports, "demo.days", ["a", "b"], (f"000{a}", f"000{b}"))
    assert sorted(each for each in known if len(each) == 2) == equal
