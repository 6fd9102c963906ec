"""A policy, a pool and the jobs agree on how many wait, and where each stands in its queue (C14, E3, W3)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.targets.answers import NotNow
from chalicelib.flow.definitions import store
from tests.acceptance.words import day
from tests.support.answers import explain, queues, read
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

POLICIES = {"slow": {"max_events": 1, "interval": "1m"}}


def pooled(size: int = 1, **fields: Any) -> World:
    """Schedules of two priorities that share a pool."""
    world = World(start_burst=1_000)
    made = {name: {"target": EMR, "pool": "p"} for name in ("one", "two")}
    schedules = {
        "low": partitions(1, "one", by=["day"], priority=2, **fields),
        "high": partitions(1, "two", "weather", by=["day"], priority=8, **fields),
    }
    world.deploy({**flights(schedules, **made), "pools": {"p": {"size": size}}, "policies": POLICIES})
    return world


def come(world: World, *days: int, dataset: str = "flights") -> None:
    for number in days:
        world.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "x.csv"))
    world.settle()


def view(world: World, kind: Any, name: str) -> dict[str, Any]:
    read = queues.of_policy if kind == "policy" else queues.of_pool
    return read(world.ports, store.get(world.ports, kind, name))


def listed(world: World) -> dict[str, dict[str, Any]]:
    """The waiting jobs as a list shows them, by their ids."""
    jobs = [*world.jobs("low"), *world.jobs("high")]
    reader = queues.Queues(world.ports)
    return {job.job_id: read(reader.job(job)) for job in jobs if job.queued_in is not None}


def agree(world: World, reported: dict[str, Any]) -> None:
    """All numbers of a policy or pool are those of the jobs that wait there."""
    jobs = listed(world)
    assert reported["waiting"] == len(jobs) == sum(part["waiting"] for part in reported["parts"])
    shown = {
        each["job_id"]: (each["position"], part["waiting"]) for part in reported["parts"] for each in part["queue"]
    }
    assert shown == {name: (job["queue"]["position"], job["queue"]["waiting"]) for name, job in jobs.items()}
    for name, job in jobs.items():
        words = f"; position {job['queue']['position']} of {job['queue']['waiting']} in its queue"
        assert words in job["reason"]
        why = explain.why_job(
            world.ports, next(j for j in [*world.jobs("low"), *world.jobs("high")] if j.job_id == name)
        )
        assert (words in why["why"], why["queue"]) == (True, job["queue"])


def test_a_pool_and_its_jobs_agree_while_the_queue_changes() -> None:
    world = pooled()
    come(world, 1, 2, 3, 4)
    agree(world, view(world, "pool", "demo.p"))
    come(world, 1, 2, dataset="weather")
    answer = view(world, "pool", "demo.p")
    agree(world, answer)
    assert (answer["in_use"], answer["waiting"]) == (1, 5)
    order = [each["schedule"] for each in answer["parts"][0]["queue"]]
    assert order == ["demo.flights.high"] * 2 + ["demo.flights.low"] * 3, "the more urgent first"

    world.finish()
    world.settle()
    left = view(world, "pool", "demo.p")
    agree(world, left)
    assert left["waiting"] == 4
    ids = [each["job_id"] for each in answer["parts"][0]["queue"]]
    assert [each["job_id"] for each in left["parts"][0]["queue"]] == ids[1:]
    world.disable("low")
    world.settle()
    agree(world, view(world, "pool", "demo.p"))


def test_a_policy_and_its_jobs_agree_also_on_admissions() -> None:
    world = pooled(size=6, policy="slow")
    come(world, 1, 2, 3, 4, 5, 6)
    answer = view(world, "policy", "demo.slow")
    agree(world, answer)
    assert answer["waiting"] == 5
    assert [(part["of"], part["waiting"]) for part in answer["parts"]] == [
        ("the next start", 1),
        ("admission, with permits of pool demo.p", 4),
    ]
    assert answer["next_start_at"] > "2026-03-02T12:00:00"
    world.pass_by("62s")
    agree(world, view(world, "policy", "demo.slow"))
    assert view(world, "policy", "demo.slow")["waiting"] == 4


def test_admission_with_a_group_is_counted_by_a_policy() -> None:
    world = World(start_burst=1_000)
    group = [{"type": "concurrency", "max": 6, "group": "cluster", "on_unmet": "wait"}]
    schedules = {"low": partitions(1, "clean", by=["day"], policy="slow", constraints=group), "high": partitions(9)}
    world.deploy({**flights(schedules), "policies": POLICIES})
    come(world, 1, 2, 3, 4)
    answer = view(world, "policy", "demo.slow")
    agree(world, answer)
    assert answer["parts"][1]["of"] == "admission, with permits of group demo.cluster"


def test_admission_with_an_emr_application_is_counted() -> None:
    world = World(start_burst=1_000, emr_run_limits=(("00app", 6),))
    schedules = {"low": partitions(1, "clean", by=["day"], policy="slow"), "high": partitions(9)}
    world.deploy({**flights(schedules), "policies": POLICIES})
    come(world, 1, 2, 3, 4)
    answer = view(world, "policy", "demo.slow")
    agree(world, answer)
    assert [part["waiting"] for part in answer["parts"]] == [1, 2]


@pytest.mark.parametrize(("kind", "name"), [("policy", "demo.slow"), ("pool", "demo.p")])
def test_an_empty_queue_has_no_waiters_and_no_next_start(kind: str, name: str) -> None:
    answer = view(pooled(), kind, name)
    assert (answer["waiting"], answer.get("next_start_at")) == (0, None)
    assert [part["queue"] for part in answer["parts"]] == [[]]


def test_a_long_queue_shows_its_head_and_counts_all() -> None:
    world = pooled()
    come(world, *range(1, 27))
    answer = view(world, "pool", "demo.p")
    assert (answer["waiting"], len(answer["parts"][0]["queue"])) == (25, queues.MAX_SHOWN)
    assert sorted(job["queue"]["position"] for job in listed(world).values()) == list(range(1, 26))


def test_a_run_that_waits_for_its_start_has_a_place_in_its_queue() -> None:
    """The target throttles: the claimed run needs another permit, and the policy counts it with the jobs."""
    world = World()
    schedules = {"low": partitions(1, by=["day"], policy="slow"), "high": partitions(9)}
    world.deploy({**flights(schedules), "policies": POLICIES})
    world.targets.emr.answers = [NotNow("EMR throttles")]
    come(world, 1)
    [run] = world.runs("low")
    world.clock.pass_by("1ms")
    come(world, 2)
    queue = view(world, "policy", "demo.slow")["parts"][0]["queue"]
    assert [(each["job_id"], each["attempt"]) for each in queue] == [
        (run.run_id, 1),
        (world.jobs("low")[0].job_id, None),
    ]
    assert queues.Queues(world.ports).of(run) == {
        "of": "policy demo.slow",
        "position": 1,
        "waiting": 2,
        "more_urgent": 0,
        "since": "2026-03-02T12:00:00.000Z",
    }
    why = explain.why_work(world.ports, run.run_id)["why"]
    assert why.startswith("EMR throttles; waits for a permit of policy demo.slow")
    assert "; position 1 of 2 in its queue" in why
