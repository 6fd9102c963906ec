"""EMR applications with a limit of runs, for `test_crash_points.py`: slots acquired and released."""

from __future__ import annotations

from tests.faults.dying import Scenario, finish, passes, people, upload
from tests.support.schedules import partitions
from tests.support.world import World

ONE_RUN = {"emr_run_limits": (("00app", 1),)}
SLOW = {"start_burst": 1, "start_rate_per_second": 0.1}


def _one_after_the_other(world: World) -> None:
    """Of three jobs of two workflows one starts, and two queue for the application."""
    upload(world, 1, "weather", "x.csv")
    for number in (1, 2):
        upload(world, number)
    finish(world)
    passes(world, "1m1s")
    finish(world)
    finish(world)


def _leave_the_queue(world: World) -> None:
    """One job runs, one waits for the application. Then its schedule is disabled."""
    for number in (1, 2):
        upload(world, number)
    people(world, lambda: world.disable("a"))


def _with_a_slot_at_the_pace(world: World) -> None:
    """The second job holds a slot of the application while it waits for a start."""
    for number in (1, 2):
        upload(world, number)
    passes(world, "11s", "11s")
    finish(world)


APPLICATIONS = {
    "an application with one run at a time": Scenario(
        {"a": partitions(by=["day"]), "j": partitions(1, "join", "weather", by=["day"], priority=9)},
        _one_after_the_other,
        [({"a": ["SUCCEEDED"] * 2, "j": ["SUCCEEDED"]}, 3)],
        tuned=ONE_RUN,
    ),
    "a disable of who waits for an application": Scenario(
        {"a": partitions(by=["day"])},
        _leave_the_queue,
        [({"a": ["SUCCEEDED"]}, 1), ({"a": ["CANCELLED"]}, 1), ({"a": ["ABORTED"]}, 0), ({"a": []}, 0)],
        tuned=ONE_RUN,
    ),
    "a slot of an application, and the start rate": Scenario(
        {"a": partitions(by=["day"])},
        _with_a_slot_at_the_pace,
        [({"a": ["SUCCEEDED"] * 2}, 2)],
        tuned={**SLOW, "emr_run_limits": (("00app", 2),)},
    ),
}
