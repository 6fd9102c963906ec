"""A second hint for a run whose start call got no answer, at an engine without tokens, at each step of the next call.

Another message may bring it, the sweep, or the hint for the end of a lease. The search of the second one does not show
what the first one has just started. One job is started in each order (W10, W22).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.flow.runs import launch
from tests.faults import invariants
from tests.faults.dying import SMALL
from tests.faults.scenarios_batch import LOAD
from tests.faults.scenarios_glue import ETL
from tests.support.crossings import at_each_call, cross
from tests.support.schedules import partitions
from tests.support.snapshot import Start
from tests.support.world import World, day, flights

# The workflow, the client of the engine, its jobs, the call that lists them, and the key of the list in its answer.
ENGINES: dict[str, tuple[dict[str, Any], Callable[[World], Any], str, str, str]] = {
    "batch": (LOAD["load"], lambda world: world.targets.batch_jobs, "jobs", "list_jobs", "jobSummaryList"),
    "glue": (ETL["etl"], lambda world: world.targets.jobs, "runs", "get_job_runs", "JobRuns"),
}


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize("engine", ENGINES)
def test_w10_two_hints_after_a_lost_answer_start_one_job(engine: str, lost: int) -> None:
    """The first call got no answer, and started nothing. With ``lost``, the next one gets none either."""
    workflow, client_of, jobs, listing, key = ENGINES[engine]

    def begun() -> World:
        world = World(**SMALL)
        world.deploy(flights({"daily": partitions(1)}, clean=workflow))
        client_of(world).lose_answers = 1
        world.upload(day(1))
        world.settle()
        getattr(client_of(world), jobs).clear()
        world.clock.pass_by("61s")
        return world

    start = Start(begun)

    def play(before: int | None) -> int:
        world = start.again()
        client, [run] = client_of(world), world.runs("daily")
        assert run.unknown_answer
        client.lose_answers = lost
        setattr(client, listing, lambda **asked: {key: []})

        def hint() -> None:
            launch.start(world.ports, run.run_id, 1)

        calls = cross(world, before, hint, hint)
        assert len(getattr(client, jobs)) == 1
        delattr(client, listing)  # from now on, jobs are listed
        world.pass_by("3m")
        [made], [run] = getattr(client, jobs).values(), world.runs("daily")
        assert run.target_id == getattr(made, "target_id", made.id)
        invariants.check_awake(world)
        return calls

    at_each_call(play, least=8)
