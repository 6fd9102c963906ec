"""Pairs of invocations that meet at a constraint, a leaf, a limit or a timer, and the expected result."""

from __future__ import annotations

from tests.faults.meetings.situations_people import (
    BY_DAY_ONE,
    NEW,
    Crossing,
    check,
    either,
    emitting,
    ends,
    hold,
    passes,
    put,
    resume,
    serving,
    settle,
    succeeded,
    then,
    unless_complete,
    uploads,
)  # fmt: skip
from tests.faults.scenarios_basic import CLEAN, PARTITION
from tests.faults.scenarios_gathered import BOTH, QUIET, by_ten_past, on
from tests.faults.scenarios_limited import FRESH, GAP, GROUP, RATE, ROOM, limited
from tests.support.schedules import at, partitions
from tests.support.world import World, day


def started_before(world: World) -> None:
    """The limit has a history, so two starts no longer conflict at its first entry."""
    world.run_now("daily")
    world.settle()
    world.finish()
    world.clock.pass_by("11m")


RULES_CROSS = {
    "a check, and the upstream's success": Crossing(
        {"up": CLEAN, "daily": limited(FRESH, workflow="join", dataset="weather")},
        then(uploads(1), settle, lambda world: world.upload(day(1, "weather", "x.csv"))),
        check("daily"),
        ends(),
        succeeded(up=1, daily=1),
    ),
    "a check of a fire, and the upstream's success": Crossing(
        {"up": CLEAN, "daily": at("1 12 2 3 *", "join", constraints=[FRESH])},
        then(uploads(1), settle, emitting, passes("61s")),
        check("daily"),
        ends(),
        succeeded(up=1, daily=1),
    ),
    "a check of what has become quiet, and the upstream's success": Crossing(
        {"up": CLEAN, "daily": on(QUIET, "join", constraints=[FRESH])},
        then(uploads(1), settle, uploads(2), settle, passes("6m")),
        check("daily"),
        ends(),
        succeeded(up=2, daily=1),
    ),
    "a check of what has become quiet, and one more event": Crossing(
        {"daily": on(QUIET)}, then(uploads(1, 2), passes("6m")), check("daily"), uploads(3), succeeded(daily=1)
    ),
    "a check of what has grown old, and one more event": Crossing(
        {"daily": on(BOTH)},
        then(uploads(1), passes("11m")),
        check("daily"),
        lambda world: world.upload(day(1, "weather", "x.csv")),
        succeeded(daily=1),
        uploads(2),
    ),
    "an absence that is due, and the feed": Crossing(
        {"daily": on(by_ten_past(PARTITION))},
        then(passes("9m"), emitting, passes("61s")),
        check("daily"),
        uploads(1),
        either(daily=(0, 1)),
    ),
    "an absence that has fired, and the feed": Crossing(
        {"daily": on(by_ten_past(PARTITION))},
        then(passes("9m"), emitting, passes("61s"), check("daily")),
        check("daily"),
        uploads(1),
        either(daily=(0, 1)),
    ),
    "two checks of the same fire of a span": Crossing(
        {"daily": on({"type": "elapsed", "after": "10h"}), "other": BY_DAY_ONE},
        then(passes("9h59m"), emitting, uploads(1), settle, passes("61s")),
        check("daily"),
        check("daily"),
        succeeded(daily=0, other=1),
    ),
    "a span that is over, and a start": Crossing(
        {"daily": on({"type": "elapsed", "after": "10h"}), "other": BY_DAY_ONE},
        then(passes("9h59m"), emitting, passes("61s"), uploads(1)),
        check("daily"),
        check("other"),
        either(daily=(0, 1), other=(1,)),
    ),
    "two jobs at one rate": Crossing(
        {"daily": limited(RATE), "other": limited(RATE)},
        then(started_before, uploads(1)),
        check("daily"),
        check("other"),
        succeeded(daily=2, other=1),
    ),
    "two jobs that keep a gap": Crossing(
        {"daily": limited(GAP), "other": limited(GAP)},
        then(started_before, uploads(1)),
        check("daily"),
        check("other"),
        succeeded(daily=2, other=1),
    ),
    "two jobs of one group": Crossing(
        {"daily": limited(GROUP), "other": limited(GROUP, workflow="join")},
        uploads(1),
        check("daily"),
        check("other"),
        succeeded(daily=1, other=1),
    ),
    "two servings of one queue": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2, 3), settle, ends(), passes("1s")),
        serving,
        serving,
        succeeded(daily=3),
    ),
    "a serving of the queue, and a newcomer": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2), settle, ends(), uploads(3), passes("1s")),
        serving,
        check("daily", 0),
        succeeded(daily=3),
    ),
    "a newcomer that makes room, and the end of the older run": Crossing(
        {"daily": limited(ROOM)},
        then(uploads(1), settle, passes("1s"), uploads(2)),
        check("daily"),
        ends(),
        lambda ends: ends["daily"] in (["CANCELLED", "SUCCEEDED"], ["SUCCEEDED", "SUCCEEDED"]),
    ),
    "a newcomer that makes room, and the start of the older run": Crossing(
        {"daily": limited(ROOM)},
        uploads(1, 2),
        check("daily", 0),
        check("daily", 1),
        lambda ends: ends["daily"].count("SUCCEEDED") >= 1 and len(ends["daily"]) == 2,
    ),
    "two emitters": Crossing({"daily": at("R5/PT30S")}, passes("61s"), emitting, emitting, succeeded(daily=5)),
    "an emitter at the last fire, and a hold": Crossing(
        {"daily": at("R2/PT100S")}, passes("101s"), emitting, unless_complete(hold), succeeded(daily=2), resume
    ),
    "an emitter at the last fire, and a resume": Crossing(
        {"daily": at("R2/PT100S")}, then(hold, passes("101s")), emitting, resume, succeeded(daily=2)
    ),
    "an emitter, and an update that carries": Crossing(
        {"daily": at("R2/PT100S")},
        passes("101s"),
        emitting,
        put("daily", {**at("R2/PT100S"), **NEW}),
        succeeded(daily=2),
    ),
    "two notifications of one object": Crossing(
        {"daily": on({"type": "size", "dataset": "flights", "bytes": 100})},
        lambda world: None,
        lambda world: world.upload(day(1, name="a.csv"), size=60),
        lambda world: world.upload(day(1, name="a.csv"), size=60),
        succeeded(daily=0),
    ),
    "two failures, and the resume after the first hold": Crossing(
        {"daily": partitions(by=["day"], pause_after_failures=1)},
        then(uploads(1, 2), settle, ends("jr00001", "FAILED"), ends("jr00002", "RUNNING")),
        ends("jr00002", "FAILED"),
        resume,
        lambda ends: sorted(ends["daily"]) == ["FAILED", "FAILED", "SUCCEEDED"],
        then(resume, uploads(3)),
    ),
}
