"""Re-processings, for `test_crash_points.py` (L21): every step runs once, in order, and no job is left waiting."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chalicelib.core.backfills.request import Reprocess
from chalicelib.flow.backfills import reprocess, reprocess_view
from chalicelib.flow.definitions import store
from tests.faults.dying import RECOVERY, Scenario, finish, passes, people, upload
from tests.support import dags
from tests.support.fakes import EmrRun
from tests.support.schedules import BY_DAY, after, at, at_most, partitions
from tests.support.world import World, flights, full

CHAIN = {"clean": partitions(by=BY_DAY, **at_most(1)), "join": after("clean", "join", by=BY_DAY)}
GRAPH = dags.dag("a -> b", nodes={"a": {"workflow": "clean"}, "b": {"workflow": "join"}}, by=BY_DAY)
ASKED = {"dataset": "flights", "from": {"year": 2013}, "concurrency": 2, "properties": {"again": "yes"}}


def _first_time(world: World, days: int = 1) -> None:
    for number in range(1, days + 1):
        upload(world, number)
    for _ in range(days + 1):
        finish(world)


def _repaired(world: World) -> None:
    """So much time passes that all has run once, also after a death."""
    for span in RECOVERY:
        passes(world, span)
        finish(world)


def _begin(world: World) -> None:
    world.clock.pass_by("1s")  # so that its runs are later than the first ones
    people(world, lambda: reprocess.begin(world.ports, "demo", Reprocess.model_validate(ASKED), "tester", "r1"))


def _again(world: World) -> None:
    _first_time(world)
    _begin(world)
    for _ in range(2):
        finish(world)


def _fails(world: World) -> None:
    _first_time(world)
    _begin(world)
    finish(world, _second_fails)


def _second_fails(run: EmrRun) -> str:
    """The run of the re-processing fails; the original run succeeded."""
    return "FAILED" if "again" in run.request["properties"] else "SUCCESS"


def _run_again(world: World) -> None:
    """Begun with a run instead of a partition."""
    _first_time(world)
    _repaired(world)
    [first] = world.runs("clean")
    asked = Reprocess.model_validate({"run": first.run_id})
    people(world, lambda: reprocess.begin(world.ports, "demo", asked, "tester", "r1"))
    for _ in range(2):
        finish(world)


def _nights_again(world: World) -> None:
    """Begun with the fires of two nights."""
    fires = {"schedule": full("clean"), "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}
    asked = Reprocess.model_validate({"fires": fires, "concurrency": 2})
    people(world, lambda: reprocess.begin(world.ports, "demo", asked, "tester", "r1"))
    for _ in range(2):
        finish(world)


def _written_again(world: World) -> None:
    """The flag of a day is put twice, an hour apart, in a dataset that counts that."""
    document = {**flights({})["datasets"]["flights"], "rewritten": "again"}
    people(world, lambda: store.put(world.ports, "dataset", "demo.flights", document, "tester"))
    _first_time(world)
    _repaired(world)  # else the second flag would join what waits for the first
    _first_time(world)


def _dag_again(world: World) -> None:
    """A DAG of two nodes, and a schedule that waits for the workflow of the second."""
    people(world, lambda: dags.put(world, GRAPH))
    _first_time(world)
    _repaired(world)
    _begin(world)
    for _ in range(2):
        finish(world)
        passes(world, "1m")


def _nothing_waits(world: World) -> bool:
    return [world.jobs(name) for name in CHAIN] == [[], []]


def _cancelled(world: World) -> None:
    _first_time(world)
    _begin(world)
    people(world, lambda: reprocess.stop(world.ports, "demo", _id(world), True, "tester"))
    finish(world)


def _id(world: World) -> str:
    [row] = world.ports.jobs.reprocesses("demo")
    return row.id


def _is(*ends: tuple[str, ...], entries: int = 1) -> Any:
    """The re-processing has one of these ends: its state, and those of its steps, of so many entries at most. Each
    entry ran once; no job waits."""

    def holds(world: World) -> bool:
        view = reprocess_view.reprocess_view(world.ports, reprocess.existing(world.ports, "demo", _id(world)))
        answer = (view["state"], *(step["state"] for step in view["steps"]))
        assert answer in ends, view
        assert [world.jobs(name) for name in CHAIN] == [[], []]
        ran = [run.backfill for name in CHAIN for run in world.runs(name) if run.backfill and run.state != "ABORTED"]
        assert max(Counter(ran).values(), default=0) <= entries, ran
        return True

    return holds


REPROCESSED = {
    "a DAG that is processed again, with what follows a node": Scenario(
        {"join": after("join", "join", by=BY_DAY) | {"workflow": "notify"}},
        _dag_again,
        [({"daily~": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        messages=2,
        holds=_is(("DONE", "succeeded", "succeeded")),
    ),
    "a partition that is processed again, with its join": Scenario(
        CHAIN,
        _again,
        [({"clean": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        holds=_is(("DONE", "succeeded", "succeeded")),
    ),
    "a run that is processed again, with its join": Scenario(
        CHAIN,
        _run_again,
        [({"clean": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        holds=_is(("DONE", "succeeded", "succeeded")),
    ),
    "two nights that are processed again, with their joins": Scenario(
        {"clean": at("0 2 * * *"), "join": after("clean", "join")},
        _nights_again,
        [({"clean": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        holds=_is(("DONE", "succeeded", "succeeded"), entries=2),
    ),
    "a day whose data is written again": Scenario(
        CHAIN,
        _written_again,
        [({"clean": ["SUCCEEDED"] * 2, "join": ["SUCCEEDED"] * 2}, 4)],
        holds=_nothing_waits,
    ),
    "a partition whose second time fails": Scenario(
        CHAIN,
        _fails,
        # If the tables were busy, the first run may come after that of the re-processing.
        [
            ({"clean": states, "join": ["SUCCEEDED"]}, 3)
            for states in (["SUCCEEDED", "FAILED"], ["FAILED", "SUCCEEDED"])
        ],
        outcome=_second_fails,
        holds=_is(("FAILED", "failed", "skipped")),
    ),
    "a re-processing that is cancelled with its runs": Scenario(
        CHAIN,
        _cancelled,
        # Killed in between: the run was not started yet, or had ended when its cancel was requested. Busy tables: the
        # first run came after it.
        [
            ({"clean": ["SUCCEEDED", "CANCELLED"], "join": ["SUCCEEDED"]}, 3),
            ({"clean": ["SUCCEEDED", "CANCELLED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["CANCELLED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3),
            ({"clean": ["SUCCEEDED", "ABORTED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["SUCCEEDED"], "join": ["SUCCEEDED"]}, 2),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED", "CANCELLED"]}, 4),
            ({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED", "SUCCEEDED"]}, 4),
        ],
        holds=_is(
            ("CANCELLED", "cancelled", "cancelled"),
            ("CANCELLED", "succeeded", "cancelled"),
            ("CANCELLED", "succeeded", "succeeded"),
            ("DONE", "succeeded", "succeeded"),
        ),
    ),
}
