"""The scenario of the staggered batch (E2, E3): a thousand events in an hour, under one policy, evenly."""

from __future__ import annotations

from collections import Counter

from chalicelib.core.instants import HOUR, MINUTE
from tests.acceptance.targets.test_policies import most_in, under
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import World

ONE = "0 13 * * *"
EACH = 380


def test_staggered_batch() -> None:
    """Three schedules of 380 events each in an hour, under one shared policy of 20 a minute: evenly spread, never above
    the limit, none lost.
    """
    world = World(wake_shards=1, history_shards=1)
    spread = {"count": EACH, "over": "1h"}
    backups = {f"backup_{place}": at(ONE, "notify", policy="calm", spread=spread) for place in ("eu", "us", "asia")}
    world.deploy(under({"max_events": 20, "interval": "1m"}, backups))
    world.clock.wait_until(NOON + 59 * MINUTE - 1)
    world.pass_by("65m")

    starts = world.targets.queue.sent_at
    ids = [run_id for run_id, _ in world.targets.queue.messages]
    assert len(ids) == len(set(ids)) == 3 * EACH, "none lost, none doubled"
    assert Counter(run_id.split(".")[2] for run_id in ids) == dict.fromkeys(backups, EACH)
    assert most_in(starts, MINUTE) <= 20, "never over the policy"

    first = NOON + HOUR
    assert min(starts) >= first, "nothing before the window"
    per_quarter = Counter((start - first) // (15 * MINUTE) for start in starts)
    assert all(270 <= per_quarter[quarter] <= 300 for quarter in range(4)), f"evenly spread: {per_quarter}"
    assert not any(run.late for name in backups for run in world.runs(name)), "all of it fits into the window"
