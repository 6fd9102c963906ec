"""The leaves that count bytes, custom events, silence, spans and absences: their properties, when they are met, and
their texts.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, Instant
from chalicelib.core.rows.job import Progress
from chalicelib.core.triggers import tree as trigger_tree
from chalicelib.core.triggers.leaf import Leaf, LeafState
from chalicelib.core.triggers.patterns import Flattened
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
    all_of,
    came,
    sent,
    trigger,
)
from tests.support.kinds import GATHERING_TYPES

AT = "at 2026-03-02T12:00:00.000Z"
SINCE = "since 2026-03-02T12:00:00.000Z"
GB = 10**9
DEADLINE = {"type": "absent", "of": PARTITION, "deadline": "06:00"}
BIG = ORDERS | {"pattern": {"total": [{"numeric": [">", 100]}]}}


def leaf(document: dict[str, Any]) -> Leaf:
    return trigger_tree.leaves(trigger(document))[0].trigger


def evaluate(document: dict[str, Any], progress: Progress | None, now: Instant = NOON) -> LeafState:
    return leaf(document).evaluate(progress, now)


def refused(document: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        sent(document)
    return errors.from_validation(caught.value)


# -- size (T9) -----------------------------------------------------------------------------------------------------


def test_t9_a_size_is_written_with_its_unit_or_in_bytes() -> None:
    assert [leaf(SIZE | {"bytes": size}).bytes for size in ("10GB", "1 KiB", 5)] == [10 * GB, 1024, 5]


@pytest.mark.parametrize("size", ["", "ten", "10 apples", 0, -1, True, 1.5])
def test_t9_an_invalid_size_is_refused_with_its_path(size: Any) -> None:
    assert refused(SIZE | {"bytes": size}).field == "trigger.bytes"


@pytest.mark.parametrize(("amount", "met"), [(0, False), (10 * GB - 1, False), (10 * GB, True), (11 * GB, True)])
def test_t9_a_size_leaf_is_met_by_bytes_not_by_objects(amount: int, met: bool) -> None:
    assert evaluate(SIZE, came(1, amount=amount)).met is met
    assert evaluate(SIZE, came(1_000, amount=amount)).met is met


def test_t9_a_size_leaf_shows_bytes_that_came_and_are_missing() -> None:
    half = evaluate(SIZE, came(2, amount=3 * GB))
    assert half.arrived == (f"3 GB in 2 objects of demo.flights came {SINCE}",)
    assert half.missing == ("7 GB of demo.flights",)
    assert evaluate(SIZE, None).missing == ("10 GB of demo.flights",)
    assert evaluate(SIZE, came(1, amount=10 * GB)).arrived == (f"10 GB in 1 object of demo.flights came {AT}",)


# -- custom events (T11) -------------------------------------------------------------------------------------------


def test_t11_an_event_leaf_is_met_by_as_many_events_as_it_counts() -> None:
    assert evaluate(ORDERS, came(1)).met
    twice = evaluate(ORDERS | {"count": 2}, came(1))
    assert (twice.met, twice.arrived) == (False, (f"1 event orders.closed came {AT}",))
    assert twice.missing == ("1 event orders.closed",)
    assert evaluate(BIG, None).missing == ("1 event orders.closed where total is > 100",)


def test_t11_only_events_with_a_matching_payload_count() -> None:
    assert leaf(BIG).accepts(Flattened({"total": 101}))
    assert not leaf(BIG).accepts(Flattened({"total": 100}))
    assert not leaf(BIG).accepts(Flattened({}))
    assert not leaf(BIG).accepts(Flattened(None))
    assert leaf(ORDERS).accepts(Flattened({"anything": 1}))


@pytest.mark.parametrize("around", [{"type": "quiet", "after": "1h"}, {"type": "absent", "within": "1h"}])
def test_t11_quiet_or_absent_leaf_concerns_matching_events_only(around: dict[str, Any]) -> None:
    about = leaf(around | {"of": BIG})
    assert about.accepts(Flattened({"total": 101}))
    assert not about.accepts(Flattened({"total": 1}))


@pytest.mark.parametrize("kind", ["", "orders closed", ".orders", "a" * 129, "ünder"])
def test_t11_the_type_of_an_event_has_a_fixed_form(kind: str) -> None:
    assert refused(ORDERS | {"event": kind}).field == "trigger.event"


def test_t11_a_pattern_that_cannot_match_is_refused_at_put() -> None:
    error = refused(ORDERS | {"pattern": {"total": [{"nummeric": [">", 1]}]}})
    assert (error.code, error.field) == ("invalid", "trigger.pattern.total.0.nummeric")


# -- quiet (T12) ---------------------------------------------------------------------------------------------------


def test_t12_quiet_is_met_when_nothing_came_for_its_span() -> None:
    chunks = came(3, NOON, NOON + 5 * MINUTE)
    assert not evaluate(QUIET, None, NOON + 60 * MINUTE).met
    waiting = evaluate(QUIET, chunks, NOON + 15 * MINUTE - 1)
    assert (waiting.met, waiting.changes_at) == (False, NOON + 15 * MINUTE)
    assert waiting.missing == ("10m without another partition of demo.flights (until 2026-03-02T12:15:00.000Z)",)
    quiet = evaluate(QUIET, chunks, NOON + 15 * MINUTE)
    assert (quiet.met, quiet.missing, quiet.changes_at) == (True, (), None)
    assert quiet.arrived == (
        f"3 partitions of demo.flights came {SINCE}, the last at 2026-03-02T12:05:00.000Z",
        "none came for 10m",
    )


@pytest.mark.parametrize(
    ("of", "half", "enough", "lacks"),
    [
        (PARTITION | {"count": 3}, came(2), came(3), "1 partition of demo.flights"),
        (SIZE, came(9, amount=GB), came(1, amount=10 * GB), "9 GB of demo.flights"),
    ],
)
def test_t12_no_quiet_ends_before_enough_events_came(
    of: dict[str, Any], half: Progress, enough: Progress, lacks: str
) -> None:
    quiet, later = {"type": "quiet", "of": of, "after": "10m"}, NOON + 60 * MINUTE
    waiting = evaluate(quiet, half, later)
    assert (waiting.met, waiting.changes_at) == (False, None)
    assert waiting.missing == (f"{lacks}, then 10m without another",)
    assert evaluate(quiet, enough, later).met


# -- elapsed and absent (T13, T18) ---------------------------------------------------------------------------------


def test_t13_an_elapsed_leaf_is_met_when_its_span_has_passed() -> None:
    assert evaluate(ELAPSED, None).missing == ("4h to pass since the last start",)
    answer = evaluate(ELAPSED, came(1))
    assert (answer.met, answer.arrived) == (True, (f"4h had passed since the last start {AT}",))


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        (ABSENT, "within 1h"),
        (DEADLINE, "by 06:00 in UTC"),
        (DEADLINE | {"zone": "Asia/Kolkata", "days": ["mon", "tue"]}, "by 06:00 in Asia/Kolkata on mon, tue"),
    ],
)
def test_t18_an_absent_leaf_says_what_did_not_come_and_by_when(document: dict[str, Any], limit: str) -> None:
    assert evaluate(document, None).missing == (f"no partition of demo.flights to come {limit}",)
    answer = evaluate(document, came(1))
    assert (answer.met, answer.arrived) == (True, (f"no partition of demo.flights had come {limit} {AT}",))


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"type": "absent", "of": PARTITION}, "trigger.within"),
        (ABSENT | {"deadline": "06:00"}, "trigger.within"),
        (ABSENT | {"days": ["mon"]}, "trigger.days"),
        (DEADLINE | {"deadline": "6:00"}, "trigger.deadline"),
        (DEADLINE | {"deadline": "24:00"}, "trigger.deadline"),
        (DEADLINE | {"zone": "Mars/Base"}, "trigger.zone"),
        (DEADLINE | {"days": ["monday"]}, "trigger.days.0"),
        (DEADLINE | {"of": TICK}, "trigger.of"),
        (QUIET | {"of": QUIET}, "trigger.of"),
        (QUIET | {"of": all_of(PARTITION)}, "trigger.of"),
        (QUIET | {"after": "soon"}, "trigger.after"),
        (ELAPSED | {"after": "0s"}, "trigger.after"),
    ],
)
def test_t18_an_invalid_absent_leaf_is_refused_with_its_path(document: dict[str, Any], field: str) -> None:
    assert refused(document).field == field


def test_t18_an_invalid_feed_is_refused_with_the_valid_ones() -> None:
    expected = f"expected an object whose type is one of {', '.join(GATHERING_TYPES)}, got "
    assert refused(QUIET | {"of": TICK}).message.startswith(expected)


# -- their events, and their full names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        (SIZE, ("size:demo.flights",)),
        (ORDERS, ("event:demo:orders.closed",)),
        (QUIET, ("partition:demo.flights",)),
        (QUIET | {"of": ORDERS}, ("event:demo:orders.closed",)),
        (ABSENT | {"of": SIZE}, ("size:demo.flights",)),
        (ABSENT | {"of": CLEANED | {"statuses": ["FAILED", "KILLED"]}},
         ("status:demo.flights.clean:FAILED", "status:demo.flights.clean:KILLED")),
        (ELAPSED, ()),
    ],
)  # fmt: skip
def test_t15_each_kind_of_leaf_has_the_event_key_it_waits_for(document: dict[str, Any], keys: tuple[str, ...]) -> None:
    assert leaf(document).event_keys() == keys


def test_names_in_a_leaf_default_to_its_own_app_and_namespace() -> None:
    tree = all_of(
        {"type": "size", "dataset": "flights", "bytes": 1},
        {"type": "event", "event": "closed"},
        {"type": "event", "event": "closed", "namespace": "sales"},
        {"type": "quiet", "of": {"type": "partition", "dataset": "flights"}, "after": "1m"},
        {"type": "absent", "of": {"type": "program_status", "workflow": "clean"}, "within": "1h"},
    )
    made = Schedule.model_validate({"workflow": "w", "trigger": tree}).resolved("demo", "app")
    found = [key for each in trigger_tree.leaves(made.trigger) for key in each.trigger.event_keys()]
    assert found == [
        "size:demo.flights",
        "event:demo:closed",
        "event:sales:closed",
        "partition:demo.flights",
        "status:demo.app.clean:COMPLETED",
    ]


def test_t2_a_time_of_day_is_in_the_schedule_zone_by_default() -> None:
    tree = all_of(TICK, TICK | {"zone": "UTC"}, DEADLINE, DEADLINE | {"zone": "Asia/Kolkata"})
    made = Schedule.model_validate({"workflow": "w", "trigger": tree, "zone": "Europe/Paris"}).resolved("demo", "app")
    zones = [each.trigger.zone for each in trigger_tree.leaves(made.trigger)]
    assert zones == ["Europe/Paris", "UTC", "Europe/Paris", "Asia/Kolkata"]
