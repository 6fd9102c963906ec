"""Moments of active and ended runs: a lease of a worker, an end to come, a retry, a backfill, a DAG."""

from __future__ import annotations

from typing import Any

from chalicelib.flow.backfills import backfill
from chalicelib.flow.dags import actions as dag_flow
from chalicelib.flow.runs import actions
from tests.faults.meetings import closings
from tests.faults.meetings.acts import (
    TICK,
    cancel_run,
    check_place,
    complete,
    fails_to,
    forget_hints,
    passes,
    poll_run,
    rerun,
    run_now,
    settle,
    uploads,
    withdrawing,
)
from tests.faults.meetings.situation import Act, Do, Situation, come_to_rest
from tests.faults.meetings.situations_queues import BY_DAY, keep_job, made
from tests.support import backfills, dags
from tests.support.dags import dag
from tests.support.pull_workers import POOL, PULLED, PullWorker
from tests.support.schedules import at, at_most, partitions
from tests.support.world import EMR, World, flights, full

# -- a worker holds a lease --------------------------------------------------------------------------------------------

PULLS = {"target": PULLED, "retries": {"attempts": 2, "delay": "10s"}}
FIRED = {"workflow": "pulled", "enabled": True, "trigger": {"type": "time", "expression": "1 12 2 3 *"}}


def worker(world: World, name: str) -> PullWorker:
    return PullWorker(world, name, world.outside.kept.setdefault(name, []))


def _claims(name: str) -> Act:
    return Act(lambda world: worker(world, name).claim(), alone=True)


def _with_lease(what: str) -> Act:
    return Act(lambda world: getattr(worker(world, "ann"), what)())


def _work_off(world: World) -> None:
    """A worker does the remaining work: the one with the lease, or one that claims it."""
    for _ in range(6):
        worker(world, "bob").claim(10)
        for name in ("ann", "bob"):
            for place in range(len(worker(world, name).leases)):
                fails_to(lambda world, name=name, place=place: worker(world, name).succeed(place))(world)
        world.pass_by("2m")
    assert world.ports.jobs.offers(POOL, 10) == (), "work that no worker took"


def _pulled(*steps: Do) -> World:
    return made(flights({"daily": FIRED}, pulled=PULLS), lambda world: world.pass_by("2m"), *steps)


OFFERED = Situation(
    build=lambda: _pulled(forget_hints),
    acts={
        "ann claims": _claims("ann"),
        "bob claims": _claims("bob"),
        "disable": Act(lambda world: world.disable("daily"), alone=True),
        "cancel": cancel_run(),
        "poll": poll_run(),
        "tick": TICK,
    },
    rest=_work_off,
    small=("ann claims", "bob claims", "cancel"),
)

LEASED = Situation(
    build=lambda: _pulled(lambda world: worker(world, "ann").claim(), passes("20s"), forget_hints),
    acts={
        "heartbeat": _with_lease("beat"),
        "succeed": _with_lease("succeed"),
        "fail": _with_lease("fail"),
        "release": _with_lease("release"),
        "bob claims": _claims("bob"),
        "disable": Act(lambda world: world.disable("daily"), alone=True),
        "cancel": cancel_run(),
        "poll": poll_run(),
    },
    rest=_work_off,
    spans=("~6s", "~65s"),
    small=("succeed", "release", "cancel"),
)

EXPIRED = Situation(
    build=lambda: _pulled(lambda world: worker(world, "ann").claim(), passes("3m"), forget_hints),
    acts={**{name: LEASED.acts[name] for name in ("heartbeat", "succeed", "release", "poll")}, "tick": TICK},
    rest=_work_off,
)

# -- a run is active, has ended, or has failed and waits for its next attempt ------------------------------------------

TWICE = {"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}


def _daily(*steps: Do, **fields: Any) -> World:
    made_of = partitions(workflow="twice", by=["day"], **fields)
    return made(flights({"daily": made_of}, twice=TWICE), uploads(1), settle, *steps)


LIVING = Situation(
    build=lambda: _daily(passes("1s"), forget_hints),
    acts={
        "succeed": complete(),
        "fail": complete("FAILED"),
        "run": complete("RUNNING"),
        "cancel": cancel_run(),
        "poll": poll_run(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "put": closings.put(BY_DAY),
        "rerun": rerun(),
        "run now": run_now(),
    },
    small=("fail", "cancel", "poll"),
)

RETRYING = Situation(
    build=lambda: _daily(lambda world: world.finish("FAILED"), settle, keep_job(), passes("31s"), forget_hints),
    acts={
        "check": check_place(),
        "withdraw": withdrawing(),
        "disable": closings.disable(),
        "delete": closings.delete(),
        "hold": closings.hold(),
        "carry": closings.carry(partitions(workflow="twice", by=["day"])),
        "cancel": cancel_run(),
        "rerun": rerun(),
        "tick": TICK,
    },
    small=("check", "withdraw", "disable"),
)

ENDED = Situation(
    build=lambda: made(
        flights({"daily": partitions(by=["day"], **at_most(1))}),
        uploads(1), settle, lambda world: world.finish(), settle, passes("1s"), forget_hints,
    ),
    acts={
        "rerun": rerun(),
        "rerun otherwise": rerun("once more"),
        "run now": run_now(),
        "disable": closings.disable(),
        "put": closings.put(BY_DAY),
        "carry": closings.carry(BY_DAY),
        "hold": closings.hold(),
    },
    small=("rerun", "run now", "disable"),
)  # fmt: skip

# -- a backfill is active ----------------------------------------------------------------------------------------------

NIGHTLY = at("0 2 * * *", **at_most(2))
FIVE_DAYS = {"from_": "2026-01-01T00:00:00Z", "to": "2026-01-06T00:00:00Z"}


def _begin(world: World) -> None:
    world.outside.kept["backfill"] = backfills.begin(world, "daily", **FIVE_DAYS, concurrency=3)


def _check_backfill(world: World) -> None:
    backfill.advance(world.ports, full("daily"), world.outside.kept["backfill"])


def _stop(runs: bool) -> Act:
    """After the acknowledgement, only entries that are already runs may start."""
    return closings.closing(
        lambda world: backfills.stop(world, "daily", world.outside.kept["backfill"], runs), "claimed"
    )


BACKFILL = Situation(
    build=lambda: made(flights({"daily": NIGHTLY}), _begin, settle, passes("1s"), keep_job(), forget_hints),
    acts={
        "poll": Act(_check_backfill),
        "complete": complete(),
        "check": check_place(),
        "stop": _stop(runs=False),
        "stop with its runs": _stop(runs=True),
        "withdraw": withdrawing(),
        "disable": Act(lambda world: world.disable("daily"), alone=True),
        "delete": closings.delete(),
        "put": closings.put(NIGHTLY),
        "hold": Act(lambda world: world.pause("daily"), alone=True),
        "tick": TICK,
    },
    small=("poll", "complete", "stop"),
)

# -- a DAG runs --------------------------------------------------------------------------------------------------------

CHAIN = dag("a -> b")


def _again(what: str, request: str) -> Do:
    return lambda world: dags.rerun(world, what, "a" if what != "all" else None, request)


def _dag(*steps: Do) -> World:
    return made(dags.app(CHAIN, w_c={"target": EMR}), uploads(1), settle, *steps, passes("1s"), forget_hints)


def _dag_rests(world: World) -> None:
    come_to_rest(world)
    left = [job for each in dag_flow.owned(world.ports, full("daily")) for job in world.jobs(each)]
    assert left == [], "a node that waits for ever"
    for view in dags.views(world):
        assert view["state"] in ("SUCCEEDED", "FAILED"), view["state"]


def _cancel_node(world: World) -> None:
    name = world.targets.emr.runs["jr00001"].name
    actions.cancel(world.ports, name.rpartition("-")[0], "tester")


def _of_a_dag() -> dict[str, Act]:
    return {
        "delete": Act(lambda world: dag_flow.delete(world.ports, full("daily"), "tester"), alone=True),
        "other graph": Act(lambda world: dags.put(world, dag("a -> c")), alone=True),
        "rerun": Act(_again("all", "r1")),
        "rerun from a": Act(_again("from", "r2")),
    }


DAG = Situation(
    build=_dag,
    acts={"ends": complete(), "fails": complete("FAILED"), "cancel": Act(_cancel_node), **_of_a_dag()},
    rest=_dag_rests,
    awake=False,  # the timer of a node that is no longer in the graph stays until its schedule has ended
    check_rest=lambda world: None,
)

DAG_FAILED = Situation(
    build=lambda: _dag(lambda world: dags.ends(world, "a", "FAILED")),
    acts=_of_a_dag(),
    rest=_dag_rests,
    awake=False,  # the timer of a node that is no longer in the graph stays until its schedule has ended
    check_rest=lambda world: None,
)
