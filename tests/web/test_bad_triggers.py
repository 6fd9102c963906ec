"""A trigger that can never be met, or is meaningless, is refused with the name of its field; and nothing is stored."""

from typing import Any

import pytest

from tests.support.kinds import GATHERING_TYPES
from tests.web.conftest import KEYS, WEEKDAYS, Api
from tests.web.wrong import ONE, after, partition, refused, schedule

FLIGHTS = partition("flights")
GATHERING = f"expected an object whose type is one of {', '.join(GATHERING_TYPES)}, got "
DURATION = "expected a duration such as 90s, 1h30m, 2d or PT5M, from 1ms to 10 years, got "
SIZE = "expected a size such as 100GB, 1.5 MiB or a number of bytes, from 1 B to 1000 PB, got "
STATUS = "expected 'STARTED', 'COMPLETED', 'FAILED' or 'KILLED', got "
DAYS = "expected 'mon', 'tue', 'wed', 'thu', 'fri', 'sat' or 'sun', got "
CLOCK = "expected a time of day from 00:00 to 23:59, written HH:MM, got "
NOTHING = "expected a value, got nothing"


def size(bytes_wanted: Any, dataset: str = "flights") -> dict[str, Any]:
    return {"type": "size", "dataset": dataset, "bytes": bytes_wanted}


def event(**more: Any) -> dict[str, Any]:
    return {"type": "event", "event": "closed", **more}


def alarm(**more: Any) -> dict[str, Any]:
    return {"type": "cloudwatch_alarm", "alarm": "disk full", **more}


def quiet(of: Any, **more: Any) -> dict[str, Any]:
    return {"type": "quiet", "of": of, "after": "5m", **more}


def absent(**more: Any) -> dict[str, Any]:
    return {"type": "absent", "of": FLIGHTS, **more}


def every(*triggers: Any, **more: Any) -> dict[str, Any]:
    return {"type": "all", "triggers": list(triggers), **more}


def at_least(count: Any, *triggers: Any) -> dict[str, Any]:
    return {"type": "at_least", "count": count, "triggers": list(triggers)}


LEAVES = [
    ({"type": "size", "dataset": "flights"}, "bytes", NOTHING),
    (size(0), "bytes", SIZE + "0"),
    (size(-1), "bytes", SIZE + "-1"),
    (size(1.5), "bytes", SIZE + "1.5"),
    (size(True), "bytes", SIZE + "True"),
    (size(None), "bytes", SIZE + "None"),
    (size("100 XB"), "bytes", SIZE + "'100 XB'"),
    (size("much"), "bytes", SIZE + "'much'"),
    (size(10**19), "bytes", SIZE),
    (size(1, dataset="No"), "dataset", "expected a name, or a full name with dots such as "),
    (partition("flights", count=0), "count", "expected greater than or equal to 1, got 0"),
    (partition("flights", count=1_000_001), "count", "expected less than or equal to 1000000, got 1000001"),
    (partition("flights", count="many"), "count", "expected a whole number, got 'many'"),
    (after("clean") | {"statuses": []}, "statuses", "expected at least 1 item, got []"),
    (after("clean") | {"statuses": ["DONE"]}, "statuses.0", STATUS + "'DONE'"),
    (after("clean") | {"statuses": "FAILED"}, "statuses", "expected a list, got 'FAILED'"),
    (after("clean") | {"count": 0}, "count", "expected greater than or equal to 1, got 0"),
    ({"type": "event"}, "event", NOTHING),
    (event(namespace="No"), "namespace", "expected a name, got 'No'"),
    (event(pattern=[]), "pattern", "expected an object, got []"),
    (event(pattern={"region": "eu"}), "pattern.region", "expected a list of alternatives such as "),
    (event(pattern={"region": []}), "pattern.region", "expected a list of alternatives such as "),
    (event(pattern={"a": {"b": [{"prefx": "eu"}]}}), "pattern.a.b.0.prefx", "expected an operator, one of prefix, "),
    (event(pattern={"n": [{"numeric": [">", "5"]}]}), "pattern.n.0.numeric", "expected "),
    ({"type": "cloudwatch_alarm"}, "alarm", NOTHING),
    (alarm(alarm=""), "alarm", "expected at least 1 characters, got ''"),
    (alarm(alarm="two\nlines"), "alarm", "expected text that matches "),
    (alarm(alarm="arn:aws:cloudwatch:eu-west-1:1:alarm:disk"), "alarm", "expected the name of an alarm, got "),
    (alarm(state="ON"), "state", "expected ALARM, OK, INSUFFICIENT_DATA, or a list of these, got 'ON'"),
    (alarm(state=["ON"]), "state.0", "expected 'ALARM', 'OK' or 'INSUFFICIENT_DATA', got 'ON'"),
    (alarm(state=[]), "state", "expected at least 1 item, got []"),
    (alarm(count=0), "count", "expected greater than or equal to 1, got 0"),
    (quiet(FLIGHTS, after="soon"), "after", DURATION + "'soon'"),
    (quiet(FLIGHTS, after=5), "after", "expected a duration such as 90s, 1h30m, 2d or PT5M, got 5"),
    ({"type": "quiet", "of": FLIGHTS}, "after", NOTHING),
    ({"type": "quiet", "after": "5m"}, "of", NOTHING),
    (quiet(WEEKDAYS), "of", GATHERING + "{'type': 'time', "),
    (quiet(quiet(FLIGHTS)), "of", GATHERING + "{'type': 'quiet', "),
    (quiet(every(FLIGHTS)), "of", GATHERING + "{'type': 'all', "),
    (quiet(7), "of", GATHERING + "7"),
    (quiet(partition("flights", count=0)), "of.count", "expected greater than or equal to 1, got 0"),
    (quiet(event(pattern={"n": 1})), "of.pattern.n", "expected a list of alternatives such as "),
    ({"type": "elapsed"}, "after", NOTHING),
    ({"type": "elapsed", "after": "-4h"}, "after", DURATION + "'-4h'"),
    ({"type": "elapsed", "after": "4h", "of": FLIGHTS}, "of", "unknown field 'of'"),
    (absent(), "within", "expected either within (a span), deadline (a time of day) or after "),
    (absent(within="1h", deadline="06:00"), "within", "expected either within (a span), deadline (a time of day) or "),
    (absent(within="soon"), "within", DURATION + "'soon'"),
    (absent(deadline="6:00"), "deadline", CLOCK + "'6:00'"),
    (absent(deadline="24:00"), "deadline", CLOCK + "'24:00'"),
    (absent(within="1h", zone="Mars"), "zone", "expected a time zone such as Europe/Paris or UTC, got 'Mars'"),
    (absent(deadline="06:00", zone="Mars"), "zone", "expected a time zone such as Europe/Paris or UTC, got 'Mars'"),
    (absent(deadline="06:00", days=["mon", "Tuesday"]), "days.1", DAYS + "'Tuesday'"),
    (absent(within="1h", days=["mon"]), "days", "expected days only with a deadline, got ['mon']"),
    ({"type": "time", "expression": "R0/PT3S"}, "expression", "expected at least one repeat, got 'R0/PT3S'"),
    ({"type": "time", "expression": "R4/PT0.5S"}, "expression", "expected an interval of at least 1s, got "),
    ({"type": "time", "expression": "R4/soon"}, "expression", "expected a 5-field cron expression such as "),
]


@pytest.mark.parametrize(("leaf", "field", "message"), LEAVES)
def test_a_wrong_leaf_is_named_alone_and_in_a_tree(standing: Api, leaf: Any, field: str, message: str) -> None:
    places = {f"trigger.{field}": leaf, f"trigger.triggers.1.triggers.0.{field}": every(FLIGHTS, every(leaf))}
    for path, trigger in places.items():
        error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", trigger=trigger))
        assert error["code"] in ("invalid", "unknown_field")
        assert error["field"] == path
        assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("trigger", "field", "message"),
    [
        (at_least(0, FLIGHTS), "count", "expected greater than or equal to 1, got 0"),
        (at_least(2, FLIGHTS), "count", "expected at most 1, the number of its triggers, got 2"),
        ({"type": "at_least", "triggers": [FLIGHTS]}, "count", NOTHING),
        (every(FLIGHTS, within="soon"), "within", DURATION + "'soon'"),
        ({"type": "any", "triggers": [FLIGHTS], "within": "1h"}, "within", "unknown field 'within'"),
        (every(every(FLIGHTS, within="1h")), "within", "expected within on the outermost trigger only, got "),
        (every(FLIGHTS, "weather"), "triggers.1", "expected an object whose type is one of time, partition, "),
        ({"type": "any", "triggers": FLIGHTS}, "triggers", "expected a list, got {"),
    ],
)
def test_a_wrong_tree_is_named(standing: Api, trigger: Any, field: str, message: str) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", trigger=trigger))
    assert error["field"] == f"trigger.{field}"
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("leaf", "message", "hint"),
    [
        (size(1, dataset="flihgts"), "expected an existing dataset, got 'demo.flihgts'",
         "did you mean 'demo.flights'?"),
        (quiet(partition("flihgts")), "expected an existing dataset, got 'demo.flihgts'",
         "did you mean 'demo.flights'?"),
        (quiet(after("claen")), "expected an existing workflow, got 'demo.flights.claen'",
         "did you mean 'demo.flights.clean'?"),
        (quiet(after("notify")), "expected a workflow whose target reports the status of its runs, got ", None),
        ({"type": "absent", "of": after("claen"), "within": "1h"},
         "expected an existing workflow, got 'demo.flights.claen'", "did you mean 'demo.flights.clean'?"),
        ({"type": "absent", "of": partition("flights", count=2), "within": "1h"},
         "expected an absent leaf of single events, got '2 partitions of demo.flights'", None),
        ({"type": "absent", "of": size(5), "within": "1h"}, "expected an absent leaf of single events, got ", None),
    ],
)  # fmt: skip
def test_a_nested_leaf_must_refer_to_existing_parts(standing: Api, leaf: Any, message: str, hint: str | None) -> None:
    for trigger in (leaf, every(FLIGHTS, leaf)):
        error = refused(standing, 400, "PUT", ONE, schedule(workflow="clean", trigger=trigger))
        assert (error["field"], error["hint"]) == ("trigger", hint)
        assert error["message"].startswith(message)


@pytest.mark.parametrize("of", [quiet, lambda leaf: {"type": "absent", "of": leaf, "within": "1h"}])
def test_a_cycle_through_a_nested_leaf_is_refused(standing: Api, of: Any) -> None:
    document = schedule(workflow="refine", trigger=of(after("clean")))
    error = refused(standing, 400, "PUT", ONE, document)
    assert (error["code"], error["field"]) == ("cycle", "trigger")


def test_each_status_and_each_fresh_upstream_counts_as_a_leaf(standing: Api) -> None:
    statuses = after("clean") | {"statuses": ["FAILED", "KILLED"]}
    wide = schedule(workflow="notify", trigger={"type": "any", "triggers": [statuses] * 23})
    error = refused(standing, 400, "PUT", ONE, wide)
    assert error["message"] == "expected at most 45 leaves in one trigger, got '46 leaves'"
    fresh = {"type": "fresh", "workflows": ["clean", "refine"], "within": "1d", "on_unmet": "wait"}
    wide = schedule(trigger={"type": "any", "triggers": [FLIGHTS] * 44}, constraints=[fresh])
    assert refused(standing, 400, "PUT", ONE, wide)["field"] == "trigger"


@pytest.mark.parametrize("leaf", [{"type": "elapsed", "after": "4h"}, absent(within="1h")])
def test_an_event_of_a_timer_belongs_to_no_partition(standing: Api, leaf: Any) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(trigger={"type": "any", "triggers": [FLIGHTS, leaf]}, by=KEYS))
    assert error["field"] == "by"
    assert error["hint"] == "a time has no partition; use two schedules, or an absent with period or after"


@pytest.mark.parametrize("leaf", [size(5), quiet(FLIGHTS)])
def test_correlation_keys_are_those_of_the_dataset_by_any_name(standing: Api, leaf: Any) -> None:
    error = refused(standing, 400, "PUT", ONE, schedule(trigger=leaf, by=["hour"]))
    assert (error["field"], error["message"]) == (
        "by",
        "expected partition keys that dataset demo.flights has (year, month, day), got 'hour'",
    )
