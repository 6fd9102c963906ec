"""Fires between their nominal and their due instants, and fires that are late: none is lost without a record."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import upcoming
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from chalicelib.core.rows.schedule import Timer
from chalicelib.flow import lookup
from chalicelib.flow.schedules import pauses
from tests.acceptance.words import dues, kinds, on, reasons, time, to_queue
from tests.support import idle
from tests.support.clock import NOON
from tests.support.world import SQS, World, flights, full

HOURLY = time("0 * * * *", jitter="50m")
LATER = time("0 13 * * *", jitter="50m")


def counts(world: World, name: str = "tick") -> tuple[int, int]:
    """How many events ran, and how many are on record."""
    return len(world.runs(name)), sum(record.count for record in world.records(name))


def go_on(world: World, span: str) -> None:
    """Time passes without a tick; then the tick comes each minute again."""
    world.clock.pass_by(span)
    world.tick()
    world.settle()


def due_of(world: World, nominal: Instant, name: str = "tick") -> Instant:
    _, schedule = lookup.existing(world.ports, full(name))
    timer = world.ports.rows.get(Timer, full(name))
    return next(one.due for one in upcoming.fires(schedule, NOON, 3, timer) if one.nominal == nominal)


# -- T5: jitter is no outage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("catch_up", ["none", "latest", "all", {"mode": "all", "within": "30m"}])
def test_t5_jitter_is_no_outage(world: World, catch_up: Any) -> None:
    world.deploy(flights({"tick": to_queue(HOURLY, catch_up=catch_up)}))
    for _ in range(8):
        world.pass_by("1h")
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + hour * HOUR for hour in range(1, 8)]
    assert world.records("tick") == []


def test_t5_a_jitter_of_days_loses_no_week(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("0 0 * * mon", jitter="3d"))}))
    world.clock.wait_until(NOON + 5 * DAY)
    for _ in range(25):
        idle.pass_by(world, "1d")
    assert (len(world.runs("tick")), world.records("tick")) == (4, [])


@pytest.mark.parametrize(("catch_up", "ran"), [("all", 3), ("latest", 1), ("none", 0)])
def test_t5_lateness_counts_from_the_due_instant(world: World, catch_up: str, ran: int) -> None:
    """The tick comes back when the fires of 13:00 to 15:00 were due, and that of 16:00 is not due yet."""
    world.deploy(flights({"tick": to_queue(HOURLY, catch_up=catch_up)}))
    dues_ahead = [due_of(world, NOON + hour * HOUR) for hour in (1, 2, 3)]
    back = NOON + 4 * HOUR + SECOND
    assert max(dues_ahead) < back - MINUTE
    world.clock.wait_until(back)
    world.tick()
    world.settle()
    assert counts(world) == (ran, 3 - ran)
    world.pass_by("1h")
    assert NOON + 4 * HOUR in [run.nominal_at for run in world.runs("tick")]


def test_t5_latest_runs_the_last_fire_that_is_due(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("0 * * * *", jitter="55m"), catch_up="latest")}))
    due = due_of(world, NOON + 3 * HOUR)
    world.clock.wait_until(max(NOON + 3 * HOUR, due - 4 * MINUTE))
    world.tick()
    world.settle()
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + 2 * HOUR]
    world.pass_by("1h")
    assert NOON + 3 * HOUR in [run.nominal_at for run in world.runs("tick")]


# -- L6, L11, L19: between the nominal and the due instant -------------------------------------------------------------


def test_l11_a_fire_is_upcoming_until_it_is_due(world: World) -> None:
    world.deploy(flights({"tick": to_queue(LATER)}))
    world.clock.wait_until(NOON + HOUR + SECOND)
    _, schedule = lookup.existing(world.ports, full("tick"))
    timer = world.ports.rows.get(Timer, full("tick"))
    assert due_of(world, NOON + HOUR) > world.clock.now()
    assert upcoming.preview(schedule, world.clock.now(), 2, timer) == [NOON + HOUR, NOON + 25 * HOUR]


def test_l11_no_fire_from_before_the_schedule_began_is_upcoming(world: World) -> None:
    world.clock.wait_until(NOON + HOUR + SECOND)
    world.deploy(flights({"tick": to_queue(LATER)}))
    _, schedule = lookup.existing(world.ports, full("tick"))
    timer = world.ports.rows.get(Timer, full("tick"))
    assert upcoming.preview(schedule, world.clock.now(), 1, timer) == [NOON + 25 * HOUR]
    world.pass_by("2h")
    assert counts(world) == (0, 0)


def test_l19_a_fire_can_be_skipped_until_it_is_due(world: World) -> None:
    world.deploy(flights({"tick": to_queue(LATER)}))
    world.clock.wait_until(NOON + HOUR + SECOND)
    pauses.skip(world.ports, full("tick"), NOON + HOUR, "tester")
    world.pass_by("1h")
    assert (world.runs("tick"), kinds(world, "tick")) == ([], ["SKIPPED"])
    with pytest.raises(SluiceError, match="an upcoming fire of this schedule"):
        pauses.skip(world.ports, full("tick"), NOON + HOUR + 1, "tester")


def test_l19_a_skip_outlasts_a_jitter_of_days(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("0 0 * * *", jitter="20h"))}))
    world.deploy(flights({"tick": to_queue(time("0 0 * * mon", jitter="6d"))}))
    monday = NOON - 12 * HOUR + 7 * DAY
    assert due_of(world, monday) > monday + DAY
    pauses.skip(world.ports, full("tick"), monday, "tester")
    world.clock.wait_until(monday + DAY + HOUR)
    pauses.skip(world.ports, full("tick"), monday + 7 * DAY, "tester")
    for _ in range(6):
        idle.pass_by(world, "1d")
    assert (world.runs("tick"), kinds(world, "tick")) == ([], ["SKIPPED"])


@pytest.mark.parametrize("change", ["put", "disable", "delete", "drain"])
def test_l6_a_fire_that_is_not_due_yet_is_on_record_at_an_end(world: World, change: str) -> None:
    world.deploy(flights({"tick": to_queue(LATER)}))
    world.clock.wait_until(NOON + HOUR + SECOND)
    world.tick()
    assert due_of(world, NOON + HOUR) > world.clock.now() + 3 * MINUTE
    _end(world, change)
    world.pass_by("1h")
    assert counts(world) == (0, 1)
    [reason] = reasons(world, "tick")
    text = "DROPPED: the fire of 2026-03-02T13:00:00.000Z had not been prepared when the schedule was "
    assert reason.startswith(text)


def test_l6_a_carried_fire_between_nominal_and_due_runs(world: World) -> None:
    world.deploy(flights({"tick": to_queue(LATER)}))
    world.clock.wait_until(NOON + HOUR + SECOND)
    world.put("tick", to_queue(LATER, properties={"new": True}, on_update="carry"))
    world.pass_by("1h")
    assert [run.nominal_at for run in world.runs("tick")] == [NOON + HOUR]
    assert world.records("tick") == []


# -- E2: a fire that is under way --------------------------------------------------------------------------------------


SPREAD = to_queue(time("0 13 * * *"), spread={"count": 60, "over": "1h"})


def _end(world: World, change: str) -> None:
    """End the generation of the schedule. The trigger of a put is another one."""
    match change:
        case "put":
            world.put("tick", to_queue(time("0 18 * * *")))
        case "disable":
            world.disable("tick")
        case "delete":
            world.delete("tick")
        case _:
            world.pause("tick", "drain")
    world.settle()


@pytest.mark.parametrize("change", ["put", "disable", "delete", "drain"])
def test_e2_the_rest_of_a_fire_is_on_record_at_an_end(world: World, change: str) -> None:
    world.deploy(flights({"tick": SPREAD}))
    world.pass_by("70m")
    before = len(world.runs("tick"))
    assert before == 11
    _end(world, change)
    world.pass_by("1h")
    ran, recorded = counts(world)
    assert (ran, recorded) == (before, 60 - before)
    text = "events of the fire of 2026-03-02T13:00:00.000Z had not been prepared"
    assert any(text in reason for reason in reasons(world, "tick"))


def test_e2_fires_of_an_outage_are_on_record_at_an_end(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("0 * * * *"))}))
    world.clock.wait_until(NOON + 3 * HOUR + SECOND)
    world.delete("tick")
    world.pass_by("5m")
    assert counts(world) == (0, 3)
    [reason] = reasons(world, "tick")
    assert "3 fires from 2026-03-02T13:00:00.000Z to 2026-03-02T15:00:00.000Z had not been prepared" in reason


def test_e2_an_emitter_that_comes_first_is_seen_by_a_delete(world: World) -> None:
    """The emitter moves the timer between the read of a delete and its write: the delete reads again."""
    world.deploy(flights({"tick": SPREAD}))
    world.pass_by("70m")
    ledger, world_ports = world.ports.ledger, world.ports

    class Between:
        """The tick comes right before the first commit."""

        def __getattr__(self, name: str) -> Any:
            return getattr(ledger, name)

        def commit(self, plan: Any, *rest: Any, **named: Any) -> Any:
            world.ports = world_ports
            world.clock.pass_by("3m")
            world.tick()
            world.ports = world.with_ports(ledger=ledger)
            self.commit = ledger.commit
            return ledger.commit(plan, *rest, **named)

    world.ports = world.with_ports(ledger=Between())
    world.delete("tick")
    world.ports = world_ports
    world.pass_by("1h")
    ran, recorded = counts(world)
    assert ran + recorded == 60


@pytest.mark.parametrize("outage", [40 * MINUTE, 20 * MINUTE, 70 * MINUTE])
def test_t5_after_an_outage_a_fire_is_spread_again(world: World, outage: int) -> None:
    """Of 60 events in an hour. What is left is spread over what is left of the window, at most twice as fast."""
    world.deploy(flights({"tick": SPREAD}))
    world.pass_by("59m")
    prepared = len(world.jobs("tick"))
    world.clock.wait_until(NOON + HOUR + outage)
    world.tick()
    for _ in range(70):
        world.pass_by("1m")
    runs = sorted(run.start_requested_at or 0 for run in world.runs("tick"))
    assert len(runs) == 60
    assert world.records("tick") == []
    again = [at for at in runs if at >= NOON + HOUR + outage]
    at_once = Counter(again).most_common(1)[0][1]
    assert at_once <= prepared + 1
    left = 60 - prepared
    gap = max(HOUR - outage, left * 30 * SECOND) // left
    assert {later - earlier - gap for earlier, later in pairwise(again[prepared:])} <= {0, 1}
    in_time = sum(at < NOON + 2 * HOUR for at in runs)
    assert sum(not run.late for run in world.runs("tick")) == in_time
    assert (in_time == 60) == (outage == 20 * MINUTE)


def test_t5_events_that_do_not_fit_are_dropped_if_asked(world: World) -> None:
    document = to_queue(time("0 13 * * *"), spread={"count": 60, "over": "1h", "overflow": "drop"})
    world.deploy(flights({"tick": document}))
    world.pass_by("55m")
    world.clock.wait_until(NOON + HOUR + 50 * MINUTE)
    world.tick()
    for _ in range(40):
        world.pass_by("1m")
    ran, recorded = counts(world)
    assert (ran, recorded) == (20, 40)
    assert max(run.start_requested_at or 0 for run in world.runs("tick")) < NOON + 2 * HOUR


def test_e2_windows_may_overlap_by_hundreds(world: World) -> None:
    world.deploy(flights({"tick": to_queue(time("0 * * * *"), spread={"count": 2, "over": "31d"})}))
    for _ in range(80):
        world.pass_by("1h")
    assert dues(world) == [hour * 3600.0 for hour in range(1, 81)]
    assert world.records("tick") == []


@pytest.mark.parametrize("mode", ["hold", "backlog"])
@pytest.mark.parametrize("workflow", ["queue", "clean"])
def test_l4_after_a_resume_a_fire_is_spread_again(world: World, mode: str, workflow: str) -> None:
    """Of 60 events in an hour, 49 are left when a hold of 40 minutes ends, for 10 minutes. The pace is at most twice as
    fast."""
    document = on(time("0 13 * * *"), workflow, spread={"count": 60, "over": "1h"})
    world.deploy(flights({"tick": document}, queue={"target": SQS}))
    for _ in range(70):
        world.pass_by("1m")
    assert len(world.runs("tick")) == 11
    world.pause("tick", mode)
    for _ in range(40):
        world.pass_by("1m")
    assert len(world.runs("tick")) == 11
    world.resume("tick")
    world.settle()
    for _ in range(40):
        world.pass_by("1m")
    runs = sorted(run.start_requested_at or 0 for run in world.runs("tick"))
    assert (len(runs), world.records("tick")) == (60, [])
    resumed = NOON + 110 * MINUTE
    assert [at - resumed for at in runs[11:]] == [index * 30 * SECOND for index in range(49)]


def test_l4_a_hold_before_or_after_a_fire_changes_no_instant(world: World) -> None:
    world.deploy(flights({"tick": SPREAD}))
    world.pass_by("10m")
    world.pause("tick", "hold")
    world.pass_by("10m")
    world.resume("tick")
    for _ in range(110):
        world.pass_by("1m")
    assert dues(world) == [3600.0 + 60 * index for index in range(60)]
    assert [run.start_requested_at for run in world.runs("tick")] == [run.due_at for run in world.runs("tick")]


@pytest.mark.parametrize(
    ("expression", "over", "fits"),
    [
        ("@every 1m", "16h", True),
        ("@every 1m", "17h", False),
        ("@every 1m", "31d", False),
        ("* 9 * * *", "12h", True),
        ("* * * * * *", "1h", False),
    ],
)
def test_e2_more_windows_than_a_timer_keeps_are_refused(world: World, expression: str, over: str, fits: bool) -> None:
    world.deploy(flights({}))
    document = to_queue(time(expression), spread={"count": 2, "over": over})
    if fits:
        world.put("tick", document)
        return
    with pytest.raises(SluiceError, match="windows of which at most 1000 overlap") as refused:
        world.put("tick", document)
    assert refused.value.field == "spread.over"


def test_l4_a_fire_that_comes_after_a_drain_runs_once_if_resumed(world: World) -> None:
    """It was prepared before the drain; the resumed schedule prepares it again, unless its interval begins anew."""
    world.deploy(flights({"tick": to_queue(time("0 * * * *")), "span": to_queue(time("@every 2m"))}))
    world.pass_by("59m")
    for name in ("tick", "span"):
        world.pause(name, "drain")
        assert world.jobs(name) == []
        world.resume(name)
    world.settle()
    world.pass_by("5m")
    assert dues(world, "tick") == [3600.0]
    assert dues(world, "span")[-3:] == [58 * 60.0, 61 * 60.0, 63 * 60.0]
    assert [*world.records("tick"), *world.records("span")] == []
