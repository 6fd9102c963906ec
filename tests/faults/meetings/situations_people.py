"""Two invocations that meet while a user pauses, resumes or updates a schedule, and the expected result.

`situations_rules.py` has those that meet at a rule. No time passes between the calls: the outcome would vary with it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.queue import serve
from tests.faults.dying import SMALL
from tests.faults.meetings.situation import Act as Invocation
from tests.faults.meetings.situation import Played, Situation
from tests.faults.meetings.situations_queues import made
from tests.faults.scenarios_basic import ONE_AT_A_TIME
from tests.support.schedules import at, partitions
from tests.support.world import World, day, flights

Act = Callable[[World], Any]
LIMIT = "workflow:demo.flights.clean"


@dataclass(frozen=True)
class Crossing:
    """``expect`` gives the run states of each schedule that are right at rest, oldest first."""

    schedules: dict[str, Any]
    before: Act
    first: Act
    second: Act
    expect: Callable[[dict[str, list[str]]], bool]
    after: Act = lambda world: None
    tuned: dict[str, Any] = field(default_factory=lambda: dict(SMALL))

    def situation(self) -> Situation:
        def finally_(played: Played) -> None:
            ends = {name: [run.state for run in played.world.runs(name)] for name in self.schedules}
            assert self.expect(ends), f"{ends} is not right"

        return Situation(
            build=lambda: made(flights(self.schedules), self.before, **self.tuned),
            acts={"first": Invocation(self.first), "second": Invocation(self.second)},
            together=[("first", "second")],
            after=lambda world: [world.settle(), self.after(world)],
            finally_=finally_,
            accepts=False,  # a fire may be one event of many, and no run by itself
            spans=(),
        )


def uploads(*days: int) -> Act:
    return lambda world: [world.upload(day(number)) for number in days]


def check(name: str, index: int = 0) -> Act:
    """The check of a waiting job, as a hint causes it."""

    def act(world: World) -> None:
        jobs = world.jobs(name)
        if len(jobs) > index:
            check_job(world.ports, (jobs[index].schedule, jobs[index].generation, jobs[index].sort_key))

    return act


def then(*acts: Act) -> Act:
    return lambda world: [act(world) for act in acts]


def unless_complete(act: Act) -> Act:
    """Pause a schedule. The pause may be refused if the last fire is already prepared."""

    def maybe(world: World) -> None:
        with suppress(SluiceError):
            act(world)

    return maybe


def settle(world: World) -> None:
    world.settle()


def passes(span: str) -> Act:
    return lambda world: world.clock.pass_by(span)


def put(name: str, document: dict[str, Any]) -> Act:
    return lambda world: world.put(name, document)


def ends(job_run_id: str = "jr00001", state: str = "SUCCESS") -> Act:
    return lambda world: world.emr_says(job_run_id, state)


def serving(world: World) -> None:
    serve(world.ports, LIMIT)


def emitting(world: World) -> None:
    emit.emit_due(world.ports)


def succeeded(**counts: int) -> Callable[[dict[str, list[str]]], bool]:
    return lambda ends: ends == {name: ["SUCCEEDED"] * count for name, count in counts.items()}


def either(**counts: tuple[int, ...]) -> Callable[[dict[str, list[str]]], bool]:
    return lambda ends: all(
        set(ends[name]) <= {"SUCCEEDED"} and len(ends[name]) in allowed for name, allowed in counts.items()
    )


DAILY = partitions(constraints=ONE_AT_A_TIME)
BY_DAY_ONE = partitions(by=["day"], constraints=ONE_AT_A_TIME)
NEW = {"properties": {"new": True}, "on_update": "carry"}


def disable(world: World) -> None:
    world.disable("daily")


def hold(world: World) -> None:
    world.pause("daily")


def backlog(world: World) -> None:
    world.pause("daily", "backlog")


def drain(world: World) -> None:
    world.pause("daily", "drain")


def resume(world: World) -> None:
    world.resume("daily")


PEOPLE_CROSS = {
    "a check, and the end of the run before": Crossing(
        {"daily": BY_DAY_ONE}, then(uploads(1), settle, uploads(2)), check("daily"), ends(), succeeded(daily=2)
    ),
    "a check, and a hold": Crossing({"daily": DAILY}, uploads(1), check("daily"), hold, succeeded(daily=1), resume),
    "a check, and a resume": Crossing(
        {"daily": DAILY}, then(uploads(1), hold), check("daily"), resume, succeeded(daily=1)
    ),
    "a check of a job by day, and a resume": Crossing(
        {"daily": BY_DAY_ONE}, then(uploads(1), hold), check("daily"), resume, succeeded(daily=1)
    ),
    "a check of a fire, and a resume": Crossing(
        {"daily": at("1 12 2 3 *", constraints=ONE_AT_A_TIME)},
        then(hold, emitting, passes("61s")),
        check("daily"),
        resume,
        succeeded(daily=1),
    ),
    "a serving of the queue, and a resume": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2), settle, hold, ends(), passes("1s")),
        serving,
        resume,
        succeeded(daily=2),
    ),
    "a check, and a drain": Crossing({"daily": DAILY}, uploads(1), check("daily"), drain, succeeded(daily=1), resume),
    "an event, and a drain": Crossing(
        {"daily": partitions(2)}, uploads(1), uploads(2), drain, either(daily=(0, 1)), resume
    ),
    "an event by day, and a drain": Crossing(
        {"daily": partitions(2, by=["month"])}, uploads(1), uploads(2), drain, either(daily=(0, 1)), resume
    ),
    "an event, and a resume out of a drain": Crossing(
        {"daily": partitions()}, drain, uploads(1), resume, either(daily=(0, 1))
    ),
    "an event, and a backlog": Crossing(
        {"daily": DAILY}, uploads(1), uploads(2), backlog, either(daily=(1, 2)), resume
    ),
    "two events in a backlog": Crossing({"daily": DAILY}, backlog, uploads(1), uploads(2), succeeded(daily=2), resume),
    "a check, and an update that carries": Crossing(
        {"daily": DAILY}, uploads(1), check("daily"), put("daily", {**DAILY, **NEW}), succeeded(daily=1)
    ),
    "an event, and an update that carries": Crossing(
        {"daily": partitions(2)}, uploads(1), uploads(2), put("daily", {**partitions(2), **NEW}), succeeded(daily=1)
    ),
    "two updates that carry": Crossing(
        {"daily": partitions(2)},
        uploads(1),
        put("daily", {**partitions(2), **NEW}),
        put("daily", {**partitions(2), **NEW, "properties": {"new": 2}}),
        succeeded(daily=1),
        uploads(2),
    ),
    "a serving of the queue, and an update without the limit": Crossing(
        {"daily": BY_DAY_ONE},
        then(uploads(1), settle, uploads(2), settle),
        serving,
        put("daily", {**BY_DAY_ONE, "constraints": [], **NEW}),
        succeeded(daily=2),
    ),
    "a run-now, and an enable": Crossing(
        {"daily": {**DAILY, "enabled": False}},
        lambda world: None,
        lambda world: world.run_now("daily"),
        lambda world: world.enable("daily"),
        either(daily=(0, 1)),
    ),
}
