"""A rate counts claims: a call that the target refuses is repeated later, and so closer to the next start (C5)."""

from __future__ import annotations

from chalicelib.core.instants import MINUTE
from chalicelib.core.targets.answers import NotNow
from tests.acceptance.words import day
from tests.support.schedules import partitions
from tests.support.world import World, flights

RATE = {"constraints": [{"type": "rate", "max": 1, "per": "10m"}]}


def test_c5_a_rate_counts_claims_and_not_refused_calls() -> None:
    world = World()
    world.deploy(flights({"daily": partitions(by=["day"], **RATE)}))
    world.targets.emr.answers = [NotNow("throttled")] * 8
    world.upload(day(1))
    world.upload(day(2))
    world.settle()
    world.pass_by("15m")

    first, second = world.runs("daily")
    assert second.claimed_at - first.claimed_at >= 10 * MINUTE
    calls = list(zip(world.targets.emr.calls, world.targets.emr.called_at, strict=True))
    taken = [max(at for name, at in calls if run.run_id in name) for run in (first, second)]
    assert 0 < taken[1] - taken[0] < 10 * MINUTE, "a policy would keep the starts apart"
