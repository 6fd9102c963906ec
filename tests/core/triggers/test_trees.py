"""Trees of all kinds of leaves: at_least, the window of a partial match, and the effect of time (T14)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE, Instant
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree as trigger_tree
from tests.core.builders import (
    ABSENT,
    CLEANED,
    ELAPSED,
    NOON,
    ORDERS,
    PARTITION,
    QUIET,
    SIZE,
    TICK,
    WEATHER,
    all_of,
    any_of,
    at_least,
    brief,
    came,
    only_leaves,
    schedule,
    thorough,
    trigger,
)

GB = 10**9
TWO_OF_THREE = at_least(2, PARTITION, WEATHER, CLEANED)
AT = "at 2026-03-02T12:00:00.000Z"
STEADY = [PARTITION, PARTITION | {"count": 3}, SIZE, CLEANED, ORDERS | {"count": 2}, TICK, ELAPSED]
REVOCABLE = [
    QUIET,
    QUIET | {"of": PARTITION | {"count": 2}, "after": "3m"},
    QUIET | {"of": SIZE, "after": "7m"},
    ABSENT,
]


def trees(leaves: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Documents of nested groups over these leaves, 12 at most."""

    def group(kind: str, children: list[dict[str, Any]], wanted: int) -> dict[str, Any]:
        many = {"count": min(wanted, len(children))} if kind == "at_least" else {}
        return {"type": kind, "triggers": children, **many}

    kinds = st.sampled_from(["all", "any", "at_least"])
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.builds(group, kinds, st.lists(inner, min_size=1, max_size=4), st.integers(1, 4)),
        max_leaves=12,
    )


@st.composite
def gathered(draw: st.DrawFn) -> Progress:
    first = NOON - draw(st.integers(0, 20)) * MINUTE
    last = draw(st.integers(first, NOON))
    return came(draw(st.integers(1, 4)), first, last, draw(st.integers(0, 12)) * GB)


gatherings = st.dictionaries(st.integers(0, 12).map(str), gathered())


def is_met(document: dict[str, Any], progress: dict[str, Progress], now: Instant = NOON) -> bool:
    return trigger_tree.evaluate(trigger(document), progress, now).met


def refused(document: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        schedule(document)
    return errors.from_validation(caught.value)


# -- at least so many of them --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("have", "met"), [("", False), ("0", False), ("2", False), ("01", True), ("12", True)])
def test_t14_at_least_two_of_three_needs_any_two(have: str, met: bool) -> None:
    assert is_met(TWO_OF_THREE, {leaf: came(9) for leaf in have}) is met


def test_t14_at_least_counts_groups_as_one_each() -> None:
    tree = at_least(2, any_of(PARTITION, WEATHER), all_of(CLEANED, ORDERS), SIZE)
    assert not is_met(tree, {"0": came(), "1": came(), "2": came()})
    assert is_met(tree, {"1": came(), "2": came(), "3": came()})


def test_t14_at_least_says_how_many_more_of_which() -> None:
    def why(progress: dict[str, Progress]) -> str:
        return trigger_tree.evaluate(trigger(TWO_OF_THREE), progress, NOON).why.text

    choices = "1 partition of demo.flights or 1 partition of demo.weather or demo.flights.clean to reach COMPLETED"
    assert why({}) == f"waits for 2 more of: {choices} (no event has arrived)"
    assert why({"1": came()}) == (
        "waits for 1 partition of demo.flights or demo.flights.clean to reach COMPLETED "
        f"(1 partition of demo.weather came {AT})"
    )
    assert trigger_tree.describe(trigger(TWO_OF_THREE | {"within": "1h"})) == (
        "at least 2 of: 1 partition of demo.flights, 1 partition of demo.weather, "
        "demo.flights.clean reaching COMPLETED, within 1h"
    )


@pytest.mark.parametrize("count", [0, 4])
def test_t14_at_least_more_than_there_are_is_refused(count: int) -> None:
    assert refused(TWO_OF_THREE | {"count": count}).field == "trigger.count"


# -- the window of a partial match ---------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [all_of(PARTITION, WEATHER), TWO_OF_THREE])
def test_t14_partial_match_expires_window_after_its_oldest_event(group: dict[str, Any]) -> None:
    tree = trigger(group | {"within": "1h"})
    held = {"0": came(2, NOON - 5 * MINUTE, NOON), "1": came(1, NOON - MINUTE)}
    assert trigger_tree.expires_at(tree, held) == NOON - 5 * MINUTE + HOUR
    assert trigger_tree.expires_at(tree, {}) is None
    assert trigger_tree.expires_at(trigger(group), held) is None


@pytest.mark.parametrize("around", [all_of, any_of])
def test_t14_a_window_is_for_whole_trigger_and_refused_inside(around: Any) -> None:
    error = refused(around(PARTITION, all_of(WEATHER, all_of(CLEANED, within="1h"))))
    assert (error.code, error.field) == ("invalid", "trigger.within")
    assert error.message == "expected within on the outermost trigger only, got 'within on an inner trigger'"
    assert error.hint == "put within on the outermost trigger, or use two schedules"


def test_t14_an_any_has_no_window_for_it_is_never_partial() -> None:
    assert refused(any_of(PARTITION, WEATHER) | {"within": "1h"}).code == "unknown_field"


# -- trees in general ----------------------------------------------------------------------------------------------


def truth(document: dict[str, Any], progress: dict[str, Progress], now: Instant) -> bool:
    """A second implementation, on the document as it is written."""
    numbers = iter(range(100))

    def enough(leaf: dict[str, Any], have: Progress | None) -> bool:
        if have is None:
            return False
        return have.amount >= 10 * GB if leaf["type"] == "size" else have.count >= leaf.get("count", 1)

    def met(node: dict[str, Any]) -> bool:
        if "triggers" in node:
            results = [met(child) for child in node["triggers"]]
            return sum(results) >= {"all": len(results), "any": 1}.get(node["type"], node.get("count", 1))
        have = progress.get(str(next(numbers)))
        if node["type"] == "quiet":
            span = int(node["after"].removesuffix("m")) * MINUTE
            return have is not None and enough(node["of"], have) and have.last_at + span <= now
        return enough(node, have)

    return met(document)


@given(trees([*STEADY, *REVOCABLE]), gatherings, st.integers(0, 30))
@thorough
def test_t14_a_tree_of_any_leaves_is_met_as_its_document_says(
    document: dict[str, Any], progress: dict[str, Progress], minutes: int
) -> None:
    now = NOON + minutes * MINUTE
    assert is_met(document, progress, now) is truth(document, progress, now)


@given(trees(STEADY), gatherings, gatherings)
@thorough
def test_t14_an_irrevocable_trigger_stays_met_with_more_events(
    document: dict[str, Any], before: dict[str, Progress], more: dict[str, Progress]
) -> None:
    after = before | {
        leaf: before[leaf].plus(each.count, each.last_at, each.amount) if leaf in before else each
        for leaf, each in more.items()
    }
    assert not trigger_tree.is_revocable(trigger(document))
    assert is_met(document, after) >= is_met(document, before)


def test_t12_another_event_ends_quiet_which_makes_it_revocable() -> None:
    later = NOON + 10 * MINUTE
    assert is_met(QUIET, {"0": came(1, NOON)}, later)
    assert not is_met(QUIET, {"0": came(2, NOON, NOON + 1)}, later)
    assert all(trigger_tree.is_revocable(trigger(any_of(PARTITION, all_of(each)))) for each in REVOCABLE)


@given(trees([*STEADY, *REVOCABLE]), gatherings, st.integers(0, 30))
@thorough
def test_c14_why_is_never_empty_and_names_what_is_missing(
    document: dict[str, Any], progress: dict[str, Progress], minutes: int
) -> None:
    verdict = trigger_tree.evaluate(trigger(document), progress, NOON + minutes * MINUTE)
    assert verdict.why.text.startswith("trigger met: " if verdict.met else "waits for ")
    assert verdict.met is (verdict.missing == ())
    assert all(verdict.missing) and all(verdict.arrived)
    came_at_all = set(progress) & set(only_leaves(trigger(document)))
    assert bool(verdict.arrived) is bool(came_at_all)
    assert trigger_tree.describe(trigger(document))


@given(trees([*STEADY, *REVOCABLE]), gatherings)
@thorough
def test_c8_checks_at_given_instants_find_the_first_met_one(
    document: dict[str, Any], progress: dict[str, Progress]
) -> None:
    """The named instants are enough: a check at every instant would find the same first match."""
    tree, now = trigger(document), NOON
    verdict = trigger_tree.evaluate(tree, progress, now)
    while not verdict.met and verdict.changes_at is not None:
        assert verdict.changes_at > now
        now = verdict.changes_at
        verdict = trigger_tree.evaluate(tree, progress, now)

    turns = {NOON} | {each.last_at + minutes * MINUTE for each in progress.values() for minutes in (3, 7, 10)}
    instants = sorted(instant for turn in turns for instant in (turn - 1, turn) if instant >= NOON)
    first = next((instant for instant in instants if is_met(document, progress, instant)), None)
    assert (now if verdict.met else None) == first


@given(trees([*STEADY, *REVOCABLE]), gatherings, st.integers(0, 30), st.integers(0, 30))
@brief
def test_t12_a_met_trigger_stays_met_while_no_event_comes(
    document: dict[str, Any], progress: dict[str, Progress], minutes: int, more: int
) -> None:
    now = NOON + minutes * MINUTE
    assert is_met(document, progress, now + more * MINUTE) >= is_met(document, progress, now)
