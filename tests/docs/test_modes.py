"""The figures of docs/lifecycle.md that no table of the code holds: every request is tried in every mode."""

from __future__ import annotations

import re

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.states import PAUSED_MODES, Mode
from docs.pictures import states
from tests.support.schedules import at, partitions
from tests.support.world import World, flights, full

REQUESTED = tuple(states.MOVES)


def bring(world: World, name: str, mode: Mode) -> None:
    """Put a schedule of this name, and bring it into a mode."""
    if mode == "completed":
        world.put(name, at("R1/PT3M", "notify"))
        world.pass_by("1m")  # with the next tick its only fire is prepared
        return
    world.put(name, partitions())
    if mode in PAUSED_MODES:
        world.pause(name, mode)
    elif mode == "disabled":
        world.disable(name)
    elif mode == "deleted":
        world.delete(name)


def act(world: World, name: str, wanted: str) -> None:
    if wanted in PAUSED_MODES:
        world.pause(name, wanted)
    else:
        getattr(world, wanted)(name)


def mode_of(world: World, name: str) -> str:
    schedule_state = world.ports.rows.get(ScheduleState, full(name))
    assert schedule_state is not None
    return schedule_state.mode


@pytest.mark.parametrize("wanted", REQUESTED)
def test_a_mode_change_follows_the_figure_or_is_refused(world: World, wanted: str) -> None:
    world.deploy(flights({}))
    for mode in states.MODES:
        bring(world, mode, mode)
        assert mode_of(world, mode) == mode
        expected = states.MOVES[wanted].get(mode)
        world.clock.pass_by("1s")

        if expected is None:
            with pytest.raises(SluiceError) as refusal:
                act(world, mode, wanted)
            assert refusal.value.code in ("conflict", "not_found")
            assert mode_of(world, mode) == mode
        else:
            act(world, mode, wanted)
            assert mode_of(world, mode) == expected


def test_the_page_has_a_row_for_every_kind_of_record() -> None:
    section = states.PAGE.read_text().partition("| record | why |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([A-Z]+)` \|", section, flags=re.M)) == set(states.records())


def test_the_page_has_a_row_for_every_kind_of_job() -> None:
    section = states.PAGE.read_text().partition("| kind | begins as |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`:", section, flags=re.M)) == set(states.KINDS)
