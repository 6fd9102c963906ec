"""Partitions of one period are processed at once, in every order of calls.

Two folders of a period are one partition and one run (T24). Two parts of a day make one job (T25). A partition that
comes twice starts each of its jobs once (T27). A part beside the deadline of its day is in its run, or late (T28). The
job of a backfill and the own job of its day never run at once (L23)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.core import states
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import MINUTE, parse_instant
from chalicelib.core.rows.event import Partition
from chalicelib.core.rows.ignored import IgnoredObjects
from chalicelib.flow.ingest.objects import match_object, register_values
from chalicelib.flow.jobs.check import check_job
from tests.acceptance.triggers.test_periods import BY, HOURS, clicks, stored
from tests.acceptance.words import on
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.faults.scenarios_gathered import PLANS
from tests.support.backfills import begin
from tests.support.snapshot import Start
from tests.support.world import World, flights, full

STRIDE = 3
HALF = {"each": "12h", "format": "dt=%Y-%m-%d/hour=%H"}
DAY = on({"type": "partition", "dataset": "clicks", "of": "period"}, per="day")
BARE, PADDED = "dt=2026-03-02/hour=7", "dt=2026-03-02/hour=07"


def world() -> World:
    made = World(wake_shards=1, history_shards=1)
    made.deploy(clicks({"s": on({"type": "partition", "dataset": "clicks"}, by=BY)}, HOURS))
    return made


def object_in(folder: str, made: World) -> ObjectCreated:
    return ObjectCreated("lake-bucket", f"raw/clicks/{folder}/part-0.parquet", made.clock.now(), 5)


def check_one(made: World, calls: tuple[int, int]) -> Partition:
    """The only partition, which one run got, at the path of the folder that was first."""
    made.settle()
    [run] = made.runs("s")
    [row] = made.ports.catalog.partitions("demo.clicks", 10, None).items
    [event] = made.context(run)["events"]
    assert (row.values, event["path"]) == (("2026-03-02", "07"), row.event.path), calls
    return row


def test_t24_two_folders_at_once_are_one_partition() -> None:
    start = Start(world)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        acts = [partial(match_object, made.ports, object_in(folder, made)) for folder in (BARE, PADDED)]
        left = side_by_side(made, acts[0], acts[1], calls)
        first = check_one(made, calls).event.path or ""
        noted: Any = made.ports.rows.get(IgnoredObjects, "demo.clicks")
        second = PADDED if first.endswith("hour=7/") else BARE
        assert [(each["code"], each["of"]) for each in noted.objects] == [("other_folder", second)], calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def test_t24_a_registration_beside_an_object_is_one_partition() -> None:
    start = Start(world)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        named = {"partition": {"dt": "2026-03-02", "hour": "07"}}
        register = partial(register_values, made.ports, "demo.clicks", stored(made), named)
        left = side_by_side(made, register, partial(match_object, made.ports, object_in(BARE, made)), calls)
        check_one(made, calls)
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def of_days(**fields: Any) -> World:
    """A world with one job for each day, of two halves."""
    made = World(wake_shards=1, history_shards=1)
    made.deploy(clicks({"s": DAY | fields}, HALF))
    return made


def half(made: World, hour: str, day: str = "2026-03-01") -> Callable[[], object]:
    return partial(match_object, made.ports, object_in(f"dt={day}/hour={hour}", made))


def test_t25_two_parts_at_once_make_one_job() -> None:
    start = Start(of_days)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        left = side_by_side(made, half(made, "00"), half(made, "12"), calls)
        made.settle()
        [run] = made.runs("s")
        assert (len(made.context(run)["events"]), made.jobs("s")) == (2, []), calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def test_t27_a_partition_that_comes_twice_at_once() -> None:
    """Each half of a day starts the jobs of its three periods of four hours."""
    start = Start(partial(of_days, per="4h"))

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        left = side_by_side(made, half(made, "12"), half(made, "12"), calls)
        made.settle()
        found = sorted((run.correlation or {})["4h"] for run in made.runs("s"))
        assert found == [f"2026-03-01T{hour}" for hour in (12, 16, 20)], calls
        assert (made.jobs("s"), made.records("s")) == ([], []), calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def of_values() -> World:
    """A world with one job for each region, which needs a plan of no region, and its own area."""
    made = World(wake_shards=1, history_shards=1)
    trigger = {"type": "all", "triggers": [{"type": "partition", "dataset": name} for name in PLANS]}
    schedule = on(trigger, by=["region"], values={"region": ["us", "eu"]})
    made.deploy(flights({"s": schedule}) | {"datasets": PLANS})
    return made


def put(made: World, key: str) -> Callable[[], object]:
    return partial(match_object, made.ports, ObjectCreated("lake-bucket", f"raw/{key}/a.parquet", made.clock.now(), 5))


@pytest.mark.parametrize("second", ["plans/version=1", "areas/region=eu/day=2026-03-02"])
def test_t27_two_partitions_of_many_values_at_once(second: str) -> None:
    """The plan twice, or the plan beside the area of a region."""
    start = Start(of_values)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        left = side_by_side(made, put(made, "plans/version=1"), put(made, second), calls)
        put(made, "areas/region=eu/day=2026-03-02")()
        made.settle()
        [run] = made.runs("s")
        assert run.correlation == {"region": "eu"}, calls
        assert sorted(event["dataset"] for event in made.context(run)["events"]) == ["demo.areas", "demo.plans"], calls
        assert [(job.correlation, job.leaves["0"].count) for job in made.jobs("s")] == [({"region": "us"}, 1)], calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def of_seen(**fields: Any) -> World:
    """A world whose days wait for the regions that the day before had: ``us`` and ``eu`` of the first of March."""
    made = World(wake_shards=1, history_shards=1)
    trigger = {"type": "partition", "dataset": "areas", "of": "period"}
    areas = {"areas": PLANS["areas"] | {"values": {"region": "seen_last"}}}
    made.deploy(flights({"s": on(trigger, per="day", incomplete={"after": "6h"}, **fields)}) | {"datasets": areas})
    for region in ("us", "eu"):
        put(made, f"areas/region={region}/day=2026-03-01")()
    return made


def areas_of(made: World, day: str) -> list[list[str]]:
    """The regions that each run of a day got."""
    runs = [made.context(run)["events"] for run in made.runs("s") if run.correlation == {"day": day}]
    return [sorted(event["partition"]["region"] for event in events) for events in runs]


@pytest.mark.parametrize("begun", [True, False])
def test_t25_two_new_values_at_once_join_one_job(begun: bool) -> None:
    def made_before() -> World:
        made = of_seen()
        if begun:
            put(made, "areas/region=us/day=2026-03-02")()
        return made

    start = Start(made_before)

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        acts = [put(made, f"areas/region={region}/day=2026-03-02") for region in ("mars", "apac")]
        left = side_by_side(made, acts[0], acts[1], calls)
        for region in ("us", "eu"):
            assert areas_of(made, "2026-03-02") == [], calls
            put(made, f"areas/region={region}/day=2026-03-02")()
            made.settle()
        assert areas_of(made, "2026-03-02") == [["apac", "eu", "mars", "us"]], calls
        assert made.records("s") == [], calls
        return left

    assert len(list(every_order(play, STRIDE))) > 10


def test_t25_a_late_value_beside_the_begin_of_the_next_day() -> None:
    """The job waits for it, or does not, and never changes its mind."""
    start, ends = Start(of_seen), set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        late, first = put(made, "areas/region=apac/day=2026-03-01"), put(made, "areas/region=us/day=2026-03-02")
        left = side_by_side(made, late, first, calls)
        put(made, "areas/region=eu/day=2026-03-02")()
        made.settle()
        waits = areas_of(made, "2026-03-02") == []
        put(made, "areas/region=apac/day=2026-03-02")()
        made.settle()
        assert areas_of(made, "2026-03-02") == [["apac", "eu", "us"] if waits else ["eu", "us"]], calls
        assert [record.kind for record in made.records("s")] == ([] if waits else ["DROPPED"]), calls
        ends.add(waits)
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert ends == {True, False}


def test_t25_a_new_value_beside_the_deadline() -> None:
    def begun() -> World:
        made = of_seen()
        put(made, "areas/region=us/day=2026-03-02")()
        made.settle()
        made.clock.wait_until(parse_instant("2026-03-03T06:00:00Z"))
        return made

    start, ends = Start(begun), set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        job = next(job for job in made.jobs("s") if job.correlation == {"day": "2026-03-02"})
        check = partial(check_job, made.ports, (job.schedule, job.generation, job.sort_key))
        left = side_by_side(made, check, put(made, "areas/region=mars/day=2026-03-02"), calls)
        made.settle()
        [got] = areas_of(made, "2026-03-02")
        assert got in (["mars", "us"], ["us"]), calls
        assert [record.kind for record in made.records("s")] == ([] if "mars" in got else ["DROPPED"]), calls
        ends.add(tuple(got))
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert len(ends) == 2


@pytest.mark.parametrize("late", ["ignore", "again"])
def test_t28_a_part_beside_the_deadline_of_its_day(late: str) -> None:
    def begun() -> World:
        made = of_days(incomplete={"after": "5m"}, late=late)
        half(made, "00")()
        made.settle()
        made.clock.wait_until(made.clock.now() + 5 * MINUTE)
        return made

    start, ends = Start(begun), set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        [job] = made.jobs("s")
        check = partial(check_job, made.ports, (job.schedule, job.generation, job.sort_key))
        left = side_by_side(made, check, half(made, "12"), calls)
        made.settle()
        got = [len(made.context(run)["events"]) for run in made.runs("s")]
        records = [record.kind for record in made.records("s")]
        assert sorted(got) in ([2], [1, 2] if late == "again" else [1]), calls
        assert records == ([] if late == "again" or got == [2] else ["DROPPED"]), calls
        ends.add(tuple(got))
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert len(ends) == 2


def test_l23_a_backfill_beside_the_own_job_of_its_day() -> None:
    """One half is there. The other one begins the own job, while the job of the backfill is checked."""

    def begun() -> World:
        made = World(wake_shards=1, history_shards=1)
        made.deploy(clicks({}, HALF))
        half(made, "00")()
        made.settle()
        made.deploy(clicks({"s": DAY}, HALF))
        begin(made, "s", partitions={"values": [{"day": "2026-03-01"}]})
        return made

    start, ends = Start(begun), set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        [job] = made.jobs("s")
        check = partial(check_job, made.ports, (job.schedule, job.generation, job.sort_key))
        left = side_by_side(made, check, half(made, "12"), calls)
        for _ in range(3):
            assert len([run for run in made.runs("s") if not states.is_terminal(run.state)]) <= 1, calls
            made.settle()
            assert len([run for run in made.runs("s") if not states.is_terminal(run.state)]) <= 1, calls
            made.finish()
            made.clock.pass_by("1m")
        runs = sorted(made.runs("s"), key=lambda run: run.claimed_at)
        by_backfill = tuple(run.backfill is not None for run in runs)
        assert len(made.context(runs[-1])["events"]) == 2, calls
        assert [record.kind for record in made.records("s")] == ([] if by_backfill[0] else ["DROPPED"]), calls
        [row] = made.ports.jobs.backfills(full("s"))
        assert (row.state, made.jobs("s")) == ("DONE", []), calls
        ends.add(by_backfill)
        return left

    assert len(list(every_order(play, STRIDE))) > 10
    assert ends == {(True, False), (False,)}
