"""A worker's request that meets another's, a person's or the sweep's, in the orders of their calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.sweep import Ref
from chalicelib.flow import attend, cancel
from tests.faults import invariants
from tests.faults.memory_tables import QuickWorld
from tests.faults.turns import every_order, side_by_side
from tests.support.pull_workers import POOL, PullWorker
from tests.support.world import flights
from tests.workers.conftest import TWICE

AT_NOON = {"type": "time", "expression": "1 12 2 3 *"}
FIRED = {"workflow": "pulled", "enabled": True, "trigger": AT_NOON}


class Pool:
    """One fire of a schedule in its pool, and two workers."""

    def __init__(self) -> None:
        self.world = QuickWorld(wake_shards=1, history_shards=1)
        self.world.deploy(flights({"clean": FIRED}, pulled=TWICE))
        self.world.pass_by("2m")
        self.ann, self.bob = PullWorker(self.world, "ann"), PullWorker(self.world, "bob")

    @property
    def run_id(self) -> str:
        return self.world.runs("clean")[0].run_id

    @property
    def states(self) -> list[str]:
        return [run.state for run in self.world.runs("clean")]

    def held(self) -> Pool:
        self.ann.claim()
        self.ann.beat()
        return self

    def expired(self) -> Pool:
        self.held().world.clock.pass_by("2m")
        return self

    def look(self) -> None:
        attend.attend(self.world.ports, Ref("run", (self.run_id, "001")))

    def wish(self) -> None:
        cancel.wish(self.world.ports, self.run_id, 1, "somebody said so")

    def quietly(self, act: Callable[[], object]) -> None:
        """A request that may be refused."""
        with suppress(SluiceError):
            act()

    def work_off(self) -> None:
        """What is left is done by whoever has it, or comes for it."""
        for _ in range(3):
            self.bob.claim(10)
            for worker in (self.ann, self.bob):
                for place in range(len(worker.leases)):
                    self.quietly(lambda worker=worker, place=place: worker.succeed(place))
            self.world.pass_by("2m")


def _one_has_it(pool: Pool) -> None:
    assert len(pool.ann.leases) + len(pool.bob.leases) == 1, "exactly one of both has got it"


def _begun_or_aborted(pool: Pool) -> None:
    """Whoever got it before the disable was acknowledged goes on; else it never begins."""
    pool.world.settle()
    assert pool.bob.claim() == [], "after a disable nothing is handed out"
    ends = ["SUCCEEDED"] if pool.ann.leases else ["ABORTED"]
    pool.work_off()
    assert pool.states == ends


def _told_or_cancelled(pool: Pool) -> None:
    pool.world.settle()
    if pool.ann.leases:
        assert pool.ann.beat()["cancel"] is True
        pool.ann.fail(exit_code=-15)
    pool.world.pass_by("1m")
    assert pool.states == ["CANCELLED"]


def _alive_or_lost(pool: Pool) -> None:
    """A heartbeat that was taken in keeps the run; else its attempt is lost, and another follows."""
    assert pool.states[0] in ("RUNNING", "RETRYING")
    alive = pool.states[0] == "RUNNING"
    pool.work_off()
    assert pool.states == (["SUCCEEDED"] if alive else ["RETRYING", "SUCCEEDED"])


def _ended_once(pool: Pool) -> None:
    assert pool.states[0] in ("SUCCEEDED", "RETRYING")
    ended = pool.states[0] == "SUCCEEDED"
    pool.work_off()
    assert pool.states == (["SUCCEEDED"] if ended else ["RETRYING", "SUCCEEDED"])
    assert [record.kind for record in pool.world.records("clean")] == ([] if ended else ["LATE"])


def _given_back_or_cancelled(pool: Pool) -> None:
    pool.world.settle()
    pool.bob.claim()
    assert pool.states == ["CANCELLED"]


@dataclass(frozen=True)
class Meeting:
    first: Callable[[Pool], object]
    second: Callable[[Pool], object]
    then: Callable[[Pool], None]
    before: Callable[[Pool], object] = lambda pool: pool


MEETINGS = {
    "two workers claim": Meeting(lambda pool: pool.ann.claim(), lambda pool: pool.bob.claim(), _one_has_it),
    "a claim and a disable": Meeting(
        lambda pool: pool.ann.claim(), lambda pool: pool.world.disable("clean"), _begun_or_aborted
    ),
    "a claim and a cancel": Meeting(lambda pool: pool.ann.claim(), Pool.wish, _told_or_cancelled),
    "a late heartbeat and the sweep": Meeting(
        lambda pool: pool.quietly(pool.ann.beat), Pool.look, _alive_or_lost, Pool.expired
    ),
    "a late report and the sweep": Meeting(
        lambda pool: pool.quietly(pool.ann.succeed), Pool.look, _ended_once, Pool.expired
    ),
    "a release and a cancel": Meeting(
        lambda pool: pool.ann.release(), Pool.wish, _given_back_or_cancelled, lambda pool: pool.ann.claim()
    ),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_w5_whatever_the_order_of_two_requests_it_comes_out_right(name: str) -> None:
    meeting = MEETINGS[name]
    orders = 0
    for swapped in (False, True):
        orders += len(list(every_order(lambda calls, swapped=swapped: _play(meeting, calls, swapped), stride=2)))
    assert orders > 4


def _play(meeting: Meeting, calls: tuple[int, int], swapped: bool) -> tuple[bool, bool]:
    pool = Pool()
    meeting.before(pool)
    acts = (meeting.second, meeting.first) if swapped else (meeting.first, meeting.second)
    try:
        left = side_by_side(pool.world, lambda: acts[0](pool), lambda: acts[1](pool), calls)
        invariants.check(pool.world)
        meeting.then(pool)
        pool.work_off()
        invariants.check_rest(pool.world)
        assert pool.world.ports.jobs.offers(POOL, 10) == ()
    except Exception as error:
        raise AssertionError(f"swapped {swapped}, after {calls} calls: {type(error).__name__} {error}") from error
    return left
