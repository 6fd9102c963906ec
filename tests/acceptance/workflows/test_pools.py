"""Pools (W3, W13): slots and vCPUs that workflows share, with reserved shares, never more in use than the size."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.flow.definitions import store
from tests.acceptance.words import day
from tests.support.answers import explain
from tests.support.schedules import partitions
from tests.support.world import EMR, World, flights

FAST = {"start_burst": 1_000, "emr_application_ids": ("00other",)}


def sharing(pool: dict[str, Any], schedules: dict[str, Any], **workflows: Any) -> World:
    world = World(**FAST)
    made = {name: {"target": EMR, "pool": "p", **fields} for name, fields in workflows.items()}
    world.deploy({**flights(schedules, **made), "pools": {"p": pool}})
    return world


def each(workflow: str, dataset: str = "flights", **fields: Any) -> dict[str, Any]:
    """One job for each day of a dataset."""
    return partitions(1, workflow, dataset, by=["day"], **fields)


def come(world: World, *days: int, dataset: str = "flights") -> None:
    for number in days:
        world.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "x.csv"))
    world.settle()


def live(world: World, name: str) -> int:
    return sum(run.state in ("STARTING", "RUNNING") for run in world.runs(name))


def in_use(world: World, line: str = "pool:demo.p") -> int:
    return int(world.limit_state(line).active)


def test_w3_workflows_share_pool_slots_and_never_exceed_them() -> None:
    world = sharing({"size": 3}, {"a": each("one"), "b": each("two", "weather")}, one={}, two={})
    come(world, 1, 2)
    come(world, 1, 2, dataset="weather")
    assert (live(world, "a"), live(world, "b")) == (2, 1)
    assert in_use(world) == 3
    assert [job.reason.text for job in world.jobs("b")] == ["waits for a slot of pool demo.p: 3 of 3 in use"]

    world.finish()
    world.settle()
    assert (live(world, "a"), live(world, "b"), in_use(world)) == (0, 1, 1)
    world.finish()
    assert in_use(world) == 0


def test_w3_a_pool_of_vcpus_counts_the_resources_of_runs() -> None:
    wide = {"resources": {"workers": 1, "vcpu": 4}}
    world = sharing({"size": 20, "unit": "vcpu"}, {"a": each("one"), "b": each("one", "weather")}, one=wide)
    come(world, 1, 2)
    assert in_use(world) == 16, "each has an executor and a driver of 4 vCPUs"
    come(world, 1, dataset="weather")
    waiting = world.jobs("b")[0]
    assert waiting.reason.text == "waits for 8 vCPU of pool demo.p: 16 of 20 in use"
    assert explain.why_job(world.ports, waiting)["why"].startswith("waits for 8 vCPU of pool demo.p: 16 of 20 in use")


def test_w13_resources_set_by_the_schedule_reach_target_and_pool() -> None:
    small = {"resources": {"workers": 1, "vcpu": 2, "memory_gb": 8, "disk_gb": 50}}
    large = each("one", "weather", resources={"workers": 3, "application": "00other"})
    world = sharing({"size": 100, "unit": "vcpu"}, {"a": each("one"), "b": large}, one=small)
    come(world, 1)
    spark = world.runs("a")[0].request.target["spark"]
    assert spark == {
        "spark.driver.cores": "2",
        "spark.driver.memory": "7447m",
        "spark.emr-serverless.driver.disk": "50g",
        "spark.executor.cores": "2",
        "spark.executor.memory": "7447m",
        "spark.emr-serverless.executor.disk": "50g",
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.maxExecutors": "1",
    }
    come(world, 1, dataset="weather")
    other = world.runs("b")[0].request.target
    assert (other["application_id"], other["spark"]["spark.executor.instances"]) == ("00other", "3")
    assert in_use(world) == 4 + 8


def test_w3_the_limit_row_of_a_pool_does_not_grow_with_runs() -> None:
    """Every claim writes the row, and each KB of it costs. The limits of the workflows hold the start times of runs."""
    world = sharing({"size": 9}, {"a": each("one")}, one={})
    come(world, 1, 2, 3, 4, 5)
    assert (in_use(world), world.limit_state("pool:demo.p").starts) == (5, {})
    assert len(world.limit_state("workflow:demo.flights.one").starts) == 5


def test_w3_a_large_request_at_head_is_not_starved_by_small_ones() -> None:
    world = sharing(
        {"size": 8}, {"small": each("one"), "large": each("two", "weather")}, one={"slots": 2}, two={"slots": 8}
    )
    come(world, 1)
    come(world, 1, dataset="weather")
    come(world, 2, 3, 4)
    assert (live(world, "small"), live(world, "large"), in_use(world)) == (1, 0, 2), "free slots are kept for the head"
    world.finish()
    world.settle()
    assert (live(world, "small"), live(world, "large"), in_use(world)) == (0, 1, 8)
    world.finish()
    world.settle()
    assert (live(world, "small"), in_use(world)) == (3, 6)


def test_w3_jobs_queued_for_their_workflow_hold_no_pool_units() -> None:
    capped = [{"type": "concurrency", "max": 1, "on_unmet": "wait"}, {"type": "concurrency", "max": 9, "group": "g"}]
    world = sharing({"size": 3}, {"a": each("one", constraints=capped), "b": each("two", "weather")}, one={}, two={})
    come(world, 1, 2, 3, 4, 5)
    assert (live(world, "a"), in_use(world), in_use(world, "group:demo.g")) == (1, 1, 1)
    come(world, 1, 2, dataset="weather")
    assert (live(world, "b"), in_use(world)) == (2, 3)


def test_w3_a_share_is_kept_and_its_owner_may_use_the_fallback() -> None:
    pool = {"size": 5, "shares": {"flights.urgent": {"reserved": 2}}}
    world = sharing(pool, {"a": each("bulk"), "u": each("urgent", "weather")}, bulk={}, urgent={})
    come(world, 1, 2, 3, 4, 5)
    assert (live(world, "a"), in_use(world)) == (3, 3), "two are reserved"
    come(world, 1, 2, 3, dataset="weather")
    assert live(world, "u") == 2
    share = "pool:demo.p:demo.flights.urgent"
    waits = "waits for a slot of the share of demo.flights.urgent in pool demo.p: 2 of 2 in use"
    assert [job.reason.text for job in world.jobs("u")] == [waits]

    for _ in range(2):
        first = next(run for run in world.runs("a") if run.state in ("STARTING", "RUNNING"))
        world.emr_says(str(first.target_id).rpartition("/")[2], "SUCCESS")
        world.settle()
    assert (live(world, "a"), live(world, "u")) == (3, 2), "the common part goes to those who wait for it"
    first = next(run for run in world.runs("a") if run.state in ("STARTING", "RUNNING"))
    world.emr_says(str(first.target_id).rpartition("/")[2], "SUCCESS")
    world.settle()
    assert (live(world, "a"), live(world, "u")) == (2, 3), "then it is free for a share that is used up"
    assert (in_use(world), in_use(world, share)) == (3, 2)
    world.finish()
    world.settle()
    assert (in_use(world), in_use(world, share)) == (0, 0)


def test_w3_a_share_may_belong_to_a_concurrency_group() -> None:
    grouped = [{"type": "concurrency", "max": 9, "group": "night"}]
    pool = {"size": 2, "shares": {"night": {"reserved": 1}}}
    world = sharing(pool, {"a": each("one"), "n": each("one", "weather", constraints=grouped)}, one={})
    come(world, 1, 2)
    come(world, 1, dataset="weather")
    assert (live(world, "a"), live(world, "n")) == (1, 1)
    assert in_use(world, "pool:demo.p:night") == 1


def test_w3_a_larger_pool_serves_its_queue_at_once_smaller_waits() -> None:
    world = sharing({"size": 1}, {"a": each("one")}, one={})
    come(world, 1, 2, 3, 4)
    assert live(world, "a") == 1
    store.put(world.ports, "pool", "demo.p", {"size": 3, "unit": "slots", "shares": {}}, "tester")
    world.settle()
    assert live(world, "a") == 3

    store.put(world.ports, "pool", "demo.p", {"size": 1, "unit": "slots", "shares": {}}, "tester")
    first = next(run for run in world.runs("a") if run.state == "STARTING")
    world.emr_says(str(first.target_id).rpartition("/")[2], "SUCCESS")
    world.pass_by("2m")
    assert (live(world, "a"), in_use(world)) == (2, 2), "nobody is stopped, and nobody starts"
    world.finish()
    world.settle()
    assert live(world, "a") == 1


def test_w3_a_job_larger_than_a_pool_yields_and_blocks_nobody() -> None:
    world = sharing(
        {"size": 4}, {"small": each("one"), "large": each("two", "weather")}, one={"slots": 1}, two={"slots": 4}
    )
    come(world, 1)
    come(world, 1, dataset="weather")
    come(world, 2)
    assert live(world, "small") == 1
    store.put(world.ports, "pool", "demo.p", {"size": 2, "unit": "slots", "shares": {}}, "tester")
    world.settle()
    assert live(world, "small") == 2
    [large] = world.jobs("large")
    assert (large.state, large.held) == ("PENDING_CONSTRAINTS", ())
    assert large.reason.text.endswith("more than the whole pool: request less, or enlarge the pool")

    world.finish()
    store.put(world.ports, "pool", "demo.p", {"size": 4, "unit": "slots", "shares": {}}, "tester")
    world.pass_by("11m")
    assert live(world, "large") == 1


def test_w3_waiters_of_a_removed_share_go_on_to_the_common_units() -> None:
    world = sharing({"size": 1, "shares": {"flights.one": {"reserved": 1}}}, {"a": each("one")}, one={})
    come(world, 1, 2)
    store.put(world.ports, "pool", "demo.p", {"size": 2, "unit": "slots", "shares": {}}, "tester")
    world.settle()
    assert live(world, "a") == 2
    world.finish()
    assert (in_use(world), in_use(world, "pool:demo.p:demo.flights.one")) == (0, 0)


def test_w3_a_pool_in_use_is_not_deleted_naming_its_users() -> None:
    world = sharing({"size": 1}, {"a": each("one"), "b": each("clean", pool="p")}, one={})
    with pytest.raises(SluiceError, match=r"used by schedule demo\.flights\.b, workflow demo\.flights\.one"):
        store.delete(world.ports, "pool", "demo.p")
    with pytest.raises(SluiceError, match=r"expected an existing pool, got 'demo\.q'"):
        world.put("c", each("one", pool="q"))


@pytest.mark.parametrize(
    ("pool", "workflow", "message"),
    [
        ({"size": 4}, {"slots": 5}, "at most the 4 units of pool demo.p that it may use, got 5"),
        ({"size": 4, "shares": {"g": {"reserved": 2}}}, {"slots": 3}, "at most the 2 units of pool demo.p"),
        ({"size": 4, "unit": "vcpu"}, {}, "resources, since pool demo.p counts vCPUs"),
        ({"size": 4, "shares": {"g": {"reserved": 5}}}, {}, "shares of at most the pool's 4 units together, got 5"),
        ({"size": 4}, {"target": {"type": "sqs", "queue_url": "https://q"}}, "a pool only for a target with a lifec"),
        ({"size": 4}, {"resources": {"vcpu": 3}}, "1, 2, 4, 8 or 16 vCPUs for each worker, got 3"),
        ({"size": 4}, {"resources": {"vcpu": 8, "memory_gb": 17}}, "16 to 60 GB, in steps of 4 beside 8 vCPUs"),
    ],
)
def test_w3_a_request_larger_than_the_pool_is_refused(
    pool: dict[str, Any], workflow: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sharing(pool, {"a": each("one")}, one=workflow)
