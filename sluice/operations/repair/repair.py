"""What the steps of a repair share: what they know, what they have found, and how they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from chalicelib.core.instants import Instant
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.event import AppliedEvent
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Run
from chalicelib.core.writes import DeleteJob, Put, Replace, Write
from chalicelib.ports import MAX_CONFLICTS, Ports
from sluice.operations.ports import Begun, Changed, Copies
from sluice.operations.repair.stock import Stock

Unknown = Literal["adopt", "cancel", "leave"]
R = TypeVar("R", Job, Run, Backfill, Reprocess)


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: its kind, the name of what differs, and what the repair does about it, in words."""

    kind: str
    name: str
    done: str


@dataclass
class Repair:
    """One repair. ``since`` is an instant up to which all three tables agree; ``began`` are the runs of EMR since then,
    and ``unknown`` says what becomes of those that no table has. ``changed`` lists the objects of a bucket, under a
    prefix, since an instant. A dry run reports and changes nothing.

    ``again`` are the marks of events that count no more: the events are applied again.
    """

    ports: Ports
    copies: Copies
    since: Instant
    began: Iterable[Begun]
    changed: Callable[[str, str, Instant], Iterable[Changed]]
    unknown: Unknown = "adopt"
    dry_run: bool = False
    findings: list[Finding] = field(default_factory=list)
    again: list[AppliedEvent] = field(default_factory=list)

    @cached_property
    def now(self) -> Instant:
        return self.ports.clock.now()

    @cached_property
    def stock(self) -> Stock:
        return Stock.read(self.copies, self.since)

    @cached_property
    def begun(self) -> list[Begun]:
        return list(self.began)

    def found(self, kind: str, name: str, done: str) -> None:
        self.findings.append(Finding(kind, name, done))

    def write(self, *plan: Write) -> None:
        if self.dry_run:
            return
        for _ in range(MAX_CONFLICTS):
            if self.ports.ledger.commit(plan) is None:
                return
        raise RuntimeError(f"expected a frozen installation, got a change of {plan[0]}; freeze it, and repair again")

    def change(self, row: R, **changes: Any) -> R:
        """Store a row with these changes, of which its revision is one. Returns it."""
        return self.store(replace(row, rev=row.rev + 1, **changes))

    def store(self, row: R) -> R:
        if isinstance(row, Run):
            self.stock.runs[row.run_id, row.attempt] = row
        elif isinstance(row, Job):
            self.stock.keep(row)
        self.write(Replace(row))
        return row

    def create(self, job: Job) -> None:
        self.stock.keep(job)
        self.write(Put(job))

    def drop(self, job: Job) -> None:
        self.stock.drop(job)
        self.write(DeleteJob(job))

    def context(self, run_id: str) -> Mapping[str, Any] | None:
        """The stored context of a run; None if there is none, or if it is no JSON."""
        try:
            return self.ports.payloads.context(run_id)
        except ValueError:
            return None

    def is_elsewhere(self, run: Run) -> bool:
        """Whether the namespace of a run has moved, and left this row as history. The catalog has a state of each
        schedule, also of a deleted one."""
        return run.schedule not in self.stock.schedule_states
