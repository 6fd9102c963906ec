"""Random updates of a schedule with random work in flight: what the plan says is what then happens (L25)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from tests.acceptance.words import Document, any_of, concurrency, day, delay, event, partition, time, window
from tests.support.backfills import begin
from tests.support.read_only import read_only
from tests.support.world import EMR, World, flights

FIRST = {"year": "2013", "month": "01", "day": "1"}
PAIR = "demo.flights.pair"
# The reasons of records for what an update ends.
ENDS = {"schedule_replaced", "schedule_deleted", "schedule_ended", "fires_unprepared", "drained", "fire_removed"}
TRIGGERS: list[Callable[[Random], Document]] = [
    *[lambda random: {"trigger": partition(count=random.choice([1, 2, 3])), "by": ["day"]}] * 4,
    lambda random: {"trigger": partition(count=random.choice([2, 3]))},
    lambda random: {"trigger": event("go", random.choice([1, 3])), "coalesce": random.random() < 0.5},
    lambda random: {"trigger": time(random.choice(["* * * * *", "*/5 * * * *"])), "coalesce": random.random() < 0.5},
    lambda random: {"trigger": any_of(time("*/7 * * * *"), event("go", 2))},
    lambda random: {"trigger": time("1 12 * * *"), "spread": spread(random)},
]
FIELDS: dict[str, list[Any]] = {
    "priority": [3, 9],
    "properties": [{"a": 1}, {"a": 2}],
    "ttl": ["2026-03-02T12:09:00Z", "2026-03-02T12:30:00Z", "2026-03-04T12:00:00Z"],
    "workflow": ["clean", "join", "notify"],
    "constraints": [[], [concurrency(1)], [delay("1h")], [window("20:00", "21:00")]],
    "when_done": ["keep", "delete"],
    "timeout": ["never", {"after": "2h"}],
    "policy": ["slow"],
    "tags": [{"a": "b"}],
    "on_update": ["carry", "drop"],
    "enabled": [True, True, False, None],
}
ACTIONS: list[Callable[[World, Random, str], object]] = [
    *[lambda world, random, _: world.upload(day(random.randint(1, 6)))] * 3,
    *[lambda world, random, _: world.post("go")] * 2,
    *[lambda world, random, _: world.pass_by(random.choice(["30s", "2m", "5m"]))] * 2,
    *[lambda world, random, _: world.finish(random.choice(["SUCCESS", "FAILED"]))] * 2,
    lambda world, random, name: world.run_now("pair", name),
    lambda world, random, _: world.pause("pair", random.choice(["hold", "backlog", "drain"])),
    lambda world, random, _: world.resume("pair"),
    *[lambda world, random, _: world.disable("pair")] * 2,
    lambda world, random, _: world.enable("pair"),
    *[lambda world, random, name: begin(world, "pair", name, partitions={"from": FIRST}, concurrency=1)] * 3,
]


def spread(random: Random) -> Document:
    return {"count": random.choice([2, 40, 300]), "over": random.choice(["10m", "1h"])}


def varied(random: Random, document: Document) -> Document:
    """The document with some other fields, and now and then with another trigger, or enabled alone."""
    if random.random() < 0.25:
        return document | {"enabled": True}
    made = dict(document)
    if random.random() < 0.25:
        made = {field: value for field, value in made.items() if field in FIELDS} | random.choice(TRIGGERS)(random)
    for field in random.sample(sorted(FIELDS), random.choice([0, 1, 1, 2, 3])):
        made[field] = random.choice(FIELDS[field])
    if "spread" in made and random.random() < 0.4:
        made["spread"] = spread(random)
    return {field: value for field, value in made.items() if value is not None}


def app(pair: Document | None) -> App:
    retried = {"target": EMR, "retries": {"attempts": 2}}
    document = flights({"pair": pair} if pair is not None else {}, clean=retried)
    return App.model_validate(document | {"policies": {"slow": {"max_events": 1, "interval": "1m"}}})


def waiting(world: World) -> dict[str, Job]:
    return {job.job_id: job for job in world.jobs("pair")} if world.ports.rows.get(ScheduleState, PAIR) else {}


def of_state(world: World, state: str) -> set[str]:
    """The ids of the backfills in a state. One whose last retry is dropped is DONE."""
    return {row.id for row in world.ports.jobs.backfills(PAIR) if row.state == state}


def lost(world: World, before: dict[str, Job]) -> int:
    """The events that updates have ended so far: on record, or as retries that are not made. ``before`` are the jobs
    that waited; those of backfills count with these, but not the retries of their runs."""
    records = [record for record in world.records("pair") if record.reason.code in ENDS]
    replays = {job.job_id for job in before.values() if job.traits.replays}
    retries = [run for run in world.runs("pair") if run.reason and run.reason.code == "not_attempted_again"]
    return sum(record.count for record in records if record.id not in replays) + len(retries)


def known(world: World) -> set[str]:
    """The ids of all jobs, runs and records of the schedule."""
    runs, records = world.runs("pair"), world.records("pair")
    return {run.run_id for run in runs} | {record.id for record in records} | set(waiting(world))


# Short lives, then those in which a backfill did not know the update through which it had gone on.
SEEDS = (*range(20), 111, 188, 288)


@pytest.mark.parametrize("seed", SEEDS)
def test_l25_random_updates_do_what_their_plans_say(seed: int) -> None:
    _check(seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(10))
def test_l25_a_thousand_random_updates(hundred: int) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        _check(seed)


def _check(seed: int) -> None:
    random, world = Random(seed), World()
    store.put(world.ports, "namespace", "demo", {}, "ann")
    document: Document | None = varied(random, {"workflow": "clean", "enabled": True} | random.choice(TRIGGERS)(random))
    for step in range(random.randint(3, 6)):
        before, backfills = waiting(world), of_state(world, "RUNNING")
        so_far = lost(world, before)
        restart = random.random() < 0.2
        try:
            told = deploy.dry_run(read_only(world.ports), "demo", "flights", app(document), restart=restart)[2]
        except SluiceError:
            break  # such as a ttl that is over
        world.clock.pass_by("1ms")
        done = deploy.deploy_and_say(world.ports, "demo", "flights", app(document), "ann", restart=restart)[1]
        assert done == told
        effect = done.get(f"schedule {PAIR}")
        ended = backfills & of_state(world, "ENDED")
        assert ended == set(effect["backfills"] if effect else ())
        world.settle()
        gone = [job for job_id, job in before.items() if job_id not in known(world) and not job.traits.timed]
        assert not gone, "work that is lost has a record"
        expected = effect["dropped"] if effect else 0
        for _ in range(14):
            if lost(world, before) - so_far >= expected:
                break
            world.pass_by("5m")
        assert lost(world, before) - so_far == expected, (step, document, effect)
        for number in range(random.randint(1, 8)):
            with suppress(SluiceError):
                random.choice(ACTIONS)(world, random, f"{step}-{number}")
            if random.random() < 0.8:
                world.settle()
        document = None if random.random() < 0.1 or document is None else varied(random, document)
