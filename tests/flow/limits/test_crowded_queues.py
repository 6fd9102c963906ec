"""Many jobs queue at a limit, and their hints come before the limit's own. The limit is served all the same (E3)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import is_of_block
from chalicelib.flow.definitions import store
from chalicelib.flow.deliveries import appointments
from chalicelib.flow.deliveries.leases import Leases
from chalicelib.flow.jobs import queue
from chalicelib.flow.system import dispatch
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights

JOBS = 200
CALM = {"max_events": 20, "interval": "10s"}
HOURLY, MINUTELY = {"max_events": 1, "interval": "1h"}, {"max_events": 5, "interval": "1m"}
LIMIT = "policy:demo.calm"


def work_off(world: World, until: Instant) -> None:
    """Dispatch hints one by one, in the order in which they were sent, once they are due. Each takes a fifth of a
    second. Hints of blocks do not wait behind others: they have a queue of their own."""
    while world.clock.now() < until:
        due = [hint for hint in world.hints.sent if hint[0] <= world.clock.now()]
        ready = next((hint for hint in due if is_of_block(hint[1])), due[0] if due else None)
        if ready is None:
            world.clock.pass_by("100ms")
            continue
        world.hints.sent.remove(ready)
        dispatch.dispatch(world.ports, ready[1])
        world.clock.pass_by("200ms")


def test_e3_policy_permits_are_taken_while_jobs_still_join_queue() -> None:
    world = World()
    each = {f"s{number}": at("1 12 * * *", "notify", policy="calm") for number in range(JOBS)}
    world.deploy({**flights(each), "policies": {"calm": CALM}})
    world.settle()
    world.tick()
    work_off(world, NOON + 2 * MINUTE)

    sent = world.targets.queue.sent_at
    joining = [instant for instant in sent if instant < NOON + MINUTE + JOBS * SECOND // 5]
    assert len(joining) >= 40, "of the eighty that are allowed while the others join"
    pauses = [after - before for before, after in pairwise(sent)]
    assert max(pauses) <= 2 * SECOND, "the next permits are taken when they are there"
    assert all(sum(start <= other < start + 10 * SECOND for other in sent) <= 20 for start in sent)


def one_of_three_sent() -> World:
    """A policy of one start an hour: two jobs wait in its queue."""
    world = World()
    world.deploy({**flights({"s": at("1 3 * * *", "notify", policy="calm")}), "policies": {"calm": HOURLY}})
    for number in range(3):
        world.run_now("s", request=f"r{number}")
    world.settle()
    return world


def test_e3_a_leased_head_is_looked_at_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    world = one_of_three_sent()
    left = len(world.targets.queue.sent_at)
    [head] = world.ports.jobs.head_of(LIMIT, 1)
    job = world.ports.rows.get(Job, head.job_schedule, head.job_generation, head.job_sort_key)
    assert job is not None
    Leases(world.ports).take([job], 30 * SECOND, world.clock.now())  # of an invocation that dies
    store.put(world.ports, "policy", "demo.calm", MINUTELY, "tester")
    looks: list[Waiter] = []
    is_leased = appointments.is_leased
    monkeypatch.setattr(appointments, "is_leased", lambda ports, one: looks.append(one) or is_leased(ports, one))
    world.pass_by("20s")
    assert len(world.targets.queue.sent_at) == left
    assert 1 <= len(looks) <= 20
    world.pass_by("2m")
    assert len(world.targets.queue.sent_at) == 3


def test_e3_a_queue_rests_while_its_head_is_on_its_way() -> None:
    """The jobs of a queue are in a block of a policy that was faster. A permit is free, and they must not use it."""
    world = one_of_three_sent()
    sent = len(world.targets.queue.sent_at)
    waiting = world.ports.jobs.head_of(LIMIT, 5)
    assert len(waiting) == 2
    store.put(world.ports, "policy", "demo.calm", MINUTELY, "tester")
    free_at = world.ports.jobs.limit_state(LIMIT).wake_at
    assert free_at is not None
    world.clock.wait_until(free_at)
    world.hints.sent.clear()
    now = world.clock.now()
    on_their_way = appointments.OnTheirWay([], now)
    on_their_way.add([appointments.Slot(now, waiter) for waiter in waiting], now + 2 * SECOND)

    queue.serve(world.ports, LIMIT, sent=on_their_way.texts)

    assert len(world.targets.queue.sent_at) == sent
    [(again, ref)] = [hint for hint in world.hints.sent if is_of_block(hint[1])]
    assert (again, ref.parts[0]) == (now + queue.AGAIN, LIMIT)
    world.pass_by("1m")
    assert len(world.targets.queue.sent_at) == 3, "their block was lost, so they get permits of their own"
