"""A dry run shows the effect of given events on a schedule's trigger, and stores nothing (L11)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kinds import GIVEN_TYPES
from tests.web.conftest import APP, KEYS, NS, Api, installation, settle_in
from tests.web.wrong import EMR, ONE, after, partition, refused, schedule

DAY = {"year": "2013", "month": "1", "day": "1"}
NEXT_DAY = DAY | {"day": "2"}
READY = {"type": "partition", "dataset": "flights", "partition": DAY}
ALARM = {"type": "cloudwatch_alarm", "alarm": "disk full"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """One installation for all tests: a dry run changes nothing, and each test puts the schedule that it needs."""
    with installation() as made:
        settle_in(made)
        made.put(f"{APP}/workflows/refine", {"target": EMR})
        yield made


def at(clock: str, event: dict[str, Any]) -> dict[str, Any]:
    return event | {"at": f"2026-11-20T{clock}Z"}


def test_a_payload_is_as_large_as_that_of_an_event(api: Api) -> None:
    api.put(ONE, schedule(workflow="clean", trigger={"type": "event", "event": "sale"}))
    sale = {"type": "event", "event": "sale", "payload": {"x": "x" * 10_000}}
    error = refused(api, 413, "POST", f"{ONE}/dry-run", {"events": [sale]})
    assert (error["code"], error["field"]) == ("too_large", "events.0.payload")


def dry_run(api: Api, trigger: Any, *events: Any, **more: Any) -> dict[str, Any]:
    """The answer of a dry run, which must leave every table unchanged."""
    api.put(ONE, schedule(workflow="clean", trigger=trigger, **more))
    before = api.everything()
    answer: dict[str, Any] = api.post(f"{ONE}/dry-run", {"events": list(events)})
    assert api.everything() == before
    assert set(answer) == {"steps", "fires", "left", "why"}
    assert answer["fires"] == sum(step["fires"] for step in answer["steps"])
    return answer


def effects(reported: dict[str, Any]) -> list[str]:
    """The effect of each event: it fired, it counted, or no schedule waited for it."""
    return ["fires" if step["fires"] else "counts" if step["touched"] else "-" for step in reported["steps"]]


def test_l11_each_event_is_a_step_with_what_came_and_is_missing(api: Api) -> None:
    two = partition("flights", count=2)
    answer = dry_run(api, two, at("11:00:00", READY), at("12:00:00", READY | {"partition": NEXT_DAY}))

    first, second = answer["steps"]
    assert first == {
        "at": "2026-11-20T11:00:00.000Z",
        "event": "partition year=2013/month=1/day=1 of flights",
        "touched": True,
        "fires": False,
        "why": "waits for 1 partition of demo.flights (1 partition of demo.flights came at 2026-11-20T11:00:00.000Z)",
        "arrived": ["1 partition of demo.flights came at 2026-11-20T11:00:00.000Z"],
        "missing": ["1 partition of demo.flights"],
    }
    assert (second["fires"], second["missing"]) == (True, [])
    assert second["why"] == "trigger met: 2 partitions of demo.flights came since 2026-11-20T11:00:00.000Z"
    assert (answer["fires"], answer["left"]) == (1, [])


def test_l11_firing_consumes_what_came_and_keeps_the_rest(api: Api) -> None:
    answer = dry_run(api, partition("flights", count=2), READY, READY, READY)
    assert effects(answer) == ["counts", "fires", "counts"]
    [left] = answer["left"]
    assert left["why"].startswith("waits for 1 partition of demo.flights (1 partition of demo.flights came at ")
    assert (left["changes_at"], left["correlation"]) == (None, None)
    assert answer["why"] == f"fires 1 time; then {left['why']}"


def test_l11_events_are_played_in_the_order_of_their_instants(api: Api) -> None:
    both = {"type": "all", "triggers": [partition("flights"), partition("weather")]}
    weather = {"type": "partition", "dataset": "weather"}
    answer = dry_run(
        api, both, at("12:00:00", READY), at("11:00:00", weather), {**READY, "at": "2026-11-20T11:30+01:00"}
    )
    assert [step["at"][11:16] for step in answer["steps"]] == ["10:30", "11:00", "12:00"]
    assert effects(answer) == ["counts", "fires", "counts"]


def test_l11_an_event_without_an_instant_comes_now(api: Api) -> None:
    view = api.put(ONE, schedule())
    [step] = dry_run(api, partition("flights"), READY)["steps"]
    assert step["at"] >= view["updated_at"]


@pytest.mark.parametrize(
    ("trigger", "event", "effect"),
    [
        (partition("flights"), READY, "fires"),
        (partition("flights"), READY | {"dataset": "demo.flights"}, "fires"),
        (partition("flights"), READY | {"dataset": "weather"}, "-"),
        (partition("flights"), {"type": "size", "dataset": "flights", "bytes": 5}, "-"),
        ({"type": "size", "dataset": "flights", "bytes": "10GB"},
         {"type": "size", "dataset": "flights", "bytes": "9.9 GB"}, "counts"),
        ({"type": "size", "dataset": "flights", "bytes": "10GB"},
         {"type": "size", "dataset": "flights", "bytes": 10_000_000_000}, "fires"),
        (after("refine"), {"type": "program_status", "workflow": "refine"}, "fires"),
        (after("refine"), {"type": "program_status", "workflow": "flights.refine", "status": "COMPLETED"}, "fires"),
        (after("refine"), {"type": "program_status", "workflow": "refine", "status": "FAILED"}, "-"),
        ({"type": "event", "event": "closed"}, {"type": "event", "event": "closed"}, "fires"),
        ({"type": "event", "event": "closed"}, {"type": "event", "event": "closed", "namespace": "other"}, "-"),
        ({"type": "event", "event": "closed", "namespace": "other"},
         {"type": "event", "event": "closed", "namespace": "other"}, "fires"),
        ({"type": "event", "event": "closed", "pattern": {"n": [{"numeric": [">", 5]}]}},
         {"type": "event", "event": "closed", "payload": {"n": 6}}, "fires"),
        ({"type": "event", "event": "closed", "pattern": {"n": [{"numeric": [">", 5]}]}},
         {"type": "event", "event": "closed", "payload": {"n": 5}}, "-"),
        (ALARM, ALARM, "fires"),
        (ALARM, ALARM | {"state": "OK"}, "-"),
        (ALARM | {"state": ["OK", "ALARM"]}, ALARM | {"state": "OK"}, "fires"),
        (ALARM, ALARM | {"alarm": "disk"}, "-"),
        ({"type": "time", "expression": "0 5 * * *"}, {"type": "time", "at": "2026-11-20T05:00:00Z"}, "fires"),
        ({"type": "time", "expression": "0 5 * * *"}, {"type": "time", "at": "2026-11-20T05:00:01Z"}, "-"),
        ({"type": "time", "expression": "0 5 * * *", "zone": "Asia/Kolkata"},
         {"type": "time", "at": "2026-11-20T05:00:00+05:30"}, "fires"),
        ({"type": "time", "expression": "@every 7m"}, {"type": "time", "at": "2026-11-20T05:00:01Z"}, "fires"),
        ({"type": "time", "expression": "R4/PT3S"}, {"type": "time"}, "fires"),
        ({"type": "elapsed", "after": "4h"}, {"type": "elapsed"}, "fires"),
        ({"type": "elapsed", "after": "4h"}, {"type": "absent"}, "-"),
        ({"type": "absent", "of": partition("flights"), "within": "1h"}, {"type": "absent"}, "fires"),
    ],
)  # fmt: skip
def test_l11_every_kind_of_event_counts_for_its_waiting_leaves(api: Api, trigger: Any, event: Any, effect: str) -> None:
    answer = dry_run(api, trigger, event)
    assert effects(answer) == [effect]
    [step] = answer["steps"]
    assert (step["why"] == "no leaf of the trigger counts this event") == (effect == "-")


def test_t19_a_dry_run_gathers_each_correlation_by_itself(api: Api) -> None:
    both = {"type": "all", "triggers": [partition("flights"), partition("weather")]}
    weather = {"type": "partition", "dataset": "weather", "partition": NEXT_DAY}
    answer = dry_run(api, both, READY, weather, READY | {"partition": NEXT_DAY}, by=KEYS)
    assert effects(answer) == ["counts", "counts", "fires"]
    [left] = answer["left"]
    assert left["correlation"] == DAY
    assert left["why"].startswith("waits for 1 partition of demo.weather ")


def test_t12_quiet_becomes_met_when_time_has_passed(api: Api) -> None:
    quiet = {"type": "quiet", "of": partition("flights"), "after": "15m"}
    answer = dry_run(api, quiet, at("11:00:00", READY), at("11:10:00", READY))
    assert effects(answer) == ["counts", "counts"]
    [left] = answer["left"]
    assert left["changes_at"] == "2026-11-20T11:25:00.000Z"


def test_t12_time_between_events_may_complete_a_match(api: Api) -> None:
    quiet = {"type": "quiet", "of": partition("flights"), "after": "15m"}
    answer = dry_run(api, quiet, at("11:00:00", READY), at("11:20:00", READY | {"dataset": "weather"}))
    assert effects(answer) == ["counts", "fires", "-"]
    assert (answer["steps"][1]["at"], answer["steps"][1]["event"]) == ("2026-11-20T11:15:00.000Z", "time passes")
    assert (answer["fires"], answer["left"]) == (1, [])
    answer = dry_run(api, quiet, at("11:00:00", READY), at("11:20:00", READY))
    assert effects(answer) == ["counts", "fires", "counts"]
    assert len(answer["left"]) == 1


def test_t19_an_event_without_the_correlation_keys_says_so(api: Api) -> None:
    answer = dry_run(api, partition("flights"), READY | {"partition": {"year": "2013"}}, by=KEYS)
    assert effects(answer) == ["-"]
    assert answer["steps"][0]["why"] == "the event does not carry a value of every correlation key (year, month, day)"


def test_t14_an_expired_partial_match_is_dropped_in_a_dry_run(api: Api) -> None:
    both = {"type": "all", "triggers": [partition("flights"), partition("weather")], "within": "1h"}
    weather = {"type": "partition", "dataset": "weather"}
    answer = dry_run(api, both, at("11:00:00", READY), at("12:00:00", weather), at("12:30:00", READY))
    assert effects(answer) == ["counts", "counts", "fires"]
    assert answer["steps"][1]["missing"] == ["1 partition of demo.flights"]


def test_l11_without_events_a_dry_run_shows_what_trigger_needs(api: Api) -> None:
    answer = dry_run(api, partition("flights"))
    assert (answer["steps"], answer["fires"], answer["left"]) == ([], 0, [])
    assert "1 partition of demo.flights" in answer["why"]


def test_l11_a_dry_run_ignores_the_mode_and_what_is_gathered(api: Api) -> None:
    api.put(ONE, schedule(trigger=partition("flights", count=2), enabled=True))
    api.post(f"{NS}/datasets/flights/partitions", {"partition": DAY})
    assert len(api.get(f"{ONE}/jobs")["items"]) == 1
    before = api.everything()
    for action in (None, "pause", "disable"):
        if action:
            api.post(f"{ONE}/{action}")
            before = api.everything()
        assert api.post(f"{ONE}/dry-run", {"events": [READY]})["fires"] == 0
        assert api.post(f"{ONE}/dry-run", {"events": [READY, READY]})["fires"] == 1
        assert api.everything() == before


def test_l11_many_events_can_be_played_at_once(api: Api) -> None:
    day = {f"key{number}": "x" * 50 for number in range(10)}
    answer = dry_run(api, partition("flights", count=1_000), *[READY | {"partition": day}] * 1_000)
    assert (answer["fires"], len(answer["steps"])) == (1, 1_000)


# -- what is refused -------------------------------------------------------------------------------------------------

TYPES = f"expected an object whose type is one of {', '.join(GIVEN_TYPES)}, got "
INSTANT = "expected an RFC 3339 instant such as 2026-11-20T12:00:00Z, got "
AGE = "expected an instant from the year 1970 to 9998, got "
STATUS = "expected 'STARTED', 'COMPLETED', 'FAILED' or 'KILLED', got "
ALARM_STATE = "expected 'ALARM', 'OK' or 'INSUFFICIENT_DATA', got "


@pytest.mark.parametrize(
    ("event", "code", "field", "message"),
    [
        (7, "invalid", "", TYPES + "7"),
        ({}, "invalid", "", TYPES + "{}"),
        ({"type": "moon"}, "invalid", "", TYPES + "{'type': 'moon'}"),
        ({"type": ["time"]}, "invalid", "", TYPES),
        ({"type": "quiet"}, "invalid", "", TYPES),
        ({"type": "partition"}, "invalid", ".dataset", "expected a value, got nothing"),
        (READY | {"dataset": "No Name"}, "invalid", ".dataset", "expected a name, or a full name with dots such as "),
        (READY | {"partition": "2013-01-01"}, "invalid", ".partition", "expected an object, got '2013-01-01'"),
        (READY | {"partition": {"day": None}}, "invalid", ".partition.day", "expected text, got None"),
        (READY | {"count": 2}, "unknown_field", ".count", "unknown field 'count'"),
        (READY | {"at": "noon"}, "invalid", ".at", INSTANT + "'noon'"),
        (READY | {"at": "2026-11-20"}, "invalid", ".at", INSTANT + "'2026-11-20'"),
        (READY | {"at": 7}, "invalid", ".at", "expected text, got 7"),
        (READY | {"at": "9999-12-31T23:59:59-23:59"}, "invalid", ".at", AGE + "'9999-12-31T23:59:59-23:59'"),
        ({"type": "time", "at": "9999-12-31T23:59:59Z"}, "invalid", ".at", AGE),
        ({"type": "time", "at": "0001-01-01T00:00:00+23:59"}, "invalid", ".at", AGE),
        ({"type": "time", "expression": "@daily"}, "unknown_field", ".expression", "unknown field 'expression'"),
        ({"type": "size", "dataset": "flights"}, "invalid", ".bytes", "expected a value, got nothing"),
        (
            {"type": "size", "dataset": "flights", "bytes": "much"},
            "invalid",
            ".bytes",
            "expected a size such as 100GB, ",
        ),
        ({"type": "size", "dataset": "flights", "bytes": 0}, "invalid", ".bytes", "expected a size such as 100GB, "),
        ({"type": "program_status"}, "invalid", ".workflow", "expected a value, got nothing"),
        ({"type": "program_status", "workflow": "clean", "status": "DONE"}, "invalid", ".status", STATUS + "'DONE'"),
        ({"type": "event"}, "invalid", ".event", "expected a value, got nothing"),
        ({"type": "event", "event": 7}, "invalid", ".event", "expected text, got 7"),
        ({"type": "event", "event": "closed", "namespace": "No"}, "invalid", ".namespace", "expected a name, got 'No'"),
        ({"type": "event", "event": "closed", "payload": [1]}, "invalid", ".payload", "expected an object, got [1]"),
        ({"type": "cloudwatch_alarm"}, "invalid", ".alarm", "expected a value, got nothing"),
        ({"type": "cloudwatch_alarm", "alarm": "a", "state": "ON"}, "invalid", ".state", ALARM_STATE + "'ON'"),
    ],
)
def test_l11_a_wrong_event_is_named_by_its_number_and_field(
    api: Api, event: Any, code: str, field: str, message: str
) -> None:
    api.put(ONE, schedule())
    error = refused(api, 400, "POST", f"{ONE}/dry-run", {"events": [READY, event]})
    assert (error["code"], error["field"]) == (code, f"events.1{field}")
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("body", "status", "code", "field", "message"),
    [
        (None, 400, "invalid", "events", "expected a value, got nothing"),
        ({"events": None}, 400, "invalid", "events", "expected a list, got None"),
        ({"events": READY}, 400, "invalid", "events", "expected a list, got {"),
        ({"events": [READY] * 1_001}, 400, "invalid", "events", "expected at most 1000 items, got "),
        ({"events": [], "event": READY}, 400, "unknown_field", "event", "unknown field 'event'"),
        ({"events": [{"type": "event", "event": "e", "payload": {"x": "x" * 100_000}}]}, 413, "too_large", "events.0",
         "expected a document of at most 100000 bytes, got "),
        (b"[]", 400, "invalid", "body", "expected a JSON object, got []"),
        (b"{", 400, "bad_json", "body", "expected JSON, got something else: "),
    ],
)  # fmt: skip
def test_l11_a_wrong_dry_run_is_refused(api: Api, body: Any, status: int, code: str, field: str, message: str) -> None:
    api.put(ONE, schedule())
    error = refused(api, status, "POST", f"{ONE}/dry-run", body)
    assert (error["code"], error["field"]) == (code, field)
    assert error["message"].startswith(message)


def test_t29_only_the_partition_of_the_period_ends_its_absence(api: Api) -> None:
    period = {"each": "day", "format": "day=%Y-%m-%d"}
    api.put(f"{NS}/datasets/daily", {"bucket": "lake", "prefix": "daily/", "keys": ["day"], "period": period})
    absent = {"type": "absent", "of": {"type": "partition", "dataset": "daily"}, "after": "6h"}
    trigger = {"type": "all", "triggers": [absent, {"type": "event", "event": "go"}]}
    missing = at("06:00:00", {"type": "absent"})

    def day(clock: str, date: str) -> dict[str, Any]:
        return at(clock, {"type": "partition", "dataset": "daily", "partition": {"day": date}})

    go = at("09:00:00", {"type": "event", "event": "go"})
    assert effects(dry_run(api, trigger, missing, day("07:00:00", "2026-11-18"), go)) == ["counts", "-", "fires"]
    assert effects(dry_run(api, trigger, missing, day("07:00:00", "2026-11-19"), go)) == ["counts", "counts", "counts"]
