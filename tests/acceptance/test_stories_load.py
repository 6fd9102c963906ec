"""User story 6, under load: urgent work starts on time, other work catches up later."""

from __future__ import annotations

from chalicelib.core.instants import MINUTE, SECOND
from tests.acceptance.words import day
from tests.support.clock import NOON
from tests.support.schedules import at, partitions
from tests.support.world import EMR, World, flights

DAYS = 25


def test_story_6() -> None:
    """Twenty-five days come at once for a pool of four slots that others share. An urgent job comes every ten minutes,
    and each of its runs starts with the first slot that is free. When the load is over, no work is left.
    """
    world = World()
    pooled = {"target": EMR, "pool": "cluster"}
    document = flights(
        {
            "backlog": partitions(workflow="bulk", by=["day"], priority=1, timeout="never"),
            "urgent": at("@every 10m", "alert", priority=9, coalesce=False),
        },
        bulk=pooled,
        alert=pooled,
    )
    world.deploy({**document, "pools": {"cluster": {"size": 4}}})
    for number in range(1, DAYS + 1):
        world.upload(day(number))
    world.settle()
    assert world.limit_state("pool:demo.cluster").active == 4

    began: dict[str, int] = {}
    while world.clock.now() < NOON + 90 * MINUTE:
        world.pass_by("1m")
        assert world.limit_state("pool:demo.cluster").active <= 4
        now = world.clock.now()
        for run in world.targets.emr.runs.values():
            if run.state == "SUBMITTED" and now - began.setdefault(run.id, now) >= 6 * MINUTE:
                world.emr_says(run.id, "RUNNING")
                world.emr_says(run.id, "SUCCESS")
        world.settle()

    urgent, backlog = world.runs("urgent"), world.runs("backlog")
    assert len(urgent) >= 8
    # A slot is free within the six minutes of a run and the minute between two checks of this test.
    assert all((run.claimed_at - (run.due_at or 0)) <= 7 * MINUTE + SECOND for run in urgent)
    assert [run.state for run in backlog] == ["SUCCEEDED"] * DAYS
    first_urgent = min(run.claimed_at for run in urgent)
    assert sum(run.claimed_at > first_urgent for run in backlog) > DAYS // 2, "they caught up behind the urgent ones"
