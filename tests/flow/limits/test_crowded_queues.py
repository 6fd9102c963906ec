"""Many jobs queue at a limit, and their hints come before the limit's own. The limit is served all the same (E3)."""

from __future__ import annotations

from itertools import pairwise

from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.flow.system import dispatch
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World, flights

CROWD = 200
CALM = {"max_events": 20, "interval": "10s"}


class OneByOne(World):
    """Hints come in the order in which they were sent, once they are due, and each takes a fifth of a second."""

    def work_off(self, until: Instant) -> None:
        while self.clock.now() < until:
            ready = next((hint for hint in self.hints.sent if hint[0] <= self.clock.now()), None)
            if ready is None:
                self.clock.pass_by("100ms")
                continue
            self.hints.sent.remove(ready)
            dispatch.dispatch(self.ports, ready[1])
            self.clock.pass_by("200ms")


def test_e3_policy_permits_are_taken_while_jobs_still_join_queue() -> None:
    world = OneByOne()
    each = {f"s{number}": at("1 12 * * *", "notify", policy="calm") for number in range(CROWD)}
    world.deploy({**flights(each), "policies": {"calm": CALM}})
    world.settle()
    world.tick()
    world.work_off(NOON + 2 * MINUTE)

    sent = world.targets.queue.sent_at
    joining = [instant for instant in sent if instant < NOON + MINUTE + CROWD * SECOND // 5]
    assert len(joining) >= 40, "of the eighty that are allowed while the others join"
    pauses = [after - before for before, after in pairwise(sent)]
    assert max(pauses) <= 2 * SECOND, "the next permits are taken when they are there"
    assert all(sum(start <= other < start + 10 * SECOND for other in sent) <= 20 for start in sent)
