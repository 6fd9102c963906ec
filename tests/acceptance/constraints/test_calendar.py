"""A calendar (C17): jobs launch on allowed days only. Every world begins on Monday, 2 March 2026, at noon in UTC."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chalicelib.core.errors import from_validation
from chalicelib.core.instants import DAY, HOUR, MINUTE, parse_instant
from tests.acceptance.words import (
    calendar,
    concurrency,
    day,
    days,
    doze,
    doze_until,
    kinds,
    on,
    partition,
    reasons,
    started_at,
    states,
    time,
    to_queue,
    why,
    window,
)
from tests.support.backfills import begin, counts
from tests.support.clock import NOON
from tests.support.world import World, flights

UNLIMITED = {"used": None, "max": None, "held_by": None}  # of a constraint that is no limit

WORKING = ["mon", "tue", "wed", "thu", "fri"]


def test_c17_a_job_waits_for_the_next_allowed_day(world: World) -> None:
    """Saturday's data waits for Tuesday: the calendar excludes that Monday by its date."""
    rule = calendar(only=WORKING, excluding=["2026-03-09"], zone="Europe/Paris")
    world.deploy(flights({"daily": on(partition(), "clean", rule, timeout={"after": "4d"})}))
    world.clock.wait_until(parse_instant("2026-03-07T09:00:00Z"))
    world.upload(day(1))
    world.settle()
    answer, opens = why(world, "daily"), "2026-03-09T23:00:00.000Z"
    assert answer["wakes"] == f"its time at {opens}"
    assert answer["constraints"] == [
        {
            "type": "calendar",
            "met": False,
            "why": f"only on mon to fri, not on 2026-03-09 in Europe/Paris, else wait: not before {opens}",
            "until": opens,
            **UNLIMITED,
        }
    ]
    doze(world, "1d")
    world.upload(day(2))
    world.settle()
    doze_until(world, parse_instant("2026-03-09T23:00:00Z"))
    assert started_at(world, "daily") == [opens]
    assert days(world, world.runs("daily")[0]) == ["1", "2"], "what came while it waited is taken along"


def test_c17_a_fire_of_another_day_is_aborted_on_record(world: World) -> None:
    rule = calendar(excluding=["tue"], on_unmet="abort")
    world.deploy(flights({"nightly": on(time("30 0 * * *"), "clean", rule)}))
    for number in (1, 2):
        doze_until(world, NOON + number * DAY - 11 * HOUR - 29 * MINUTE)
    assert started_at(world, "nightly") == ["2026-03-04T00:30:00.000Z"]
    assert reasons(world, "nightly") == ["ABORTED: not on tue in UTC, else abort: not before 2026-03-04T00:00:00.000Z"]


def test_c17_fires_of_closed_days_become_one_job(world: World) -> None:
    document = on(time("0 9 * * *"), "clean", calendar(only=["thu"]), timeout="never")
    world.deploy(flights({"daily": document}))
    for number in (1, 2):
        doze_until(world, NOON + number * DAY - 3 * HOUR + MINUTE)
    doze_until(world, parse_instant("2026-03-05T00:00:00Z"))
    assert started_at(world, "daily") == ["2026-03-05T00:00:00.000Z"]
    assert kinds(world, "daily") == ["COALESCED"]
    doze_until(world, parse_instant("2026-03-05T09:00:30Z"))
    assert started_at(world, "daily")[1:] == ["2026-03-05T09:00:00.000Z"]


def test_c17_a_prepared_fire_is_judged_on_its_own_day(world: World) -> None:
    """Fires are prepared, and decided together, before they are due. The fire of midnight belongs to the new day."""
    fires = time("59 59 23 * * *"), time("0 0 0 * * *")
    rules = {"constraints": [calendar(only=["tue"], on_unmet="abort")]}
    world.deploy(flights({"last": to_queue(fires[0], **rules), "first": to_queue(fires[1], **rules)}))
    for number in (0, 1):
        doze_until(world, NOON + number * DAY + 12 * HOUR + MINUTE)
    assert [run.due_at for run in world.runs("first")] == [parse_instant("2026-03-03T00:00:00Z")]
    assert [run.due_at for run in world.runs("last")] == [parse_instant("2026-03-03T23:59:59Z")]
    assert [record.kind for name in ("first", "last") for record in world.records(name)] == ["ABORTED", "ABORTED"]


def test_c17_a_night_counts_by_the_day_on_which_it_launches(world: World) -> None:
    """The window of Tuesday evening ends on Wednesday, which the calendar allows. Tuesday itself is not allowed."""
    rules = window("22:00", "06:00"), calendar(only=["wed"])
    world.deploy(flights({"daily": on(partition(), "clean", *rules, timeout="never")}))
    world.upload(day(1))
    doze_until(world, parse_instant("2026-03-04T00:00:00Z"))
    assert started_at(world, "daily") == ["2026-03-04T00:00:00.000Z"]


def test_c17_the_timeout_ends_a_wait_that_is_too_long(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", calendar(only=["thu"]))}))
    world.upload(day(1))
    world.settle()
    assert why(world, "daily")["wakes"] == "its timeout at 2026-03-03T12:00:00.000Z"
    doze(world, "1d")
    assert reasons(world, "daily") == [
        "ABORTED: not launched within its timeout of 1d: only on thu in UTC, else wait: "
        "not before 2026-03-05T00:00:00.000Z"
    ]


def test_c17_without_a_day_left_why_says_what_to_do(world: World) -> None:
    """Nothing is lost: an update that carries gives the waiting job the days of another year."""
    document = on(partition(), "clean", calendar(only=["2025-12-31"]), timeout="never")
    world.deploy(flights({"daily": document}))
    world.upload(day(1))
    world.settle()
    answer = why(world, "daily")
    assert answer["why"] == (
        "only on 2025-12-31 in UTC, else wait: no allowed day is left; replace the days of the calendar, or remove it"
    )
    assert world.jobs("daily")[0].wake_at is None

    world.put("daily", document | {"constraints": [calendar(only=["2026-03-02"])], "on_update": "carry"})
    world.settle()
    assert [days(world, run) for run in world.runs("daily")] == [["1"]]


def test_c17_contradictory_days_are_refused(world: World) -> None:
    world.deploy(flights({}))
    with pytest.raises(ValidationError) as refused:
        world.put("daily", on(partition(), "clean", calendar(only=["sat"], excluding=["sat", "sun"])))
    error = from_validation(refused.value)
    assert (error.field, error.hint) == (
        "constraints.0.excluding",
        "remove from excluding a day on which jobs may start",
    )


def test_c17_run_now_waits_and_a_backfill_does_not(world: World) -> None:
    rule = calendar(only=["thu"])
    world.deploy(flights({"nightly": on(time("0 2 * * *"), "clean", rule, timeout="never")}))
    world.run_now("nightly")
    world.settle()
    assert states(world, "nightly") == []
    backfill = begin(world, "nightly", from_="2026-02-27T00:00:00Z", to="2026-02-28T00:00:00Z")
    world.settle()
    world.finish()
    world.settle()
    assert counts(world, "nightly", backfill) == {"succeeded": 1}
    assert started_at(world, "nightly") == ["2026-03-02T12:00:00.000Z"]


def test_c17_a_job_leaves_its_queue_when_its_day_is_over(world: World) -> None:
    """It queues for a slot on Monday. The slot is free on Tuesday, which the calendar excludes."""
    rules = concurrency(1), calendar(excluding=["tue"])
    world.deploy(flights({"daily": on(partition(), "clean", *rules, timeout="never")}))
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    assert [job.state for job in world.jobs("daily")] == ["PENDING_LAUNCH"]
    doze(world, "13h")
    world.finish()
    world.settle()
    assert (len(world.runs("daily")), [job.state for job in world.jobs("daily")]) == (1, ["PENDING_CONSTRAINTS"])
    doze_until(world, parse_instant("2026-03-04T00:00:00Z"))
    assert started_at(world, "daily")[1:] == ["2026-03-04T00:00:00.000Z"]
