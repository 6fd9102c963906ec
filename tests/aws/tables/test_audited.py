"""The ledger of a request adds its audit record to the plan, within the size of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from chalicelib.aws.tables.audited import AuditedLedger
from chalicelib.core.audit.author import Author
from chalicelib.core.rows.audit import AuditRow
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState, Subscription, Version
from chalicelib.core.writes import MAX_WRITES, Conflict, Create, Put, PutDefinition, PutState, Write
from chalicelib.wiring import SystemClock
from tests.support.ledgers import LedgerBetween

NEW = PutDefinition(Definition("policy", "demo.calm", {"max_events": 5}, 1, 1000, "ada"), None)
AUTHOR = Author(None, "put_policy")


class Kept(LedgerBetween):
    """A ledger that keeps the plans of its commits and puts, and answers each commit with a conflict or None."""

    def __init__(self, answer: Conflict | None = None) -> None:
        super().__init__(SimpleNamespace(commit=lambda writes: answer, put_all=lambda writes: None))
        self.plans: list[Sequence[Write]] = []

    def before(self, writes: Sequence[Write]) -> None:
        self.plans.append(writes)

    def before_puts(self, writes: Sequence[Put]) -> None:
        self.plans.append(writes)


def ledger(kept: Kept, author: Author | None = AUTHOR) -> AuditedLedger:
    return AuditedLedger(kept, lambda: author, SystemClock(), 400)


def records(plan: Sequence[Write]) -> list[AuditRow]:
    return [write.row for write in plan if isinstance(write, Put) and isinstance(write.row, AuditRow)]


def others(count: int) -> list[Write]:
    return [Put(Subscription(f"key{number}", "demo.flights.s", 1, 1, "l", 1, False)) for number in range(count)]


def test_a_record_joins_the_plan_of_its_change() -> None:
    kept = Kept()
    assert ledger(kept).commit([NEW]) is None
    [plan] = kept.plans
    [record] = records(plan)
    assert (record.outcome, record.name, len(plan)) == ("changed", "demo.calm", 2)


def test_a_plan_of_99_writes_gets_its_record() -> None:
    kept = Kept()
    ledger(kept).commit([NEW, *others(MAX_WRITES - 2)])
    assert [len(plan) for plan in kept.plans] == [MAX_WRITES]


def test_a_full_plan_is_recorded_before_it_is_committed() -> None:
    kept = Kept()
    ledger(kept).commit([NEW, *others(MAX_WRITES - 1)])
    assert [len(plan) for plan in kept.plans] == [1, MAX_WRITES]
    assert [record.outcome for record in records(kept.plans[0])] == ["begun"]


def test_schedules_put_together_get_a_record_each() -> None:
    states = [ScheduleState(f"demo.flights.{name}", 1000, 1, "enabled", 1000) for name in ("a", "b")]
    versions = [Version(state.schedule, 1, {"workflow": f"of-{state.schedule}"}, 1000) for state in states]
    kept = Kept()
    ledger(kept).commit([*(PutState(state, None) for state in states), *map(Create, versions)])
    found = {row.name: row.document["after"]["document"] for row in records(kept.plans[0])}
    assert found == {version.schedule: version.definition for version in versions}


def test_work_without_an_author_is_committed_as_it_is() -> None:
    kept = Kept()
    ledger(kept, None).commit([NEW])
    assert kept.plans == [[NEW]]


def test_the_conflict_of_a_recorded_plan_is_returned() -> None:
    conflict = Conflict((NEW,))
    assert ledger(Kept(conflict)).commit([NEW]) is conflict
