"""The partition of a period comes at the instant at which its absence is decided (T29): one of both counts."""

from __future__ import annotations

from functools import partial

import pytest

from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import ref_of
from chalicelib.flow.fires import emit
from chalicelib.flow.ingest.objects import match_object
from chalicelib.flow.system import dispatch
from tests.acceptance.triggers.test_absent_periods import YESTERDAY, app, regions
from tests.acceptance.words import on
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.snapshot import Start
from tests.support.world import World

STRIDE = 2


def due(*listed: str) -> World:
    """The fire is prepared, and due now. With ``listed`` values the day has a partition for each."""
    made = World(wake_shards=1, history_shards=1)
    alarm = {"alarm": on(YESTERDAY)}
    made.deploy(regions(alarm, *listed) if listed else app(alarm))
    made.clock.wait_until(made.clock.now() + 18 * 3_600_000 - 30_000)
    emit.emit_due(made.ports)
    made.hints.sent.clear()
    made.clock.pass_by("30s")
    return made


def decide(made: World, fire: Job) -> None:
    dispatch.dispatch(made.ports, ref_of(fire))


@pytest.mark.parametrize("comes", ["eu", "us"])
def test_t29_one_of_two_that_comes_at_the_deadline(comes: str) -> None:
    """The other one does not come, so there is an alarm in any case."""
    start = Start(partial(due, "eu", "us"))
    told: set[int] = set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        [fire] = made.jobs("alarm")
        created = ObjectCreated("lake-bucket", f"daily/region={comes}/day=2026-03-02/x.csv", made.clock.now(), 5)
        left = side_by_side(made, partial(decide, made, fire), partial(match_object, made.ports, created), calls)
        made.settle()
        made.pass_by("2m")
        made.settle()
        [run] = made.runs("alarm")
        [event] = made.context(run)["events"]
        assert {each["region"] for each in event["missing"]} - {comes} == {"eu", "us"} - {comes}, calls
        assert (made.jobs("alarm"), made.records("alarm")) == ([], []), calls
        told.add(event["missing_count"])
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert told == {1, 2}


def test_t29_a_partition_that_comes_at_the_deadline_or_an_alarm() -> None:
    start = Start(due)
    ends: set[tuple[int, tuple[str, ...]]] = set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        [fire] = made.jobs("alarm")
        created = ObjectCreated("lake-bucket", "daily/day=2026-03-02/part-0.parquet", made.clock.now(), 5)
        left = side_by_side(made, partial(decide, made, fire), partial(match_object, made.ports, created), calls)
        made.settle()
        made.pass_by("2m")
        made.settle()
        kinds = tuple(record.kind for record in made.records("alarm"))
        runs = len(made.runs("alarm"))
        assert (runs, kinds) in {(1, ()), (0, ("DROPPED",)), (0, ())}, calls
        assert made.jobs("alarm") == [], calls
        ends.add((runs, kinds))
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert len(ends) > 1
