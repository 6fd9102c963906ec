"""Real threads on the local cloud's DynamoDB, whose transactions are atomic: races that one thread cannot show."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from chalicelib.core.events.build import partition_event
from chalicelib.core.instants import MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.flow.fires.emit import emit_due
from chalicelib.flow.ingest.apply import apply_event
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.queue import serve
from infra.local.endpoints import Endpoints
from tests.support import tables
from tests.support.schedules import at, at_most, partitions
from tests.support.world import World, day, flights

pytestmark = pytest.mark.cloud

LIMIT = "workflow:demo.flights.clean"
GROUP = "group:demo.cluster"
RATE = "rate:demo.flights.clean:2/600000"


@pytest.fixture
def world(cloud: Endpoints) -> Iterator[World]:
    client = cloud.client("dynamodb")
    names = tables.create(client, f"race-{uuid.uuid4().hex[:8]}")
    # These tests race for other rows than those of starts, so the pace admits all starts.
    yield World(client, names, start_burst=1000)
    for name in names.values():
        client.delete_table(TableName=name)


def together(*acts: Callable[[], object]) -> list[object]:
    """Run all at the same instant, each in its own thread. An error of a thread is raised here."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> object:
        barrier.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result() for future in [pool.submit(run, act) for act in acts]]


def checks(world: World, *names: str) -> list[Callable[[], object]]:
    """A check of each job of these schedules that is not queued yet."""
    jobs = [job for name in names for job in world.jobs(name) if not job.queued_in]
    places = [(job.schedule, job.generation, job.sort_key) for job in jobs]
    return [lambda place=place: check_job(world.ports, place) for place in places]


def started(world: World, *names: str) -> list[Run]:
    return sorted((run for name in names for run in world.runs(name)), key=lambda run: run.claimed_at)


def gaps(runs: list[Run], apart: int) -> int:
    """The shortest time between a start and the n-th after it."""
    return min(later.claimed_at - run.claimed_at for run, later in zip(runs, runs[apart:], strict=False))


def test_c9_two_schedules_racing_for_one_slot_never_exceed_it(world: World) -> None:
    schedules = {"a": partitions(by=["day"], **at_most(1)), "b": partitions(by=["day"], **at_most(1))}
    world.deploy(flights(schedules))
    for number in range(1, 9):
        world.upload(day(number))
        jobs = {name: [job for job in world.jobs(name) if not job.queued_in] for name in schedules}
        places = [(job.schedule, job.generation, job.sort_key) for found in jobs.values() for job in found]

        together(*(lambda place=place: check_job(world.ports, place) for place in places))

        limit = world.limit_state(LIMIT)
        running = [run for name in schedules for run in world.runs(name) if run.state == "STARTING"]
        assert (limit.active, len(running)) == (1, 1)
        waiting = [job for name in schedules for job in world.jobs(name) if job.queued_in]
        assert len(waiting) == limit.waiters

    for _ in range(16):
        world.finish()
        world.settle()
    assert sorted(len(world.runs(name)) for name in schedules) == [8, 8]
    assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (0, 0)


def test_c5_two_schedules_racing_for_one_rate_never_exceed_it(world: World) -> None:
    rate = {"constraints": [{"type": "rate", "max": 2, "per": "10m"}]}
    world.deploy(flights({name: partitions(by=["day"], **rate) for name in ("a", "b")}))
    for number in range(1, 5):
        world.upload(day(number))

    for starts in (2, 4, 6, 8):
        together(*checks(world, "a", "b"), *([lambda: serve(world.ports, RATE)] * 3))
        world.settle()
        assert len(started(world, "a", "b")) == starts
        world.finish()
        world.clock.pass_by("10m")
    limit = world.limit_state(RATE)
    assert limit.waiters == 0
    assert gaps(started(world, "a", "b"), 2) >= 10 * MINUTE


@pytest.mark.parametrize("of", ["success", "any"])
def test_c4_jobs_racing_for_one_gap_start_one_by_one(world: World, of: str) -> None:
    gap = {"constraints": [{"type": "since_last_run", "at_least": "5m", "of": of, "on_unmet": "wait"}]}
    world.deploy(flights({name: partitions(by=["day"], **gap) for name in ("a", "b")}))
    for number in range(1, 4):
        world.upload(day(number))

    for starts in range(1, 7):
        together(*checks(world, "a", "b"))
        assert len(started(world, "a", "b")) == starts
        world.finish()
        world.hints.sent = []
        world.clock.pass_by("5m")
    assert gaps(started(world, "a", "b"), 1) >= 5 * MINUTE


def test_c1_two_workflows_racing_for_one_group_never_exceed_it(world: World) -> None:
    group = {"constraints": [{"type": "concurrency", "max": 2, "group": "cluster", "on_unmet": "wait"}]}
    world.deploy(flights({name: partitions(workflow=name, by=["day"], **group) for name in ("clean", "join")}))
    for number in range(1, 5):
        world.upload(day(number))

    for ended in (0, 2, 4, 6):
        together(*checks(world, "clean", "join"), *([lambda: serve(world.ports, GROUP)] * 3))
        world.settle()
        runs = started(world, "clean", "join")
        assert len([run for run in runs if run.state == "STARTING"]) == 2
        assert len(runs) == ended + 2
        limit = world.limit_state(GROUP)
        assert (limit.active, limit.waiters) == (2, 6 - ended)
        world.finish()
    assert (world.limit_state(GROUP).active, world.limit_state(GROUP).waiters) == (0, 0)


def test_l4_a_resume_racing_with_checks_leaves_no_job_unwoken(world: World) -> None:
    world.deploy(flights({"a": partitions(by=["day"], **at_most(2))}))
    for number in range(1, 4):
        world.upload(day(number))
    world.settle()
    for number in range(4, 7):
        world.upload(day(number))
    world.pause("a")

    together(*checks(world, "a"), lambda: world.resume("a"), world.finish, lambda: serve(world.ports, LIMIT))
    for _ in range(4):
        world.settle()
        world.finish()
    world.settle()

    assert [run.state for run in world.runs("a")] == ["SUCCEEDED"] * 6
    assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (0, 0)


def test_t11_one_event_posted_side_by_side_counts_once(world: World) -> None:
    event = {"workflow": "clean", "enabled": True, "trigger": {"type": "event", "event": "order", "count": 100}}
    world.deploy(flights(dict.fromkeys(("a", "b"), event)))

    together(*[lambda source=source: world.post("order", source) for source in ("o1", "o2", "o3")] * 4)

    for name in ("a", "b"):
        [job] = world.jobs(name)
        assert job.leaves["0"].count == 3


def test_w10_many_checkers_of_one_job_make_one_run_and_one_start(world: World) -> None:
    world.deploy(flights({"a": partitions()}))
    world.upload(day(1))
    [job] = world.jobs("a")
    place = (job.schedule, job.generation, job.sort_key)

    together(*([lambda: check_job(world.ports, place)] * 8))

    assert len(world.runs("a")) == 1
    assert len(world.targets.emr.calls) == 1


def test_t16_events_applied_side_by_side_all_count_once(world: World) -> None:
    world.deploy(flights({"a": partitions(1000)}))
    known = world.ports.catalog.dataset_of("lake-bucket", day(1))
    assert known is not None
    name, dataset = known
    now = world.clock.now()
    events = [partition_event(name, dataset, ("2013", "1", str(number)), now, now) for number in range(1, 13)]
    rows = world.ports.catalog.subscriptions("partition:demo.flights", 10, None).items

    # Each event three times, by three threads.
    together(*(lambda event=event: apply_event(world.ports, event, rows, now) for event in events * 3))

    [job] = world.jobs("a")
    assert job.leaves["0"].count == 12
    assert len(world.ports.jobs.events_of(job.job_id, job.schedule, job.generation)) == 12


def test_e1_several_emitters_at_once_prepare_every_fire_once(world: World) -> None:
    world.deploy(flights({"a": at("@every 5s", "notify")}))
    world.clock.pass_by("1m")

    together(*([lambda: emit_due(world.ports)] * 6))
    world.pass_by("60s")

    nominal = [run.nominal_at for run in world.runs("a")]
    assert len(nominal) == len(set(nominal)) == 24
    assert len(world.targets.queue.messages) == 24


def test_c13_a_disable_racing_with_claims_leaks_no_job_or_permit(world: World) -> None:
    for number in range(1, 7):
        name = f"s{number}"
        world.deploy(flights({name: partitions(by=["day"], **at_most(2))}))
        for each in range(1, 5):
            world.upload(f"raw/flights/year=2013/month={number}/day={each}/_SUCCESS")
        places = [(job.schedule, job.generation, job.sort_key) for job in world.jobs(name)]
        acts = [lambda place=place: check_job(world.ports, place) for place in places]
        together(lambda name=name: world.disable(name), *acts)

        started = [run for run in world.runs(name) if run.target_id]
        world.pass_by("3m")
        assert world.jobs(name) == []
        assert len([run for run in world.runs(name) if run.target_id]) == len(started)
        live = [run for run in world.runs(name) if run.state == "STARTING"]
        assert (world.limit_state(LIMIT).active, world.limit_state(LIMIT).waiters) == (len(live), 0)
        world.finish()
        assert replace(world.limit_state(LIMIT), wake_at=None).active == 0
