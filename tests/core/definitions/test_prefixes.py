"""The rules of prefixes: who gets an object, what is in the way, and which folders are Sluice's own (O14)."""

from __future__ import annotations

from itertools import permutations

import pytest

from chalicelib.core.definitions import prefixes
from chalicelib.core.history import audit, lines
from chalicelib.core.rows.definition import PrefixRow
from infra.job_role import HISTORY


def at(prefix: str, dataset: str = "", owner: str = "") -> PrefixRow:
    return PrefixRow("lake", prefix, dataset, owner=owner)


OUTER, DAY = at("raw/orders/", "a.orders"), at("raw/orders/day=02/", "b.day")


@pytest.mark.parametrize(
    ("rows", "dataset"),
    [
        ((), None),
        ((OUTER,), "a.orders"),
        ((OUTER, DAY), "b.day"),
        ((OUTER, at("raw/orders/day=02/", owner="b")), None),
        ((OUTER, at("raw/orders/day=02/", owner="a")), "a.orders"),
        ((at("raw/", "b.all"), OUTER, at("raw/orders/day=02/", owner="b")), "b.all"),
        ((at("raw/", owner="a"), DAY), "b.day"),
    ],
)
def test_o14_an_object_goes_to_a_dataset_of_its_owner(rows: tuple[PrefixRow, ...], dataset: str | None) -> None:
    for order in permutations(rows):
        found = prefixes.matched(order)
        assert (found.dataset if found is not None else None) == dataset


def test_o14_what_lies_around_or_inside_is_in_the_way() -> None:
    assert prefixes.in_the_way("a", [], []) is None
    assert prefixes.in_the_way("b", [OUTER], []) == OUTER
    assert prefixes.in_the_way("a", [OUTER], [DAY]) == DAY
    assert prefixes.in_the_way("a", [OUTER], [at("raw/orders/x/", "a.x")]) is None
    assert prefixes.in_the_way("a", [at("raw/", owner="a")], [DAY]) is None
    assert prefixes.in_the_way("a", [at("raw/", owner="a"), DAY], []) == DAY


def test_o14_the_folders_of_sluice_are_those_that_it_writes() -> None:
    assert set(prefixes.OF_SLUICE) == {*HISTORY, lines.ROOT, lines.LATE_ROOT, audit.ROOT}
    for prefix in ("history/", "history/day=2026-03-01/", "history_late/x/", "audit/"):
        assert prefixes.is_of_sluice(prefix), prefix
    for prefix in ("histories/", "raw/history/", "History/", "audit-2/", "raw/audit/"):
        assert not prefixes.is_of_sluice(prefix), prefix


@pytest.mark.parametrize(
    ("prefix", "is_own"),
    [
        ("team-a/", True),
        ("team-a/raw/orders/", True),
        ("team-a/%2E%2E/", True),
        ("team-a-2/", False),
        ("Team-a/", False),
        ("raw/team-a/", False),
    ],
)
def test_o14_the_folder_of_a_namespace_has_its_whole_name(prefix: str, is_own: bool) -> None:
    assert prefixes.is_in_own_folder("team-a", prefix) is is_own


def test_folders_are_whole_and_bounded() -> None:
    assert prefixes.folders_of("raw/orders/day=02/part") == ["raw/", "raw/orders/", "raw/orders/day=02/"]
    assert prefixes.folders_of("top") == []
    assert prefixes.first_folder("raw/orders/") == "raw/"
    deep = "a/" * 60
    assert len(prefixes.folders_of(deep)) == prefixes.MAX_FOLDERS
    assert prefixes.path_of(deep)[-1] == deep
