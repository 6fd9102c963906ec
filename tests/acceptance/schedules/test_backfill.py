"""Backfills: past entries run as they would have run, a few at a time (L12)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import iso, parse_instant
from chalicelib.core.rows.schedule import ScheduleState
from tests.acceptance.words import (
    at_least,
    concurrency,
    day,
    days,
    delay,
    doze,
    fresh,
    on,
    partition,
    rate,
    reasons,
    since_last_run,
    window,
)
from tests.acceptance.words import time as at
from tests.support.backfills import about, begin, counts, living, preview, ran, seen, stop
from tests.support.world import EMR, World, flights

JANUARY = {"from_": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}


def nightly(world: World, *constraints: Any, **fields: Any) -> None:
    world.deploy(flights({"nightly": on(at("0 2 * * *"), "clean", *constraints, **fields)}))


def test_l12_a_month_of_nights_runs_newest_first_three_at_a_time(world: World) -> None:
    nightly(world)
    backfill = begin(world, "nightly", **JANUARY, concurrency=3, order="newest")
    world.settle()
    assert living(world, "nightly") == ["2026-01-31", "2026-01-30", "2026-01-29"]
    assert len(world.jobs("nightly")) == 0, "only what may be under way has a job"

    while world.finish():
        world.clock.pass_by("1s")
        world.settle()
        assert len(living(world, "nightly")) <= 3

    assert [about(run) for run in ran(world, "nightly")] == [f"2026-01-{number:02d}" for number in range(31, 0, -1)]
    assert counts(world, "nightly", backfill) == {"succeeded": 31}
    assert seen(world, "nightly", backfill)["state"] == "DONE"


def test_l12_a_backfill_run_has_the_instant_at_which_it_was_due(world: World) -> None:
    nightly(world, properties={"mode": "daily", "deep": False})
    backfill = begin(
        world, "nightly", from_="2026-01-05T00:00:00Z", to="2026-01-06T00:00:00Z", properties={"deep": True}
    )
    world.settle()
    [run] = world.runs("nightly")
    answer = world.context(run)
    assert iso(answer["logical_start_time"]) == "2026-01-05T02:00:00.000Z"
    assert [(event["kind"], iso(event["instant"])) for event in answer["events"]] == [
        ("time", "2026-01-05T02:00:00.000Z")
    ]
    assert answer["properties"] == {"mode": "daily", "deep": True}
    assert (run.kind, run.fired_by.text, run.nominal_at) == (
        "backfill",
        f"backfill {backfill}",
        parse_instant("2026-01-05T02:00:00Z"),
    )


def test_l12_registered_partitions_run_with_keys_and_correlation(world: World) -> None:
    for number in (9, 10, 11, 12):
        world.deploy(flights({}))
        world.upload(day(number))
    world.deploy(flights({"clean": on(partition(), by=["day"])}))
    begin(world, "clean", partitions={"from": {"year": "2013", "month": "01", "day": "10"}}, concurrency=2)
    world.settle()
    assert living(world, "clean") == ["2013/01/10", "2013/01/11"]
    run = ran(world, "clean")[0]
    [event] = world.context(run)["events"]
    assert (event["partition"], event["path"]) == (
        {"year": "2013", "month": "01", "day": "10"},
        "s3://lake-bucket/raw/flights/year=2013/month=01/day=10/",
    )
    assert run.correlation == {"day": "10"}
    world.finish()
    world.settle()
    assert [about(run) for run in ran(world, "clean")] == ["2013/01/10", "2013/01/11", "2013/01/12"]
    assert days(world, ran(world, "clean")[-1]) == ["12"]


def test_l12_unregistered_partitions_may_be_named(world: World) -> None:
    world.deploy(flights({"clean": on(partition(count=7))}))
    values = [{"year": "2012", "month": "12", "day": str(number)} for number in (31, 30)]
    backfill = begin(world, "clean", partitions={"values": values})
    world.settle()
    world.finish()
    world.settle()
    assert [about(run) for run in ran(world, "clean")] == ["2012/12/30", "2012/12/31"]
    assert counts(world, "clean", backfill) == {"succeeded": 1, "running": 1}


def test_l12_a_dry_run_shows_what_would_run_and_stores_nothing(world: World) -> None:
    nightly(world)
    answer = preview(world, "nightly", **JANUARY, order="newest")
    assert (answer["total"], answer["first"][0], answer["last"][-1]) == (
        31,
        "2026-01-31T02:00:00.000Z",
        "2026-01-01T02:00:00.000Z",
    )
    world.settle()
    assert world.ports.jobs.backfills("demo.flights.nightly") == ()
    assert world.runs("nightly") == []


def test_l12_progress_shows_the_state_of_a_backfill(world: World) -> None:
    nightly(world, concurrency(2))
    backfill = begin(world, "nightly", **JANUARY, concurrency=4)
    world.settle()
    view = seen(world, "nightly", backfill)
    assert (view["total"], view["launched"], view["running"], view["waiting"]) == (31, 2, 2, 29)
    assert view["position"] == "2026-01-05T02:00:00.000Z"
    assert [each["state"] for each in view["active"]] == ["running", "running", "waiting", "waiting"]
    world.emr_says("jr00001", "SUCCESS")
    world.emr_says("jr00002", "FAILED")
    world.settle()
    assert counts(world, "nightly", backfill) == {"succeeded": 1, "failed": 1, "running": 2, "waiting": 27}


def test_l12_after_a_cancel_nothing_starts_and_active_runs_go_on(world: World) -> None:
    nightly(world, concurrency(1))
    backfill = begin(world, "nightly", **JANUARY, concurrency=3)
    world.settle()
    view = stop(world, "nightly", backfill)
    assert (view["state"], view["running"], view["cancelled"]) == ("CANCELLED", 1, 30)
    assert reasons(world, "nightly") == [f"DROPPED: backfill {backfill} was cancelled by tester"] * 2
    world.finish("FAILED")
    world.pass_by("5m")
    assert len(world.targets.emr.runs) == 1
    assert counts(world, "nightly", backfill) == {"failed": 1, "cancelled": 30}


def test_l12_a_cancel_may_cancel_the_runs_too(world: World) -> None:
    nightly(world)
    backfill = begin(world, "nightly", **JANUARY, concurrency=2)
    world.settle()
    stop(world, "nightly", backfill, runs=True)
    world.settle()
    world.pass_by("11m")
    assert counts(world, "nightly", backfill) == {"cancelled": 31}
    assert [run.state for run in ran(world, "nightly")] == ["CANCELLED", "CANCELLED"]


def test_l12_failed_attempts_are_retried_before_the_next_entry(world: World) -> None:
    retried = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}
    world.deploy(flights({"nightly": on(at("0 2 * * *"))}, clean=retried))
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-03T00:00:00Z")
    world.settle()
    world.finish("FAILED")
    world.settle()
    assert counts(world, "nightly", backfill) == {"running": 1, "waiting": 1}
    world.pass_by("31s")
    world.finish()
    world.settle()
    assert [(about(run), run.attempt) for run in ran(world, "nightly")] == [
        ("2026-01-01", 1),
        ("2026-01-01", 2),
        ("2026-01-02", 1),
    ]


def test_l12_constraints_on_the_present_do_not_delay_a_backfill(world: World) -> None:
    """Noon is outside the window, and each of the other constraints would delay the second run for hours."""
    stale = fresh("join", "1d")
    nightly(world, window("01:00", "02:00"), delay("2h"), rate(1, "day"), since_last_run("1d"), stale)
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-04T00:00:00Z")
    world.settle()
    for _ in range(3):
        world.finish()
        world.settle()
    assert counts(world, "nightly", backfill) == {"succeeded": 3}


def test_l12_a_limit_delays_a_backfill_but_aborts_other_jobs(world: World) -> None:
    nightly(world, concurrency(1, "abort"))
    world.run_now("nightly")
    world.settle()
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-03T00:00:00Z")
    world.settle()
    assert counts(world, "nightly", backfill) == {"waiting": 2}
    doze(world, "2d")
    assert counts(world, "nightly", backfill) == {"waiting": 2}, "no timeout ends it"
    world.finish()
    world.settle()
    assert counts(world, "nightly", backfill) == {"running": 1, "waiting": 1}


@pytest.mark.parametrize("mode", ["disabled", "hold", "backlog", "drain"])
def test_l12_a_backfill_goes_on_in_any_mode_of_its_schedule(world: World, mode: str) -> None:
    nightly(world)
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-04T00:00:00Z")
    world.settle()
    if mode == "disabled":
        world.disable("nightly")
    else:
        world.pause("nightly", mode)
    for _ in range(3):
        world.finish()
        world.settle()
    assert counts(world, "nightly", backfill) == {"succeeded": 3}


def test_l12_enabling_a_schedule_does_not_affect_its_backfill(world: World) -> None:
    nightly(world, concurrency(1), enabled=False)
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-05T00:00:00Z", concurrency=2)
    world.settle()
    world.enable("nightly")
    world.settle()
    while world.finish():
        world.settle()
        world.clock.pass_by("1s")
    assert counts(world, "nightly", backfill) == {"succeeded": 4}
    assert [about(run) for run in ran(world, "nightly")] == [f"2026-01-0{number}" for number in (1, 2, 3, 4)]


def test_l12_c13_delete_or_replace_ends_backfills_on_record(world: World) -> None:
    world.deploy(flights({name: on(at("0 2 * * *"), workflow) for name, workflow in (("a", "clean"), ("b", "join"))}))
    ids = {name: begin(world, name, **JANUARY) for name in ("a", "b")}
    world.settle()
    world.delete("a")
    world.put("b", on(at("0 3 * * *"), "join"))
    world.settle()
    world.finish()
    world.pass_by("5m")
    assert [seen(world, name, ids[name])["state"] for name in ("a", "b")] == ["ENDED", "ENDED"]
    assert "deleted" in seen(world, "a", ids["a"])["reason"]
    assert "replaced" in seen(world, "b", ids["b"])["reason"]
    assert counts(world, "a", ids["a"]) == {"succeeded": 1, "cancelled": 30}
    assert len(world.targets.emr.runs) == 2


def test_l12_the_same_request_is_the_same_backfill(world: World) -> None:
    nightly(world)
    first, again = (begin(world, "nightly", request="r", **JANUARY) for _ in range(2))
    december = {"from_": "2025-12-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    other = begin(world, "nightly", request="s", **december)
    world.settle()
    assert first == again
    assert other != first
    assert len(world.runs("nightly")) == 2


def test_l12_l19_failures_in_a_backfill_do_not_hold_the_schedule(world: World) -> None:
    nightly(world, pause_after_failures=1)
    backfill = begin(world, "nightly", from_="2026-01-01T00:00:00Z", to="2026-01-03T00:00:00Z")
    world.settle()
    for _ in range(2):
        world.finish("FAILED")
        world.settle()
    assert counts(world, "nightly", backfill) == {"failed": 2}
    schedule_state = world.ports.rows.get(ScheduleState, "demo.flights.nightly")
    assert schedule_state is not None
    assert schedule_state.mode == "enabled"


@pytest.mark.parametrize(
    ("trigger", "asked", "field", "expected"),
    [
        (at("@daily"), {"from_": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "to", "an instant after"),
        (at("@daily"), {"from_": "2026-02-01T00:00:00Z", "to": "2030-01-01T00:00:00Z"}, "to", "an instant in the past"),
        (at("@yearly"), {"from_": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"}, "to", "would have fired"),
        (at("@every 1s"), JANUARY, "to", "at most 10000 runs"),
        (at("@daily"), {"partitions": {}}, "partitions", "waits for partitions"),
        (partition(), JANUARY, "from", "a schedule with a time"),
        (partition(), {"partitions": {}}, "partitions", "a range with a partition"),
        (partition(), {"partitions": {"dataset": "weather"}}, "partitions.dataset", "demo.flights"),
        (partition(), {"partitions": {"from": {"day": "1"}}}, "partitions.from", "the first of the keys"),
        (partition(), {"partitions": {"values": [{"day": "1"}]}}, "partitions.values.0", "exactly the keys"),
        (
            at_least(1, partition(), partition("weather")),
            {"partitions": {}},
            "partitions.dataset",
            "one of the datasets",
        ),
    ],
)
def test_l12_an_invalid_backfill_is_refused_with_the_reason(
    world: World, trigger: Any, asked: Any, field: str, expected: str
) -> None:
    world.deploy(flights({"x": on(trigger)}))
    with pytest.raises(SluiceError, match=expected) as refused:
        begin(world, "x", **asked)
    assert (refused.value.code, refused.value.field) == ("invalid", field)
