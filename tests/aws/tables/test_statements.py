"""Every write as DynamoDB takes it. Some of its rules no stand-in checks in a transaction, so they are checked here.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ExpressionAttributeValues.html
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest

from chalicelib.aws.tables.expressions import Shards
from chalicelib.aws.tables.statements import statement
from chalicelib.core.instants import MINUTE, SECOND
from chalicelib.core.limits.pace import Pace
from chalicelib.core.limits.rate_window import Log
from chalicelib.core.limits.slots import Slots
from chalicelib.core.limits.writes import (
    Begin,
    CountRates,
    Ended,
    GiveBack,
    HoldBack,
    JoinLine,
    LeaseLine,
    LeaveLine,
    NewEdition,
    Quicken,
    SettleLine,
    TakePermit,
)
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.delivery_lease import lease_of
from chalicelib.core.rows.event import Seen
from chalicelib.core.rows.limit import LineState, Waiter
from chalicelib.core.rows.schedule import Timer
from chalicelib.core.writes import (
    BackfillGoesOn,
    CloseGeneration,
    CountFailure,
    CountStarts,
    Create,
    DefinitionIs,
    Delete,
    EndLease,
    GateIs,
    NoneGathering,
    NotClosed,
    NotQueued,
    NotRun,
    NotWaiting,
    Put,
    PutDefinition,
    PutGate,
    PutSeen,
    Remove,
    RemoveDefinition,
    Replace,
    SettleGate,
    TakeIn,
    TakeLease,
    TakeLetter,
    TakeOut,
    WakeBackfill,
    Write,
)
from tests.support import rows
from tests.support.clock import NOON

NAMES = {"catalog": "c", "jobs": "j", "runs": "r"}
LINE, LOG_LINE = "workflow:demo.flights.w", "rate:demo.flights.w:2/1000"
RUN, OTHER = "demo.flights.clean.x.1#001", "demo.flights.clean.x.2#001"
POOL = Slots("pool:demo.p", 8, units=3)
ASKS = [POOL, Slots(LINE, None), Slots(LINE, 2), Slots(LINE, None, 1000), Slots(LINE, 2, 1000, True)]
LOGS = [Log(LOG_LINE, 1, 1000), Log(LOG_LINE, 1, 1000, binding=False)]
PACES = [Pace("emr:app", 1000, 3)]
READ = [
    LineState(LINE),
    LineState(LINE, rev=1, starts={RUN: NOON}, last_success_start=NOON - 5, rates=("2/1000",), head=NOON + 500),
    LineState(LINE, rev=9, starts={f"r{number}#001": NOON for number in range(100)}, crowd=NOON),
    LineState(LINE, rev=3, starts={OTHER: NOON - 9, "old#001": NOON - 10, "older#001": NOON - 11}),
]
WAITER = Waiter(LINE, "5#~#x", rows.SCHEDULE, rows.GENERATION, "PENDING", "j1")
LEASE = lease_of([rows.job()], NOON + MINUTE)
QUEUED = rows.job(waits_at=LINE, rank="5#~#x")
TIMER = Timer(rows.SCHEDULE, rows.GENERATION, 1, NOON, {"0": NOON}, wake_at=NOON)
DEFINITION = Definition("namespace", "demo", {}, 1, NOON)
SEEN = Seen(rows.SCHEDULE, rows.GENERATION, "0", NOON)

PERMITS: list[Write] = [
    TakePermit(ask, NOON, read, from_queue, RUN if begins or isinstance(ask, Log) else None)
    for ask, read, from_queue, begins in product([*ASKS, *LOGS, *PACES], READ, (True, False), (True, False))
]
BEGINS: list[Write] = [Begin(ask, NOON, read, RUN) for ask, read in product([*ASKS, *LOGS], READ)]
ENDS = [None, *(Ended(holder, read) for holder, read in product((RUN, "gone#001"), READ))]
ENDS += [Ended(RUN, read, started, NOON) for read, started in product(READ, (NOON - 9, NOON))]
BACKS: list[Write] = [
    GiveBack(line, wake_at, ended) for line, wake_at, ended in product((LINE, LOG_LINE), (None, NOON), ENDS)
]
PASSES: list[Write] = [TakePermit(PACES[0], NOON, read, False, passing=True) for read in READ]
TOO_LARGE = replace(POOL, units=9)
JOINS: list[Write] = [JoinLine(ask, NOON, NOON + 1, rev=3) for ask in (POOL, TOO_LARGE, ASKS[2], LOGS[0], PACES[0])]
JOINS += [JoinLine(replace(POOL, owed=7), NOON, NOON + 1), TakePermit(replace(POOL, owed=2), NOON, READ[0], True)]
JOINS += [JoinLine(PACES[0], NOON, NOON + 1, behind=True), HoldBack(PACES[0], NOON)]
JOINS += [Quicken(LINE, replace(read, wake_at=wake), NOON) for read in READ for wake in (None, NOON + 9)]
OTHERS: list[Write] = [
    GiveBack(POOL.line, None, None, POOL.units),
    Create(rows.job()),
    Replace(rows.job(rev=2)),
    Replace(rows.job("j2", rev=2), over=rows.job()),
    Replace(rows.run(rev=2)),
    Replace(TIMER),
    Replace(rows.backfill(rev=2)),
    WakeBackfill(rows.SCHEDULE, "b1", NOON),
    BackfillGoesOn(rows.SCHEDULE, "b1"),
    Put(rows.marker()),
    PutGate(rows.gate(), None),
    PutGate(rows.gate(rev=2), rows.gate()),
    SettleGate(rows.gate()),
    PutSeen(SEEN, None),
    PutSeen(SEEN, NOON - 1),
    CountFailure(rows.SCHEDULE),
    PutDefinition(DEFINITION, None),
    PutDefinition(DEFINITION, 1),
    RemoveDefinition(DEFINITION),
    CountStarts("demo.flights.w"),
    Delete(rows.job()),
    Remove(WAITER),
    TakeIn(rows.note()),
    TakeLetter(rows.dead_letter()),
    NotWaiting(WAITER, None),
    NotWaiting(WAITER, QUEUED),
    NotWaiting(replace(WAITER, job_place="A#001"), rows.run()),
    NotQueued(WAITER),
    NotRun(QUEUED),
    TakeLease(LEASE, NOON),
    TakeLease(LEASE, NOON, NOON + SECOND),
    EndLease(LEASE),
    DefinitionIs(Definition("pool", "demo.p", {}, 2, NOON)),
    DefinitionIs(Definition("pool", "demo.p", {}, 2, NOON, edition=3)),
    PutDefinition(Definition("pool", "demo.p", {}, 2, NOON, edition=3), 2, 2),
    NewEdition("workflow:demo.flights.clean", 4),
    TakeOut(rows.job()),
    TakeOut(rows.job(), exact=True),
    TakeOut(QUEUED),
    TakeOut(replace(QUEUED, closed=True)),
    TakeOut(rows.job(closed=True), exact=True),
    GateIs(rows.gate(), ("enabled", "hold")),
    NotClosed(rows.SCHEDULE, rows.GENERATION),
    NoneGathering(rows.SCHEDULE, rows.GENERATION),
    CloseGeneration(rows.SCHEDULE, rows.GENERATION, NOON),
    CountRates(LINE, ("2/1000",)),
    LeaveLine(LINE),
    LeaseLine(LINE, NOON, NOON + 1),
    SettleLine(LINE),
]
EVERY = [*PERMITS, *PASSES, *BEGINS, *BACKS, *JOINS, *OTHERS]


def expressions(arguments: dict[str, Any]) -> str:
    return " ".join(str(arguments.get(f"{kind}Expression", "")) for kind in ("Update", "Condition"))


def test_every_kind_of_write_is_among_those_that_are_checked_here() -> None:
    assert {type(write) for write in EVERY} == set(get_args(Write))


@pytest.mark.parametrize("kind", get_args(Write), ids=lambda kind: kind.__name__)
def test_an_expression_names_all_the_names_and_values_that_come_with_it_and_no_others(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        made = statement(write, NAMES, Shards(4, 4)).arguments
        text = expressions(made)
        assert set(re.findall(r"(?<!\w):\w+", text)) == set(made.get("ExpressionAttributeValues", {})), write
        assert set(re.findall(r"#\w+", text)) == set(made.get("ExpressionAttributeNames", {})), write


@pytest.mark.parametrize("kind", get_args(Write), ids=lambda kind: kind.__name__)
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


@pytest.mark.parametrize("kind", get_args(Write), ids=lambda kind: kind.__name__)
def test_an_expression_is_no_longer_than_dynamodb_takes_it(kind: type) -> None:
    for write in (each for each in EVERY if type(each) is kind):
        text = expressions(statement(write, NAMES, Shards(4, 4)).arguments)
        assert len(text) <= 4096, write
