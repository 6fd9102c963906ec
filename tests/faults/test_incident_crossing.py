"""A success comes beside the notice of the failure before it (W9), in every order of calls."""

from __future__ import annotations

from functools import partial

import pytest

from chalicelib.flow.notices import notices
from tests.acceptance.words import day
from tests.acceptance.workflows.test_incidents import ENDED, OPENED, incidents, left
from tests.core.notices.test_pagerduty import RULE
from tests.faults.meetings.side_by_side import every_order, side_by_side
from tests.support.schedules import partitions
from tests.support.snapshot import Start
from tests.support.world import EMR, World, flights

STRIDE = 5
LONG = pytest.mark.long
SPANS = [
    pytest.param("1s", id="the first notice", marks=LONG),
    pytest.param("2m", id="in the window"),
    pytest.param("20m", id="at rest", marks=LONG),
]


def failed(span: str) -> World:
    """A run has failed, and a second one is active. With a longer span the second failure is that of another run, and
    the first one has opened an incident before."""
    made = World(wake_shards=1, history_shards=1)
    made.deploy(flights({"daily": partitions()}, clean={"target": EMR, "notify": [RULE]}))
    if span != "1s":
        made.upload(day(9))
        made.settle()
        made.finish("FAILED")
        made.settle()
        made.pass_by(span)
    made.upload(day(1))
    made.settle()
    made.finish("FAILED", "disk full")
    made.hints.sent = [hint for hint in made.hints.sent if hint[1].kind != "notice"]
    made.clock.wait_until(made.clock.now() + 1_000)
    made.upload(day(2))
    made.settle_only("daily")
    return made


@pytest.mark.parametrize("span", SPANS)
def test_w9_a_success_beside_a_notice_leaves_no_incident_open(span: str) -> None:
    start = Start(lambda: failed(span))
    ends: set[int] = set()

    def play(calls: tuple[int, int]) -> tuple[bool, bool]:
        made = start.again()
        [notice] = made.ports.jobs.notices("demo.flights.clean", 10)
        told = partial(notices.handle_notice, made.ports, notice.workflow, notice.what, notice.id)
        rest = side_by_side(made, told, partial(made.finish, "SUCCESS"), calls)
        made.settle()
        made.pass_by("12m")
        made.settle()
        assert incidents(made) in ([], [OPENED, ENDED], [OPENED, OPENED, ENDED]), calls
        made.pass_by("12m")
        assert left(made) == 0, calls
        ends.add(len(incidents(made)))
        return rest

    assert len(list(every_order(play, STRIDE))) > 5
    assert ends - {0}
