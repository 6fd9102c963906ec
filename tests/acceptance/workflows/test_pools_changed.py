"""Pools that are divided differently while jobs hold units (W3, W13): the counts stay right, and no job is left
waiting.
"""

from __future__ import annotations

from typing import Any

from chalicelib.flow.definitions import store
from tests.acceptance.workflows.test_pools import come, each, in_use, live, sharing
from tests.support.answers import explain
from tests.support.world import EMR, World, flights


def put_pool(world: World, size: int, name: str = "demo.p", **shares: int) -> None:
    made = {owner.replace("__", "."): {"reserved": units} for owner, units in shares.items()}
    store.put(world.ports, "pool", name, {"size": size, "unit": "slots", "shares": made}, "tester")


def paced(schedules: dict[str, Any], **workflows: Any) -> World:
    """A start every ten seconds: the second job waits, and holds its units of pool p."""
    world = World(start_burst=1, start_rate_per_second=0.1)
    made = {name: {"target": EMR, "pool": "p", **fields} for name, fields in workflows.items()}
    world.deploy({**flights(schedules, **made), "pools": {"p": {"size": 9}, "q": {"size": 9}}})
    return world


def change(world: World, **fields: Any) -> None:
    row = store.get(world.ports, "workflow", "demo.flights.one")
    store.put(world.ports, "workflow", "demo.flights.one", {**row.document, **fields}, "tester")


def test_w3_a_job_whose_workflow_leaves_pool_releases_all_units() -> None:
    world = paced({"a": each("one")}, one={"slots": 4})
    come(world, 1, 2)
    assert in_use(world) == 8, "the second waits for the start rate, and holds four"
    change(world, pool="q", slots=2)
    world.pass_by("11s")
    assert live(world, "a") == 2
    assert (in_use(world), in_use(world, "pool:demo.q")) == (4, 4 + 2), "the first counts in both until it ends"
    world.finish()
    world.settle()
    assert (in_use(world), in_use(world, "pool:demo.q")) == (0, 0)


def test_w13_a_job_holding_units_takes_new_amount_when_it_starts() -> None:
    world = paced({"a": each("one")}, one={"slots": 2})
    come(world, 1, 2)
    change(world, slots=7)
    world.pass_by("11s")
    assert in_use(world) == 9
    assert [run.units for run in world.runs("a")] == [2, 7]
    change(world, slots=8)
    come(world, 3)
    assert [job.reason.text for job in world.jobs("a")] == ["waits for 8 slots of pool demo.p: 9 of 9 in use"]
    world.finish()
    world.pass_by("11s")
    assert [run.units for run in world.runs("a")] == [2, 7, 8]
    world.finish()
    assert in_use(world) == 0


def test_w3_a_job_over_its_share_queues_without_blocking_it() -> None:
    pool = {"size": 8, "shares": {"flights.mine": {"reserved": 2}}}
    schedules = {
        "small": each("one"),
        "mine": each("mine", "weather"),
        "large": each("mine", "weather", slots=6),
    }
    world = sharing(pool, {"small": schedules["small"], "large": schedules["large"]}, one={"slots": 2}, mine={})
    come(world, 1, 2, 3)
    come(world, 1, dataset="weather")
    come(world, 4, 5)
    assert (live(world, "small"), live(world, "large")) == (3, 0)
    world.put("mine", schedules["mine"])
    come(world, 2, dataset="weather")
    assert live(world, "mine") == 1, "the share is free for those who fit into it"
    for _ in range(3):
        first = next(run for run in world.runs("small") if run.state in ("STARTING", "RUNNING"))
        world.emr_says(str(first.target_id).rpartition("/")[2], "SUCCESS")
        world.settle()
    assert (live(world, "small"), live(world, "large")) == (0, 1), "no later job overtook it"


def test_w3_units_of_reduced_share_are_reused_after_release_only() -> None:
    world = sharing(
        {"size": 4, "shares": {"flights.mine": {"reserved": 2}}},
        {"a": each("one"), "m": each("mine", "weather")},
        one={},
        mine={},
    )
    come(world, 1, 2, dataset="weather")
    assert live(world, "m") == 2
    put_pool(world, 4)
    come(world, 1, 2, 3, 4)
    assert (live(world, "m"), live(world, "a")) == (2, 2), "four in all, as many as the pool has"
    for run in world.runs("m"):
        world.emr_says(str(run.target_id).rpartition("/")[2], "SUCCESS")
    world.pass_by("61s")
    assert live(world, "a") == 4
    world.finish()
    assert (in_use(world), in_use(world, "pool:demo.p:demo.flights.mine")) == (0, 0)


def test_w3_a_queue_at_a_policy_pace_leaves_the_pool_to_others() -> None:
    """One start a minute: the jobs that wait for the policy must not fill a pool that other jobs could use now."""
    world = World(start_burst=1_000)
    made = {name: {"target": EMR, "pool": "p"} for name in ("one", "two")}
    document = flights({"slow": each("one", policy="slow"), "b": each("two", "weather")}, **made)
    world.deploy({**document, "pools": {"p": {"size": 6}}, "policies": {"slow": {"max_events": 1, "interval": "1m"}}})
    come(world, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    come(world, 1, 2, 3, dataset="weather")
    assert (live(world, "slow"), live(world, "b")) == (1, 3)
    last = max(world.jobs("slow"), key=lambda job: str(job.rank))
    why = "waits for admission to policy demo.slow: other jobs are next; position 7 of 7 in its queue"
    assert (last.held, explain.why_job(world.ports, last)["why"]) == (("workflow:demo.flights.one",), why)
    for number in range(2, 10):
        world.pass_by("62s")
        world.finish()
        world.settle()
        assert len(world.runs("slow")) == number, "at the pace of the policy, all the same"
    assert in_use(world) == 0
