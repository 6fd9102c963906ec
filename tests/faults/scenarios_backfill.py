"""Backfills, for `test_crash_points.py` (L12): no entry is left out, and none runs twice."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.schedule import ScheduleState
from tests.faults.dying import End, Scenario, finish, passes, people, upload
from tests.faults.scenarios_gathered import HALVES, parts_of, per_day
from tests.support import backfills
from tests.support.backfills import about
from tests.support.crash import lost, redelivered
from tests.support.fakes import EmrRun
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, full

FIVE_DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-06T00:00:00Z"}
THREE_DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-04T00:00:00Z"}
NIGHTLY = "0 2 * * *"


def _begin(world: World, name: str, **fields: Any) -> None:
    people(world, lambda: backfills.begin(world, name, **fields))


def _id(world: World, name: str) -> str:
    [row] = world.ports.jobs.backfills(full(name))
    return row.id


def _all_days(world: World) -> None:
    _begin(world, "nightly", **FIVE_DAYS, concurrency=2)
    for _ in range(3):
        finish(world)


def _retried(world: World) -> None:
    """Each first attempt fails; the second succeeds."""
    _begin(world, "nightly", **THREE_DAYS, order="newest", concurrency=2)
    for _ in range(2):
        finish(world, _first_fails)
        passes(world, "31s", "1s")
        finish(world, _first_fails)


def _first_fails(run: EmrRun) -> str:
    return "FAILED" if run.name.endswith("-1") else "SUCCESS"


def _partitions(world: World) -> None:
    """The trigger's own jobs are under the same limit. The third one is in flight when the backfill begins, which
    leaves it alone (L23)."""
    for number in (1, 2, 3):
        upload(world, number)
    finish(world)
    people(world, lambda: _unless_all_in_flight(world))
    for _ in range(3):
        finish(world)


def _unless_all_in_flight(world: World) -> None:
    """Begin a backfill. It is refused if nothing is left to run, and a user accepts that."""
    try:
        backfills.begin(world, "clean", partitions={}, concurrency=3)
    except SluiceError as error:
        assert "not in flight" in error.message, error


def _days(world: World) -> None:
    """Two days of halves, which came while the schedule was disabled."""
    for day, hour in product((1, 2), ("00", "12")):
        redelivered(lambda folder=f"dt=2026-02-0{day}/hour={hour}": world.upload(f"raw/halves/{folder}/part-0", size=5))
    world.settle(lost)
    _begin(world, "whole", partitions={"from": {"day": "2026-02-01"}, "to": {"day": "2026-02-03"}})
    for _ in range(2):
        finish(world)


def _is_whole_with_halves(world: World) -> bool:
    return parts_of(world, "whole") == [2, 2] and bool(_is_whole("whole", 2)(world))


def _cancelled(world: World) -> None:
    _begin(world, "nightly", **FIVE_DAYS, concurrency=3)
    people(world, lambda: backfills.stop(world, "nightly", _id(world, "nightly"), runs=True))
    finish(world)


def _deleted(world: World) -> None:
    _begin(world, "nightly", **FIVE_DAYS, concurrency=2)
    people(world, lambda: _gone(world))
    finish(world)


def _gone(world: World) -> None:
    """Delete the schedule unless it is deleted. A second delete is refused, and a user whose first request was killed
    accepts that.
    """
    schedule_state = world.ports.rows.get(ScheduleState, full("nightly"))
    if schedule_state is None or schedule_state.exists:
        world.delete("nightly")


def _enabled_on_the_way(world: World) -> None:
    _begin(world, "nightly", **THREE_DAYS, concurrency=2)
    people(world, lambda: world.enable("nightly"))
    for _ in range(3):
        finish(world)


def _is_whole(name: str, total: int, state: str = "DONE") -> Any:
    """Each entry ran once, the backfill has recorded it, and no more runs were active than ``concurrency`` allows."""

    def holds(world: World) -> bool:
        [row] = world.ports.jobs.backfills(full(name))
        runs = [run for run in world.runs(name) if run.backfill == row.id]
        backfills.check(row, runs)
        answer = backfills.counts(world, name, row.id)
        succeeded = sorted(about(run) for run in runs if run.state == "SUCCEEDED")
        assert (row.state, row.live, row.wake_at) == (state, {}, None), row
        assert answer == {"succeeded": total}, answer
        assert len(set(succeeded)) == len(succeeded) == total, succeeded
        return True

    return holds


def _leaves_alone(world: World) -> bool:
    """The backfill has run each of the three partitions that was not in flight when it began."""
    rows = world.ports.jobs.backfills(full("clean"))
    if not rows:
        return len(world.runs("clean")) == 3
    [row] = rows
    assert row.total + row.left_alone == 3, row
    assert {about(run) for run in world.runs("clean") if run.backfill == row.id}.isdisjoint(row.in_flight)
    return bool(_is_whole("clean", row.total)(world))


def _is_over(state: str) -> Any:
    def holds(world: World) -> bool:
        [row] = world.ports.jobs.backfills(full("nightly"))
        backfills.check(row, world.runs("nightly"))
        answer = backfills.counts(world, "nightly", row.id)
        assert (row.state, row.live, row.wake_at) == (state, {}, None), row
        assert set(answer) <= {"succeeded", "cancelled"}, answer
        return True

    return holds


def _goes_on(world: World) -> bool:
    """Every day has run, but a run that was active under the closed schedule state was cancelled, on record."""
    [row] = world.ports.jobs.backfills(full("nightly"))
    backfills.check(row, world.runs("nightly"))
    answer = backfills.counts(world, "nightly", row.id)
    cancelled = [run for run in world.runs("nightly") if run.state == "CANCELLED"]
    assert row.state == "DONE", row
    assert (answer["succeeded"], answer.get("cancelled", 0)) == (3 - len(cancelled), len(cancelled)), answer
    return True


def _ends(most: int, *states: str) -> list[End]:
    """All ends of up to ``most`` runs in these states, none started twice by EMR. `holds` checks the rest."""
    ends = [list(each) for count in range(most + 1) for each in product(states, repeat=count)]
    return [({"nightly": end}, sum(state != "ABORTED" for state in end) - missed) for end in ends
            for missed in range(end.count("CANCELLED") + 1)]  # fmt: skip


def _orders(*states: str) -> list[End]:
    """Three of each state, in any order: runs that were claimed at one instant are listed by their ids."""
    return [({"nightly": list(end)}, 6) for end in sorted(set(permutations([*states] * 3)))]


BACKFILLED = {
    "a backfill of five days, two at a time": Scenario(
        {"nightly": at(NIGHTLY)},
        _all_days,
        [({"nightly": ["SUCCEEDED"] * 5}, 5)],
        holds=_is_whole("nightly", 5),
    ),
    "a backfill whose runs need a second attempt": Scenario(
        {"nightly": at(NIGHTLY, "twice")},
        _retried,
        [
            ({"nightly": [*["RETRYING"] * 2, *["SUCCEEDED"] * 2, "RETRYING", "SUCCEEDED"]}, 6),
            *_orders("RETRYING", "SUCCEEDED"),
        ],
        outcome=_first_fails,
        holds=_is_whole("nightly", 3),
    ),
    "a backfill of partitions at a limit of runs": Scenario(
        {"clean": partitions(by=["day"], **at_most(2))},
        _partitions,
        # Killed before: the others may be in flight, too.
        [({"clean": ["SUCCEEDED"] * count}, count) for count in (5, 4, 3)],
        holds=_leaves_alone,
    ),
    "a backfill of days by their halves": Scenario(
        {"whole": per_day(enabled=False)},
        _days,
        [({"whole": ["SUCCEEDED"] * 2}, 2)],
        holds=_is_whole_with_halves,
        datasets=HALVES,
    ),
    "a backfill that is cancelled with its runs": Scenario(
        {"nightly": at(NIGHTLY, **at_most(2))},
        _cancelled,
        # Killed in between: fewer runs had been started, or some had ended when their cancel was requested.
        [({"nightly": ["CANCELLED"] * 2}, 2), *_ends(3, "SUCCEEDED", "CANCELLED", "ABORTED")],
        holds=_is_over("CANCELLED"),
    ),
    "a backfill whose schedule is deleted": Scenario(
        {"nightly": at(NIGHTLY, **at_most(1))},
        _deleted,
        # Killed between the start call and the record of its answer: the run is found active, and cancelled.
        [({"nightly": ["SUCCEEDED"]}, 1), *_ends(2, "SUCCEEDED", "CANCELLED", "ABORTED")],
        holds=_is_over("ENDED"),
    ),
    "a backfill whose schedule is enabled on the way": Scenario(
        {"nightly": at(NIGHTLY, **at_most(1), enabled=False)},
        _enabled_on_the_way,
        # Killed in between: a run that had not been started is withdrawn, and another run does its day.
        [({"nightly": ["SUCCEEDED"] * 3}, 3), *_ends(5, "SUCCEEDED", "CANCELLED", "ABORTED")],
        holds=_goes_on,
    ),
}
