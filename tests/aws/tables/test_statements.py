"""Every write in DynamoDB's form. No stand-in checks some of its rules in a transaction, so these tests check them.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ExpressionAttributeValues.html
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from chalicelib.aws.tables.expressions import Shards
from chalicelib.aws.tables.statements import statement
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.limits.permits import Pace, RateWindow, Slots
from chalicelib.core.limits.writes import (
    AcquireBlock,
    AcquirePermit,
    AdvancePace,
    ClearQueueWake,
    DelayPace,
    Ended,
    JoinQueue,
    LeaseQueue,
    LeaveQueue,
    NameShared,
    NewEdition,
    RecordStart,
    ReleasePermit,
    RememberSuccess,
    TrackRates,
    WakeQueue,
)
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.delivery_lease import lease_of
from chalicelib.core.rows.event import LastArrival, NewestPartition
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.schedule import Subscription, Timer
from chalicelib.core.rows.stops import StopsRow
from chalicelib.core.writes import (
    ClearStateWake,
    CloseGeneration,
    CountFailure,
    Create,
    Delete,
    DeleteDeadLetter,
    DeleteJob,
    DeleteNotice,
    EndLease,
    EndTimer,
    ExpectBackfillRunning,
    ExpectDefinition,
    ExpectGrants,
    ExpectMode,
    ExpectNewest,
    ExpectNoneGathering,
    ExpectNoPartition,
    ExpectNoRun,
    ExpectNotQueued,
    ExpectNotWaiting,
    ExpectOpen,
    ExpectStops,
    MarkWoken,
    Put,
    PutDefinition,
    PutLastArrival,
    PutNewest,
    PutState,
    RemoveDefinition,
    RemoveSubscription,
    RemoveWaiter,
    Replace,
    TakeLease,
    TrackStarts,
    WakeBackfill,
    Write,
)
from tests.support import rows
from tests.support.clock import NOON
from tests.support.kinds import WRITES
from tests.support.reserved import reserved_in

NAMES = {"catalog": "c", "jobs": "j", "runs": "r"}
LIMIT, RATE_WINDOW_LIMIT = "workflow:demo.flights.w", "rate:demo.flights.w:2/1000"
RUN, OTHER = "demo.flights.clean.x.1#001", "demo.flights.clean.x.2#001"
POOL = Slots("pool:demo.p", 8, units=3)
ASKS = [POOL, Slots(LIMIT, None), Slots(LIMIT, 2), Slots(LIMIT, None, 1000), Slots(LIMIT, 2, 1000, True)]
LOGS = [RateWindow(RATE_WINDOW_LIMIT, 1, 1000), RateWindow(RATE_WINDOW_LIMIT, 1, 1000, binding=False)]
PACES = [Pace("emr:app", 1000, 3)]
READ = [
    LimitState(LIMIT),
    LimitState(LIMIT, rev=1, starts={RUN: NOON}, last_success_start=NOON - 5, rates=("2/1000",), head=NOON + 500),
    LimitState(LIMIT, rev=9, starts={f"r{number}#001": NOON for number in range(100)}, untracked_start=NOON),
    LimitState(LIMIT, rev=3, starts={OTHER: NOON - 9, "old#001": NOON - 10, "older#001": NOON - 11}),
]
WAITER = Waiter(LIMIT, "5#~#x", rows.SCHEDULE, rows.GENERATION, "GATHERING", "j1")
LEASE = lease_of([rows.job()], NOON + MINUTE, "one", NOON)
QUEUED = rows.job(queued_in=LIMIT, rank="5#~#x")
TIMER = Timer(rows.SCHEDULE, rows.GENERATION, 1, NOON, {"0": NOON}, wake_at=NOON)
DEFINITION = Definition("namespace", "demo", {}, 1, NOON)
SEEN = LastArrival(rows.SCHEDULE, rows.GENERATION, "0", NOON)

PERMITS: list[Write] = [
    AcquirePermit(ask, NOON, read, from_queue, RUN if begins or isinstance(ask, RateWindow) else None)
    for ask, read, from_queue, begins in product([*ASKS, *LOGS, *PACES], READ, (True, False), (True, False))
]
BEGINS: list[Write] = [RecordStart(ask, NOON, read, RUN) for ask, read in product([*ASKS, *LOGS], READ)]
ENDS = [None, *(Ended(holder, read) for holder, read in product((RUN, "gone#001"), READ))]
ENDS += [Ended(RUN, read, started, NOON) for read, started in product(READ, (NOON - 9, NOON))]
BACKS: list[Write] = [
    ReleasePermit(limit, wake_at, ended)
    for limit, wake_at, ended in product((LIMIT, RATE_WINDOW_LIMIT), (None, NOON), ENDS)
]
PASSES: list[Write] = [AcquirePermit(PACES[0], NOON, read, False, passing=True) for read in READ]
TOO_LARGE = replace(POOL, units=9)
JOINS: list[Write] = [JoinQueue(ask, NOON, NOON + 1, rev=3) for ask in (POOL, TOO_LARGE, ASKS[2], LOGS[0], PACES[0])]
JOINS += [
    JoinQueue(replace(POOL, overdrawn=7), NOON, NOON + 1),
    AcquirePermit(replace(POOL, overdrawn=2), NOON, READ[0], True),
]
JOINS += [JoinQueue(PACES[0], NOON, NOON + 1, behind=True), DelayPace(PACES[0], NOON)]
JOINS += [JoinQueue(PACES[0], NOON, NOON + 1, behind=True, count=24), LeaveQueue(LIMIT, 24)]
JOINS += [AcquireBlock(LIMIT, head, NOON) for head in (0, NOON - 9)]
JOINS += [AdvancePace(LIMIT, replace(read, wake_at=wake), NOON) for read in READ for wake in (None, NOON + 9)]
OTHERS: list[Write] = [
    ReleasePermit(POOL.limit_name, None, None, POOL.units),
    Create(rows.job()),
    Replace(rows.job(rev=2)),
    Replace(rows.job("j2", rev=2), over=rows.job()),
    Replace(rows.run(rev=2)),
    Replace(TIMER),
    Replace(rows.backfill(rev=2)),
    WakeBackfill(rows.SCHEDULE, "b1", NOON),
    ExpectBackfillRunning(rows.SCHEDULE, "b1"),
    Put(rows.applied_event()),
    PutState(rows.schedule_state(), None),
    PutState(rows.schedule_state(rev=2), rows.schedule_state()),
    ClearStateWake(rows.schedule_state()),
    MarkWoken(rows.schedule_state(), "c"),
    PutLastArrival(SEEN, None),
    PutLastArrival(SEEN, NOON - 1),
    PutNewest(NewestPartition("demo.flights", {"day": "1"}, NOON)),
    ExpectNewest("demo.flights", None),
    ExpectNewest("demo.flights", NewestPartition("demo.flights", {"day": "1"}, NOON)),
    ExpectNoPartition("demo.flights", ("1",)),
    CountFailure(rows.SCHEDULE),
    PutDefinition(DEFINITION, None),
    PutDefinition(DEFINITION, 1),
    RemoveDefinition(DEFINITION),
    TrackStarts("demo.flights.w"),
    Delete(rows.job()),
    RemoveWaiter(WAITER),
    DeleteNotice(rows.notice()),
    DeleteDeadLetter(rows.dead_letter()),
    ExpectNotWaiting(WAITER, None),
    ExpectNotWaiting(WAITER, QUEUED),
    ExpectNotWaiting(replace(WAITER, job_sort_key="A#001"), rows.run()),
    ExpectNotQueued(WAITER),
    ExpectNoRun(QUEUED),
    TakeLease(LEASE, NOON),
    TakeLease(LEASE, NOON, NOON + SECOND),
    EndLease(LEASE),
    EndTimer(TIMER),
    EndTimer(TIMER, replace(TIMER, generation=TIMER.generation + 1)),
    ExpectGrants("demo", None),
    ExpectStops("demo", "0", None),
    ExpectStops("demo", "0", StopsRow("demo", "0", rev=3)),
    ExpectGrants("demo", GrantsRow("demo", {}, 2, NOON, "", rev=3)),
    RemoveSubscription(Subscription("grants:lake", "demo.flights.clean", 1, 1, "grants", NOON)),
    ExpectDefinition(Definition("pool", "demo.p", {}, 2, NOON)),
    ExpectDefinition(Definition("pool", "demo.p", {}, 2, NOON, edition=3)),
    PutDefinition(Definition("pool", "demo.p", {}, 2, NOON, edition=3), 2, 2),
    NewEdition("workflow:demo.flights.clean", 4),
    NewEdition("workflow:demo.flights.clean", 0),
    DeleteJob(rows.job()),
    DeleteJob(rows.job(), exact=True),
    DeleteJob(QUEUED),
    DeleteJob(replace(QUEUED, closed=True)),
    DeleteJob(rows.job(closed=True), exact=True),
    ExpectMode(rows.schedule_state(), ("enabled", "hold")),
    ExpectOpen(rows.SCHEDULE, rows.GENERATION),
    ExpectNoneGathering(rows.SCHEDULE, rows.GENERATION),
    CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON),
    TrackRates(LIMIT, ("2/1000",)),
    RememberSuccess(LIMIT, NOON),
    NameShared("policy:demo.calm", "group:demo.spark"),
    LeaveQueue(LIMIT),
    LeaseQueue(LIMIT, NOON, NOON + 1),
    ClearQueueWake(LIMIT),
    ClearQueueWake(LIMIT, NOON),
    WakeQueue("policy:demo.calm", NOON, 5),
]
EVERY = [*PERMITS, *PASSES, *BEGINS, *BACKS, *JOINS, *OTHERS]


def expressions(arguments: dict[str, Any]) -> str:
    return " ".join(str(arguments.get(f"{kind}Expression", "")) for kind in ("Update", "Condition"))


def test_every_kind_of_write_is_checked_in_this_file() -> None:
    assert {type(write) for write in EVERY} == set(WRITES)


@pytest.mark.parametrize("kind", WRITES, ids=lambda kind: kind.__name__)
def test_an_expression_uses_exactly_its_names_and_values(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        made = statement(write, NAMES, Shards(4, 4)).arguments
        text = expressions(made)
        assert set(re.findall(r"(?<!\w):\w+", text)) == set(made.get("ExpressionAttributeValues", {})), write
        assert set(re.findall(r"#\w+", text)) == set(made.get("ExpressionAttributeNames", {})), write


@pytest.mark.parametrize("kind", WRITES, ids=lambda kind: kind.__name__)
def test_no_name_in_an_expression_is_a_reserved_word(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        assert not reserved_in(statement(write, NAMES, Shards(4, 4)).arguments), write


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("size(rates) = :size AND #count = :count", []),
        ("SET at = :at, size = :one", ["at", "size"]),
        ("day_key = :day AND at < :at", ["at"]),
    ],
)
def test_a_reserved_word_is_found(expression: str, found: list[str]) -> None:
    assert reserved_in({"TransactItems": [{"Update": {"ConditionExpression": expression}}]}) == found


@pytest.mark.parametrize("kind", WRITES, ids=lambda kind: kind.__name__)
def test_no_expression_is_empty_and_no_path_is_written_twice(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        made = statement(write, NAMES, Shards(4, 4))
        assert made.arguments.get("ConditionExpression") != ""
        if made.action != "Update":
            continue
        text = str(made.arguments["UpdateExpression"])
        assert text.startswith(("SET ", "REMOVE ", "ADD ")), write
        sets, _, removes = text.partition("REMOVE ")
        written = [*re.findall(r"([\w.#]+) = ", sets), *filter(None, removes.split(", "))]
        assert len(set(written)) == len(written), write


@pytest.mark.parametrize("kind", WRITES, ids=lambda kind: kind.__name__)
def test_an_expression_is_within_the_dynamodb_limit(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        text = expressions(statement(write, NAMES, Shards(4, 4)).arguments)
        assert len(text) <= 4096, write
