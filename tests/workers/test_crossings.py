"""A worker's request meets another worker's, a user's or the sweep's, in the orders of their calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.ref import Ref
from chalicelib.flow.runs import follow
from chalicelib.flow.system import dispatch
from tests.faults import invariants
from tests.faults.meetings.entry import try_two
from tests.faults.meetings.situation import two
from tests.faults.meetings.situations_queues import made
from tests.faults.meetings.situations_runs import worker
from tests.support.pull_workers import POOL
from tests.support.reasons import says
from tests.support.world import World, flights
from tests.workers.conftest import TWICE

AT_NOON = {"type": "time", "expression": "1 12 2 3 *"}
FIRED = {"workflow": "pulled", "enabled": True, "trigger": AT_NOON}


class Pool:
    """One fire of a schedule in its pool, and two workers, whose leases are kept outside the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ann, self.bob = worker(world, "ann"), worker(world, "bob")

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

    def poll(self) -> None:
        dispatch.dispatch(self.world.ports, Ref("run", (self.run_id, "001")))

    def request_cancel(self) -> None:
        follow.request_cancel(self.world.ports, self.run_id, 1, says("somebody said so"))

    def quietly(self, act: Callable[[], object]) -> None:
        """A request that may be refused."""
        with suppress(SluiceError):
            act()

    def work_off(self) -> None:
        """A worker does the remaining work: the one with the lease, or one that claims it."""
        for _ in range(3):
            self.bob.claim(10)
            for each in (self.ann, self.bob):
                for place in range(len(each.leases)):
                    self.quietly(lambda each=each, place=place: each.succeed(place))
            self.world.pass_by("2m")


def _one_has_it(pool: Pool) -> None:
    assert len(pool.ann.leases) + len(pool.bob.leases) == 1, "exactly one of both has got it"


def _begun_or_aborted(pool: Pool) -> None:
    """A run that was claimed before the disable was acknowledged continues; otherwise it never begins."""
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
    """A heartbeat that was accepted keeps the run. Otherwise its attempt is lost, and another follows."""
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
    "a claim and a cancel": Meeting(lambda pool: pool.ann.claim(), Pool.request_cancel, _told_or_cancelled),
    "a late heartbeat and the sweep": Meeting(
        lambda pool: pool.quietly(pool.ann.beat), Pool.poll, _alive_or_lost, Pool.expired
    ),
    "a late report and the sweep": Meeting(
        lambda pool: pool.quietly(pool.ann.succeed), Pool.poll, _ended_once, Pool.expired
    ),
    "a release and a cancel": Meeting(
        lambda pool: pool.ann.release(), Pool.request_cancel, _given_back_or_cancelled, lambda pool: pool.ann.claim()
    ),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_w5_two_requests_in_any_order_give_a_valid_result(name: str, record_property: Any) -> None:
    meeting = MEETINGS[name]

    def build() -> World:
        world = made(flights({"clean": FIRED}, pulled=TWICE), lambda world: world.pass_by("2m"))
        meeting.before(Pool(world))
        return world

    def rest(world: World) -> None:
        meeting.then(Pool(world))
        Pool(world).work_off()
        invariants.check_rest(world)
        assert world.ports.jobs.offers(POOL, 10) == ()

    acts = (lambda world, act=act: act(Pool(world)) for act in (meeting.first, meeting.second))
    situation = two(build, *acts, ended=lambda played: invariants.check(played.world), rest=rest)
    try_two(situation, most=30, least=4, note=record_property)
