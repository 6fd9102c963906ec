"""When the calls of a block begin, from which reads, and which jobs they have (E3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from chalicelib.core.instants import SECOND, Millis, parse_instant
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.runs import queued
from chalicelib.core.targets import sub_batches
from chalicelib.core.writes import Replace
from chalicelib.flow.definitions import store
from chalicelib.flow.deliveries import appointments
from chalicelib.flow.deliveries.appointments import Slot
from tests.flow.deliveries.test_send_permits import LIMIT, READY, TOLERANCE, Slow, at_instant
from tests.support.answers import explain
from tests.support.schedules import at, partitions
from tests.support.world import SQS, World, day, flights, full

# The targets of the schedules, each with a queue of its own. Calls are made in the order of the queues.
QUEUES = {name: SQS | {"queue_url": f"https://sqs.example/sluice-target-{name}"} for name in "abc"}
WIDE: Millis = 170
ROLE = "arn:aws:iam::123456789012:role/sluice-target-one"
# This schedule has the queue of a, and no start after 12:01.
CLOSING = {"constraints": [{"type": "time_window", "start": "00:00", "end": "12:01"}]}
CLOSES = parse_instant("2026-03-02T12:01:00Z")


def waiting(*names: str, role: str | None = None) -> World:
    """A job of each of these schedules waits for a permit of a policy, which has become fast."""
    world = World(target_role_arns=(ROLE,))
    timed = {name: at("1 3 * * *", name, policy="calm") for name in "abc"}
    gathering = partitions(workflow="a", policy="calm")
    schedules = {**timed, "closing": at("1 3 * * *", "a", policy="calm", **CLOSING), "gathering": gathering}
    document = flights(schedules, **{name: {"target": target} for name, target in QUEUES.items()})
    world.deploy({**document, "policies": {"calm": {"max_events": 1, "interval": "1h"}}})
    if role is not None:
        world.allow("demo", target_role=role)
    for number, name in enumerate(("a", *names)):
        if name == "gathering":
            world.upload(day(number))
        else:
            world.run_now(name, request=f"r{number}")
        world.settle()
    store.put(world.ports, "policy", "demo.calm", {"max_events": 10, "interval": "1s"}, "tester")
    assert world.limit_state(LIMIT).waiters == len(names)
    world.targets.queue.messages.clear()
    world.targets.queue.sent_at.clear()
    world.targets.sts.called_as.clear()
    world.hints.sent.clear()
    return world


def slots(world: World, *after: tuple[str, Millis]) -> list[Slot]:
    """Appointments so long after `READY`, each for the next waiter of a schedule."""
    begin = world.clock.now() + READY
    left: list[Waiter] = list(world.ports.jobs.head_of(LIMIT, 10))
    found = []
    for name, each in after:
        waiter = next(waiter for waiter in left if waiter.job_schedule == full(name))
        left.remove(waiter)
        found.append(Slot(begin + each, waiter))
    return found


def sent(world: World, block: Sequence[Slot]) -> list[tuple[str, Millis]]:
    """The schedules whose jobs were sent, and when, after the first appointment."""
    queue = world.targets.queue
    names = [run_id.split(".")[2] for run_id, _ in queue.messages]
    return [(name, instant - block[0].at) for name, instant in zip(names, queue.sent_at, strict=True)]


# -- when a call begins ------------------------------------------------------------------------------------------------


def test_e3_calls_to_several_queues_begin_together() -> None:
    """A call waits for the other appointments of its queue within half of the tolerance, and for no others."""
    world = waiting("a", "b", "c", "b", "b")
    block = slots(world, ("a", 0), ("b", 5), ("c", 10), ("b", 15), ("b", 16))
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    assert sent(world, block) == [("a", 0), ("b", 15), ("b", 15), ("c", 15), ("b", 16)]


@pytest.mark.parametrize(("takes", "late"), [(TOLERANCE - 1, False), (TOLERANCE, True), (TOLERANCE + 5, True)])
def test_e3_a_call_after_a_slow_one_is_in_time_or_not_made(takes: Millis, late: bool) -> None:
    """The rows are fresh, but the tolerance has passed: the job stays in its queue."""
    world = waiting("a", "b")
    world.targets.queue.takes = takes
    block = slots(world, ("a", 0), ("b", 0))
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    assert sent(world, block) == [("a", 0), ("b", takes)][: 1 if late else 2]
    assert world.limit_state(LIMIT).waiters == late


@pytest.mark.parametrize(("short", "made"), [(0, True), (1, False)])
def test_e3_a_late_call_is_made_with_time_for_it_and_its_record(short: Millis, made: bool) -> None:
    """A slow read has ended after the appointment. What has passed of it needs no time of the invocation."""
    world = waiting("a")
    block = slots(world, ("a", 0))
    ends_at = block[0].at + 5 + sub_batches.longest_call(SQS) + 10 * SECOND - short
    ports = replace(world.with_ports(prefetch=Slow(world, 45)), ends_at=ends_at)
    assert appointments.send_part(ports, block, TOLERANCE) == []
    assert sent(world, block) == [("a", 5)][:made]


# -- what a call relies on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("takes", "reads"), [(60, [-40]), (61, [-40, 61])])
def test_e3_a_call_relies_on_a_read_of_the_last_100_ms(takes: Millis, reads: list[Millis]) -> None:
    """A slow call to one queue makes the read too old for the other. Its rows are then read again."""
    world = waiting("a", "b")
    world.targets.queue.takes = takes
    block = slots(world, ("a", 0), ("b", 0))
    slow = Slow(world)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, WIDE) == []
    assert [instant - block[0].at for instant in slow.at] == reads
    assert sent(world, block) == [("a", 0), ("b", takes)]


def test_c13_a_schedule_closed_before_a_slow_call_sends_nothing() -> None:
    """It is disabled right after the read of its rows, and the call before its own ends 101 ms after that read."""
    world = waiting("a", "b", "c")
    world.targets.queue.takes = 61
    block = slots(world, ("a", 0), ("b", 0), ("c", 0))
    left = ["b"]
    slow = Slow(world, then=lambda: world.disable(left.pop()) if left else None)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, WIDE) == [block[1].waiter]
    assert sent(world, block) == [("a", 0), ("c", 61)]


@pytest.mark.parametrize(("takes", "reads"), [(100, [-40]), (101, [-40, 61])])
def test_c13_a_slow_read_covers_one_call_of_a_block(takes: Millis, reads: list[Millis]) -> None:
    """It ends too late for a call within 100 ms. One call is made at once, and the rows of the others read again."""
    world = waiting("a", "b", "c")
    block = slots(world, ("a", 0), ("b", 0), ("c", 0))
    slow = Slow(world, takes)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, WIDE) == []
    assert [instant - block[0].at for instant in slow.at] == reads
    assert sent(world, block) == [(name, takes - 40) for name in "abc"]


def test_c13_one_call_follows_a_closing_during_a_slow_read() -> None:
    """The schedules of all calls are disabled when their rows have been found."""
    world = waiting("a", "b", "c")
    block = slots(world, ("a", 0), ("b", 0), ("c", 0))
    left = ["abc"]
    slow = Slow(world, 101, then=lambda: [world.disable(name) for name in left.pop()] if left else None)
    assert appointments.send_part(world.with_ports(prefetch=slow), block, WIDE) == [slot.waiter for slot in block[1:]]
    assert sent(world, block) == [("a", 61)]


@pytest.mark.parametrize(("short", "made"), [(0, True), (1, False)])
def test_e3_a_call_after_a_slow_read_is_made_with_time_for_it(short: Millis, made: bool) -> None:
    """The invocation had time for the call when the read began."""
    world = waiting("a")
    block = slots(world, ("a", 0))
    ends_at = block[0].at + 61 + sub_batches.longest_call(SQS) + 10 * SECOND - short
    ports = replace(world.with_ports(prefetch=Slow(world, 101)), ends_at=ends_at)
    assert appointments.send_part(ports, block, WIDE) == []
    assert sent(world, block) == [("a", 61)][:made]


@pytest.mark.parametrize("role", [False, True], ids=["list", "role"])
def test_o10_a_slow_read_of_a_block_makes_no_allow_list_older(role: bool) -> None:
    """It changes right after it was read. Almost five seconds later, a read of the rows takes one. The call is made
    with a new role."""
    world = waiting("a")
    block = slots(world, ("a", 4_500))
    world.targets.queue.tried.clear()
    world.ports.catalog.allowed_lately("demo", world.clock.now())
    world.allow("demo", **({"target_role": ROLE} if role else {"queues": []}))
    read = Slow(world, 1_000)
    assert appointments.send_part(world.with_ports(prefetch=read), block, 2_000) == []
    assert len(world.targets.queue.tried) == role
    assert [(call, arn) for call, _, arn in world.targets.sts.called_as] == [("start_many", ROLE)] * role


def test_e3_a_job_is_decided_again_at_its_call() -> None:
    """Its time window ends while its call waits for another appointment. That one is kept."""
    world = waiting("closing", "a")
    world.clock.wait_until(CLOSES - READY - 5)
    block = slots(world, ("closing", 0), ("a", 10))
    assert appointments.send_part(world.ports, block, TOLERANCE) == [block[0].waiter]
    assert sent(world, block) == [("a", 10)]


def test_t16_a_changed_job_is_named_by_the_row_that_it_has_now() -> None:
    """A job that gathers is detached for its block. What is under its former key is another job."""
    world = waiting("gathering")
    block = slots(world, ("gathering", 0))
    changed: list[Waiter | None] = []

    def change_detached() -> None:
        [job] = world.jobs("gathering")
        changed.append(queued.waiter_of(job))
        assert world.ports.ledger.commit([Replace(replace(job, tries=1, rev=job.rev + 1))]) is None

    world.tables.before_call = at_instant(world, block[0].at - 40, change_detached)
    assert appointments.send_part(world.ports, block, TOLERANCE) == changed
    assert changed not in ([], [None], [block[0].waiter])
    assert sent(world, block) == []


# -- the role of a call ------------------------------------------------------------------------------------------------


def with_role() -> World:
    """The jobs of a namespace with a target role wait. This process has no credentials of that role."""
    world = waiting("a", "b", role=ROLE)
    vars(world.targets.roles)["_sessions"].clear()
    return world


def test_o10_a_block_gets_the_credentials_of_its_role() -> None:
    world = with_role()
    block = slots(world, ("a", 0), ("b", 100))
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    assert sent(world, block) == [("a", 0), ("b", 100)]
    assert [(call, role) for call, _, role in world.targets.sts.called_as] == [("start_many", ROLE)] * 2


def test_o10_a_block_without_credentials_calls_no_target() -> None:
    """Each job says why, and is tried again."""
    world = with_role()
    world.targets.sts.denied.add(ROLE)
    block = slots(world, ("a", 0), ("b", 100))
    tried = len(world.targets.queue.tried)
    assert appointments.send_part(world.ports, block, TOLERANCE) == []
    assert len(world.targets.queue.tried) == tried
    for name in "ab":
        [job] = world.jobs(name)
        assert (job.tries, job.queued_in) == (1, None)
        assert "may not assume the target role of namespace demo" in str(explain.why_job(world.ports, job))
