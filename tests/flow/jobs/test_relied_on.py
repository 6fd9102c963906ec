"""A claim expects the facts that its decision relied on. For each other fact, a sentence gives the reason (C9, C13,
W3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from chalicelib.aws.tables.expressions import Shards
from chalicelib.aws.tables.statements import statement
from chalicelib.core.jobs import claim
from chalicelib.core.jobs.facts import Facts
from chalicelib.core.limits import route as limit_route
from chalicelib.core.limits.writes import AcquirePermit, JoinQueue
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import (
    Create,
    ExpectBackfillRunning,
    ExpectDefinition,
    ExpectGrants,
    ExpectMode,
    ExpectNoneGathering,
    Write,
)
from chalicelib.flow import facts
from tests.faults.dying import SMALL
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, World, day, flights

Plan = list[Write]


def has(kind: type) -> Callable[[Plan], bool]:
    return lambda plan: any(isinstance(write, kind) for write in plan)


def names_edition(plan: Plan) -> bool:
    """Whether the write to the workflow's limit expects the edition that was read."""
    tables = {name: name for name in ("catalog", "jobs", "runs")}
    own = [write for write in plan if isinstance(write, AcquirePermit) and write.ask.limit_name.startswith("workflow:")]
    made = [statement(write, tables, Shards(1, 1)).arguments for write in own]
    return [("edition" in arguments["ConditionExpression"]) for arguments in made] == [True]


# The facts that a claim expects, and the writes that expect them.
EXPECTED: dict[str, Callable[[Plan], bool]] = {
    "schedule_state": has(ExpectMode),
    "schedule": has(ExpectMode),  # a version never changes; its limits, groups and policy's name are part of it
    "workflow": names_edition,
    "workflow_row": names_edition,
    "pool": has(ExpectDefinition),
    "pool_row": has(ExpectDefinition),
    "limit_states": has(AcquirePermit),
    "gathering": has(ExpectNoneGathering),  # for a fire that would join another job
    "already": lambda plan: any(isinstance(write, Create) and isinstance(write.row, Run) for write in plan),
    "backfill": has(ExpectBackfillRunning),
    "granted": has(ExpectGrants),
}
# The facts that a claim need not expect, with the reason.
NOT_EXPECTED = {
    "start_rate": "a setting of the deployment",
    "lineage": "a setting of the deployment",
    "successes": "the last success of an upstream only becomes younger: what was fresh when it was read has been so",
    "newest": "a newer partition is only younger, as with a success",
    "fresh": "a put of the dataset gives another span from then on; the job was fresh enough by the one that was read",
    "counted": "a counted start takes a permit of its workflow's limit; an earlier start needed none",
    "policy": "a reader computes the next start from the head; a start by the former pace was allowed then",
    "answers": "an answer holds for the instant of its request, and no later event changes it",
    "origin": "the repeated run is final",
    "other": "it has the writes that expect it; an own job of a period is stored before it reads the backfills",
    "repairs": "the check commits them, and reads the facts again",
}
# The definitions that are read for the facts. A new one belongs to one of the lists above.
DEFINITIONS = {"Definition workflow", "Definition pool", "Definition policy"}
READ = {"ScheduleState", "Version", *DEFINITIONS, "GrantsRow", "Job", "Run", "Record"}


def test_each_fact_is_expected_by_the_claim_or_justified() -> None:
    named = {field.name for field in fields(Facts)}
    assert set(EXPECTED) | set(NOT_EXPECTED) == named
    assert set(EXPECTED) & set(NOT_EXPECTED) == set()


class Reading:
    """Rows, with a record of what was read."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.read = inner, set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, row: type[Any], *values: Any) -> Any:
        self.read.add(f"{row.__name__} {values[0]}" if row is Definition else row.__name__)
        return self._inner.get(row, *values)


def a_job_that_asks_for_all(kind: str) -> tuple[World, tuple[str, int, str]]:
    """A job in a group, a pool and a policy of another namespace, with a freshness constraint. It is a fire or belongs
    to a backfill."""
    world = World(**SMALL, authorization="enforce")
    world.deploy({"policies": {"calm": {"max_events": 3, "interval": "1m"}}}, "lake", "core")
    world.grant("lake", {"grants": [{"to": "demo", "policies": ["calm"]}]})
    constraints = [
        {"type": "concurrency", "max": 2, "on_unmet": "wait"},
        {"type": "concurrency", "group": "g", "max": 2, "on_unmet": "wait"},
        {"type": "fresh", "workflows": ["join"], "within": "1d", "on_unmet": "wait"},
    ]
    all_of_it = {"policy": "lake.calm", "constraints": constraints}
    daily = at("1 12 2 3 *", **all_of_it) if kind == "fire" else partitions(by=["day"], **all_of_it)
    parts = flights({"daily": daily}, clean={"target": EMR, "pool": "p"})
    world.deploy({**parts, "pools": {"p": {"size": 4}}})
    if kind == "fire":
        world.tick()
        world.clock.pass_by("61s")
    else:
        world.upload(day(1))
    [job] = world.jobs("daily")
    return world, (job.schedule, job.generation, job.sort_key)


def plan_of(world: World, sort_key: tuple[str, int, str], **changed: Any) -> Plan:

    found = world.ports.rows.get(Job, *sort_key)
    assert found is not None
    job = replace(found, **changed)
    known = facts.read(world.ports, job)
    asks = known.asks("demo")
    route = limit_route.route(asks, (), known.limit_states, world.clock.now(), None)
    run = claim.build_run(job, known, tuple(ask.limit_name for ask in route.take), "", world.clock.now())
    return claim.claim(job, run, known, route, world.clock.now())


def test_the_claim_of_a_fire_expects_what_was_read_of_it() -> None:
    world, sort_key = a_job_that_asks_for_all("fire")
    plan = plan_of(world, sort_key)
    unmet = [name for name, holds in EXPECTED.items() if name != "backfill" and not holds(plan)]
    assert unmet == []


def test_the_claim_of_a_backfill_expects_that_it_runs() -> None:
    world, sort_key = a_job_that_asks_for_all("partition")
    assert EXPECTED["backfill"](plan_of(world, sort_key, backfill="b1"))


def test_only_known_definitions_are_read_for_the_facts() -> None:
    world, sort_key = a_job_that_asks_for_all("fire")
    reading = Reading(world.ports.rows)
    job = world.ports.rows.get(Job, *sort_key)
    assert job is not None
    facts.read(world.with_ports(rows=reading), job)
    assert reading.read == READ


def test_a_job_that_queues_expects_its_state_and_its_pool() -> None:
    world = World(**SMALL)
    parts = flights({"daily": partitions(by=["day"])}, clean={"target": EMR, "pool": "p"})
    world.deploy({**parts, "pools": {"p": {"size": 1}}})
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    [job] = world.jobs("daily")
    known = facts.read(world.ports, job)
    route = limit_route.route(known.asks("demo"), (), known.limit_states, world.clock.now(), None)

    plan = claim.queue(job, known, route, world.clock.now())

    assert all(has(kind)(plan) for kind in (ExpectMode, ExpectDefinition, JoinQueue))


def test_a_run_without_a_pool_needs_no_check_of_a_definition() -> None:
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(), "next": after("clean", "join")}))
    world.upload(day(1))
    [job] = world.jobs("daily")
    plan = plan_of(world, (job.schedule, job.generation, job.sort_key))
    assert not has(ExpectDefinition)(plan)
