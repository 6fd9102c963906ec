"""How a block of permits is shared among invocations, what its hints carry, and which waiters it may have (E3)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.limits.permits import Pace
from chalicelib.core.rows.limit import Waiter
from chalicelib.core.rows.ref import block_ref
from chalicelib.flow.deliveries import appointments
from chalicelib.flow.deliveries.appointments import OnTheirWay, Slot
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights

LIMIT = "policy:demo.calm"
AFTER: Instant = NOON + 10_000


def waiter(number: int, schedule: str = "demo.flights.s", queue: str = LIMIT, sort_key: str = "JOB#x") -> Waiter:
    return Waiter(queue, f"R{number:03}", schedule, 1_300, sort_key, f"{schedule}!{number}")


def slots(*at: Instant) -> list[Slot]:
    return [Slot(NOON + instant, waiter(number)) for number, instant in enumerate(at)]


def mark(one: Slot) -> str:
    return ids.digest(one.waiter.rank, one.waiter.job_id, length=8)


# -- jobs on their way -------------------------------------------------------------------------------------------------


def test_e3_a_hint_names_jobs_on_their_way_and_until_when() -> None:
    """Another version of the code may read the hint."""
    first, second, third = slots(0, 10, 20)
    sent = OnTheirWay((), NOON)
    sent.add([first, second], AFTER)
    sent.add([third], AFTER + 1)
    assert sent.texts == [
        f"{ids.base36(AFTER)}:{mark(first)}{mark(second)}",
        f"{ids.base36(AFTER + 1)}:{mark(third)}",
    ]
    read = OnTheirWay(sent.texts, NOON)
    assert len(read) == 3
    assert all(one.waiter in read for one in (first, second, third))
    assert waiter(7) not in read
    assert read.texts == sent.texts


@pytest.mark.parametrize(("now", "left"), [(AFTER - 1, 3), (AFTER, 1), (AFTER + 1, 0)])
def test_e3_a_job_is_on_its_way_until_the_instant_of_its_text(now: Instant, left: int) -> None:
    sent = OnTheirWay((), NOON)
    sent.add(slots(0, 10), AFTER)
    sent.add([Slot(NOON, waiter(9))], AFTER + 1)
    assert len(OnTheirWay(sent.texts, now)) == left


def test_e3_a_job_with_another_rank_is_not_on_its_way() -> None:
    """It has queued anew since."""
    sent = OnTheirWay((), NOON)
    sent.add(slots(0), AFTER)
    assert Waiter(LIMIT, "R777", "demo.flights.s", 1_300, "JOB#x", waiter(0).job_id) not in sent


# -- the parts of a block ----------------------------------------------------------------------------------------------


def shares(tolerance: Millis, *at: Instant) -> list[list[Instant]]:
    """The appointments of each invocation, after noon."""
    return [[slot.at - NOON for slot in part] for part in appointments.parts_of(slots(*at), tolerance)]


@pytest.mark.parametrize(
    ("tolerance", "at", "expected"),
    [
        (20, (), []),
        (20, (0,), [[0]]),
        (20, (0, 100, 200, 300), [[0, 100, 200, 300]]),  # one invocation has 75 ms for each call
        (20, (0, 90, 180, 279), [[0, 180], [90, 279]]),  # it would have 69 ms
        (20, (0, 93, 186, 280), [[0, 93, 186, 280]]),  # 70 ms are enough
        (20, (0, 50, 100, 150), [[0, 100], [50, 150]]),
        (20, (0, 11, 22, 33, 44, 55), [[0], [11], [22], [33], [44], [55]]),
        (20, (0, 10, 20, 30), [[0, 10], [20, 30]]),  # calls begin together within half of the tolerance
        (21, (0, 10, 11, 21), [[0, 10], [11, 21]]),
        (20, (0, 5, 10, 15), [[0, 5, 10], [15]]),
        (0, (0, 0, 0), [[0, 0, 0]]),
        (1_000, (0, 1, 2, 3), [[0, 1, 2, 3]]),
        (1, tuple(range(40)), [[instant] for instant in range(40)]),
        (1, tuple(range(80)), [[instant, instant + 70][: 1 + (instant < 10)] for instant in range(70)]),
    ],
)
def test_e3_a_block_is_shared_by_the_time_of_its_calls(
    tolerance: Millis, at: tuple[Instant, ...], expected: list[list[Instant]]
) -> None:
    assert shares(tolerance, *at) == expected


def test_e3_a_call_of_a_block_has_at_most_ten_jobs() -> None:
    """Sqs and sns take no more in a call."""
    assert shares(1_000, *range(25)) == [list(range(10)), list(range(10, 20)), list(range(20, 25))]


@pytest.mark.parametrize(("jobs", "invocations"), [(50, 1), (51, 2), (100, 2), (101, 3)])
def test_e3_an_invocation_sends_fifty_jobs_of_a_block(jobs: int, invocations: int) -> None:
    found = shares(20, *(number * 100 for number in range(jobs)))
    assert len(found) == invocations
    assert sorted(instant for part in found for instant in part) == [number * 100 for number in range(jobs)]


# -- the hint of a part ------------------------------------------------------------------------------------------------


def test_e3_the_hint_of_a_part_has_each_job_and_appointment() -> None:
    """Another version of the code may read the hint."""
    pace = Pace(LIMIT, 20, 1, 170)
    part = [Slot(NOON, waiter(1)), Slot(NOON + 20, waiter(2, "demo.flights.t", f"{LIMIT}/12", "FIRE#y"))]
    ref = appointments.ref_of_part(pace, part)
    assert ref == block_ref(
        LIMIT, "170",
        ids.base36(NOON), "R001", "demo.flights.s", "104", "JOB#x", "demo.flights.s!1",
        f"{ids.base36(NOON + 20)}/12", "R002", "demo.flights.t", "104", "FIRE#y", "demo.flights.t!2",
    )  # fmt: skip
    assert appointments.read_part(ref) == (part, 170)


def test_e3_the_hint_of_an_empty_part_has_no_job() -> None:
    assert appointments.read_part(block_ref(LIMIT, "170")) == ([], 170)


# -- who may be sent in a block ----------------------------------------------------------------------------------------


def served(*names: str, **schedules: Any) -> World:
    """A policy, and schedules that need nothing else."""
    world = World()
    plain = {name: at("1 3 * * *", "notify", policy="calm") for name in names}
    document = flights({**plain, **schedules})
    world.deploy({**document, "policies": {"calm": {"max_events": 10, "interval": "1s"}}})
    return world


def head(world: World, *waiting: Waiter) -> list[int]:
    """The numbers of the waiters at the head that may be sent in a block."""
    return [int(one.job_id.rpartition("!")[2]) for one in appointments.plain_head(world.ports, waiting)]


def test_e3_a_block_ends_before_a_job_that_needs_a_claim() -> None:
    """A run of EMR is claimed before its call."""
    world = served("a", emr=at("1 3 * * *", "clean", policy="calm"))
    plain, claimed = "demo.flights.a", "demo.flights.emr"
    assert head(world) == []
    assert head(world, waiter(1, plain), waiter(2, plain)) == [1, 2]
    assert head(world, waiter(1, plain), waiter(2, claimed), waiter(3, plain)) == [1]
    assert head(world, waiter(1, claimed), waiter(2, plain)) == []
    run = waiter(2, plain, sort_key="A#1")
    assert head(world, waiter(1, plain), run, waiter(3, plain)) == [1]


def test_e3_definitions_of_a_block_are_read_once() -> None:
    """One by one for two schedules, together for three."""
    world = served("a", "b", "c")
    reads = [0]

    def count() -> None:
        reads[0] += 1

    world.tables.before_call = count
    found = []
    for name in "abc":
        head(world, waiter(0, f"demo.flights.{name}"))
    for names in ("a", "aaaa", "ab", "abab", "abc", "abcabc"):
        reads[0] = 0
        waiting = [waiter(number, f"demo.flights.{name}") for number, name in enumerate(names)]
        assert head(world, *waiting) == list(range(len(names)))
        found.append(reads[0])
    assert found[0] == found[1]
    assert found[2] == found[3] == 2 * found[0]
    assert found[4] == found[5] < 3 * found[0]


# -- the permits -------------------------------------------------------------------------------------------------------


def test_e3_a_block_that_another_invocation_acquired_has_no_slot() -> None:
    world = served("a")
    pace, now = Pace(LIMIT, 100, 1), world.clock.now()
    waiting = [waiter(number) for number in range(3)]
    found, after = appointments.acquire(world.ports, pace, 0, waiting)
    assert [slot.waiter for slot in found] == waiting
    assert [slot.at for slot in found] == [now + 350, now + 450, now + 550]
    assert after == now + 650 == world.limit_state(LIMIT).head
    assert appointments.acquire(world.ports, pace, 0, waiting) == ([], 0)
    assert world.limit_state(LIMIT).head == after
    assert appointments.acquire(world.ports, pace, after, []) == ([], after)
    more = [waiter(number) for number in range(6)]
    found, after = appointments.acquire(world.ports, pace, after, more)
    assert ([slot.waiter for slot in found], after) == (more[:4], now + 1_050), "a block spans 400 ms"
    far = now + 3_600_000
    assert appointments.acquire(world.ports, pace, far, waiting) == ([], far)
