"""Every write keeps what it expects, on both implementations: a refused plan changes nothing and names who refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws import keys
from chalicelib.aws.jobs import DynamoJobs
from chalicelib.aws.table import Dynamo
from chalicelib.core.lines import Pace, Slots, Waiter
from chalicelib.core.rows import Gate, Job, Run
from chalicelib.core.writes import (
    CloseGeneration,
    Create,
    GateIs,
    GiveBack,
    JoinLine,
    LeaseLine,
    LeaveLine,
    NoneGathering,
    NotClosed,
    Put,
    PutGate,
    Remove,
    Replace,
    SettleLine,
    TakeOut,
    TakePermit,
    Write,
)
from tests.support import rows
from tests.support.clock import NOON

LINE = "workflow:demo.flights.w"
ONE = Slots(LINE, 1)
PACE = Pace("emr:app", 1000, 3)


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def stored(dynamo: Dynamo, place: str = "PENDING") -> Job | None:
    return dynamo.get(keys.job(rows.SCHEDULE, rows.GENERATION, place), Job)


def test_a_row_is_created_once_and_read_back_as_it_was(dynamo: Dynamo) -> None:
    run = rows.run(event=rows.event(), correlation={"day": "1"}, announce=("STARTED",))
    assert ok(dynamo, Create(run))
    refused = dynamo.commit([Create(run)])
    assert refused is not None
    assert refused.of(Create)
    assert dynamo.get(keys.run("r1", 1), Run) == run


def test_a_replacement_names_the_revision_it_read(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    assert ok(dynamo, Replace(replace(job, rev=2, reason="second")))
    assert not ok(dynamo, Replace(replace(job, rev=2, reason="late")))
    assert not ok(dynamo, Replace(replace(job, rev=3, job_id="another")))
    found = stored(dynamo)
    assert found is not None
    assert found.reason == "second"


def test_a_refused_plan_leaves_nothing_behind(dynamo: Dynamo) -> None:
    job, gate = rows.job(), rows.gate()
    assert ok(dynamo, Create(job), PutGate(gate, None))
    closed = replace(gate, mode="disabled")
    refused = dynamo.commit([TakeOut(job), Create(rows.run()), GateIs(closed, ("disabled",))])
    assert refused is not None
    assert [type(write) for write in refused.writes] == [GateIs]
    assert stored(dynamo) == job
    assert dynamo.get(keys.run("r1", 1), Run) is None


def test_a_gate_is_checked_by_generation_version_and_mode(dynamo: Dynamo) -> None:
    gate = rows.gate()
    assert ok(dynamo, PutGate(gate, None))
    assert not ok(dynamo, PutGate(gate, None))
    for other in (replace(gate, generation=1), replace(gate, version=2)):
        assert not ok(dynamo, GateIs(other, ("enabled",)), Create(rows.run()))
    assert not ok(dynamo, GateIs(gate, ("disabled",)), Create(rows.run()))
    assert ok(dynamo, GateIs(gate, ("disabled", "enabled")), Create(rows.run()))
    disabled = replace(gate, mode="disabled")
    assert ok(dynamo, PutGate(disabled, gate))
    assert not ok(dynamo, PutGate(replace(gate, version=2), gate))
    assert dynamo.get(keys.gate(rows.SCHEDULE), Gate) == disabled


def test_a_job_is_taken_out_by_its_id_whatever_it_gathered_meanwhile(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    assert ok(dynamo, Replace(replace(job, rev=2)))
    assert not ok(dynamo, TakeOut(rows.job("another")))
    assert ok(dynamo, TakeOut(job))
    assert stored(dynamo) is None


def test_a_job_that_began_to_queue_is_not_taken_out_by_who_has_not_seen_it(dynamo: Dynamo) -> None:
    job = rows.job()
    assert ok(dynamo, Create(job))
    queued = replace(job, rev=2, waits_at=LINE, rank="5#~#x")
    assert ok(dynamo, Replace(queued))
    assert not ok(dynamo, TakeOut(job))
    assert ok(dynamo, TakeOut(queued))


def test_a_tombstone_keeps_the_job_under_it_and_lets_nothing_join(dynamo: Dynamo) -> None:
    job = rows.job(held=(LINE,))
    close = CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON + 1, NOON + 2)
    assert ok(dynamo, Create(job))
    assert ok(dynamo, close)
    found = stored(dynamo)
    assert found is not None
    assert (found.closed, found.held, found.job_id) == (True, (LINE,), "j1")
    assert not ok(dynamo, Replace(replace(job, rev=2)))
    assert not ok(dynamo, TakeOut(job))
    assert not ok(dynamo, NotClosed(rows.SCHEDULE, rows.GENERATION), Create(rows.run()))
    assert not ok(dynamo, NoneGathering(rows.SCHEDULE, rows.GENERATION), Create(rows.run()))


def test_a_tombstone_over_nothing_bars_the_first_event(dynamo: Dynamo) -> None:
    assert ok(dynamo, CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON, NOON))
    assert not ok(dynamo, Create(rows.marker()), Create(rows.job()))


def test_slots_let_a_newcomer_in_only_when_nobody_waits(dynamo: Dynamo) -> None:
    take = TakePermit(ONE, NOON, 0, from_queue=False)
    assert ok(dynamo, take)
    assert not ok(dynamo, take)
    assert ok(dynamo, JoinLine(ONE, NOON, NOON + 60_000))
    assert not ok(dynamo, GiveBack(LINE, None)), "somebody waits: the write must wake the queue"
    assert ok(dynamo, GiveBack(LINE, NOON + 5))
    line = DynamoJobs(dynamo).line(LINE)
    assert (line.active, line.waiters, line.wake_at) == (0, 1, NOON + 5)
    assert not ok(dynamo, take), "a permit is free, but it belongs to who waits"
    assert ok(dynamo, replace(take, from_queue=True))
    line = DynamoJobs(dynamo).line(LINE)
    assert (line.active, line.waiters) == (1, 0)


def test_nobody_joins_a_line_that_would_let_him_pass(dynamo: Dynamo) -> None:
    join = JoinLine(ONE, NOON, NOON)
    assert not ok(dynamo, join)
    assert ok(dynamo, TakePermit(ONE, NOON, 0, from_queue=False))
    assert ok(dynamo, join)
    assert ok(dynamo, LeaveLine(LINE))
    assert not ok(dynamo, LeaveLine(LINE))
    assert ok(dynamo, GiveBack(LINE, None))


def test_an_unlimited_slot_is_counted_and_never_refused(dynamo: Dynamo) -> None:
    for _ in range(3):
        assert ok(dynamo, TakePermit(Slots(LINE, None), NOON, 0, from_queue=False))
    assert DynamoJobs(dynamo).line(LINE).active == 3


def test_a_pace_lets_a_burst_through_and_then_one_at_a_time(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)
    for _ in range(3):
        assert ok(dynamo, TakePermit(PACE, NOON, jobs.line("emr:app").head, from_queue=False))
    assert jobs.line("emr:app").head == NOON + 3000
    assert not ok(dynamo, TakePermit(PACE, NOON, NOON + 3000, from_queue=False))
    assert ok(dynamo, JoinLine(PACE, NOON, NOON + 1000))
    assert not ok(dynamo, TakePermit(PACE, NOON + 1000, NOON + 3000, from_queue=False)), "somebody waits"
    assert ok(dynamo, TakePermit(PACE, NOON + 1000, NOON + 3000, from_queue=True))
    assert ok(dynamo, TakePermit(PACE, NOON + 9000, NOON + 4000, from_queue=False))
    assert jobs.line("emr:app").head == NOON + 10_000


def test_one_server_leases_a_line_and_an_empty_one_is_settled(dynamo: Dynamo) -> None:
    assert ok(dynamo, TakePermit(ONE, NOON, 0, from_queue=False))
    assert ok(dynamo, JoinLine(ONE, NOON, NOON + 7))
    assert ok(dynamo, LeaseLine(LINE, NOON + 7, NOON + 60_000))
    assert not ok(dynamo, LeaseLine(LINE, NOON + 7, NOON + 60_000))
    assert not ok(dynamo, SettleLine(LINE))
    assert ok(dynamo, LeaveLine(LINE))
    assert ok(dynamo, SettleLine(LINE))
    assert DynamoJobs(dynamo).line(LINE).wake_at is None


def test_a_place_in_a_queue_is_given_up_once(dynamo: Dynamo) -> None:
    waiter = Waiter(LINE, "5#~#x", rows.SCHEDULE, rows.GENERATION, "PENDING", "j1")
    assert ok(dynamo, Create(waiter))
    assert ok(dynamo, Remove(waiter))
    assert not ok(dynamo, Remove(waiter))


def test_a_batch_larger_than_dynamodb_takes_is_written_whole_and_repeatably(dynamo: Dynamo) -> None:
    fires = [rows.job(f"j{index}", place=f"FIRE#{index:03d}", kind="fire") for index in range(60)]
    for _ in range(2):
        dynamo.put_all([Put(fire) for fire in fires])
    assert len(DynamoJobs(dynamo).jobs(rows.SCHEDULE, rows.GENERATION, 100, None).items) == 60


def test_a_plan_with_a_key_twice_is_a_mistake_that_is_told(dynamo: Dynamo) -> None:
    with pytest.raises(ValueError, match="each key once"):
        dynamo.commit([GiveBack(LINE, None), LeaveLine(LINE)])
