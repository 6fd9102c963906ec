"""The lists of the wake index: rows that no instant wakes, which people search for and no tick reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.aws.tables import items
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoWakes
from chalicelib.core.instants import DAY
from chalicelib.core.rows.job import Job
from chalicelib.core.writes import ClearStateWake, Put
from tests.support import rows
from tests.support.clock import NOON
from tests.support.world import World


@pytest.fixture
def world() -> World:
    return World()


def listed(world: World, group: Any) -> list[tuple[str, ...]]:
    return [ref.parts for ref in world.ports.wakes.listed(group, "demo", 10, None).items]


def test_a_job_that_no_instant_wakes_is_listed(world: World) -> None:
    asleep = rows.job(wake_at=None)
    others = [
        rows.job("woken", sort_key="JOB#1"),
        rows.job("queued", sort_key="JOB#2", wake_at=None, queued_in="workflow:demo.flights.w"),
        rows.job("closed", sort_key="JOB#3", wake_at=None, closed=True),
        rows.job("other", schedule="other.flights.clean", wake_at=None),
    ]
    world.dynamo.put_all([Put(row) for row in (asleep, *others)])

    assert [parts[2] for parts in listed(world, "waits")] == [asleep.sort_key]


def test_no_tick_finds_a_listed_row_overdue(world: World) -> None:
    world.dynamo.put_all([Put(rows.job(wake_at=None)), Put(rows.schedule_state(mode="hold"))])

    assert world.ports.wakes.overdue("jobs", NOON + DAY, 10) == ()
    assert world.ports.wakes.overdue("catalog", NOON + DAY, 10) == ()


def test_a_listed_job_is_read_as_it_was_written(world: World) -> None:
    asleep = rows.job(wake_at=None)
    world.dynamo.put_all([Put(asleep)])

    found = DynamoRows(world.dynamo).get(Job, asleep.schedule, asleep.generation, asleep.sort_key)

    assert found == asleep
    assert items.from_item(Job, items.to_item(asleep, 4, 4)) == asleep


def test_a_paused_schedule_is_listed_once_its_jobs_were_woken(world: World) -> None:
    paused = rows.schedule_state(mode="hold", wake_at=NOON)
    world.dynamo.put_all([Put(paused)])
    assert listed(world, "paused") == []

    assert world.dynamo.commit([ClearStateWake(paused)]) is None
    assert listed(world, "paused") == [(paused.schedule,)]

    world.dynamo.put_all([Put(replace(paused, mode="enabled"))])
    assert world.dynamo.commit([ClearStateWake(replace(paused, mode="enabled"))]) is None
    assert listed(world, "paused") == []


def test_the_wake_index_is_read_page_by_page(world: World) -> None:
    jobs = [rows.job(f"j{number}", sort_key=f"JOB#{number}", wake_at=NOON + number) for number in range(9)]
    spread = [replace(job, schedule=f"demo.flights.s{number}") for number, job in enumerate(jobs)]
    world.dynamo.put_all([Put(row) for row in spread])
    wakes = DynamoWakes(world.dynamo)

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = wakes.waking("jobs", NOON + 7, 2, cursor)
        found += [ref.parts[0] for ref, _ in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == [job.schedule for job in spread[:8]]


def test_the_earliest_rows_say_up_to_when_they_are_all(world: World) -> None:
    jobs = [
        rows.job(f"j{number}", schedule=f"demo.flights.s{number}", sort_key="JOB#", wake_at=NOON + number)
        for number in range(9)
    ]
    world.dynamo.put_all([Put(row) for row in jobs])
    wakes = DynamoWakes(world.dynamo)

    some, every = wakes.soonest("jobs", NOON + 2, NOON + 9, 3), wakes.soonest("jobs", 0, NOON + 99, 9)

    assert [ref.parts[0] for ref, _ in some.refs] == [f"demo.flights.s{number}" for number in (2, 3, 4)]
    assert some.complete_to == NOON + 4
    assert (len(every.refs), every.complete_to) == (9, None)
