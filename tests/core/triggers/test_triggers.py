"""Triggers: numbering, when a tree is met, and the text that says why it is not (T7, T10, T14, T15)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree as trigger_tree
from chalicelib.core.triggers.partition import partition_key
from chalicelib.core.triggers.program_status import status_key
from tests.core.builders import CLEANED, NOON, PARTITION, TICK, WEATHER, all_of, any_of, brief, thorough, trigger

FOUR = {**PARTITION, "count": 4}
TWICE = {**CLEANED, "count": 2, "statuses": ["FAILED", "KILLED"]}
SINCE = "since 2026-03-02T12:00:00.000Z"
AT = "at 2026-03-02T12:00:00.000Z"


def came(count: int = 1, first: int = NOON, last: int = NOON) -> Progress:
    return Progress(count, first, last)


def is_met(document: dict[str, Any], **progress: int) -> bool:
    """Whether a tree is met. ``l0``, ``l1``, ... are the numbers of events that each leaf has gathered."""
    gathered = {leaf.removeprefix("l"): came(count) for leaf, count in progress.items()}
    return trigger_tree.evaluate(trigger(document), gathered, NOON).met


def why(document: dict[str, Any], progress: dict[str, Progress]) -> str:
    return trigger_tree.evaluate(trigger(document), progress, NOON).why.text


leaf_documents = st.sampled_from([PARTITION, FOUR, WEATHER, CLEANED, TWICE, TICK])
tree_documents = st.recursive(
    leaf_documents,
    lambda inner: st.builds(
        lambda kind, children: kind(*children),
        st.sampled_from([all_of, any_of]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


gatherings = st.dictionaries(st.integers(0, 12).map(str), st.integers(1, 5).map(came))


def test_leaves_are_numbered_in_reading_order() -> None:
    tree = trigger(all_of(PARTITION, any_of(CLEANED, all_of(TICK, WEATHER)), FOUR))

    numbered = [(leaf.id, leaf.trigger.type) for leaf in trigger_tree.leaves(tree)]

    assert numbered == [
        ("0", "partition"),
        ("1", "program_status"),
        ("2", "time"),
        ("3", "partition"),
        ("4", "partition"),
    ]
    assert [leaf.id for leaf in trigger_tree.timed_leaves(tree)] == ["2"]


def test_only_a_single_time_leaf_needs_no_gathering() -> None:
    assert trigger_tree.is_single_time(trigger(TICK))
    assert not trigger_tree.is_single_time(trigger(all_of(TICK)))
    assert not trigger_tree.is_single_time(trigger(PARTITION))


def test_t7_a_partition_leaf_is_met_by_its_count_of_partitions() -> None:
    assert not is_met(FOUR)
    assert not is_met(FOUR, l0=3)
    assert is_met(FOUR, l0=4)
    assert is_met(FOUR, l0=5)
    assert is_met(PARTITION, l0=1)


def test_t10_a_status_leaf_is_met_by_its_count_of_statuses() -> None:
    assert is_met(CLEANED, l0=1)
    assert not is_met(TWICE, l0=1)
    assert is_met(TWICE, l0=2)


def test_t1_a_time_leaf_is_met_by_one_fire() -> None:
    assert not is_met(TICK)
    assert is_met(TICK, l0=1)


def test_t14_all_needs_each_of_its_triggers() -> None:
    both = all_of(PARTITION, CLEANED)
    assert not is_met(both)
    assert not is_met(both, l0=1)
    assert not is_met(both, l1=9)
    assert is_met(both, l0=1, l1=1)


def test_t14_any_needs_one_of_its_triggers() -> None:
    either = any_of(FOUR, CLEANED)
    assert not is_met(either)
    assert not is_met(either, l0=3)
    assert is_met(either, l0=4)
    assert is_met(either, l1=1)


def test_t14_nested_groups_are_met_by_their_parts() -> None:
    tree = all_of(any_of(PARTITION, CLEANED), all_of(WEATHER, TICK))
    assert not is_met(tree, l0=1, l1=1)
    assert not is_met(tree, l0=1, l2=1)
    assert not is_met(tree, l2=1, l3=1)
    assert is_met(tree, l1=1, l2=1, l3=1)


def test_a_leaf_twice_in_a_tree_is_counted_in_both() -> None:
    tree = all_of(PARTITION, PARTITION)
    assert not is_met(tree, l0=2)
    assert is_met(tree, l0=1, l1=1)


@given(tree_documents, gatherings)
@thorough
def test_t14_a_tree_is_met_as_its_groups_and_counts_say(
    document: dict[str, Any], progress: dict[str, Progress]
) -> None:
    counts = iter([progress[str(number)].count if str(number) in progress else 0 for number in range(13)])

    def truth(node: dict[str, Any]) -> bool:
        if "triggers" not in node:
            return next(counts) >= node.get("count", 1)
        children = [truth(child) for child in node["triggers"]]
        return all(children) if node["type"] == "all" else any(children)

    tree = trigger(document)
    assert len(trigger_tree.leaves(tree)) <= 13
    assert trigger_tree.evaluate(tree, progress, NOON).met == truth(document)


@given(tree_documents, gatherings, gatherings)
@thorough
def test_t14_more_events_never_unmeet_a_trigger(
    document: dict[str, Any], before: dict[str, Progress], more: dict[str, Progress]
) -> None:
    after = before | {
        leaf: before[leaf].plus(extra.count, extra.last_at) if leaf in before else extra for leaf, extra in more.items()
    }
    tree = trigger(document)
    assert trigger_tree.evaluate(tree, after, NOON).met >= trigger_tree.evaluate(tree, before, NOON).met


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 99)), min_size=1))
@brief
def test_progress_adds_up_in_any_order(events: list[tuple[int, int]]) -> None:
    def gathered(some: list[tuple[int, int]]) -> Progress:
        (count, at), *rest = some
        progress = Progress(count, at, at)
        for more, instant in rest:
            progress = progress.plus(more, instant)
        return progress

    whole = gathered(events)
    assert whole == gathered(events[::-1])
    assert whole.count == sum(count for count, _ in events)
    assert (whole.first_at, whole.last_at) == (min(at for _, at in events), max(at for _, at in events))


def test_t14_a_half_met_all_shows_events_missing_and_since_when() -> None:
    half = all_of(FOUR, CLEANED, WEATHER)
    assert why(half, {"0": came(2, NOON, NOON + MINUTE), "2": came()}) == (
        "waits for 2 partitions of demo.flights; demo.flights.clean to reach COMPLETED "
        f"(2 partitions of demo.flights came {SINCE}; 1 partition of demo.weather came {AT})"
    )


def test_a_trigger_without_events_says_so() -> None:
    assert why(FOUR, {}) == "waits for 4 partitions of demo.flights (no event has arrived)"
    assert why(TWICE, {}) == "waits for demo.flights.clean to reach FAILED or KILLED 2 times (no event has arrived)"


def test_an_any_that_waits_shows_its_choices() -> None:
    tree = any_of(all_of(PARTITION, WEATHER), TICK)
    assert why(tree, {"0": came()}) == (
        f"waits for 1 partition of demo.weather or the time every 10 seconds (1 partition of demo.flights came {AT})"
    )
    assert why(any_of(all_of(PARTITION, WEATHER), CLEANED), {}) == (
        "waits for 1 partition of demo.flights and 1 partition of demo.weather "
        "or demo.flights.clean to reach COMPLETED (no event has arrived)"
    )


def test_a_met_trigger_shows_its_events() -> None:
    assert why(any_of(PARTITION, CLEANED), {"1": came()}) == f"trigger met: demo.flights.clean reached COMPLETED {AT}"
    assert why(TICK, {"0": came(3)}) == f"trigger met: the time every 10 seconds came {SINCE}"


@given(tree_documents, gatherings)
@brief
def test_a_waiting_trigger_always_names_something_missing(
    document: dict[str, Any], progress: dict[str, Progress]
) -> None:
    verdict = trigger_tree.evaluate(trigger(document), progress, NOON)
    if not verdict.met:
        assert verdict.missing
        assert all(verdict.missing)
        assert verdict.why.text.startswith("waits for ")


def test_a_trigger_is_described_in_words() -> None:
    at_five = {"type": "time", "expression": "0 5 * * *", "zone": "Asia/Kathmandu"}
    tree = trigger(all_of(FOUR, any_of(CLEANED, at_five), TWICE))
    assert trigger_tree.describe(tree) == (
        "4 partitions of demo.flights and (demo.flights.clean reaching COMPLETED or at 05:00 every day, Asia/Kathmandu)"
        " and demo.flights.clean reaching FAILED or KILLED 2 times"
    )
    assert trigger_tree.describe(trigger(TICK)) == "every 10 seconds"


def test_t15_a_leaf_is_found_by_the_key_of_its_events() -> None:
    def keys(document: dict[str, Any]) -> tuple[str, ...]:
        return trigger_tree.leaves(trigger(document))[0].trigger.event_keys()

    assert keys(PARTITION) == (partition_key("demo.flights"),) == ("partition:demo.flights",)
    assert keys(CLEANED) == (status_key("demo.flights.clean", "COMPLETED"),)
    assert keys(TWICE) == ("status:demo.flights.clean:FAILED", "status:demo.flights.clean:KILLED")
    assert keys({**CLEANED, "statuses": ["FAILED", "FAILED"]}) == ("status:demo.flights.clean:FAILED",)
    assert keys(TICK) == ()


@pytest.mark.parametrize(
    ("document", "counted"),
    [
        (all_of(*[PARTITION] * 46), 46),
        (all_of(*[PARTITION] * 43, TICK, TICK, TICK), 46),
        (all_of(any_of(*[PARTITION] * 23), any_of(*[WEATHER] * 23)), 46),
        (all_of(*[{**CLEANED, "statuses": ["STARTED", "COMPLETED", "FAILED", "KILLED"]}] * 12), 48),
        (all_of(*[PARTITION] * 44, TWICE), 46),
    ],
)
def test_l5_trigger_over_45_leaves_is_refused_counting_statuses(document: dict[str, Any], counted: int) -> None:
    tree = trigger_tree.AllTrigger.model_validate(document)
    with pytest.raises(SluiceError) as caught:
        trigger_tree.check_size(tree)
    assert caught.value.field == "trigger"
    assert caught.value.message == f"expected at most 45 leaves in one trigger, got '{counted} leaves'"
    assert caught.value.hint == (
        "split the schedule in two, or trigger on an intermediate workflow; each status of a leaf counts"
    )


@pytest.mark.parametrize(
    ("pattern", "times", "message"),
    [
        (
            {f"f{number}": ["a"] for number in range(67)},
            3,
            "expected at most 200 leaves in all patterns of a trigger, got 201",
        ),
        ({"a": [{"prefix": "b"}] * 51}, 2, "expected at most 100 operators in all patterns of a trigger, got 102"),
    ],
)
def test_t11_the_patterns_of_a_trigger_are_bounded_together(pattern: dict[str, Any], times: int, message: str) -> None:
    leaf = {"type": "event", "event": "sale", "pattern": pattern}
    trigger_tree.check_work(trigger_tree.AllTrigger.model_validate(all_of(*[leaf] * (times - 1))))
    with pytest.raises(SluiceError) as caught:
        trigger_tree.check_work(trigger_tree.AllTrigger.model_validate(all_of(*[leaf] * times)))
    assert caught.value.message == message
    assert caught.value.hint is not None


def test_l5_a_trigger_of_45_leaves_is_accepted() -> None:
    trigger_tree.check_size(trigger(all_of(*[PARTITION] * 43, TWICE)))
    trigger_tree.check_size(trigger(all_of(*[PARTITION] * 44, TICK)))


def test_l5_index_rows_of_constraints_count_as_leaves() -> None:
    trigger_tree.check_size(trigger(all_of(*[PARTITION] * 43)), more=2)
    with pytest.raises(SluiceError, match="got '46 leaves'"):
        trigger_tree.check_size(trigger(all_of(*[PARTITION] * 43)), more=3)
