"""Paces, for `test_crash_points.py`: policies that schedules share, targets that refuse, permits that
expire (E3, E8).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.core.limits.writes import LeaveQueue
from chalicelib.core.runs.queued import waiter_of
from chalicelib.core.targets.answers import Never, NotNow
from chalicelib.core.writes import RemoveWaiter
from chalicelib.flow.definitions import store
from tests.faults.dying import POLICIES, Scenario, finish, passes, people, upload
from tests.faults.scenarios_delivered import SENT_ONCE
from tests.support.crash import lost
from tests.support.schedules import partitions
from tests.support.world import World

MOST = POLICIES["calm"]["max_events"]


def calm(**fields: Any) -> dict[str, Any]:
    return partitions(by=["day"], policy="calm", **fields)


def beyond_pace(starts: Sequence[Instant], most: int, interval: int) -> list[Instant]:
    """The starts that come less than an interval after the ``most``-th start before them."""
    return [late for early, late in zip(starts, starts[most:], strict=False) if late - early < interval]


def _share_a_policy(world: World) -> None:
    for number in (1, 2, 3):
        upload(world, number)
    for _ in range(6):
        world.clock.pass_by("11s")
        world.settle(lost)
    finish(world)


def _be_allowed_more(world: World) -> None:
    """A policy of three an hour becomes one of three a minute while jobs queue for it."""
    slow = {"max_events": 3, "interval": "1h"}
    people(world, lambda: store.put(world.ports, "policy", "demo.calm", slow, "tester"))
    _share_a_policy(world)
    people(world, lambda: store.put(world.ports, "policy", "demo.calm", POLICIES["calm"], "tester"))
    finish(world)


def _fire_in_blocks(world: World) -> None:
    """Four fires of one instant join the queue of a fast policy, and start in a block of permits."""
    passes(world, "20s")
    for _ in range(6):
        world.clock.pass_by("10s")
        world.settle(lost)


def _miss_a_permit(world: World) -> None:
    """The bucket takes a minute for the context of the first start, whose permit is then too old."""
    slow = {"max_events": 1, "interval": "15m"}
    people(world, lambda: store.put(world.ports, "policy", "demo.calm", slow, "tester"))
    put_context = world.payloads.put_context

    def put_slowly(*of: Any) -> None:
        world.payloads.put_context = put_context  # type: ignore[method-assign]
        world.clock.wait_until(world.clock.now() + MINUTE)
        put_context(*of)

    world.payloads.put_context = put_slowly  # type: ignore[method-assign]
    upload(world, 1)
    upload(world, 2)
    passes(world, "1m", "1m", "13m", "2m")
    finish(world)
    passes(world, "15m")
    finish(world)


def _keeps_slow_policy(world: World) -> bool:
    return beyond_pace(world.targets.emr.called_at, 1, 15 * MINUTE) == []


def _be_refused(world: World) -> None:
    """Two calls are throttled. A third job comes while they wait, and one schedule is closed."""
    world.targets.emr.answers = [NotNow("throttled"), NotNow("throttled")]
    upload(world, 1)
    upload(world, 2)
    for _ in range(4):
        world.clock.pass_by("3s")
        world.settle(lost)
    finish(world)


def _be_refused_and_closed(world: World) -> None:
    world.targets.emr.answers = [NotNow("throttled")]
    upload(world, 1)
    people(world, lambda: world.disable("daily"))


def _be_refused_and_lose_a_row(world: World) -> None:
    """A run queues for its next call; its row in the queue is lost, as after a restore of one table."""
    world.targets.emr.answers = [NotNow("throttled")]
    upload(world, 1)
    for run in world.runs("daily"):
        waiter = waiter_of(run)
        if waiter is not None:
            lost(lambda waiter=waiter: world.ports.ledger.commit([RemoveWaiter(waiter), LeaveQueue(waiter.limit_name)]))
    passes(world, "11m")
    finish(world)


def _be_refused_in_a_bundle(world: World) -> None:
    world.targets.queue.answers = [Never("no such queue")]
    _fire_in_blocks(world)


def _paces_data(world: World) -> bool:
    """Whether the starts keep the pace of the policy, and each message has the data of its schedule."""
    kept = world.targets.queue.data
    return _keeps_fast_policy(world) and None not in kept and all(data == kept[0] for data in kept)


def _keeps_fast_policy(world: World) -> bool:
    return beyond_pace(world.targets.queue.sent_at, POLICIES["fast"]["max_events"], 10 * SECOND) == []


def _in_time(world: World) -> bool:
    return beyond_pace(world.targets.emr.called_at, MOST, MINUTE) == []


# Its jobs queue for admission to the policy, because they need permits of a group, too.
GROUPED = [{"type": "concurrency", "group": "spark", "max": 9, "on_unmet": "wait"}]
DATA = {"tables": ["flights"]}
SLOW = {"start_burst": 1, "start_rate_per_second": 0.1}

PACED = {
    "a policy that two schedules share": Scenario(
        {"a": calm(), "b": calm(workflow="join", constraints=GROUPED)},
        _share_a_policy,
        [({"a": ["SUCCEEDED"] * 3, "b": ["SUCCEEDED"] * 3}, 6)],
        holds=_in_time,
    ),
    "a policy, and a start rate that is slower for a while": Scenario(
        {"slow": calm(), "fast": partitions(by=["day"], workflow="join")},
        _share_a_policy,
        [({"slow": ["SUCCEEDED"] * 3, "fast": ["SUCCEEDED"] * 3}, 6)],
        holds=lambda world: beyond_pace(world.targets.emr.called_at, 1, 8 * SECOND) == [],
        tuned=SLOW,
    ),
    "a policy that comes to allow more": Scenario(
        {"a": calm(), "b": calm(workflow="join")},
        _be_allowed_more,
        [({"a": ["SUCCEEDED"] * 3, "b": ["SUCCEEDED"] * 3}, 6)],
        holds=_in_time,
    ),
    "a start that misses its permit": Scenario(
        {"daily": calm()}, _miss_a_permit, [({"daily": ["SUCCEEDED"] * 2}, 2)], holds=_keeps_slow_policy
    ),
    "a fast policy, whose jobs start in blocks": Scenario(
        {name: {**SENT_ONCE, "policy": "fast"} for name in "abcd"},
        _fire_in_blocks,
        [({name: ["SUCCEEDED"] for name in "abcd"}, 0)],
        messages=4,
        holds=lambda world: beyond_pace(world.targets.queue.sent_at, 20, 10 * SECOND) == [],
    ),
    "a fast policy, whose queue is in parts": Scenario(
        {name: {**SENT_ONCE, "policy": "faster"} for name in "abcd"},
        _fire_in_blocks,
        [({name: ["SUCCEEDED"] for name in "abcd"}, 0)],
        messages=4,
        holds=lambda world: beyond_pace(world.targets.queue.sent_at, 300, SECOND) == [],
    ),
    "bundles in the queue of a fast policy": Scenario(
        {
            "a": {**SENT_ONCE, "policy": "fast", "spread": {"count": 12}, "data": DATA},
            "b": {**SENT_ONCE, "policy": "fast", "spread": {"count": 7, "over": "1s"}, "data": DATA},
        },
        _fire_in_blocks,
        [({"a": ["SUCCEEDED"] * 12, "b": ["SUCCEEDED"] * 7}, 0)],
        messages=19,
        holds=_paces_data,
    ),
    "an event that leaves its bundle in the queue of a fast policy": Scenario(
        {"a": {**SENT_ONCE, "policy": "fast", "spread": {"count": 6}}},
        _be_refused_in_a_bundle,
        # Killed between the refusal and its record, the event is sent again, and the queue takes it.
        [({"a": ["FAILED"] + ["SUCCEEDED"] * 5}, 0), ({"a": ["SUCCEEDED"] * 6}, 0)],
        messages=None,
        holds=_keeps_fast_policy,
    ),
    "start calls that are throttled": Scenario(
        {"daily": partitions(by=["day"])}, _be_refused, [({"daily": ["SUCCEEDED"] * 2}, 2)]
    ),
    "a run that has lost its row in the queue": Scenario(
        {"daily": partitions(by=["day"])}, _be_refused_and_lose_a_row, [({"daily": ["SUCCEEDED"]}, 1)]
    ),
    "a run that queues for its next call, and is closed": Scenario(
        {"daily": partitions(by=["day"])},
        _be_refused_and_closed,
        [({"daily": [end]}, started) for end in ("ABORTED", "SUCCEEDED", "CANCELLED") for started in (0, 1)]
        + [({"daily": []}, 0)],
    ),
}
