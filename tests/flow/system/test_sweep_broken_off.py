"""A tick that is killed in the middle of its sweep delays no row beyond the next tick (O3)."""

from __future__ import annotations

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.system import sweep
from tests.support.crash import lost, wrap
from tests.support.schedules import partitions
from tests.support.world import World, day, flights

MANY = 120


@pytest.fixture
def stuck() -> World:
    """Jobs whose hints were all lost: overdue, and not checked."""
    world = World(start_burst=2 * MANY)
    world.deploy(flights({f"s{number}": partitions() for number in range(MANY)}))
    world.upload(day(1))
    world.hints.sent = []
    world.clock.pass_by("61s")
    return world


def test_ticks_that_die_postpone_no_row(stuck: World) -> None:
    """Six ticks in a row are killed in their sweep; each leaves fewer rows to the next."""
    points = wrap(stuck)
    for _ in range(6):
        points.armed, points.die_after = True, points.count + 90
        lost(lambda: sweep.sweep_all(stuck.ports))
        points.armed = False
        stuck.settle()
        stuck.clock.pass_by("1m")

    assert len(stuck.targets.emr.runs) == MANY


def test_a_row_is_postponed_only_after_its_hint(stuck: World) -> None:
    points = wrap(stuck)
    points.armed = True
    for effects in range(1, 60, 7):
        points.die_after = points.count + effects
        lost(lambda: sweep.sweep_all(stuck.ports))
        hinted = {ref.parts for _, ref in stuck.hints.sent}
        for number in range(MANY):
            (job,) = stuck.jobs(f"s{number}")
            ref = Ref("job", (job.schedule, _generation(stuck, job.schedule), job.sort_key))
            assert job.leases == 0 or ref.parts in hinted, f"{ref} waits for nobody after {effects} effects"


def test_a_sweep_ends_before_its_lambda_does(stuck: World) -> None:
    """Each call of a table takes 0.9 s. The next tick hints the rows that were not reached."""
    stuck.tables.before_call = lambda: stuck.clock.wait_until(stuck.clock.now() + 900)
    began = stuck.clock.now()

    sweep.sweep_all(stuck.ports, began - 30 * SECOND)

    assert stuck.clock.now() < began + 30 * SECOND
    assert 0 < len(stuck.hints.sent) < MANY


def _generation(world: World, schedule: str) -> str:
    schedule_state = world.ports.rows.get(ScheduleState, schedule)
    assert schedule_state is not None
    return ids.base36(schedule_state.generation)
