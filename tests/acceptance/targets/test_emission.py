"""The minute tick, several events per fire, and second-level precision (E1, E2, E4)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.fires import timer as rules
from chalicelib.core.instants import HOUR, MINUTE, SECOND
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.writes import Put
from chalicelib.flow import shards
from chalicelib.flow.fires import emit
from tests.acceptance.words import concurrency, dues, kinds, on, reasons, time, to_queue, window
from tests.support.answers import views
from tests.support.clock import NOON
from tests.support.ledgers import LedgerBetween
from tests.support.world import SQS, World, flights, full

# -- E1: the tick ------------------------------------------------------------------------------------------------------


def test_e1_scan_windows_cover_time_however_the_ticks_come(world: World) -> None:
    """Early, late, twice, and not at all: every second's fire comes once."""
    world.deploy(flights({"tick": to_queue(time("@every 7s"))}))
    for span in (61, 0, 20, 75, 1, 59, 0, 110):
        world.clock.pass_by(f"{span}s") if span else None
        world.tick()
    end = (world.clock.now() - NOON) // SECOND
    fired = sorted(((run.nominal_at or 0) - NOON) // SECOND for run in world.runs("tick"))
    assert fired == list(range(7, end + 1, 7))


def test_e1_one_tick_prepares_more_timers_than_an_index_page(world: World) -> None:
    names = [f"t{number:04d}" for number in range(1_200)]
    timers = [Timer(full(name), 1, 1, NOON, {"0": NOON}, wake_at=NOON + MINUTE) for name in names]
    world.ports.ledger.put_all([Put(timer) for timer in timers])
    seen: list[Ref] = []
    until, cursor, more = NOON + 2 * MINUTE, None, True
    while more:
        page = world.ports.wakes.due("catalog", 0, until, shards.PAGE, cursor)
        assert len(page.items) <= shards.PAGE
        seen += [ref for ref, _ in page.items]
        cursor, more = page.cursor, page.cursor is not None
    assert len({ref.parts for ref in seen if ref.kind == "timer"}) == 1_200


def test_e1_a_tick_out_of_time_leaves_the_rest_to_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    world.deploy(flights({f"t{number}": to_queue(time("@every 1m")) for number in range(5)}))
    world.clock.pass_by("50s")
    monkeypatch.setattr(emit, "BATCH_SIZE", 1)
    inner = world.ports.ledger

    class Slow(LedgerBetween):
        """Every timer takes fifteen seconds."""

        def before_puts(self, writes: Any) -> None:
            world.clock.pass_by("15s")

    world.ports = world.with_ports(ledger=Slow(inner))
    assert emit.emit_due(world.ports) < 5
    world.ports = world.with_ports(ledger=inner)
    world.tick()
    world.pass_by("1m")
    assert all(len(world.runs(f"t{number}")) >= 2 for number in range(5))


# -- E2: several events per fire ---------------------------------------------------------------------------------------


def test_e2_a_fire_spreads_its_events_evenly_with_distinct_ids(world: World) -> None:
    world.deploy(flights({"batch": to_queue(time("0 13 * * *"), spread={"count": 70, "over": "9m"})}))
    world.clock.wait_until(NOON + 59 * MINUTE)
    world.tick()
    world.pass_by("12m")
    runs = world.runs("batch")
    assert len({run.run_id for run in runs}) == len(runs) == 70
    assert [run.due_at for run in runs] == [NOON + HOUR + index * 9 * MINUTE // 70 for index in range(70)]
    assert [run.start_requested_at for run in runs] == [run.due_at for run in runs]
    assert {run.nominal_at for run in runs} == {NOON + HOUR}
    assert {run.late for run in runs} == {False}
    assert len({run.event.id for run in runs if run.event}) == 70
    assert len(world.targets.queue.messages) == 70


def test_e2_without_a_window_all_events_of_fire_are_due_at_once(world: World) -> None:
    world.deploy(flights({"batch": to_queue(time("@every 10s", repeats=1), spread={"count": 25})}))
    world.pass_by("20s")
    assert dues(world, "batch") == [10]
    assert [run.count for run in world.runs("batch")] == [25]


def test_e2_no_check_of_a_timer_writes_more_than_a_portion(world: World) -> None:
    each = {"target": SQS, "delivery": {"records": "each"}}
    world.deploy(flights({"batch": to_queue(time("0 13 * * *"), spread={"count": 6_000})}, notify=each))
    world.clock.wait_until(NOON + HOUR - MINUTE)
    written: list[int] = []

    class Counting(LedgerBetween):
        def before_puts(self, writes: Any) -> None:
            written.append(len(writes))

    world.ports = world.with_ports(ledger=Counting(world.ports.ledger))
    emit.emit_due(world.ports)
    assert set(written) == {rules.MAX_FIRES}
    assert sum(written) < 6_000
    # The rest was hinted, so that it is written before it is due, without another tick.
    hinted = [ref for due, ref in world.hints.sent if ref.kind == "timer" and due <= world.clock.now()]
    assert [ref.parts[0] for ref in hinted] == [full("batch")]
    while any(ref.kind == "timer" for ref in world.hints.due(world.clock.now())):
        emit.emit_soon(world.ports, full("batch"))
    assert sum(written) == 6_000
    timer = world.ports.rows.get(Timer, full("batch"))
    assert timer is not None
    assert timer.begun == ()


def test_e2_overlapping_windows_keep_each_its_own_pace(world: World) -> None:
    overlapping = to_queue(time("@every 1m", repeats=3), spread={"count": 4, "over": "2m"})
    world.deploy(flights({"batch": overlapping}))
    world.pass_by("6m")
    assert dues(world, "batch") == sorted(
        minute * 60.0 + index * 30 for minute in (1, 2, 3) for index in range(4)
    )  # fmt: skip


def test_e2_events_exceeding_their_window_start_late_and_marked(world: World) -> None:
    late = on(time("@every 1m", repeats=1), "clean", concurrency(1), spread={"count": 3, "over": "1m"})
    world.deploy(flights({"batch": late}))
    for _ in range(3):
        world.pass_by("50s")
        world.finish()
        world.pass_by("1s")
    runs = world.runs("batch")
    assert [run.late for run in runs] == [False, False, True]
    assert [views.run_view(run)["late"] for run in runs] == [False, False, True]
    assert (views.run_view(runs[2])["lateness_ms"] or 0) > 0


def test_e2_late_events_are_dropped_on_record_if_asked(world: World) -> None:
    drop = on(
        time("@every 1m", repeats=1), "clean", concurrency(1), spread={"count": 3, "over": "1m", "overflow": "drop"}
    )
    world.deploy(flights({"batch": drop}))
    world.pass_by("3m")
    world.finish()
    world.pass_by("3m")
    assert len(world.runs("batch")) == 1
    assert kinds(world, "batch") == ["DROPPED", "DROPPED"]
    assert all(
        "not started within its window, which ended at 2026-03-02T12:02" in text for text in reasons(world, "batch")
    )


def test_e2_events_waiting_for_night_are_dropped_at_window_end(world: World) -> None:
    spread = {"count": 2, "over": "10m", "overflow": "drop"}
    world.deploy(flights({"batch": to_queue(time("@every 1m", repeats=1), spread=spread) | {
        "constraints": [window("22:00", "23:00")]}}))  # fmt: skip
    world.pass_by("13m")
    assert (world.jobs("batch"), kinds(world, "batch")) == ([], ["DROPPED", "DROPPED"])


def test_e2_events_delayed_past_their_window_by_outage_are_late(world: World) -> None:
    world.deploy(flights({"batch": to_queue(time("0 13 * * *"), spread={"count": 4, "over": "1h"})}))
    world.clock.wait_until(NOON + HOUR + 40 * MINUTE)
    world.tick()
    world.pass_by("1h")
    # The four events are spread again, twice as fast as planned: at 13:40, 13:47:30, 13:55 and 14:02:30.
    assert [run.late for run in world.runs("batch")] == [False] * 3 + [True]
    world.clock.wait_until(NOON + 27 * HOUR)
    world.tick()
    world.pass_by("30m")
    assert [run.late for run in world.runs("batch")] == [False] * 3 + [True] * 5


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"spread": {"count": 0}}, "spread.count"),
        ({"spread": {"count": 100_001}}, "spread.count"),
        ({"spread": {"count": 2, "over": "40d"}}, "spread.over"),
        ({"spread": {"count": 2, "overflow": "drop"}}, "spread.over"),
        ({"spread": {"count": 2}, "coalesce": True}, "coalesce"),
        ({"spread": {"count": 2}, "trigger": {"type": "partition", "dataset": "flights"}}, "spread"),
    ],
)
def test_e2_an_invalid_spread_is_refused_by_its_field(fields: dict[str, Any], field: str) -> None:
    from pydantic import ValidationError

    from chalicelib.core.definitions.schedule import Schedule
    from chalicelib.core.errors import from_validation

    with pytest.raises(ValidationError) as caught:
        Schedule.model_validate({"workflow": "notify", "trigger": time("@hourly")} | fields)
    assert from_validation(caught.value).field == field


# -- E4: seconds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "fields", "seconds"),
    [
        (time("@every 10s"), {}, [15, 25, 35, 45, 55]),
        (time("*/20 * * * * *"), {}, [20, 40]),
        ({"type": "time", "due_time": "7s"}, {}, [12]),
        (time("@every 15s", due_time="3s", repeats=3), {}, [8, 23, 38]),
        (time("R2/PT9S"), {"when_done": "delete"}, [14, 23]),
        (time("@every 20s", repeats=1), {"spread": {"count": 4, "over": "20s"}}, [25, 30, 35, 40]),
        (time("@every 10s"), {"ttl": "20s"}, [15, 25]),
        (time("@every 10s", start="2026-03-02T12:00:31Z"), {}, [31, 41, 51]),
    ],
)
def test_e4_schedule_created_within_minute_fires_in_that_minute(
    world: World, trigger: dict[str, Any], fields: dict[str, Any], seconds: list[int]
) -> None:
    world.deploy(flights({}))
    world.tick()
    world.clock.pass_by("5s")
    world.put("tick", to_queue(trigger, **fields))
    world.pass_by("54s")
    assert dues(world) == seconds
