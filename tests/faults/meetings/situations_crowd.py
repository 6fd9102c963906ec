"""A moment in which everything goes on at once, for the pairs of acts that no other situation has.

A pool is full: of an active run, of a run whose start call was throttled, and of two runs of workers. A job waits for
it, and so does a job of a backfill. A run has ended, a message is due, and another one is a dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import Any

from chalicelib.core.limits.names import pool_limit
from chalicelib.core.targets.answers import Never, NotNow
from chalicelib.flow.fires import emit
from tests.faults.meetings import closings
from tests.faults.meetings import situations_deliveries as deliveries
from tests.faults.meetings import situations_queues as queues
from tests.faults.meetings import situations_runs as runs
from tests.faults.meetings.acts import (
    cancel_run,
    check,
    check_place,
    define,
    fails_to,
    forget_hints,
    passes,
    redrive,
    rerun,
    serving,
    start,
    uploads,
    withdrawing,
)
from tests.faults.meetings.situation import Act, Do, Situation, at_rest, come_to_rest
from tests.support import backfills
from tests.support.pull_workers import PULLED
from tests.support.schedules import at, partitions
from tests.support.world import EMR, World, flights

# What an act is, whichever situation it is in. A pair of these meets somewhere, or `APART` says why it cannot.
KINDS = (
    "serve", "check", "claim", "launch", "withdraw", "complete", "deliver", "put", "carry", "disable", "cancel", "pool",
    "policy", "rerun", "redrive", "stop", "report",
)  # fmt: skip
APART: Mapping[tuple[str, str], str] = {}

OTHERS: Mapping[str, Situation] = {
    "slot": queues.SLOT, "freed": queues.FREED, "throttled": queues.THROTTLED, "pool": queues.POOL, "cut": queues.CUT,
    "backlog": queues.BACKLOG, "block": queues.BLOCK, "offered": runs.OFFERED, "leased": runs.LEASED,
    "expired": runs.EXPIRED, "living": runs.LIVING, "retrying": runs.RETRYING, "ended": runs.ENDED,
    "backfill": runs.BACKFILL, "dag": runs.DAG, "dag_failed": runs.DAG_FAILED, "fire": deliveries.FIRE,
    "fire_refused": deliveries.FIRE_REFUSED, "fire_unanswered": deliveries.FIRE_UNANSWERED, "batch": deliveries.BATCH,
    "overdue": deliveries.OVERDUE, "overlap": deliveries.OVERLAP, "bundle": deliveries.BUNDLE,
    "bundle_refused": deliveries.BUNDLE_REFUSED, "dead_letter": deliveries.DEAD_LETTER,
    "redriven": deliveries.REDRIVEN,
}  # fmt: skip
# The kinds of the acts that are not named after their kind, by situation.
NAMED: Mapping[str, str] = {
    "check the next": "check", "check one": "check", "carry without the limit": "carry", "shrink": "pool",
    "grow": "pool", "cut": "pool", "cut otherwise": "pool", "cut more": "pool", "slower": "policy", "faster": "policy",
    "rerun otherwise": "rerun", "rerun from a": "rerun", "stop with its runs": "stop", "batch": "deliver",
    "part": "deliver",
    "ann claims": "claim", "bob claims": "claim", "succeed": "complete", "fail": "complete", "run": "complete",
    "ends": "complete", "fails": "complete",
}  # fmt: skip
OF_WORKERS = {"succeed": "report", "fail": "report", "release": "report"}


def kind_of(situation: str, act: str) -> str | None:
    """The kind of an act; None if it is of none, such as a tick."""
    if situation in ("leased", "expired") and act in OF_WORKERS:
        return OF_WORKERS[act]
    if act == "check" and OTHERS[situation] in (*_DELIVERED, deliveries.REDRIVEN):
        return "deliver"
    return act if act in KINDS else NAMED.get(act)


_DELIVERED = (deliveries.FIRE, deliveries.FIRE_REFUSED, deliveries.FIRE_UNANSWERED, deliveries.BATCH)


def met_elsewhere() -> set[tuple[str, str]]:
    """The pairs of kinds that meet in a situation of their own."""
    found = set()
    for name, situation in OTHERS.items():
        for one, other in combinations_with_replacement(situation.acts, 2):
            kinds = kind_of(name, one), kind_of(name, other)
            if None not in kinds and (one != other or not situation.acts[one].alone):
                found.add(_sorted(*kinds))
    return found


def _sorted(one: Any, other: Any) -> tuple[str, str]:
    return (one, other) if KINDS.index(one) <= KINDS.index(other) else (other, one)


def lacking() -> list[tuple[str, str]]:
    """The pairs of kinds that meet in no other situation, and can meet."""
    met = met_elsewhere()
    return [pair for pair in combinations_with_replacement(KINDS, 2) if pair not in met and pair not in APART]


POOLED = {"target": EMR, "pool": "p"}
CALM = {"max_events": 1, "interval": "10s"}
DAILY = partitions(workflow="one", by=["day"], policy="calm")
MESSAGE = at("1 12 2 3 *", "notify", policy="calm")
SCHEDULES: dict[str, Any] = {
    "done": partitions(workflow="one", by=["day"]),
    "active": partitions(workflow="one", by=["day"]),
    "held": partitions(workflow="one", by=["day"]),
    "daily": DAILY,
    "letter": partitions(workflow="notify", dataset="weather"),
    "message": MESSAGE,
    "worked": {"workflow": "pulled", "enabled": True, "trigger": {"type": "time", "expression": "0 0 1 1 *"}},
    "nightly": at("0 2 * * *", "one"),
}
DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-04T00:00:00Z"}


def _only(name: str, *, answers: tuple[Any, ...] = ()) -> Do:
    """One schedule gets the data of the first day; the others have it already, or do not wait for it."""

    def act(world: World) -> None:
        world.enable(name)
        world.targets.emr.answers = list(answers)
        uploads({"done": 1, "active": 2, "held": 3, "daily": 4}[name])(world)
        world.settle()

    return act


def _dead_letter(world: World) -> None:
    world.targets.queue.down = Never("no such queue")
    uploads(1, dataset="weather", name="x.csv")(world)
    world.settle()
    world.targets.queue.down = None
    world.outside.kept["run_id"] = world.runs("letter")[0].run_id


def _close_what_ran(world: World) -> None:
    """Later days of data are for the schedules that come later."""
    world.finish()
    world.settle()


def _workers(world: World) -> None:
    for request in ("r1", "r2"):
        world.run_now("worked", request)
        world.settle()
    runs.worker(world, "ann").claim()


def _keep(world: World) -> None:
    waiting, message = world.jobs("daily")[0], world.jobs("message")[0]
    world.outside.kept |= {
        "job_id": waiting.job_id,
        "job": (waiting.schedule, waiting.generation, waiting.sort_key),
        "message": (message.schedule, message.generation, message.sort_key),
    }


def _backfill(world: World) -> None:
    world.outside.kept["backfill"] = backfills.begin(world, "nightly", **DAYS, concurrency=1)
    world.settle()


def _build() -> World:
    pulled = {"target": PULLED, "pool": "p", "retries": {"attempts": 2, "delay": "10s"}}
    off = {name: {**document, "enabled": name not in ("done", "active", "held", "daily")}
           for name, document in SCHEDULES.items()}  # fmt: skip
    app = {**flights(off, one=POOLED, pulled=pulled), "pools": {"p": {"size": 4}}, "policies": {"calm": CALM}}
    return queues.made(
        app,
        _only("done"), _close_what_ran, _dead_letter, lambda world: world.disable("done"),
        _only("active"), lambda world: world.pause("active"),
        _only("held", answers=(NotNow("throttled"),)), lambda world: world.pause("held"),
        _workers, _only("daily"), _backfill,
        lambda world: emit.emit_due(world.ports), _keep, passes("61s"), forget_hints,
    )  # fmt: skip


def _ends(state: str) -> Act:
    def do(world: World) -> None:
        [made] = [run.id for run in world.targets.emr.runs.values() if ".active." in run.name]
        world.emr_says(made, state)

    return Act(do, alone=True)


def _stop(with_runs: bool) -> Act:
    return Act(lambda world: backfills.stop(world, "nightly", world.outside.kept["backfill"], with_runs), alone=True)


def _reports(what: str) -> Act:
    return Act(lambda world: getattr(runs.worker(world, "ann"), what)())


def _work_off(world: World) -> None:
    """Workers do what is offered, EMR's runs succeed, and paused schedules go on."""
    for name in ("active", "held"):
        fails_to(lambda world, name=name: world.resume(name))(world)
    for _ in range(3):
        come_to_rest(world)
        runs.worker(world, "bob").claim(10)
        for name in ("ann", "bob"):
            for place in range(len(runs.worker(world, name).leases)):
                fails_to(lambda world, name=name, place=place: runs.worker(world, name).succeed(place))(world)
        world.settle()
    fails_to(lambda world: world.disable("nightly"))(world)
    come_to_rest(world)


def _pool(size: int) -> Act:
    return Act(define("pool", "p", {"size": size}), alone=True)


ACTS: dict[str, Act] = {
    "serve": serving(pool_limit("demo.p")),
    "check": check("daily"),
    "claim": Act(lambda world: runs.worker(world, "bob").claim(), alone=True),
    "launch": start("held"),
    "withdraw": withdrawing(),
    "complete": _ends("SUCCESS"),
    "complete as failed": _ends("FAILED"),
    "deliver": check_place("message"),
    "put": closings.put(DAILY),
    "put otherwise": Act(lambda world: world.put("daily", {**DAILY, "priority": 9, "on_update": "drop"}), alone=True),
    "carry": closings.carry(DAILY),
    "carry otherwise": Act(
        lambda world: world.put("daily", {**DAILY, "priority": 9, "on_update": "carry"}), alone=True
    ),
    "disable": closings.disable(),
    "disable again": Act(lambda world: world.disable("daily"), alone=True),
    "cancel": cancel_run("active"),
    "pool": _pool(2),
    "pool otherwise": _pool(9),
    "policy": Act(define("policy", "calm", {"max_events": 1, "interval": "1m"}), alone=True),
    "policy otherwise": Act(define("policy", "calm", {"max_events": 5, "interval": "10s"}), alone=True),
    "rerun": rerun(name="done"),
    "redrive": redrive(),
    "stop": _stop(False),
    "stop with its runs": _stop(True),
    "report": _reports("succeed"),
    "report a failure": _reports("fail"),
}


def _acts_of(one: str, other: str) -> tuple[str, str]:
    """The acts of two kinds that meet. An act that does not meet itself meets another one of its kind."""
    if one != other or not ACTS[one].alone:
        return one, other
    return one, next(name for name in ACTS if name.startswith(f"{one} "))


CROWD = Situation(
    build=_build,
    acts=ACTS,
    together=[_acts_of(*pair) for pair in lacking()],
    rest=_work_off,
    check_rest=at_rest,
)
