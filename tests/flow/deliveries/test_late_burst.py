"""A burst that is late: hints that come again find that another invocation delivers it, and leave it alone."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref
from chalicelib.flow.deliveries.leases import SEVERAL
from chalicelib.flow.system import sweep
from chalicelib.flow.system.dispatch import begin, dispatch_together, finish
from tests.support.schedules import at
from tests.support.world import World, flights

COUNT = 100
AT_ONE = "1 12 * * *"


def at_its_instant(count: int = COUNT) -> tuple[World, list[Ref], int]:
    """A world at the instant at which so many schedules are due, with the refs of their jobs."""
    world = World()
    world.deploy(flights({f"s{number:03d}": at(AT_ONE, "notify") for number in range(count)}))
    due = world.clock.now() + MINUTE
    refs = [ref for _, ref in world.hints.sent if ref.kind == "job"]
    assert len(refs) == count
    return world, refs, due


def calls_of(world: World, act: Any) -> int:
    calls: list[None] = []
    world.tables.before_call = lambda: calls.append(None)
    act()
    world.tables.before_call = lambda: None
    return len(calls)


def jobs_of(world: World, refs: list[Ref]) -> list[Job | None]:
    return [world.ports.rows.get(Job, ref.parts[0], int(ref.parts[1], 36), ref.parts[2]) for ref in refs]


def test_e6_jobs_under_the_lease_of_another_cost_few_reads() -> None:
    world, refs, due = at_its_instant()
    begun = begin(world.ports, refs, due)
    world.clock.wait_until(due + 3 * SECOND)
    (lease,) = world.ports.jobs.delivery_leases(due)
    world.hints.sent.clear()

    calls = calls_of(world, lambda: dispatch_together(world.ports, refs, due))

    assert calls == 4, "the count of closings, jobs and states a hundred per call, and the leases of their instant"
    assert {due for due, _ in world.hints.sent} == {lease.leased_until}
    assert [ref for _, ref in world.hints.sent] == refs
    assert world.targets.queue.messages == []
    finish(world.ports, begun)
    assert len(world.targets.queue.messages) == COUNT


def test_e3_jobs_of_a_dead_invocation_are_sent_after_its_lease() -> None:
    world, refs, due = at_its_instant()
    begin(world.ports, refs, due)
    world.clock.wait_until(due + 3 * SECOND)
    (lease,) = world.ports.jobs.delivery_leases(due)
    dispatch_together(world.ports, refs, due)
    assert world.targets.queue.messages == []

    world.clock.pass_by(f"{(lease.leased_until - world.clock.now()) // SECOND + 1}s")
    world.settle()

    assert len(world.targets.queue.messages) == COUNT
    assert jobs_of(world, refs) == [None] * COUNT


def test_e6_what_is_delivered_already_is_read_once() -> None:
    world, refs, due = at_its_instant()
    world.clock.wait_until(due)
    dispatch_together(world.ports, refs, due)
    assert len(world.targets.queue.messages) == COUNT

    calls = calls_of(world, lambda: dispatch_together(world.ports, refs, due))

    assert calls == 3, "the count of closings, and jobs and states a hundred per call"
    assert len(world.targets.queue.messages) == COUNT


def test_o3_the_sweep_changes_no_row_that_is_being_delivered() -> None:
    world, refs, due = at_its_instant()
    begin(world.ports, refs, due)
    before = jobs_of(world, refs)
    world.clock.wait_until(due + 7 * SECOND)
    (lease,) = world.ports.jobs.delivery_leases(due)
    world.hints.sent.clear()

    assert sweep.sweep_all(world.ports) == COUNT

    assert jobs_of(world, refs) == before, "a lease of the sweep would be a write for each job"
    assert {at for at, _ in world.hints.sent} == {lease.leased_until}
    assert {ref for _, ref in world.hints.sent} == set(refs)


def test_o3_the_sweep_leases_a_late_burst_that_nobody_delivers() -> None:
    world, refs, due = at_its_instant()
    begin(world.ports, refs, due)
    (lease,) = world.ports.jobs.delivery_leases(due)
    world.clock.wait_until(lease.leased_until + 1)
    world.hints.sent.clear()

    assert sweep.sweep_all(world.ports) == COUNT

    now = world.clock.now()
    assert {at for at, _ in world.hints.sent} == {now}
    assert [job and job.leases for job in jobs_of(world, refs)] == [1] * COUNT


@pytest.mark.parametrize(("count", "reads"), [(SEVERAL - 1, 0), (SEVERAL, 1)])
def test_c8_leases_are_read_for_several_late_jobs_only(count: int, reads: int) -> None:
    world, _, due = at_its_instant(count)
    world.clock.wait_until(due + 7 * SECOND)
    looks: list[Any] = []
    plain = world.ports.jobs.delivery_leases

    def counted(*of: Any) -> Any:
        looks.append(of)
        return plain(*of)

    with patch.object(world.ports.jobs, "delivery_leases", counted):
        sweep.sweep_all(world.ports)

    assert len(looks) == reads


@pytest.mark.parametrize("beside", [{}, {"spread": {"count": 30, "over": "1ms"}}, {"policy": "calm"}])
def test_e3_a_late_burst_beside_other_features_is_sent_once(beside: dict[str, Any]) -> None:
    """Its first invocation has died with its leases. Ticks and hints send all of it later, each event once."""
    world = World()
    each = at(AT_ONE, "notify", **beside)
    document = flights({f"s{number:03d}": each for number in range(30)})
    world.deploy({**document, "policies": {"calm": {"max_events": 100, "interval": "1s"}}})
    due = world.clock.now() + MINUTE
    refs = [ref for _, ref in world.hints.sent if ref.kind == "job"]
    assert len(refs) >= 30
    begin(world.ports, refs, due)
    world.clock.wait_until(due + 7 * SECOND)
    sweep.sweep_all(world.ports)
    dispatch_together(world.ports, refs, due)

    world.pass_by("5m")

    sent = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(sent) == len(set(sent)) == 30 * beside.get("spread", {"count": 1})["count"]


def test_e6_a_hint_for_the_end_of_a_lease_is_not_repeated() -> None:
    """It arrives before that instant. Sent again at once, it would arrive at once."""
    world, refs, due = at_its_instant()
    begin(world.ports, refs, due)
    world.clock.wait_until(due + 3 * SECOND)
    (lease,) = world.ports.jobs.delivery_leases(due)
    world.clock.wait_until(lease.leased_until - 2 * SECOND)
    world.hints.sent.clear()

    begun = begin(world.ports, refs, lease.leased_until)

    assert world.hints.sent == []
    assert begun.leased.again == tuple(refs)
