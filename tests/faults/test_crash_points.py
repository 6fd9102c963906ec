"""A Lambda may be killed after any write (O3): nothing is lost and nothing runs twice, after any write.

The scenarios are in `scenarios_*.py`, `dying.py` plays them, and `invariants.py` checks what must always hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from zlib import crc32

import pytest

from tests.faults.dying import Stage, play, world_for
from tests.faults.scenarios_applications import APPLICATIONS
from tests.faults.scenarios_backfill import BACKFILLED
from tests.faults.scenarios_basic import BASIC
from tests.faults.scenarios_batch import BATCH_JOBS
from tests.faults.scenarios_bills import BILLS
from tests.faults.scenarios_dags import DAGS
from tests.faults.scenarios_delivered import DELIVERED
from tests.faults.scenarios_ending import ENDING
from tests.faults.scenarios_executions import EXECUTIONS
from tests.faults.scenarios_gathered import GATHERED
from tests.faults.scenarios_glue import GLUE
from tests.faults.scenarios_grants import GRANTED
from tests.faults.scenarios_limited import LIMITED
from tests.faults.scenarios_messages import MESSAGES
from tests.faults.scenarios_named_later import NAMED_LATER
from tests.faults.scenarios_notices import NOTICES
from tests.faults.scenarios_paced import PACED
from tests.faults.scenarios_paused import PAUSED
from tests.faults.scenarios_pools import POOLED
from tests.faults.scenarios_produced import PRODUCED
from tests.faults.scenarios_queries import QUERIES
from tests.faults.scenarios_reprocess import REPROCESSED
from tests.faults.scenarios_roles import ROLED
from tests.faults.scenarios_tables import TABLES
from tests.faults.scenarios_tasks import TASKS
from tests.faults.scenarios_updated import UPDATED
from tests.faults.scenarios_uploaded import UPLOADED
from tests.faults.scenarios_workers import WORKERS
from tests.support.crash import EFFECTS
from tests.support.kinds import WRITES

SCENARIOS = {**BASIC, **PAUSED, **LIMITED, **PACED, **GATHERED, **DELIVERED, **ENDING, **BACKFILLED, **MESSAGES,
             **POOLED, **WORKERS, **DAGS, **NOTICES, **BILLS, **NAMED_LATER, **UPDATED, **APPLICATIONS,
             **TABLES, **EXECUTIONS, **TASKS, **BATCH_JOBS, **GLUE, **QUERIES,
             **REPROCESSED, **GRANTED, **UPLOADED,
             **ROLED, **PRODUCED}  # fmt: skip
# Forms of a write that have a condition of their own in the tables.
FORMS = {"ReleasePermit ended", "ReleasePermit wake_at", "Replace over", "DeleteJob exact", "AcquirePermit begins",
         "PutLastArrival over", "AcquirePermit from_queue", "AcquirePermit passing", "JoinQueue behind",
         "PutState over", "PutDefinition over", "PutDefinition edition", "LeaseQueue asked",
         "TakeLease over"}  # fmt: skip


def _dies(stage: Stage, number: int, effect: str) -> None:
    try:
        stage.play(number)
    except AssertionError as error:
        raise AssertionError(f"death after effect {number}, {effect}: {error}") from error


def _effects(stage: Stage) -> list[str]:
    points = stage.play()
    return points.names[: points.in_act]


@pytest.mark.parametrize("name", SCENARIOS)
def test_o3_a_death_after_any_write_loses_and_doubles_nothing(name: str) -> None:
    """Kills after one effect of each kind, the first or the last; `make test-long` kills after the others, too."""
    stage = Stage(SCENARIOS[name])
    effects = _effects(stage)
    chosen = _first_or_last(name, effects)
    print(f"{name}: {len(chosen)} of {len(effects)} crash points")

    for number in chosen:
        _dies(stage, number, effects[number - 1])

    assert len(effects) >= 4
    assert {effects[number - 1] for number in chosen} == set(effects)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_o3_a_death_after_each_repeated_write_is_harmless(name: str) -> None:
    """Kills after each effect that the test above leaves out, because it kills after another one of the kind."""
    stage = Stage(SCENARIOS[name])
    effects = _effects(stage)
    for number in set(range(1, len(effects) + 1)) - set(_first_or_last(name, effects)):
        _dies(stage, number, effects[number - 1])


def _first_or_last(name: str, effects: Sequence[str]) -> list[int]:
    """The numbers, from 1, of one effect of each kind: the first in one half of the kinds, the last in the other half.
    The halves differ between scenarios, so a kind that several scenarios have gets both.
    """
    numbered = list(enumerate(effects, start=1))
    last = {effect: number for number, effect in numbered}
    first = {effect: number for number, effect in reversed(numbered)}
    return sorted((first, last)[crc32(f"{name} {effect}".encode()) % 2][effect] for effect in first)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_o3_the_repair_may_die_too(name: str) -> None:
    """Two kills: the second one after any of the ten effects that follow the first."""
    stage = Stage(SCENARIOS[name])
    effects = stage.play().in_act or 0
    for first, after in product(range(1, effects + 1), range(1, 11)):
        try:
            stage.play(first, first + after)
        except AssertionError as error:
            raise AssertionError(f"deaths after effects {first} and {first + after}: {error}") from error


def test_every_kind_of_write_and_effect_has_a_crash_point() -> None:
    """A write that no scenario makes would never be tried with a kill after it. Add such a write to a scenario."""
    forms: set[str] = set()
    names: set[str] = set()
    for scenario in SCENARIOS.values():
        world = world_for(scenario)
        world.ports = world.with_ports(settings=replace(world.ports.settings, inline_events=0))
        points = play(scenario, world)
        forms |= points.forms
        names |= {name.partition("(")[0] for name in points.names}

    assert {kind.__name__ for kind in WRITES} - forms == set()
    assert FORMS - forms == set()
    assert EFFECTS - names == set()
