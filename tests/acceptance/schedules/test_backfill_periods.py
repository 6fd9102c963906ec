"""Backfills of a schedule with one job for each period (L23, T25): each period once, with all its partitions."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.backfill import Backfill
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.definitions import store
from chalicelib.flow.views import partitions
from tests.acceptance.triggers import test_fan_out as fan_out
from tests.acceptance.triggers.test_roll_ups import (
    DAYS,
    HOURS,
    PARIS,
    REGIONS,
    app,
    days_of,
    hours_of,
    per_day,
    period,
    upload,
    window,
)
from tests.acceptance.words import all_of, any_of, concurrency, doze, reasons, why
from tests.support import archives
from tests.support.backfills import begin, check, counts, preview, seen, stop
from tests.support.world import EMR, World, full


def between(first: str, last: str, key: str = "day") -> dict[str, Any]:
    return {"partitions": {"from": {key: first}, "to": {key: last}}}


def named(*labels: str, key: str = "day") -> dict[str, Any]:
    return {"partitions": {"values": [{key: label} for label in labels]}}


MARCH = between("2026-03-27", "2026-03-31")


def planned(world: World, **asked: Any) -> dict[str, str]:
    """The periods of a range with their partitions, as a dry run shows them. A star marks what would run."""
    entries = preview(world, "s", **asked)["entries"]
    return {
        "/".join(each["entry"].values()): f"{each['have']} of {each['need']}" + "*" * each["runs"] for each in entries
    }


def before(world: World, *days: str, schedule: dict[str, Any] | None = None, **clicks: Any) -> None:
    """The hours of these days, which came before the schedule."""
    world.deploy(app({}, **clicks))
    for day in days:
        upload(world, *hours_of(day))
    world.deploy(app({"s": schedule or per_day()}, **clicks))


def work_off(world: World, state: str = "SUCCESS") -> None:
    world.settle()
    while world.finish(state):
        world.settle()


def ran(world: World) -> list[tuple[str, int]]:
    """The label of each run, and the number of its partitions, by the order of the claims."""
    runs = sorted(world.runs("s"), key=lambda run: (run.claimed_at, run.created_at))
    return [("/".join((run.correlation or {}).values()), len(world.context(run)["events"])) for run in runs]


def row_of(world: World, backfill_id: str) -> Backfill:
    row = world.ports.rows.get(Backfill, full("s"), backfill_id)
    assert row is not None
    check(row, world.runs("s"))
    return row


def test_l23_each_day_of_a_range_runs_with_all_its_hours(world: World) -> None:
    """29 March has 23 hours in Paris. Of the last day one hour is missing."""
    before(world, "2026-03-28", "2026-03-29")
    world.deploy(app({}))
    upload(world, *hours_of("2026-03-30")[:-1])
    world.deploy(app({"s": per_day()}))
    expected = {"2026-03-28": "24 of 24*", "2026-03-29": "23 of 23*", "2026-03-30": "23 of 24"}
    assert planned(world, **MARCH) == {"2026-03-27": "0 of 24"} | expected | {"2026-03-31": "0 of 24"}
    whys = {each["entry"]["day"]: each["why"] for each in preview(world, "s", **MARCH)["entries"]}
    assert whys["2026-03-30"].text == "lacks 1 of 24 hours of 2026-03-30 Europe/Paris in demo.clicks: 23"
    assert whys["2026-03-29"] is None
    backfill = begin(world, "s", concurrency=5, **MARCH)
    view = seen(world, "s", backfill)
    assert (view["total"], view["left_out"], view["dataset"]) == (2, 3, None)
    assert view["incomplete"] == [{"day": day} for day in ("2026-03-27", "2026-03-30", "2026-03-31")]
    work_off(world)
    assert ran(world) == [("2026-03-28", 24), ("2026-03-29", 23)]
    [_, run] = sorted(world.runs("s"), key=lambda run: run.created_at)
    context = world.context(run)
    assert (context["correlation"], context["period"]["label"]) == ({"day": "2026-03-29"}, "2026-03-29")
    assert (context["period"]["end"] - context["period"]["start"]) // 3_600_000 == 23
    assert "missing" not in context and {event["kind"] for event in context["events"]} == {"partition"}
    assert context["logical_start_time"] == max(event["instant"] for event in context["events"])
    assert run.fired_by.text == f"backfill {backfill}"
    assert counts(world, "s", backfill) == {"succeeded": 2}
    assert row_of(world, backfill).state == "DONE"


def test_l23_a_day_of_25_hours_in_utc(world: World) -> None:
    utc = HOURS | {"zone": "UTC"}
    world.deploy(app({}, period=utc))
    upload(world, *hours_of("2026-10-25", zone="UTC"))
    world.deploy(app({"s": per_day()}, period=utc))
    assert planned(world, **between("2026-10-25", "2026-10-26")) == {"2026-10-25": "25 of 25*", "2026-10-26": "0 of 24"}
    begin(world, "s", **between("2026-10-25", "2026-10-25"))
    work_off(world)
    assert ran(world) == [("2026-10-25", 25)]


def test_l23_a_zone_that_skips_a_day(world: World) -> None:
    apia = DAYS | {"zone": "Pacific/Apia"}
    schedule = per_day(period("days")) | {"zone": "Pacific/Apia"}
    days = {"bucket": "lake", "prefix": "raw/days/", "keys": ["day"], "period": apia}
    document = app({"s": schedule})
    world.deploy(document | {"datasets": document["datasets"] | {"days": days}, "schedules": {}})
    upload(world, "day=2011-12-29", "day=2011-12-31", dataset="days")
    world.deploy(document | {"datasets": document["datasets"] | {"days": days}})
    assert planned(world, **between("2011-12-29", "2011-12-31")) == {"2011-12-29": "1 of 1*", "2011-12-31": "1 of 1*"}
    with pytest.raises(SluiceError, match="skips it|clocks of Pacific/Apia show"):
        begin(world, "s", **named("2011-12-30"))


def test_l23_padded_folders_and_labels(world: World) -> None:
    world.deploy(app({}))
    upload(world, *(folder.replace("hour=0", "hour=") for folder in hours_of("2026-03-01")))
    world.deploy(app({"s": per_day()}))
    assert planned(world, **named("2026-3-1")) == {"2026-03-01": "24 of 24*"}
    begin(world, "s", **named("2026-3-1", "2026-03-01"))
    work_off(world)
    assert ran(world) == [("2026-03-01", 24)]
    [run] = world.runs("s")
    assert any(event["path"].endswith("/hour=7/") for event in world.context(run)["events"])


def test_l23_without_bounds_from_the_first_day_to_now(world: World) -> None:
    before(world, "2026-02-26", "2026-02-28")
    days = {"2026-02-26": "24 of 24*", "2026-02-27": "0 of 24", "2026-02-28": "24 of 24*", "2026-03-01": "0 of 24"}
    assert planned(world, partitions={}) == days | {"2026-03-02": "0 of 24"}
    assert next(iter(planned(world, partitions={}, order="newest"))) == "2026-03-02"


def test_l23_a_named_day_runs_with_what_is_there(world: World) -> None:
    world.deploy(app({}))
    upload(world, *hours_of("2026-03-01")[:22])
    world.deploy(app({"s": per_day()}))
    [entry] = preview(world, "s", **named("2026-03-01"))["entries"]
    assert (entry["have"], entry["need"], entry["runs"]) == (22, 24, True)
    assert entry["why"].text.startswith("lacks 2 of 24 hours")
    begin(world, "s", **named("2026-03-01"))
    work_off(world)
    [run] = world.runs("s")
    lacking = [each["partition"]["hour"] for each in world.context(run)["missing"]]
    assert (ran(world), lacking) == ([("2026-03-01", 22)], ["22", "23"])


@pytest.mark.parametrize(("incomplete", "runs"), [({"allow": 1}, [23]), ({"after": "6h"}, [22, 23]), (None, [])])
def test_l23_incomplete_decides_as_for_the_trigger(world: World, incomplete: Any, runs: list[int]) -> None:
    world.deploy(app({}))
    upload(world, *hours_of("2026-02-26")[:22], *hours_of("2026-02-27")[:23])
    world.deploy(app({"s": per_day(**({"incomplete": incomplete} if incomplete else {}))}))
    asked = between("2026-02-25", "2026-02-27")
    if not runs:
        with pytest.raises(SluiceError, match="3 missing, 3 of them incomplete") as refused:
            begin(world, "s", **asked)
        assert "name a period" in str(refused.value.hint)
        return
    begin(world, "s", **asked)
    work_off(world)
    assert [count for _, count in ran(world)] == runs


def test_l23_only_missing_or_failed_days(world: World) -> None:
    before(world, "2026-02-26", "2026-02-27", "2026-02-28", schedule=per_day(None, concurrency(1)))
    begin(world, "s", **named("2026-02-26"))
    work_off(world)
    begin(world, "s", "b2", **named("2026-02-27"))
    work_off(world, "FAILED")
    asked = between("2026-02-26", "2026-02-28")
    states = {each["entry"]["day"][-2:]: each["state"] for each in preview(world, "s", **asked)["entries"]}
    assert states == {"26": "succeeded", "27": "failed", "28": "missing"}
    for only, day in (("missing", "2026-02-28"), ("failed", "2026-02-27")):
        assert [each for each, text in planned(world, only=only, **asked).items() if text.endswith("*")] == [day]
        world.clock.pass_by("1m")
        begin(world, "s", only, only=only, **asked)
        work_off(world)
        assert ran(world)[-1] == (day, 24)
    with pytest.raises(SluiceError, match="3 succeeded"):
        begin(world, "s", "b5", only="missing", **asked)


def test_l23_each_region_has_its_days(world: World) -> None:
    fields = {"keys": ["region", "dt", "hour"]}
    world.deploy(app({}, **fields))
    upload(world, *(f"region=eu/{folder}" for folder in hours_of("2026-03-01")), "region=us/dt=2026-03-01/hour=00")
    world.deploy(app({"s": per_day(by=["region"])}, **fields))
    assert planned(world, **between("2026-03-01", "2026-03-01")) == {
        "2026-03-01/eu": "24 of 24*",
        "2026-03-01/us": "1 of 24",
    }
    begin(world, "s", **between("2026-03-01", "2026-03-01"))
    begin(world, "s", "b2", partitions={"values": [{"day": "2026-03-01", "region": "us"}]})
    work_off(world)
    assert sorted(ran(world)) == [("2026-03-01/eu", 24), ("2026-03-01/us", 1)]


def test_l23_listed_values_count_for_each_day(world: World) -> None:
    world.deploy(app({}, **REGIONS))
    upload(world, *(f"region={region}/day=2026-02-28" for region in ("us", "eu", "apac")), "region=us/day=2026-03-01")
    world.deploy(app({"s": per_day()}, **REGIONS))
    days = {"2026-02-28": "3 of 3*", "2026-03-01": "1 of 3"}
    assert planned(world, **between("2026-02-28", "2026-03-01")) == days


@pytest.mark.parametrize("of", [{"from": "-6d", "to": "period"}, {"periods": 7, "ending": "period"}])
def test_l23_windows_share_partitions(world: World, of: dict[str, Any]) -> None:
    world.deploy(app({}))
    upload(world, *days_of("2026-02-20", 9), dataset="sales")
    world.deploy(app({"s": per_day(window(**of))}))
    asked = between("2026-02-25", "2026-03-01")
    runs = {"2026-02-26": "7 of 7*", "2026-02-27": "7 of 7*", "2026-02-28": "7 of 7*"}
    assert planned(world, **asked) == {"2026-02-25": "6 of 7"} | runs | {"2026-03-01": "6 of 7"}
    begin(world, "s", concurrency=3, **asked)
    work_off(world)
    assert ran(world) == [(f"2026-02-{day}", 7) for day in (26, 27, 28)]


def test_l23_one_partition_of_many_jobs(world: World) -> None:
    """The model of a week runs again for each day of the next one, also for those to come."""
    document = fan_out.app(fan_out.per_day(fan_out.last("before")))
    world.deploy(document | {"schedules": {}})
    fan_out.upload(world, "week=2026-W09")
    world.deploy(document)
    asked = between("2026-03-01", "2026-03-09")
    runs = {f"2026-03-0{day}": "1 of 1*" for day in range(2, 9)}
    assert planned(world, **asked) == {"2026-03-01": "0 of 1"} | runs | {"2026-03-09": "0 of 1"}
    begin(world, "s", concurrency=10, **asked)
    work_off(world)
    assert ran(world) == [(day, 1) for day in runs]


def test_l23_two_datasets_of_a_day_are_counted_together(world: World) -> None:
    world.deploy(app({}))
    upload(world, "day=2026-02-01", dataset="sales")
    for trees, runs in ((all_of, ""), (any_of, "*")):
        world.deploy(app({"s": per_day(trees(period(), period("sales")))}))
        assert planned(world, **named("2026-02-01")) == {"2026-02-01": "1 of 25*"}
        assert planned(world, **between("2026-02-01", "2026-02-01")) == {"2026-02-01": f"1 of 25{runs}"}


# -- beside other work -------------------------------------------------------------------------------------------------


def test_l23_the_own_job_of_a_day_is_left_alone(world: World) -> None:
    """Also one that waits for its last hour: a period has one job at a time."""
    world.deploy(app({"s": per_day()}))
    upload(world, *hours_of("2026-03-01")[:-1])
    with pytest.raises(SluiceError, match="an entry that is not in flight, got '1 waiting'"):
        begin(world, "s", **named("2026-03-01"))
    upload(world, hours_of("2026-03-01")[-1])
    with pytest.raises(SluiceError, match="got '1 running'"):
        begin(world, "s", **named("2026-03-01"))
    work_off(world)
    begin(world, "s", **named("2026-03-01"))
    work_off(world)
    assert ran(world) == [("2026-03-01", 24)] * 2


def test_l23_an_own_job_that_came_meanwhile_runs_the_day(world: World) -> None:
    """The backfill has the second day in its plan. Before its turn an hour comes, which begins the day's own job."""
    world.deploy(app({}))
    upload(world, *hours_of("2026-02-27"), *hours_of("2026-02-28")[:-1])
    world.deploy(app({"s": per_day(incomplete={"allow": 1})}))
    backfill = begin(world, "s", **between("2026-02-27", "2026-02-28"))
    world.settle()
    upload(world, hours_of("2026-02-28")[-1])
    assert len(world.runs("s")) == 2  # the first day by the backfill, the second by its own job
    first = next(iter(world.targets.emr.runs.values()))
    world.emr_says(first.id, "SUCCESS")
    world.settle()
    work_off(world)
    assert ran(world) == [("2026-02-27", 24), ("2026-02-28", 24)]
    assert counts(world, "s", backfill) == {"succeeded": 1, "cancelled": 1}
    own = next(run.run_id for run in world.runs("s") if run.backfill is None)
    assert reasons(world, "s") == [f"DROPPED: run {own} of 2026-02-28 is under way"]


def test_l23_the_own_job_waits_for_a_backfill_of_its_day(world: World) -> None:
    world.deploy(app({}))
    upload(world, *hours_of("2026-02-28")[:-1])
    world.deploy(app({"s": per_day()}))
    backfill = begin(world, "s", **named("2026-02-28"))
    world.settle()
    upload(world, hours_of("2026-02-28")[-1])
    [run] = world.runs("s")
    assert run.backfill == backfill
    assert why(world, "s")["why"] == f"waits for run {run.run_id} of backfill {backfill}, which runs 2026-02-28"
    world.finish()
    world.settle()
    assert sorted(ran(world)) == [("2026-02-28", 23), ("2026-02-28", 24)]
    work_off(world)
    assert (world.jobs("s"), counts(world, "s", backfill)) == ([], {"succeeded": 1})


def test_l23_the_days_of_another_backfill_are_not_run_twice(world: World) -> None:
    before(world, "2026-02-26", "2026-02-27", "2026-02-28")
    first = begin(world, "s", **between("2026-02-26", "2026-02-27"))
    second = begin(world, "s", "b2", concurrency=3, **between("2026-02-26", "2026-02-28"))
    assert seen(world, "s", second)["left_alone"] == 2
    work_off(world)
    assert sorted(ran(world)) == [("2026-02-26", 24), ("2026-02-27", 24), ("2026-02-28", 24)]
    assert (counts(world, "s", first), counts(world, "s", second)) == ({"succeeded": 2}, {"succeeded": 1})


# -- its life ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [False, True])
def test_l23_a_cancelled_backfill_of_days(world: World, runs: bool) -> None:
    before(world, "2026-02-26", "2026-02-27", "2026-02-28")
    backfill = begin(world, "s", concurrency=2, **between("2026-02-26", "2026-02-28"))
    world.settle()
    stop(world, "s", backfill, runs)
    work_off(world, "CANCELLED" if runs else "SUCCESS")
    assert counts(world, "s", backfill) == ({"cancelled": 3} if runs else {"succeeded": 2, "cancelled": 1})


def test_l23_a_paused_schedule_runs_its_backfill_of_days(world: World) -> None:
    before(world, "2026-02-27", "2026-02-28")
    world.pause("s")
    begin(world, "s", **between("2026-02-27", "2026-02-28"))
    world.resume("s")
    world.disable("s")
    work_off(world)
    assert ran(world) == [("2026-02-27", 24), ("2026-02-28", 24)]


def test_l23_an_update_of_the_schedule_ends_a_backfill_of_days(world: World) -> None:
    before(world, "2026-02-27", "2026-02-28")
    backfill = begin(world, "s", **between("2026-02-27", "2026-02-28"))
    world.settle()
    world.put("s", per_day() | {"description": "x"})
    world.put("s", per_day() | {"description": "x", "zone": "Europe/Berlin", "per": {"each": "day", "zone": PARIS}})
    work_off(world)
    assert (row_of(world, backfill).state, ran(world)) == ("ENDED", [("2026-02-27", 24)])


def test_l23_a_dataset_that_changes_ends_the_day_on_record(world: World) -> None:
    """Its periods no longer say which partitions a day has."""
    before(world, "2026-02-27", "2026-02-28", schedule=per_day(None, concurrency(1)))
    backfill = begin(world, "s", **between("2026-02-27", "2026-02-28"))
    world.settle()
    changed = app({})["datasets"]["clicks"] | {"period": HOURS | {"zone": "UTC"}, "keys": ["region", "dt", "hour"]}
    store.put(world.ports, "dataset", "demo.clicks", changed, "tester")
    work_off(world)
    assert counts(world, "s", backfill) == {"succeeded": 1, "cancelled": 1}
    assert any("its partitions are not determined" in text for text in reasons(world, "s"))


def test_l23_a_retry_and_a_rerun_of_a_day_have_its_parts(world: World) -> None:
    world.deploy(app({}))
    upload(world, *hours_of("2026-02-28"))
    document = app({"s": per_day()})
    document["workflows"]["clean"] = {"target": EMR, "retries": {"attempts": 2, "delay": "10s"}}
    world.deploy(document)
    begin(world, "s", **named("2026-02-28"))
    work_off(world, "FAILED")
    doze(world, "11s")
    work_off(world)
    attempts = world.ports.runs.attempts(world.runs("s")[0].run_id)
    assert [len(world.context(run)["events"]) for run in attempts] == [24, 24]
    assert world.context(attempts[-1])["period"]["label"] == "2026-02-28"


def test_l23_a_backfill_of_days_moves_to_another_installation(world: World) -> None:
    before(world, "2026-02-26", "2026-02-27", "2026-02-28")
    backfill = begin(world, "s", **between("2026-02-26", "2026-02-28"))
    world.settle()
    world.finish()
    archive = archives.exported(world)
    archives.emptied(world.tables)
    archives.imported(world, archive)
    doze(world, "1m")
    work_off(world)
    assert ran(world) == [("2026-02-26", 24), ("2026-02-27", 24), ("2026-02-28", 24)]
    assert (row_of(world, backfill).state, counts(world, "s", backfill)) == ("DONE", {"succeeded": 3})


def test_l23_days_of_a_dataset_of_another_namespace() -> None:
    """The grant ends while the backfill runs: the next day waits for it."""
    world = World(authorization="enforce")
    owned = app({}) | {"schedules": {}}
    world.deploy(owned, "lake", "core")
    share: dict[str, Any] = {"grants": [{"to": "demo", "datasets": ["clicks"]}]}
    world.grant("lake", share)
    for day in ("2026-02-27", "2026-02-28"):
        upload(world, *hours_of(day))
    own = app({"s": per_day(period("lake.clicks"))})
    world.deploy(own | {"datasets": {}})
    assert planned(world, **between("2026-02-27", "2026-02-28")) == {f"2026-02-{day}": "24 of 24*" for day in (27, 28)}
    begin(world, "s", **between("2026-02-27", "2026-02-28"))
    world.settle()
    world.grant("lake", {"grants": []})
    work_off(world)
    assert ran(world) == [("2026-02-27", 24)]
    assert "grant" in why(world, "s")["why"]
    with pytest.raises(SluiceError, match="an existing dataset"):
        preview(world, "s", **between("2026-02-27", "2026-02-28"))
    world.grant("lake", share)
    work_off(world)
    assert ran(world) == [("2026-02-27", 24), ("2026-02-28", 24)]


def test_l22_an_hour_names_the_backfill_of_its_day(world: World) -> None:
    before(world, "2026-02-27", "2026-02-28")
    begin(world, "s", **between("2026-02-27", "2026-02-28"))
    work_off(world)
    [run] = [run for run in world.runs("s") if run.correlation == {"day": "2026-02-28"}]
    schedule = lookup.existing(world.ports, full("s"))[1]
    dataset = period_jobs.datasets_of(world.ports, schedule)["demo.clicks"]
    found = partitions.one(world.ports, "demo.clicks", dataset, {"dt": "2026-02-28", "hour": "05"})
    assert [each["run_id"] for each in found["runs"]] == [run.run_id]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "field", "expected"),
    [
        ({"from_": "2026-02-01T00:00:00Z", "to": "2026-03-01T00:00:00Z"}, "from", "periods, because of per: day"),
        (between("2026-02-28", "2026-02-27"), "partitions.to", "an end that is not before the start"),
        (between("2026-02-30", "2026-03-01"), "partitions.from", "a time of the calendar"),
        (between("2026-02-01", "2026-02-02", "dt"), "partitions.from", "exactly the key day"),
        (named("2026-02-01", key="dt"), "partitions.values.0", "exactly the keys day"),
        ({"partitions": {"dataset": "clicks"}}, "partitions.dataset", "no dataset for a schedule with per"),
        (between("1990-01-01", "2026-01-01"), "partitions.to", "at most 10000 runs"),
        (between("2019-01-01", "2026-01-01"), "partitions", "at most 50,000 partitions"),
    ],
)
def test_l23_periods_that_are_refused(world: World, asked: dict[str, Any], field: str, expected: str) -> None:
    world.deploy(app({"s": per_day()}))
    with pytest.raises(SluiceError, match=expected) as refused:
        begin(world, "s", **asked)
    assert refused.value.field == field
