"""The basic scenarios for `test_crash_points.py`: partitions, fires, retries, closings, deployments."""

from __future__ import annotations

from typing import Any

from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.writes import JoinQueue
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.writes import Create
from chalicelib.flow.system import sweep
from tests.faults.dying import Scenario, finish, passes, people, tick, upload
from tests.support.crash import lost, redelivered
from tests.support.fakes import EmrRun
from tests.support.schedules import BY_DAY
from tests.support.world import EMR, World, day, flights

ONE_AT_A_TIME = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}]
PARTITION: dict[str, Any] = {"type": "partition", "dataset": "flights"}
CLEAN: dict[str, Any] = {
    "workflow": "clean",
    "enabled": True,
    "trigger": PARTITION,
    "by": BY_DAY,
    "constraints": ONE_AT_A_TIME,
}
JOIN = {
    "workflow": "join",
    "enabled": True,
    "by": BY_DAY,
    "trigger": {
        "type": "all",
        "triggers": [
            {"type": "program_status", "workflow": "clean"},
            {"type": "partition", "dataset": "weather"},
        ],
    },
}
# Its jobs have no instant to wake at: only a request that closes the schedule can delete them.
NEVER_MET = {**CLEAN, "trigger": {**PARTITION, "count": 2}, "timeout": "never"}
# One fire within the time that the test lets pass: 2 March 2026, 12:01 is the only one of that day.
ONCE = {"type": "time", "expression": "1 12 2 3 *"}


def _gather_and_join(world: World) -> None:
    redelivered(lambda: world.upload("raw/flights/_SUCCESS"))  # in no partition
    for number in (1, 2):
        redelivered(lambda number=number: world.upload(day(number)))
    world.settle(lost)
    finish(world)
    upload(world, 1, "weather", "x.csv")


def _fail_once(world: World) -> None:
    upload(world, 1)
    finish(world, _first_fails)
    world.clock.pass_by("40s")
    world.settle(lost)
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _fires(world: World) -> None:
    world.clock.pass_by("20s")
    tick(world)
    for _ in range(5):
        world.clock.pass_by("20s")
        world.settle(lost)


def _disable_with_an_unheard_start(world: World) -> None:
    world.targets.emr.lose_answers = 1
    upload(world, 1)
    people(world, lambda: world.disable("clean"))
    world.clock.pass_by("3m")  # longer than the lease of the call
    lost(lambda: sweep.sweep_all(world.ports))
    world.settle(lost)


def _disable_with_a_queue(world: World) -> None:
    for number in (1, 2, 3):
        redelivered(lambda number=number: world.upload(day(number)))
    world.settle(lost)
    redelivered(lambda: world.disable("clean"))
    people(world, lambda: world.disable("never"))


def _deploy_run_and_replace(world: World) -> None:
    schedules = {"clean": CLEAN, "late": {**CLEAN, "workflow": "join", "enabled": False}}
    redelivered(lambda: world.deploy(flights(schedules, extra={"target": EMR})))
    redelivered(lambda: world.deploy(flights(schedules)))  # the workflow that no schedule uses is deleted again
    people(world, lambda: world.run_now("late"))
    finish(world)
    redelivered(lambda: world.enable("late"))
    redelivered(lambda: world.put("late", {**CLEAN, "workflow": "join", "properties": {"new": True}, "enabled": False}))
    upload(world, 1)


def _orphan_in_a_queue(world: World) -> None:
    """A waiter row without its job. No code writes one, and it must not block the queue for ever."""
    upload(world, 1)
    ask, now = Slots("workflow:demo.flights.clean", 1), world.clock.now()
    orphan = Waiter(ask.limit_name, "0#orphan", "demo.flights.clean", 1, "GATHERING", "demo.flights.clean.1.nobody")
    redelivered(lambda: world.ports.ledger.commit([JoinQueue(ask, now, now), Create(orphan)]))
    upload(world, 2)
    finish(world)


def _first_fails(run: EmrRun) -> str:
    return "FAILED" if run.name.endswith("-1") else "SUCCESS"


def _first_is_scheduled(run: EmrRun) -> str:
    return run.state if run.name.endswith("-1") else "SUCCESS"


def _stays_scheduled(world: World) -> None:
    upload(world, 1)
    passes(world, "4m", "2m")


BASIC = {
    "partitions, a queue for one slot, and a join by day": Scenario(
        {"clean": CLEAN, "join": JOIN},
        _gather_and_join,
        [({"clean": ["SUCCEEDED", "SUCCEEDED"], "join": ["SUCCEEDED"]}, 3)],
    ),
    "a run that fails and is attempted again": Scenario(
        {"clean": {**CLEAN, "workflow": "twice"}},
        _fail_once,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 2)],
        outcome=_first_fails,
    ),
    "a run that does not begin, and is attempted again": Scenario(
        {"clean": {**CLEAN, "workflow": "slow"}},
        _stays_scheduled,
        [({"clean": ["RETRYING", "SUCCEEDED"]}, 2)],
        outcome=_first_is_scheduled,
        workflows={"slow": {"target": EMR, "start_timeout": "5m", "retries": {"attempts": 2, "delay": "30s"}}},
    ),
    "one fire each to a queue, to EMR, and to a trigger of two leaves": Scenario(
        {
            "message": {"workflow": "notify", "enabled": True, "trigger": ONCE},
            "nightly": {"workflow": "clean", "enabled": True, "trigger": ONCE, "constraints": ONE_AT_A_TIME},
            "either": {"workflow": "join", "enabled": True, "trigger": {"type": "any", "triggers": [ONCE, PARTITION]}},
        },
        _fires,
        [({"message": ["SUCCEEDED"], "nightly": ["SUCCEEDED"], "either": ["SUCCEEDED"]}, 2)],
        messages=1,
    ),
    "a disable while a start call is unanswered": Scenario(
        {"clean": {**CLEAN, "by": []}},
        _disable_with_an_unheard_start,
        # Killed before the start call: nothing runs. Killed after it: the run is found and cancelled.
        [({"clean": ["CANCELLED"]}, 1), ({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0)],
    ),
    "a disable while jobs wait in a queue": Scenario(
        {"clean": CLEAN, "never": NEVER_MET},
        _disable_with_a_queue,
        # Killed between the start call and the record of its answer: the run is active under a closed schedule state,
        # and is cancelled.
        [({"clean": [state]}, 1) for state in ("SUCCEEDED", "CANCELLED")]
        + [({"clean": ["ABORTED"]}, 0), ({"clean": []}, 0)],
    ),
    "a place in a queue that belongs to nobody": Scenario(
        {"clean": CLEAN},
        _orphan_in_a_queue,
        [({"clean": ["SUCCEEDED", "SUCCEEDED"]}, 2)],
    ),
    "a deployment, an enable, a run now and a replacement": Scenario(
        {},
        _deploy_run_and_replace,
        # Enabling begins a new generation: a run-now that a kill delayed until then is dropped, on record.
        [({"clean": ["SUCCEEDED"], "late": late}, 1 + len(late)) for late in (["SUCCEEDED"], [])]
        + [({"clean": ["SUCCEEDED"], "late": ["ABORTED"]}, 1), ({"clean": ["SUCCEEDED"], "late": ["CANCELLED"]}, 2)],
    ),
}
