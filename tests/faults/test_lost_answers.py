"""The answer of a table write is lost. The repeat recognises the rows that the first try wrote, and
succeeds at once.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.errors import SluiceError
from chalicelib.core.limits.permits import Pace
from chalicelib.core.limits.writes import (
    ClearQueueWake,
    DelayPace,
    JoinQueue,
    LeaseQueue,
    ReleasePermit,
    RememberSuccess,
    TrackRates,
)
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.schedule import Failures, ScheduleState
from chalicelib.core.schedules.closings import closed_by
from chalicelib.core.writes import (
    ClearStateWake,
    CountFailure,
    Create,
    DeleteDeadLetter,
    DeleteJob,
    DeleteNotice,
    ExpectMode,
    MarkWoken,
    Put,
    PutState,
    Replace,
    Write,
)
from tests.faults.unreliable_tables import Unreliable, no_answer
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says
from tests.support.schedules import at_most, partitions
from tests.support.world import World, day, flights

LIMIT = "workflow:demo.flights.w"
PACE = Pace("emr:app", 1000, 3)
QUEUE = JoinQueue(PACE, NOON, NOON, 0, behind=True)
JOB = rows.job()
LETTER = rows.dead_letter()
# A single write of each kind, after the writes that it expects.
SINGLE: list[tuple[list[Write], Write]] = [
    ([], Create(JOB)),
    ([Create(JOB)], Replace(replace(JOB, rev=2, reason=says("second")))),
    ([], Put(JOB)),
    ([], PutState(rows.schedule_state(), None)),
    (
        [PutState(rows.schedule_state(), None)],
        PutState(replace(rows.schedule_state(), rev=2, mode="disabled"), rows.schedule_state()),
    ),
    ([PutState(replace(rows.schedule_state(), wake_at=NOON), None)], ClearStateWake(rows.schedule_state())),
    ([PutState(rows.schedule_state(), None)], MarkWoken(rows.schedule_state(), "c")),
    ([Create(JOB)], DeleteJob(JOB)),
    ([Put(rows.notice())], DeleteNotice(rows.notice())),
    ([Put(LETTER)], DeleteDeadLetter(LETTER)),
    ([QUEUE], LeaseQueue("emr:app", NOON, NOON + 60_000)),
    ([], ClearQueueWake(LIMIT)),
    ([], DelayPace(PACE, NOON + 5000)),
    ([], TrackRates(LIMIT, ("9/1",))),
    ([], RememberSuccess(LIMIT, NOON)),
]


@pytest.fixture
def dynamo(world: World) -> Dynamo:
    assert isinstance(world.ports.ledger, Dynamo)
    return world.ports.ledger


@pytest.mark.parametrize(("before", "write"), SINGLE, ids=lambda part: type(part).__name__)
def test_a_single_write_with_a_lost_answer_has_succeeded(
    world: World, dynamo: Dynamo, before: list[Write], write: Write
) -> None:
    for each in before:
        assert dynamo.commit([each]) is None
    own = 1 + len(closed_by([write]))  # a closing is counted first
    stored = Unreliable(world.tables, unanswered=[own])

    assert dynamo.commit([write]) is None

    assert stored.calls == own + 1


def test_a_counting_write_with_a_lost_answer_counts_once(world: World, dynamo: Dynamo) -> None:
    Unreliable(world.tables, unanswered=[1])

    assert dynamo.commit([CountFailure(rows.SCHEDULE)]) is None

    assert dynamo.get(kinds.key(Failures, rows.SCHEDULE), Failures) == Failures(rows.SCHEDULE, 1)


def test_a_slot_is_released_once_when_the_answer_was_lost(world: World, dynamo: Dynamo) -> None:
    world.tables.update_item(
        TableName="JobsTable",
        Key={"pk": {"S": f"LIMIT#{LIMIT}"}, "sk": {"S": "STATE"}},
        UpdateExpression="SET active = :active",
        ExpressionAttributeValues={":active": {"N": "2"}},
    )
    Unreliable(world.tables, unanswered=[1])

    assert dynamo.commit([ReleasePermit(LIMIT, None)]) is None

    assert world.limit_state(LIMIT).active == 1


def test_a_transaction_with_a_lost_answer_is_applied_once(world: World, dynamo: Dynamo) -> None:
    assert dynamo.commit([PutState(rows.schedule_state(), None)]) is None
    Unreliable(world.tables, unanswered=[1])

    assert (
        dynamo.commit([Create(JOB), CountFailure(rows.SCHEDULE), ExpectMode(rows.schedule_state(), ("enabled",))])
        is None
    )

    assert dynamo.get(kinds.key(Job, rows.SCHEDULE, rows.GENERATION, "GATHERING"), Job) == JOB
    assert dynamo.get(kinds.key(Failures, rows.SCHEDULE), Failures) == Failures(rows.SCHEDULE, 1)


def test_a_lost_race_stays_lost_after_a_lost_answer(world: World, dynamo: Dynamo) -> None:
    """The first try is carried out, another invocation replaces the row, and only then the second try comes."""
    assert dynamo.commit([PutState(rows.schedule_state(), None)]) is None
    mine, theirs = (replace(rows.schedule_state(), rev=rev, wake_at=at) for rev, at in ((2, NOON), (3, None)))

    def another() -> None:
        world.tables.after_write = lambda: None
        assert dynamo.commit([PutState(theirs, mine)]) is None
        raise no_answer()

    world.tables.after_write = another

    assert dynamo.commit([PutState(mine, rows.schedule_state())]) is not None

    assert dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState) == theirs


def test_a_refusal_with_an_answer_costs_no_second_call(world: World, dynamo: Dynamo) -> None:
    assert dynamo.commit([Create(JOB)]) is None
    counted = Unreliable(world.tables)

    assert dynamo.commit([Create(JOB)]) is not None

    assert counted.calls == 1


def test_tables_that_never_answer_are_unavailable_after_seconds(world: World) -> None:
    passed = [0.0]
    patience = Patience(now=lambda: passed[0], sleep=lambda seconds: passed.__setitem__(0, passed[0] + seconds))
    dynamo = Dynamo(world.tables, world.ports.settings, patience)
    Unreliable(world.tables, throttled=range(1, 10_000))

    for call in (
        lambda: dynamo.commit([Create(JOB)]),
        lambda: dynamo.commit([Create(JOB), PutState(rows.schedule_state(), None)]),
        lambda: dynamo.put_all([Put(JOB)]),
        lambda: dynamo.number(LIMIT),
        lambda: dynamo.get(kinds.key(ScheduleState, rows.SCHEDULE), ScheduleState),
        lambda: dynamo.get_many([kinds.key(ScheduleState, rows.SCHEDULE)]),
        lambda: dynamo.query("jobs", "pk = :pk", {"pk": "x"}, limit=1),
    ):
        began = passed[0]
        with pytest.raises(SluiceError) as answer:
            call()
        assert answer.value.code == "unavailable"
        assert 4 < passed[0] - began <= 8


def test_a_fire_is_delivered_on_time_with_every_answer_lost(world: World) -> None:
    world.deploy(flights({"tick": {"workflow": "notify", "trigger": {"type": "time", "expression": "@every 1m"},
                                   "enabled": True}}))  # fmt: skip
    Unreliable(world.tables, unanswered=range(1, 100_000, 2))  # each repeat is answered

    world.pass_by("5m30s")

    assert [run.started_at for run in world.runs("tick")] == [NOON + minute * 60_000 for minute in range(1, 6)]


def test_a_start_and_a_queue_go_on_with_every_answer_lost(world: World) -> None:
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    Unreliable(world.tables, unanswered=range(1, 100_000, 2))
    world.upload(day(1))
    world.settle()
    world.upload(day(2))
    world.settle()
    world.finish()
    world.settle()

    assert [run.state for run in world.runs("daily")] == ["SUCCEEDED", "STARTING"]
    assert len(world.targets.emr.runs) == 2
    assert world.clock.now() == NOON
