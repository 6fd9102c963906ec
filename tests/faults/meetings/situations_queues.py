"""Moments at which jobs and runs queue: for a slot, for the start rate, for a pool, for a policy."""

from __future__ import annotations

from typing import Any

from chalicelib.core import states
from chalicelib.core.limits.names import pool_limit
from chalicelib.core.rows.definition import Definition
from chalicelib.core.targets.answers import NotNow
from tests.faults.dying import SMALL
from tests.faults.meetings import closings
from tests.faults.meetings.acts import (
    TICK,
    cancel_run,
    check,
    complete,
    define,
    forget_hints,
    passes,
    poll_run,
    serving,
    settle,
    start,
    then,
    upload,
    uploads,
    withdrawing,
)
from tests.faults.meetings.situation import Act, Do, Played, Situation
from tests.faults.scenarios_basic import ONE_AT_A_TIME
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

BY_DAY_ONE = partitions(by=["day"], constraints=ONE_AT_A_TIME)
BY_DAY = partitions(by=["day"])
SLOTS, STARTS, POLICY = "workflow:demo.flights.clean", "emr:starts", "policy:demo.calm"


def made(app: dict[str, Any], *steps: Do, **tuned: Any) -> World:
    world = World(**{**SMALL, **tuned})
    world.deploy(app)
    then(*steps)(world)
    return world


def keep_job(name: str = "daily", index: int = 0) -> Do:
    """Keep the job that the acts use, even if others come before it."""

    def keep(world: World) -> None:
        job = world.jobs(name)[index]
        world.outside.kept |= {"job_id": job.job_id, "job": (job.schedule, job.generation, job.sort_key)}

    return keep


def living(world: World, *names: str) -> list[str]:
    """The runs that were claimed and have not ended."""
    return [run.run_id for name in names for run in world.runs(name) if not states.is_terminal(run.state)]


def at_most(most: int, *names: str) -> Any:
    def always(played: Played) -> None:
        alive = living(played.world, *names)
        assert len(alive) <= most, f"{len(alive)} runs at a time, where {most} may be"

    return always


# -- a slot is held, and two jobs wait for it --------------------------------------------------------------------------

SLOT = Situation(
    build=lambda: made(
        flights({"daily": BY_DAY_ONE}),
        uploads(1), settle, uploads(2), settle, passes("1s"), uploads(3), settle, passes("1s"),
        keep_job(), forget_hints,
    ),
    acts={
        "complete": complete(),
        "serve": serving(SLOTS),
        "check": check(),
        "check the next": check(index=1),
        "upload": upload(4),
        "withdraw": withdrawing(),
        "cancel": cancel_run(),
        "carry": closings.carry(BY_DAY_ONE),
        "carry without the limit": closings.carry({**BY_DAY_ONE, "constraints": []}),
        "put": closings.put(BY_DAY_ONE),
        "disable": closings.disable(),
        "hold": closings.hold(),
        "drain": closings.drain(),
        "tick": TICK,
    },
    small=("complete", "serve", "withdraw", "disable"),
)  # fmt: skip

FREED = Situation(
    build=lambda: made(
        flights({"daily": BY_DAY_ONE}),
        uploads(1), settle, uploads(2), settle, passes("1s"), uploads(3), settle, passes("1s"), keep_job(),
        lambda world: world.emr_says("jr00001", "SUCCESS"), passes("1s"), forget_hints,
    ),
    acts={
        "serve": serving(SLOTS),
        "check": check(),
        "upload": upload(4),
        "withdraw": withdrawing(),
        "carry": closings.carry(BY_DAY_ONE),
        "carry without the limit": closings.carry({**BY_DAY_ONE, "constraints": []}),
        "disable": closings.disable(),
        "hold": closings.hold(),
        "tick": TICK,
    },
    small=("serve", "withdraw", "upload"),
)  # fmt: skip

# -- a start call was throttled, and its run queues for the next call --------------------------------------------------


def _throttle(*times: int) -> Do:
    return lambda world: setattr(world.targets.emr, "answers", [NotNow("throttled") for _ in times])


THROTTLED = Situation(
    build=lambda: made(
        flights({"daily": BY_DAY, "other": partitions(workflow="join", dataset="weather", by=["day"])}),
        _throttle(1, 2), uploads(1), settle, passes("3s"), forget_hints,
        start_burst=1, start_rate_per_second=1.0,
    ),
    acts={
        "serve": serving(STARTS),
        "launch": start(),
        "poll": poll_run(),
        "disable": closings.disable(),
        "put": closings.put(BY_DAY),
        "carry": closings.carry(BY_DAY),
        "hold": closings.hold(),
        "cancel": cancel_run(),
        "newcomer": upload(2),
        "other": upload(1, dataset="weather", name="x.csv"),
        "tick": TICK,
    },
    small=("serve", "disable", "cancel"),
)  # fmt: skip

# -- two workflows share a pool ----------------------------------------------------------------------------------------

POOLED = {"target": EMR, "pool": "p"}
BOTH = {name: partitions(1, name, by=["day"]) for name in ("one", "two")}


def _pool(size: int, **shares: int) -> dict[str, Any]:
    return {"size": size, "shares": {f"flights.{name}": {"reserved": count} for name, count in shares.items()}}


def resized(size: int, **shares: int) -> Act:
    """Another size. After the acknowledgement no start exceeds it, while it is the size."""

    def promise(played: Played, actor: int) -> None:
        pool = played.world.ports.rows.get(Definition, "pool", "demo.p")
        if pool is None or pool.document["size"] != size:
            return  # another update came after this one
        before, alive = played.log.ended[actor].noted, living(played.world, "one", "two")
        assert len(alive) <= max(size, len(before)) or set(alive) <= set(before), (
            f"{len(alive)} runs in a pool of {size}, of which {len(before)} lived when that was acknowledged"
        )

    return Act(define("pool", "p", _pool(size, **shares)), lambda world: _alive(world), promise, alone=True)


def _alive(world: World) -> list[str]:
    return living(world, "one", "two")


def _pool_world(pool: dict[str, Any], *steps: Do) -> World:
    return made({**flights(BOTH, one=POOLED, two=POOLED), "pools": {"p": pool}}, *steps)


POOL = Situation(
    build=lambda: _pool_world(_pool(2), uploads(1), settle_one("one"), forget_hints),
    acts={
        "check": check("two"),
        "serve": serving(pool_limit("demo.p")),
        "upload": upload(2),
        "complete": complete(),
        "shrink": resized(1),
        "grow": resized(3),
        "disable": closings.disable("two"),
        "tick": TICK,
    },
    always=at_most(3, "one", "two"),
    small=("check", "complete", "shrink"),
)


def settle_one(name: str) -> Do:
    return lambda world: world.settle_only(name)


# One unit is reserved, the other three are common. Three runs are active; the other workflow's share is removed.
CUT = Situation(
    build=lambda: _pool_world(
        _pool(4, one=1, two=1),
        uploads(1), settle, uploads(2), settle_one("one"), uploads(3), passes("1s"), forget_hints,
    ),
    acts={
        "check": check("two"),
        "check one": check("one"),
        "complete": complete(),
        "cut": resized(4),
        "cut otherwise": resized(4, one=2),
        "cut more": resized(4, two=3),
        "tick": TICK,
    },
    always=at_most(4, "one", "two"),
    small=("check", "check one", "cut"),
)  # fmt: skip

# -- a policy has a backlog --------------------------------------------------------------------------------------------

CALM = {"max_events": 1, "interval": "10s"}
PACED = partitions(by=["day"], policy="calm")


def _paced(*steps: Do) -> World:
    both = {"daily": PACED, "other": partitions(workflow="join", by=["day"], policy="calm")}
    return made({**flights(both), "policies": {"calm": CALM}}, *steps)


BACKLOG = Situation(
    build=lambda: _paced(uploads(1), settle, passes("1s"), uploads(2), settle, keep_job(), passes("10s"), forget_hints),
    acts={
        "serve": serving(POLICY),
        "check": check(),
        "slower": Act(define("policy", "calm", {"max_events": 1, "interval": "1m"}), alone=True),
        "faster": Act(define("policy", "calm", {"max_events": 5, "interval": "10s"}), alone=True),
        "upload": upload(3),
        "withdraw": withdrawing(),
        "disable": closings.disable(),
        "carry": closings.carry(PACED),
        "tick": TICK,
    },
    small=("serve", "slower", "withdraw"),
)

# -- three jobs of a fast policy wait, and are sent in a block ---------------------------------------------------------

FAST, SLOW = {"max_events": 10, "interval": "1s"}, {"max_events": 1, "interval": "1h"}
SENT_BY_DAY = partitions(workflow="notify", by=["day"], policy="calm")

BLOCK = Situation(
    build=lambda: made(
        {**flights({"daily": SENT_BY_DAY}), "policies": {"calm": SLOW}},
        uploads(1), settle, passes("1s"), uploads(2, 3, 4), settle, keep_job(),
        define("policy", "calm", FAST), passes("2m"), forget_hints,
    ),
    acts={
        "serve": serving(POLICY),
        "check": check(),
        "slower": Act(define("policy", "calm", {"max_events": 2, "interval": "1s"}), alone=True),
        "upload": upload(5),
        "withdraw": withdrawing(),
        "disable": closings.disable(),
        "carry without the policy": closings.carry(partitions(workflow="notify", by=["day"])),
        "tick": TICK,
    },
    small=("serve", "withdraw", "disable"),
)  # fmt: skip
