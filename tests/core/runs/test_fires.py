"""What has become of the events of a fire, from the rows of its bundles (E2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.fires import bundles
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Fire, Record, Run
from chalicelib.core.runs import fires, sends
from chalicelib.core.runs.fires import Bundle
from tests.core.builders import run as plain_run
from tests.support.clock import NOON
from tests.support.reasons import says

NAME = "demo.flights.batch"
FIRE = bundles.fire_id(NAME, 1, NOON)
PLAN = Plan(NOON, 0, 10 * SECOND, 100, 100, 10 * SECOND)


def job(first: int = 0, count: int = 10, **fields: Any) -> Job:
    return Job(
        schedule=NAME, generation=1, sort_key="FIRE#", job_id=bundles.bundle_id(FIRE, first, count), kind="fire",
        state="PENDING_CONSTRAINTS", created_at=NOON, index=first, count=count, plan=tuple(PLAN),
        reason=says("due_later"), **fields,
    )  # fmt: skip


def run(first: int = 0, count: int = 10, left: tuple[int, ...] = (), late: int = 20, **fields: Any) -> Run:
    sent = [(NOON, NOON + late)] * max(1, count - len(left))
    own = {"run_id": bundles.bundle_id(FIRE, first, count), "schedule": NAME, "kind": "fire", "due_at": NOON}
    made = plain_run("SUCCEEDED", **own)
    return replace(
        made, spread=(first, 100), count=count, left=left, plan=tuple(PLAN), sends=sends.of(sent), **fields
    )  # fmt: skip


def record(name: str, count: int = 1) -> Record:
    return Record(name, "DROPPED", NAME, 1, says("fire_removed"), NOON, NOON, count)


def states(bundle: Bundle) -> str:
    """The first letters of the states."""
    return "".join(one.state[0] for one in fires.events(bundle, None))


def test_e2_events_are_where_the_rows_of_their_bundle_say() -> None:
    assert states(Bundle(0, 10, job())) == "W" * 10
    assert states(Bundle(0, 10, job(done=4), run(count=4))) == "SSSSWWWWWW"
    assert states(Bundle(0, 10, run=run(count=4), record=record("r", 6))) == "SSSSDDDDDD"
    assert states(Bundle(0, 10)) == "U" * 10


def test_e2_a_run_that_is_newer_than_the_job_decides() -> None:
    assert states(Bundle(0, 10, job(done=2), run(count=7))) == "SSSSSSSWWW"


def test_e2_events_that_left_have_rows_of_their_own() -> None:
    own: dict[int, Run | Record] = {
        2: replace(plain_run("FAILED"), reason=says("not_delivered")),
        4: plain_run("SUCCEEDED"),
        5: record(bundles.event_id(FIRE, 5)),
    }
    tried = bundles.event_of(job(), 3)
    waits = {3: replace(tried, tries=1), 6: bundles.event_of(job(), 6)}
    bundle = Bundle(0, 10, run=run(), left=frozenset((2, 3, 4, 5, 6, 7)), own=own, waits=waits)
    assert states(bundle) == "SSFRSDWUSS"
    failed = list(fires.events(bundle, None))[2]
    assert (failed.reason.text, failed.row) == ("not_delivered", own[2])


def test_e2_one_record_stands_for_all_events_of_an_update() -> None:
    own: dict[int, Run | Record] = {6: record(bundles.event_id(FIRE, 6), 3), 7: record(bundles.event_id(FIRE, 7))}
    bundle = Bundle(0, 10, run=run(count=6), left=frozenset((2, 6, 7, 8, 9)), own=own)
    assert states(bundle) == "SSUSSSDDDD", (
        "the event before the record is not one of them, a cancelled one is beside it"
    )


def test_e2_each_event_has_its_instant() -> None:
    due = [one.due for one in fires.events(Bundle(50, 10, job(50)), None)]
    assert due == [NOON + number * 100 for number in range(50, 60)]
    lent = [one.due for one in fires.events(Bundle(50, 10, record=record("r", 10)), PLAN)]
    assert lent == due
    assert {one.due for one in fires.events(Bundle(50, 10), None)} == {None}


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"WAITING": 5}, "WAITING"),
        ({"WAITING": 5, "RETRYING": 1}, "SENDING"),
        ({"WAITING": 1, "SENT": 4}, "SENDING"),
        ({"RETRYING": 1, "FAILED": 4}, "SENDING"),
        ({"SENT": 5}, "SENT"),
        ({"SENT": 4, "DROPPED": 1}, "DROPPED"),
        ({"SENT": 3, "DROPPED": 1, "FAILED": 1}, "FAILED"),
        ({"SENT": 4, "UNKNOWN": 1}, "SENT"),
        ({"UNKNOWN": 5}, "UNKNOWN"),
        ({}, "UNKNOWN"),
    ],
)
def test_e2_a_fire_has_the_state_of_its_worst_events(counts: Any, state: str) -> None:
    assert fires.state_of(Counter(counts)) == state


def test_e2_the_bundles_of_a_fire_are_those_that_were_written() -> None:
    row = Fire(FIRE, NAME, 1, NOON, (0, 30, 55), 80, left=(29, 31))
    assert fires.written(row) == [(0, 30), (30, 25), (55, 25)]
    assert fires.left_of(row, Bundle(30, 25, job(30, 25, left=(33,)), run(30, 25, (34, 54)))) == {31, 33, 34, 54}


def test_e2_events_of_a_bundle_that_is_over_are_looked_for() -> None:
    row = Fire(FIRE, NAME, 1, NOON, (0,), 10)
    over = Bundle(0, 10, run=run(count=6, left=(2,)))
    assert fires.left_of(row, over) == {2, 6, 7, 8, 9}, "its last events failed, and no run was written for them"
    dropped = replace(over, record=record("r", 4))
    assert fires.left_of(row, dropped) == {2}, "the record tells of all others"
    some = replace(over, record=record("r", 3))
    own: dict[int, Run | Record] = {2: plain_run("FAILED"), 8: plain_run("FAILED")}
    assert states(replace(some, left=fires.left_of(row, some), own=own)) == "SSFSSSDDFD"


def test_e2_events_are_sent_out_of_order() -> None:
    ahead = run(count=3, ahead=(5, 7))
    assert states(Bundle(0, 10, job(done=3, ahead=(5, 7, 8)), ahead)) == "SSSWWSWSSW"
    assert (ahead.events, len(fires.runs_of(ahead))) == (5, 5)
    assert fires.folded([ahead, run(10)])[0].events == 15


def test_e2_runs_of_a_fire_fold_into_the_first_of_them() -> None:
    other = plain_run("SUCCEEDED", run_id=f"{NAME}.1.other")
    failed = plain_run("FAILED", run_id=bundles.event_id(FIRE, 11))
    later = run(10, 10, (11,), 900)
    folded = fires.folded([later, other, failed, run()])
    assert [each.run_id for each in folded] == [later.run_id, other.run_id, failed.run_id]
    one = folded[0]
    assert (one.spread, one.events, one.lateness) == ((0, 100), 19, 900)
    assert fires.folded([*folded, run(20)])[0].events == 29, "a line takes more of its fire"
    assert fires.folded([other, failed]) == [other, failed]


def test_e2_a_run_opens_into_those_of_its_events() -> None:
    runs = fires.runs_of(run(10, 10, (11,)))
    assert [each.run_id for each in runs] == [bundles.event_id(FIRE, number) for number in (10, *range(12, 20))]
    assert {each.events for each in runs} == {1}
    assert [each.due_at for each in runs][:2] == [NOON + 1_000, NOON + 1_200]
    assert {each.lateness for each in runs} == {None}, "the send of one event is not on record"
    alone = plain_run("SUCCEEDED")
    assert fires.runs_of(alone) == [alone]
