"""Questions that other parts of Sluice put to a whole trigger: its instants, its upstreams, its names, its bounds."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE, Instant, iso
from chalicelib.core.names import Names
from chalicelib.core.triggers import patterns
from chalicelib.core.triggers import tree as trigger_tree
from tests.core.builders import (
    ABSENT,
    CLEANED,
    ELAPSED,
    NOON,
    ORDERS,
    PARTITION,
    QUIET,
    TICK,
    WEATHER,
    all_of,
    any_of,
    at_least,
    came,
    schedule,
    trigger,
)

NAMES = Names("demo", "flights", "Asia/Tokyo", NOON)
ONCE: dict[str, Any] = {"type": "time", "due_time": iso(NOON)}
FAILED = CLEANED | {"workflow": "demo.flights.load", "statuses": ["FAILED", "KILLED"], "schedule": "demo.flights.daily"}


def changes_at(document: dict[str, Any], **progress: Any) -> Instant | None:
    gathered = {leaf.removeprefix("l"): each for leaf, each in progress.items()}
    return trigger_tree.evaluate(trigger(document), gathered, NOON).changes_at


def too_large(document: dict[str, Any], **fields: Any) -> SluiceError:
    with pytest.raises(SluiceError) as caught:
        trigger_tree.check_size(trigger_tree.AllTrigger.model_validate(document), **fields)
    return caught.value


def too_costly(document: dict[str, Any], **fields: Any) -> SluiceError:
    with pytest.raises(SluiceError) as caught:
        trigger_tree.check_work(trigger_tree.AllTrigger.model_validate(document), **fields)
    return caught.value


# -- instants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "single", "once"),
    [
        (ONCE, True, True),
        (TICK, True, False),
        (TICK | {"due_time": iso(NOON)}, True, False),
        (ELAPSED, False, False),
        (PARTITION, False, False),
        (any_of(ONCE), False, False),
    ],
)
def test_t1_only_an_instant_alone_is_a_one_shot(document: dict[str, Any], single: bool, once: bool) -> None:
    tree = trigger(document)
    assert (trigger_tree.is_single_time(tree), trigger_tree.is_one_shot(tree)) == (single, once)


def test_the_rules_of_instants_are_those_of_all_time_leaves() -> None:
    tree = trigger(all_of(TICK, PARTITION, any_of(ONCE, ELAPSED)))
    assert [rule.expression for rule in trigger_tree.recurrences(tree)] == ["@every 10s", None]
    assert [leaf.trigger for leaf in trigger_tree.timed_leaves(tree)] == [
        trigger(each) for each in (TICK, ONCE, ELAPSED)
    ]
    assert [leaf.id for leaf in trigger_tree.timed_leaves(tree)] == ["0", "2", "3"]
    assert trigger_tree.recurrences(trigger(PARTITION)) == ()


def test_t12_a_trigger_changes_at_the_first_quiet_leaf_unmet() -> None:
    slow, fast = QUIET | {"after": "30m"}, QUIET | {"after": "20m"}
    both = all_of(slow, fast)
    assert changes_at(both, l0=came(), l1=came()) == NOON + 20 * MINUTE
    assert changes_at(both, l0=came()) == NOON + 30 * MINUTE
    assert changes_at(both) is None
    assert changes_at(all_of(PARTITION, any_of(slow)), l1=came()) == NOON + 30 * MINUTE


def test_t12_a_met_part_announces_no_change() -> None:
    """A group that is met already may have a quiet leaf that is not."""
    met = any_of(PARTITION, QUIET | {"after": "5m"})
    assert changes_at(met, l0=came(), l1=came()) == NOON + 5 * MINUTE
    assert changes_at(all_of(met, WEATHER), l0=came(), l1=came()) is None


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (TICK, []),
        (TICK | {"end": iso(NOON - HOUR)}, [("trigger.end", iso(NOON - HOUR))]),
        (ONCE, []),
        (ONCE | {"due_time": iso(NOON - 1)}, [("trigger.due_time", iso(NOON - 1))]),
        (
            all_of(PARTITION, any_of(ABSENT, TICK | {"end": iso(NOON - HOUR)}), ONCE | {"due_time": iso(NOON - 1)}),
            [("trigger.triggers.1.triggers.1.end", iso(NOON - HOUR)), ("trigger.triggers.2.due_time", iso(NOON - 1))],
        ),
    ],
)
def test_t3_fields_that_leave_no_fire_are_named_with_values(document: Any, fields: list[tuple[str, Any]]) -> None:
    assert list(trigger_tree.past_fields(trigger(document), NOON)) == fields
    other = [(name.replace("trigger", "run", 1), value) for name, value in fields]
    assert list(trigger_tree.past_fields(trigger(document), NOON, "run")) == other


# -- upstreams and names -------------------------------------------------------------------------------------------


def test_t10_a_trigger_waits_for_runs_of_its_workflows_alone() -> None:
    tree = trigger(any_of(PARTITION, all_of(CLEANED, FAILED)))
    assert [each.workflow for each in trigger_tree.upstreams(tree)] == ["demo.flights.clean", "demo.flights.load"]
    assert trigger_tree.upstreams(trigger(PARTITION)) == ()

    def waits(workflow: str, starter: str, status: str) -> bool:
        return trigger_tree.waits_for(tree, f"demo.flights.{workflow}", f"demo.flights.{starter}", status)

    assert waits("clean", "anyone", "COMPLETED")
    assert not waits("clean", "anyone", "FAILED")
    assert waits("load", "daily", "KILLED")
    assert not waits("load", "hourly", "KILLED"), "another schedule started it"
    assert not waits("load", "daily", "COMPLETED")
    assert not waits("other", "daily", "COMPLETED")


def test_all_leaves_of_a_tree_have_full_names_and_zones() -> None:
    short = any_of(PARTITION | {"dataset": "raw"}, all_of(CLEANED | {"workflow": "clean"}, TICK))
    tree: Any = trigger_tree.resolve(trigger(short), NAMES)
    data, inner = tree.triggers
    status, tick = inner.triggers
    assert (tree.type, inner.type) == ("any", "all")
    assert (data.dataset, status.workflow, tick.zone) == ("demo.raw", "demo.flights.clean", "Asia/Tokyo")
    alone: Any = trigger_tree.resolve(trigger(PARTITION | {"dataset": "raw"}), NAMES)
    assert alone.dataset == "demo.raw"


def test_t14_a_resolved_group_keeps_its_count_and_its_window() -> None:
    made: Any = trigger_tree.resolve(trigger(at_least(1, PARTITION, WEATHER, within="1h")), NAMES)
    assert (made.type, made.count, made.within, len(made.triggers)) == ("at_least", 1, "1h", 2)


# -- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        (all_of(PARTITION, WEATHER, TICK), 3),
        (any_of(PARTITION, WEATHER), 1),
        (at_least(2, PARTITION, WEATHER, TICK), 2),
    ],
)
def test_t14_a_group_says_how_many_of_its_triggers_it_needs(group: dict[str, Any], wanted: int) -> None:
    made: Any = trigger(group)
    assert trigger_tree.needed(made) == wanted


def test_t14_a_count_above_the_number_of_triggers_is_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        schedule(at_least(3, PARTITION, WEATHER))
    error = errors.from_validation(caught.value)
    assert (error.code, error.field) == ("invalid", "trigger.count")
    assert error.message == "expected at most 2, the number of its triggers, got 3"
    assert error.hint == "lower the count, or add triggers"
    assert trigger(at_least(2, PARTITION, WEATHER))


def test_t14_an_event_that_two_leaves_count_is_named_once() -> None:
    verdict = trigger_tree.evaluate(trigger(all_of(PARTITION, PARTITION, WEATHER)), {"0": came(), "1": came()}, NOON)
    assert verdict.arrived == (f"1 partition of demo.flights came at {iso(NOON)}",)
    assert verdict.missing == ("1 partition of demo.weather",)


def test_t14_only_groups_with_a_window_drop_a_partial_match() -> None:
    assert trigger_tree.window_of(trigger(all_of(PARTITION, within="90m"))) == 90 * MINUTE
    assert trigger_tree.window_of(trigger(at_least(1, PARTITION, within="2h"))) == 2 * HOUR
    assert trigger_tree.window_of(trigger(all_of(PARTITION))) is None
    assert trigger_tree.window_of(trigger(any_of(PARTITION))) is None
    assert trigger_tree.window_of(trigger(QUIET)) is None


# -- bounds --------------------------------------------------------------------------------------------------------


def test_l5_a_trigger_that_is_too_large_is_refused_at_its_field() -> None:
    error = too_large(all_of(*[PARTITION] * 45), more=1, field="run.trigger")
    assert (error.code, error.field) == ("invalid", "run.trigger")
    assert error.message == "expected at most 45 leaves in one trigger, got '46 leaves'"


@pytest.mark.parametrize(
    ("pattern", "most", "of", "count"),
    [
        ({f"f{number}": ["a"] for number in range(50)}, 4, "200 leaves", 250),
        ({"a": [{"prefix": "b"}] * 50}, 2, "100 operators", 150),
    ],
)
def test_t11_patterns_too_costly_together_are_refused_at_field(pattern: Any, most: int, of: str, count: int) -> None:
    leaf = ORDERS | {"pattern": pattern}
    trigger_tree.check_work(trigger_tree.AllTrigger.model_validate(all_of(*[leaf] * most, ORDERS, PARTITION)))
    error = too_costly(all_of(*[leaf] * (most + 1)), field="run.trigger")
    assert (error.code, error.field) == ("invalid", "run.trigger")
    assert error.message == f"expected at most {of} in all patterns of a trigger, got {count}"
    assert error.hint == patterns.MANY_OPERATORS_HINT
    assert too_costly(all_of(*[leaf] * (most + 1))).field == "trigger"
    around = {"type": "quiet", "after": "5m", "of": leaf}
    assert too_costly(all_of(*[around] * (most + 1))).message == error.message, "within another leaf, too"
