"""The partition of one period does not come (T29): the alarm names it, and no other partition silences it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, Millis, duration, iso, parse_instant
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow.definitions import store
from tests.acceptance.words import any_of, doze, doze_until, on, partition, why, why_schedule
from tests.support.world import World, flights, full

DAYS = {"each": "day", "format": "day=%Y-%m-%d"}
HOURS = {"each": "hour", "format": "day=%Y-%m-%d/hour=%H"}
WEEKS = {"each": "week", "format": "week=%G-W%V"}
MONTHS = {"each": "month", "format": "month=%Y-%m"}


def app(schedules: dict[str, Any], period: dict[str, Any] | None = DAYS, keys: str = "day") -> dict[str, Any]:
    dataset: dict[str, Any] = {"bucket": "lake", "prefix": "daily/", "keys": keys.split()}
    return flights(schedules) | {"datasets": {"daily": dataset | ({"period": period} if period else {})}}


def absent(**fields: Any) -> dict[str, Any]:
    return {"type": "absent", "of": {"type": "partition", "dataset": "daily"}, **fields}


YESTERDAY = absent(period="yesterday", deadline="06:00")


def comes(world: World, *folders: str) -> None:
    for folder in folders:
        world.upload(f"daily/{folder}/part-0.parquet", size=5)
        world.settle()


def fired(world: World, name: str = "alarm") -> list[tuple[str, str]]:
    """When each alarm was due, and the partition that it names."""
    events = [event for run in world.runs(name) for event in world.context(run)["events"]]
    return [(iso(event["instant"])[:16], "/".join(event["partition"].values())) for event in events]


# -- which partition counts --------------------------------------------------------------------------------------------


def test_t29_only_the_partition_of_the_period_silences_it(world: World) -> None:
    world.deploy(app({"alarm": on(YESTERDAY)}))
    comes(world, "day=2026-03-02")
    doze(world, "1d")
    assert world.runs("alarm") == []
    comes(world, "day=2026-02-20", "day=2026-03-04")
    doze(world, "3d")
    assert fired(world) == [("2026-03-04T06:00", "2026-03-03"), ("2026-03-06T06:00", "2026-03-05")]


def test_t29_the_alarm_names_dataset_period_span_and_the_last(world: World) -> None:
    world.deploy(app({"alarm": on(YESTERDAY)}, DAYS | {"zone": "Europe/Paris"}))
    comes(world, "day=2026-03-01")
    came = world.clock.now()
    doze(world, "1d")
    [run] = world.runs("alarm")
    [event] = world.context(run)["events"]
    begun = parse_instant("2026-03-01T23:00:00Z")
    assert event == {
        "kind": "absent",
        "id": event["id"],
        "instant": parse_instant("2026-03-03T06:00:00Z"),
        "dataset": "demo.daily",
        "partition": {"day": "2026-03-02"},
        "of": "partition of demo.daily",
        "newest": {"partition": {"day": "2026-03-01"}, "at": came},
        "period": {"start": begun, "end": begun + DAY, "zone": "Europe/Paris", "label": "2026-03-02"},
    }
    assert "no partition of demo.daily day=2026-03-02 had come for yesterday by 06:00 in UTC" in run.fired_by.text


def test_t29_a_partition_registered_before_counts(world: World) -> None:
    world.deploy(app({}))
    comes(world, "day=2026-03-02")
    world.deploy(app({"alarm": on(YESTERDAY)}))
    doze(world, "1d")
    assert world.runs("alarm") == []


def test_t29_why_says_what_keeps_it_from_firing(world: World) -> None:
    world.deploy(app({"alarm": on(YESTERDAY)}))
    told = "absent fires at 2026-03-03T06:00:00.000Z unless day=2026-03-02 of demo.daily arrives"
    assert told in why_schedule(world, "alarm")["why"]
    comes(world, "day=2026-03-02")
    told = "the partition of demo.daily that is expected by 2026-03-03T06:00:00.000Z has come"
    assert told in why_schedule(world, "alarm")["why"]


# -- when it is due ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "keys", "trigger", "passes", "expected"),
    [
        (HOURS, "day hour", absent(after="20m"), "3h", ["2026-03-02/11", "2026-03-02/12", "2026-03-02/13"]),
        (DAYS, "day", absent(after="30h"), "2d", ["2026-03-01", "2026-03-02"]),
        (DAYS, "day", absent(period="today", deadline="18:00"), "1d", ["2026-03-02"]),
        (WEEKS, "week", absent(period="last", deadline="06:00"), "8d", ["2026-W10"]),
        (WEEKS, "week", absent(period="current", deadline="18:00", days=["fri"]), "12d", ["2026-W10", "2026-W11"]),
        (MONTHS, "month", absent(period="last", deadline="06:00"), "60d", ["2026-03", "2026-04"]),
        (MONTHS, "month", absent(after="5d"), "40d", ["2026-02", "2026-03"]),
    ],
)
def test_t29_each_period_is_due_once(
    world: World, period: dict[str, Any], keys: str, trigger: dict[str, Any], passes: str, expected: list[str]
) -> None:
    world.deploy(app({"alarm": on(trigger)}, period, keys))
    sleep(world, passes)
    assert [partition for _, partition in fired(world)] == expected


def sleep(world: World, span: str) -> None:
    """Let time pass, with ticks and hints from two minutes before each fire to a minute after it."""
    until = world.clock.now() + duration(span)
    while world.clock.now() < until:
        timer = world.ports.rows.get(Timer, full("alarm"))
        due = min(until, timer.wake_at if timer is not None and timer.wake_at is not None else until)
        doze_until(world, max(due, world.clock.now() + MINUTE) + MINUTE)


@pytest.mark.parametrize(
    ("begins", "hours"),
    [("2026-03-28T23:30:00Z", "00 01 03 04"), ("2026-10-24T22:30:00Z", "00 01 02 03")],
)
def test_t29_hours_that_the_clocks_skip_are_not_missed(world: World, begins: str, hours: str) -> None:
    period = HOURS | {"zone": "Europe/Paris"}
    world.deploy(app({"alarm": on(absent(after="1m"))}, period, "day hour") | {"schedules": {}})
    world.clock.wait_until(parse_instant(begins))
    world.deploy(app({"alarm": on(absent(after="1m"))}, period, "day hour"))
    sleep(world, "5h")
    assert [partition[-2:] for _, partition in fired(world)][:4] == hours.split()


def test_t29_a_deadline_that_the_clocks_skip_is_the_end_of_gap(world: World) -> None:
    world.clock.wait_until(parse_instant("2026-03-28T12:00:00Z"))
    trigger = absent(period="yesterday", deadline="02:30", zone="Europe/Paris")
    world.deploy(app({"alarm": on(trigger)}, DAYS | {"zone": "Europe/Paris"}))
    sleep(world, "2d")
    assert fired(world) == [("2026-03-29T01:00", "2026-03-28"), ("2026-03-30T00:30", "2026-03-29")]


def test_t29_after_an_outage_each_missing_period_is_told(world: World) -> None:
    world.deploy(app({"alarm": on(YESTERDAY, coalesce=False)}))
    world.pass_by("1m")
    world.clock.wait_until(world.clock.now() + 3 * DAY)
    comes(world, "day=2026-03-03")
    world.pass_by("5m")
    world.settle()
    assert [partition for _, partition in fired(world)] == ["2026-03-02", "2026-03-04"]


def test_t29_a_corrected_zone_moves_the_next_check(world: World) -> None:
    world.deploy(app({"alarm": on(absent(after="1h"))}))
    timer = world.ports.rows.get(Timer, full("alarm"))
    assert timer is not None and iso(timer.next["0"]) == "2026-03-03T01:00:00.000Z"
    world.deploy(app({"alarm": on(absent(after="1h"))}, DAYS | {"zone": "America/New_York"}))
    timer = world.ports.rows.get(Timer, full("alarm"))
    assert timer is not None and iso(timer.next["0"]) == "2026-03-03T06:00:00.000Z"
    sleep(world, "1d")
    assert fired(world) == [("2026-03-03T06:00", "2026-03-02")]


# -- with other leaves, and by its keys --------------------------------------------------------------------------------


def test_t29_by_its_key_a_day_runs_complete_or_alone(world: World) -> None:
    trigger = any_of(partition("daily", count=1), absent(after="6h"))
    world.deploy(app({"alarm": on(trigger, by=["day"])}))
    comes(world, "day=2026-03-01")
    sleep(world, "1d")
    found = [(run.correlation, world.context(run)["events"][0]["kind"]) for run in world.runs("alarm")]
    assert found == [({"day": "2026-03-01"}, "partition"), ({"day": "2026-03-02"}, "absent")]


def test_t29_the_partition_ends_the_absence_before_the_launch(world: World) -> None:
    world.deploy(app({"alarm": on(YESTERDAY, "clean", {"type": "delay", "after": "2h"})}))
    doze(world, "19h")
    [job] = world.jobs("alarm")
    assert why(world, "alarm")["arrived"] == [
        "no partition of demo.daily day=2026-03-02 had come for yesterday by 06:00 in UTC at 2026-03-03T06:00:00.000Z"
    ]
    comes(world, "day=2026-03-01")
    assert [each.job_id for each in world.jobs("alarm")] == [job.job_id]
    comes(world, "day=2026-03-02")
    [record] = world.records("alarm")
    assert (world.jobs("alarm"), record.kind) == ([], "DROPPED")
    assert record.reason.text.endswith("before the job was launched: day=2026-03-02 of demo.daily")


# -- without periods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fields", "since"), [({"within": "2h"}, 2 * HOUR), ({"deadline": "13:00"}, DAY)])
def test_t29_every_absence_names_what_and_since_when(world: World, fields: dict[str, str], since: Millis) -> None:
    world.deploy(app({"alarm": on(absent(**fields))}))
    doze(world, "2h30m")
    [event] = world.context(world.runs("alarm")[0])["events"]
    due = event["instant"]
    found = {name: event[name] for name in ("dataset", "of", "since", "until")}
    assert found == {"dataset": "demo.daily", "of": "partition of demo.daily", "since": due - since, "until": due}


# -- listed values -----------------------------------------------------------------------------------------------------

REGIONS = ("us", "eu", "apac")


def regions(schedules: dict[str, Any], *listed: str) -> dict[str, Any]:
    document = app(schedules, DAYS, "region day")
    document["datasets"]["daily"]["values"] = {"region": list(listed or REGIONS)}
    return document


def of_day(day: str, *names: str) -> list[str]:
    return [f"region={name}/day={day}" for name in names]


def test_t29_the_alarm_names_the_listed_values_that_lack(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY)}))
    comes(world, *of_day("2026-03-02", "us"), *of_day("2026-03-01", *REGIONS))
    doze(world, "1d")
    [run] = world.runs("alarm")
    [event] = world.context(run)["events"]
    lacking = [{"region": region, "day": "2026-03-02"} for region in ("eu", "apac")]
    assert (event["partition"], event["period"]["label"]) == ({"day": "2026-03-02"}, "2026-03-02")
    assert (event["missing"], event["missing_count"]) == (lacking, 2)
    assert event["newest"]["partition"] == {"region": "us", "day": "2026-03-02"}
    assert "eu and apac of demo.daily day=2026-03-02 had not come for yesterday by 06:00 in UTC" in run.fired_by.text


def test_t29_every_listed_value_of_the_day_silences_it(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY)}))
    comes(world, *of_day("2026-03-02", *REGIONS))
    doze(world, "1d")
    assert world.runs("alarm") == []


def test_t29_why_says_which_listed_values_keep_it_from_firing(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY)}))
    comes(world, *of_day("2026-03-02", "us"))
    told = "unless region=eu/day=2026-03-02 and region=apac/day=2026-03-02 of demo.daily arrive"
    assert f"absent fires at 2026-03-03T06:00:00.000Z {told}" in why_schedule(world, "alarm")["why"]


def test_t29_the_last_of_the_listed_values_ends_the_absence(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY, "clean", {"type": "delay", "after": "2h"})}))
    comes(world, *of_day("2026-03-02", "us"))
    doze(world, "19h")
    [job] = world.jobs("alarm")
    [told] = why(world, "alarm")["arrived"]
    assert told.startswith(
        "eu and apac of demo.daily day=2026-03-02 had not come for yesterday by 06:00 in UTC at 2026"
    )
    comes(world, *of_day("2026-03-02", "eu"))
    assert [each.job_id for each in world.jobs("alarm")] == [job.job_id]
    comes(world, *of_day("2026-03-02", "apac"))
    assert (world.jobs("alarm"), [record.kind for record in world.records("alarm")]) == ([], ["DROPPED"])


def test_t29_many_listed_values_are_named_in_part(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY)}, *(f"r{number:03}" for number in range(150))))
    doze(world, "1d")
    [run] = world.runs("alarm")
    [event] = world.context(run)["events"]
    assert (len(event["missing"]), event["missing_count"]) == (100, 150)
    assert "r000, r001, r002, r003 and 146 more of demo.daily day=2026-03-02" in run.fired_by.text


def test_t29_a_list_that_changes_counts_from_the_next_check(world: World) -> None:
    world.deploy(regions({"alarm": on(YESTERDAY)}))
    comes(world, *of_day("2026-03-02", *REGIONS))
    world.deploy(regions({"alarm": on(YESTERDAY)}, *REGIONS, "mars"))
    doze(world, "1d")
    [run] = world.runs("alarm")
    assert "mars of demo.daily day=2026-03-02 had not come" in run.fired_by.text


def test_t29_a_day_runs_complete_or_late_with_listed_values(world: World) -> None:
    world.deploy(regions({"alarm": on(any_of(partition("daily", count=3), absent(after="6h")), by=["day"])}))
    comes(world, *of_day("2026-03-01", *REGIONS), *of_day("2026-03-02", "us"))
    sleep(world, "1d")
    found = [(run.correlation, len(world.context(run)["events"])) for run in world.runs("alarm")]
    assert found == [({"day": "2026-03-01"}, 3), ({"day": "2026-03-02"}, 2)]


def test_t29_values_of_the_period_before_are_no_list(world: World) -> None:
    """Nothing says which partitions a day has, so an absence of one is refused. If the dataset gets them later, no
    alarm names partitions that never come."""
    document = regions({"alarm": on(YESTERDAY)})
    world.deploy(document)
    daily = document["datasets"]["daily"] | {"values": {"region": "seen_last"}}
    with pytest.raises(
        SluiceError, match="a dataset whose keys name the period, or have listed values, got 'also region'"
    ):
        world.deploy(document | {"datasets": {"daily": daily}})
    store.put(world.ports, "dataset", "demo.daily", daily, "tester")
    comes(world, *of_day("2026-03-02", *REGIONS))
    doze(world, "2d")
    assert world.runs("alarm") == []


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "keys", "trigger", "field", "text"),
    [
        (None, "day", YESTERDAY, "trigger.of.dataset", "add period to the dataset"),
        (DAYS, "region day", YESTERDAY, "trigger.of.dataset", "list them in the dataset: values: {region: [..]}"),
        (HOURS, "day hour", YESTERDAY, "trigger.deadline", "such as after: 20m"),
        (WEEKS, "week", YESTERDAY, "trigger.period", "current or last for a dataset with a period of a week"),
        (DAYS, "day", absent(period="last", deadline="06:00"), "trigger.period", "today or yesterday"),
    ],
)
def test_t29_a_dataset_without_such_a_period_is_refused(
    world: World, period: dict[str, Any] | None, keys: str, trigger: dict[str, Any], field: str, text: str
) -> None:
    world.deploy(app({}, period, keys))
    with pytest.raises(SluiceError) as refused:
        world.put("alarm", on(trigger), checked=False)
    assert refused.value.field == field
    assert text in f"{refused.value.message} {refused.value.hint}"


def test_t29_by_of_a_listed_key_is_refused(world: World) -> None:
    world.deploy(regions({}))
    with pytest.raises(SluiceError, match="keys that name the period of demo.daily, got 'region'") as refused:
        world.put("alarm", on(YESTERDAY, by=["region"]), checked=False)
    assert refused.value.field == "by"


@pytest.mark.parametrize(
    ("trigger", "field", "text"),
    [
        (absent(period="yesterday", after="1h"), "trigger.period", "remove period"),
        (absent(period="yesterday", within="1h"), "trigger.period", "write a deadline"),
        (absent(after="1h", days=["mon"]), "trigger.days", "only with a deadline"),
        (absent(after="1h", within="1h"), "trigger.within", "either within"),
        ({**YESTERDAY, "of": {"type": "event", "event": "go"}}, "trigger.of", "only partitions"),
        (any_of(partition("daily"), absent(within="1h")) | {"by": ["day"]}, "by", "period or after"),
    ],
)
def test_t29_fields_that_contradict_are_refused(trigger: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        NewSchedule.model_validate(on(trigger))
    error = errors.from_validation(refused.value, NewSchedule)
    assert error.field == field
    assert text in f"{error.message} {error.hint}"
